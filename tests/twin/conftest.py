"""The twin of the shop, for tests that only look at it."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from proxy.engines.postgres.snapshots import PostgresEngine
from proxy.twin.twin import Twin
from tests.conftest import RealDatabase
from tests.support import shop as shop_data


@pytest.fixture(scope="package", params=[pytest.param(160000, marks=pytest.mark.extended), 180000], ids=["16", "18"])
async def twin(request: pytest.FixtureRequest, shop: RealDatabase) -> AsyncIterator[Twin]:
    version: int = request.param
    engine = PostgresEngine(shop.reader_dsn)
    catalog = replace(await engine.catalog(), version=version)
    twin = await Twin.open(catalog, shop_data.policy(shop.reader_dsn), engine)
    assert twin.version == version // 10000
    yield twin
    await twin.close()
    await engine.close()
