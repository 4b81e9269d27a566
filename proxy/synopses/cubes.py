"""The cubes of a running proxy: found in the ledger, made when they are due, charged to their readers, and listed.

A cube is made with all its statements in one snapshot, for one charge, and kept in the ledger as any answer is. It is
charged to an account of its own and to the budget of all; its readers are charged before they may use it. From then on
the answer cache finds its cells on their accounts: nothing else serves it.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from functools import partial

from proxy.engines.engine import Engine
from proxy.execute.audit import Faults
from proxy.execute.clock import Clock, Zones
from proxy.execute.execute_private import PrivateExecution
from proxy.execute.load_limits import ComputePool, CostLimits, FairSemaphore
from proxy.execute.question import nothing_known
from proxy.execute.released_cells import block_key, measure_key
from proxy.execute.rulebook import Rulebook, StatementContext
from proxy.execute.synopses import CubeState
from proxy.log import event, warn
from proxy.settings import LoadLimits
from proxy.synopses.make import DueMakes, is_mark
from proxy.synopses.shelf import Stage, fields_of
from proxy.twin.synthetic import SyntheticSchema
from rules.accounting.accountant import Limit, Totals, loss
from rules.accounting.store import Charge, KeptRelease, LedgerStore
from rules.mechanisms.draw import Noise
from rules.policy.synopses import account_name
from rules.refusal import AnalystStopped, BudgetSpent
from rules.release.sensitivity import enforced
from rules.synopses.cubes import MOST_SETS, CubePlan, plan_cube

Tell = Callable[[Mapping[str, CubeState]], None]

SECONDS = 3600.0  # that the database may take for one cube
_SESSION = "cube"


@dataclass(frozen=True, slots=True)
class CubeMaker:
    """Hold what it takes to make cubes."""

    engine: Engine
    ledger: LedgerStore
    noise: Noise
    clock: Clock
    _turns: FairSemaphore = field(default_factory=lambda: FairSemaphore(1, most=1))

    async def plan(self, name: str, rulebook: Rulebook) -> CubePlan:
        """The plan of a cube, as it is run: enforced; raises a Refusal."""
        return await asyncio.to_thread(plan_cube, name, rulebook.policy, rulebook.catalog, rulebook.kernel)

    async def make(
        self, plan: CubePlan, rulebook: Rulebook, *, once_since: datetime | None = None
    ) -> Sequence[KeptRelease]:
        """Measure all its sets and keep their noised cells; raises a Refusal or an EngineError."""
        name, loop = account_name(plan.name), asyncio.get_running_loop()
        context = StatementContext(
            name, _SESSION, rulebook, rulebook.policy.budget.time_zone, loop.time() + SECONDS, name, name,
            once_since=once_since,
        )  # fmt: skip
        zones = Zones(self.engine)
        for key_set in plan.sets:
            await zones.check(key_set.plan.zones, context.deadline)
        size = rulebook.policy.group_size
        blocks = [enforced(key_set.block, rulebook.kernel, size) for key_set in plan.sets]
        questions = [nothing_known(block, block_key(block, rulebook)) for block in blocks]
        execution = PrivateExecution(
            engine=self.engine,
            ledger=self.ledger,
            noise=self.noise,
            clock=self.clock,
            faults=Faults(self.ledger, self.clock),
            turns=self._turns,
            pool=ComputePool(),
            costs=CostLimits(LoadLimits(statements=MOST_SETS)),
            schema_changed=asyncio.Event(),
        )
        await execution.keep(questions, context)
        return await self.find(plan.name)

    async def find(self, name: str) -> Sequence[KeptRelease]:
        """The cells that were made last; none where they were dropped since."""
        kept = await self.ledger.newest_of(account_name(name))
        return () if is_mark(kept) else kept

    async def admit(
        self, kept: Sequence[KeptRelease], name: str, readers: Sequence[str], rulebook: Rulebook, *, charges: bool
    ) -> list[str]:
        """Charge each reader who has not paid for all of it yet, if told so, and return those who may use it."""
        numbers = tuple(release.id for release in kept)
        payers = [await self.ledger.payers(number, readers, rulebook.budgets) for number in numbers]
        paid = frozenset.intersection(*payers) if payers else frozenset()
        admitted = []
        for reader in readers:
            if reader not in paid and not charges:
                continue
            if reader not in paid:
                try:
                    await self.ledger.charge(self._sight(name, reader, numbers, rulebook), rulebook.budgets)
                except (BudgetSpent, AnalystStopped):
                    continue
            admitted.append(reader)
        return admitted

    def _sight(self, name: str, reader: str, numbers: tuple[int, ...], rulebook: Rulebook) -> Charge:
        account = account_name(name)
        return Charge(
            time=self.clock(),
            analyst=reader,
            session=_SESSION,
            fingerprint=account,
            unit=rulebook.policy.unit,
            tables=(),
            mechanisms=(),
            sights=numbers,
            statement=account,
            shape=account,
        )


class CubeShelf:
    """All cubes of the rules in force."""

    def __init__(self, maker: CubeMaker, stage: Stage, tell: Tell) -> None:
        self._maker, self._stage, self._tell = maker, stage, tell
        self._standing: dict[str, CubeState] = {}
        self._listed: dict[str, SyntheticSchema] = {}
        self._due = DueMakes(maker.ledger, maker.clock)
        self._paid_in: dict[str, dict[str, str | None]] = {}  # by cube and reader: the role, which has paid too
        self._plans: tuple[Rulebook | None, dict[str, CubePlan]] = (None, {})
        self._reloads = self._followed = 0  # how often rules came into force, and by which of them it is worked

    @property
    def is_empty(self) -> bool:
        return not self._standing

    async def follow(self, rulebook: Rulebook, *, makes: bool = True) -> None:
        """Bring what stands in line with the rules and the ledger, and make what is due, unless told otherwise.

        A failure leaves what there is, and is told.
        """
        self._followed = self._reloads
        for name in set(self._standing) - set(rulebook.policy.cubes):
            await self._drop(name)
        for name in rulebook.policy.cubes:
            if self._is_late:
                return
            try:
                await self._follow(name, rulebook, makes=makes)
            except Exception as error:  # noqa: BLE001 - the proxy goes on without a cube
                warn("synopsis_failed", place=name, kind=type(error).__name__, **fields_of(error))

    def reloaded(self) -> None:
        """Note that other rules are in force: by those before nothing more is made, and nobody is charged."""
        self._reloads += 1

    @property
    def _is_late(self) -> bool:
        """Tell whether other rules have come into force meanwhile."""
        return self._followed != self._reloads

    async def _drop(self, name: str) -> None:
        await self._stage.drop_synopsis(name)
        self._standing.pop(name)
        self._listed.pop(name)
        self._announce()
        event("synopsis_dropped", place=name)

    async def _follow(self, name: str, rulebook: Rulebook, *, makes: bool) -> None:
        plan = await self._planned(name, rulebook)
        if self._is_late:
            return
        make = partial(self._maker.make, plan, rulebook)
        made = await self._due.make(name, rulebook, lambda since: make(once_since=since)) if makes else None
        kept = await self._maker.find(name) if made is None else made
        if self._is_late:
            return  # the next look charges and serves by the rules that hold now
        if not kept:
            if name in self._standing:
                await self._drop(name)
            return
        wanted = plan.rules.readers(rulebook.policy.analysts)
        charges = _is_current(plan, kept, rulebook)
        readers = tuple(await self._admitted(name, kept, wanted, rulebook, charges=charges))
        state = CubeState(name, kept[0].time, readers, frozenset(release.id for release in kept))
        listed = listing_of(plan, kept, readers, rulebook)
        if self._listed.get(name) != listed:
            await self._stage.show_synopsis(listed)
            self._listed[name] = listed
            if not charges:
                warn("synopsis_outdated", place=name)
        if self._standing.get(name) != state:
            self._standing[name] = state
            self._announce()
            if charges:
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
        known, roles = self._standing.get(name), {reader: rulebook.budgets.role_of(reader) for reader in wanted}
        if known is not None and known.releases == {release.id for release in kept}:
            paid = self._paid_in.get(name, {})
            if all(reader in known.readers and paid.get(reader) == role for reader, role in roles.items()):
                return wanted  # all of them have paid, and their roles
        admitted = await self._maker.admit(kept, name, wanted, rulebook, charges=charges)
        self._paid_in[name] = {reader: roles[reader] for reader in admitted}
        return admitted

    def _announce(self) -> None:
        self._tell(dict(self._standing))


def listing_of(
    plan: CubePlan, kept: Sequence[KeptRelease], readers: tuple[str, ...], rulebook: Rulebook
) -> SyntheticSchema:
    """Write what `noisegate.synopses` says of a cube: it has no schema, since the tables themselves are asked."""
    paid = Totals().plus(release.release.mechanism for release in kept)
    budget = rulebook.policy.budget
    state = "ready" if _is_current(plan, kept, rulebook) else "outdated"
    epsilon = round(loss(paid, Limit(budget.epsilon, budget.delta)), 4).normalize()
    cells = sum(len(release.release.values) for release in kept)
    return SyntheticSchema(
        plan.name, (), readers, kept[0].time, epsilon, round(paid.rho, 9) if not paid.pure else Decimal(0), 0.0,
        state=state, cube_of=str(plan.table), cells=cells,
    )  # fmt: skip


def _is_current(plan: CubePlan, kept: Sequence[KeptRelease], rulebook: Rulebook) -> bool:
    """Tell whether these are the cells that the rules in force ask for, whatever they cost."""
    wanted = {
        (block_key(key_set.block, rulebook), measure_key(measure))
        for key_set in plan.sets
        for measure in key_set.block.measures
    }
    return wanted == {(release.release.block, release.release.measure) for release in kept}
