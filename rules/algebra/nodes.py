"""The relation tree: where rows come from, and what is known of them at every step.

A node never changes. What it promises about its rows stands in its `facts`; `privacy` makes nodes and their facts
together, so that no node exists whose facts were not derived.
"""

from collections.abc import Iterator
from itertools import chain
from typing import Literal

from rules.catalog import TableName
from rules.frozen import frozen
from rules.values.expression import Column, Constant, Expression


@frozen
class Unit:
    """The column that tells whose row it is. Rows of a table without a primary key have no identity (None)."""

    kind: str  # "customers.id"; with `unit: row` the table's own name
    column: int | None


@frozen
class Rows:
    """The most rows that one unit can have: by a unique key that holds now, and by the rules."""

    proved: int | None = None
    cap: int | None = None


@frozen
class Step:
    """A column that refers to a row of another protected table, which says whose row this is."""

    column: int
    target: TableName
    target_column: str
    rows: int | None = None  # of one unit in that table, by the rules


@frozen
class Facts:
    """Facts that hold of all rows of a node, whatever the data."""

    columns: tuple[Column, ...]
    unit: Unit | None = None  # None: public rows
    rows: Rows = Rows()
    keys: frozenset[frozenset[int]] = frozenset()  # columns on which no two rows agree, if none of them is NULL
    determined: frozenset[int] = frozenset()  # columns that have one value for all rows of a unit
    determinants: frozenset[frozenset[int]] = frozenset()  # columns whose values tell the unit, if none is NULL
    aliases: frozenset[int] = frozenset()  # columns that are the unit as well, or NULL
    steps: tuple[Step, ...] = ()  # columns through which rows are linked to their unit
    anchors: tuple[Step, ...] = ()  # columns to which such steps lead
    refers: tuple[Step, ...] = ()  # columns of foreign keys, whether they lead to a unit or not
    shares: frozenset[int] = frozenset()  # numbers of which all rows of a unit have no more than one row may have
    absent: frozenset[int] = frozenset()  # columns that rows which are left out would have as NULL: see `unmatched`

    def column(self, number: int) -> Column:
        return next(column for column in self.columns if column.id == number)

    @property
    def unit_columns(self) -> frozenset[int]:
        """All columns that say whose row it is."""
        own = () if self.unit is None or self.unit.column is None else (self.unit.column,)
        return self.aliases.union(own)


@frozen
class Scan:
    """The rows of a table. A unit that is no column of its own has a number, and no name."""

    table: TableName
    names: tuple[tuple[int, str], ...]  # column numbers and their real names
    way: tuple[TableName, ...]  # the tables through which a row finds its unit
    facts: Facts
    drops_null_units: bool = False


@frozen
class KnownRows:
    """Public rows that are known before anything is asked: what was released earlier."""

    rows: tuple[tuple[Constant, ...], ...]
    facts: Facts


@frozen
class Filter:
    source: "Node"
    condition: Expression
    facts: Facts


@frozen
class Project:
    """The source's columns, and computed ones."""

    source: "Node"
    computed: tuple[tuple[int, Expression], ...]
    facts: Facts


JoinKind = Literal["inner", "left", "right", "full"]


@frozen
class Join:
    kind: JoinKind
    left: "Node"
    right: "Node"
    condition: Expression
    facts: Facts
    either: int | None = None  # the unit of a full join: the left row's, or the right row's
    tied: bool = False  # whether the equality of units was added to what is asked


@frozen
class SemiJoin:
    """The source's rows for which a row of the other relation exists, or none does; with a mark all, and which."""

    source: "Node"
    other: "Node"
    condition: Expression
    negated: bool
    mark: int | None  # the column that says it
    facts: Facts
    tied: bool = False  # as of a join


@frozen
class Aggregate:
    """A function of the rows of one unit and key; its template is ours, with {over} where OVER goes."""

    sql: str
    arguments: tuple[Expression, ...]


@frozen
class PerUnit:
    """One row for each unit and keys, with exact aggregates of that unit's own rows."""

    source: "Node"
    keys: tuple[tuple[int, Expression], ...]
    aggregates: tuple[tuple[int, Aggregate], ...]
    facts: Facts


@frozen
class Order:
    """One key of an ORDER BY."""

    expression: Expression
    descending: bool = False
    nulls_first: bool | None = None


@frozen
class Window:
    """The rows of a unit that lie together, and their order."""

    partition: tuple[Expression, ...]
    order: tuple[Order, ...]


@frozen
class WindowCall:
    """A window function of its unit's rows, and its frame."""

    function: Aggregate
    frame: str = ""


@frozen
class Gathered:
    """The source's rows, each with aggregates of the rows of the other relation that a condition ties to it."""

    source: "Node"
    other: "Node"
    condition: Expression
    aggregates: tuple[tuple[int, Aggregate], ...]
    facts: Facts


@frozen
class Windowed:
    """The source's columns, and ones computed over a window of each unit's rows."""

    source: "Node"
    window: Window
    computed: tuple[tuple[int, WindowCall], ...]
    facts: Facts


@frozen
class Union:
    """UNION ALL: the branches' columns, place by place, under numbers of its own."""

    branches: tuple["Node", ...]
    numbers: tuple[int, ...]
    sources: tuple[tuple[int, ...], ...]  # for each branch the column that each number takes
    facts: Facts


Node = Scan | KnownRows | Filter | Project | Join | SemiJoin | PerUnit | Gathered | Windowed | Union


def below(node: Node) -> tuple[Node, ...]:
    """The nodes that this one is made of."""
    match node:
        case Scan() | KnownRows():
            return ()
        case Filter(source=source) | Project(source=source) | PerUnit(source=source) | Windowed(source=source):
            return (source,)
        case SemiJoin(source=source, other=other) | Gathered(source=source, other=other):
            return (source, other)
        case Join(left=left, right=right):
            return (left, right)
        case Union(branches=branches):
            return branches


def expressions_in(node: Node) -> Iterator[Expression]:
    """All expressions of a relation: conditions, computed columns, keys, orders, and arguments of aggregates."""
    match node:
        case Filter(condition=condition) | Join(condition=condition) | SemiJoin(condition=condition):
            yield condition
        case Project(computed=computed):
            yield from (expression for _, expression in computed)
        case PerUnit(keys=keys, aggregates=aggregates):
            yield from (expression for _, expression in keys)
            yield from chain.from_iterable(aggregate.arguments for _, aggregate in aggregates)
        case Gathered(condition=condition, aggregates=aggregates):
            yield condition
            yield from chain.from_iterable(aggregate.arguments for _, aggregate in aggregates)
        case Windowed(window=window, computed=calls):
            yield from (*window.partition, *(order.expression for order in window.order))
            yield from chain.from_iterable(call.function.arguments for _, call in calls)
    for part in below(node):
        yield from expressions_in(part)


def tied_in(node: Node) -> Iterator[Join | SemiJoin]:
    """All joins to which the equality of units was added."""
    if isinstance(node, Join | SemiJoin) and node.tied:
        yield node
    for part in below(node):
        yield from tied_in(part)


def scans_in(node: Node) -> Iterator[Scan]:
    """All tables that a relation reads, in the order of the text."""
    if isinstance(node, Scan):
        yield node
    for part in below(node):
        yield from scans_in(part)


def is_of_tables(*nodes: Node) -> bool:
    """Return whether relations are made of tables and joins alone."""
    waiting = [*nodes]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Join):
            waiting += node.left, node.right
        elif not isinstance(node, Scan):
            return False
    return True
