"""The cubes of a running proxy: found in the ledger, made when they are due, charged to their readers, and listed."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Protocol

from proxy.execute.rulebook import Rulebook
from proxy.execute.synopses import CubeState
from proxy.log import event, warn
from proxy.synopses.cubes import CubeMaker, is_current
from proxy.synopses.due import AGAIN, is_due
from proxy.synopses.shelf import fields_of
from proxy.twin.synthetic import SyntheticSchema
from rules.accounting.accountant import Limit, Totals, loss
from rules.accounting.store import KeptRelease
from rules.synopses.cubes import CubePlan

Tell = Callable[[Mapping[str, CubeState]], None]


class Registry(Protocol):
    """List which cubes there are."""

    async def show_synopsis(self, schema: SyntheticSchema) -> None: ...

    async def drop_synopsis(self, name: str) -> None: ...


class CubeShelf:
    """All cubes of the rules in force."""

    def __init__(self, maker: CubeMaker, registry: Registry, tell: Tell) -> None:
        self._maker, self._registry, self._tell = maker, registry, tell
        self._standing: dict[str, CubeState] = {}
        self._listed: dict[str, SyntheticSchema] = {}
        self._failed: dict[str, datetime] = {}
        self._plans: tuple[Rulebook | None, dict[str, CubePlan]] = (None, {})

    @property
    def is_empty(self) -> bool:
        return not self._standing

    async def follow(self, rulebook: Rulebook) -> None:
        """Bring what stands in line with the rules and the ledger. A failure leaves what there is, and is told."""
        for name in set(self._standing) - set(rulebook.policy.cubes):
            await self._drop(name)
        for name in rulebook.policy.cubes:
            try:
                await self._follow(name, rulebook)
            except Exception as error:  # noqa: BLE001 - the proxy goes on without a cube
                self._failed[name] = self._maker.clock()
                warn("synopsis_failed", place=name, kind=type(error).__name__, **fields_of(error))

    async def _drop(self, name: str) -> None:
        await self._registry.drop_synopsis(name)
        self._standing.pop(name)
        self._listed.pop(name)
        self._announce()
        event("synopsis_dropped", place=name)

    async def _follow(self, name: str, rulebook: Rulebook) -> None:
        now, failed = self._maker.clock(), self._failed.get(name)
        may_try = failed is None or now - failed > AGAIN
        plan = await self._planned(name, rulebook)
        if may_try and await is_due(name, rulebook, self._maker.ledger, now):
            kept = await self._maker.make(plan, rulebook)
            event("synopsis_made", place=name)
        else:
            kept = await self._maker.find(name)
        self._failed.pop(name, None)
        if not kept:
            if name in self._standing:
                await self._drop(name)
            return
        wanted = plan.rules.readers(rulebook.policy.analysts)
        charges = is_current(plan, kept, rulebook)
        readers = tuple(await self._admitted(name, kept, wanted, rulebook, charges=charges))
        state = CubeState(name, kept[0].time, readers, frozenset(release.id for release in kept))
        listed = listing_of(plan, kept, readers, rulebook)
        if self._listed.get(name) != listed:
            await self._registry.show_synopsis(listed)
            self._listed[name] = listed
        if self._standing.get(name) != state:
            self._standing[name] = state
            self._announce()
            event("synopsis_shown", place=name, seconds=0.0)

    async def _planned(self, name: str, rulebook: Rulebook) -> CubePlan:
        """The plan by the rules in force, made once."""
        if self._plans[0] is not rulebook:
            self._plans = rulebook, {}
        plans = self._plans[1]
        if name not in plans:
            plans[name] = await self._maker.plan(name, rulebook)
        return plans[name]

    async def _admitted(
        self, name: str, kept: Sequence[KeptRelease], wanted: Sequence[str], rulebook: Rulebook, *, charges: bool
    ) -> Sequence[str]:
        """Find who may use it; nobody is charged for cells that answer nothing by the rules in force."""
        known = self._standing.get(name)
        if (
            known is not None
            and known.releases == {release.id for release in kept}
            and set(wanted) <= set(known.readers)
        ):
            return wanted  # all of them have paid
        return await self._maker.admit(kept, name, wanted, rulebook, charges=charges)

    def _announce(self) -> None:
        self._tell(dict(self._standing))


def listing_of(
    plan: CubePlan, kept: Sequence[KeptRelease], readers: tuple[str, ...], rulebook: Rulebook
) -> SyntheticSchema:
    """Write what `noisegate.synopses` says of a cube: it has no schema, since the tables themselves are asked."""
    paid = Totals().plus(release.release.mechanism for release in kept)
    budget = rulebook.policy.budget
    state = "ready" if is_current(plan, kept, rulebook) else "outdated"
    epsilon = round(loss(paid, Limit(budget.epsilon, budget.delta)), 4).normalize()
    cells = sum(len(release.release.values) for release in kept)
    return SyntheticSchema(
        plan.name, (), readers, kept[0].time, epsilon, round(paid.rho, 9) if not paid.pure else Decimal(0), 0.0,
        state=state, cube_of=str(plan.table), cells=cells,
    )  # fmt: skip
