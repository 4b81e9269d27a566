"""Queries as analysts write them, and some that they should not: what the property tests of the planner draw from."""

from dataclasses import dataclass

from hypothesis import strategies as st

from tests.support import subqueries
from tests.support.windows import windowed

# What an expression of each type can be made of, by the tables in FROM.
_COLUMNS: dict[str, dict[str, tuple[str, ...]]] = {
    "p": {
        "number": ("p.age", "p.height", "p.wealth"),
        "text": ("p.city", "p.note"),
        "boolean": ("p.vip",),
        "moment": ("p.born", "p.seen"),
        "other": ("p.mood", "p.id"),
    },
    "v": {
        "number": ("v.cost", "v.score", "v.rating", "v.count", "v.big"),
        "text": ("v.kind",),
        "boolean": (),
        "moment": ("v.at", "v.day"),
        "other": ("v.person_id", "v.id"),
    },
    "i": {"number": ("i.amount", "i.line"), "text": ("i.label",), "boolean": ("i.flag",), "moment": (), "other": ()},
    "l": {"number": ("l.size",), "text": ("l.region",), "boolean": (), "moment": (), "other": ()},
    "r": {"number": ("r.c",), "text": ("r.city",), "boolean": (), "moment": (), "other": ()},
    "w": {
        "number": ("v.number",),
        "text": ("v.label",),
        "boolean": ("(v.number > 1)",),
        "moment": ("v.moment",),
        "other": ("v.id",),
    },
    "m": {"number": ("u.n", "u.s", "u.m"), "text": (), "boolean": (), "moment": (), "other": ()},
    "u": {"number": ("u.n", "u.s", "u.m"), "text": (), "boolean": (), "moment": (), "other": ("u.person_id",)},
}  # fmt: skip
_PER_UNIT = "(SELECT person_id, count(*) AS n, sum(cost) AS s, max(count) AS m FROM visits GROUP BY person_id) AS u"
_RANKED = "(SELECT city, count(*) AS c FROM people GROUP BY city ORDER BY c DESC, city LIMIT 2) AS r"
_SOURCES: tuple[tuple[str, str, str], ...] = (
    ("people AS p", "p", "p.id"),
    ("visits AS v", "v", "v.person_id"),
    ("items AS i", "i", ""),
    ("people AS p JOIN visits AS v ON v.person_id = p.id", "pv", "p.id"),
    ("people AS p, visits AS v WHERE p.id = v.person_id", "pv", "p.id"),
    ("people AS p LEFT JOIN visits AS v ON v.person_id = p.id AND v.count > 0", "pv", "p.id"),
    ("visits AS v LEFT JOIN people AS p ON v.person_id = p.id AND p.vip", "vp", "v.person_id"),
    ("people AS p RIGHT JOIN visits AS v ON v.person_id = p.id AND p.vip", "vp", "v.person_id"),
    ("people AS p FULL JOIN visits AS v ON v.person_id = p.id AND p.vip", "pv", ""),
    ("visits AS v FULL JOIN people AS p ON v.person_id = p.id AND v.kind = p.city", "pv", ""),
    ("visits AS v JOIN items AS i ON i.visit_id = v.id", "vi", "v.person_id"),
    ("items AS i JOIN visits AS v ON i.visit_id = v.id JOIN people AS p ON p.id = v.person_id", "vip", "p.id"),
    ("visits AS v LEFT JOIN items AS i ON i.visit_id = v.id", "vi", "v.person_id"),
    ("visits AS v JOIN visits AS w ON w.person_id = v.person_id", "v", "v.person_id"),
    ("visits AS v JOIN places AS l ON l.id = v.place_id", "vl", "v.person_id"),
    ("visits AS v LEFT JOIN places AS l ON l.id = v.place_id", "vl", "v.person_id"),
    ("visits AS v JOIN places AS l ON l.size > v.count", "vl", "v.person_id"),
    (_PER_UNIT, "u", "u.person_id"),
    (f"people AS p LEFT JOIN {_PER_UNIT} ON u.person_id = p.id", "pu", "p.id"),
    (
        "(SELECT person_id, percentile_cont(0.5) WITHIN GROUP (ORDER BY cost) AS n, "
        "percentile_disc(0.3) WITHIN GROUP (ORDER BY count DESC) AS s, mode() WITHIN GROUP (ORDER BY big) AS m "
        "FROM visits GROUP BY person_id) AS u",
        "u",
        "u.person_id",
    ),
    ("(SELECT * FROM visits WHERE kind = 'a' UNION ALL SELECT * FROM visits) AS v", "v", "v.person_id"),
    ("people AS p WHERE EXISTS (SELECT 1 FROM visits AS w WHERE w.person_id = p.id AND w.count > 0)", "p", "p.id"),
    ("people AS p WHERE NOT EXISTS (SELECT FROM visits AS w WHERE w.person_id = p.id AND w.kind = 'a')", "p", "p.id"),
    ("people AS p WHERE p.id IN (SELECT person_id FROM visits WHERE person_id IS NOT NULL)", "p", "p.id"),
    ("visits AS v WHERE v.place_id IN (SELECT id FROM places WHERE region = 'north')", "v", "v.person_id"),
    ("places AS l LEFT JOIN visits AS v ON l.id = v.place_id", "lv", "v.person_id"),
    ("visits AS v RIGHT JOIN places AS l ON l.size = v.count AND v.cost > 1", "lv", "v.person_id"),
    (
        "people AS p CROSS JOIN LATERAL (SELECT count(*) AS n, sum(cost) AS s, max(count) AS m FROM visits AS w "
        "WHERE w.person_id = p.id AND w.kind IS NOT NULL) AS u",
        "pm",
        "p.id",
    ),
    (
        "people AS p CROSS JOIN LATERAL (SELECT count(*) AS n, sum(cost) AS s, max(count) AS m FROM visits AS w "
        "WHERE w.person_id = p.id) AS u JOIN visits AS v ON v.person_id = p.id AND v.count <= u.n",
        "pmv",
        "p.id",
    ),
    (
        "people AS p LEFT JOIN LATERAL (SELECT * FROM visits AS w WHERE w.person_id = p.id "
        "ORDER BY day, id LIMIT 2) AS v ON true",
        "pv",
        "p.id",
    ),
    (
        "visits AS v, LATERAL (SELECT i.amount, i.line, i.label, i.flag FROM items AS i WHERE i.visit_id = v.id) AS i",
        "vi",
        "",
    ),
    (
        "visits AS v WHERE v.id = (SELECT max(w.id) FROM visits AS w WHERE w.person_id = v.person_id)",
        "v",
        "v.person_id",
    ),
    (
        "visits AS v WHERE v.day = (SELECT min(day) FROM visits AS w WHERE w.person_id = v.person_id)",
        "v",
        "v.person_id",
    ),
    *(
        (f"visits AS v WHERE {test} w WHERE w.person_id = v.person_id{more})", "v", "v.person_id")
        for test, more in (
            ("v.count >= ALL (SELECT w.count FROM visits AS", ""),
            ("v.count < ANY (SELECT w.count FROM visits AS", " AND w.id <> v.id"),
            ("v.kind NOT IN (SELECT w.kind FROM visits AS", " AND w.id < v.id"),
            ("(v.count, v.kind) NOT IN (SELECT w.count, w.kind FROM visits AS", " AND w.id < v.id"),
            ("NOT (v.count < ALL (SELECT w.count FROM visits AS", " AND w.id <> v.id)"),
            ("(v.count IN (7, 1) OR (v.kind = ANY (SELECT w.kind FROM visits AS", " AND w.id > v.id)) IS NULL"),
        )
    ),
    (
        "visits AS v WHERE (v.person_id, v.count) IN (SELECT person_id, max(count) FROM visits GROUP BY 1)",
        "v",
        "v.person_id",
    ),
    *(
        (
            f"people AS p WHERE p.id {test} (SELECT person_id {some} < 5 {word} SELECT person_id {some} > 1)",
            "p",
            "p.id",
        )
        for test, word in (("IN", "INTERSECT"), ("IN", "UNION"), ("NOT IN", "EXCEPT"))
        for some in ("FROM visits WHERE person_id IS NOT NULL AND count",)
    ),
    (
        "visits AS v WHERE 1 = (SELECT count(*) FROM visits AS w "
        "WHERE w.person_id = v.person_id AND w.count < v.count)",
        "v",
        "v.person_id",
    ),
    # answers that are released first
    ("people AS p WHERE p.age > ALL (SELECT count(*) FROM people GROUP BY city)", "p", "p.id"),
    (
        "people AS p WHERE (p.city, p.vip) IN (SELECT city, vip FROM people GROUP BY 1, 2 HAVING count(*) > 1)",
        "p",
        "p.id",
    ),
    ("visits AS v WHERE v.count < (SELECT count(*) FROM people)", "v", "v.person_id"),
    ("visits AS v WHERE EXISTS (SELECT FROM people HAVING count(*) > 2)", "v", "v.person_id"),
    (
        "people AS p WHERE p.city NOT IN (SELECT city FROM people WHERE vip GROUP BY 1 HAVING count(*) > 1)",
        "p",
        "p.id",
    ),
    ("people AS p WHERE p.age < (SELECT count(*) FROM people AS q WHERE q.city = p.city AND q.vip)", "p", "p.id"),
    ("visits AS v WHERE v.count <= (SELECT sum(w.count) FROM visits AS w WHERE v.kind = w.kind)", "v", "v.person_id"),
    (f"people AS p JOIN {_RANKED} ON r.city = p.city", "pr", "p.id"),
    (f"people AS p LEFT JOIN {_RANKED} ON r.city = p.city AND r.c > 1", "pr", "p.id"),
    (f"{_RANKED} RIGHT JOIN people AS p ON p.city = r.city AND p.vip", "pr", "p.id"),
    (f"people AS p LEFT JOIN {_RANKED} ON p.note = r.city WHERE r.c IS NULL OR p.vip", "pr", "p.id"),
    (f"people AS p WHERE EXISTS (SELECT FROM {_RANKED} WHERE r.city = p.city AND r.c < p.age)", "p", "p.id"),
)
_CONSTANTS = ("0", "1", "-1", "2.5", "10", "100", "1e10", "0.001")


@dataclass(frozen=True)
class Query:
    """A SELECT in its parts; `unit` is how the unit is called, if it has a name."""

    source: str
    tables: str
    unit: str
    where: tuple[str, ...]
    keys: tuple[str, ...]
    aggregates: tuple[str, ...]

    @property
    def sql(self) -> str:
        items = [f"{key} AS k{place}" for place, key in enumerate(self.keys, start=1)]
        items += [f"{aggregate} AS m{place}" for place, aggregate in enumerate(self.aggregates, start=1)]
        word = "AND" if self._has_where() else "WHERE"
        where = f" {word} {' AND '.join(self.where)}" if self.where else ""
        group = f" GROUP BY {', '.join(str(place) for place in range(1, len(self.keys) + 1))}" if self.keys else ""
        return f"SELECT {', '.join(items)} FROM {self.source}{where}{group}"

    def _has_where(self) -> bool:
        depth = 0
        for at, letter in enumerate(self.source):
            depth += {"(": 1, ")": -1}.get(letter, 0)
            if depth == 0 and self.source.startswith(" WHERE ", at):
                return True
        return False


@st.composite
def queries(draw: st.DrawFn) -> Query:
    """One aggregating SELECT over one to three tables, or over windows."""
    source, tables, unit = draw(windowed() if draw(st.integers(0, 4)) == 0 else st.sampled_from(_SOURCES))
    pick = _Expressions(draw, tables)
    where = tuple(pick.condition(2) for _ in range(draw(st.integers(0, 2))))
    keys = tuple(pick.key() for _ in range(draw(st.integers(0, 2))))
    aggregates = tuple(pick.aggregate(unit) for _ in range(draw(st.integers(1, 3))))
    return Query(source, tables, unit, where, keys, aggregates)


class _Expressions:
    """Draws expressions over the columns of some tables."""

    def __init__(self, draw: st.DrawFn, tables: str) -> None:
        self._draw = draw
        self._tables = tables

    def _column(self, kind: str) -> str | None:
        known = [column for table in self._tables for column in _COLUMNS[table][kind]]
        return self._draw(st.sampled_from(known)) if known else None

    def _beside(self, known: dict[str, tuple[str, ...]]) -> str | None:
        """A subquery that depends on a row of one of the tables."""
        found = [text for table in self._tables for text in known.get(table, ())]
        return self._draw(st.sampled_from(found)) if found else None

    def _one(self, *choices: str) -> str:
        return self._draw(st.sampled_from(choices))

    def number(self, depth: int) -> str:
        column = self._column("number") or "1"
        shape = self._draw(st.integers(0, 14)) if depth > 0 else 0
        if shape <= 3:
            return column
        if shape == 14:
            return self._beside(subqueries.NUMBERS) or column
        inner = self.number(depth - 1)
        match shape:
            case 4 | 5 | 6:
                return f"({inner} {self._one('+', '-', '*', '/', '%')} {self.number(depth - 1)})"
            case 7:
                return f"least(greatest({inner}, {self._one('0', '-5')}), {self._one('7', '100')})"
            case 8:
                return f"CASE WHEN {self.condition(depth - 1)} THEN {inner} ELSE {self._one('0', 'NULL', '1.5')} END"
            case 9:
                return f"coalesce({inner}, {self._one(*_CONSTANTS)})"
            case 10:
                return f"{self._one('floor', 'ceil', 'round', 'abs', '-', 'sign', 'sqrt', 'ln', 'trunc')}({inner})"
            case 11:
                return f"{inner}::{self._one('numeric', 'float8', 'integer', 'bigint', 'smallint', 'numeric(6,2)')}"
            case 12:
                moment = self._column("moment")
                return f"extract({self._one('year', 'dow', 'day', 'epoch')} FROM {moment})" if moment else inner
            case _:
                text = self._column("text")
                return f"length({text})" if text else f"nullif({inner}, {self._one(*_CONSTANTS)})"

    def condition(self, depth: int) -> str:
        shape = self._draw(st.integers(0, 12 if depth > 0 else 6))
        number, text, flag = self._column("number"), self._column("text"), self._column("boolean")
        match shape:
            case 0 if flag:
                return f"({flag} {self._one('IS TRUE', 'IS NOT TRUE', 'IS NULL')})"
            case 1 if text:
                return f"({text} {self._one('=', '<>', '<', 'LIKE', 'ILIKE', 'NOT LIKE')} {self._one(*_TEXTS)})"
            case 2 if text:
                return self._one(*_OF_TEXTS).format(text)
            case 3 if moment := self._column("moment"):
                return f"({moment} {self._one('<', '<=', '=', '<>', '>', '>=')} {self._one(*_MOMENTS)})"
            case 4:
                return f"({number or '1'} BETWEEN {self._one('0', '-1')} AND {self._one('5', '50')})"
            case 5:
                return f"({number or '1'} IS {self._one('NULL', 'NOT NULL')})"
            case 7:
                return f"({self.condition(depth - 1)} {self._one('AND', 'OR')} {self.condition(depth - 1)})"
            case 8:
                return f"(NOT {self.condition(depth - 1)})"
            case 9:
                return f"({self.number(depth - 1)} IS DISTINCT FROM {self._one(*_CONSTANTS)})"
            case 12 if found := self._beside(subqueries.CONDITIONS):
                return found
            case 10:
                return (
                    f"({self.number(depth - 1)} {self._one('<', '<=', '=', '<>', '>', '>=')} {self.number(depth - 1)})"
                )
        return f"({number or '1'} {self._one('<', '<=', '=', '<>', '>', '>=')} {self._one(*_CONSTANTS)})"

    def key(self) -> str:
        text, flag, moment = self._column("text"), self._column("boolean"), self._column("moment")
        match self._draw(st.integers(0, 16)):
            case 12 if text:
                return self._one(*_OF_TEXT).format(text)
            case 13 | 14 if moment:
                return self._one(*_OF_MOMENT).format(moment)
            case 11 if found := self._beside(subqueries.TEXTS):
                return found
            case 0 | 1 if text:
                return text
            case 2 if flag:
                return flag
            case 3 | 4 if moment:
                bins = f"interval '30 minutes' * floor(extract(minute FROM {moment}) / 30)"
                shown = self._one("", "", "", f" + {bins}")
                return f"date_trunc('{self._one('month', 'week', 'year', 'day', 'hour')}', {moment}){shown}"
            case 5 if moment:
                return f"extract({self._one('year', 'month', 'dow')} FROM {moment})"
            case 6 if moment:
                return moment
            case 7 | 15 | 16:
                return self._case(text)
            case 8:
                return self._one(*_BINS).format(self._column("number") or "1")
            case 9 if text:
                return f"coalesce({text}, 'none')"
        return self._column("number") or self._column("other") or "1"

    def _case(self, text: str | None) -> str:
        """Two words; or texts that stay what they are: in a list, beside released ones, or under any condition."""
        if text is None or self._draw(st.integers(0, 2)) == 0:
            return f"CASE WHEN {self.condition(1)} THEN 'yes' ELSE 'no' END"
        listed, partner = f"{text} IN ('a', 'Berlin', 'Nowhere')", "r.city IS NOT NULL"
        partners = (partner, partner, f"{partner} AND {text} <> 'Lyon'", "r.c > 1") if "r" in self._tables else ()
        kept = self._one(listed, f"{text} = 'Berlin' OR {text} = 'b'", self.condition(1), *partners)
        other = self._one("'others'", "'Berlin'", "NULL")
        return f"CASE WHEN {kept} THEN {text} ELSE {other} END"

    def aggregate(self, unit: str) -> str:
        test = f" FILTER (WHERE {self.condition(1)})" if self._draw(st.integers(0, 3)) == 0 else ""
        match self._draw(st.integers(0, 8)):
            case 0:
                return f"count(*){test}" if self._draw(st.booleans()) else f"{self._of_condition()}{test}"
            case 7:
                if self._draw(st.integers(0, 2)) == 0:
                    return f"{self._one('sum', 'avg')}(DISTINCT {self._column('number') or '1'}){test}"
                return f"count(DISTINCT {self._column('text') or self._column('number') or '1'}){test}"
            case 8:
                return f"{self._one('stddev', 'var_pop', 'variance', 'stddev_pop')}({self.number(1)}){test}"
            case 1 if unit:
                return f"count(DISTINCT {self._one(unit, self._chosen(unit))}){test}"
            case 2:
                return f"count({self.number(1)}){test}"
            case 3 | 4:
                return f"sum({self.number(2)}){test}"
        return f"avg({self.number(2)}){test}"

    def _of_condition(self) -> str:
        """An aggregate whose argument only chooses rows."""
        condition = self.condition(1)
        written = f"CASE WHEN {condition} THEN {{}} ELSE 0 END"
        return self._one(
            f"sum({written.format(1)})", f"avg({written.format(1)})", f"sum({written.format(2.5)})",
            f"sum(({condition})::int)", f"avg(({condition})::int)", f"count(nullif({condition}, false))",
            f"count({self._chosen('1')})", f"sum({self._chosen(self.number(1))})",
        )  # fmt: skip

    def _chosen(self, value: str) -> str:
        condition = self.condition(1)
        return self._one(
            f"CASE WHEN {condition} THEN {value} END", f"CASE WHEN {condition} THEN NULL ELSE {value} END",
            f"CASE WHEN {condition} THEN {value} WHEN {self.condition(1)} THEN NULL ELSE {value} END",
        )  # fmt: skip


_OF_TEXT = (
    *("upper({})", "left({}, 1)", "split_part({}, 'r', 1)", "translate({}, 'aeiou', 'A')", "lpad({}, 3, '-')"),
    *("{0} || '-' || {0}", "concat({0}, '!', {0})", "regexp_replace({}, '[a-e]+', '*', 'g')", "reverse({})"),
)
_MOMENTS = (
    *("'2024-01-15'", "date '2024-01-15'", "timestamp '2024-01-15 12:00'", "timestamptz '2024-01-15 00:00+00'"),
    *("date_trunc('month', timestamp '2024-01-15')", "timestamptz '2024-03-31 01:30+00'", "date '2024-03-31'"),
)
_BINS = (
    *("floor(({})::numeric / 10)", "floor(({})::numeric / 10) * 10 + 5", "(({})::numeric * 3 - 1)"),
    *("ceil(({})::numeric / 0.5)", "floor((({})::numeric - 2.5) / 5.0) * 5.0 + 2.5"),
)
_OF_MOMENT = (
    *("extract(month FROM {})::varchar", "({})::date", "({})::timestamp", "({})::timestamptz"),
    *("to_char({}, 'YYYY-MM')", "to_char({}, 'FMDay')", "to_char({}, 'IYYY-IW')", "to_char({}, 'HH24:00')"),
    *("date_bin('7 days', {}, timestamptz '2023-12-25 06:00+00')", "date_trunc('month', {}, 'America/New_York')"),
    *("extract(year FROM age('2024-02-01', {}))", "make_date(extract(year FROM {})::integer, 2, 29)"),
)
_OF_TEXTS = (
    *("({} NOT IN ('a', 'Berlin'))", "({0} <> 'a' OR {0} IS NULL)", "(NOT {} = 'x')"),
    *("({} IN ('a', 'Berlin', 'x'))", "({} ~ '^[a-c]|n$')", "({} !~* 'B.*L')", "({} SIMILAR TO '(a|B)%')"),
    *(
        "(({0}, length({0})) >= ('a', 5))",
        "(({0}, {0}) NOT IN (('a', 'a'), ('Berlin', 'x')))",
        "(({0}, 1) <> ('a', 1))",
    ),
    *("({} LIKE ANY (ARRAY['a%', '%n']))", "({} > ALL (ARRAY['a', 'B']))", "(length({}) BETWEEN SYMMETRIC 5 AND 1)"),
)
_TEXTS = ("'a'", "'Berlin'", "'%a%'", "'50\\%'", "''", "'O''Hara'")
