"""A table as a relation: what the catalog proves of its rows, what the rules declare, and whose rows they are.

PostgreSQL computes stored generated columns from their row, so their bounds follow from those of its columns.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from fractions import Fraction
from functools import lru_cache
from itertools import islice
from math import ceil, floor

from rules.algebra.cover import cover_of
from rules.algebra.nodes import Facts, Node, Rows, Scan, Step, Unit, scans_in
from rules.bind.declared_columns import column_of, type_domain
from rules.bind.expression import Binding
from rules.bind.inner_answers import InnerQuery, PublicColumn
from rules.bind.scope import Names, PlannerContext
from rules.bind.walk_syntax import parts
from rules.catalog import Catalog, Table
from rules.frozen import frozen, replace
from rules.functions.function import Needed
from rules.kernel.ground import follow
from rules.policy.model import Policy, TableRules, UnitStep
from rules.refusal import NotAllowed, Refusal
from rules.sql import syntax as s
from rules.sql.lower import parse_expression
from rules.values import domain
from rules.values.domain import ANYTHING, Range
from rules.values.expression import Column, Expression, Operand, columns_in
from rules.values.types import TEXT
from rules.values.value import find_value

Fresh = Callable[[], int]


@frozen
class _Known:
    """A scan from some number on, with what it was made of: nothing else has the identity of that."""

    origin: tuple[Table, TableRules, Policy, Catalog]
    taken: int  # numbers
    scan: Scan
    names: Names


_MOST_KNOWN = 1000
_KNOWN: dict[tuple[int, ...], _Known] = {}


def scan(table: Table, rules: TableRules, policy: Policy, catalog: Catalog, fresh: Fresh) -> tuple[Scan, Names]:
    """The rows of a table that the rules name, and the columns that exist for analysts.

    `fresh` gives numbers in a row. Statements number their first tables alike, and so these are kept.
    """
    origin, first = (table, rules, policy, catalog), fresh()
    key = (*map(id, origin), first)
    known = _KNOWN.get(key)
    if known is not None:
        for _ in range(known.taken - 1):
            fresh()
        return known.scan, known.names
    taken: list[int] = []

    def take() -> int:
        taken.append(fresh() if taken else first)
        return taken[-1]

    made, names = _scan(*origin, take)
    if len(_KNOWN) >= _MOST_KNOWN or any(one.origin[3] is not catalog for one in islice(_KNOWN.values(), 1)):
        _KNOWN.clear()  # an earlier catalog may be large, and is not asked about again
    _KNOWN[key] = _Known(origin, len(taken), made, names)
    return made, names


def _scan(table: Table, rules: TableRules, policy: Policy, catalog: Catalog, fresh: Fresh) -> tuple[Scan, Names]:
    _check_foreign(table, rules)
    _check_view(table, rules)
    stored = [column for column in table.columns if not column.unreadable]
    columns = tuple(column_of(column, table, rules, fresh()) for column in stored)
    own = zip(columns, stored, strict=True)
    shown = tuple((column.name, column.id) for column, real_one in own if not rules.hides(real_one))
    numbers = tuple((column.id, column.name) for column in columns)
    keys = frozenset(
        frozenset(column.id for column in columns if column.name in key.columns)
        for key in table.keys
        if key.proves and not table.has_children
    )
    facts = Facts(columns=columns, keys=keys)
    if rules.public:
        return Scan(table.name, numbers, (), facts), shown
    if policy.unit == "row":
        return _rows_as_units(table, numbers, facts, fresh), shown
    return _with_unit(table, rules, policy, catalog, numbers, facts, fresh), shown


def _check_foreign(table: Table, rules: TableRules) -> None:
    """A row that its server cannot send fails the statement, and which rows are asked for can depend on other rows."""
    if table.foreign and rules.foreign is None:
        message = f'table "{table.name}" has rows on a foreign server, where reading a row can fail'
        raise NotAllowed(message, hint="Ask your DBA to set foreign: trusted in the rules file.")


def _check_view(table: Table, rules: TableRules) -> None:
    """Refuse a public view beside protected rows: it may fail on a row, or compute other rows by them."""
    if rules.public and table.kind in ("view", "materialized view"):
        message = f'the public view "{table.name}" cannot be read together with protected tables'
        raise NotAllowed(message, hint="Read it alone, or ask for the table below it.")


def _rows_as_units(table: Table, numbers: tuple[tuple[int, str], ...], facts: Facts, fresh: Fresh) -> Scan:
    """Every row is its own unit; its primary key is its identity, as one text where it has several columns."""
    primary = next((key for key in table.keys if key.primary and key.proves), None)
    ids = {name: number for number, name in numbers}
    every, own, columns = frozenset(ids.values()), facts.columns, () if primary is None else primary.columns
    if table.has_children or any(facts.column(ids[name]).type.kind == "other" for name in columns):
        columns = ()
    identity = ids[columns[0]] if len(columns) == 1 else None
    if len(columns) > 1:
        identity = fresh()
        own, numbers = (*own, Column(identity, TEXT, nullable=False)), (*numbers, (identity, ""))
    unit = Unit(str(table.name), identity)
    keys = facts.keys if identity is None else facts.keys | {frozenset([identity])}
    made = replace(facts, columns=own, keys=keys, unit=unit, rows=Rows(1, 1), determined=every, determinants=keys)
    return Scan(table.name, numbers, (), made)


def _with_unit(
    table: Table, rules: TableRules, policy: Policy, catalog: Catalog, numbers: tuple[tuple[int, str], ...],
    facts: Facts, fresh: Fresh,
) -> Scan:  # fmt: skip
    if rules.unit is None or table.kind not in ("table", "partitioned", "foreign table"):
        raise NotAllowed(f'the rules file names no unit for table "{table.name}"')
    step = rules.unit_step()
    path = follow(table, step, policy, catalog)
    proved = 1 if path.is_unique else None
    first = next(column for column in facts.columns if column.name == step.column)
    unit, columns = first.id, facts.columns
    if path.hops:
        unit = fresh()
        columns = (*columns, Column(unit, path.type, nullable=False))
    columns = tuple(replace(column, nullable=False) if column.id in (unit, first.id) else column for column in columns)
    cap = rules.rows_per_unit if rules.rows_per_unit is not None else proved
    every = frozenset(column.id for column in columns)
    made = replace(
        facts,
        columns=columns,
        unit=Unit(policy.unit, unit),
        rows=Rows(proved, cap),
        determined=every if path.is_unique else frozenset([unit]),
        determinants=frozenset([frozenset([unit]), frozenset([first.id])]) | facts.keys,
        steps=_first_step(step, first, policy),
        anchors=_anchors(table, facts, cap),
        refers=_refers(table, facts),
    )
    names = (*numbers, (unit, "")) if path.hops else numbers
    return Scan(table.name, names, tuple(hop.target for hop in path.hops), made, path.nullable)


def _first_step(step: UnitStep, column: Column, policy: Policy) -> tuple[Step, ...]:
    if step.target is None:
        return ()
    rules = policy.find_table(step.target)
    return (Step(column.id, step.target, step.target_column, None if rules is None else rules.rows_per_unit),)


def _anchors(table: Table, facts: Facts, rows: int | None) -> tuple[Step, ...]:
    return tuple(
        Step(column.id, table.name, column.name, rows) for column in facts.columns if table.is_unique((column.name,))
    )


def _refers(table: Table, facts: Facts) -> tuple[Step, ...]:
    numbers = {column.name: column.id for column in facts.columns}
    return tuple(
        Step(numbers[key.columns[0]], key.target, key.target_columns[0])
        for key in table.foreign_keys
        if len(key.columns) == 1 and key.columns[0] in numbers
    )


def with_public_bounds(node: Scan, context: PlannerContext) -> Scan:
    """A public table whose columns lie between the ends that were asked for this statement."""
    known = {
        column: tuple(row)
        for released in context.released
        if released.inner.use == "bounds"
        for column, row in zip(released.inner.columns, released.rows, strict=False)
    }
    if node.facts.unit is not None or not known:
        return node
    names = dict(node.names)
    bounds = (known.get(_public(node, column, names)) for column in node.facts.columns)
    columns = tuple(
        column if ends is None else _bounded(column, ends)
        for column, ends in zip(node.facts.columns, bounds, strict=True)
    )
    return replace(node, facts=replace(node.facts, columns=columns))


def demand_bounds(node: Node, summed: Callable[[], Iterable[Expression]], context: PlannerContext) -> None:
    """Ask for the ends of the public columns that are read by what is summed, if they were not asked for yet."""
    if all(scan.facts.unit is not None for scan in scans_in(node)):
        return  # no table is public
    known = {column for released in context.released for column in released.inner.columns}
    computed = cover_of(node).computed
    read = {column.id for expression in summed() for column in _read(expression, computed)}
    if wanted := tuple(dict.fromkeys(column for column in _public_columns(node, read) if column not in known)):
        tables = context.read_there(column.table for column in wanted)
        raise Needed(InnerQuery(use="bounds", columns=wanted, tables=tables))


def _public_columns(node: Node, numbers: AbstractSet[int]) -> Iterator[PublicColumn]:
    """Yield those of these columns that are numbers and moments of public tables."""
    for scan in scans_in(node):
        names = dict(scan.names) if scan.facts.unit is None else {}
        for column in scan.facts.columns if names else ():
            if column.id in numbers and column.id in names and (column.type.is_number or column.type.is_time):
                yield _public(scan, column, names)


def _public(scan: Scan, column: Column, names: Mapping[int, str]) -> PublicColumn:
    return PublicColumn(scan.table, names[column.id], column.type.plain().sql)


def _read(expression: Expression, computed: Mapping[int, Expression]) -> Iterator[Column]:
    for column in columns_in(expression):
        yield column
        if column.id in computed and computed[column.id] != column:
            yield from _read(computed[column.id], computed)


def _bounded(column: Column, ends: tuple[str | None, ...]) -> Column:
    """The column between its ends; as it was where these are no numbers, as of an empty table."""
    low, high = (None if end is None else find_value(end, column.type.plain()) for end in ends)
    if not isinstance(low, Fraction) or not isinstance(high, Fraction):
        return column
    return replace(column, domain=domain.intersect(column.domain, Range(low, high)))


def with_generated_bounds(node: Scan, table: Table, context: PlannerContext) -> Scan:
    """Declare bounds of generated columns to which the rules give none: a clamp makes them true, as declared ones."""
    definitions = {
        column.name: column.default
        for column in table.columns
        if column.generated == "s" and column.default is not None
    }
    if not definitions or table.has_children:
        return node
    columns = {column.name: column for column in node.facts.columns if column.name}

    def leaf(expression: s.Expression) -> Operand | None:
        return columns.get(expression.parts[-1]) if isinstance(expression, s.Name) else None

    reading = Binding(leaf, context, context.setting)
    made = tuple(
        _with_bounds_of_row(column, definitions.get(column.name), reading, columns) for column in node.facts.columns
    )
    return replace(node, facts=replace(node.facts, columns=made))


def _with_bounds_of_row(
    column: Column, definition: str | None, reading: Binding, columns: Mapping[str, Column]
) -> Column:
    """Bounds of a type alone are none: a sum within them would be paid for and worth nothing."""
    written = None if definition is None or column.declared != ANYTHING else _read_definition(definition)
    if written is None or not column.type.is_number:
        return column
    named = (part.parts[-1] for part in parts(written) if isinstance(part, s.Name))
    if any(name not in columns or not _has_bounds(columns[name]) for name in named):
        return column
    try:
        image = domain.range_of(reading.bind(written).domain)
    except Refusal:
        return column
    if image.low is None or image.high is None:
        return column
    scale = column.type.scale
    if scale is None:
        return replace(column, declared=Range(image.low, image.high))
    power = Fraction(10) ** scale  # what is stored is rounded to it
    return replace(column, declared=Range(floor(image.low * power) / power, ceil(image.high * power) / power))


def _has_bounds(column: Column) -> bool:
    """Return whether the rules or a CHECK say more than the column's type does."""
    return domain.range_of(column.declared).is_bounded or column.domain != type_domain(column.type)


@lru_cache(maxsize=1000)
def _read_definition(definition: str) -> s.Expression | None:
    """Return what pg_get_expr says; None where the planner has no words for it."""
    try:
        return parse_expression(definition)
    except Refusal:
        return None
