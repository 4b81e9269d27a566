"""Tell what an analyst may do with each column, by the rules and the catalog: the planner's own passes are asked."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import count
from typing import Literal

from rules import catalog as real
from rules.aggregates.recipes import split
from rules.algebra.nodes import Facts, Node
from rules.algebra.unit_facts import tells_unit
from rules.bind.expression import Binding
from rules.bind.from_clause import names_leaf
from rules.bind.scope import PlannerContext, single
from rules.bind.state import BoundSource
from rules.bind.table import scan
from rules.catalog import Catalog, Table
from rules.frozen import frozen, replace
from rules.functions.function import Needed
from rules.functions.guard import as_value
from rules.mechanisms.noised_outputs import Text
from rules.planner.find_blocks import GroupKey, find_blocks
from rules.planner.list_groups import list_parts
from rules.planner.passes.inline_sources import count_over
from rules.planner.select_partitions import listing_of, with_keys
from rules.policy.model import Policy, TableRules
from rules.refusal import Refusal
from rules.sql import syntax as s
from rules.sql.lower import query_from
from rules.sql.selects import query_of
from rules.values import domain
from rules.values.domain import Anything, Values
from rules.values.expression import Column, Expression
from rules.values.types import type_of
from rules.values.value import text_of

Source = Literal["rules", "catalog"]


@frozen
class Bounds:
    """The bounds of values, be they enforced or proved."""

    lower: Text = None
    upper: Text = None
    values: tuple[str, ...] | None = None
    source: Source | None = None


@frozen
class RowsOfUnit:
    """The number of rows of a unit that are counted."""

    most: int | None = None  # None: it is chosen for each question
    source: Source | Literal["choice"] | None = None


@frozen
class ColumnFacts:
    table: Table
    column: real.Column
    is_public: bool
    is_unit: bool = False
    bounds: Bounds = Bounds()
    can_be_summed: bool = False
    groups: Literal["known", "found"] | None = None  # None: it cannot be grouped
    rows: RowsOfUnit = RowsOfUnit()


def column_facts(policy: Policy, catalog: Catalog) -> Iterator[ColumnFacts]:
    """All columns that analysts can see, in the order of schema, table and column."""
    context = PlannerContext(policy, catalog)
    for table in sorted(catalog.tables, key=lambda table: table.name):
        rules = policy.find_table(table.name)
        if rules is not None:
            shown = [column for column in table.columns if not rules.hides(column)]
            if rules.view:
                yield from _viewed(table, shown, context)
            else:
                yield from _public(table, shown) if rules.public else _protected(table, shown, rules, context)


def _public(table: Table, columns: Sequence[real.Column]) -> Iterator[ColumnFacts]:
    for column in columns:
        yield ColumnFacts(table, column, is_public=True, can_be_summed=type_of(column).is_number, groups="known")


def _protected(
    table: Table, columns: Sequence[real.Column], rules: TableRules, context: PlannerContext
) -> Iterator[ColumnFacts]:  # fmt: skip
    numbers = count(1)
    try:
        node, names = scan(table, rules, context.policy, context.catalog, lambda: next(numbers))
    except Refusal:  # every statement that reads it is refused
        yield from (ColumnFacts(table, column, is_public=False) for column in columns)
        return
    source = BoundSource(node, single(table.name.name, names))
    for column in columns:
        plain = ColumnFacts(table, column, is_public=False, is_unit=_is_unit(column, rules), rows=_rows(node))
        yield _with_uses(plain, source, context)


def _viewed(view: Table, columns: Sequence[real.Column], context: PlannerContext) -> Iterator[ColumnFacts]:
    """A view is asked like the rows that it gives; one that gives answers has columns as free as they are."""
    plain = [ColumnFacts(view, column, is_public=False) for column in columns]
    try:
        query = query_of(count_over(view, context.policy, context.catalog))
        assert query is not None
        sites = find_blocks(query_from(query), context)
    except Refusal:  # every statement that reads it is refused
        sites = ()
    source = next((site.source for site in sites if site.select_index == 0), None)
    for column_facts in plain:
        yield (
            column_facts
            if source is None
            else _with_uses(replace(column_facts, rows=_rows(source.node)), source, context)
        )


def _with_uses(plain: ColumnFacts, source: BoundSource, context: PlannerContext) -> ColumnFacts:
    """Return what the column may be used for."""
    name, facts = s.Name((plain.column.name,)), source.node.facts
    binding = Binding(
        names_leaf(source.scope, {column.id: column for column in facts.columns}), context, context.setting
    )
    own = binding.bind(name)
    assert isinstance(own, Column)
    can_be_summed, key = _can_be_summed(name, binding, facts), _key(own, name, source, context)
    bounds = _bounds(own, as_value(own, binding.setting), is_useful=can_be_summed)
    if key is not None and isinstance(key.domain, Values):
        bounds = replace(bounds, values=_texts(key.domain, own), source=_source(own))
    return replace(plain, bounds=bounds, can_be_summed=can_be_summed, groups=_groups(key, source.node, context))


def _is_unit(column: real.Column, rules: TableRules) -> bool:
    step = None if rules.unit is None else rules.unit_step()
    return step is not None and step.target is None and step.column == column.name


def _can_be_summed(name: s.Name, binding: Binding, facts: Facts) -> bool:
    try:
        split(s.Call("sum", (name,)), binding, facts, (facts.rows.cap or 1) * binding.context.policy.group_size)
    except Refusal:
        return False
    return True


def _key(own: Column, name: s.Name, source: BoundSource, context: PlannerContext) -> Expression | None:
    """The column as a key; None where it cannot be one."""
    if tells_unit(source.node.facts, (own,)):
        return None
    try:
        (key,) = with_keys(source, (GroupKey(name, item=0),), context).keys
    except Refusal:
        return None
    return key


def _groups(key: Expression | None, node: Node, context: PlannerContext) -> Literal["known", "found"] | None:
    if key is None:
        return None
    try:
        parts = list_parts((key,), node, context)
    except Needed:  # public rows list it
        return "known"
    limit = context.policy.groups_limit
    return "found" if parts is None or listing_of((key,), parts, limit) is None else "known"


def _bounds(own: Column, value: Expression, *, is_useful: bool) -> Bounds:
    """Bounds that nothing but the width of a wide type gives are none."""
    image, source = domain.range_of(value.domain), _source(own)
    if not image.is_bounded or not (is_useful or source == "rules"):
        return Bounds()
    return Bounds(_text(image.low, own), _text(image.high, own), source=source)


def _source(own: Column) -> Source:
    return "catalog" if isinstance(own.declared, Anything) else "rules"


def _texts(listed: Values, own: Column) -> tuple[str, ...]:
    return tuple(text for item in listed.items if (text := text_of(item, own.type)) is not None)


def _text(bound: Fraction | None, own: Column) -> Text:
    return None if bound is None else text_of(bound, own.type)


def _rows(node: Node) -> RowsOfUnit:
    proved, cap = node.facts.rows.proved, node.facts.rows.cap
    if cap is None:
        return RowsOfUnit(None, "choice")
    is_proved = proved is not None and proved <= cap
    return RowsOfUnit(proved if is_proved else cap, "catalog" if is_proved else "rules")
