"""FROM as a relation: tables by name, subqueries, and joins whose units are proved the same."""

from collections.abc import Iterator, Sequence
from typing import Final

from rules.algebra.nodes import JoinKind, Node, is_of_tables
from rules.algebra.same_unit import always_finds
from rules.algebra.unit_facts import filtered, joined, known, projected
from rules.bind.correlated_subquery import check_grouped
from rules.bind.expression import Leaf
from rules.bind.inner_answers import columns, keys, table
from rules.bind.not_joined import refusal_of_item
from rules.bind.scope import MisplacedLateral, Names, Scope, UnknownName, merge, single
from rules.bind.state import BindState, BoundSource, Ctes, Outer
from rules.bind.table import scan, with_generated_bounds, with_public_bounds
from rules.frozen import frozen
from rules.functions.comparison import compare
from rules.functions.conditional import coalesce
from rules.functions.function import EvalContext
from rules.kept import KeptByIdentity
from rules.refusal import NotAllowed, Refusal, pointing_at
from rules.sql import syntax as s
from rules.values.expression import Apply, Column, Expression, Operand, all_of, conjuncts, ids_in
from rules.values.types import find_common


@frozen
class _Leaf:
    node: Node
    scope: Scope


@frozen
class _Pair:
    kind: JoinKind
    left: "Tree"
    right: "Tree"
    on: s.Expression | None
    equal: tuple[tuple[str, int, int], ...]  # USING and NATURAL: name, left and right column
    merged: Names
    scope: Scope


Tree = _Leaf | _Pair


def bind_from(state: BindState, source: s.Source | None, ctes: Ctes) -> Tree | Outer:
    """FROM as a tree of joins whose order and links are not decided yet."""
    match source:
        case None | s.FunctionSource():
            return Outer()
        case s.TableSource():
            return _bind_table(state, source, ctes)
        case s.QuerySource():
            return _bind_subquery(state, source, ctes)
        case s.Join():
            return _bind_join(state, source, ctes)


def _bind_table(state: BindState, source: s.TableSource, ctes: Ctes) -> Tree | Outer:
    if source.schema is None and source.name in ctes.known:
        cte, seen = ctes.known[source.name]
        columns = source.columns or cte.columns
        return _named(state.query(cte.query, seen), source.alias or source.name, columns)
    if source.schema is None and ctes.hides(source.name):
        return Outer()
    table = state.context.find_table(source.schema, source.name)
    rules = None if table is None else state.context.policy.find_table(table.name)
    if table is None or rules is None:
        return Outer()
    node, names = scan(table, rules, state.context.policy, state.context.catalog, state.fresh)
    scope = single(source.alias or source.name, names, source.columns, table.name.schema)
    node = with_generated_bounds(with_public_bounds(node, state.context), table, state.context)
    return _Leaf(node, scope)


def _bind_subquery(state: BindState, source: s.QuerySource, ctes: Ctes) -> Tree | Outer:
    try:
        tree = _named(state.query(source.query, ctes), source.alias, source.columns)
    except UnknownName:
        if not source.lateral:
            raise
        hint = "Move it behind all outer joins, with a comma or LEFT JOIN … ON true, and its conditions to WHERE."
        message = "LATERAL is not supported at this position over protected rows"
        raise MisplacedLateral(message, hint=hint, about="LATERAL") from None
    if _is_protected(tree):
        check_grouped(source)
    return tree


def _named(bound: BoundSource | Outer, name: str | None, columns: tuple[str, ...]) -> Tree | Outer:
    if isinstance(bound, Outer):
        return bound
    return _Leaf(bound.node, single(name, bound.scope.star(()), columns, bare=bound.scope.bare(())))


def _bind_join(state: BindState, join: s.Join, ctes: Ctes) -> Tree | Outer:
    before = state.found_blocks()
    left = bind_from(state, join.left, ctes)
    between = state.found_blocks()
    right = bind_from(state, join.right, ctes)
    if isinstance(left, Outer) and _is_protected(right):
        state.leave_out(between - before)
        left = bind_answered(state, join.left, ctes)
    elif isinstance(right, Outer) and _is_protected(left):
        state.leave_out(state.found_blocks() - between)
        right = bind_answered(state, join.right, ctes)
    if isinstance(left, Outer) or isinstance(right, Outer):
        return Outer()
    return _joined(state, join, left, right)


def _joined(state: BindState, join: s.Join, left: Tree, right: Tree) -> _Pair:
    kind: JoinKind = "inner" if join.kind == "cross" else join.kind
    names = join.using
    if join.natural:
        right_names = {name for name, _ in right.scope.star(())}
        names = tuple(name for name, _ in left.scope.star(()) if name in right_names)
    return _pair(state, kind, left, right, join.on, names)


def bind_answered(state: BindState, source: s.Source | None, ctes: Ctes) -> Tree:
    """Bind what the twin computes, as rows that are known before protected ones meet them."""
    match source:
        case s.QuerySource(query=query, alias=alias, columns=columns):
            return _released(state, query, alias, columns)
        case s.TableSource(schema=None, name=name) if name in ctes.known:
            cte, _ = ctes.known[name]
            return _released(state, cte.query, source.alias or name, source.columns or cte.columns)
        case s.Join(left=left, right=right):
            return _joined(state, source, _public_side(state, left, ctes), _public_side(state, right, ctes))
    raise refusal_of_item(source, state.context, ctes)


def _public_side(state: BindState, source: s.Source, ctes: Ctes) -> Tree:
    before = state.found_blocks()
    tree = bind_from(state, source, ctes)
    if not isinstance(tree, Outer):
        return tree
    state.leave_out(state.found_blocks() - before)
    return bind_answered(state, source, ctes)


def _released(state: BindState, query: s.Query, name: str | None, aliases: tuple[str, ...]) -> _Leaf:
    released = state.context.find_released(query)
    rows = table(released, state.context.catalog, state.context.setting)
    numbers = tuple(state.fresh() for _ in released.names)
    node = known(rows, columns(released, rows, numbers, state.context.catalog), keys(rows, numbers))
    return _Leaf(node, single(name, tuple(zip(released.names, numbers, strict=True)), aliases))


def _pair(
    state: BindState, kind: JoinKind, left: Tree, right: Tree, on: s.Expression | None, names: tuple[str, ...]
) -> _Pair:
    equal, merged = [], []
    for name in names:
        first, second = left.scope.find((name,)), right.scope.find((name,))
        if first is None or second is None:
            raise NotAllowed(f'column "{name}" of USING does not exist on both sides of the join')
        equal.append((name, first, second))
        merged.append((name, {"right": second, "full": 0}.get(kind, first) or state.fresh()))
    return _Pair(kind, left, right, on, tuple(equal), tuple(merged), merge(left.scope, right.scope, tuple(merged)))


def join_sources(state: BindState, tree: Tree, where: tuple[Expression, ...] = ()) -> Node:
    """The joins made one by one; conditions of WHERE may link the units of inner joins."""
    if isinstance(tree, _Leaf):
        return tree.node
    if tree.kind == "inner":
        return _join_inner(state, tree, where)
    left = join_sources(state, tree.left, where if tree.kind == "left" else ())
    right = join_sources(state, tree.right, where if tree.kind == "right" else ())
    columns = _by_number((*left.facts.columns, *right.facts.columns))
    conditions = _join_conditions(state, tree, columns)
    is_inner = tree.kind == "left" and always_finds(left, right, conditions, state.context.catalog)
    with pointing_at(_name(tree.right)):
        made = joined("inner" if is_inner else tree.kind, left, right, all_of(conditions), number=state.fresh())
    return projected(made, tuple(_either(tree, columns, state.context.setting))) if tree.kind == "full" else made


def _join_inner(state: BindState, tree: _Pair, where: tuple[Expression, ...]) -> Node:
    """All tables of a chain of inner joins, in the first order in which each is linked to those before it."""
    pairs, leaves = _chain(tree)
    nodes = [(_name(leaf), join_sources(state, leaf, where)) for leaf in leaves]
    columns = _by_number(tuple(column for _, node in nodes for column in node.facts.columns))
    conditions = [join_condition for pair in pairs for join_condition in _join_conditions(state, pair, columns)]
    made, waiting = nodes[0][1], nodes[1:]
    linking = [(condition, ids) for condition in where if len(ids := ids_in(condition)) > 1]
    while waiting:
        made, conditions, waiting = _join_next(state, made, conditions, waiting, linking)
    return filtered(made, all_of(tuple(conditions)))


def _join_next(
    state: BindState,
    made: Node,
    conditions: list[Expression],
    waiting: list[tuple[str, Node]],
    where: Sequence[tuple[Expression, frozenset[int]]],
) -> tuple[Node, list[Expression], list[tuple[str, Node]]]:
    refusal: Refusal | None = None
    for place, (name, node) in enumerate(waiting):
        known = {column.id for column in (*made.facts.columns, *node.facts.columns)}
        here = [condition for condition in conditions if ids_in(condition) <= known]
        links = tuple(condition for condition, ids in where if ids <= known)
        try:
            with pointing_at(name):
                following = _join_kept(made, node, all_of(tuple(here)), links, state.fresh())
        except Refusal as lateral:
            refusal = refusal or lateral
            continue
        left = [condition for condition in conditions if condition not in here]
        return following, left, [*waiting[:place], *waiting[place + 1 :]]
    assert refusal is not None
    raise refusal


def _join_kept(left: Node, right: Node, holding: Expression, links: tuple[Expression, ...], number: int) -> Node:
    """The inner join; of tables it is kept: the statements of a dashboard differ in their conditions alone."""

    def make() -> Node:
        return joined("inner", left, right, holding, number=number, inner_where=links)

    return _JOINS.get((left, right), (holding, links, number), make) if is_of_tables(left, right) else make()


_JOINS: Final[KeptByIdentity[Node]] = KeptByIdentity(most=256)


def _join_conditions(state: BindState, pair: _Pair, columns: dict[int, Column]) -> tuple[Expression, ...]:
    expressions: list[Expression] = []
    if pair.on is not None:
        binding = state.reading(names_leaf(pair.scope, columns))
        expressions.extend(conjuncts(binding.condition(pair.on)))
    setting = state.context.setting
    expressions.extend(compare("=", columns[first], columns[second], setting) for _, first, second in pair.equal)
    return tuple(expressions)


def _either(tree: _Pair, columns: dict[int, Column], setting: EvalContext) -> Iterator[tuple[int, Expression]]:
    """The merged columns of FULL JOIN … USING. Those of two types are cast, as by COALESCE, so that none fails."""
    for (_, number), (_, first, second) in zip(tree.merged, tree.equal, strict=True):
        left, right = columns[first], columns[second]
        if left.type.base != right.type.base:
            yield number, coalesce((left, right), setting)
            continue
        common = (find_common([left.type, right.type]) or left.type).plain()
        yield number, Apply("coalesce", "coalesce({0}, {1})", (left, right), common, nullable=True, strict=False)


def leaf_of(source: BoundSource) -> Leaf:
    """Names mean the columns of these rows."""
    return names_leaf(source.scope, {column.id: column for column in source.node.facts.columns})


def names_leaf(scope: Scope, columns: dict[int, Column]) -> Leaf:
    """Names mean the columns of this scope, and so do subqueries that became columns."""

    def leaf(expression: s.Expression) -> Operand | None:
        if isinstance(expression, s.ScalarQuery | s.Exists | s.InQuery):
            subquery = scope.find_subquery(expression)
            return None if subquery is None else columns[subquery]
        if not isinstance(expression, s.Name):
            return None
        number = scope.find(expression.parts)
        if number is None:
            raise scope.refuse(expression.parts)
        return columns[number]

    return leaf


def provisional(tree: Tree) -> dict[int, Column]:
    """The columns of FROM before its joins are made: enough to see which conditions link units."""
    columns = _by_number(tuple(column for node in _nodes(tree) for column in node.facts.columns))
    for pair in _pairs(tree):
        for (_, number), (_, first, _) in zip(pair.merged, pair.equal, strict=True):
            if number not in columns and first in columns:
                left = columns[first]
                columns[number] = Column(number, left.type, name=left.name)
    return columns


def is_public(tree: Tree) -> bool:
    return all(node.facts.unit is None for node in _nodes(tree))


def _is_protected(tree: Tree | Outer) -> bool:
    return not isinstance(tree, Outer) and not is_public(tree)


def _nodes(tree: Tree) -> Iterator[Node]:
    if isinstance(tree, _Leaf):
        yield tree.node
    else:
        yield from _nodes(tree.left)
        yield from _nodes(tree.right)


def _pairs(tree: Tree) -> Iterator[_Pair]:
    if isinstance(tree, _Pair):
        yield from _pairs(tree.left)
        yield from _pairs(tree.right)
        yield tree


def _name(tree: Tree) -> str:
    """Find what the first item of a part of FROM is called."""
    return next((entry.name for entry in tree.scope.entries if entry.name), "")


def _chain(tree: Tree) -> tuple[list[_Pair], list[Tree]]:
    """The inner joins at the top of a tree, and what they join."""
    if not isinstance(tree, _Pair) or tree.kind != "inner":
        return [], [tree]
    left, right = _chain(tree.left), _chain(tree.right)
    return [*left[0], *right[0], tree], [*left[1], *right[1]]


def _by_number(columns: tuple[Column, ...]) -> dict[int, Column]:
    return {column.id: column for column in columns}
