"""A statement bound: which of its SELECTs are rows of units, which are private blocks, and what is computed outside.

A block is an aggregate over protected rows whose keys do not tell the unit. Everything above a block is the twin's;
everything below one is a relation whose every row belongs to one unit.
"""

from dataclasses import dataclass, replace

from rules.refusal import NotAllowed, NotSupported, pointing_at
from rules.relation.bind_expression import Binding, Leaf
from rules.relation.bind_lateral import laterals_last, split_laterals
from rules.relation.bind_source import Ctes, Outer, Relation, Sources, is_public, names_leaf
from rules.relation.bind_where import Where
from rules.relation.expression import Column, Constant, Expression, Literal, Operand
from rules.relation.group_keys import Key, distinct_keys, keys_of, output_of
from rules.relation.lookup import Correlated, links_of, of_nothing
from rules.relation.nodes import Node
from rules.relation.privacy import filtered, projected, tells_unit
from rules.relation.released import AnswerFirst
from rules.relation.scope import ROW_HINT, Scope, UnknownName, World, single
from rules.relation.subquery_shape import hoisted
from rules.relation.union import set_of_rows, shows_unit, unite
from rules.relation.unit_aggregates import unit_aggregate
from rules.relation.unit_windows import first_of_each, with_windows
from rules.relation.unmatched import check_aggregate, check_key
from rules.relation.walk_syntax import above, aggregates, column_name, first_table, has_window, subqueries, windows
from rules.relation.within_unit import per_unit
from rules.sql import syntax as s

DISTINCT_HINT = "Leave DISTINCT out, or select the unit too."
_ON_HINT = "Name the column of the unit first, as in DISTINCT ON (customer_id); or group by the values and count."


@dataclass(frozen=True, slots=True)
class Found:
    """A private block as it was found: its SELECT, its rows, and its keys."""

    select: s.Select
    source: Relation
    keys: tuple[Key, ...]
    is_distinct: bool
    sets: tuple[tuple[int, ...], ...] = ()  # of GROUPING SETS: which keys each has


class Binder(Where, Sources):
    """Binds one statement and collects its blocks by the number of their SELECT."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.blocks: dict[int, Found] = {}

    def found(self) -> frozenset[int]:
        return frozenset(self.blocks)

    def leave_out(self, blocks: frozenset[int]) -> None:
        for number in blocks:
            del self.blocks[number]

    def query(self, given: s.Query, ctes: Ctes) -> Relation | Outer:
        match given:
            case s.Select():
                return self._select(given, self._with(given.ctes, ctes, recursive=given.recursive))
            case s.SetOperation():
                return self._set_operation(given, self._with(given.ctes, ctes, recursive=given.recursive))
            case s.Values():
                self._visit(ctes, given.rows)
                return Outer()

    def _with(self, given: tuple[s.Cte, ...], seen: Ctes, *, recursive: bool) -> Ctes:
        known = dict(seen.known)
        for cte in given:
            known[cte.name] = (
                cte,
                Ctes({**known} if not recursive else {k: v for k, v in known.items() if k != cte.name}),
            )
        return Ctes(known)

    def _set_operation(self, given: s.SetOperation, ctes: Ctes) -> Relation | Outer:
        sides = self.query(given.left, ctes), self.query(given.right, ctes)
        rows = [side for side in sides if isinstance(side, Relation) and side.node.facts.unit is not None]
        if not rows:
            self._visit(ctes, given.order_by, given.limit, given.offset)
            return Outer()
        is_plain = given.kind == "union" and given.all
        if not is_plain and (given.all or len(rows) < 2 or not all(map(shows_unit, rows))):
            message = f"{given.kind.upper()} compares protected rows with each other"
            hint = "Select the unit in each branch, write UNION ALL, or aggregate each branch first."
            raise NotSupported(message, hint=hint, about=given.kind.upper())
        if given.limit is not None or given.offset is not None or len(rows) < 2:
            raise NotAllowed("this union would give out protected rows", hint=ROW_HINT, about="UNION")
        if is_plain:
            return unite(rows[0], rows[1], self.fresh)
        with pointing_at(given.kind.upper()):
            return set_of_rows(given.kind, rows[0], rows[1], self.world.setting(), self.fresh)

    def _select(self, given: s.Select, ctes: Ctes) -> Relation | Outer:
        given = laterals_last(hoisted(given))
        base, laterals = split_laterals(given.source)
        tree = self.tree(base, ctes)
        if laterals and (isinstance(tree, Outer) or is_public(tree)):
            tree, laterals = self.tree(given.source, ctes), ()
        if isinstance(tree, Outer):
            return self._outer(given, ctes)
        if is_public(tree):
            return self._public(given, ctes)
        if given.locking:
            raise NotAllowed("row locks tell of protected rows", about="FOR")
        return self._over_rows(given, self.filtered(given, tree, laterals, ctes), ctes)

    def _outer(self, given: s.Select, ctes: Ctes) -> Outer:
        self._visit(ctes, given.items, given.where, given.group_by, given.having, given.distinct_on, given.order_by)
        self._visit(ctes, given.limit, given.offset)
        return Outer()

    def _visit(self, ctes: Ctes, *given: object) -> None:
        """Subqueries in what the twin computes: they may be answers, never rows."""
        for query in subqueries(given):
            found = self._subquery_above(query, ctes)
            if isinstance(found, Relation) and found.node.facts.unit is not None:
                message = "a subquery would give out protected rows"
                raise NotAllowed(message, hint=ROW_HINT, about=first_table(query))

    def _subquery_above(self, query: s.Query, ctes: Ctes) -> Relation | Outer:
        try:
            return self.query(query, ctes)
        except UnknownName:
            if isinstance(query, s.Select) and (links := links_of(query, self.world)):
                of_nothing(query)  # refuses what would be lost where nothing is found
                raise Correlated(query.index, links) from None
            raise

    def _public(self, given: s.Select, ctes: Ctes) -> Relation | Outer:
        """Public rows are a relation that protected ones may join, where the planner understands them."""
        tree = self.tree(given.source, ctes)
        simple = not (given.group_by or given.having or given.distinct or given.distinct_on or given.limit)
        simple = simple and not (given.offset or aggregates(given.items) or has_window(given.items))
        if simple and not isinstance(tree, Outer):
            try:
                return self._rows(given, self.filtered(given, tree, (), ctes))
            except (NotSupported, AnswerFirst, UnknownName):
                pass  # the twin has public rows and can compute what we cannot
        return self._outer(given, ctes)

    def _over_rows(self, given: s.Select, source: Relation, ctes: Ctes) -> Relation | Outer:
        """Rows of units, one row for each of a unit's groups, or a block."""
        is_grouped = bool(given.group_by or given.having) or bool(aggregates(given.items, given.order_by))
        if not is_grouped and (given.distinct_on or not given.distinct):
            _check_rows(given)
            return self._rows(given, self.with_subqueries(source, (given.items, given.distinct_on), ctes))
        if not is_grouped and has_window(given.items):
            return self._distinct_windows(given, self.with_subqueries(source, given.items, ctes))
        keys = keys_of(given, source.scope) if is_grouped else distinct_keys(given)
        flat, sets = keys
        inside = tuple(key.expression for key in flat)
        calls = aggregates(given.items, given.having, given.order_by)
        source = self.with_subqueries(source, (inside, calls), ctes)
        leaf = self.leaf(source)
        bound = tuple(Binding(leaf, self.world, self.world.setting()).bind(key.expression) for key in flat)
        if source.node.facts.absent:
            self._check_unmatched(given, source, bound)
        if flat and not sets and tells_unit(source.node.facts, bound):
            return self._per_unit(given, source, bound, ctes)
        self.blocks.setdefault(given.index, Found(given, source, flat, not is_grouped, sets))
        self._visit(ctes, *above(inside, given.items, given.having, given.order_by, given.limit, given.offset))
        return Outer()

    def _check_unmatched(self, given: s.Select, source: Relation, keys: tuple[Expression, ...]) -> None:
        """Public rows without protected partner must not be seen by any key or aggregate."""
        absent = source.node.facts.absent
        for key in keys:
            check_key(key, absent)
        binding = Binding(self.leaf(source), self.world, self.world.setting())
        for call in aggregates(given.items, given.having, given.order_by):
            arguments = (*call.arguments, *(each.expression for each in call.within_group))
            test = None if call.filter is None else binding.condition(call.filter)
            with pointing_at(call.name):
                check_aggregate(call.name, tuple(map(binding.bind, arguments)), test, absent)

    def leaf(self, source: Relation) -> Leaf:
        return names_leaf(source.scope, {column.id: column for column in source.node.facts.columns})

    def _rows(self, given: s.Select, source: Relation) -> Relation:
        """A projection: renamed columns keep their numbers, computed ones get new ones."""
        return self._projected(given, source.node, self.leaf(source), source.scope)

    def _projected(self, given: s.Select, node: Node, leaf: Leaf, scope: Scope) -> Relation:
        node, leaf = self._with_windows(node, leaf, windows(given.items))
        node = self._first_of_each(given, node, leaf)
        binding = Binding(leaf, self.world, self.world.setting())
        names: list[tuple[str, int]] = []
        computed: list[tuple[int, Expression]] = []
        for item in given.items:
            if isinstance(item.expression, s.Star):
                names.extend(scope.star(item.expression.qualifier))
                continue
            bound = binding.bind(item.expression)
            number = bound.id if isinstance(bound, Column) else self.fresh()
            if not isinstance(bound, Column):
                computed.append((number, bound))
            names.append((item.alias or column_name(item.expression), number))
        return Relation(projected(node, tuple(computed)), single(None, tuple(names)))

    def _with_windows(self, node: Node, leaf: Leaf, calls: tuple[s.Call, ...]) -> tuple[Node, Leaf]:
        """The rows with their windows computed, and a reading in which each window is its column."""
        if not calls:
            return node, leaf
        node, numbers = with_windows(node, calls, Binding(leaf, self.world, self.world.setting()), self.fresh)
        columns = {call: node.facts.column(number) for call, number in numbers.items()}
        return node, lambda given: columns[given] if isinstance(given, s.Call) and given in columns else leaf(given)

    def _first_of_each(self, given: s.Select, node: Node, leaf: Leaf) -> Node:
        """DISTINCT ON keeps the rows whose row_number() over the same keys is 1."""
        if not given.distinct_on:
            return node
        binding = Binding(leaf, self.world, self.world.setting())
        keys = tuple(binding.bind(output_of(each, given)) for each in given.distinct_on)
        order = tuple(replace(each, expression=output_of(each.expression, given)) for each in given.order_by)
        if not tells_unit(node.facts, keys):
            message = "DISTINCT ON would choose among rows of several units, and give out single ones"
            raise NotAllowed(message, hint=_ON_HINT, about="DISTINCT")
        return first_of_each(node, keys, order, binding, self.fresh())

    def _per_unit(self, given: s.Select, source: Relation, bound: tuple[Expression, ...], ctes: Ctes) -> Relation:
        """GROUP BY that tells the unit: exact rows of one unit each, for a block above."""
        _check_rows(given)
        facts = source.node.facts
        if facts.unit is None or facts.unit.column is None:
            raise NotSupported("rows without a primary key have no identity, so they cannot be grouped by it")
        numbers = [each.id if isinstance(each, Column) else self.fresh() for each in bound]
        implied = self._implied(given, source, bound)
        binding = Binding(self.leaf(source), self.world, self.world.setting())
        calls = aggregates(given.items, given.having)
        made = tuple(unit_aggregate(call, self.fresh(), binding, facts) for call in calls)
        pairs = tuple(dict(zip((*numbers, *(each.id for each in implied)), (*bound, *implied), strict=True)).items())
        node = per_unit(source.node, pairs, made)
        leaf = _grouped_leaf(node, dict(zip(calls, (number for number, _, _ in made), strict=True)), pairs, binding)
        grouped = Relation(node, replace(source.scope, subqueries=()))
        grouped = self.with_subqueries(grouped, (given.items, given.having), ctes, above_aggregates=True)
        node, leaf = grouped.node, _with_columns(grouped, leaf)
        if given.having is not None:
            node = filtered(node, Binding(leaf, self.world, self.world.setting()).condition(given.having))
        made_rows = self._projected(given, node, leaf, Scope())
        if given.distinct and not given.distinct_on:
            _check_distinct(made_rows)
        return made_rows

    def _distinct_windows(self, given: s.Select, source: Relation) -> Relation:
        """SELECT DISTINCT over windows: the rows of each unit that differ in what is selected."""
        found = self._rows(given, source)
        columns = [found.node.facts.column(number) for _, number in found.scope.star(())]
        if not tells_unit(found.node.facts, tuple(columns)):
            message = "SELECT DISTINCT compares the windows of units with each other"
            raise NotSupported(message, hint=DISTINCT_HINT, about="DISTINCT")
        keys = dict.fromkeys((column.id, column) for column in columns)
        return Relation(per_unit(found.node, tuple(keys), ()), found.scope)

    def _implied(self, given: s.Select, source: Relation, bound: tuple[Expression, ...]) -> tuple[Column, ...]:
        """Columns that follow from the unit may be selected beside its key, as PostgreSQL allows for a primary key."""
        facts = source.node.facts
        columns = {column.id: column for column in facts.columns}
        found: dict[int, Column] = {}
        for name in _plain_names(given):
            number = source.scope.find(name.parts)
            if number in facts.determined and number is not None and columns[number] not in bound:
                found[number] = columns[number]
        return tuple(found.values())


def _plain_names(given: s.Select) -> tuple[s.Name, ...]:
    return tuple(item.expression for item in given.items if isinstance(item.expression, s.Name))


def _check_rows(given: s.Select) -> None:
    """What would choose rows by other units' rows."""
    if given.limit is not None or given.offset is not None:
        hint = "Ask for an aggregate, such as count(*) or avg(x), and limit its answer."
        message = "LIMIT would give out, or choose, single rows of a protected table"
        raise NotAllowed(message, hint=hint, about="LIMIT" if given.limit is not None else "OFFSET")
    if given.locking:
        raise NotAllowed("row locks tell of protected rows", about="FOR")


def _check_distinct(made: Relation) -> None:
    """Groups of a unit that differ in nothing that is selected may be of several units."""
    shown = {number for _, number in made.scope.star(())}
    if not any(key <= shown for key in made.node.facts.keys):
        message = "SELECT DISTINCT compares the groups of units with each other"
        raise NotSupported(message, hint=DISTINCT_HINT, about="DISTINCT")


def _with_columns(grouped: Relation, leaf: Leaf) -> Leaf:
    """Subqueries that became columns of groups are these; all else is read as before."""
    columns = {column.id: column for column in grouped.node.facts.columns}

    def found(given: s.Expression) -> Operand | None:
        number = grouped.scope.find_subquery(given)
        return leaf(given) if number is None else columns[number]

    return found


def _grouped_leaf(
    node: Node, calls: dict[s.Call, int], keys: tuple[tuple[int, Expression], ...], inside: Binding
) -> Leaf:
    """In what is computed after grouping, keys and aggregates mean the columns of the groups."""
    columns = {column.id: column for column in node.facts.columns}

    def leaf(given: s.Expression) -> Operand | None:
        if isinstance(given, s.Call) and given in calls:
            return columns[calls[given]]
        if aggregates(given) or has_window(given) or isinstance(given, s.Star | s.Constant | s.Parameter):
            return None
        bound = inside.operand(given)
        if isinstance(bound, Constant | Literal):
            return bound
        number = next((number for number, key in keys if key == bound), None)
        if number is None and isinstance(given, s.Name):
            raise NotSupported(f'the column "{given.parts[-1]}" must be in GROUP BY or in an aggregate')
        return None if number is None else columns[number]

    return leaf
