"""WHERE: plain conditions, and EXISTS and IN (SELECT …) over rows of the same unit."""

from rules.relation.bind_source import Ctes, Relation, _Tree, names_leaf
from rules.relation.bind_subquery import Subqueries, Written, sorted_conditions
from rules.relation.expression import Column, all_of
from rules.relation.nodes import Node
from rules.relation.privacy import filtered
from rules.relation.walk_syntax import parts
from rules.sql import syntax as s


class Where(Subqueries):
    """Filters the rows of FROM."""

    def filtered(self, given: s.Select, tree: _Tree, columns: dict[int, Column], ctes: Ctes) -> Node:
        """FROM and WHERE as one relation. The plain conditions are read twice: first to see what links the units."""
        conditions, tests = sorted_conditions(given.where)
        deep = tuple(each for each in conditions if _has_subquery(each))
        plain = tuple(each for each in conditions if each not in deep)
        early = self.conditions_of(plain, names_leaf(tree.scope, columns))
        node = self.build(tree, early)
        node = filtered(node, all_of(self.conditions_of(plain, self.leaf(Relation(node, tree.scope)))))
        for test, negated in tests:
            found = self.tested(Relation(node, tree.scope), test, ctes, negated=negated)
            assert found is not None, "only a mark is left to answers"
            node = found
        source = self.with_subqueries(Relation(node, tree.scope), deep, ctes)
        return filtered(source.node, all_of(self.conditions_of(deep, self.leaf(source))))


def _has_subquery(given: s.Expression) -> bool:
    return any(isinstance(part, Written) for part in parts(given))
