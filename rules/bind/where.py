"""WHERE: plain conditions, and EXISTS and IN (SELECT …) over rows of the same unit."""

from rules.algebra.unit_facts import filtered
from rules.bind.from_clause import Tree, join_sources, leaf_of, names_leaf, provisional
from rules.bind.lateral import Lateral, with_lateral
from rules.bind.scope import Scope
from rules.bind.state import BindState, BoundSource, Ctes
from rules.bind.subquery import bind_conditions, bind_test, with_subqueries
from rules.bind.subquery_shape import has_subquery, sorted_conditions
from rules.bind.walk_syntax import parts
from rules.sql import syntax as s
from rules.values.expression import all_of


def bind_where(
    state: BindState, select: s.Select, tree: Tree, laterals: tuple[Lateral, ...], ctes: Ctes
) -> BoundSource:
    """FROM and WHERE as one relation. The plain conditions are read twice: first to see what links the units."""
    conditions, tests = sorted_conditions(select.where)
    deep = tuple(condition for condition in conditions if _is_late(condition, tree.scope, laterals))
    plain = tuple(condition for condition in conditions if condition not in deep)
    early = bind_conditions(state, plain, names_leaf(tree.scope, provisional(tree)))
    node = join_sources(state, tree, early)
    node = filtered(node, all_of(bind_conditions(state, plain, leaf_of(BoundSource(node, tree.scope)))))
    source = BoundSource(node, tree.scope)
    for lateral in laterals:
        source = with_lateral(state, source, lateral, ctes)
    for test, negated in tests:
        bound = bind_test(state, source, test, ctes, negated=negated)
        assert bound is not None, "only a mark is left to answers"
        source = BoundSource(bound, source.scope)
    source = with_subqueries(state, source, deep, ctes)
    return BoundSource(filtered(source.node, all_of(bind_conditions(state, deep, leaf_of(source)))), source.scope)


def _is_late(condition: s.Expression, scope: Scope, laterals: tuple[Lateral, ...]) -> bool:
    """Return whether a condition is about more than the tables of FROM: a subquery, or a column of LATERAL."""
    names = (part for part in parts(condition) if isinstance(part, s.Name))
    return has_subquery(condition) or (bool(laterals) and any(scope.find(name.parts) is None for name in names))
