"""Failures after the charge: each tells a little of the data, so an analyst has but a few of them a day."""

from datetime import datetime
from zoneinfo import ZoneInfo

from proxy.query import audit
from proxy.query.clock import Clock
from proxy.query.rulebook import Rulebook
from rules.ledger.store import LedgerStore, Receipt
from rules.refusal import InnerFailure, TooManyFaults


class Faults:
    """Counts them, durably."""

    def __init__(self, ledger: LedgerStore, clock: Clock) -> None:
        self._ledger, self._clock = ledger, clock
        self._seen: set[str] = set()  # analysts who had one since the start

    async def check(self, analyst: str, rulebook: Rulebook) -> None:
        """Refuse to run anything more when the day's faults are used up."""
        if await self._are_used_up(analyst, rulebook):
            raise TooManyFaults(
                "the real database failed too often after your statements today, so none is run",
                hint="A failure tells something of the data. Your DBA finds in the log what failed.",
            )

    async def check_after(self, analyst: str, rulebook: Rulebook) -> None:
        """Statements that ran while the last fault happened end like it: their success is no more told either."""
        if analyst in self._seen and await self._are_used_up(analyst, rulebook):
            raise inner_failure()

    async def note(self, receipt: Receipt, analyst: str, error: Exception) -> InnerFailure:
        """Count one, and return what the analyst is told of it: the same words whatever happened."""
        self._seen.add(analyst)
        audit.fault(analyst, receipt.charge, error)
        await self._ledger.fault(receipt.charge, self._clock())
        return inner_failure()

    async def _are_used_up(self, analyst: str, rulebook: Rulebook) -> bool:
        today = _start_of_day(self._clock(), rulebook.budgets.time_zone)
        return await self._ledger.count_faults(analyst, today) >= max(1, rulebook.policy.max_faults)


def inner_failure() -> InnerFailure:
    """The one refusal after a charge."""
    return InnerFailure("the statement was charged, and could not be completed", hint="Its ε is spent.")


def _start_of_day(now: datetime, time_zone: str) -> datetime:
    return now.astimezone(ZoneInfo(time_zone)).replace(hour=0, minute=0, second=0, microsecond=0)
