"""Subqueries that depend on the row around them: whether a row of the same unit exists, and values that belong to it.

A subquery of the same unit's rows becomes a column: EXISTS and IN a mark, a scalar subquery what a LEFT JOIN finds by a
unique key, or by the groups of the unit. A join by a key multiplies no rows.
"""

from dataclasses import dataclass, replace
from fractions import Fraction

from rules.algebra.nodes import Aggregate, Node
from rules.algebra.same_unit import always_finds, are_linked
from rules.algebra.unit_facts import filtered, find_partner, gathered, projected, semi_joined, tells_unit
from rules.algebra.within_unit import per_unit
from rules.bind.expression import Binding, Leaf
from rules.bind.from_clause import Tree, bind_answered, bind_from, is_public, join_sources, leaf_of, provisional
from rules.bind.group_by import output_of
from rules.bind.in_subquery import Members, among
from rules.bind.in_subquery import written as written_members
from rules.bind.scope import Scope
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
    number_of,
    sorted_conditions,
)
from rules.bind.unit_aggregates import unit_aggregate
from rules.bind.walk_syntax import aggregates, first_table, parts
from rules.bind.windows import first_of_each
from rules.functions.comparison import compare, either, negation
from rules.refusal import NotAllowed, NotSupported, pointing_at
from rules.sql import syntax as s
from rules.values import domain
from rules.values.expression import (
    FALSE,
    TRUE,
    Apply,
    Column,
    Expression,
    all_of,
    conjuncts,
    ids_in,
    null_of,
)
from rules.values.types import BOOLEAN

JOIN_HINT = "Join the tables, and group by the unit column in a subquery in FROM."
FIRST_HINT = "Use an aggregate such as min(x) in the subquery, or join the tables and group by the unit column."
SEVERAL_HINT = "Compare a unique key in its WHERE clause, or select an aggregate such as min(x) or count(*)."


@dataclass(frozen=True, slots=True)
class Inside:
    """The rows of a subquery, and the conditions that tie them to the row around it."""

    rows: BoundSource
    linking: tuple[Expression, ...]


def with_subqueries(
    state: BindState, source: BoundSource, written: object, ctes: Ctes, *, above_aggregates: bool = False
) -> BoundSource:
    """A column for each subquery that depends on the row around it. The others are answers, which come first."""
    if source.node.facts.unit is None:
        return source
    found = tuple(parts(written, above_aggregates=above_aggregates))
    for each in reversed(found):  # what stands in an argument of IN is read before it
        if isinstance(each, Written) and source.scope.find_subquery(each) is None:
            source = _with_subquery(state, source, each, ctes)
    return source


def _with_subquery(state: BindState, source: BoundSource, written: Written, ctes: Ctes) -> BoundSource:
    found: tuple[Node, int] | None
    with pointing_at(first_table(written.query)):
        if isinstance(written, s.ScalarQuery):
            found = _bind_value(state, source, written.query, ctes)
        else:
            mark = state.fresh()
            node = bind_test(state, source, written, ctes, negated=False, mark=mark)
            found = None if node is None else (node, mark)
    return source if found is None else BoundSource(found[0], source.scope.with_subquery(written, found[1]))


def bind_conditions(state: BindState, plain: tuple[s.Expression, ...], leaf: Leaf) -> tuple[Expression, ...]:
    binding = state.reading(leaf)
    return tuple(part for each in plain for part in conjuncts(binding.condition(each)))


# EXISTS and IN


def bind_test(
    state: BindState, source: BoundSource, test: Test, ctes: Ctes, *, negated: bool, mark: int | None = None
) -> Node | None:
    """The rows that pass a test, or with a mark all of them; None if the test is one of answers, and marks.

    x IN (SELECT y …) is EXISTS (… WHERE y = x), which a NULL among the y cannot empty.
    """
    with pointing_at(first_table(test.query)):
        if isinstance(test, s.Exists):
            return _bind_exists(state, source, test, None, ctes, _Kind(negated, mark))
        members = Members(tuple(map(state.reading(leaf_of(source)).operand, written_members(test))), test.sign)
        return _bind_exists(state, source, test, members, ctes, _Kind(negated != test.negated, mark))


def _bind_exists(
    state: BindState, source: BoundSource, test: Test, members: Members | None, ctes: Ctes, kind: "_Kind"
) -> Node | None:
    before, query = state.found_blocks(), test.query
    if not isinstance(query, s.Select) or query.ctes or is_computed(query):
        found = state.query(query, ctes)
        if not isinstance(found, Outer):
            return _semi_joined(state, source.node, Inside(found, ()), members, kind)
        state.leave_out(state.found_blocks() - before)
        return _test_answered(state, source.node, test, members, kind)
    tree = bind_from(state, query.source, ctes)
    if isinstance(tree, Outer):
        state.leave_out(state.found_blocks() - before)
        if members is not None or query.source is None:
            return _test_answered(state, source.node, test, members, kind)
        tree = bind_answered(state, query.source, ctes)
    try:
        inside = bind_inside(state, source, query, tree, ctes)
        if members is not None:
            inside = Inside(_member_columns(state, query, inside.rows), inside.linking)
    except NotSupported:
        if not is_public(tree) or depends(query, tree.scope):
            raise
        state.leave_out(state.found_blocks() - before)  # the twin has public rows and can compute what we cannot
        return _test_answered(state, source.node, test, members, kind)
    return _semi_joined(state, source.node, inside, members, kind)


def bind_inside(state: BindState, source: BoundSource, query: s.Select, tree: Tree, ctes: Ctes) -> Inside:
    """FROM and WHERE of a subquery. Its conditions are read twice: first to see what links its own units."""
    outside = {column.id: column for column in source.node.facts.columns}
    conditions, tests = sorted_conditions(query.where)
    deep = tuple(each for each in conditions if has_subquery(each))
    plain = tuple(each for each in conditions if each not in deep)
    early = bind_conditions(state, plain, either_leaf(tree.scope, provisional(tree), source.scope, outside))
    inner = join_sources(state, tree, tuple(each for each in early if not ids_in(each) & outside.keys()))
    columns = {column.id: column for column in inner.facts.columns}
    late = bind_conditions(state, plain, either_leaf(tree.scope, columns, source.scope, outside))
    inner = filtered(inner, all_of(tuple(each for each in late if not ids_in(each) & outside.keys())))
    for test, negated in tests:
        found = bind_test(state, BoundSource(inner, tree.scope), test, ctes, negated=negated)
        assert found is not None, "only a mark is left to answers"
        inner = found
    rows = with_subqueries(state, BoundSource(inner, tree.scope), deep, ctes)
    columns = {column.id: column for column in rows.node.facts.columns}
    later = bind_conditions(state, deep, either_leaf(rows.scope, columns, source.scope, outside))
    inner = filtered(rows.node, all_of(tuple(each for each in later if not ids_in(each) & outside.keys())))
    linking = tuple(each for each in (*late, *later) if ids_in(each) & outside.keys())
    return Inside(BoundSource(inner, rows.scope), linking)


def _test_answered(state: BindState, node: Node, test: Test, members: Members | None, kind: "_Kind") -> Node | None:
    """A test against what is released first, and enters as constants."""
    if kind.mark is not None:
        return None
    if isinstance(test, s.InQuery) and members is not None:
        asked = replace(test, negated=kind.negated)
        rows = state.context.released_list(test.query)
        return filtered(node, among(members.values, asked, rows, state.context.setting()))
    holds = state.context.released_value(test.query, "exists") == TRUE
    return filtered(node, TRUE if holds != kind.negated else FALSE)


def _member_columns(state: BindState, query: s.Select, found: BoundSource) -> BoundSource:
    """The columns that IN compares with, in their order."""
    node, numbers = found.node, list[int]()
    for item in query.items:
        if isinstance(item.expression, s.Star):
            numbers += [number for _, number in found.scope.star(item.expression.qualifier)]
            continue
        node, number = as_column(state, node, state.reading(leaf_of(found)).bind(item.expression))
        numbers.append(number)
    return BoundSource(node, Scope(merged=tuple(("", number) for number in numbers)))


def _single_item(state: BindState, query: s.Select, found: BoundSource, refusal: str) -> tuple[Node, int]:
    """The one item of a subquery as a column of its rows."""
    if len(query.items) != 1 or isinstance(query.items[0].expression, s.Star):
        raise NotSupported(refusal)
    return as_column(state, found.node, state.reading(leaf_of(found)).bind(query.items[0].expression))


def as_column(state: BindState, node: Node, bound: Expression) -> tuple[Node, int]:
    if isinstance(bound, Column):
        return node, bound.id
    number = state.fresh()
    return projected(node, ((number, bound),)), number


def _semi_joined(state: BindState, node: Node, inside: Inside, members: Members | None, kind: "_Kind") -> Node:
    found, linking = inside.rows, inside.linking
    if members is None:
        return semi_joined(node, found.node, all_of(linking), negated=kind.negated, mark=kind.mark)
    columns = tuple(found.node.facts.column(number) for _, number in found.scope.star(()))
    if len(columns) != len(members.values):
        raise NotSupported("the subquery of IN must have as many columns as the row on its left")
    true = all_of((*linking, *members.true(columns, state.context.setting())))
    if not members.is_open(columns) or (kind.mark is None and not kind.negated):
        return semi_joined(node, found.node, true, negated=kind.negated, mark=kind.mark)
    possible = all_of((*linking, *members.not_false(columns, state.context.setting())))
    if found.node.facts.unit is not None and not are_linked(node, found.node, possible):
        message = "NOT IN (SELECT …) over nullable values would let one NULL change the result for every unit"
        hint = "Use EXISTS (SELECT 1 … WHERE x = y), or compare columns that are NOT NULL."
        raise NotAllowed(message, hint=hint)
    if kind.mark is None:
        return semi_joined(node, found.node, possible, negated=True)
    return _open_mark(state, node, found.node, (true, possible), kind)


def _open_mark(state: BindState, node: Node, found: Node, tests: tuple[Expression, Expression], kind: "_Kind") -> Node:
    """A mark that is NULL where no row makes the test true and some row leaves it open."""
    assert kind.mark is not None
    numbers = (state.fresh(), state.fresh())
    for number, test in zip(numbers, tests, strict=True):
        node = semi_joined(node, found, test, negated=False, mark=number)
    setting = state.context.setting()
    true, possible = map(node.facts.column, numbers)
    held = either(true, all_of((possible, null_of(BOOLEAN))), setting=setting)
    return projected(node, ((kind.mark, negation(held, setting) if kind.negated else held),))


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
    links = [_sides(each, rows.node) for each in inside.linking]
    keys = tuple(link[0] for link in links if link is not None)
    if len(keys) < len(links):  # the first of those that pass a condition is another than the first of all
        raise NotSupported("a correlated subquery with LIMIT can refer to the outer query only by =", hint=FIRST_HINT)
    order = tuple(replace(each, expression=output_of(each.expression, query)) for each in query.order_by)
    binding, most = state.reading(leaf_of(rows)), number_of(query.limit)
    assert most is not None, "others are more than rows"
    return BoundSource(first_of_each(rows.node, keys, order, binding, state.fresh(), most), rows.scope)


def _value_of_group(
    state: BindState, source: BoundSource, inside: Inside, item: s.Expression, calls: tuple[s.Call, ...]
) -> tuple[Node, int] | None:
    """(SELECT count(*) … WHERE unit = outer): exact aggregates of the unit's own rows, one group for each row."""
    found = with_group(state, source, inside, calls)
    return None if found is None else as_column(state, found[0], found[1].bind(item))


def with_group(
    state: BindState, source: BoundSource, inside: Inside, calls: tuple[s.Call, ...]
) -> tuple[Node, Binding] | None:  # fmt: skip
    """Each row with the group of its unit's rows, and how expressions of the aggregates are read."""
    inner = inside.rows.node
    links = [_sides(each, inner) for each in inside.linking]
    known = [link for link in links if link is not None]
    if inner.facts.unit is None or not tells_unit(inner.facts, tuple(mine for mine, _ in known)):
        return None
    binding = state.reading(leaf_of(inside.rows))
    made = tuple(unit_aggregate(call, state.fresh(), binding, inner.facts) for call in calls)
    if len(known) < len(links):
        node = gathered(source.node, inner, all_of(inside.linking), made)
        return node, state.reading(calls_leaf({call: each[2] for call, each in zip(calls, made, strict=True)}))
    return _with_known_group(state, source, inner, known, (calls, made))


def _with_known_group(
    state: BindState,
    source: BoundSource,
    inner: Node,
    known: list[tuple[Expression, Expression]],
    aggregates: tuple[tuple[s.Call, ...], tuple[tuple[int, Aggregate, Column], ...]],
) -> tuple[Node, Binding]:
    """Where the group is told by equalities alone, all groups are made once."""
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
    """Where a row has no group, a count is 0 and all else NULL."""
    for call, number in numbers.items():
        if call.name != "count":
            continue
        column, filled = node.facts.column(number), state.fresh()
        image = domain.union(column.domain, domain.values([Fraction(0)]))
        zero = Apply("coalesce", "coalesce({0}, 0)", (column,), column.type, image, nullable=False, strict=False)
        node = projected(node, ((filled, zero),), declared={filled: column.declared})
        numbers = numbers | {call: filled}
    return node, {call: node.facts.column(number) for call, number in numbers.items()}


@dataclass(frozen=True, slots=True)
class _Kind:
    """How a test is asked: for rows that fail it, and whether it chooses rows or marks them."""

    negated: bool
    mark: int | None


def _sides(condition: Expression, inner: Node) -> tuple[Expression, Expression] | None:
    """What an equality compares of the subquery's row, and with what of the row around it."""
    own = {column.id for column in inner.facts.columns}
    match condition:
        case Apply(name="=", arguments=(one, two)):
            for mine, other in ((one, two), (two, one)):
                if ids_in(mine) and ids_in(mine) <= own and not ids_in(other) & own:
                    return mine, other
    return None
