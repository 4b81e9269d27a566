"""Find when a synopsis or a cube has to be made: once, or once in each of its periods."""

from datetime import datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from proxy.execute.rulebook import Rulebook
from rules.accounting.store import LedgerStore
from rules.policy.synopses import account_name

AGAIN: Final = timedelta(hours=1)  # after a make that failed


async def is_due(name: str, rulebook: Rulebook, ledger: LedgerStore, now: datetime) -> bool:
    """Tell whether nothing was charged for it since it had to be made last; what failed after its charge is not due."""
    review = await ledger.review(account_name(name), rulebook.budgets, now, most_charges=1)
    refresh, time_zone = rulebook.policy.synopses[name].refresh, rulebook.policy.budget.time_zone
    begins = period_start(now, refresh, time_zone)
    if review.charges:
        return begins is not None and review.charges[-1].time < begins
    return begins is not None or not review.analyst.lifetime


def period_start(now: datetime, refresh: str, time_zone: str) -> datetime | None:
    """Find when the period that a refresh is for began; None where there is none.

    Example:
        >>> str(period_start(datetime.fromisoformat("2026-11-22T20:00:00+00:00"), "month", "UTC"))
        '2026-11-01 00:00:00+00:00'
    """
    local = now.astimezone(ZoneInfo(time_zone)).replace(hour=0, minute=0, second=0, microsecond=0)
    match refresh:
        case "day":
            return local
        case "week":
            return local - timedelta(days=local.weekday())
        case "month":
            return local.replace(day=1)
    return None
