"""Snapshots of a real database: pinned, private about failures, and back after every kind of loss."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable

import psycopg
import pytest

from proxy.engine import postgres
from proxy.engine.engine import EngineAway, EngineError, EngineTooOld, Row, SchemaChanged, UnknownTimeZone
from proxy.engine.postgres import PostgresEngine
from proxy.twin.embedded import Cluster
from rules.catalog import Table, TableName
from tests.conftest import RealDatabase, make_shop
from tests.waiting import is_active, until


@pytest.fixture(scope="module")
async def own_shop(real_cluster: Cluster) -> RealDatabase:
    """A shop that these tests may change."""
    return make_shop(real_cluster, "engine_shop")


@pytest.fixture
async def engine(own_shop: RealDatabase) -> AsyncIterator[PostgresEngine]:
    engine = PostgresEngine(own_shop.reader_dsn, connections=2)
    yield engine
    await engine.close()


async def run(engine: PostgresEngine, *statements: str, time_zone: str = "UTC", seconds: float = 10) -> list[list[Row]]:
    async with engine.snapshot(time_zone=time_zone, timeout_seconds=seconds) as snapshot:
        return [list(await snapshot.run(statement)) for statement in statements]


async def orders(engine: PostgresEngine) -> Table:
    found = (await engine.catalog()).find_table(TableName("public", "orders"))
    assert found is not None
    return found


async def test_values_come_as_canonical_text_whatever_the_roles_settings_are(
    engine: PostgresEngine, own_shop: RealDatabase
) -> None:
    with own_shop.connect() as connection:
        connection.execute("ALTER ROLE noisegate_reader SET DateStyle = 'SQL, DMY'")
        connection.execute("ALTER ROLE noisegate_reader SET standard_conforming_strings = off")
        connection.execute("ALTER ROLE noisegate_reader SET search_path = public")
    sql = r"SELECT date '2024-02-01', 0.1::float8, '\x41'::bytea, NULL, true, 'a\b', interval '1 day', $$%s$$"
    try:
        ((row,), (path,), (moment,)) = await run(
            engine,
            sql,
            "SHOW search_path",
            "SELECT timestamptz '2024-07-01 12:00Z'",
            time_zone="Europe/Berlin",
        )
    finally:
        with own_shop.connect() as connection:
            connection.execute("ALTER ROLE noisegate_reader RESET ALL")
    assert row == ("2024-02-01", "0.1", r"\x41", None, "t", r"a\b", "1 day", "%s")
    assert path == ('""',)
    assert moment == ("2024-07-01 14:00:00+02",)


async def test_all_statements_of_a_snapshot_see_the_same_rows(engine: PostgresEngine, own_shop: RealDatabase) -> None:
    count = "SELECT count(*) FROM public.products"
    async with engine.snapshot(time_zone="UTC", timeout_seconds=10) as snapshot:
        before = await snapshot.run(count)
        with own_shop.connect() as connection:
            connection.execute("INSERT INTO products VALUES (999, 'New', 'tool', 1)")
        assert await snapshot.run(count) == before
    (after,) = await run(engine, count)
    assert after != before


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT email::int FROM public.customers",
        "SELECT 1 / (id - id) FROM public.customers",
        "INSERT INTO public.products VALUES (1)",
        "SELECT * FROM public.staff",
        "SELECT count(*) FROM orders",
        "no sql at all",
    ],
)
async def test_no_failure_says_a_word_of_the_servers(engine: PostgresEngine, sql: str) -> None:
    with pytest.raises(EngineError) as caught:
        await run(engine, sql)
    assert caught.value.args == ()
    assert caught.value.__suppress_context__
    assert await run(engine, "SELECT 1") == [[("1",)]]


async def test_a_statement_ends_with_its_time(engine: PostgresEngine) -> None:
    with pytest.raises(EngineError):
        await asyncio.wait_for(run(engine, "SELECT pg_sleep(60)", seconds=0.3), 5)
    assert await run(engine, "SELECT 1") == [[("1",)]]


async def test_cancel_stops_what_runs_and_all_that_would_follow(engine: PostgresEngine, own_shop: RealDatabase) -> None:
    async with engine.snapshot(time_zone="UTC", timeout_seconds=60) as snapshot:
        running = asyncio.create_task(_failure(snapshot.run("SELECT pg_sleep(50) /* cancel me */")))
        await until(lambda: is_active(own_shop.dsn, "cancel me"))
        await snapshot.cancel()
        assert await asyncio.wait_for(running, 5)
        assert await _failure(snapshot.run("SELECT 1"))
    await until(lambda: not is_active(own_shop.dsn, "cancel me"))
    assert await run(engine, "SELECT 1") == [[("1",)]]


async def _failure(running: Awaitable[object]) -> bool:
    try:
        await running
    except EngineError:
        return True
    return False


async def test_a_lost_connection_is_replaced_before_a_snapshot_and_never_during_one(
    engine: PostgresEngine, own_shop: RealDatabase
) -> None:
    await run(engine, "SELECT 1")
    end_all(own_shop)
    async with engine.snapshot(time_zone="UTC", timeout_seconds=10) as snapshot:
        assert await snapshot.run("SELECT 1") == [("1",)]
        end_all(own_shop)
        with pytest.raises(EngineError):
            await snapshot.run("SELECT 1")
    assert await run(engine, "SELECT 1") == [[("1",)]]


def end_all(own_shop: RealDatabase) -> None:
    with own_shop.connect() as connection:
        ended = "FROM pg_stat_activity WHERE usename = 'noisegate_reader'"
        connection.execute(f"SELECT pg_terminate_backend(pid) {ended}")
        deadline = time.monotonic() + 5
        while connection.execute(f"SELECT {ended}").fetchall():
            assert time.monotonic() < deadline
            time.sleep(0.01)


async def test_a_server_too_old_is_told_by_its_version(
    engine: PostgresEngine, own_shop: RealDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "SERVERS", range(99, 100))
    with own_shop.connect() as connection:
        release = (connection.info.parameter_status("server_version") or "").split()[0]  # Debian adds its own
    with pytest.raises(EngineTooOld, match=f"is PostgreSQL {release}, and has to be 99 or newer"):
        await engine.catalog()


@pytest.mark.parametrize(("number", "shown"), [(130023, "13.23"), (90624, "9.6.24"), (80002, "8.0.2")])
def test_a_version_is_written_as_its_server_writes_it(number: int, shown: str) -> None:
    assert postgres.written_version(number) == shown


async def test_an_abandoned_snapshot_leaves_nothing_running(engine: PostgresEngine, own_shop: RealDatabase) -> None:
    task = asyncio.create_task(run(engine, "SELECT pg_sleep(50) /* abandon me */", seconds=60))
    await until(lambda: is_active(own_shop.dsn, "abandon me"))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await until(lambda: not is_active(own_shop.dsn, "abandon me"))


async def test_a_server_that_is_away_is_said_to_be(own_shop: RealDatabase) -> None:
    engine = PostgresEngine(f"host={own_shop.cluster.directory} port=1 dbname=shop connect_timeout=2")
    with pytest.raises(EngineAway, match="cannot connect"):
        await engine.catalog()


async def test_a_table_that_changed_since_it_was_planned_stops_the_snapshot(
    engine: PostgresEngine, own_shop: RealDatabase
) -> None:
    planned = await orders(engine)
    async with engine.snapshot(time_zone="UTC", timeout_seconds=10, tables=[planned]) as snapshot:
        assert await snapshot.run("SELECT 1") == [("1",)]
        with own_shop.connect() as connection, pytest.raises(psycopg.errors.LockNotAvailable):
            connection.execute("SET lock_timeout = '100ms'")
            connection.execute("ALTER TABLE orders DROP COLUMN note")
    with own_shop.connect() as connection:
        connection.execute("ALTER TABLE orders ALTER customer_id DROP NOT NULL")
    with pytest.raises(SchemaChanged):
        async with engine.snapshot(time_zone="UTC", timeout_seconds=10, tables=[planned]):
            pass
    async with engine.snapshot(time_zone="UTC", timeout_seconds=10, tables=[await orders(engine)]):
        pass


async def test_a_label_more_than_was_planned_with_stops_the_snapshot(
    engine: PostgresEngine, own_shop: RealDatabase
) -> None:
    """By a unique key of unit and enum a unit has as many rows as there are labels."""
    with own_shop.connect() as connection:
        connection.execute("CREATE TYPE shade AS ENUM ('light'); ALTER TABLE orders ADD COLUMN shade shade")
    planned = await orders(engine)
    with own_shop.connect() as connection:
        connection.execute("ALTER TYPE shade ADD VALUE 'dark'")
    with pytest.raises(SchemaChanged):
        async with engine.snapshot(time_zone="UTC", timeout_seconds=10, tables=[planned]):
            pass


async def test_a_table_that_is_gone_stops_the_snapshot_too(engine: PostgresEngine) -> None:
    gone = Table(TableName("public", "gone"), "table", ())
    with pytest.raises(SchemaChanged):
        async with engine.snapshot(time_zone="UTC", timeout_seconds=10, tables=[gone]):
            pass


async def test_a_connection_that_forgets_what_was_prepared_will_do(
    engine: PostgresEngine, own_shop: RealDatabase
) -> None:
    planned = await orders(engine)
    async with engine.snapshot(time_zone="UTC", timeout_seconds=10) as snapshot:
        await snapshot.run("DEALLOCATE ALL")
    for _ in range(2):
        async with engine.snapshot(time_zone="UTC", timeout_seconds=10, tables=[planned]) as snapshot:
            assert await snapshot.run("SELECT 1") == [("1",)]


@pytest.mark.parametrize("zone", ["Mars/Phobos", "UTC'; SELECT 1; --", ""])
async def test_a_time_zone_that_the_real_database_does_not_know_is_told_before_anything_runs(
    engine: PostgresEngine, zone: str
) -> None:
    with pytest.raises(UnknownTimeZone):
        await run(engine, "SELECT 1", time_zone=zone)


async def test_more_snapshots_than_connections_wait_in_line_or_give_up(engine: PostgresEngine) -> None:
    async with (
        engine.snapshot(time_zone="UTC", timeout_seconds=10),
        engine.snapshot(time_zone="UTC", timeout_seconds=10),
    ):
        with pytest.raises(EngineError):
            await run(engine, "SELECT 1", seconds=0.2)
    assert await run(engine, "SELECT 1") == [[("1",)]]


async def test_a_server_that_hides_its_identifier_is_known_by_its_place(
    engine: PostgresEngine, own_shop: RealDatabase
) -> None:
    with own_shop.connect() as connection:
        connection.execute("REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC")
        oid = connection.execute("SELECT oid FROM pg_database WHERE datname = 'engine_shop'").fetchone()
    assert oid is not None
    assert (await engine.catalog()).system_identifier == f"{own_shop.cluster.directory}:5432/{oid[0]}"


async def test_a_reader_is_no_risk_and_an_owner_is(engine: PostgresEngine, own_shop: RealDatabase) -> None:
    assert await engine.risks() == []
    owner = PostgresEngine(own_shop.dsn)
    assert ["superuser" in each for each in await owner.risks()] == [True]
    await owner.close()
    with own_shop.connect() as connection:
        connection.execute("CREATE ROLE careless LOGIN IN ROLE pg_read_server_files, pg_monitor")
        connection.execute("CREATE SCHEMA careless AUTHORIZATION careless")
        connection.execute("SET ROLE careless; CREATE TABLE careless.mine (a int)")
    careless = PostgresEngine(own_shop.cluster.dsn(own_shop.name, "careless"))
    texts = "\n".join(await careless.risks())
    await careless.close()
    for expected in ("of pg_monitor", "of pg_read_server_files", "owns 1 table", "write to 1", "create in 1"):
        assert expected in texts
