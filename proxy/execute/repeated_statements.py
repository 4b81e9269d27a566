"""Remember what a repeated statement needs: its plan, its free answer, and the price of an error that was asked for.

Plans are made by worker processes and enforced by the kernel of this process.

All that a free answer is made of stands in the ledger: the releases, who has paid for them, and what is left. While the
ledger has the same version, whichever process might have written, only the clock can change it: a release is not fresh
any more, or a new period of the budget begins.

The bound on an answer's size, from which the ε of noisegate.within follows, moves with every release that joins the
account. Who asks the same again gets what was promised on the bound of the first time.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import sha256
from typing import Final, Generic, Protocol, TypeVar

from proxy.execute.clock import Clock
from proxy.execute.question import Question
from proxy.execute.rulebook import Rulebook, StatementContext
from proxy.metrics import stage
from proxy.recent_values import RecentValues
from rules.accounting.budgets import period_of, span_of
from rules.accounting.store import LedgerStore, Promise
from rules.catalog import Catalog
from rules.planner.plan import NeedsInner, Plan, Request
from rules.policy.model import Policy
from rules.refusal import Mismatch
from rules.release.sensitivity import enforced
from rules.sql.session_settings import Within
from rules.sql.statement import Reading

_BYTES: Final = 16 * 1024 * 1024  # of requests and plans, as they are piped: a short text can have many groups
AnswerParts = TypeVar("AnswerParts")
_REMEMBERED: Final = 32 * 1024 * 1024  # bytes of answers


class Planner(Protocol):
    """Reads and plans in processes that may be killed. `proxy.execute.worker_pool` has the one that is used."""

    async def load(self, policy: Policy, catalog: Catalog) -> None: ...

    async def read(self, text: str, analyst: str) -> Reading: ...

    async def plan(self, request: Request, analyst: str) -> tuple[Plan | NeedsInner, int]:
        """Plan a statement, or say what comes first; and how many bytes that has."""


class Plans:
    """The plans of all sessions. A plan depends on its request and the rules alone, so it is remembered, enforced."""

    def __init__(self, planner: Planner) -> None:
        self._planner = planner
        self._kept: RecentValues[tuple[int, Request], Plan | NeedsInner] = RecentValues(_BYTES)

    async def plan(self, request: Request, analyst: str, rulebook: Rulebook) -> Plan | NeedsInner:
        """Plan one statement, or refuse it, or say what must be answered before."""
        if (known := self.find(request, rulebook)) is not None:
            return known
        with stage("plan"):
            plan, size = await self._planner.plan(request, analyst)
        if isinstance(plan, Plan):
            plan = replace(plan, time_zone=request.time_zone, generation=rulebook.generation, size=size)
            plan = _enforced(plan, request, rulebook)
        if not plan.depends_on_time:
            self._kept.keep((rulebook.generation, request), plan, size)
        return plan

    def find(self, request: Request, rulebook: Rulebook) -> Plan | NeedsInner | None:
        """Find the plan of a statement that was planned by these rules before."""
        return self._kept.find((rulebook.generation, request))


def _enforced(plan: Plan, request: Request, rulebook: Rulebook) -> Plan:
    """Put the numbers of the statements that are run here into a plan, whatever the planner said of them.

    Nor does it spend more than was asked for: the next one that a worker plans for may be somebody else.
    """
    kernel, size = rulebook.kernel, rulebook.policy.group_size
    blocks, foreseen = (tuple(enforced(block, kernel, size) for block in part) for part in (plan.blocks, plan.foreseen))
    epsilon, delta = sum(block.epsilon for block in blocks), sum(block.delta for block in blocks)
    if epsilon > request.epsilon or delta > request.delta:
        raise Mismatch("the plan spends more than the statement may")
    return replace(plan, blocks=blocks, foreseen=foreseen)


@dataclass(frozen=True, slots=True)
class LedgerReading:
    """Of which version of the ledger, and when, the parts of an answer are read."""

    version: Hashable | None
    now: datetime


@dataclass(frozen=True, slots=True)
class _Kept(Generic[AnswerParts]):
    plan: Plan  # as long as it is kept, no other has its id
    reading: LedgerReading
    until: datetime
    parts: AnswerParts


class FreeAnswers(Generic[AnswerParts]):
    """Remembers free answers: for each plan and analyst the last one."""

    def __init__(self, ledger: LedgerStore) -> None:
        self._ledger = ledger
        self._kept: RecentValues[tuple[int, str], _Kept[AnswerParts]] = RecentValues(_REMEMBERED)

    def reading(self, now: datetime) -> LedgerReading:
        """To be taken before any part is read: what is written meanwhile makes another version."""
        return LedgerReading(self._ledger.version(), now)

    def find(self, plan: Plan, context: StatementContext, reading: LedgerReading) -> AnswerParts | None:
        """The answer that would be found now."""
        kept = self._kept.find((id(plan), context.analyst))
        if kept is None or kept.plan is not plan or reading.version != kept.reading.version:
            return None
        return kept.parts if kept.reading.now <= reading.now < kept.until else None

    def keep(
        self,
        plan: Plan,
        context: StatementContext,
        questions: Sequence[Question],
        reading: LedgerReading,
        parts: AnswerParts,
        size: int,
    ) -> None:
        """Keep an answer of about so many bytes for which nothing was paid, and its plan, which others may forget."""
        if reading.version is None or plan.depends_on_time:
            return
        budgets, fresh_for = context.rulebook.budgets, context.rulebook.policy.fresh_for
        shown = [kept for question in questions for kept in question.shown_with if not kept.is_lasting]
        times = [kept.time + fresh_for for kept in shown]
        span = span_of(period_of(reading.now, budgets), budgets)
        until = min([reading.now + fresh_for, *times, *(() if span is None else (span[1],))])
        self._kept.keep((id(plan), context.analyst), _Kept(plan, reading, until, parts), plan.size + size)


class Promises:
    """Promises for all analysts. They are in the ledger, which knows the period that is running.

    One is as good as the probe that it follows from: for numbers that mean the same by the rules in force, and fresh.
    """

    def __init__(self, ledger: LedgerStore, clock: Clock, rulebook: Callable[[], Rulebook]) -> None:
        self._ledger, self._clock, self._rulebook = ledger, clock, rulebook

    async def find(self, analyst: str, plan: Plan, within: Within) -> Promise | None:
        rulebook, now = self._rulebook(), self._clock()
        question = _question_of(plan, within, rulebook)
        promise = await self._ledger.find_promise(analyst, question, rulebook.budgets, now)
        is_fresh = promise is not None and promise.time is not None and promise.time >= now - rulebook.policy.fresh_for
        return promise if is_fresh else None

    async def keep(self, analyst: str, plan: Plan, within: Within, promise: Promise) -> None:
        rulebook = self._rulebook()
        question = _question_of(plan, within, rulebook)
        await self._ledger.keep_promise(analyst, question, promise, rulebook.budgets, self._clock())


def _question_of(plan: Plan, within: Within, rulebook: Rulebook) -> str:
    """A digest that equal questions have, whatever ε they are planned with."""
    blocks = plan.blocks or plan.foreseen
    meaning = [rulebook.meanings.of(block.tables, block.canonical) for block in blocks]
    cuts = [(block.canonical, str(block.level), tuple(part.name for part in block.measures)) for block in blocks]
    shown = [(result.block, result.formula) for result in plan.results]
    return sha256(repr((within.text, meaning, cuts, shown)).encode()).hexdigest()
