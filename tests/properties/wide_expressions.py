"""Expressions and conditions over the columns of the wide world: of every form, three deep, subqueries included."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

KINDS = {
    "number": "age level height grade cost share score n big line amount weight size lat".split(),
    "text": "city tag nick kind cc label note code region b c".split(),
    "bool": "vip flag ok".split(),
    "moment": "born day at seen".split(),
    "other": "mood uid dur ci".split(),
}
KIND_OF = {name: kind for kind, names in KINDS.items() for name in names}
_CONSTANTS = {
    "number": (
        *("0", "1", "2", "-1", "5", "9", "1.5", "100", "NULL", "9::real", "'0.1'::real", "'1'::float8"),
        *("9007199254740993", "'9007199254740992'::float8", "'1e150'::float8", "8.9999999999999999", "31::smallint"),
        *("'8e307'::float8", "'-1e308'::float8", "'5e-324'::float8", "'3e38'::real", "1e299", "1e-290", "2147483647"),
    ),
    "text": (
        "'a'",
        "'b'",
        "''",
        "'a '",
        "'Berlin'",
        "'north'",
        "'A'",
        "NULL",
        "'a'::text",
        "'x'::varchar",
        "'p'",
        "'a '::char(3)",
        "'b '::bpchar",
        "'b'::char(1)",
    ),
    "bool": ("true", "false", "NULL", "true"),
    "moment": (
        "'2024-01-01'",
        "date '2024-01-04'",
        "timestamp '2024-01-01 12:00'",
        "timestamptz '2024-03-31 01:30+00'",
        "timestamp '2024-01-30 23:00'",
        "date '9999-12-31'",
        "date '0001-01-01'",
    ),
}
_SIGNS = ("=", "=", "=", "<>", "<", "<=", ">", ">=")


@dataclass(frozen=True)
class Place:
    """Where an expression stands: its columns by kind, the unit's names there, and how a subquery of it is made."""

    columns: dict[str, tuple[str, ...]]
    units: tuple[str, ...] = ()
    subquery: Callable[["Place"], str] | None = None  # FROM … WHERE … over rows of the same unit
    places: tuple[str, ...] = ()  # columns that refer to a public row

    def of(self, kind: str) -> tuple[str, ...]:
        return self.columns.get(kind, ())

    @property
    def everything(self) -> tuple[str, ...]:
        return tuple(name for names in self.columns.values() for name in names) or ("1",)


class Expressions:
    def __init__(self, random: Random, place: Place) -> None:
        self._random, self._place = random, place

    def one(self, *choices: str) -> str:
        return self._random.choice(choices)

    def chance(self, most: int) -> bool:
        return self._random.randint(0, most) == 0

    def value(self, kind: str) -> str:
        """A column or a constant of a kind."""
        known = self._place.of(kind)
        if known and not self.chance(2):
            return self.one(*known)
        return self.one(*_CONSTANTS[kind])

    def column(self, kind: str) -> str:
        known = self._place.of(kind)
        return self.one(*known) if known else self.one(*_CONSTANTS[kind][:2])

    def any(self) -> str:
        return self.one(*self._place.everything)

    def number(self, depth: int) -> str:
        match self._random.randint(0, 9) if depth else 0:
            case 5:
                return f"({self.number(depth - 1)} {self.one('+', '-', '*', '/')} {self.value('number')})"
            case 6:
                test, otherwise = self.condition(depth - 1), self.value("number")
                return f"CASE WHEN {test} THEN {self.number(depth - 1)} ELSE {otherwise} END"
            case 7:
                name, more = self.one("coalesce", "least", "greatest"), self.one("", "", f", {self.value('number')}")
                return f"{name}({self.value('number')}, {self.column('number')}{more})"
            case 8:
                of = self.one(
                    *("floor({})", "abs({})", "({})::numeric", "({})::integer", "round({})", "length(({})::text)"),
                    *(
                        "sqrt({})",
                        "({})::real",
                        "({}) ^ 2",
                        "({})::float8",
                        "width_bucket({}, 0, 5, 5)",
                        "({})::numeric(4,2)",
                    ),
                )
                return of.format(self.number(depth - 1))
            case 9 if self._place.subquery is not None and self._place.units:
                return self._scalar()
            case 4 if self.chance(2):
                return f"nullif({self.column('number')}, {self.value('number')})"
            case 3 if self.chance(1):
                return self._part_of_time()
        return self.column("number")

    def _part_of_time(self) -> str:
        """Of a moment that was computed."""
        moment = self.one("date_trunc('{}', {})", "date_bin('{} days', {}, timestamp '2024-01-01')")
        size = self.one("decade", "week", "millennium") if "trunc" in moment else self.one("1", "400000", "3000000")
        field = self.one("year", "decade", "dow", "epoch", "century")
        return f"extract({field} FROM {moment.format(size, self.column('moment'))})"

    def text(self, depth: int) -> str:
        match self._random.randint(0, 7) if depth else 0:
            case 4 | 5:
                kind = self.one("char(1)", "char(3)", "bpchar", "varchar(1)", "name", "text")
                return f"({self.text(depth - 1)})::{kind}"
            case 6:
                return self.one("concat({}, '.')", "lower({})", "left({}, 1)").format(self.text(depth - 1))
            case 7:
                test = self.condition(depth - 1)
                return f"CASE WHEN {test} THEN {self.text(depth - 1)} ELSE {self.value('text')} END"
        return self.column("text")

    def _scalar(self) -> str:
        """What other rows say: one found by its key, the unit's, the first of them, or all that are alike."""
        assert self._place.subquery is not None
        if self._place.places and self.chance(2):
            place = self.one(*self._place.places)
            return f"(SELECT {self.one('o.size', 'o.lat', 'o.size + 1')} FROM places AS o WHERE o.id = {place})"
        found = self._place.subquery(self._place)
        if self.chance(3):
            key = self.one("", " AND q.id = 2", " AND q.grade = 3", " AND q.n = 1")
            return f"(SELECT q.n {found}{key}{self.one('', ' ORDER BY q.cost LIMIT 1', ' LIMIT 1')})"
        if self.chance(7):
            alike = f"FROM visits AS q JOIN places AS r ON r.id = q.place_id WHERE q.kind = {self.column('text')}"
            return f"(SELECT {self.one('count(*)', 'sum(r.size)')} {alike})"
        of = self.one("count(*)", "max(q.n)", "count(DISTINCT q.n)", "sum(q.n)", "min(q.n) + count(*)")
        near = self.one("", f" AND q.n {self.one('<', '>=', '<>')} {self.column('number')}")
        return f"(SELECT {of} {found}{near})"

    def condition(self, depth: int) -> str:
        """Of as many levels: a comparison, or conditions put together."""
        if depth and self.chance(1):
            return self._compound(depth - 1)
        simple = (
            *(self._compared, self._compared, self._compared, self._listed, self._between, self._missing),
            *(self._distinct, self._flag, self._flag, self._of_kind, self._chain, self._risky),
        )
        return self._random.choice(simple)()

    def _compared(self) -> str:
        match self._random.randint(0, 5):
            case 0:
                return f"{self.value('number')} {self.one(*_SIGNS)} {self.column('number')}"
            case 1:
                return f"{self.text(1)} {self.one('=', '<>', 'LIKE', '>')} {self.one(*_CONSTANTS['text'])}"
            case 2:
                return f"{self.column('moment')} {self.one(*_SIGNS)} {self.value('moment')}"
        return f"{self.column('number')} {self.one(*_SIGNS)} {self.value('number')}"

    def _listed(self) -> str:
        if self.chance(3):
            return f"{self.column('number')} = ANY (ARRAY[{self.value('number')}, {self.value('number')}])"
        kind = self.one("number", "text", "bool")
        listed = ", ".join(self.value(kind) for _ in range(self._random.randint(1, 3)))
        return f"{self.value(kind)} {self.one('IN', 'NOT IN')} ({listed})"

    def _chain(self) -> str:
        """What costs more to look at than most conditions that rely on it."""
        column = self.column("number")
        return f"({' OR '.join(f'{column} = {number}' for number in range(1, 9))})"

    def _risky(self) -> str:
        """What fails, or would, on values that conditions may keep out."""
        column, moment = self.column("number"), self.column("moment")
        of = self.one(
            "2 / {} > 0", "{} * 1000000000 > 0", "({})::smallint > 0", "2 % {} = 0", "exp({}) > 1", "ln({}) > 1"
        )
        later = self.one("{} + interval '1 month'", "{} - interval '40 days'", "date_trunc('month', {})")
        return self.one(of.format(column), f"{later.format(moment)} > '2024-01-31'")

    def _between(self) -> str:
        words = self.one("BETWEEN", "BETWEEN SYMMETRIC", "NOT BETWEEN", "NOT BETWEEN SYMMETRIC")
        return f"{self.column('number')} {words} {self.value('number')} AND {self.value('number')}"

    def _missing(self) -> str:
        return f"{self.any()} IS {self.one('NULL', 'NOT NULL', 'NOT NULL')}"

    def _distinct(self) -> str:
        kind = self.one("number", "text", "bool", "moment")
        return f"{self.column(kind)} IS {self.one('', 'NOT ')}DISTINCT FROM {self.value(kind)}"

    def _flag(self) -> str:
        match self._random.randint(0, 2):
            case 0:
                return self.column("bool")
            case 1:
                return f"{self.column('bool')} {self.one('=', '<>')} {self.value('bool')}"
        return f"({self.column('bool')} IS {self.one('', 'NOT ')}{self.one('TRUE', 'FALSE', 'UNKNOWN')})"

    def _of_kind(self) -> str:
        """Two columns of one name, as of a table and itself: of a type that is only compared."""
        known = self._place.of("other")
        same = [text for text in known if text.rpartition(".")[2] == known[0].rpartition(".")[2]]
        return f"{self.one(*same)} = {self.one(*same)}" if same else "true"

    def _compound(self, depth: int) -> str:
        first, second = self.condition(depth), self.condition(depth)
        match self._random.randint(0, 11):
            case 0 | 1:
                return f"({first} AND {second})"
            case 2 | 3:
                return f"({first} OR {second})"
            case 4 | 5:
                return f"(NOT ({first}))"
            case 6:
                return f"CASE WHEN {first} THEN {second} ELSE {self.one('false', 'NULL', self.condition(depth))} END"
            case 7:
                return f"coalesce({first}, {self.one('true', 'false')})"
            case 8:
                return (
                    f"({first}) {self.one('IS TRUE', 'IS NOT FALSE', 'IS UNKNOWN', '= true', '<> true', 'IN (true)')}"
                )
            case 9:
                number, text = self.column("number"), self.column("text")
                pair = f"({self.value('number')}, {self.value('text')})"
                sign = self.one("=", "<>", "IN", "NOT IN", "<", ">=")
                return f"({number}, {text}) {sign} {f'({pair})' if 'IN' in sign else pair}"
            case 10 | 11 if self._place.subquery is not None and self._place.units:
                return self._test()
        return f"{self.number(depth)} {self.one(*_SIGNS)} {self.number(depth)}"

    def _test(self) -> str:
        """EXISTS and IN over the unit's rows, over its groups, over public rows and over answers."""
        assert self._place.subquery is not None
        found, unit = self._place.subquery(self._place), self.one(*self._place.units)
        few = "visits AS q WHERE q.person_id IS NOT NULL GROUP BY 1 HAVING count(*) > 1"
        larger = f"places AS o WHERE o.size {self.one('=', '>')} {self.column('number')} AND o.flag"
        return self.one(
            f"{self.column('number')} {self.one('IN', 'NOT IN')} (SELECT q.n {found} AND q.n IS NOT NULL)",
            f"{unit} IN (SELECT q.person_id {found} AND q.person_id IS NOT NULL)",
            f"{unit} IN (SELECT q.person_id FROM {few})",
            f"{self.one('', 'NOT ')}EXISTS (SELECT FROM {larger})",
            f"{self.column('text')} {self.one('IN', 'NOT IN')} (SELECT city FROM people GROUP BY 1)",
            f"(SELECT bool_or(q.flag) {found})",
            f"{self.one('', 'NOT ')}EXISTS (SELECT {found})",
            self._among(found, unit),
        )

    def _among(self, found: str, unit: str) -> str:
        """IN of rows, and a sign with ANY or ALL: over the unit's rows, tied in the subquery or by the row itself."""
        number, negated = self.column("number"), self.one("IN", "NOT IN")
        quantified = f"{self.one(*_SIGNS)} {self.one('ANY', 'ALL', 'SOME')}"
        return self.one(
            f"{number} {quantified} (SELECT {self.one('q.n', 'q.grade')} {found})",
            f"{number} {negated} (SELECT q.n {found})",
            f"({number}, {self.column('text')}) {negated} (SELECT q.n, q.kind {found})",
            f"({unit}, {number}) {negated} (SELECT q.person_id, q.n FROM visits AS q WHERE q.person_id IS NOT NULL)",
            f"({number}, {unit}) IN (SELECT max(q.n), q.person_id FROM visits AS q GROUP BY q.person_id)",
            f"{number} {quantified} (SELECT o.size FROM places AS o WHERE o.flag)",
            f"({number}, {self.column('text')}) {negated} (SELECT o.size, o.region FROM places AS o)",
            f"{number} {quantified} (SELECT count(*) FROM people GROUP BY city)",
        )

    def key(self) -> str:
        match self._random.randint(0, 9):
            case 0:
                return f"CASE WHEN {self.condition(2)} THEN 'yes' ELSE 'no' END"
            case 1:
                return self.one(f"coalesce({self.column('text')}, 'none')", self.text(2))
            case 2:
                return f"({self.any()})::text"
            case 3 if self._place.units:
                return f"({self.one(*self._place.units)})::text"
            case 4:
                return (
                    f"date_trunc('{self.one('month', 'day')}', {self.column('moment')})"
                    if self._place.of("moment")
                    else "1"
                )
            case 5:
                return self.number(2)
            case 6:
                return self.condition(1)
        return self.any()

    def aggregate(self) -> str:
        test = f" FILTER (WHERE {self.condition(1)})" if self.chance(3) else ""
        match self._random.randint(0, 11):
            case 0 | 1:
                return f"count(*){test}"
            case 2:
                return f"count({self.any()}){test}"
            case 3 | 4 if self._place.units:
                return f"count(DISTINCT {self.one(*self._place.units)}){test}"
            case 5:
                pair = f"({self.any()}, {self.any()})"
                return f"count(DISTINCT {self.one(self.any(), pair)}){test}"
            case 6:
                return f"sum(CASE WHEN {self.condition(1)} THEN 1 ELSE 0 END)"
            case 7:
                return f"sum(least(greatest({self.number(1)}, 0), 5)){test}"
            case 8:
                return f"{self.one('sum', 'avg', 'sum', 'var_pop')}({self.number(1)}){test}"
            case 9:
                return f"sum(DISTINCT {self.column('number')}){test}"
            case 10:
                of = self.one("min({})", "max({})", "percentile_disc(0.5) WITHIN GROUP (ORDER BY {})")
                return f"{of.format(self.column('number'))}{test}"
        return f"count({self.number(1)})"
