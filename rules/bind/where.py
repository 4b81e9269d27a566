"""WHERE: plain conditions, EXISTS and IN (SELECT …) over rows of the same unit, and LATERAL behind the tables.

A LATERAL item is rows of the same unit, the first of them, or what they add up to.
"""

from typing import Literal

from rules.algebra.nodes import Node
from rules.algebra.unit_facts import filtered, joined
from rules.bind.expression import Binding
from rules.bind.from_clause import Tree, bind_from, join_sources, leaf_of, names_leaf, provisional
from rules.bind.scope import MisplacedLateral, Names, Scope, merge, single
from rules.bind.semi_joins import as_column
from rules.bind.state import BindState, BoundSource, Ctes, Outer
from rules.bind.subquery import (
    JOIN_HINT,
    bind_conditions,
    bind_inside,
    bind_test,
    first_rows,
    with_group,
    with_subqueries,
)
from rules.bind.subquery_shape import has_subquery, is_more, sorted_conditions
from rules.bind.walk_syntax import aggregates, column_name, parts
from rules.frozen import frozen, replace
from rules.refusal import NotSupported, pointing_at
from rules.sql import syntax as s
from rules.values.expression import all_of

_LATERAL_HINT = (
    "Move the subquery to the select list, or group it by the columns that it depends on and join it: "
    "JOIN (SELECT a, count(*) AS n FROM … GROUP BY a) AS t ON t.a = outer.a."
)
_TRUE = s.Constant("boolean", "true")


@frozen
class Lateral:
    """One LATERAL item of FROM, and whether rows without a partner stay."""

    kind: Literal["inner", "left"]
    source: s.QuerySource


def bind_where(
    state: BindState, select: s.Select, tree: Tree, laterals: tuple[Lateral, ...], ctes: Ctes
) -> BoundSource:
    """FROM and WHERE as one relation.

    Plain conditions over joins are read first to see what links the units, and again where joins have told more of the
    columns since.
    """
    conditions, tests = sorted_conditions(select.where)
    may_be_late = state.has_subqueries or bool(laterals)
    deep = tuple(each for each in conditions if may_be_late and _is_late(each, tree.scope, laterals))
    plain = tuple(condition for condition in conditions if condition not in deep)
    before = provisional(tree)
    read = bind_conditions(state, plain, names_leaf(tree.scope, before))
    node = join_sources(state, tree, read)
    if any((known := before.get(column.id)) is not column and known != column for column in node.facts.columns):
        read = bind_conditions(state, plain, leaf_of(BoundSource(node, tree.scope)))
    node = filtered(node, all_of(read))
    source = BoundSource(node, tree.scope)
    for lateral in laterals:
        source = with_lateral(state, source, lateral, ctes)
    for test, negated in tests:
        bound = bind_test(state, source, test, ctes, negated=negated)
        assert bound is not None, "only a mark is left to answers"
        source = BoundSource(bound, source.scope)
    source = with_subqueries(state, source, deep, ctes)
    return BoundSource(filtered(source.node, all_of(bind_conditions(state, deep, leaf_of(source)))), source.scope)


def bind_beside_public(state: BindState, source: s.Source | None, ctes: Ctes) -> Tree | Outer:
    """FROM whose LATERAL subqueries depend on public rows alone: each would be a block for each of these."""
    try:
        return bind_from(state, source, ctes)
    except MisplacedLateral:
        message = "LATERAL over protected rows is not supported together with public rows"
        raise NotSupported(message, hint=_LATERAL_HINT, about="LATERAL") from None


def _is_late(condition: s.Expression, scope: Scope, laterals: tuple[Lateral, ...]) -> bool:
    """Return whether a condition is about more than the tables of FROM: a subquery, or a column of LATERAL."""
    names = (part for part in parts(condition) if isinstance(part, s.Name))
    return has_subquery(condition) or (bool(laterals) and any(scope.find(name.parts) is None for name in names))


def split_laterals(source: s.Source | None) -> tuple[s.Source | None, tuple[Lateral, ...]]:
    """FROM without the LATERAL subqueries at its end, and these in their order."""
    match source:
        case s.Join(
            kind="cross" | "inner" | "left" as kind, left=left, right=s.QuerySource(lateral=True) as right, on=on
        ):
            if source.using or source.natural or on not in (None, _TRUE):
                return source, ()
            rest, laterals = split_laterals(left)
            return rest, (*laterals, Lateral("left" if kind == "left" else "inner", right))
    return source, ()


def laterals_last(select: s.Select) -> s.Select:
    """Inner joins may stand in any order: LATERAL goes behind the tables, what joins these to it into WHERE."""
    if any(isinstance(item.expression, s.Star) for item in select.items):
        return select  # which has its columns in the order of FROM
    source, laterals, conditions = _apart(select.source)
    if not laterals and not conditions:
        return select
    for lateral in laterals:
        assert source is not None
        source = s.Join("left" if lateral.kind == "left" else "cross", source, lateral.source, _on(lateral))
    whole = (*([select.where] if select.where is not None else []), *conditions)
    where = s.Operator("and", whole) if len(whole) > 1 else next(iter(whole), None)
    return replace(select, source=source, where=where)


def _on(lateral: Lateral) -> s.Expression | None:
    return _TRUE if lateral.kind == "left" else None


def _apart(source: s.Source | None) -> tuple[s.Source | None, tuple[Lateral, ...], tuple[s.Expression, ...]]:
    """FROM without its LATERAL subqueries, these, and the conditions of the joins behind them."""
    rest, laterals = split_laterals(source)
    match rest:
        case s.Join(kind="cross" | "inner", left=left, right=right, on=on, using=(), natural=False):
            tables, before, conditions = _apart(left)
            if before:
                assert tables is not None, "LATERAL stands beside something"
                joins = (on,) if on is not None else ()
                return s.Join("cross", tables, right), (*before, *laterals), (*conditions, *joins)
    return rest, laterals, ()


def with_lateral(state: BindState, source: BoundSource, lateral: Lateral, ctes: Ctes) -> BoundSource:
    query = lateral.source.query
    calls = aggregates(query.items) if isinstance(query, s.Select) else ()
    if not isinstance(query, s.Select) or query.ctes or is_more(query, most=None):
        raise NotSupported("this LATERAL subquery is not supported over protected rows", hint=JOIN_HINT)
    if query.source is None and query.where is None:
        node, names = _select_list(state, query, source.node, state.reading(leaf_of(source)))
    else:
        node, names = _lateral_rows(state, source, query, calls, lateral, ctes)
    entry = single(lateral.source.alias, names, lateral.source.columns)
    return BoundSource(node, merge(source.scope, entry))


def _lateral_rows(
    state: BindState, source: BoundSource, query: s.Select, calls: tuple[s.Call, ...], lateral: Lateral, ctes: Ctes
) -> tuple[Node, Names]:
    """The unit's own rows, or the first of them: a join like any other. Or what they add up to: always one row."""
    tree = bind_from(state, query.source, ctes)
    if isinstance(tree, Outer):
        raise NotSupported("LATERAL over aggregate results is not supported over protected rows", hint=JOIN_HINT)
    inside = bind_inside(state, source, query, tree, ctes)
    if not calls:
        rows = first_rows(state, inside, query)
        inner, names = _select_list(state, query, rows.node, state.reading(leaf_of(rows)), rows.scope)
        linking = all_of(inside.linking)
        with pointing_at("LATERAL"):
            return joined(lateral.kind, source.node, inner, linking, number=state.fresh()), names
    grouped = with_group(state, source, inside, calls)
    if grouped is None:
        message = "the LATERAL subquery must be joined to the outer query on the unit column"
        raise NotSupported(message, hint=JOIN_HINT, about="LATERAL")
    return _select_list(state, query, *grouped)


def _select_list(
    state: BindState, query: s.Select, node: Node, binding: Binding, scope: Scope | None = None
) -> tuple[Node, Names]:
    """The select list as columns; * stands for what the scope has."""
    names: list[tuple[str, int]] = []
    for item in query.items:
        if isinstance(item.expression, s.Star) and scope is not None:
            names.extend(scope.star(item.expression.qualifier))
            continue
        node, number = as_column(state, node, binding.bind(item.expression))
        names.append((item.alias or column_name(item.expression), number))
    return node, tuple(names)
