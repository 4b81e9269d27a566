"""Subqueries that depend on the row around them: whether a row of the same unit exists, and values that belong to it.

A subquery of the same unit's rows becomes a column: EXISTS and IN a mark, a scalar subquery what a LEFT JOIN finds by a
unique key, or by the groups of the unit. A join by a key multiplies no rows.
"""

from abc import abstractmethod
from dataclasses import dataclass, replace
from fractions import Fraction

from rules.refusal import NotAllowed, NotSupported, pointing_at
from rules.relation import domain
from rules.relation.bind_expression import Binding, Leaf
from rules.relation.bind_source import Ctes, Outer, Relation, Sources, _Tree, is_public, provisional
from rules.relation.expression import (
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
from rules.relation.foreign_key import always_finds
from rules.relation.functions.comparison import compare, either, negation
from rules.relation.group_keys import output_of
from rules.relation.members import Members, among
from rules.relation.members import written as written_members
from rules.relation.nodes import Aggregate, Node
from rules.relation.privacy import filtered, find_partner, gathered, projected, semi_joined, tells_unit
from rules.relation.same_unit import are_linked
from rules.relation.scope import Scope
from rules.relation.subquery_names import calls_leaf, either_leaf
from rules.relation.subquery_shape import (
    Test,
    Written,
    depends,
    has_subquery,
    is_computed,
    is_more,
    number_of,
    sorted_conditions,
)
from rules.relation.types import BOOLEAN
from rules.relation.unit_aggregates import unit_aggregate
from rules.relation.unit_windows import first_of_each
from rules.relation.walk_syntax import aggregates, first_table, parts
from rules.relation.within_unit import per_unit
from rules.sql import syntax as s

JOIN_HINT = "Join the rows, and group by the unit in a subquery in FROM."
FIRST_HINT = "Write what is wanted of it as an aggregate, such as min(x); or join the rows, and group by the unit."
SEVERAL_HINT = "Compare a unique key in its WHERE, or make one value of several: min(x), count(*)."


@dataclass(frozen=True, slots=True)
class Inside:
    """The rows of a subquery, and the conditions that tie them to the row around it."""

    rows: Relation
    linking: tuple[Expression, ...]


class Subqueries(Sources):
    """Binds subqueries in conditions and expressions over protected rows."""

    @abstractmethod
    def leaf(self, source: Relation) -> Leaf: ...

    def with_subqueries(
        self, source: Relation, written: object, ctes: Ctes, *, above_aggregates: bool = False
    ) -> Relation:
        """A column for each subquery that depends on the row around it. The others are answers, which come first."""
        if source.node.facts.unit is None:
            return source
        found = tuple(parts(written, above_aggregates=above_aggregates))
        for each in reversed(found):  # what stands in an argument of IN is read before it
            if isinstance(each, Written) and source.scope.find_subquery(each) is None:
                source = self._with_subquery(source, each, ctes)
        return source

    def _with_subquery(self, source: Relation, written: Written, ctes: Ctes) -> Relation:
        found: tuple[Node, int] | None
        with pointing_at(first_table(written.query)):
            if isinstance(written, s.ScalarQuery):
                found = self._value(source, written.query, ctes)
            else:
                mark = self.fresh()
                node = self.tested(source, written, ctes, negated=False, mark=mark)
                found = None if node is None else (node, mark)
        return source if found is None else Relation(found[0], source.scope.with_subquery(written, found[1]))

    def conditions_of(self, plain: tuple[s.Expression, ...], leaf: Leaf) -> tuple[Expression, ...]:
        binding = self.binding(leaf)
        return tuple(part for each in plain for part in conjuncts(binding.condition(each)))

    def binding(self, leaf: Leaf) -> Binding:
        return Binding(leaf, self.world, self.world.setting())

    # EXISTS and IN

    def tested(
        self, source: Relation, test: Test, ctes: Ctes, *, negated: bool, mark: int | None = None
    ) -> Node | None:
        """The rows that pass a test, or with a mark all of them; None if the test is one of answers, and marks.

        x IN (SELECT y …) is EXISTS (… WHERE y = x), which a NULL among the y cannot empty.
        """
        with pointing_at(first_table(test.query)):
            if isinstance(test, s.Exists):
                return self._exists(source, test, None, ctes, _Kind(negated, mark))
            members = Members(tuple(map(self.binding(self.leaf(source)).operand, written_members(test))), test.sign)
            return self._exists(source, test, members, ctes, _Kind(negated != test.negated, mark))

    def _exists(self, source: Relation, test: Test, members: Members | None, ctes: Ctes, kind: "_Kind") -> Node | None:
        before, query = self.found(), test.query
        if not isinstance(query, s.Select) or query.ctes or is_computed(query):
            found = self.query(query, ctes)
            if not isinstance(found, Outer):
                return self._exists_bound(source.node, Inside(found, ()), members, kind)
            self.leave_out(self.found() - before)
            return self._answered(source.node, test, members, kind)
        tree = self.tree(query.source, ctes)
        if isinstance(tree, Outer):
            self.leave_out(self.found() - before)
            if members is not None or query.source is None:
                return self._answered(source.node, test, members, kind)
            tree = self.answered(query.source, ctes)
        inside = self.inside(source, query, tree, ctes)
        if members is not None:
            inside = Inside(self._items(query, inside.rows), inside.linking)
        return self._exists_bound(source.node, inside, members, kind)

    def inside(self, source: Relation, query: s.Select, tree: _Tree, ctes: Ctes) -> Inside:
        """FROM and WHERE of a subquery. Its conditions are read twice: first to see what links its own units."""
        outside = {column.id: column for column in source.node.facts.columns}
        conditions, tests = sorted_conditions(query.where)
        deep = tuple(each for each in conditions if has_subquery(each))
        plain = tuple(each for each in conditions if each not in deep)
        early = self.conditions_of(plain, either_leaf(tree.scope, provisional(tree), source.scope, outside))
        inner = self.build(tree, tuple(each for each in early if not ids_in(each) & outside.keys()))
        columns = {column.id: column for column in inner.facts.columns}
        late = self.conditions_of(plain, either_leaf(tree.scope, columns, source.scope, outside))
        inner = filtered(inner, all_of(tuple(each for each in late if not ids_in(each) & outside.keys())))
        for test, negated in tests:
            found = self.tested(Relation(inner, tree.scope), test, ctes, negated=negated)
            assert found is not None, "only a mark is left to answers"
            inner = found
        rows = self.with_subqueries(Relation(inner, tree.scope), deep, ctes)
        columns = {column.id: column for column in rows.node.facts.columns}
        later = self.conditions_of(deep, either_leaf(rows.scope, columns, source.scope, outside))
        inner = filtered(rows.node, all_of(tuple(each for each in later if not ids_in(each) & outside.keys())))
        linking = tuple(each for each in (*late, *later) if ids_in(each) & outside.keys())
        return Inside(Relation(inner, rows.scope), linking)

    def _answered(self, node: Node, test: Test, members: Members | None, kind: "_Kind") -> Node | None:
        """A test against what is released first, and enters as constants."""
        if kind.mark is not None:
            return None
        if isinstance(test, s.InQuery) and members is not None:
            asked = replace(test, negated=kind.negated)
            rows = self.world.released_list(test.query)
            return filtered(node, among(members.values, asked, rows, self.world.setting()))
        holds = self.world.released_value(test.query, "exists") == TRUE
        return filtered(node, TRUE if holds != kind.negated else FALSE)

    def _items(self, query: s.Select, found: Relation) -> Relation:
        """The columns that IN compares with, in their order."""
        if any(isinstance(item.expression, s.Star) for item in query.items):
            raise NotSupported("IN (SELECT …) needs named columns", hint="Name the columns in place of *.")
        node, numbers = found.node, []
        for item in query.items:
            node, number = self.as_column(node, self.binding(self.leaf(found)).bind(item.expression))
            numbers.append(number)
        return Relation(node, Scope(merged=tuple(("", number) for number in numbers)))

    def _item(self, query: s.Select, found: Relation, refusal: str) -> tuple[Node, int]:
        """The one item of a subquery as a column of its rows."""
        if len(query.items) != 1 or isinstance(query.items[0].expression, s.Star):
            raise NotSupported(refusal)
        return self.as_column(found.node, self.binding(self.leaf(found)).bind(query.items[0].expression))

    def as_column(self, node: Node, bound: Expression) -> tuple[Node, int]:
        if isinstance(bound, Column):
            return node, bound.id
        number = self.fresh()
        return projected(node, ((number, bound),)), number

    def _exists_bound(self, node: Node, inside: Inside, members: Members | None, kind: "_Kind") -> Node:
        found, linking = inside.rows, inside.linking
        if members is None:
            return semi_joined(node, found.node, all_of(linking), negated=kind.negated, mark=kind.mark)
        columns = tuple(found.node.facts.column(number) for _, number in found.scope.star(()))
        if len(columns) != len(members.values):
            raise NotSupported("IN (SELECT …) needs as many columns as are compared with them")
        true = all_of((*linking, *members.true(columns, self.world.setting())))
        if not members.is_open(columns) or (kind.mark is None and not kind.negated):
            return semi_joined(node, found.node, true, negated=kind.negated, mark=kind.mark)
        possible = all_of((*linking, *members.not_false(columns, self.world.setting())))
        if found.node.facts.unit is not None and not are_linked(node, found.node, possible):
            message = "IN (SELECT …) over values that may be NULL says nothing for everybody at once"
            hint = "Write EXISTS (SELECT 1 … WHERE x = y), or compare columns that are NOT NULL."
            raise NotAllowed(message, hint=hint)
        if kind.mark is None:
            return semi_joined(node, found.node, possible, negated=True)
        return self._open_mark(node, found.node, (true, possible), kind)

    def _open_mark(self, node: Node, found: Node, tests: tuple[Expression, Expression], kind: "_Kind") -> Node:
        """A mark that is NULL where no row makes the test true and some row leaves it open."""
        assert kind.mark is not None
        numbers = (self.fresh(), self.fresh())
        for number, test in zip(numbers, tests, strict=True):
            node = semi_joined(node, found, test, negated=False, mark=number)
        setting = self.world.setting()
        true, possible = map(node.facts.column, numbers)
        held = either(true, all_of((possible, null_of(BOOLEAN))), setting=setting)
        return projected(node, ((kind.mark, negation(held, setting) if kind.negated else held),))

    # scalar subqueries

    def _value(self, source: Relation, query: s.Query, ctes: Ctes) -> tuple[Node, int] | None:
        """The value that belongs to each row, as a column; None where it is an answer, or one for each value."""
        if not isinstance(query, s.Select) or query.ctes or query.source is None or is_more(query):
            return None
        before = self.found()
        tree = self.tree(query.source, ctes)
        calls = aggregates(query.items)
        if isinstance(tree, Outer) or not depends(query, tree.scope) or (calls and is_public(tree)):
            self.leave_out(self.found() - before)
            return None
        inside = self.inside(source, query, tree, ctes)
        if calls:
            return self._of_group(source, inside, query.items[0].expression, calls)
        return self._of_row(source, inside, query)

    def _of_row(self, source: Relation, inside: Inside, query: s.Select) -> tuple[Node, int]:
        """(SELECT y … WHERE key = outer): the one row that has the key, or the first one in an order."""
        rows = self.first_rows(inside, query)
        inner, number = self._item(query, rows, "a subquery in an expression needs exactly one column")
        always = always_finds(source.node, rows.node, inside.linking, self.world.catalog)
        node = find_partner(source.node, inner, all_of(inside.linking), self.fresh(), always=always)
        if node is None:
            raise NotSupported("a subquery could give several rows for one row around it", hint=SEVERAL_HINT)
        return node, number

    def first_rows(self, inside: Inside, query: s.Select) -> Relation:
        """The rows of a subquery, or with LIMIT the first of those that belong to one row around it."""
        rows = inside.rows
        if query.limit is None:
            return rows
        links = [_sides(each, rows.node) for each in inside.linking]
        keys = tuple(link[0] for link in links if link is not None)
        if len(keys) < len(links):  # the first of those that pass a condition is another than the first of all
            raise NotSupported("the first row of a subquery is tied to the row around it by = alone", hint=FIRST_HINT)
        order = tuple(replace(each, expression=output_of(each.expression, query)) for each in query.order_by)
        binding, most = self.binding(self.leaf(rows)), number_of(query.limit)
        assert most is not None, "others are more than rows"
        return Relation(first_of_each(rows.node, keys, order, binding, self.fresh(), most), rows.scope)

    def _of_group(
        self, source: Relation, inside: Inside, item: s.Expression, calls: tuple[s.Call, ...]
    ) -> tuple[Node, int] | None:
        """(SELECT count(*) … WHERE unit = outer): exact aggregates of the unit's own rows, one group for each row."""
        found = self.with_group(source, inside, calls)
        return None if found is None else self.as_column(found[0], found[1].bind(item))

    def with_group(
        self, source: Relation, inside: Inside, calls: tuple[s.Call, ...]
    ) -> tuple[Node, Binding] | None:  # fmt: skip
        """Each row with the group of its unit's rows, and how expressions of the aggregates are read."""
        inner = inside.rows.node
        links = [_sides(each, inner) for each in inside.linking]
        known = [link for link in links if link is not None]
        if inner.facts.unit is None or not tells_unit(inner.facts, tuple(mine for mine, _ in known)):
            return None
        binding = self.binding(self.leaf(inside.rows))
        made = tuple(unit_aggregate(call, self.fresh(), binding, inner.facts) for call in calls)
        if len(known) < len(links):
            node = gathered(source.node, inner, all_of(inside.linking), made)
            return node, self.binding(calls_leaf({call: each[2] for call, each in zip(calls, made, strict=True)}))
        return self._with_known_group(source, inner, known, (calls, made))

    def _with_known_group(
        self,
        source: Relation,
        inner: Node,
        known: list[tuple[Expression, Expression]],
        aggregates: tuple[tuple[s.Call, ...], tuple[tuple[int, Aggregate, Column], ...]],
    ) -> tuple[Node, Binding]:
        """Where the group is told by equalities alone, all groups are made once."""
        calls, made = aggregates
        keys = tuple((mine.id if isinstance(mine, Column) else self.fresh(), mine) for mine, _ in known)
        grouped = per_unit(inner, tuple(dict(keys).items()), made)
        holding = all_of(
            tuple(
                compare("=", other, grouped.facts.column(number), self.world.setting())
                for (number, _), (_, other) in zip(keys, known, strict=True)
            )
        )
        node = find_partner(source.node, grouped, holding, self.fresh())
        if node is None:
            message = "an aggregate over one unit's rows is tied to the row around it by values of other types"
            raise NotSupported(message, hint="Cast the value of the row around it to the other's type.")
        node, values = self._filled(node, {call: column.id for call, (_, _, column) in zip(calls, made, strict=True)})
        return node, self.binding(calls_leaf(values))

    def _filled(self, node: Node, numbers: dict[s.Call, int]) -> tuple[Node, dict[s.Call, Column]]:
        """Where a row has no group, a count is 0 and all else NULL."""
        for call, number in numbers.items():
            if call.name != "count":
                continue
            column, filled = node.facts.column(number), self.fresh()
            image = domain.union(column.domain, domain.values([Fraction(0)]))
            zero = Apply("coalesce", "coalesce({0}, 0)", (column,), column.type, image, nullable=False)
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
