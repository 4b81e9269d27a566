"""The replay of statements: the one way from what a planner wrote to what may be run.

The planner's process writes statements, which are plain data; the process that holds the budget replays them over its
own `Ground`. What comes out is sealed, and has the sensitivities of what its SQL enforces.
"""

from collections.abc import Callable
from functools import lru_cache, partial

from rules.catalog import TableName
from rules.kernel.blocks import BlockStatement, block_values
from rules.kernel.bounded import Statement, TallyStatement, bounded, tally
from rules.kernel.ground import Ground, UnitPath
from rules.kernel.marginals import MarginalsStatement, bounded_marginals
from rules.kernel.relations import Relation, build
from rules.kernel.script import Script
from rules.kernel.statement import Bounded, Marginals, Tally

_MOST_KEPT = 1000  # of the last statements


class Kernel:
    """Replays statements over the tables of one generation of rules; raises a Refusal where nothing sound comes out."""

    __slots__ = ("_bounded", "_relation", "_tally")

    def __init__(self, ground: Ground) -> None:
        self._relation: Callable[[Script], Relation] = lru_cache(_MOST_KEPT)(partial(build, ground=ground))
        self._bounded: Callable[[Statement | BlockStatement], Bounded] = lru_cache(_MOST_KEPT)(self._make_bounded)
        self._tally: Callable[[TallyStatement], Tally] = lru_cache(_MOST_KEPT)(self._make_tally)

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


def _tables(relation: Relation) -> frozenset[TableName]:
    table_names = frozenset[TableName]().union(*map(_tables, relation.parts))
    if relation.table is None:
        return table_names
    unit = relation.table.unit
    return table_names.union(
        [relation.table.name], (hop.target for hop in unit.hops) if isinstance(unit, UnitPath) else ()
    )
