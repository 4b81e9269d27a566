"""Failures after the charge: each tells a little of the data, so an analyst has but a few of them a day."""

from dataclasses import replace
from datetime import datetime
from zoneinfo import ZoneInfo

from proxy.query import audit
from proxy.query.clock import Clock
from proxy.query.rulebook import Rulebook
from rules.ledger.store import Charge, LedgerStore, Receipt
from rules.refusal import InnerFailure


class Faults:
    """Counts them, durably."""

    def __init__(self, ledger: LedgerStore, clock: Clock) -> None:
        self._ledger, self._clock = ledger, clock
        self._seen: set[str] = set()  # analysts who had one since the start

    def counted(self, charge: Charge, rulebook: Rulebook) -> Charge:
        """A charge that is refused when the day's faults are used up."""
        return replace(charge, faults_since=self._today(rulebook), faults_allowed=_allowed(rulebook))

    async def check_after(self, analyst: str, rulebook: Rulebook) -> None:
        """Statements that ran while the last fault happened end like it: their success is no more told either."""
        if analyst in self._seen:
            today, allowed = self._today(rulebook), _allowed(rulebook)
            if await self._ledger.are_faults_used_up(analyst, today, allowed):
                raise inner_failure()

    async def note(self, receipt: Receipt, analyst: str, error: Exception) -> InnerFailure:
        """Count one, and return what the analyst is told of it: the same words whatever happened."""
        self._seen.add(analyst)
        audit.fault(analyst, receipt.charge, error)
        await self._ledger.fault(receipt.charge, self._clock())
        return inner_failure()

    def _today(self, rulebook: Rulebook) -> datetime:
        now = self._clock().astimezone(ZoneInfo(rulebook.budgets.time_zone))
        return now.replace(hour=0, minute=0, second=0, microsecond=0)


def _allowed(rulebook: Rulebook) -> int:
    """With none allowed, the first one is the last."""
    return max(1, rulebook.policy.max_faults)


def inner_failure() -> InnerFailure:
    """The one refusal after a charge."""
    return InnerFailure("the statement was charged, and could not be completed", hint="Its ε is spent.")
