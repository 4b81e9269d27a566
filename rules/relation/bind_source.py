"""FROM as a relation: tables by name, subqueries, and joins whose units are proved the same."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from rules.catalog import TableName
from rules.refusal import NotAllowed, NotSupported, Refusal, TooComplex, pointing_at
from rules.relation.bind_expression import Binding, Leaf
from rules.relation.expression import Apply, Column, Expression, Operand, all_of, conjuncts, ids_in
from rules.relation.foreign_key import always_finds
from rules.relation.functions.comparison import compare
from rules.relation.nodes import JoinKind, Node
from rules.relation.privacy import filtered, joined, known, projected
from rules.relation.public_values import with_known_values
from rules.relation.released import columns, constants, keys
from rules.relation.scan import Names, scan
from rules.relation.scope import Scope, UnknownName, World, merge, single
from rules.relation.types import find_common
from rules.sql import syntax as s

MOST_COLUMNS = 20_000  # of all relations of one statement: CTEs are bound at every use
RELEASED_HINT = "Join the answers to each other, or aggregate the protected table first."


@dataclass(frozen=True, slots=True)
class Relation:
    """Rows, and the names under which an analyst knows their columns."""

    node: Node
    scope: Scope


@dataclass(frozen=True, slots=True)
class Outer:
    """What the twin computes: from released answers, public tables and functions."""


@dataclass(frozen=True, slots=True)
class Ctes:
    """The CTEs that a query sees, each with those that it sees itself."""

    known: Mapping[str, tuple[s.Cte, "Ctes"]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Leaf:
    node: Node
    scope: Scope


@dataclass(frozen=True, slots=True)
class _Pair:
    kind: JoinKind
    left: "_Tree"
    right: "_Tree"
    on: s.Expression | None
    equal: tuple[tuple[str, int, int], ...]  # USING and NATURAL: name, left and right column
    merged: Names
    scope: Scope


_Tree = _Leaf | _Pair


class Sources(ABC):
    """Binds FROM; queries inside it are bound by the subclass. Column numbers are counted over one statement."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._count = 0

    def fresh(self) -> int:
        self._count += 1
        if self._count > MOST_COLUMNS:
            raise TooComplex("the statement reads too many columns through its subqueries")
        return self._count

    @abstractmethod
    def query(self, given: s.Query, ctes: Ctes) -> Relation | Outer: ...

    @abstractmethod
    def found(self) -> frozenset[int]:
        """The blocks that were met so far."""

    @abstractmethod
    def leave_out(self, blocks: frozenset[int]) -> None:
        """Forget blocks: they are answered first, in a statement of their own."""

    def tree(self, given: s.Source | None, ctes: Ctes) -> "_Tree | Outer":
        """FROM as a tree of joins whose order and links are not decided yet."""
        match given:
            case None | s.FunctionSource():
                return Outer()
            case s.TableSource():
                return self._table(given, ctes)
            case s.QuerySource():
                return self._subquery(given, ctes)
            case s.Join():
                return self._join(given, ctes)

    def _table(self, given: s.TableSource, ctes: Ctes) -> "_Tree | Outer":
        if given.schema is None and given.name in ctes.known:
            cte, seen = ctes.known[given.name]
            columns = given.columns or cte.columns
            return self._named(self.query(cte.query, seen), given.alias or given.name, columns)
        for schema in (given.schema,) if given.schema else self.world.search_path:
            name = TableName(schema, given.name)
            table, rules = self.world.catalog.find_table(name), self.world.policy.find_table(name)
            if table is not None and rules is not None:
                node, names = scan(table, rules, self.world.policy, self.world.catalog, self.fresh)
                scope = single(given.alias or given.name, names, given.columns, schema)
                return _Leaf(with_known_values(node, self.world), scope)
        return Outer()

    def _subquery(self, given: s.QuerySource, ctes: Ctes) -> "_Tree | Outer":
        try:
            return self._named(self.query(given.query, ctes), given.alias, given.columns)
        except UnknownName:
            if not given.lateral:
                raise
            hint = "Write it behind all outer joins, with a comma or LEFT JOIN … ON true, and its conditions in WHERE."
            raise NotSupported("LATERAL is not supported at this place over protected rows", hint=hint) from None

    def _named(self, found: Relation | Outer, name: str | None, columns: tuple[str, ...]) -> "_Tree | Outer":
        if isinstance(found, Outer):
            return found
        return _Leaf(found.node, single(name, found.scope.star(()), columns))

    def _join(self, given: s.Join, ctes: Ctes) -> "_Tree | Outer":
        before = self.found()
        left = self.tree(given.left, ctes)
        between = self.found()
        right = self.tree(given.right, ctes)
        if isinstance(left, Outer) and _is_protected(right):
            self.leave_out(between - before)
            left = self.answered(given.left, ctes)
        elif isinstance(right, Outer) and _is_protected(left):
            self.leave_out(self.found() - between)
            right = self.answered(given.right, ctes)
        if isinstance(left, Outer) or isinstance(right, Outer):
            return Outer()
        return self._joined(given, left, right)

    def _joined(self, given: s.Join, left: "_Tree", right: "_Tree") -> _Pair:
        kind: JoinKind = "inner" if given.kind == "cross" else given.kind
        names = given.using
        if given.natural:
            right_names = {name for name, _ in right.scope.star(())}
            names = tuple(name for name, _ in left.scope.star(()) if name in right_names)
        return self._pair(kind, left, right, given.on, names)

    def answered(self, given: s.Source | None, ctes: Ctes) -> "_Tree":
        """What the twin computes, as rows that are known before protected ones meet them."""
        match given:
            case s.QuerySource(query=query, alias=alias, columns=columns):
                return self._released(query, alias, columns)
            case s.TableSource(schema=None, name=name) if name in ctes.known:
                cte, _ = ctes.known[name]
                return self._released(cte.query, given.alias or name, given.columns or cte.columns)
            case s.Join(left=left, right=right):
                return self._joined(given, self._public_side(left, ctes), self._public_side(right, ctes))
        about = given.name if isinstance(given, s.TableSource) else ""
        raise NotSupported("protected rows are joined here with something computed", hint=RELEASED_HINT, about=about)

    def _public_side(self, given: s.Source, ctes: Ctes) -> "_Tree":
        before = self.found()
        tree = self.tree(given, ctes)
        if not isinstance(tree, Outer):
            return tree
        self.leave_out(self.found() - before)
        return self.answered(given, ctes)

    def _released(self, query: s.Query, name: str | None, aliases: tuple[str, ...]) -> _Leaf:
        found = self.world.find_released(query)
        rows = constants(found, self.world.catalog, self.world.setting())
        numbers = tuple(self.fresh() for _ in found.names)
        node = known(rows, columns(found, rows, numbers, self.world.catalog), keys(rows, numbers))
        return _Leaf(node, single(name, tuple(zip(found.names, numbers, strict=True)), aliases))

    def _pair(
        self, kind: JoinKind, left: "_Tree", right: "_Tree", on: s.Expression | None, names: tuple[str, ...]
    ) -> _Pair:
        equal, merged = [], []
        for name in names:
            first, second = left.scope.find((name,)), right.scope.find((name,))
            if first is None or second is None:
                raise NotAllowed(f'the column "{name}" is not known on both sides of the join')
            equal.append((name, first, second))
            merged.append((name, {"right": second, "full": 0}.get(kind, first) or self.fresh()))
        return _Pair(kind, left, right, on, tuple(equal), tuple(merged), merge(left.scope, right.scope, tuple(merged)))

    def build(self, tree: "_Tree", where: tuple[Expression, ...] = ()) -> Node:
        """The joins made one by one; conditions of WHERE may link the units of inner joins."""
        if isinstance(tree, _Leaf):
            return tree.node
        if tree.kind == "inner":
            return self._inner(tree, where)
        left = self.build(tree.left, where if tree.kind == "left" else ())
        right = self.build(tree.right, where if tree.kind == "right" else ())
        columns = _by_number((*left.facts.columns, *right.facts.columns))
        conditions = self._conditions(tree, columns)
        is_inner = tree.kind == "left" and always_finds(left, right, conditions, self.world.catalog)
        with pointing_at(_name(tree.right)):
            made = joined("inner" if is_inner else tree.kind, left, right, all_of(conditions), number=self.fresh())
        return projected(made, tuple(_either(tree, columns))) if tree.kind == "full" else made

    def _inner(self, tree: _Pair, where: tuple[Expression, ...]) -> Node:
        """All tables of a chain of inner joins, in the first order in which each is linked to those before it."""
        pairs, leaves = _chain(tree)
        nodes = [(_name(leaf), self.build(leaf, where)) for leaf in leaves]
        columns = _by_number(tuple(column for _, node in nodes for column in node.facts.columns))
        conditions = [each for pair in pairs for each in self._conditions(pair, columns)]
        made, waiting = nodes[0][1], nodes[1:]
        while waiting:
            made, conditions, waiting = self._next(made, conditions, waiting, where)
        return filtered(made, all_of(tuple(conditions)))

    def _next(
        self, made: Node, conditions: list[Expression], waiting: list[tuple[str, Node]], where: tuple[Expression, ...]
    ) -> tuple[Node, list[Expression], list[tuple[str, Node]]]:
        refusal: Refusal | None = None
        for place, (name, node) in enumerate(waiting):
            known = {column.id for column in (*made.facts.columns, *node.facts.columns)}
            here = [each for each in conditions if ids_in(each) <= known]
            links = (*(each for each in conditions if each in here), *where)
            try:
                with pointing_at(name):
                    following = joined(
                        "inner", made, node, all_of(tuple(here)), number=self.fresh(), inner_where=all_of(links)
                    )
            except Refusal as found:
                refusal = refusal or found
                continue
            left = [each for each in conditions if each not in here]
            return following, left, [*waiting[:place], *waiting[place + 1 :]]
        assert refusal is not None
        raise refusal

    def _conditions(self, pair: _Pair, columns: dict[int, Column]) -> tuple[Expression, ...]:
        found: list[Expression] = []
        if pair.on is not None:
            binding = Binding(names_leaf(pair.scope, columns), self.world, self.world.setting())
            found.extend(conjuncts(binding.condition(pair.on)))
        setting = self.world.setting()
        found.extend(compare("=", columns[first], columns[second], setting) for _, first, second in pair.equal)
        return tuple(found)


def _either(tree: _Pair, columns: dict[int, Column]) -> Iterator[tuple[int, Expression]]:
    """The merged columns of FULL JOIN … USING."""
    for (_, number), (_, first, second) in zip(tree.merged, tree.equal, strict=True):
        left, right = columns[first], columns[second]
        common = (find_common([left.type, right.type]) or left.type).plain()
        yield number, Apply("coalesce", "coalesce({0}, {1})", (left, right), common, nullable=True)


def names_leaf(scope: Scope, columns: dict[int, Column]) -> Leaf:
    """Names mean the columns of this scope, and so do subqueries that became columns."""

    def leaf(given: s.Expression) -> Operand | None:
        if isinstance(given, s.ScalarQuery | s.Exists | s.InQuery):
            found = scope.find_subquery(given)
            return None if found is None else columns[found]
        if not isinstance(given, s.Name):
            return None
        number = scope.find(given.parts)
        if number is None:
            raise scope.refuse(given.parts)
        return columns[number]

    return leaf


def provisional(tree: "_Tree") -> dict[int, Column]:
    """The columns of FROM before its joins are made: enough to see which conditions link units."""
    found = _by_number(tuple(column for node in _nodes(tree) for column in node.facts.columns))
    for pair in _pairs(tree):
        for (_, number), (_, first, _) in zip(pair.merged, pair.equal, strict=True):
            if number not in found and first in found:
                left = found[first]
                found[number] = Column(number, left.type, name=left.name)
    return found


def is_public(tree: "_Tree") -> bool:
    return all(node.facts.unit is None for node in _nodes(tree))


def _is_protected(tree: "_Tree | Outer") -> bool:
    return not isinstance(tree, Outer) and not is_public(tree)


def _nodes(tree: "_Tree") -> Iterator[Node]:
    if isinstance(tree, _Leaf):
        yield tree.node
    else:
        yield from _nodes(tree.left)
        yield from _nodes(tree.right)


def _pairs(tree: "_Tree") -> Iterator[_Pair]:
    if isinstance(tree, _Pair):
        yield from _pairs(tree.left)
        yield from _pairs(tree.right)
        yield tree


def _name(tree: "_Tree") -> str:
    """What the first item of a part of FROM is called."""
    return next((entry.name for entry in tree.scope.entries if entry.name), "")


def _chain(tree: "_Tree") -> tuple[list[_Pair], list["_Tree"]]:
    """The inner joins at the top of a tree, and what they join."""
    if not isinstance(tree, _Pair) or tree.kind != "inner":
        return [], [tree]
    left, right = _chain(tree.left), _chain(tree.right)
    return [*left[0], *right[0], tree], [*left[1], *right[1]]


def _by_number(columns: tuple[Column, ...]) -> dict[int, Column]:
    return {column.id: column for column in columns}
