"""A proxy without clients, whose clock tests turn, over a real database and a real ledger."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from proxy.engines.postgres.snapshots import PostgresEngine
from proxy.execute.rulebook import Rulebook
from proxy.execute.synopses import CubeBook
from proxy.synopses.cubes import CubeMaker, CubeShelf
from proxy.synopses.make import Maker
from proxy.synopses.shelf import Shelf
from proxy.twin.synthetic import SyntheticSchema
from rules.accounting.store import PastCharge
from rules.catalog import Catalog
from rules.mechanisms.draw import OpenDPNoise
from rules.policy.model import Policy
from tests.conftest import RealDatabase
from tests.support import shop as shop_data
from tests.support.ledgers import SqliteLedger

RULES = shop_data.RULES.replace(
    "budget: {epsilon: 1000, delta: 1e-6}", "budget: {epsilon: 30, delta: 1e-6, per: month}"
)
RULES = RULES.replace("epsilon: 500", "epsilon: 12")
SYNOPSIS = "synopses: {explore: {epsilon: 10, refresh: month, tables: {customers: [city, segment, is_vip]}}}\n"
CUBE = (
    "synopses: {daily: {epsilon: 10, refresh: month, cube: [customers.city, status], measures: [count, sum(amount)],"
    " table: orders}}\n"
)


@dataclass
class Shown:
    """What would be in the twins."""

    schemas: dict[str, SyntheticSchema] = field(default_factory=dict)
    times: int = 0

    async def show_synopsis(self, schema: SyntheticSchema) -> None:
        self.schemas[schema.name] = schema
        self.times += 1

    async def drop_synopsis(self, name: str) -> None:
        self.schemas.pop(name, None)


@dataclass
class Stage:
    """What synopses and cubes have in common."""

    engine: PostgresEngine
    ledger: SqliteLedger
    catalog: Catalog
    now: datetime = datetime(2026, 11, 21, 12, tzinfo=UTC)
    shown: Shown = field(default_factory=Shown)
    name: str = ""
    rules: str = ""

    def rulebook(self, rules: str = "") -> Rulebook:
        return Rulebook.of(self.policy(rules or self.rules), self.catalog, 0)

    def policy(self, rules: str) -> Policy:
        return shop_data.policy(rules=rules)

    async def charges(self, who: str = "") -> Sequence[PastCharge]:
        who = who or f"synopsis {self.name}"
        review = await self.ledger.review(who, self.rulebook().budgets, self.now, most_charges=100)
        return review.charges

    async def paid(self, who: str = "") -> int:
        """How often an account was charged for something: of two proxies one may be late, and charges nothing."""
        return sum(bool(charge.fresh or charge.seen) for charge in await self.charges(who))

    @property
    def schema(self) -> SyntheticSchema:
        return self.shown.schemas[self.name]


@dataclass
class SynopsisStage(Stage):
    """With synopses of rows."""

    name: str = "explore"
    rules: str = RULES + SYNOPSIS

    def __post_init__(self) -> None:
        self.maker = Maker(self.engine, self.ledger, OpenDPNoise(), lambda: self.now)
        self.shelf = self.started()

    def started(self) -> Shelf:
        """Another life of the proxy."""
        return Shelf(self.maker, self.shown, lambda _: None)


@dataclass
class CubeStage(Stage):
    """With cubes."""

    name: str = "daily"
    rules: str = RULES + CUBE
    book: CubeBook = field(default_factory=CubeBook)

    def __post_init__(self) -> None:
        self.maker = CubeMaker(self.engine, self.ledger, OpenDPNoise(), lambda: self.now)
        self.shelf = self.started()

    def started(self) -> CubeShelf:
        """Another life of the proxy."""
        return CubeShelf(self.maker, self.shown, self.book.tell)

    async def make(self, rulebook: Rulebook) -> None:
        await self.maker.make(await self.maker.plan("daily", rulebook), rulebook)

    @property
    def readers(self) -> tuple[str, ...]:
        return self.schema.readers


async def synopsis_stage(shop: RealDatabase, tmp_path: Path) -> AsyncIterator[SynopsisStage]:
    """A stage of synopses."""
    async for parts in _parts(shop, tmp_path):
        yield SynopsisStage(*parts)


async def cube_stage(shop: RealDatabase, tmp_path: Path) -> AsyncIterator[CubeStage]:
    """A stage of cubes."""
    async for parts in _parts(shop, tmp_path):
        yield CubeStage(*parts)


async def _parts(shop: RealDatabase, folder: Path) -> AsyncIterator[tuple[PostgresEngine, SqliteLedger, Catalog]]:
    SqliteLedger.create(folder / "ledger", "1/shop")
    ledger = await SqliteLedger.open(folder / "ledger", "1/shop")
    engine = PostgresEngine(shop.reader_dsn)
    yield engine, ledger, await engine.catalog()
    await engine.close()
    await ledger.close()
