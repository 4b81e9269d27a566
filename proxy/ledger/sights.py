"""First sights: who has paid for which release, and what it costs an account that has not.

Releases that were drawn for one price together (a pivot's columns: `Release.vector`) are private together for that
price, so an account pays for the first of them that it sees, and for the others nothing.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final

from proxy.ledger.connection import Connection
from proxy.ledger.stored_releases import check_sight, is_on, is_shared, one
from rules.accounting.chain import Account, Sight
from rules.accounting.store import KeptRelease
from rules.mechanisms.cost import Mechanism

_NOTHING: Final = Mechanism.pure(Decimal(0))


def mark_paid(connection: Connection, account: Account, releases: Iterable[int], entry: int) -> None:
    """Note that an entry has put releases on an account."""
    for release in releases:
        connection.execute(
            "INSERT INTO seen (account, period, release, entry) VALUES (?, ?, ?, ?)", (*account, release, entry)
        )


def unpaid(connection: Connection, releases: Iterable[int], account: Account, role: str | None = None) -> list[Sight]:
    """The releases among these that are not on an account, or not on that of the role, with their full cost.

    One that was made in an earlier period is not on the dataset's account of this one before somebody has seen it, nor
    on that of a role before somebody of the role has. What was seen before an analyst came to the role is not on it.
    """
    sights, period = [], account[1]
    of_role = None if role is None else (role, period)
    paid = _Paid(connection, period)
    for release in dict.fromkeys(releases):
        is_own = not is_on(connection, release, account)
        is_new = of_role is not None and not is_on(connection, release, of_role)
        if is_own or is_new:
            kept = one(connection, release, period)
            is_first = not (kept.shared or paid.by_all(kept))
            payers = [*([account] if is_own else []), *([of_role] if of_role is not None and is_new else [])]
            mechanism = _NOTHING if paid.by(kept, payers) and not is_first else kept.release.mechanism
            sights.append(Sight(release, mechanism, is_first=is_first, is_first_of_role=is_new, is_own=is_own))
            paid.note(kept, payers)
    return sights


@dataclass(frozen=True, slots=True)
class _Paid:
    """Tells who has paid for another release of a vector, before or by this charge."""

    connection: Connection
    period: str
    now: set[tuple[Account | None, int]] = field(default_factory=set)  # None: all together

    def by_all(self, kept: KeptRelease) -> bool:
        """Return whether the dataset has."""
        return any(
            (None, release) in self.now or is_shared(self.connection, release, self.period) for release in _others(kept)
        )

    def by(self, kept: KeptRelease, payers: Iterable[Account]) -> bool:
        """Return whether all of these have: a sight has one price, so the role pays again where the analyst has not."""
        others = _others(kept)
        return all(
            any((payer, release) in self.now or is_on(self.connection, release, payer) for release in others)
            for payer in payers
        )

    def note(self, kept: KeptRelease, payers: Iterable[Account]) -> None:
        """Note that these have paid for a release, and all together have."""
        self.now.update((payer, kept.id) for payer in (None, *payers))


def _others(kept: KeptRelease) -> list[int]:
    return [release for release in kept.vector if release != kept.id]


def payers(connection: Connection, release: int) -> frozenset[str]:
    """Accounts that have paid for a release, in whichever period."""
    rows = connection.execute(
        "SELECT s.account, s.period, p.entry FROM seen s LEFT JOIN entries p ON p.id = s.entry WHERE s.release = ?",
        (release,),
    )
    names = set()
    for account, period, entry in rows:
        check_sight(entry, (account, period, release))
        names.add(account)
    return frozenset(names)
