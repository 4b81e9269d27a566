"""A LedgerStore, wherever its home is: each promise is one job."""

import asyncio
from collections.abc import Hashable, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Self

from proxy.ledger import charges, checkpoints, promises, requests, sights, stored_releases
from proxy.ledger.checkpoints import Checkpoints
from proxy.ledger.connection import Connection
from proxy.ledger.group_commit import GroupCommit, Home
from proxy.ledger.integrity import append
from proxy.ledger.periods import Begun, begun, running_period
from proxy.ledger.promises import Asked
from proxy.ledger.requests import OperatorAnswer
from proxy.ledger.review import History, Wish, history, review
from proxy.ledger.stored_releases import Age
from rules.accounting import chain
from rules.accounting.budgets import Budgets
from rules.accounting.chain import DATASET, account_of, account_of_role
from rules.accounting.store import (
    Balance,
    Balances,
    BudgetRequest,
    Charge,
    FiledRequest,
    Grant,
    KeptBounds,
    KeptRelease,
    LedgerError,
    LedgerReview,
    Promise,
    Receipt,
    Release,
    ReleaseQuery,
    ServableReleases,
    Stop,
    Viewer,
)


class Ledger:
    """See `rules.accounting.store.LedgerStore`."""

    def __init__(self, home: Home) -> None:
        self._home, self._batches = home, GroupCommit(home)
        self.checkpoints = Checkpoints(home, self._batches)

    @classmethod
    async def at(cls, home: Home) -> Self:
        """Open a ledger that exists, verified from its newest checkpoint on; raises LedgerError with the reason."""
        ledger = cls(home)
        try:
            await ledger._batches.run(lambda connection: None, is_opening=True)
        except LedgerError as refusal:
            await ledger.close()
            reason = refusal.__cause__
            raise reason if isinstance(reason, LedgerError) else refusal from reason
        except BaseException:
            await ledger.close()
            raise
        return ledger

    async def charge(self, charge: Charge, budgets: Budgets) -> Receipt:
        return await self._batches.run(lambda connection: charges.charge(connection, charge, budgets))

    async def settle(
        self,
        charge: int,
        releases: Sequence[Release],
        *,
        beside: datetime | None = None,
        lasting: Sequence[int] = (),
    ) -> Sequence[Sequence[KeptRelease]]:
        # What a power cut takes of this cannot be served again: that costs no privacy, so it waits for no disk.
        return await self._batches.run(
            lambda connection: charges.settle(connection, charge, releases, beside, lasting), durable=False
        )

    async def fault(self, charge: int, time: datetime, *, cause: str, stops: bool) -> None:
        await self._batches.run(lambda connection: charges.fault(connection, charge, time, cause=cause, stops=stops))

    async def forgive(self, analyst: str, time: datetime) -> bool:
        return await self._batches.run(lambda connection: charges.forgive(connection, analyst, time))

    async def grant(self, grant: Grant, budgets: Budgets) -> Balance:
        """Give an analyst more to spend in the running period."""
        return await self._batches.run(lambda connection: charges.grant(connection, grant, budgets))

    async def request(
        self, analyst: str, budget_request: BudgetRequest, budgets: Budgets, now: datetime
    ) -> FiledRequest:
        return await self._batches.run(
            lambda connection: requests.file(connection, analyst, budget_request, budgets, now)
        )

    async def requests(self, budgets: Budgets, now: datetime, *, analyst: str | None = None) -> Sequence[FiledRequest]:
        return await self._batches.run(
            lambda connection: requests.filed(connection, budgets, now, analyst), durable=False
        )

    async def grant_request(
        self, number: int, answered: OperatorAnswer, budgets: Budgets, *, epsilon: Decimal | None = None
    ) -> FiledRequest:
        """Grant an open request, in whole or another ε; raises NoSuchRequest. In force at once wherever it is read."""
        return await self._batches.run(
            lambda connection: requests.grant(connection, number, answered, budgets, epsilon)
        )

    async def refuse_request(self, number: int, answered: OperatorAnswer, budgets: Budgets) -> FiledRequest:
        """Refuse an open request; raises NoSuchRequest."""
        return await self._batches.run(lambda connection: requests.refuse(connection, number, answered, budgets))

    async def keep_bounds(self, kept: KeptBounds) -> None:
        """Note what a look of the DBA has found, which was charged before."""
        await self._batches.run(lambda connection: append(connection, chain.bounds_entry(kept)))

    async def bounds(self) -> Sequence[KeptBounds]:
        """Read what looks have found, of each column the newest."""
        return await self._batches.run(charges.kept_bounds, durable=False)

    async def move(self, identity: str, time: datetime, *, before: str) -> None:
        """Bind the ledger to another database; from then on it is opened for that one alone."""
        entry = chain.move_entry(time, before=before, after=identity)
        await self._batches.run(lambda connection: append(connection, entry))

    async def close_before(self, until: datetime, time: datetime) -> tuple[int, int]:
        """Close all entries before a moment into a sum; how many there were, and charges among them."""

        def sum_up() -> checkpoints.Closing:
            with self._home.snapshot() as connection:
                return checkpoints.sum_up(connection, "", until)

        made = await asyncio.to_thread(sum_up)
        if made.after.number > made.before.number:
            await self._batches.run(lambda connection: checkpoints.close(connection, made, time))
        for job in checkpoints.deletions(made.after):
            while await self._batches.run(job):
                """Others charge between one piece and the next."""
        return made.after.number - made.before.number, made.after.charges - made.before.charges

    async def keep_promise(
        self, analyst: str, question: str, promise: Promise, budgets: Budgets, now: datetime
    ) -> None:
        def keep(connection: Connection) -> None:
            accounts = charges.accounts_of(connection, analyst, budgets, now)
            promises.keep(connection, Asked(analyst, question, accounts), promise, now)

        await self._batches.run(keep, durable=False)

    async def find_promise(self, analyst: str, question: str, budgets: Budgets, now: datetime) -> Promise | None:
        def find(connection: Connection) -> Promise | None:
            accounts = charges.accounts_of(connection, analyst, budgets, now)
            return promises.find(connection, Asked(analyst, question, accounts))

        return await self._batches.run(find, durable=False)

    async def begin_period(self, budgets: Budgets, now: datetime) -> Begun | None:
        """Begin the running period where it is of a new kind; with what, if that was charged under another kind."""

        def begin(connection: Connection) -> Begun | None:
            running_period(connection, now, budgets)
            return begun(connection, now, budgets)

        return await self._batches.run(begin)

    async def stops(self) -> Sequence[Stop]:
        return await self._batches.run(charges.stops, durable=False)

    async def find_releases(self, wanted: Sequence[ReleaseQuery], viewer: Viewer) -> Sequence[ServableReleases]:
        def find(connection: Connection) -> Sequence[ServableReleases]:
            accounts = charges.accounts_of(connection, viewer.analyst, viewer.budgets, viewer.now)
            age = Age(viewer.since, viewer.lasting)
            return [stored_releases.find(connection, query, accounts, age) for query in wanted]

        return await self._batches.run(find)

    async def find_cells(
        self, families: Sequence[str], viewer: Viewer, *, of_others: bool = False
    ) -> Sequence[KeptRelease]:
        find_cells = stored_releases.find_other_cells if of_others else stored_releases.find_cells

        def find(connection: Connection) -> Sequence[KeptRelease]:
            accounts = charges.accounts_of(connection, viewer.analyst, viewer.budgets, viewer.now)
            return find_cells(connection, families, accounts, Age(viewer.since, viewer.lasting))

        return await self._batches.run(find) if families else ()

    async def newest_of(self, analyst: str, *, measure: str | None = None) -> Sequence[KeptRelease]:
        return await self._batches.run(
            lambda connection: stored_releases.newest_of(connection, account_of(analyst), measure), durable=False
        )

    async def payers(self, release: int, analysts: Sequence[str], budgets: Budgets) -> frozenset[str]:
        """Those of these analysts who have paid for a release, now or earlier, and whose roles have."""
        accounts = await self._batches.run(lambda connection: sights.payers(connection, release))
        roles = {name: budgets.role_of(name) for name in analysts}
        return frozenset(
            name
            for name, role in roles.items()
            if account_of(name) in accounts and (role is None or account_of_role(role) in accounts)
        )

    async def balances(self, analyst: str, budgets: Budgets, now: datetime) -> Balances:
        def read(connection: Connection) -> Balances:
            return charges.balances(connection, analyst, budgets, running_period(connection, now, budgets))

        return await self._batches.run(read)

    async def history(self, wish: Wish) -> History:
        """Read what an operator may see of it, removed analysts included; those who charge do not wait."""

        def read() -> History:
            with self._home.snapshot() as connection:
                return history(connection, wish)

        return await asyncio.to_thread(read)

    async def all_balances(self, analysts: Sequence[str], budgets: Budgets, now: datetime) -> list[Balance]:
        """Of each of these analysts, and last of all together, at one moment."""

        def read(connection: Connection) -> list[Balance]:
            period = running_period(connection, now, budgets)
            own = [charges.balances(connection, name, budgets, period)[0] for name in analysts]
            return [*own, charges.balance(connection, DATASET, budgets.dataset, period)]

        return await self._batches.run(read, durable=False)

    async def role_balances(self, budgets: Budgets, now: datetime) -> dict[str, Balance]:
        """Of each role of the rules, at one moment."""

        def read(connection: Connection) -> dict[str, Balance]:
            period = running_period(connection, now, budgets)
            return {
                name: charges.balance(connection, account_of_role(name), limit, period)
                for name, limit in budgets.roles.items()
            }

        return await self._batches.run(read, durable=False)

    @property
    def has_failed(self) -> bool:
        """Tell whether a charge has failed, or something else has, and nothing was written since."""
        return self._batches.has_failed

    async def try_to_write(self) -> None:
        """Write as much as some charges do, and delete it; raises LedgerError where the home does not take that."""
        for job in (charges.write_trial, charges.delete_trial):
            await self._batches.run(job)
        self._batches.has_failed = False

    def version(self) -> Hashable | None:
        return self._batches.version()

    async def review(self, analyst: str, budgets: Budgets, now: datetime, *, most_charges: int) -> LedgerReview:
        return await self._batches.run(
            lambda connection: review(connection, analyst, budgets, now, most_charges), durable=False
        )

    async def close(self) -> None:
        await self._batches.close()
