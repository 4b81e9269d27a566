"""Statements that a test writes by hand, and a kernel that makes them what the database runs.

A planner's statement has no place for SQL, so one that is written by hand has it in the only constant of its rows. To
the product's kernel that is a public value. The kernel here takes the text as it is, with the sensitivities of the
statement's measures and caps, as if the text enforced them.
"""

from collections.abc import Sequence
from dataclasses import replace

from proxy.execute.rulebook import Rulebook
from proxy.execute.service import Service
from rules.catalog import Catalog
from rules.kernel.bounded import Ladder, Statement, TallyStatement
from rules.kernel.ground import Ground
from rules.kernel.keys import Found, Key, Listed
from rules.kernel.measures import Caps, Count, Measure, sensitivity
from rules.kernel.script import Script, Values
from rules.kernel.special.blocks import BlockStatement
from rules.kernel.statement import SEAL, Bounded, KeyColumn, Measured, Ordinals, Tally, Texts, Threshold
from rules.policy.model import Policy
from rules.replay import Kernel
from rules.values.expression import Column, Constant
from rules.values.types import TEXT

BY_HAND = set[str]()  # all texts that were sealed in this process: what they call is on no list of the kernel's
ROWS_PER_UNIT = "{rows_per_unit}"  # in a text: the statement's cap of rows, which a choice of bounds lowers
LISTED_KEY = Listed((Column(1, TEXT),), (("",),))  # a key whose values are those of a block's groups
FOUND_KEY = Found(Column(1, TEXT))  # a key whose values come from the rows


def written(
    sql: str,
    *,
    keys: tuple[KeyColumn, ...] = (),
    measures: tuple[Measured, ...] = (),
    threshold: Threshold | None = None,
) -> Bounded:
    """A sealed statement of this text."""
    BY_HAND.add(sql)
    return Bounded(sql, keys, measures, threshold, SEAL)


def statement_of(
    sql: str, measures: Sequence[Measure] = (Count(),), *, keys: tuple[Key, ...] = (), rows_per_unit: int = 1
) -> Statement:
    """A statement that says its SQL."""
    return Statement(_rows(sql), keys, tuple(measures), rows_per_unit)


def tally_of(sql: str, *ladders: Ladder, rows_per_unit: int = 1) -> TallyStatement:
    """A tally that says its SQL."""
    return TallyStatement(_rows(sql), (), ladders, rows_per_unit)


def _rows(sql: str) -> Script:
    return Values(((1, TEXT),), ((Constant(TEXT, sql),),))


NOTHING = statement_of("")  # for blocks that are never run


class WrittenKernel(Kernel):
    """The product's kernel, which also knows statements that say their SQL."""

    __slots__ = ()

    def bounded(self, statement: Statement | BlockStatement) -> Bounded:
        sql = _find_sql(statement.rows)
        if sql is None or isinstance(statement, BlockStatement):
            return super().bounded(statement)
        rows = statement.rows_per_unit
        found = any(isinstance(key, Found) for key in statement.keys)
        caps = Caps(rows, rows, scales_rows=False, scales_groups=False)
        return written(
            sql.replace(ROWS_PER_UNIT, str(rows)),
            keys=tuple(Texts() if isinstance(key, Found) else Ordinals(1) for key in statement.keys),
            measures=tuple(Measured(sensitivity(measure, caps)) for measure in statement.measures),
            threshold=Threshold(0, rows) if found else None,
        )

    def tally(self, statement: TallyStatement) -> Tally:
        sql = _find_sql(statement.rows)
        if sql is None:
            return super().tally(statement)
        BY_HAND.add(sql)
        return Tally(sql, tuple(ladder.rungs for ladder in statement.ladders), SEAL)


def _find_sql(rows: Script) -> str | None:
    match rows:
        case Values(rows=((Constant(text=sql),),)):
            return sql
    return None


def with_written(rulebook: Rulebook) -> Rulebook:
    """The rules in force, whose kernel knows written statements too."""
    return replace(rulebook, kernel=WrittenKernel(Ground(rulebook.policy, rulebook.catalog)))


class WrittenService(Service):
    """The product's service, for plans with written statements."""

    async def load(self, policy: Policy, catalog: Catalog) -> None:
        await super().load(policy, catalog)
        self._rulebook = with_written(self._rulebook)
