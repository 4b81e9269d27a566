"""WHERE: plain conditions, and EXISTS and IN (SELECT …) over rows of the same unit."""

from abc import abstractmethod

from rules.refusal import NotAllowed, NotSupported
from rules.relation.bind_expression import Binding, Leaf
from rules.relation.bind_source import Ctes, Outer, Relation, Sources, _Tree, names_leaf, provisional
from rules.relation.expression import FALSE, TRUE, Column, Expression, Operand, all_of, conjuncts, ids_in
from rules.relation.functions.comparison import compare, in_list
from rules.relation.nodes import Node
from rules.relation.privacy import filtered, projected, semi_joined
from rules.relation.scope import Scope
from rules.relation.walk_syntax import aggregates, has_window
from rules.relation.walk_syntax import conjuncts as written_conjuncts
from rules.sql import syntax as s

_Subquery = s.Exists | s.InQuery


class Where(Sources):
    """Filters the rows of FROM."""

    @abstractmethod
    def leaf(self, source: Relation) -> Leaf: ...

    def filtered(self, given: s.Select, tree: _Tree, columns: dict[int, Column], ctes: Ctes) -> Node:
        """FROM and WHERE as one relation. The plain conditions are read twice: first to see what links the units."""
        plain, tests = _sorted(given.where)
        early = self._conditions_of(plain, names_leaf(tree.scope, columns))
        node = self.build(tree, early)
        leaf = self.leaf(Relation(node, tree.scope))
        node = filtered(node, all_of(self._conditions_of(plain, leaf)))
        for test, negated in tests:
            node = self._tested(node, tree.scope, test, ctes, negated=negated)
        return node

    def _conditions_of(self, plain: tuple[s.Expression, ...], leaf: Leaf) -> tuple[Expression, ...]:
        binding = Binding(leaf, self.world, self.world.setting())
        return tuple(part for each in plain for part in conjuncts(binding.condition(each)))

    def _tested(self, node: Node, scope: Scope, test: _Subquery, ctes: Ctes, *, negated: bool) -> Node:
        match test:
            case s.Exists(query=query):
                return self._exists(node, scope, query, None, ctes, negated=negated)
            case s.InQuery(argument=argument, query=query):
                binding = Binding(self.leaf(Relation(node, scope)), self.world, self.world.setting())
                bound = binding.bind(argument)
                return self._exists(node, scope, query, bound, ctes, negated=negated != test.negated)

    def _exists(
        self, node: Node, scope: Scope, query: s.Query, member: Expression | None, ctes: Ctes, *, negated: bool
    ) -> Node:
        """EXISTS as it is; x IN (SELECT y …) as EXISTS (… WHERE y = x), which a NULL among the y cannot empty."""
        if not isinstance(query, s.Select) or query.ctes or _is_computed(query):
            return self._whole(node, query, member, ctes, negated=negated)
        before = self.found()
        tree = self.tree(query.source, ctes)
        if isinstance(tree, Outer):
            self.leave_out(self.found() - before)
            if member is not None or query.source is None:
                return self._answered(node, query, member, negated=negated)
            tree = self.answered(query.source, ctes)
        outside = {column.id: column for column in node.facts.columns}
        plain, tests = _sorted(query.where)
        early = self._conditions_of(plain, _either(tree.scope, provisional(tree), scope, outside))
        inner = self.build(tree, tuple(each for each in early if not ids_in(each) & outside.keys()))
        columns = {column.id: column for column in inner.facts.columns}
        late = self._conditions_of(plain, _either(tree.scope, columns, scope, outside))
        inner = filtered(inner, all_of(tuple(each for each in late if not ids_in(each) & outside.keys())))
        for test, deep in tests:
            inner = self._tested(inner, tree.scope, test, ctes, negated=deep)
        found = Relation(inner, tree.scope)
        if member is not None:
            found = self._one_column(query, found)
        linking = tuple(each for each in late if ids_in(each) & outside.keys())
        return self._exists_bound(node, found, member, linking, negated=negated)

    def _whole(self, node: Node, query: s.Query, member: Expression | None, ctes: Ctes, *, negated: bool) -> Node:
        """A subquery that is more than rows of FROM and WHERE: groups of units, or an answer."""
        before = self.found()
        found = self.query(query, ctes)
        if not isinstance(found, Outer):
            return self._exists_bound(node, found, member, (), negated=negated)
        self.leave_out(self.found() - before)
        return self._answered(node, query, member, negated=negated)

    def _answered(self, node: Node, query: s.Query, member: Expression | None, *, negated: bool) -> Node:
        """A test against what is released first, and enters as constants."""
        if member is not None:
            listed = self.world.released_list(query)
            return filtered(node, in_list(member, listed, self.world.setting(), negated=negated))
        holds = self.world.released_value(query, "exists") == TRUE
        return filtered(node, TRUE if holds != negated else FALSE)

    def _one_column(self, query: s.Select, found: Relation) -> Relation:
        """The column that IN compares with, under a name of its own."""
        if len(query.items) != 1 or isinstance(query.items[0].expression, s.Star):
            raise NotSupported("IN (SELECT …) needs exactly one named column")
        bound = Binding(self.leaf(found), self.world, self.world.setting()).bind(query.items[0].expression)
        if isinstance(bound, Column):
            return Relation(found.node, Scope(merged=(("", bound.id),)))
        number = self.fresh()
        return Relation(projected(found.node, ((number, bound),)), Scope(merged=(("", number),)))

    def _exists_bound(
        self, node: Node, found: Relation, member: Expression | None, linking: tuple[Expression, ...], *, negated: bool
    ) -> Node:
        if member is None:
            return semi_joined(node, found.node, all_of(linking), negated=negated)
        names = found.scope.star(())
        if len(names) != 1:
            raise NotSupported("IN (SELECT …) needs exactly one named column")
        column = found.node.facts.column(names[0][1])
        if (negated or found.node.facts.unit is not None) and (column.nullable or member.nullable):
            message = "IN (SELECT …) over values that may be NULL says nothing for everybody at once"
            raise NotAllowed(
                message, hint="Write EXISTS (SELECT 1 … WHERE x = y), or compare columns that are NOT NULL."
            )
        equal = compare("=", member, column, self.world.setting())
        return semi_joined(node, found.node, all_of((*linking, equal)), negated=negated)


def _is_computed(query: s.Select) -> bool:
    """Whether more is done than choosing rows."""
    if query.locking:
        raise NotAllowed("row locks tell of protected rows")
    chosen = query.distinct or query.distinct_on or query.limit is not None or query.offset is not None
    return bool(query.group_by or query.having or aggregates(query.items) or chosen or has_window(query.items))


def _sorted(where: s.Expression | None) -> tuple[tuple[s.Expression, ...], tuple[tuple[_Subquery, bool], ...]]:
    """The plain conditions, and the tests by subquery with whether NOT stands before them."""
    plain: list[s.Expression] = []
    tests: list[tuple[_Subquery, bool]] = []
    for each in written_conjuncts(where):
        match each:
            case s.Exists() | s.InQuery():
                tests.append((each, False))
            case s.Operator(name="not", arguments=((s.Exists() | s.InQuery()) as inner,)):
                tests.append((inner, True))
            case _:
                plain.append(each)
    return tuple(plain), tuple(tests)


def _either(scope: Scope, columns: dict[int, Column], outer: Scope, outside: dict[int, Column]) -> Leaf:
    """In a correlated subquery a name is first looked for inside, then outside."""

    def leaf(given: s.Expression) -> Operand | None:
        if not isinstance(given, s.Name):
            return None
        number = scope.find(given.parts)
        if number is not None:
            return columns[number]
        number = outer.find(given.parts)
        if number is None:
            raise scope.refuse(given.parts)
        return outside[number]

    return leaf
