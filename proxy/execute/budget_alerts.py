"""A word to the operators when half of a budget is spent, four fifths of it, and all that a statement could use."""

from typing import Final

from proxy.log import warn
from proxy.metrics import BUDGET_ALERTS
from rules.accounting.store import Balance, Receipt

LEVELS: Final = (50, 80, 100)
_ALL: Final = 99  # percent: what is left pays for nothing that is worth asking


class BudgetAlerts:
    """What has been told of each account; a new period, or a grant, begins anew. A restart tells once more."""

    def __init__(self) -> None:
        self._told: dict[tuple[str | None, str | None], int] = {}

    def note(self, analyst: str, receipt: Receipt, role: str | None = None) -> None:
        """Look at all accounts after a charge."""
        self._note(analyst, None, receipt.analyst)
        self._note(None, None, receipt.dataset)
        if role is not None and receipt.role is not None:
            self._note(None, role, receipt.role)

    def _note(self, analyst: str | None, role: str | None, balance: Balance) -> None:
        reached, account = level_of(balance), (analyst, role)
        if reached > self._told.get(account, 0):
            of_role = {} if role is None else {"role": role}
            warn("budget_used", analyst=analyst, **of_role, percent=reached, left=float(balance.left))
            BUDGET_ALERTS.labels(str(reached)).inc()
        self._told[account] = reached


def level_of(balance: Balance) -> int:
    """The highest level that is reached.

    Example:
        >>> from decimal import Decimal
        >>> [level_of(Balance(Decimal(spent), Decimal(10), Decimal(99))) for spent in ("4.9", "5", "8.1", "9.95", "12")]
        [0, 50, 80, 100, 100]
    """
    percent = 100 * balance.spent / balance.limit if balance.limit else 100
    return max((level for level in LEVELS if percent >= min(level, _ALL)), default=0)
