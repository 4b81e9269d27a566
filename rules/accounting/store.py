"""Say what a home of the ledger must do. `proxy.ledger` has the homes; one test suite holds for all of them."""

from collections.abc import Hashable, Sequence
from dataclasses import field
from datetime import datetime
from decimal import Decimal
from typing import Literal, Protocol

from rules.accounting.accountant import Limit, Totals
from rules.accounting.budgets import Budgets
from rules.frozen import frozen
from rules.mechanisms.cost import Mechanism
from rules.mechanisms.noised_outputs import Text
from rules.refusal import Unavailable


class LedgerError(Unavailable):
    """The ledger cannot be used, or is not the one that it should be: nothing is answered. Logs have the reason."""

    def __init__(
        self, message: str, *, detail: str = "", hint: str = "", position: int | None = None, about: str = "",
        reason: str = "unusable",
    ) -> None:  # fmt: skip
        super().__init__(message, detail=detail, hint=hint, position=position, about=about)
        self.reason = reason


@frozen
class Promise:
    """The ε that has kept an error which an analyst asked for (noisegate.within), and what was told of it."""

    epsilon: Decimal
    notices: tuple[str, ...]
    time: datetime | None = field(default=None, compare=False)  # when the ledger got it


@frozen
class Charge:
    """Note what one statement is about to reveal; durable before it runs."""

    time: datetime
    analyst: str
    session: str
    fingerprint: str
    unit: str
    tables: tuple[str, ...]
    mechanisms: tuple[Mechanism, ...]  # fresh draws: paid by the analyst and by the dataset
    sights: tuple[int, ...] = ()  # releases shown again: paid by whoever has not seen them in this period
    statement: str = ""  # fingerprint of the analyst's text, without its constants
    shape: str = ""  # that text, with a ? for each constant
    once_since: datetime | None = None  # refused where the account was charged at this moment or later


@frozen
class Grant:
    """Note what an operator gives an analyst to spend besides, in the running period and within the budget of all."""

    time: datetime
    analyst: str
    epsilon: Decimal
    operator: str
    request: int | None = None  # that it answers
    answer: str = ""


@frozen
class BudgetRequest:
    """Note what an analyst asks for: so much ε more in the running period, and why."""

    epsilon: Decimal
    reason: str


@frozen
class KeptBounds:
    """Keep what a private look has found of a column, as texts, and for which ε."""

    time: datetime
    table: str
    column: str
    lower: str
    upper: str
    epsilon: Decimal


RequestState = Literal["open", "granted", "refused", "lapsed"]  # lapsed: its period is over


@frozen
class FiledRequest:
    """A request as the ledger keeps it, and what became of it."""

    number: int
    time: datetime
    analyst: str
    period: str
    terms: BudgetRequest
    state: RequestState = "open"
    granted: Decimal | None = None
    answer: str = ""  # what the operator says to it
    operator: str = ""


@frozen
class Release:
    """One noised measure, kept so that it can be shown again: groups as text, integers as they were noised."""

    block: str
    measure: str
    mechanism: Mechanism
    groups: tuple[tuple[Text, ...], ...]
    values: tuple[int, ...]
    vector: int | None = None  # those of a block and a charge with the same number were drawn for one price


@frozen
class ReleaseQuery:
    """A measure over an equal block, with at least this ε, over this list of groups (None: over any)."""

    block: str
    measure: str
    epsilon: Decimal
    groups: tuple[tuple[Text, ...], ...] | None
    charges: frozenset[int] | None = None  # of which one has to be, if others alone have paid for it (None: of any)
    delta: Decimal = Decimal(0)  # that may be charged for it, if others alone have paid for it


@frozen
class Viewer:
    """Whose account releases are looked for, at which moment, and which of them are fresh then."""

    analyst: str
    budgets: Budgets
    now: datetime
    since: datetime  # from when on they are fresh
    lasting: tuple[int, ...] = ()  # those of cubes: they may be older, and serve who has paid for them in any period


@frozen
class KeptRelease:
    """A release as the ledger keeps it."""

    id: int
    time: datetime
    release: Release
    paid: bool  # it is on the asking analyst's account of this period already
    shared: bool  # and on the dataset's: it was made in this period, or somebody has seen it again
    charge: int = 0  # the charge that it was drawn for
    is_lasting: bool = False  # it is of a cube, and on the analyst's account of this period or an earlier one
    vector: tuple[int, ...] = ()  # all releases that were drawn for one price with it, itself among them


@frozen
class ServableReleases:
    """Hold what may serve a measure."""

    own: tuple[KeptRelease, ...] = ()  # all on the asking analyst's account, whatever their ε: the most precise first
    other: KeptRelease | None = None  # the cheapest of those that others paid for, with at least the ε asked for


@frozen
class Balance:
    """Hold what is spent in the running period, and what may be."""

    spent: Decimal
    limit: Decimal
    lifetime: Decimal

    @property
    def left(self) -> Decimal:
        return max(Decimal(0), self.limit - self.spent)


Whose = Literal["yours", "role", "shared"]
Balances = tuple[Balance, Balance, Balance | None]  # the analyst's, the dataset's, the role's


@frozen
class Receipt:
    """A charge that is on disk."""

    charge: int
    cost: Totals  # of the analyst
    analyst: Balance
    dataset: Balance
    role: Balance | None = None  # of the analyst's role, where there is one

    @property
    def tightest(self) -> tuple[Balance, Whose]:
        """The account that ends first, and whose it is."""
        accounts: list[tuple[Balance, Whose]] = [(self.analyst, "yours"), (self.dataset, "shared")]
        if self.role is not None:
            accounts.append((self.role, "role"))
        return min(accounts, key=lambda pair: pair[0].left)

    @property
    def is_free(self) -> bool:
        """Tell whether nothing was charged, so that it only tells what is left."""
        return not self.charge


@frozen
class AccountState:
    """One account in the running period."""

    totals: Totals
    limit: Limit
    lifetime: Decimal  # Σε of all periods


@frozen
class Stop:
    """A fault after which nothing is run for an analyst."""

    analyst: str
    time: datetime
    charge: int
    cause: str  # the class of its SQLSTATE, or the name of what failed in our own reading


State = Literal["settled", "charged", "failed"]


@frozen
class PastCharge:
    """Show what one statement of an analyst's has cost, and what became of it."""

    time: datetime
    period: str
    session: str
    fingerprint: str
    tables: tuple[str, ...]
    fresh: tuple[Mechanism, ...]  # paid by the analyst and by the dataset
    seen: tuple[Mechanism, ...]  # releases shown again, paid by the analyst
    first_seen: tuple[Mechanism, ...]  # those of them that nobody had seen in this period, paid by the dataset too
    state: State  # charged: no answer was kept; it was cancelled, or runs still
    number: int = 0  # of its entry
    analyst: str = ""
    statement: str = ""  # fingerprint of the analyst's text, without its constants
    shape: str = ""  # that text, with a ? for each constant


@frozen
class LedgerReview:
    """Show what one analyst may know of the ledger, at one moment: both accounts, and the charges on the own one."""

    period: str
    analyst: AccountState
    dataset: AccountState
    charges: tuple[PastCharge, ...]  # the newest, in the order of time
    role: AccountState | None = None  # of the analyst's role, where there is one


class LedgerStore(Protocol):
    async def charge(self, charge: Charge, budgets: Budgets) -> Receipt:
        """Append durably, or raise BudgetSpent, AnalystStopped or ChargedSince. Charges never overspend together."""

    async def settle(
        self,
        charge: int,
        releases: Sequence[Release],
        *,
        beside: datetime | None = None,
        lasting: Sequence[int] = (),
    ) -> Sequence[Sequence[KeptRelease]]:
        """Keep the noised measures beside their charge.

        For each tells what else the analyst has on the account of the same measure over the same groups, no older than
        `beside`, or lasting; nothing without one. Raises AnalystStopped if a fault stopped the analyst meanwhile.
        """

    async def fault(self, charge: int, time: datetime, *, cause: str, stops: bool) -> None:
        """Note that the real database failed after this charge, and whether that stops its analyst."""

    async def forgive(self, analyst: str, time: datetime) -> bool:
        """Let an analyst ask again; False where nothing stops that one."""

    async def request(
        self, analyst: str, budget_request: BudgetRequest, budgets: Budgets, now: datetime
    ) -> FiledRequest:
        """Keep a request for more budget; raises TooMany where many of this analyst's are open."""

    async def requests(self, budgets: Budgets, now: datetime, *, analyst: str | None = None) -> Sequence[FiledRequest]:
        """All requests that the ledger still has, of one analyst or of all, in the order of time."""

    async def keep_promise(
        self, analyst: str, question: str, promise: Promise, budgets: Budgets, now: datetime
    ) -> None:
        """Keep the price of a question, named by a digest. A power cut may take it back."""

    async def find_promise(self, analyst: str, question: str, budgets: Budgets, now: datetime) -> Promise | None:
        """Find the newest one for a question, if it was made in this period and role: others did not pay the probe."""

    async def stops(self) -> Sequence[Stop]:
        """List who is stopped now, by name."""

    async def find_releases(self, wanted: Sequence[ReleaseQuery], viewer: Viewer) -> Sequence[ServableReleases]:
        """Find for each query what may serve it."""

    async def find_cells(
        self, families: Sequence[str], viewer: Viewer, *, of_others: bool = False
    ) -> Sequence[KeptRelease]:
        """Find what is on the viewer's account of blocks that are kept under one of these families.

        The lasting come first, then the newest. Of others it is what is not on that account, and costs the dataset
        nothing, since others have paid for it in this period; nothing that lasts is among it.
        """

    async def newest_of(self, analyst: str, *, measure: str | None = None) -> Sequence[KeptRelease]:
        """All releases of an account's newest charge that has any (of this measure), in the order of their numbers."""

    async def payers(self, release: int, analysts: Sequence[str], budgets: Budgets) -> frozenset[str]:
        """Those of these analysts who have paid for a release, now or earlier, and whose roles have."""

    async def balances(self, analyst: str, budgets: Budgets, now: datetime) -> Balances:
        """The analyst's, the dataset's, and the role's where there is one."""

    def version(self) -> Hashable | None:
        """Two that are equal, and not None, say that no process has written between them.

        None where this cannot be told without waiting for the ledger's home.
        """

    async def review(self, analyst: str, budgets: Budgets, now: datetime, *, most_charges: int) -> LedgerReview:
        """Both accounts, and the analyst's newest charges."""

    async def close(self) -> None: ...
