"""Join rows with the subqueries of EXISTS and IN: as rows that pass, or as marks of all rows.

x IN (SELECT y …) is EXISTS (… WHERE y = x), which a NULL among the y cannot empty.
"""

from rules.algebra.nodes import Node
from rules.algebra.same_unit import are_linked
from rules.algebra.unit_facts import filtered, projected, semi_joined
from rules.bind.from_clause import leaf_of
from rules.bind.in_subquery import Members, among
from rules.bind.scope import Scope
from rules.bind.state import BindState, BoundSource
from rules.bind.subquery_shape import (
    Test,
)
from rules.frozen import frozen, replace
from rules.functions.comparison import either, negation
from rules.refusal import NotAllowed, NotSupported
from rules.sql import syntax as s
from rules.values.expression import (
    FALSE,
    TRUE,
    Column,
    Expression,
    all_of,
    null_of,
)
from rules.values.types import BOOLEAN


@frozen
class Inside:
    """The rows of a subquery, and the conditions that tie them to the row around it."""

    rows: BoundSource
    linking: tuple[Expression, ...]


@frozen
class TestKind:
    """The form of a test: for rows that pass or fail it, choosing rows or marking them."""

    negated: bool
    mark: int | None


def join_test(state: BindState, node: Node, inside: Inside, members: Members | None, kind: TestKind) -> Node:
    bound_source, linking = inside.rows, inside.linking
    if members is None:
        return semi_joined(node, bound_source.node, all_of(linking), negated=kind.negated, mark=kind.mark)
    columns = tuple(bound_source.node.facts.column(number) for _, number in bound_source.scope.star(()))
    if len(columns) != len(members.values):
        raise NotSupported("the subquery of IN must have as many columns as the row on its left")
    true = all_of((*linking, *members.true(columns, state.context.setting)))
    if not members.is_open(columns) or (kind.mark is None and not kind.negated):
        return semi_joined(node, bound_source.node, true, negated=kind.negated, mark=kind.mark)
    possible = all_of((*linking, *members.not_false(columns, state.context.setting)))
    if bound_source.node.facts.unit is not None and not are_linked(node, bound_source.node, possible):
        message = "NOT IN (SELECT …) over nullable values would let one NULL change the result for every unit"
        hint = "Use NOT EXISTS (SELECT 1 … WHERE x = y), or compare columns that are NOT NULL."
        raise NotAllowed(message, hint=hint)
    if kind.mark is None:
        return semi_joined(node, bound_source.node, possible, negated=True)
    return _open_mark(state, node, bound_source.node, (true, possible), kind)


def _open_mark(
    state: BindState, node: Node, marked: Node, tests: tuple[Expression, Expression], kind: TestKind
) -> Node:
    """A mark that is NULL where no row makes the test true and some row leaves it open."""
    assert kind.mark is not None
    numbers = (state.fresh(), state.fresh())
    for number, test in zip(numbers, tests, strict=True):
        node = semi_joined(node, marked, test, negated=False, mark=number)
    setting = state.context.setting
    true, possible = map(node.facts.column, numbers)
    held = either(true, all_of((possible, null_of(BOOLEAN))), setting=setting)
    return projected(node, ((kind.mark, negation(held, setting) if kind.negated else held),))


def test_answered(state: BindState, node: Node, test: Test, members: Members | None, kind: TestKind) -> Node | None:
    """A test against what is released first, and enters as constants."""
    if kind.mark is not None:
        return None
    if isinstance(test, s.InQuery) and members is not None:
        in_query = replace(test, negated=kind.negated)
        rows = state.context.released_list(test.query)
        return filtered(node, among(members.values, in_query, rows, state.context.setting))
    holds = state.context.released_value(test.query, "exists") == TRUE
    return filtered(node, TRUE if holds != kind.negated else FALSE)


def member_columns(state: BindState, query: s.Select, bound_source: BoundSource) -> BoundSource:
    """The columns that IN compares with, in their order."""
    node, numbers = bound_source.node, list[int]()
    for item in query.items:
        if isinstance(item.expression, s.Star):
            numbers += [number for _, number in bound_source.scope.star(item.expression.qualifier)]
            continue
        node, number = as_column(state, node, state.reading(leaf_of(bound_source)).bind(item.expression))
        numbers.append(number)
    return BoundSource(node, Scope(merged=tuple(("", number) for number in numbers)))


def as_column(state: BindState, node: Node, bound: Expression) -> tuple[Node, int]:
    if isinstance(bound, Column):
        return node, bound.id
    number = state.fresh()
    return projected(node, ((number, bound),)), number
