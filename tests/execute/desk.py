"""A service over the real shop and a real ledger, for plans that are written by hand."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal

from proxy.execute.rulebook import Rulebook
from proxy.execute.service import Answer
from rules.catalog import Catalog
from rules.mechanisms.release_plan import Block
from rules.policy.model import Policy
from tests.execute.plans import HandPlanner, plan_of
from tests.execute.watched_engine import WatchedEngine
from tests.mechanisms.sources import ConstantNoise
from tests.support.ledgers import SqliteLedger
from tests.support.written import WrittenService, with_written


@dataclass
class Desk:
    """A service over the real shop and a real ledger, with a clock that tests turn."""

    engine: WatchedEngine
    ledger: SqliteLedger
    policy: Policy
    catalog: Catalog
    now: datetime = datetime(2026, 11, 21, 12, tzinfo=UTC)
    noise: ConstantNoise = field(default_factory=lambda: ConstantNoise(0))

    def __post_init__(self) -> None:
        self.service = self.open(self.policy)

    def open(self, policy: Policy) -> WrittenService:
        return WrittenService(
            with_written(Rulebook.of(policy, self.catalog, 0)),
            HandPlanner(),
            self.engine,
            self.ledger,
            noise=self.noise,
            clock=lambda: self.now,
        )

    async def ask(self, *blocks: Block, analyst: str = "ada", seconds: float = 20, reuse: bool = True) -> Answer:
        return await self.service.answer(
            plan_of(*blocks), analyst=analyst, session="s", timeout_seconds=seconds, reuse=reuse
        )

    async def spent(self, analyst: str = "ada") -> tuple[Decimal | int, Decimal | int]:
        """By the analyst, and by all."""
        balances = await self.ledger.balances(analyst, self.service.rulebook.budgets, self.now)
        return balances[0].spent, balances[1].spent
