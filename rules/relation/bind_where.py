"""WHERE: plain conditions, and EXISTS and IN (SELECT …) over rows of the same unit."""

from rules.relation.bind_lateral import Lateral, Laterals
from rules.relation.bind_source import Ctes, Relation, _Tree, names_leaf, provisional
from rules.relation.expression import all_of
from rules.relation.privacy import filtered
from rules.relation.scope import Scope
from rules.relation.subquery_shape import has_subquery, sorted_conditions
from rules.relation.walk_syntax import parts
from rules.sql import syntax as s


class Where(Laterals):
    """Filters the rows of FROM."""

    def filtered(self, given: s.Select, tree: _Tree, laterals: tuple[Lateral, ...], ctes: Ctes) -> Relation:
        """FROM and WHERE as one relation. The plain conditions are read twice: first to see what links the units."""
        conditions, tests = sorted_conditions(given.where)
        deep = tuple(each for each in conditions if _is_late(each, tree.scope, laterals))
        plain = tuple(each for each in conditions if each not in deep)
        early = self.conditions_of(plain, names_leaf(tree.scope, provisional(tree)))
        node = self.build(tree, early)
        node = filtered(node, all_of(self.conditions_of(plain, self.leaf(Relation(node, tree.scope)))))
        source = Relation(node, tree.scope)
        for lateral in laterals:
            source = self.with_lateral(source, lateral, ctes)
        for test, negated in tests:
            found = self.tested(source, test, ctes, negated=negated)
            assert found is not None, "only a mark is left to answers"
            source = Relation(found, source.scope)
        source = self.with_subqueries(source, deep, ctes)
        return Relation(filtered(source.node, all_of(self.conditions_of(deep, self.leaf(source)))), source.scope)


def _is_late(given: s.Expression, scope: Scope, laterals: tuple[Lateral, ...]) -> bool:
    """Whether a condition is about more than the tables of FROM: a subquery, or a column of LATERAL."""
    names = (part for part in parts(given) if isinstance(part, s.Name))
    return has_subquery(given) or (bool(laterals) and any(scope.find(name.parts) is None for name in names))
