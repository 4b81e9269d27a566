"""What a home of the ledger must do. `proxy.stores` has the homes; one test suite holds for all of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Mechanism:
    """One draw as the accountant sees it."""

    epsilon: Decimal | None  # None: no pure guarantee
    delta: Decimal = Decimal(0)
    rho: Decimal = Decimal(0)


@dataclass(frozen=True, slots=True)
class Charge:
    """What one statement is about to reveal; durable before it runs."""

    time: datetime
    analyst: str
    session: str
    fingerprint: str
    tables: tuple[str, ...]
    mechanisms: tuple[Mechanism, ...]

    @property
    def epsilon(self) -> Decimal:
        return sum((mechanism.epsilon or Decimal(0) for mechanism in self.mechanisms), Decimal(0))


@dataclass(frozen=True, slots=True)
class Release:
    """One noised measure, kept so that it can be shown again: groups as text, integers as they were noised."""

    block: str
    measure: str
    epsilon: Decimal
    groups: tuple[tuple[str | None, ...], ...]
    values: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Balance:
    """What is spent in the running period, and what may be."""

    spent: Decimal
    limit: Decimal
    lifetime: Decimal

    @property
    def left(self) -> Decimal:
        return self.limit - self.spent


class LedgerStore(Protocol):
    async def charge(self, charge: Charge) -> int:
        """Append durably, or raise BudgetSpent. Concurrent charges never overspend together."""

    async def settle(self, charge_id: int, releases: Sequence[Release]) -> None:
        """Keep the noised measures beside their charge."""

    async def balance(self, analyst: str) -> tuple[Balance, Balance]:
        """The analyst's and the dataset's, now."""

    async def close(self) -> None: ...
