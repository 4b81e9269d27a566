"""A LedgerStore, wherever its home is: each promise is one job."""

from collections.abc import Sequence
from datetime import datetime
from typing import Self

from proxy.stores import entries, kept
from proxy.stores.batches import Batches, Home
from proxy.stores.connection import Connection
from proxy.stores.review import review
from rules.ledger.book import Budgets
from rules.ledger.chain import account_of
from rules.ledger.store import Balance, Charge, Found, KeptRelease, LedgerError, Receipt, Release, Review, Wanted


class Ledger:
    """See `rules.ledger.store.LedgerStore`."""

    def __init__(self, home: Home) -> None:
        self._batches = Batches(home)

    @classmethod
    async def at(cls, home: Home) -> Self:
        """Open a ledger that exists, checked from its first entry to its last; raises LedgerError with the reason."""
        ledger = cls(home)
        try:
            await ledger._batches.run(lambda connection: None)
        except LedgerError as refusal:
            await ledger.close()
            reason = refusal.__cause__
            raise reason if isinstance(reason, LedgerError) else refusal from reason
        return ledger

    async def charge(self, charge: Charge, budgets: Budgets) -> Receipt:
        return await self._batches.run(lambda connection: entries.charge(connection, charge, budgets))

    async def settle(
        self, charge: int, releases: Sequence[Release], *, beside: datetime | None = None
    ) -> Sequence[Sequence[KeptRelease]]:
        # What a power cut takes of this cannot be served again: that costs no privacy, so it waits for no disk.
        return await self._batches.run(
            lambda connection: entries.settle(connection, charge, releases, beside), durable=False
        )

    async def fault(self, charge: int, time: datetime) -> None:
        await self._batches.run(lambda connection: entries.fault(connection, charge, time))

    async def are_faults_used_up(self, analyst: str, since: datetime, allowed: int) -> bool:
        return await self._batches.run(lambda connection: entries.count_faults(connection, analyst, since) >= allowed)

    async def find_releases(
        self, wanted: Sequence[Wanted], *, analyst: str, budgets: Budgets, now: datetime, since: datetime
    ) -> Sequence[Found]:
        def find(connection: Connection) -> Sequence[Found]:
            period = entries.running_period(connection, now, budgets)
            return [kept.find(connection, each, (account_of(analyst), period), since) for each in wanted]

        return await self._batches.run(find)

    async def balances(self, analyst: str, budgets: Budgets, now: datetime) -> tuple[Balance, Balance]:
        def read(connection: Connection) -> tuple[Balance, Balance]:
            return entries.balances(connection, analyst, budgets, entries.running_period(connection, now, budgets))

        return await self._batches.run(read)

    async def review(self, analyst: str, budgets: Budgets, now: datetime, *, most_charges: int) -> Review:
        return await self._batches.run(
            lambda connection: review(connection, analyst, budgets, now, most_charges), durable=False
        )

    async def close(self) -> None:
        await self._batches.close()
