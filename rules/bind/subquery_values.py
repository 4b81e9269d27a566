"""Give each row the value of its scalar subquery: of the row that a unique key finds, or of its unit's own group.

A join by a key multiplies no rows.
"""

from dataclasses import replace
from fractions import Fraction

from rules.algebra.nodes import Aggregate, Node
from rules.algebra.same_unit import always_finds
from rules.algebra.unit_facts import find_partner, gathered, projected, tells_unit
from rules.algebra.within_unit import per_unit
from rules.bind.expression import Binding
from rules.bind.from_clause import leaf_of
from rules.bind.group_by import output_of
from rules.bind.semi_joins import Inside, as_column
from rules.bind.state import BindState, BoundSource
from rules.bind.subquery_shape import (
    calls_leaf,
    number_of,
)
from rules.bind.unit_aggregates import unit_aggregate
from rules.bind.windows import first_of_each
from rules.functions.comparison import compare
from rules.refusal import NotSupported
from rules.sql import syntax as s
from rules.values import domain
from rules.values.expression import (
    Apply,
    Column,
    Expression,
    all_of,
    ids_in,
)

FIRST_HINT = "Use an aggregate such as min(x) in the subquery, or join the tables and group by the unit column."

SEVERAL_HINT = "Compare a unique key in its WHERE clause, or select an aggregate such as min(x) or count(*)."


def value_of_row(state: BindState, source: BoundSource, inside: Inside, query: s.Select) -> tuple[Node, int]:
    """(SELECT y … WHERE key = outer): the one row that has the key, or the first one in an order."""
    rows = first_rows(state, inside, query)
    inner, number = _single_item(state, query, rows, "a subquery used as an expression must return one column")
    always = always_finds(source.node, rows.node, inside.linking, state.context.catalog)
    node = find_partner(source.node, inner, all_of(inside.linking), state.fresh(), always=always)
    if node is None:
        raise NotSupported("a subquery used as an expression could return more than one row", hint=SEVERAL_HINT)
    return node, number


def first_rows(state: BindState, inside: Inside, query: s.Select) -> BoundSource:
    """The rows of a subquery, or with LIMIT the first of those that belong to one row around it."""
    rows = inside.rows
    if query.limit is None:
        return rows
    links = [_sides(expression, rows.node) for expression in inside.linking]
    keys = tuple(link[0] for link in links if link is not None)
    if len(keys) < len(links):  # the first of those that pass a condition is another than the first of all
        raise NotSupported("a correlated subquery with LIMIT can refer to the outer query only by =", hint=FIRST_HINT)
    order = tuple(
        replace(order_item, expression=output_of(order_item.expression, query)) for order_item in query.order_by
    )
    binding, most = state.reading(leaf_of(rows)), number_of(query.limit)
    assert most is not None, "others are more than rows"
    return BoundSource(first_of_each(rows.node, keys, order, binding, state.fresh(), most), rows.scope)


def value_of_group(
    state: BindState, source: BoundSource, inside: Inside, item: s.Expression, calls: tuple[s.Call, ...]
) -> tuple[Node, int] | None:
    """(SELECT count(*) … WHERE unit = outer): exact aggregates of the unit's own rows, one group for each row."""
    grouped = with_group(state, source, inside, calls)
    return None if grouped is None else as_column(state, grouped[0], grouped[1].bind(item))


def with_group(
    state: BindState, source: BoundSource, inside: Inside, calls: tuple[s.Call, ...]
) -> tuple[Node, Binding] | None:  # fmt: skip
    """Each row with the group of its unit's rows, and how expressions of the aggregates are read."""
    inner = inside.rows.node
    links = [_sides(expression, inner) for expression in inside.linking]
    known = [link for link in links if link is not None]
    if inner.facts.unit is None or not tells_unit(inner.facts, tuple(mine for mine, _ in known)):
        return None
    binding = state.reading(leaf_of(inside.rows))
    made = tuple(unit_aggregate(call, state.fresh(), binding, inner.facts) for call in calls)
    if len(known) < len(links):
        node = gathered(source.node, inner, all_of(inside.linking), made)
        return node, state.reading(
            calls_leaf({call: numbered_call[2] for call, numbered_call in zip(calls, made, strict=True)})
        )
    return _with_known_group(state, source, inner, known, (calls, made))


def _with_known_group(
    state: BindState,
    source: BoundSource,
    inner: Node,
    known: list[tuple[Expression, Expression]],
    aggregates: tuple[tuple[s.Call, ...], tuple[tuple[int, Aggregate, Column], ...]],
) -> tuple[Node, Binding]:
    """Return where the group is told by equalities alone, all groups are made once."""
    calls, made = aggregates
    keys = tuple((mine.id if isinstance(mine, Column) else state.fresh(), mine) for mine, _ in known)
    grouped = per_unit(inner, tuple(dict(keys).items()), made)
    holding = all_of(
        tuple(
            compare("=", other, grouped.facts.column(number), state.context.setting())
            for (number, _), (_, other) in zip(keys, known, strict=True)
        )
    )
    node = find_partner(source.node, grouped, holding, state.fresh())
    if node is None:
        message = "a correlated aggregate must compare values of the same type"
        raise NotSupported(message, hint="Cast the value of the outer query to the type of the value in the subquery.")
    node, values = _fill_counts(
        state, node, {call: column.id for call, (_, _, column) in zip(calls, made, strict=True)}
    )
    return node, state.reading(calls_leaf(values))


def _fill_counts(state: BindState, node: Node, numbers: dict[s.Call, int]) -> tuple[Node, dict[s.Call, Column]]:
    """Return where a row has no group, a count is 0 and all else NULL."""
    for call, number in numbers.items():
        if call.name != "count":
            continue
        column, filled = node.facts.column(number), state.fresh()
        image = domain.union(column.domain, domain.values([Fraction(0)]))
        zero = Apply("coalesce", "coalesce({0}, 0)", (column,), column.type, image, nullable=False, strict=False)
        node = projected(node, ((filled, zero),), declared={filled: column.declared})
        numbers = numbers | {call: filled}
    return node, {call: node.facts.column(number) for call, number in numbers.items()}


def _single_item(state: BindState, query: s.Select, bound_source: BoundSource, refusal: str) -> tuple[Node, int]:
    """The one item of a subquery as a column of its rows."""
    if len(query.items) != 1 or isinstance(query.items[0].expression, s.Star):
        raise NotSupported(refusal)
    return as_column(state, bound_source.node, state.reading(leaf_of(bound_source)).bind(query.items[0].expression))


def _sides(condition: Expression, inner: Node) -> tuple[Expression, Expression] | None:
    """Return what an equality compares of the subquery's row, and with what of the row around it."""
    own = {column.id for column in inner.facts.columns}
    match condition:
        case Apply(name="=", arguments=(one, two)):
            for mine, other in ((one, two), (two, one)):
                if ids_in(mine) and ids_in(mine) <= own and not ids_in(other) & own:
                    return mine, other
    return None
