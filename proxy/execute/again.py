"""Answers that cost nothing, kept whole: the same one holds for as long as nobody writes to the ledger.

All that such an answer is made of stands in the ledger: the releases, who has paid for them, and what is left. While
the ledger has the same version, whichever process might have written, only the clock can change an answer: a release is
not fresh any more, or a new period of the budget begins.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Generic, TypeVar

from proxy.execute.answer_cache import Question
from proxy.execute.statement_context import StatementContext
from proxy.recent_values import RecentValues
from rules.accounting.budgets import period_of, span_of
from rules.accounting.store import LedgerStore
from rules.planner.plan import Plan

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
        times = [kept.time + fresh_for for question in questions for kept in question.answered]
        span = span_of(period_of(reading.now, budgets), budgets)
        until = min([reading.now + fresh_for, *times, *(() if span is None else (span[1],))])
        self._kept.keep((id(plan), context.analyst), _Kept(plan, reading, until, given), size)
