"""A desk of its own for every test."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.conftest import RealDatabase
from tests.execute.desk import Desk
from tests.execute.watched_engine import WatchedEngine
from tests.support import shop as shop_data
from tests.support.ledgers import SqliteLedger


@pytest.fixture
async def desk(shop: RealDatabase, tmp_path: Path) -> AsyncIterator[Desk]:
    SqliteLedger.create(tmp_path / "ledger", "1/shop")
    ledger = await SqliteLedger.open(tmp_path / "ledger", "1/shop")
    engine = WatchedEngine(shop.reader_dsn)
    yield Desk(engine, ledger, shop_data.policy(), await engine.catalog())
    await engine.close()
    await ledger.close()
