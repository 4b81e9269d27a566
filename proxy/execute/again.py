"""Answers that cost nothing when they are asked again: kept whole, and the ε that kept an error somebody asked for.

All that a free answer is made of stands in the ledger: the releases, who has paid for them, and what is left. While the
ledger has the same version, whichever process might have written, only the clock can change it: a release is not fresh
any more, or a new period of the budget begins.

The bound on an answer's size, from which the ε of noisegate.within follows, moves with every release that joins the
account. Who asks the same again gets what was promised on the bound of the first time.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Final, Generic, TypeVar

from proxy.execute.clock import Clock
from proxy.execute.question import Question
from proxy.execute.statement_context import StatementContext
from proxy.recent_values import RecentValues
from rules.accounting.budgets import period_of, span_of
from rules.accounting.store import LedgerStore, Promise
from rules.planner.plan import Plan
from rules.sql.session_settings import Within

Given = TypeVar("Given")

_REMEMBERED: Final = 32 * 1024 * 1024  # bytes of answers


@dataclass(frozen=True, slots=True)
class LedgerReading:
    """Of which version of the ledger, and when, the parts of an answer are read."""

    version: Hashable | None
    now: datetime


@dataclass(frozen=True, slots=True)
class _Kept(Generic[Given]):
    plan: Plan  # as long as it is kept, no other has its id
    reading: LedgerReading
    until: datetime
    given: Given


class Again(Generic[Given]):
    """Remembers free answers: for each plan and analyst the last one."""

    def __init__(self, ledger: LedgerStore) -> None:
        self._ledger = ledger
        self._kept: RecentValues[tuple[int, str], _Kept[Given]] = RecentValues(_REMEMBERED)

    def reading(self, now: datetime) -> LedgerReading:
        """To be taken before any part is read: what is written meanwhile makes another version."""
        return LedgerReading(self._ledger.version(), now)

    def find(self, plan: Plan, context: StatementContext, reading: LedgerReading) -> Given | None:
        """The answer that would be found now."""
        kept = self._kept.find((id(plan), context.analyst))
        if kept is None or kept.plan is not plan or reading.version != kept.reading.version:
            return None
        return kept.given if kept.reading.now <= reading.now < kept.until else None

    def keep(
        self,
        plan: Plan,
        context: StatementContext,
        questions: Sequence[Question],
        reading: LedgerReading,
        given: Given,
        size: int,
    ) -> None:
        """Keep an answer of about so many bytes for which nothing was paid."""
        if reading.version is None or plan.depends_on_time:
            return
        budgets, fresh_for = context.rulebook.budgets, context.rulebook.policy.fresh_for
        shown = [kept for question in questions for kept in question.shown_with if not kept.is_lasting]
        times = [kept.time + fresh_for for kept in shown]
        span = span_of(period_of(reading.now, budgets), budgets)
        until = min([reading.now + fresh_for, *times, *(() if span is None else (span[1],))])
        self._kept.keep((id(plan), context.analyst), _Kept(plan, reading, until, given), size)


_MOST: Final = 4096


class Promises:
    """Promises for all analysts: the last ones at hand, all of them in the ledger."""

    def __init__(self, ledger: LedgerStore, clock: Clock) -> None:
        self._ledger, self._clock = ledger, clock
        self._kept: RecentValues[tuple[str, str], Promise] = RecentValues(_MOST)

    async def find(self, analyst: str, plan: Plan, within: Within) -> Promise | None:
        question = question_of(plan, within)
        promise = self._kept.find((analyst, question))
        if promise is None and (promise := await self._ledger.find_promise(analyst, question)) is not None:
            self._kept.keep((analyst, question), promise, 1)
        return promise

    async def keep(self, analyst: str, plan: Plan, within: Within, promise: Promise) -> None:
        question = question_of(plan, within)
        self._kept.keep((analyst, question), promise, 1)
        await self._ledger.keep_promise(analyst, question, promise, self._clock())


def question_of(plan: Plan, within: Within) -> str:
    """A digest that equal questions have, whatever ε they are planned with."""
    blocks = plan.blocks or plan.foreseen
    cuts = [(block.canonical, str(block.level), tuple(part.name for part in block.measures)) for block in blocks]
    shown = [(result.block, result.formula) for result in plan.results]
    return sha256(repr((within.text, cuts, shown)).encode()).hexdigest()
