"""A relation as SQL: tables fully qualified, columns quoted, nothing of the analyst's text.

Runs where PostgreSQL finds functions, operators and types in pg_catalog before pg_temp, and nowhere else. Columns are
called c1, c2 …; only those that are used are read. What makes a relation local is written here: the equality of units
wherever protected rows meet, GROUP BY and PARTITION BY the unit, and orders in which only identical rows tie.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial

from rules.catalog import TableName
from rules.kernel import script as k
from rules.kernel.added import canonical, in_one_type, last_order, row_identity, stored, typed
from rules.kernel.expressions import call_sql, constant_sql, expression_sql, quoted_name, typed_sql
from rules.kernel.ground import GroundTable, Hop, RowAsUnit, UnitPath
from rules.kernel.relation import Relation, are_linked, is_stored
from rules.kernel.templates import AGGREGATES, ORDINAL, RANKS, check_template
from rules.refusal import Mismatch
from rules.values.expression import Column, Constant, Expression, ids_in, is_true

_EDGE = r"(?:UNBOUNDED PRECEDING|UNBOUNDED FOLLOWING|CURRENT ROW|OFFSET (?:PRECEDING|FOLLOWING))"
_OFFSET = r"(?:[0-9]{1,9}|'[^'\\]{1,60}'::(?:numeric|double precision|interval))"
_FRAME = re.compile(
    rf"(?:ROWS|RANGE|GROUPS) BETWEEN {_EDGE} AND {_EDGE}( EXCLUDE (CURRENT ROW|GROUP|TIES))?".replace("OFFSET", _OFFSET)
)


@dataclass(frozen=True, slots=True)
class From:
    """The text behind FROM and WHERE, and the name of every used column there."""

    source: str
    names: Mapping[int, str]
    where: tuple[str, ...] = ()

    def clause(self) -> str:
        """FROM … WHERE …"""
        tail = f" WHERE {' AND '.join(self.where)}" if self.where else ""
        return f"FROM {self.source}{tail}"


def qualified(table: TableName) -> str:
    return f"{quoted_name(table.schema)}.{quoted_name(table.name)}"


class Renderer:
    """Renders one statement. Sub-selects and columns are numbered as they come: equal relations have equal texts.

    A text that is never run, but compared with others, may have windows over rows without an order.
    """

    def __init__(self, *, is_run: bool = True) -> None:
        self._aliases, self._is_run = 0, is_run
        self._columns: dict[int, str] = {}

    def render(self, relation: Relation, used: frozenset[int]) -> From:
        """The rows of a relation with at least the columns that are used."""
        match relation.script:
            case k.Scan() as script:
                return self._scan(relation, script, used)
            case k.Values() as script:
                return self._values(script, used)
            case k.Filter(condition=condition):
                inner = self.render(relation.parts[0], used | ids_in(condition))
                return From(inner.source, inner.names, (*inner.where, expression_sql(condition, inner.names)))
            case k.Project(computed=computed):
                return self._project(relation, computed, used)
            case k.Join() as script:
                return self._join(relation, script, used)
            case k.Semi() as script:
                return self._semi(relation, script, used)
            case k.PerUnit() as script:
                return self._per_unit(relation, script, used)
            case k.Correlated() as script:
                return self._correlated(relation, script, used)
            case k.Window() as script:
                return self._window(relation, script, used)
            case k.UnionAll() as script:
                return self._union_all(relation, script, used)

    def _alias(self) -> str:
        self._aliases += 1
        return f"t{self._aliases}"

    def _called(self, number: int) -> str:
        return self._columns.setdefault(number, f"c{len(self._columns) + 1}")

    def _scan(self, relation: Relation, script: k.Scan, used: frozenset[int]) -> From:
        """A row whose unit nobody asks for is tied to one whose unit is not NULL, so its way need not be walked."""
        table = relation.table
        assert table is not None
        alias = self._alias()
        source = f"{_rows_of(table)}{qualified(script.table)} AS {alias}"
        names = {
            number: stored(relation.types[number], f"{alias}.{quoted_name(name)}", is_recast=name in table.recast)
            for number, name in script.columns
        }
        unit = None if relation.unit is None else relation.unit.column
        match table.unit:
            case RowAsUnit(key=key) if unit is not None and len(key) > 1:
                names[unit] = row_identity((table.types[name], f"{alias}.{quoted_name(name)}") for name in key)
            case UnitPath(hops=hops) as path if unit is not None and not (hops and unit not in used):
                for hop in hops:
                    following = self._alias()
                    by = ' COLLATE "default"' if hop.may_clash else ""  # which one makes no difference to equality
                    link = f"{following}.{quoted_name(hop.target_column)}{by} = {alias}.{quoted_name(hop.column)}{by}"
                    source = f"{source} JOIN {_rows_of(hop)}{qualified(hop.target)} AS {following} ON {link}"
                    alias = following
                own = f"{alias}.{quoted_name(path.column)}"
                read = stored(path.type, own, is_recast=path.is_recast)
                names[unit] = canonical(path.type, read, is_stored=True)
                return From(source, names, (f"{own} IS NOT NULL",) if path.nullable else ())
        return From(source, names)

    def _values(self, script: k.Values, used: frozenset[int]) -> From:
        """Constants, in an order of their own: equal rows have equal texts."""
        places = [place for place, (number, _) in enumerate(script.columns) if number in used] or [0]
        rows = sorted(f"({', '.join(_constant(row[place]) for place in places)})" for row in script.rows)
        nothing = ", ".join(_constant(Constant(script.columns[place][1], None)) for place in places)
        source = f"VALUES {', '.join(rows)}" if rows else f"SELECT {nothing} WHERE FALSE"
        alias, called = self._alias(), [self._called(script.columns[place][0]) for place in places]
        names = {script.columns[place][0]: f"{alias}.{name}" for place, name in zip(places, called, strict=True)}
        return From(f"({source}) AS {alias}({', '.join(called)})", names)

    def _project(self, relation: Relation, columns: tuple[tuple[int, Expression], ...], used: frozenset[int]) -> From:
        """Computed columns stand in a sub-select of their own, so that each is written once."""
        computed = [(number, value) for number, value in columns if number in used]
        read = ids_in(*(value for _, value in computed))
        inner = self.render(relation.parts[0], (used - dict(columns).keys()) | read)
        if not computed:
            return inner
        return self._extended(inner, [(number, typed_sql(value, inner.names)) for number, value in computed], used)

    def _extended(self, inner: From, computed: list[tuple[int, str]], used: frozenset[int]) -> From:
        """The same rows with more columns, in a sub-select of their own."""
        columns = [(number, inner.names[number]) for number in inner.names if number in used] + computed
        items = ", ".join(f"{sql} AS {self._called(number)}" for number, sql in columns)
        return self._sub_select(f"SELECT {items} {inner.clause()}", [number for number, _ in columns])

    def _sub_select(self, sql: str, numbers: Iterable[int]) -> From:
        alias = self._alias()
        return From(f"({sql}) AS {alias}", {number: f"{alias}.{self._called(number)}" for number in numbers})

    def _closed(self, inner: From, used: frozenset[int]) -> From:
        """The same rows as one item of FROM that may be extended with NULLs."""
        if not inner.where and " JOIN " not in inner.source:
            return inner
        return self._extended(inner, [], used)

    def _join(self, relation: Relation, script: k.Join, used: frozenset[int]) -> From:
        """The units are compared here, whatever else is asked, unless they are linked."""
        left, right = relation.parts
        tied = _tied(script.equal, left, right)
        needed = used | ids_in(script.condition) | {number for pair in tied for number in pair}
        if script.kind == "full":
            needed |= _units(left, right)
        one, two = self.render(left, needed), self.render(right, needed)
        if script.kind in ("right", "full"):
            one = self._closed(one, needed)
        if script.kind in ("left", "full") or " JOIN " in two.source:
            two = self._closed(two, needed)
        names = {**one.names, **two.names}
        on = _conditions(tied, script.condition, names)
        where = (*one.where, *two.where)
        if script.kind == "inner" and not on:
            return From(f"{one.source} CROSS JOIN {two.source}", names, where)
        kind, condition = script.kind.upper(), " AND ".join(on) or "TRUE"
        made = From(f"{one.source} {kind} JOIN {two.source} ON {condition}", names, where)
        if script.kind != "full" or script.unit is None:
            return made
        either = ", ".join(names[number] for number in sorted(_units(left, right)))
        sql = canonical(relation.types[script.unit], f"coalesce({either})")
        return self._extended(made, [(script.unit, sql)], used)

    def _semi(self, relation: Relation, script: k.Semi, used: frozenset[int]) -> From:
        source, other = relation.parts
        if script.mark is not None and script.mark not in used:
            return self.render(source, used)
        tied = _tied(script.equal, source, other)
        ids = ids_in(script.condition) | {number for pair in tied for number in pair}
        outer = self.render(source, (used - {script.mark}) | (ids & source.types.keys()))
        inner = self.render(other, ids & other.types.keys())
        test = self._meeting(inner, outer, tied, script.condition)
        exists = f"{'NOT EXISTS' if script.negated else 'EXISTS'} (SELECT {test.clause()})"
        if script.mark is None:
            return From(outer.source, outer.names, (*outer.where, exists))
        return self._extended(outer, [(script.mark, exists)], used)

    def _meeting(self, inner: From, outer: From, tied: tuple[tuple[int, int], ...], condition: Expression) -> From:
        """The inner rows that a row of the outer ones meets."""
        on = _conditions(tied, condition, {**inner.names, **outer.names})
        return From(inner.source, inner.names, (*inner.where, *on))

    def _per_unit(self, relation: Relation, script: k.PerUnit, used: frozenset[int]) -> From:
        """Always grouped by the unit and the keys."""
        source = relation.parts[0]
        unit = _unit_of(source)
        calls = [(number, call) for number, call in script.calls if number in used]
        below = {unit} | ids_in(*(expression for _, expression in script.keys))
        below |= ids_in(*(argument for _, call in calls for argument in call.arguments))
        inner = self.render(source, frozenset(below))
        groups = {unit: inner.names[unit]}
        for number, expression in script.keys:
            if number != unit:
                groups[number] = _canonical(source, expression, inner.names)
        items = [f"{sql} AS {self._called(number)}" for number, sql in groups.items()]
        items += [f"{_call(source, call, inner.names)} AS {self._called(number)}" for number, call in calls]
        by = ", ".join(str(place + 1) for place in range(len(groups)))
        sql = f"SELECT {', '.join(items)} {inner.clause()} GROUP BY {by}"
        return self._sub_select(sql, [*groups, *(number for number, _ in calls)])

    def _correlated(self, relation: Relation, script: k.Correlated, used: frozenset[int]) -> From:
        """Each aggregate by itself, as a subquery over the unit's rows that the row around it meets."""
        source, other = relation.parts
        calls = [(number, call) for number, call in script.calls if number in used]
        made = {number for number, _ in script.calls}
        if not calls:
            return self.render(source, used - made)
        tied = _tied(script.equal, source, other)
        ids = ids_in(script.condition) | {number for pair in tied for number in pair}
        outer = self.render(source, (used - made) | (ids & source.types.keys()))
        columns = []
        for number, call in calls:
            inner = self.render(other, (ids & other.types.keys()) | ids_in(*call.arguments))
            rows = self._meeting(inner, outer, tied, script.condition)
            columns.append((number, f"(SELECT {_call(other, call, inner.names)} {rows.clause()})"))
        return self._extended(outer, columns, used)

    def _window(self, relation: Relation, script: k.Window, used: frozenset[int]) -> From:
        """Always partitioned by the unit. The last word on order have all columns that are used beside the window."""
        source = relation.parts[0]
        unit = _unit_of(source)
        calls = [call for call in script.calls if call[0] in used]
        made = {number for number, _, _ in script.calls}
        if not calls:
            return self.render(source, used - made)
        held = [argument for _, call, _ in calls for argument in call.arguments]
        held += [*script.partition, *(key.expression for key in script.order)]
        tells = any(_tells_equals_apart(call, frame) for _, call, frame in calls)
        key = source.known.identity or frozenset[int]() if tells else frozenset[int]()
        below = ((used - made) & source.types.keys()) | {unit} | key | ids_in(*held)
        inner = self.render(source, below)
        last = [*sorted(key - {unit}), *sorted(below - key - {unit})]  # a key decides; without one all that is used
        ties = [_last(source, number, inner.names[number], is_run=self._is_run) for number in last if tells]
        partition = [inner.names[unit], *(_canonical(source, each, inner.names) for each in script.partition)]
        order = [_sorted_by(key, inner.names) for key in script.order]
        columns = []
        for number, call, frame in calls:
            decided = [*order, *filter(None, ties)] if _tells_equals_apart(call, frame) else order
            over = f" OVER ({_over(partition, decided, frame)})"
            columns.append((number, _call(source, call, inner.names, over)))
        return self._extended(inner, columns, used)

    def _union_all(self, relation: Relation, script: k.UnionAll, used: frozenset[int]) -> From:
        unit = None if relation.unit is None else relation.unit.column
        columns = [column for column in script.columns if column[0] in used or column[0] == unit] or [script.columns[0]]
        parts = []
        for place, branch in enumerate(relation.parts):
            inner = self.render(branch, frozenset(taken[place] for _, _, taken in columns))
            items = []
            for number, kind, taken in columns:
                sql = in_one_type(kind.plain() if number == unit else kind, inner.names[taken[place]])  # no unit is cut
                items.append(f"{canonical(kind, sql) if number == unit else sql} AS {self._called(number)}")
            parts.append(f"SELECT {', '.join(items)} {inner.clause()}")
        return self._sub_select(" UNION ALL ".join(parts), [number for number, _, _ in columns])


def _rows_of(table: GroundTable | Hop) -> str:
    """Without rows of children, where keys were proved of a table that had none."""
    return "ONLY " if table.is_plain else ""


def _units(*relations: Relation) -> frozenset[int]:
    units = (relation.unit for relation in relations)
    return frozenset(unit.column for unit in units if unit is not None and unit.column is not None)


def _unit_of(relation: Relation) -> int:
    (unit,) = _units(relation)
    return unit


def _tied(equal: tuple[tuple[int, int], ...], one: Relation, two: Relation) -> tuple[tuple[int, int], ...]:
    """The columns that are compared: those of the script, and the units where nothing links them."""
    if one.unit is None or two.unit is None or are_linked(equal, one, two):
        return equal
    return ((_unit_of(one), _unit_of(two)), *equal)


def _conditions(tied: tuple[tuple[int, int], ...], condition: Expression, names: Mapping[int, str]) -> tuple[str, ...]:
    equalities = tuple(f"({names[left]} = {names[right]})" for left, right in tied)
    return equalities if is_true(condition) else (*equalities, expression_sql(condition, names))


def _canonical(source: Relation, expression: Expression, names: Mapping[int, str]) -> str:
    return canonical(expression.type, typed_sql(expression, names), is_stored=is_stored(source, expression))


def _call(source: Relation, call: k.Call, names: Mapping[int, str], over: str = "") -> str:
    sql = call_sql(call, names, partial(is_stored, source), over)
    return sql if call.type.kind == "other" else typed(call.type, sql)  # of a column, or of what is not too long


def _tells_equals_apart(call: k.Call, frame: str) -> bool:
    """Return whether a function sees rows that its ORDER BY leaves equal one after the other."""
    calls = check_template(call.sql, is_call=True)
    return frame.startswith("ROWS") or bool(calls & ORDINAL) or not calls & (AGGREGATES | RANKS)


def _last(source: Relation, number: int, name: str, *, is_run: bool) -> str:
    column, is_decided = Column(number, source.types[number]), not is_run or source.known.identity is not None
    return last_order(column.type, name, is_stored=is_stored(source, column), is_decided=is_decided)


def _over(partition: list[str], order: list[str], frame: str) -> str:
    if frame and _FRAME.fullmatch(frame) is None:
        raise Mismatch("the plan has an invalid window frame")
    by = f" ORDER BY {', '.join(dict.fromkeys(order))}" if order else ""
    return f"PARTITION BY {', '.join(dict.fromkeys(partition))}{by}{frame and f' {frame}'}"


def _sorted_by(key: k.SortKey, names: Mapping[int, str]) -> str:
    nulls = {None: "", True: " NULLS FIRST", False: " NULLS LAST"}[key.nulls_first]
    sql = (typed_sql if key.expression.type.kind == "text" else expression_sql)(key.expression, names)  # not too long
    return f"{sql}{' DESC' if key.descending else ''}{nulls}"


def _constant(constant: Constant) -> str:
    sql = constant_sql(constant)
    return typed(constant.type, sql) if constant.type.kind == "enum" else sql
