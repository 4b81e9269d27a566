"""The replay of statements: the way from what a planner wrote to what may be run.

The planner's process writes statements, which are plain data; the process that holds the budget replays them over its
own `Ground`, through the kernel's constructors. What comes out is sealed: a text with the sensitivities that this very
text enforces, which no mistake here can pair with another's.
"""

from collections.abc import Callable, Hashable
from typing import Final, Generic, TypeVar

from rules.catalog import TableName
from rules.kernel.bounded import Statement, TallyStatement, bounded, numbers_of, tally
from rules.kernel.ground import Ground
from rules.kernel.relation import Relation
from rules.kernel.relations import build
from rules.kernel.script import Script, Window
from rules.kernel.special.blocks import BlockStatement, block_numbers, block_values
from rules.kernel.special.marginals import MarginalsStatement, bounded_marginals
from rules.kernel.statement import Bounded, Marginals, Numbers, Tally

_ROOM: Final = 8_000_000  # characters of kept statements: each has some ten times as many bytes, with its script
_LEAST: Final = 1_000  # characters, as which the smallest statement counts
_LATEST: Final = 4  # that are kept by their identity

Key = TypeVar("Key", bound=Hashable)
Made = TypeVar("Made")


class Kept(Generic[Key, Made]):
    """Makes each value once, and forgets all of them when they have grown too large together.

    Their number says little: a list of groups, or of constants, makes one statement as large as a thousand others.
    """

    __slots__ = ("_latest", "_made", "_make", "_room", "_size", "_taken")

    def __init__(self, make: Callable[[Key], Made], size: Callable[[Made], int], room: int = _ROOM) -> None:
        self._make, self._size, self._room = make, size, room
        self._made: dict[Key, Made] = {}
        self._taken = 0
        self._latest: tuple[Key, Made] | None = None

    def __call__(self, key: Key) -> Made:
        latest = self._latest
        if latest is None or latest[0] is not key:  # to hash a statement takes longer than all else here
            latest = self._latest = key, self._find(key)
        return latest[1]

    def _find(self, key: Key) -> Made:
        known = self._made.get(key)
        if known is not None:
            return known
        made = self._make(key)
        size = self._size(made)
        if self._taken + size > self._room:
            self._made, self._taken = {}, 0
        self._made[key] = made
        self._taken += size
        return made


class Kernel:
    """Replays statements over the tables of one generation of rules; raises a Refusal where nothing sound comes out."""

    __slots__ = ("_bounded", "_ground", "_relations", "_tally")

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self._relations: tuple[Relation, ...] = ()
        self._bounded = Kept[Statement | BlockStatement, Bounded](self._make_bounded, _size)
        self._tally = Kept[TallyStatement, Tally](self._make_tally, _size)

    def relation(self, script: Script) -> Relation:
        """The local relation of a script. The newest are kept: a statement asks for one several times."""
        for made in self._relations:
            if made.script is script:
                return made
        made = build(script, self._ground)
        self._relations = (*self._relations[1 - _LATEST :], made)
        return made

    def tables(self, script: Script) -> frozenset[TableName]:
        """All tables that a relation reads, those on the way to a unit too: their keys are what is believed."""
        return self.relation(script).tables

    def bounded(self, statement: Statement | BlockStatement) -> Bounded:
        return self._bounded(statement)

    def numbers(self, statement: Statement | BlockStatement) -> Bounded | Numbers:
        """What is enforced, read of the very statement that runs."""
        return self.bounded(statement)

    def tally(self, statement: TallyStatement) -> Tally:
        return self._tally(statement)

    def marginals(self, statement: MarginalsStatement) -> Marginals:
        return bounded_marginals(self.relation(statement.rows), statement)

    def _make_bounded(self, statement: Statement | BlockStatement) -> Bounded:
        relation = self.relation(statement.rows)
        return bounded(relation, statement) if isinstance(statement, Statement) else block_values(relation, statement)

    def _make_tally(self, statement: TallyStatement) -> Tally:
        return tally(self.relation(statement.rows), statement)


class DraftingKernel(Kernel):
    """The kernel of a planner's process, where nothing runs: it writes no text that nobody there reads.

    A statement is asked for several times while it is planned, and then never again.
    """

    __slots__ = ("_latest",)

    def __init__(self, ground: Ground) -> None:
        super().__init__(ground)
        self._latest: tuple[tuple[Statement | BlockStatement, Numbers], ...] = ()

    def numbers(self, statement: Statement | BlockStatement) -> Numbers:
        for known, numbers in self._latest:
            if known is statement:
                return numbers
        made = self._make_numbers(statement)
        self._latest = (*self._latest[1 - _LATEST :], (statement, made))
        return made

    def _make_numbers(self, statement: Statement | BlockStatement) -> Numbers:
        relation = self.relation(statement.rows)
        if _has_window(relation):  # refused where rows have no order, which follows from the columns that are read
            self._make_bounded(statement)
        return (
            numbers_of(relation, statement) if isinstance(statement, Statement) else block_numbers(relation, statement)
        )


def _has_window(relation: Relation) -> bool:
    return isinstance(relation.script, Window) or any(map(_has_window, relation.parts))


def _size(made: Bounded | Tally) -> int:
    return _LEAST + len(made.sql)
