"""The state of binding one statement: the numbers of its columns, and the private blocks that it found."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from rules.algebra.nodes import Node
from rules.bind.expression import Binding, Leaf
from rules.bind.group_by import BoundKey
from rules.bind.scope import PlannerContext, Scope
from rules.frozen import frozen
from rules.refusal import TooComplex
from rules.sql import syntax as s

MOST_COLUMNS = 20_000  # of all relations of one statement: CTEs are bound at every use


@frozen
class BoundSource:
    """Rows, and the names under which an analyst knows their columns."""

    node: Node
    scope: Scope


@frozen
class Outer:
    """A query that the twin computes: from released answers, public tables and functions."""


@frozen
class Ctes:
    """The CTEs that a query sees, each with those that it sees itself.

    Of a recursive one itself and those after it are names for what the twin computes: they hide tables too.
    """

    known: Mapping[str, tuple[s.Cte, "Ctes"]] = field(default_factory=dict)
    recursive: frozenset[str] = frozenset()

    def hides(self, name: str) -> bool:
        """Return whether a name without a schema means no table."""
        return name in self.known or name in self.recursive


@frozen
class FoundBlock:
    """A private block as it was found: its SELECT, its rows, and its keys."""

    select: s.Select
    source: BoundSource
    keys: tuple[BoundKey, ...]
    is_distinct: bool
    sets: tuple[tuple[int, ...], ...] = ()  # of GROUPING SETS: which keys each has


BindQuery = Callable[["BindState", s.Query, Ctes], BoundSource | Outer]


@dataclass(slots=True)
class BindState:
    """One statement while it is bound. Queries stand inside FROM and expressions: `bind_query` closes that circle."""

    context: PlannerContext
    bind_query: BindQuery
    has_subqueries: bool  # in expressions
    blocks: dict[int, FoundBlock] = field(default_factory=dict)  # by the number of their SELECT
    _columns: int = 0

    def fresh(self) -> int:
        """Number one more column."""
        self._columns += 1
        if self._columns > MOST_COLUMNS:
            raise TooComplex("the statement reads too many columns through its subqueries")
        return self._columns

    def query(self, query: s.Query, ctes: Ctes) -> BoundSource | Outer:
        return self.bind_query(self, query, ctes)

    def found_blocks(self) -> frozenset[int]:
        """Number the blocks that were met so far."""
        return frozenset(self.blocks)

    def leave_out(self, blocks: frozenset[int]) -> None:
        """Forget blocks: they are answered first, in a statement of their own."""
        for number in blocks:
            del self.blocks[number]

    def reading(self, leaf: Leaf) -> Binding:
        """Bind expressions whose names mean these columns."""
        return Binding(leaf, self.context, self.context.setting)
