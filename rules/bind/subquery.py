"""Subqueries that depend on the row around them: EXISTS, IN, and values that belong to the same unit.

A subquery of the same unit's rows becomes a column: EXISTS and IN a mark, a scalar subquery what a LEFT JOIN finds by a
unique key, or by the groups of the unit.
"""

from rules.algebra.nodes import Node
from rules.algebra.unit_facts import filtered
from rules.bind.expression import Leaf
from rules.bind.from_clause import (
    Tree,
    bind_answered,
    bind_from,
    is_public,
    join_sources,
    leaf_of,
    provisional,
)
from rules.bind.in_subquery import Members
from rules.bind.in_subquery import written as written_members
from rules.bind.semi_joins import Inside, TestKind, join_test, member_columns, test_answered
from rules.bind.state import BindState, BoundSource, Ctes, Outer
from rules.bind.subquery_shape import (
    Test,
    Written,
    depends,
    either_leaf,
    has_subquery,
    is_computed,
    is_more,
    sorted_conditions,
)
from rules.bind.subquery_values import value_of_group, value_of_row
from rules.bind.walk_syntax import aggregates, first_table, parts
from rules.refusal import NotSupported, pointing_at
from rules.sql import syntax as s
from rules.values.expression import (
    Expression,
    all_of,
    conjuncts,
    ids_in,
)

JOIN_HINT = "Join the tables, and group by the unit column in a subquery in FROM."


def with_subqueries(
    state: BindState, source: BoundSource, written: object, ctes: Ctes, *, above_aggregates: bool = False
) -> BoundSource:
    """A column for each subquery that depends on the row around it. The others are answers, which come first."""
    if source.node.facts.unit is None:
        return source
    subqueries = tuple(parts(written, above_aggregates=above_aggregates))
    for part in reversed(subqueries):  # what stands in an argument of IN is read before it
        if isinstance(part, Written) and source.scope.find_subquery(part) is None:
            source = _with_subquery(state, source, part, ctes)
    return source


def _with_subquery(state: BindState, source: BoundSource, written: Written, ctes: Ctes) -> BoundSource:
    bound: tuple[Node, int] | None
    with pointing_at(first_table(written.query)):
        if isinstance(written, s.ScalarQuery):
            bound = _bind_value(state, source, written.query, ctes)
        else:
            mark = state.fresh()
            node = bind_test(state, source, written, ctes, negated=False, mark=mark)
            bound = None if node is None else (node, mark)
    return source if bound is None else BoundSource(bound[0], source.scope.with_subquery(written, bound[1]))


def bind_conditions(state: BindState, plain: tuple[s.Expression, ...], leaf: Leaf) -> tuple[Expression, ...]:
    binding = state.reading(leaf)
    return tuple(part for expression in plain for part in conjuncts(binding.condition(expression)))


# EXISTS and IN


def bind_test(
    state: BindState, source: BoundSource, test: Test, ctes: Ctes, *, negated: bool, mark: int | None = None
) -> Node | None:
    """The rows that pass a test, or with a mark all of them; None if the test is one of answers, and marks.

    x IN (SELECT y …) is EXISTS (… WHERE y = x), which a NULL among the y cannot empty.
    """
    with pointing_at(first_table(test.query)):
        if isinstance(test, s.Exists):
            return _bind_exists(state, source, test, None, ctes, TestKind(negated, mark))
        members = Members(tuple(map(state.reading(leaf_of(source)).operand, written_members(test))), test.sign)
        return _bind_exists(state, source, test, members, ctes, TestKind(negated != test.negated, mark))


def _bind_exists(
    state: BindState, source: BoundSource, test: Test, members: Members | None, ctes: Ctes, kind: TestKind
) -> Node | None:
    before, query = state.found_blocks(), test.query
    if not isinstance(query, s.Select) or query.ctes or is_computed(query):
        bound = state.query(query, ctes)
        if not isinstance(bound, Outer):
            return join_test(state, source.node, Inside(bound, ()), members, kind)
        state.leave_out(state.found_blocks() - before)
        return test_answered(state, source.node, test, members, kind)
    tree = bind_from(state, query.source, ctes)
    if isinstance(tree, Outer):
        state.leave_out(state.found_blocks() - before)
        if members is not None or query.source is None:
            return test_answered(state, source.node, test, members, kind)
        tree = bind_answered(state, query.source, ctes)
    try:
        inside = bind_inside(state, source, query, tree, ctes)
        if members is not None:
            inside = Inside(member_columns(state, query, inside.rows), inside.linking)
    except NotSupported:
        if not is_public(tree) or depends(query, tree.scope):
            raise
        state.leave_out(state.found_blocks() - before)  # the twin has public rows and can compute what we cannot
        return test_answered(state, source.node, test, members, kind)
    return join_test(state, source.node, inside, members, kind)


def bind_inside(state: BindState, source: BoundSource, query: s.Select, tree: Tree, ctes: Ctes) -> Inside:
    """FROM and WHERE of a subquery. Its conditions are read twice: first to see what links its own units."""
    outside = {column.id: column for column in source.node.facts.columns}
    conditions, tests = sorted_conditions(query.where)
    deep = tuple(condition for condition in conditions if has_subquery(condition))
    plain = tuple(condition for condition in conditions if condition not in deep)
    early = bind_conditions(state, plain, either_leaf(tree.scope, provisional(tree), source.scope, outside))
    inner = join_sources(
        state, tree, tuple(expression for expression in early if not ids_in(expression) & outside.keys())
    )
    columns = {column.id: column for column in inner.facts.columns}
    late = bind_conditions(state, plain, either_leaf(tree.scope, columns, source.scope, outside))
    inner = filtered(inner, all_of(tuple(expression for expression in late if not ids_in(expression) & outside.keys())))
    for test, negated in tests:
        node = bind_test(state, BoundSource(inner, tree.scope), test, ctes, negated=negated)
        assert node is not None, "only a mark is left to answers"
        inner = node
    rows = with_subqueries(state, BoundSource(inner, tree.scope), deep, ctes)
    columns = {column.id: column for column in rows.node.facts.columns}
    later = bind_conditions(state, deep, either_leaf(rows.scope, columns, source.scope, outside))
    inner = filtered(
        rows.node, all_of(tuple(expression for expression in later if not ids_in(expression) & outside.keys()))
    )
    linking = tuple(expression for expression in (*late, *later) if ids_in(expression) & outside.keys())
    return Inside(BoundSource(inner, rows.scope), linking)


# scalar subqueries


def _bind_value(state: BindState, source: BoundSource, query: s.Query, ctes: Ctes) -> tuple[Node, int] | None:
    """The value that belongs to each row, as a column; None where it is an answer, or one for each value."""
    if not isinstance(query, s.Select) or query.ctes or query.source is None or is_more(query):
        return None
    before = state.found_blocks()
    tree = bind_from(state, query.source, ctes)
    calls = aggregates(query.items)
    if isinstance(tree, Outer) or not depends(query, tree.scope) or (calls and is_public(tree)):
        state.leave_out(state.found_blocks() - before)
        return None
    inside = bind_inside(state, source, query, tree, ctes)
    if calls:
        return value_of_group(state, source, inside, query.items[0].expression, calls)
    return value_of_row(state, source, inside, query)
