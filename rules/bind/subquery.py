"""Subqueries that depend on the row around them: EXISTS, IN, and values that belong to the same unit.

A subquery of the same unit's rows becomes a column: EXISTS and IN a mark, a scalar subquery what a LEFT JOIN finds by a
unique key, or by the groups of the unit.
"""

from fractions import Fraction

from rules.algebra.nodes import Aggregate, Node
from rules.algebra.same_unit import always_finds
from rules.algebra.unit_facts import filtered, find_partner, gathered, per_unit, projected, tells_unit
from rules.bind.correlated_subquery import EXISTS_HINT, check_left_out
from rules.bind.expression import Binding, Leaf
from rules.bind.from_clause import (
    Tree,
    bind_answered,
    bind_from,
    is_public,
    join_sources,
    leaf_of,
    provisional,
)
from rules.bind.group_by import output_of
from rules.bind.in_subquery import Members
from rules.bind.in_subquery import written as written_members
from rules.bind.scope import UnknownName
from rules.bind.semi_joins import Inside, TestKind, as_column, join_test, member_columns, test_answered
from rules.bind.state import BindState, BoundSource, Ctes, Outer
from rules.bind.subquery_shape import (
    Test,
    Written,
    calls_leaf,
    depends,
    either_leaf,
    has_subquery,
    is_computed,
    is_more,
    kept_by_exists,
    number_of,
    sorted_conditions,
)
from rules.bind.unit_aggregates import unit_aggregate
from rules.bind.walk_syntax import aggregates, first_table, parts
from rules.bind.windows import first_of_each
from rules.frozen import replace
from rules.functions.comparison import compare
from rules.refusal import NotAllowed, NotSupported, pointing_at
from rules.sql import syntax as s
from rules.values import domain
from rules.values.expression import (
    Apply,
    Column,
    Expression,
    all_of,
    conjuncts,
    ids_in,
)

JOIN_HINT = "Join the tables, and group by the unit column in a subquery in FROM."

FIRST_HINT = "Use an aggregate such as min(x) in the subquery, or join the tables and group by the unit column."

SEVERAL_HINT = "Compare a unique key in its WHERE clause, or select an aggregate such as min(x) or count(*)."


def with_subqueries(
    state: BindState, source: BoundSource, written: object, ctes: Ctes, *, above_aggregates: bool = False
) -> BoundSource:
    """A column for each subquery that depends on the row around it. The others are answers, which come first."""
    if source.node.facts.unit is None or not state.has_subqueries:
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
    return tuple(part for condition in state.reading(leaf).conditions(plain) for part in conjuncts(condition))


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
    if members is None and isinstance(query, s.Select):
        check_left_out(query.distinct_on)
        query = kept_by_exists(query)
    if not isinstance(query, s.Select) or query.ctes or is_computed(query):
        bound = _computed_alone(state, query, ctes)
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
        if members is None:
            check_left_out(query.items)
        inside = bind_inside(state, source, query, tree, ctes)
        if members is not None:
            inside = Inside(member_columns(state, query, inside.rows), inside.linking)
    except NotSupported:
        if not is_public(tree) or depends(query, tree.scope):
            raise
        state.leave_out(state.found_blocks() - before)  # the twin has public rows and can compute what we cannot
        return test_answered(state, source.node, test, members, kind)
    return join_test(state, source.node, inside, members, kind)


def _computed_alone(state: BindState, query: s.Query, ctes: Ctes) -> BoundSource | Outer:
    """Rows that are more than chosen, which do not depend on the row around them."""
    try:
        return state.query(query, ctes)
    except UnknownName as refusal:
        refusal.hint = EXISTS_HINT
        raise


def bind_inside(state: BindState, source: BoundSource, query: s.Select, tree: Tree, ctes: Ctes) -> Inside:
    """FROM and WHERE of a subquery. Its conditions are read twice: first to see what links its own units."""
    check_left_out(query.order_by)
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
        return _value_of_group(state, source, inside, query.items[0].expression, calls)
    return _value_of_row(state, source, inside, query)


def _value_of_row(state: BindState, source: BoundSource, inside: Inside, query: s.Select) -> tuple[Node, int]:
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
    if not tells_unit(rows.node.facts, keys):
        message = "a correlated subquery with LIMIT over rows of different units would return single protected rows"
        raise NotAllowed(message, hint=FIRST_HINT, about="LIMIT")
    order = tuple(
        replace(order_item, expression=output_of(order_item.expression, query)) for order_item in query.order_by
    )
    binding, most = state.reading(leaf_of(rows)), number_of(query.limit)
    assert most is not None, "others are more than rows"
    return BoundSource(first_of_each(rows.node, keys, order, binding, state.fresh(), most), rows.scope)


def _value_of_group(
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
            compare("=", other, grouped.facts.column(number), state.context.setting)
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
