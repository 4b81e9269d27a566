"""Make a synopsis: plan, charge, look, noise, keep. In this order, as every statement is. When, and how one is dropped.

It is charged to an account of its own and to the budget of all; its readers are charged when they may read it. Dropping
is a mark in the ledger: it takes away what was made, for every proxy, until it is made again. What was paid stays paid.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Final, TypeVar
from zoneinfo import ZoneInfo

from proxy.engines.engine import Engine, EngineError, Snapshot
from proxy.execute.audit import Faults, failures_of
from proxy.execute.clock import Clock
from proxy.execute.rulebook import Rulebook, StatementContext
from proxy.log import event
from rules.accounting.store import Charge, KeptRelease, LedgerStore, Release
from rules.kernel.statement import Marginals
from rules.mechanisms.cost import Mechanism
from rules.mechanisms.draw import Noise
from rules.policy.synopses import account_name
from rules.refusal import AnalystStopped, BudgetSpent, ChargedSince
from rules.replay import Kernel
from rules.synopses.labels import LabelSearch, plan_labels, public_labels, read_labels, with_labels
from rules.synopses.plan import SynopsisPlan, plan_synopsis
from rules.synopses.relation import Origin
from rules.synopses.release import Labels, Measured, measured, release_synopsis
from rules.synopses.shares import price_of_counts, price_of_synopsis

SECONDS = 3600.0  # that the database may take for one synopsis
_EVER = datetime(1, 1, 1, tzinfo=UTC)
_SESSION = "synopsis"

_DROPPED: Final = "dropped"

Made = TypeVar("Made")

AGAIN: Final = timedelta(hours=1)  # after a make that failed


@dataclass(frozen=True, slots=True)
class Maker:
    """Makes synopses."""

    engine: Engine
    ledger: LedgerStore
    noise: Noise
    clock: Clock

    async def make(self, name: str, rulebook: Rulebook, *, once_since: datetime | None = None) -> KeptRelease:
        """Measure a synopsis, and keep its noised counts; raises a Refusal or an EngineError."""
        plan = plan_synopsis(name, rulebook.policy, rulebook.catalog)
        price, kernel = price_of_synopsis(plan, rulebook.policy), rulebook.kernel
        searches = plan_labels(plan, rulebook.policy, rulebook.catalog, kernel)
        faults, context = Faults(self.ledger, self.clock), _context(plan, rulebook)
        reads = [rulebook.catalog.find_table(name) for name in plan.reads]
        async with self.engine.snapshot(
            time_zone="UTC",
            timeout_seconds=SECONDS,
            tables=[table for table in reads if table is not None],
            statements=[*(kernel.bounded(search.block.statement) for search in searches), *_statements(plan, kernel)],
        ) as snapshot:
            charge = replace(self._charge(plan, price), once_since=once_since)
            receipt = await self.ledger.charge(charge, rulebook.budgets)
            try:
                labels = Labels(price, await self._find_labels(plan, searches, snapshot, rulebook))
                measured_plan = with_labels(plan, labels.by_column, rulebook.policy, rulebook.catalog)
                tables = await _look(measured_plan, _statements(measured_plan, kernel), snapshot)
                rest = price_of_counts(plan, rulebook.policy)
                release = await asyncio.to_thread(release_synopsis, measured_plan, tables, rest, self.noise, labels)
            except Exception as error:  # noqa: BLE001 - after the charge whatever it is
                raise await faults.note(receipt, context, error) from None
        await self.ledger.settle(receipt.charge, [release])
        kept = await self.find(plan)
        if kept is None:
            raise EngineError("the synopsis was not kept")
        return kept

    async def _find_labels(
        self, plan: SynopsisPlan, searches: Sequence[LabelSearch], snapshot: Snapshot, rulebook: Rulebook
    ) -> dict[Origin, tuple[str, ...]]:
        """Run the statements that find labels, and noise what they say; those of public columns are read."""
        found, size = {}, rulebook.policy.group_size
        for search in searches:
            statement = rulebook.kernel.bounded(search.block.statement)
            with failures_of(statement.sql):
                rows, codec = await snapshot.run(statement), snapshot.codec
                find = partial(search.find, rows, self.noise, group_size=size, codec=codec)
                found[search.origin] = await asyncio.to_thread(find)
        for origin in plan.read:
            found[origin] = read_labels(await snapshot.read_public(public_labels(origin)), snapshot.codec)
        return found

    async def find(self, plan: SynopsisPlan) -> KeptRelease | None:
        """The newest release of a plan; None where it was dropped since."""
        if is_mark(await self.ledger.newest_of(account_name(plan.name))):
            return None
        kept = await self.ledger.newest_of(account_name(plan.name), measure=plan.digest)
        return next(iter(kept), None)

    async def admit(
        self, kept: KeptRelease, readers: Sequence[str], rulebook: Rulebook, plan: SynopsisPlan
    ) -> list[str]:
        """Charge each reader who has not paid yet, and return those who may read."""
        paid = await self.ledger.payers(kept.id, readers, rulebook.budgets)
        admitted = []
        for reader in readers:
            if reader not in paid:
                charge = replace(
                    self._charge(plan, kept.release.mechanism), analyst=reader, mechanisms=(), sights=(kept.id,)
                )
                try:
                    await self.ledger.charge(charge, rulebook.budgets)
                except (BudgetSpent, AnalystStopped):
                    continue
            admitted.append(reader)
        return admitted

    def _charge(self, plan: SynopsisPlan, price: Mechanism) -> Charge:
        name = account_name(plan.name)
        return Charge(
            time=self.clock(),
            analyst=name,
            session=_SESSION,
            fingerprint=f"{name} {plan.digest}",
            unit=plan.unit,
            tables=tuple(map(str, plan.reads)),
            mechanisms=(price,),
            statement=name,
            shape=name,
        )


def _statements(plan: SynopsisPlan, kernel: Kernel) -> list[Marginals]:
    return [kernel.marginals(table.statement) for table in plan.tables]


async def _look(plan: SynopsisPlan, statements: Sequence[Marginals], snapshot: Snapshot) -> list[Measured]:
    counts = []
    for table, statement in zip(plan.tables, statements, strict=True):
        with failures_of(statement.sql):
            rows = await snapshot.run(statement)
            counts.append(await asyncio.to_thread(measured, table, statement, rows))
    return counts


def _context(plan: SynopsisPlan, rulebook: Rulebook) -> StatementContext:
    name = account_name(plan.name)
    return StatementContext(name, _SESSION, rulebook, "UTC", asyncio.get_running_loop().time() + SECONDS, name, name)


async def drop(name: str, rulebook: Rulebook, ledger: LedgerStore, now: datetime) -> bool:
    """Mark what was made last as dropped; return whether there was anything. It costs nothing."""
    account = account_name(name)
    made = await ledger.newest_of(account)
    if not made or is_mark(made):
        return False
    shape = f"drop {account}"
    charge = Charge(now, account, _SESSION, shape, rulebook.policy.unit, (), (), statement=shape, shape=shape)
    receipt = await ledger.charge(charge, rulebook.budgets)
    await ledger.settle(receipt.charge, [Release(account, _DROPPED, Mechanism.pure(Decimal(0)), (), ())])
    return True


def is_mark(kept: Iterable[KeptRelease]) -> bool:
    """Tell whether these releases, the newest of an account, are the mark of a drop: nothing was made since."""
    return any(release.release.measure == _DROPPED for release in kept)


class DueMakes:
    """Makes what is due: once, whichever proxy of the ledger comes first. What failed is tried again after an hour."""

    def __init__(self, ledger: LedgerStore, clock: Clock) -> None:
        self._ledger, self._clock = ledger, clock
        self._failed: dict[str, tuple[datetime, int]] = {}  # when, and by which rules

    async def make(
        self, name: str, rulebook: Rulebook, make: Callable[[datetime], Awaitable[Made]]
    ) -> Made | None:  # fmt: skip
        """Make a synopsis; None where it is not due, failed within the hour, or is being made by another proxy."""
        now, (failed, generation) = self._clock(), self._failed.get(name, (_EVER, -1))
        if generation == rulebook.generation and now - failed <= AGAIN:
            return None
        since = await _due_since(name, rulebook, self._ledger, now)
        if since is None:
            return None
        try:
            made = await make(since)
        except ChargedSince:
            return None
        except Exception:  # whatever it was: it is raised on
            self._failed[name] = now, rulebook.generation
            raise
        event("synopsis_made", place=name)
        return made


async def _due_since(name: str, rulebook: Rulebook, ledger: LedgerStore, now: datetime) -> datetime | None:
    """Find since when it has to be made; None where it was charged since then: what failed after that is not due."""
    review = await ledger.review(account_name(name), rulebook.budgets, now, most_charges=1)
    refresh, time_zone = rulebook.policy.synopses[name].refresh, rulebook.policy.budget.time_zone
    begins = _period_start(now, refresh, time_zone)
    if review.charges:
        return begins if begins is not None and review.charges[-1].time < begins else None
    return begins or (None if review.analyst.lifetime else _EVER)


def _period_start(now: datetime, refresh: str, time_zone: str) -> datetime | None:
    """Find when the period that a refresh is for began; None where there is none.

    Example:
        >>> str(_period_start(datetime.fromisoformat("2026-11-22T20:00:00+00:00"), "month", "UTC"))
        '2026-11-01 00:00:00+00:00'
    """
    local = now.astimezone(ZoneInfo(time_zone)).replace(hour=0, minute=0, second=0, microsecond=0, fold=0)
    match refresh:
        case "day":
            return local
        case "week":
            return local - timedelta(days=local.weekday())
        case "month":
            return local.replace(day=1)
    return None
