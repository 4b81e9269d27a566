"""The replay of statements: the one way from what a planner wrote to what may be run.

The planner's process writes statements, which are plain data; the process that holds the budget replays them over its
own `Ground`. What comes out is sealed, and has the sensitivities of what its SQL enforces.
"""

from collections.abc import Callable, Hashable
from functools import partial
from typing import Final, Generic, TypeVar

from rules.catalog import TableName
from rules.kernel.blocks import BlockStatement, block_values
from rules.kernel.bounded import Statement, TallyStatement, bounded, tally
from rules.kernel.ground import Ground, UnitPath
from rules.kernel.marginals import MarginalsStatement, bounded_marginals
from rules.kernel.relations import Relation, build
from rules.kernel.script import Script
from rules.kernel.statement import Bounded, Marginals, Tally

_ROOM: Final = 8_000_000  # characters of kept statements: each has some ten times as many bytes around it

Key = TypeVar("Key", bound=Hashable)
Made = TypeVar("Made")


class Kept(Generic[Key, Made]):
    """Makes each value once, and forgets all of them when they have grown too large together.

    Their number says little: a list of groups, or of constants, makes one statement as large as a thousand others.
    """

    __slots__ = ("_made", "_make", "_room", "_size", "_taken")

    def __init__(self, make: Callable[[Key], Made], size: Callable[[Key, Made], int], room: int = _ROOM) -> None:
        self._make, self._size, self._room = make, size, room
        self._made: dict[Key, Made] = {}
        self._taken = 0

    def __call__(self, key: Key) -> Made:
        known = self._made.get(key)
        if known is not None:
            return known
        made = self._make(key)
        size = self._size(key, made)
        if self._taken + size > self._room:
            self._made, self._taken = {}, 0
        self._made[key] = made
        self._taken += size
        return made


class Kernel:
    """Replays statements over the tables of one generation of rules; raises a Refusal where nothing sound comes out."""

    __slots__ = ("_bounded", "_relation", "_tally")

    def __init__(self, ground: Ground) -> None:
        self._relation = Kept[Script, Relation](partial(build, ground=ground), _script_size)
        self._bounded = Kept[Statement | BlockStatement, Bounded](self._make_bounded, _sql_size)
        self._tally = Kept[TallyStatement, Tally](self._make_tally, _sql_size)

    def relation(self, script: Script) -> Relation:
        """The local relation of a script."""
        return self._relation(script)

    def tables(self, script: Script) -> frozenset[TableName]:
        """All tables that a relation reads, those on the way to a unit too: their keys are what is believed."""
        return _tables(self.relation(script))

    def bounded(self, statement: Statement | BlockStatement) -> Bounded:
        return self._bounded(statement)

    def tally(self, statement: TallyStatement) -> Tally:
        return self._tally(statement)

    def marginals(self, statement: MarginalsStatement) -> Marginals:
        return bounded_marginals(self.relation(statement.rows), statement)

    def _make_bounded(self, statement: Statement | BlockStatement) -> Bounded:
        relation = self.relation(statement.rows)
        return bounded(relation, statement) if isinstance(statement, Statement) else block_values(relation, statement)

    def _make_tally(self, statement: TallyStatement) -> Tally:
        return tally(self.relation(statement.rows), statement)


def _sql_size(statement: object, made: Bounded | Tally) -> int:
    return _LEAST + len(made.sql)


_LEAST: Final = 1_000  # characters, as which the smallest statement counts


def _script_size(script: Script, made: Relation) -> int:
    """Return about how many characters a script has in SQL: so many for each of its parts, which may be shared."""
    waiting, seen = list[object]([script]), set[int]()
    size = _LEAST
    while waiting:
        part = waiting.pop()
        if isinstance(part, str):
            size += len(part)
        elif id(part) not in seen:
            seen.add(id(part))
            size += _OF_A_PART
            fields = getattr(type(part), "__dataclass_fields__", ())
            waiting.extend(part if isinstance(part, tuple) else [getattr(part, name) for name in fields])
    return size


_OF_A_PART: Final = 10  # characters


def _tables(relation: Relation) -> frozenset[TableName]:
    table_names = frozenset[TableName]().union(*map(_tables, relation.parts))
    if relation.table is None:
        return table_names
    unit = relation.table.unit
    return table_names.union(
        [relation.table.name], (hop.target for hop in unit.hops) if isinstance(unit, UnitPath) else ()
    )
