"""A private look at the database for the DBA: planned, bounded, charged and noised as statements of analysts are.

It is charged to the account of all analysts, since they will see what is made of it, and to one of its own in the
ledger, which is nobody's.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from decimal import ROUND_DOWN, Decimal
from typing import Final

from proxy.engines.postgres.snapshots import PostgresEngine
from proxy.execute.clock import system_clock
from proxy.execute.rulebook import Rulebook
from proxy.execute.service import Service
from proxy.execute.worker_pool import PlannerPool
from proxy.ledger.ledger import Ledger
from rules.accounting.budgets import OWNER
from rules.catalog import Catalog
from rules.mechanisms.draw import OpenDPNoise
from rules.planner.plan import NeedsInner, Plan, Request
from rules.policy.look_bins import ColumnLook, LookResult, found_range, found_rows, found_values
from rules.policy.model import Policy
from rules.refusal import Refusal
from rules.release.release import shown_cells

_SECONDS: Final = 300.0
_MISSED: Final = Decimal("0.05")  # of looks may take noise in an empty bin for values


@dataclass(frozen=True, slots=True)
class Share:
    """The cost of one look."""

    epsilon: Decimal
    delta: Decimal = Decimal(0)


class PrivateLook:
    """Asks for the DBA."""

    def __init__(self, service: Service) -> None:
        self._service = service

    @classmethod
    @asynccontextmanager
    async def opened(cls, policy: Policy, catalog: Catalog, ledger: Ledger) -> AsyncIterator["PrivateLook"]:
        """With a planner and a connection of its own."""
        async with AsyncExitStack() as stack:
            engine = PostgresEngine(policy.database, connections=1, settings=policy.engine_settings)
            stack.push_async_callback(engine.close)
            planner = await PlannerPool.start(size=1)
            stack.push_async_callback(planner.close)
            await planner.load(policy, catalog)
            rulebook = Rulebook.of(policy, catalog, 0)
            yield cls(Service(rulebook, planner, engine, ledger, noise=OpenDPNoise(), clock=system_clock))

    async def is_possible(self, look: ColumnLook, share: Share) -> bool:
        """Return whether a look can be planned: nothing is read or paid."""
        try:
            return isinstance(await self._plan(look, share), Plan)
        except Refusal:
            return False

    async def find(self, look: ColumnLook, share: Share) -> LookResult:
        """Charge, look and say what noised counts tell of one look; raises a Refusal."""
        plan = await self._plan(look, share)
        assert isinstance(plan, Plan), "it was planned before"
        answer = await self._service.answer(plan, analyst=OWNER, session="look", timeout_seconds=_SECONDS, reuse=False)
        ((block, noised),) = answer.released
        groups, cells, _ = shown_cells(block, noised)
        counts = [(group[0], cell[0]) for group, cell in zip(groups, cells, strict=True)]
        if look.kind == "values":
            return found_values(counts)
        reach = noised.laws[0].reach(_MISSED / len(groups))
        return found_rows(counts, reach) if look.kind == "rows" else found_range(look, counts, reach)

    async def _plan(self, look: ColumnLook, share: Share) -> Plan | NeedsInner:
        request = Request(
            text=look.sql,
            search_path=("pg_catalog",),
            epsilon=share.epsilon,
            delta=share.delta if look.kind == "values" else Decimal(0),
            rows_per_unit=1,
            groups_per_unit=1 if look.kind == "values" else None,
            now=system_clock().isoformat(sep=" "),
        )
        return await self._service.plan(request, OWNER)


def shares_of(epsilon: Decimal, delta: Decimal, looks: Sequence[ColumnLook]) -> Share:
    """Equal parts of ε for all looks, and of δ for those that need it; rounded down."""
    values = sum(look.kind == "values" for look in looks)
    part = (epsilon / max(1, len(looks))).quantize(Decimal("1e-9"), ROUND_DOWN)
    return Share(part, delta / values if values else Decimal(0))
