"""Analysts who have a twin each share nothing of it, and all twins follow the rules together."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator

import psycopg
import pytest
from psycopg import AsyncConnection

from proxy.engines.postgres.snapshots import PostgresEngine
from proxy.twin.twin import TwinError, TwinLimits
from proxy.twin.twins import Twins
from rules.policy.model import Policy
from tests.conftest import RealDatabase
from tests.support import shop as shop_data

EVE = shop_data.RULES.replace("  bob:", "  eve:")


@pytest.fixture(scope="module")
async def engine(shop: RealDatabase) -> AsyncIterator[PostgresEngine]:
    engine = PostgresEngine(shop.reader_dsn)
    yield engine
    await engine.close()


@pytest.fixture
async def twins(engine: PostgresEngine, shop: RealDatabase) -> AsyncIterator[Twins]:
    twins = await Twins.open(await engine.catalog(), _policy(shop), engine, TwinLimits(), apart=True)
    yield twins
    await twins.close()


def _policy(shop: RealDatabase, rules: str = shop_data.RULES) -> Policy:
    return shop_data.policy(shop.reader_dsn, rules)


async def _connect(twins: Twins, analyst: str) -> AsyncConnection:
    return await AsyncConnection.connect(twins.of(analyst).dsn(analyst), autocommit=True)


async def test_what_ends_the_sessions_of_one_analyst_ends_nobody_elses(twins: Twins) -> None:
    async with await _connect(twins, "bob") as bob:
        ada = await _connect(twins, "ada")
        os.kill(ada.info.backend_pid, signal.SIGSEGV)
        with pytest.raises(psycopg.OperationalError):
            await ada.execute("SELECT pg_sleep(5)")

        assert await (await bob.execute("SELECT count(*) FROM products")).fetchone() == (30,)


async def test_analysts_do_not_see_each_other(twins: Twins) -> None:
    async with await _connect(twins, "ada") as ada, await _connect(twins, "bob") as bob:
        await bob.execute("CREATE TEMP VIEW mine AS SELECT 'a secret of bob''s' AS word")

        for catalog in ("pg_roles", "pg_views", "pg_stat_activity", "pg_class"):
            rows = await (await ada.execute(f"SELECT c::text FROM {catalog} AS c")).fetchall()
            assert not [row for row in rows if "bob" in row[0]]


async def test_all_twins_follow_the_rules_or_none_does(
    twins: Twins, engine: PostgresEngine, shop: RealDatabase
) -> None:
    catalog = await engine.catalog()
    ada = await _connect(twins, "ada")

    await twins.refresh(catalog, _policy(shop, EVE))
    async with await _connect(twins, "eve") as eve:
        assert await (await eve.execute("SELECT count(*) FROM products")).fetchone() == (30,)
    with pytest.raises(FileNotFoundError):
        twins.socket("bob")
    assert await (await ada.execute("SELECT 1")).fetchone() == (1,)

    with pytest.raises(TwinError):
        await twins.refresh(catalog, _policy(shop, EVE.replace("  eve:", "  pg_eve:").replace("email: hidden", "")))
    twins.socket("eve")
    with pytest.raises(psycopg.errors.UndefinedColumn):
        await ada.execute("SELECT email FROM customers")
    await ada.close()


async def test_signals_and_settings_are_those_of_the_own_twin(twins: Twins) -> None:
    heard: list[tuple[str, int]] = []
    twins.hear(lambda name, process: heard.append((name, process)))
    async with await _connect(twins, "bob") as bob:
        await bob.execute("ALTER ROLE bob SET work_mem = '1MB'")
        assert not await twins.reset_roles("ada")
        assert not await twins.reset_roles("nobody")
        assert await twins.reset_roles("bob")
        process = bob.info.backend_pid
        async with asyncio.timeout(20):
            while not heard:
                await bob.execute(f"SELECT pg_catalog.noisegate_tell('cancel', {process})")
                await asyncio.sleep(0.1)
        assert set(heard) == {("cancel", process)}
        await twins.end_backends([process])
        with pytest.raises(psycopg.OperationalError):
            await bob.execute("SELECT 1")
