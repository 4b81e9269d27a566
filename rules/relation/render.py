"""A relation as SQL of our own: tables fully qualified, columns quoted, nothing of the analyst's text.

Runs with an empty search_path, where PostgreSQL finds functions, operators and types in pg_catalog alone. Columns are
called c1, c2 …; only those that are used are read.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rules.catalog import TableName
from rules.refusal import TooComplex
from rules.relation.expression import TRUE, Apply, Column, Constant, Expression, ids_in, null_of
from rules.relation.nodes import (
    Aggregate,
    Filter,
    Gathered,
    Given,
    Join,
    Node,
    Order,
    PerUnit,
    Project,
    Scan,
    SemiJoin,
    Union,
    Window,
    WindowCall,
    Windowed,
)
from rules.relation.order_of_conditions import computes_too_early, must_wait
from rules.relation.ties import identity_sql, one_of_equals, tie_breakers

LONGEST = 200_000  # characters of one inner statement; guards repeat what they guard


@dataclass(frozen=True, slots=True)
class From:
    """What stands behind FROM and WHERE, and what every used column is called there."""

    source: str
    names: Mapping[int, str]
    where: tuple[str, ...] = ()

    def clause(self) -> str:
        """FROM … WHERE …"""
        tail = f" WHERE {' AND '.join(self.where)}" if self.where else ""
        return f"FROM {self.source}{tail}"


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def qualified(table: TableName) -> str:
    return f"{quoted(table.schema)}.{quoted(table.name)}"


def text_constant(text: str) -> str:
    """A string constant, which standard_conforming_strings reads as it is written."""
    return "'" + text.replace("'", "''") + "'"


def constant_sql(given: Constant) -> str:
    """A typed constant. Whole numbers of type integer and booleans need no cast; a character(n) is read as text."""
    if given.text is None:
        return f"NULL::{given.type.sql}" if given.type.base != "unknown" else "NULL"
    if given.type.kind == "boolean":
        return given.text.upper()
    if given.type.base == "bpchar":
        return f"{text_constant(given.text.rstrip(' '))}::text"
    if given.type.base == "int4":
        return given.text if not given.text.startswith("-") else f"({given.text})"
    return f"{text_constant(given.text)}::{given.type.sql}"


def expression_sql(given: Expression, names: Mapping[int, str]) -> str:
    """An expression with its columns called by these names."""
    match given:
        case Column(id=number):
            return names[number]
        case Constant():
            return constant_sql(given)
        case Apply(sql=template, arguments=arguments):
            found = template.format(*(expression_sql(each, names) for each in arguments))
            if len(found) > LONGEST:
                raise TooComplex("an expression over protected rows is nested too deeply")
            return found


def aggregate_sql(given: Aggregate, names: Mapping[int, str], over: str = "") -> str:
    return given.sql.format(*(expression_sql(each, names) for each in given.arguments), over=over)


class Renderer:
    """Renders one inner statement. Sub-selects and columns are numbered as they come: equal trees have equal texts."""

    def __init__(self) -> None:
        self._aliases = 0
        self._columns: dict[int, str] = {}

    def render(self, node: Node, used: frozenset[int]) -> From:
        """The rows of a node with at least the columns that are used."""
        match node:
            case Scan():
                return self._scan(node, used)
            case Given():
                return self._given(node, used)
            case Filter(source=source, condition=condition):
                inner = self._in_order(source, condition, used | ids_in(condition))
                return From(inner.source, inner.names, (*inner.where, expression_sql(condition, inner.names)))
            case Project():
                return self._project(node, used)
            case Join():
                return self._join(node, used)
            case SemiJoin():
                return self._semi_join(node, used)
            case Gathered():
                return self._gathered(node, used)
            case PerUnit():
                return self._per_unit(node, used)
            case Windowed():
                return self._windowed(node, used)
            case Union():
                return self._union(node, used)

    def alias(self) -> str:
        self._aliases += 1
        return f"t{self._aliases}"

    def _called(self, number: int) -> str:
        return self._columns.setdefault(number, f"c{len(self._columns) + 1}")

    def _scan(self, node: Scan, used: frozenset[int]) -> From:
        alias = self.alias()
        source = f"{qualified(node.table)} AS {alias}"
        names = {number: f"{alias}.{quoted(name)}" for number, name in node.names if name}
        unit = node.facts.unit
        if unit is not None and unit.column in used and node.identity:
            names[unit.column] = _identity(f"{alias}.{quoted(name)}" for name in node.identity)
        if unit is None or unit.column is None or not node.unit_column:
            return From(source, _read(node, names))
        if not node.hops:
            own = names[unit.column]
            return From(source, _read(node, names), (f"{own} IS NOT NULL",) if node.drops_null_units else ())
        if unit.column not in used:
            return From(source, _read(node, names))
        for hop in node.hops:
            following = self.alias()
            link = f"{following}.{quoted(hop.target_column)} = {alias}.{quoted(hop.column)}"
            source = f"{source} JOIN {qualified(hop.target)} AS {following} ON {link}"
            alias = following
        names[unit.column] = f"{alias}.{quoted(node.unit_column)}"
        dropped = (f"{names[unit.column]} IS NOT NULL",) if node.drops_null_units else ()
        return From(source, _read(node, names), dropped)

    def _given(self, node: Given, used: frozenset[int]) -> From:
        """Constants, in an order of their own: equal rows have equal texts."""
        places = [place for place, column in enumerate(node.facts.columns) if column.id in used] or [0]
        columns = [node.facts.columns[place] for place in places]
        rows = sorted(f"({', '.join(constant_sql(row[place]) for place in places)})" for row in node.rows)
        nothing = ", ".join(constant_sql(null_of(column.type)) for column in columns)
        source = f"VALUES {', '.join(rows)}" if rows else f"SELECT {nothing} WHERE FALSE"
        alias, called = self.alias(), [self._called(column.id) for column in columns]
        names = {column.id: f"{alias}.{name}" for column, name in zip(columns, called, strict=True)}
        return From(f"({source}) AS {alias}({', '.join(called)})", names)

    def _project(self, node: Project, used: frozenset[int]) -> From:
        """Computed columns stand in a sub-select of their own, so that each is written once."""
        computed = [(number, each) for number, each in node.computed if number in used]
        below = used | ids_in(*(each for _, each in computed))
        inner = self.render(node.source, below)
        if not computed:
            return inner
        return self._extended(inner, [(number, expression_sql(each, inner.names)) for number, each in computed], used)

    def _extended(self, inner: From, computed: list[tuple[int, str]], used: frozenset[int]) -> From:
        """The same rows with more columns, in a sub-select of their own."""
        columns = [(number, inner.names[number]) for number in inner.names if number in used] + computed
        items = ", ".join(f"{sql} AS {self._called(number)}" for number, sql in columns)
        return self._sub_select(f"SELECT {items} {inner.clause()}", [number for number, _ in columns])

    def _sub_select(self, sql: str, numbers: Iterable[int]) -> From:
        alias = self.alias()
        return From(f"({sql}) AS {alias}", {number: f"{alias}.{self._called(number)}" for number in numbers})

    def closed(self, inner: From, used: frozenset[int]) -> From:
        """The same rows as one item of FROM that may be extended with NULLs."""
        if not inner.where and " JOIN " not in inner.source:
            return inner
        kept = [number for number in inner.names if number in used]
        items = ", ".join(f"{inner.names[number]} AS {self._called(number)}" for number in kept)
        return self._sub_select(f"SELECT {items} {inner.clause()}", kept)

    def _in_order(
        self, node: Node, condition: Expression, used: frozenset[int], *, extended: bool = False
    ) -> From:  # fmt: skip
        """The rows of a node, fenced in where a condition on them may only be looked at after those inside.

        What is computed of rows that are to be extended with NULLs must wait for joins inside too.
        """
        inner = self.render(node, used)
        if not must_wait(condition, node) and not (extended and computes_too_early(node, used)):
            return inner
        kept = [number for number in inner.names if number in used]
        items = ", ".join(f"{inner.names[number]} AS {self._called(number)}" for number in kept)
        return self._sub_select(f"SELECT {items} {inner.clause()} OFFSET 0", kept)

    def _join(self, node: Join, used: frozenset[int]) -> From:
        needed = used | ids_in(node.condition)
        left = self._in_order(node.left, node.condition, needed, extended=node.kind in ("right", "full"))
        right = self._in_order(node.right, node.condition, needed, extended=node.kind in ("left", "full"))
        if node.kind in ("right", "full"):
            left = self.closed(left, needed)
        if node.kind in ("left", "full") or " JOIN " in right.source:
            right = self.closed(right, needed)
        names = {**left.names, **right.names}
        if node.kind == "inner" and node.condition == TRUE:
            return From(f"{left.source} CROSS JOIN {right.source}", names, (*left.where, *right.where))
        on = expression_sql(node.condition, names)
        return From(
            f"{left.source} {node.kind.upper()} JOIN {right.source} ON {on}", names, (*left.where, *right.where)
        )

    def _semi_join(self, node: SemiJoin, used: frozenset[int]) -> From:
        if node.mark is not None and node.mark not in used:
            return self.render(node.source, used)
        needed = used | ids_in(node.condition)
        outer = self._in_order(node.source, node.condition, needed)
        inner = self._in_order(node.other, node.condition, ids_in(node.condition))
        on = () if node.condition == TRUE else (expression_sql(node.condition, {**inner.names, **outer.names}),)
        test = From(inner.source, inner.names, (*inner.where, *on))
        exists = f"{'NOT EXISTS' if node.negated else 'EXISTS'} (SELECT {test.clause()})"
        if node.mark is None:
            return From(outer.source, outer.names, (*outer.where, exists))
        return self._extended(outer, [(node.mark, exists)], used)

    def _gathered(self, node: Gathered, used: frozenset[int]) -> From:
        """Each aggregate by itself, as a subquery that depends on the row around it."""
        aggregates = [(number, each) for number, each in node.aggregates if number in used]
        if not aggregates:
            return self.render(node.source, used)
        outer = self.render(node.source, used | ids_in(node.condition))
        columns = []
        for number, each in aggregates:
            inner = self.render(node.other, ids_in(node.condition, *each.arguments))
            on = expression_sql(node.condition, {**inner.names, **outer.names})
            rows = From(inner.source, inner.names, (*inner.where, on))
            columns.append((number, f"(SELECT {aggregate_sql(each, inner.names)} {rows.clause()})"))
        return self._extended(outer, columns, used)

    def _per_unit(self, node: PerUnit, used: frozenset[int]) -> From:
        """Always grouped by the unit and the keys, whatever they are known to tell."""
        unit = node.source.facts.unit
        assert unit is not None and unit.column is not None
        aggregates = [(number, each) for number, each in node.aggregates if number in used]
        below = {unit.column} | ids_in(*(each for _, each in node.keys))
        below |= ids_in(*(argument for _, each in aggregates for argument in each.arguments))
        inner = self.render(node.source, frozenset(below))
        groups = {unit.column: inner.names[unit.column]}
        groups.update((number, one_of_equals(each, expression_sql(each, inner.names))) for number, each in node.keys)
        items = [f"{sql} AS {self._called(number)}" for number, sql in groups.items()]
        items += [f"{aggregate_sql(each, inner.names)} AS {self._called(number)}" for number, each in aggregates]
        by = ", ".join(str(place + 1) for place in range(len(groups)))
        sql = f"SELECT {', '.join(items)} {inner.clause()} GROUP BY {by}"
        return self._sub_select(sql, [*groups, *(number for number, _ in aggregates)])

    def _windowed(self, node: Windowed, used: frozenset[int]) -> From:
        """Always partitioned by the unit, whatever the analyst's partition is known to tell."""
        unit = node.source.facts.unit
        assert unit is not None and unit.column is not None
        computed = [(number, call) for number, call in node.computed if number in used]
        if not computed:
            return self.render(node.source, used)
        held = [argument for _, call in computed for argument in call.function.arguments]
        held += [*node.window.partition, *(each.expression for each in node.window.order)]
        below = used | {unit.column} | ids_in(*held)
        ties = tie_breakers(node, below)
        inner = self.render(node.source, below | {column.id for column in ties})
        columns = []
        for number, call in computed:
            over = f" OVER ({_over(node.window, unit.column, call, ties, inner.names)})"
            columns.append((number, aggregate_sql(call.function, inner.names, over)))
        return self._extended(inner, columns, used)

    def _union(self, node: Union, used: frozenset[int]) -> From:
        places = [(place, column) for place, column in enumerate(node.facts.columns) if column.id in used]
        parts = []
        for branch, sources in zip(node.branches, node.sources, strict=True):
            inner = self.render(branch, frozenset(sources[place] for place, _ in places))
            items = ", ".join(
                f"{_united(node, column, inner.names[sources[place]])} AS {self._called(column.id)}"
                for place, column in places
            )
            parts.append(f"SELECT {items} {inner.clause()}")
        return self._sub_select(" UNION ALL ".join(parts), [column.id for _, column in places])


def _united(node: Union, column: Column, sql: str) -> str:
    """One type for both branches, and one spelling of a unit that they print with different digits."""
    cast = sql if column.type.kind == "other" or column.type.base == "bpchar" else f"{sql}::{column.type.sql}"
    unit = node.facts.unit
    return one_of_equals(column, cast) if unit is not None and column.id == unit.column else cast


def _over(window: Window, unit: int, call: WindowCall, ties: tuple[Column, ...], names: Mapping[int, str]) -> str:
    """What stands in OVER (…): the unit first, and the last word on order to columns that no two rows share."""
    partition = dict.fromkeys([names[unit], *(expression_sql(each, names) for each in window.partition)])
    order = [_ordered(each, names) for each in window.order]
    if call.is_ordinal:
        order += [identity_sql(column, names[column.id]) for column in ties]
    by = f" ORDER BY {', '.join(dict.fromkeys(order))}" if order else ""
    return f"PARTITION BY {', '.join(partition)}{by}{f' {call.frame}' if call.frame else ''}"


def _ordered(given: Order, names: Mapping[int, str]) -> str:
    nulls = {None: "", True: " NULLS FIRST", False: " NULLS LAST"}[given.nulls_first]
    return f"{expression_sql(given.expression, names)}{' DESC' if given.descending else ''}{nulls}"


def _identity(key: Iterable[str]) -> str:
    """The values of a key as one text, each told with its length, so that different ones never read the same."""
    parts = (f"char_length(({column})::text) || ':' || ({column})::text" for column in key)
    return f"({' || '.join(parts)})"


def _read(node: Scan, names: dict[int, str]) -> dict[int, str]:
    """Columns of types that do not compare as their bytes are read as text of the database's collation.

    And a unit has one spelling: 5.0 and 5.00 are one person, whose rows must not fall apart by their texts.
    """
    read = {}
    unit = None if node.facts.unit is None else node.facts.unit.column
    for number, name in names.items():
        column = node.facts.column(number)
        if number in node.collated:
            read[number] = f'({name})::text COLLATE "default"'
        elif column.type.base in ("bpchar", "name"):
            read[number] = f"({name})::text"
        else:
            read[number] = one_of_equals(column, name) if number == unit else name
    return read
