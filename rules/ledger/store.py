"""What a home of the ledger must do. `proxy.stores` has the homes; one test suite holds for all of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Literal, Protocol

from rules.ledger.accountant import Limit, Totals
from rules.ledger.book import Budgets
from rules.noise.cost import Mechanism
from rules.noise.measures import Text
from rules.refusal import Unavailable


class LedgerError(Unavailable):
    """The ledger cannot be read or written, or is not the one that it should be: nothing is answered."""


@dataclass(frozen=True, slots=True)
class Charge:
    """What one statement is about to reveal; durable before it runs."""

    time: datetime
    analyst: str
    session: str
    fingerprint: str
    unit: str
    tables: tuple[str, ...]
    mechanisms: tuple[Mechanism, ...]  # fresh draws: paid by the analyst and by the dataset
    sights: tuple[int, ...] = ()  # releases shown again: paid by whoever has not seen them in this period
    faults_since: datetime | None = None  # failures after charges of this analyst's are counted from here
    faults_allowed: int = 0


@dataclass(frozen=True, slots=True)
class Release:
    """One noised measure, kept so that it can be shown again: groups as text, integers as they were noised."""

    block: str
    measure: str
    mechanism: Mechanism
    groups: tuple[tuple[Text, ...], ...]
    values: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Wanted:
    """A measure over an equal block, with at least this ε, over this list of groups (None: over any)."""

    block: str
    measure: str
    epsilon: Decimal
    groups: tuple[tuple[Text, ...], ...] | None


@dataclass(frozen=True, slots=True)
class KeptRelease:
    """A release as the ledger keeps it."""

    id: int
    time: datetime
    release: Release
    paid: bool  # it is on the asking analyst's account of this period already
    shared: bool  # and on the dataset's: it was made in this period, or somebody has seen it again


@dataclass(frozen=True, slots=True)
class Found:
    """What may serve a measure."""

    own: tuple[KeptRelease, ...] = ()  # all on the asking analyst's account, whatever their ε: the most precise first
    other: KeptRelease | None = None  # the cheapest of those that others paid for, with at least the ε asked for


@dataclass(frozen=True, slots=True)
class Balance:
    """What is spent in the running period, and what may be."""

    spent: Decimal
    limit: Decimal
    lifetime: Decimal

    @property
    def left(self) -> Decimal:
        return max(Decimal(0), self.limit - self.spent)


@dataclass(frozen=True, slots=True)
class Receipt:
    """A charge that is on disk."""

    charge: int
    cost: Totals  # of the analyst
    analyst: Balance
    dataset: Balance


@dataclass(frozen=True, slots=True)
class Standing:
    """One account in the running period."""

    totals: Totals
    limit: Limit
    lifetime: Decimal  # Σε of all periods


State = Literal["settled", "charged", "failed"]


@dataclass(frozen=True, slots=True)
class PastCharge:
    """What one statement of an analyst's has cost, and what became of it."""

    time: datetime
    period: str
    session: str
    fingerprint: str
    tables: tuple[str, ...]
    fresh: tuple[Mechanism, ...]  # paid by the analyst and by the dataset
    seen: tuple[Mechanism, ...]  # releases shown again, paid by the analyst
    first: tuple[Mechanism, ...]  # those of them that nobody had seen in this period, paid by the dataset too
    state: State  # charged: no answer was kept; it was cancelled, or runs still


@dataclass(frozen=True, slots=True)
class Review:
    """What one analyst may know of the ledger, at one moment: both accounts, and the charges on the own one."""

    period: str
    analyst: Standing
    dataset: Standing
    charges: tuple[PastCharge, ...]  # the newest, in the order of time


class LedgerStore(Protocol):
    async def charge(self, charge: Charge, budgets: Budgets) -> Receipt:
        """Append durably, or raise BudgetSpent or TooManyFaults. Concurrent charges never overspend together."""

    async def settle(
        self, charge: int, releases: Sequence[Release], *, beside: datetime | None = None
    ) -> Sequence[Sequence[KeptRelease]]:
        """Keep the noised measures beside their charge.

        For each tells what else the analyst has on the account of the same measure over the same groups, no older than
        `beside`; nothing without one.
        """

    async def fault(self, charge: int, time: datetime) -> None:
        """Note that the real database failed after this charge."""

    async def are_faults_used_up(self, analyst: str, since: datetime, allowed: int) -> bool: ...

    async def find_releases(
        self, wanted: Sequence[Wanted], *, analyst: str, budgets: Budgets, now: datetime, since: datetime
    ) -> Sequence[Found]:
        """For each what may serve, no older than `since`."""

    async def balances(self, analyst: str, budgets: Budgets, now: datetime) -> tuple[Balance, Balance]:
        """The analyst's and the dataset's."""

    async def review(self, analyst: str, budgets: Budgets, now: datetime, *, most_charges: int) -> Review:
        """Both accounts, and the analyst's newest charges."""

    async def close(self) -> None: ...
