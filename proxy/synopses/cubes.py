"""Make a cube: all its statements in one snapshot, for one charge, kept in the ledger as any answer is.

It is charged to an account of its own and to the budget of all; its readers are charged before they may use it. From
then on the answer cache finds its cells on their accounts: nothing else serves it.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from proxy.engines.engine import Engine
from proxy.execute.audit import Faults
from proxy.execute.clock import Clock, Zones
from proxy.execute.execute_private import PrivateExecution
from proxy.execute.load_limits import ComputePool, CostLimits, FairSemaphore
from proxy.execute.question import nothing_known
from proxy.execute.released_cells import block_key, measure_key
from proxy.execute.rulebook import Rulebook, StatementContext
from proxy.settings import LoadLimits
from proxy.synopses.drop import is_mark
from rules.accounting.store import Charge, KeptRelease, LedgerStore
from rules.mechanisms.draw import Noise
from rules.policy.synopses import account_name
from rules.refusal import AnalystStopped, BudgetSpent
from rules.release.sensitivity import enforced
from rules.synopses.cubes import MOST_SETS, CubePlan, plan_cube

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

    async def make(self, plan: CubePlan, rulebook: Rulebook) -> Sequence[KeptRelease]:
        """Measure all its sets and keep their noised cells; raises a Refusal or an EngineError."""
        name, loop = account_name(plan.name), asyncio.get_running_loop()
        context = StatementContext(
            name, _SESSION, rulebook, rulebook.policy.budget.time_zone, loop.time() + SECONDS, name, name
        )
        zones = Zones(self.engine)
        for key_set in plan.sets:
            await zones.check(key_set.plan.zones, context.deadline)
        size = rulebook.policy.group_size
        blocks = [enforced(key_set.block, rulebook.kernel, size) for key_set in plan.sets]
        questions = [nothing_known(block, block_key(block, rulebook)) for block in blocks]
        execution = PrivateExecution(
            *(self.engine, self.ledger, self.noise, self.clock, Faults(self.ledger, self.clock), self._turns),
            *(ComputePool(), CostLimits(LoadLimits(statements=MOST_SETS)), asyncio.Event()),
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
            *(self.clock(), reader, _SESSION, account, rulebook.policy.unit, (), (), numbers),
            statement=account,
            shape=account,
        )


def is_current(plan: CubePlan, kept: Sequence[KeptRelease], rulebook: Rulebook) -> bool:
    """Tell whether these are the cells that the rules in force ask for, whatever they cost."""
    wanted = {
        (block_key(key_set.block, rulebook), measure_key(measure))
        for key_set in plan.sets
        for measure in key_set.block.measures
    }
    return wanted == {(release.release.block, release.release.measure) for release in kept}
