"""The twin of the shop, for tests that only look at it."""

from collections.abc import AsyncIterator

import pytest

from proxy.engine.postgres import PostgresEngine
from proxy.twin.twin import Twin
from tests import shop as shop_data
from tests.conftest import RealDatabase


@pytest.fixture(scope="package")
async def twin(shop: RealDatabase) -> AsyncIterator[Twin]:
    engine = PostgresEngine(shop.reader_dsn)
    twin = await Twin.open(await engine.catalog(), shop_data.policy(shop.reader_dsn), engine)
    yield twin
    await twin.close()
    await engine.close()
