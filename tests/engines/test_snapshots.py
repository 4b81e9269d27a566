"""Snapshots of a real database: pinned, private about failures, and back after every kind of loss."""

import asyncio
import gc
import os
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Any

import psycopg
import pytest

from proxy.engines.engine import (
    EngineAway,
    EngineError,
    EngineTooOld,
    NotPermitted,
    Row,
    SchemaChanged,
    StatementFailed,
    UnknownTimeZone,
    Unplannable,
)
from proxy.engines.postgres import connector, snapshots
from proxy.engines.postgres.opening import OPENING, PINNED
from proxy.engines.postgres.snapshots import PostgresEngine
from proxy.twin.embedded import Cluster
from rules.catalog import Table, TableName
from rules.kernel.expressions import quoted_text
from tests.conftest import RealDatabase, make_shop
from tests.ledger.frozen import line_to
from tests.support.waiting import is_active, until
from tests.support.written import written


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
        return [list(await snapshot.run(written(statement))) for statement in statements]


class Unsealed(str):
    """What has SQL, and was not made by the kernel."""

    @property
    def sql(self) -> str:
        return str(self)


@pytest.mark.parametrize("statement", ["SELECT 1", Unsealed("SELECT 1"), None])
async def test_a_snapshot_runs_nothing_but_what_the_kernel_sealed(engine: PostgresEngine, statement: object) -> None:
    async with engine.snapshot(time_zone="UTC", timeout_seconds=10) as snapshot:
        with pytest.raises(EngineError):
            await snapshot.run(statement)  # type: ignore[arg-type]
        assert await snapshot.run(written("SELECT 2")) == [(b"2",)]  # and nothing of it reached the server


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
    assert row == (b"2024-02-01", b"0.1", rb"\x41", None, b"t", rb"a\b", b"1 day", b"%s")
    assert path == (b"pg_catalog, pg_temp",)
    assert moment == (b"2024-07-01 14:00:00+02",)


async def test_a_planned_constant_ends_where_it_ends_whatever_the_roles_settings_are(
    engine: PostgresEngine, own_shop: RealDatabase
) -> None:
    """The plans come in the message that pins the settings, and a server reads all of it by those that it had."""
    text = r"\' || (SELECT count(*) FROM public.orders) --"
    statement = written(f"SELECT {quoted_text(text)}")
    with own_shop.connect() as connection:
        connection.execute("ALTER ROLE noisegate_reader SET standard_conforming_strings = off")
    try:
        async with engine.snapshot(time_zone="UTC", timeout_seconds=10, statements=[statement]) as snapshot:
            assert await snapshot.run(statement) == [(text.encode(),)]
    finally:
        with own_shop.connect() as connection:
            connection.execute("ALTER ROLE noisegate_reader RESET ALL")


async def test_the_catalog_is_the_same_whatever_the_roles_settings_are(
    engine: PostgresEngine, own_shop: RealDatabase
) -> None:
    known = await engine.catalog()
    with own_shop.connect() as connection:
        connection.execute("ALTER ROLE noisegate_reader SET quote_all_identifiers = on")
        try:
            other = PostgresEngine(own_shop.reader_dsn)
            assert (await other.catalog()).tables == known.tables
            await other.close()
        finally:
            connection.execute("ALTER ROLE noisegate_reader RESET ALL")


async def test_all_statements_of_a_snapshot_see_the_same_rows(engine: PostgresEngine, own_shop: RealDatabase) -> None:
    count = "SELECT count(*) FROM public.products"
    async with engine.snapshot(time_zone="UTC", timeout_seconds=10) as snapshot:
        before = await snapshot.run(written(count))
        with own_shop.connect() as connection:
            connection.execute("INSERT INTO products VALUES (999, 'New', 'tool', 1)")
        assert await snapshot.run(written(count)) == before
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
    assert await run(engine, "SELECT 1") == [[(b"1",)]]


async def test_a_statement_ends_with_its_time(engine: PostgresEngine) -> None:
    with pytest.raises(EngineError):
        await asyncio.wait_for(run(engine, "SELECT pg_sleep(60)", seconds=0.3), 5)
    assert await run(engine, "SELECT 1") == [[(b"1",)]]


async def test_who_is_stopped_stops_the_database_even_if_it_forgets_a_cancel(
    engine: PostgresEngine, own_shop: RealDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a server does with one that comes before the statement: it ran to its end then."""
    async with engine.snapshot(time_zone="UTC", timeout_seconds=60) as snapshot:
        heard, tell = [False, True, True], snapshot._connection.cancel_safe
        monkeypatch.setattr(
            snapshot._connection, "cancel_safe", lambda **named: tell(**named) if heard.pop(0) else asyncio.sleep(0)
        )
        running = asyncio.create_task(snapshot.run(written("SELECT pg_sleep(50) /* never heard */")))
        await until(lambda: is_active(own_shop.dsn, "never heard"))
        running.cancel()

        with pytest.raises(asyncio.CancelledError):
            await running

        assert heard == [True]
        assert not is_active(own_shop.dsn, "never heard")
    assert engine.idle == 1  # and the connection is as good as before


@pytest.mark.parametrize("ends_late", [False, True])
async def test_the_words_of_a_failure_that_nobody_waits_for_go_nowhere(
    engine: PostgresEngine, monkeypatch: pytest.MonkeyPatch, *, ends_late: bool
) -> None:
    """They may quote a row, and asyncio logs the failure of a task that nobody has asked for it."""
    told: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
    stopped = asyncio.Event()

    async def failing() -> None:
        try:
            await stopped.wait()
        finally:
            raise psycopg.errors.InvalidTextRepresentation("invalid input syntax for type integer: a row")

    async with engine.snapshot(time_zone="UTC", timeout_seconds=60) as snapshot:
        monkeypatch.setattr(snapshot, "cancel", (lambda: asyncio.sleep(0)) if ends_late else _set(stopped))
        monkeypatch.setattr(snapshots, "GRACE_SECONDS", 0.01)
        running = asyncio.create_task(snapshot._ended(failing()))
        await asyncio.sleep(0)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    await asyncio.sleep(0.01)
    del running
    gc.collect()

    asyncio.get_running_loop().set_exception_handler(None)
    assert told == []


def _set(event: asyncio.Event) -> Callable[[], Awaitable[None]]:
    async def done() -> None:
        event.set()

    return done


async def test_cancel_stops_what_runs_and_all_that_would_follow(engine: PostgresEngine, own_shop: RealDatabase) -> None:
    async with engine.snapshot(time_zone="UTC", timeout_seconds=60) as snapshot:
        running = asyncio.create_task(_failure(snapshot.run(written("SELECT pg_sleep(50) /* cancel me */"))))
        await until(lambda: is_active(own_shop.dsn, "cancel me"))
        await snapshot.cancel()
        assert await asyncio.wait_for(running, 5)
        assert await _failure(snapshot.run(written("SELECT 1")))
    await until(lambda: not is_active(own_shop.dsn, "cancel me"))
    assert await run(engine, "SELECT 1") == [[(b"1",)]]


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
        assert await snapshot.run(written("SELECT 1")) == [(b"1",)]
        end_all(own_shop)
        with pytest.raises(EngineError):
            await snapshot.run(written("SELECT 1"))
    assert await run(engine, "SELECT 1") == [[(b"1",)]]


def end_all(own_shop: RealDatabase) -> None:
    with own_shop.connect() as connection:
        ended = "FROM pg_stat_activity WHERE usename = 'noisegate_reader'"
        connection.execute(f"SELECT pg_terminate_backend(pid) {ended}")
        deadline = time.monotonic() + 5
        while connection.execute(f"SELECT {ended}").fetchall():
            assert time.monotonic() < deadline
            time.sleep(0.01)


async def test_a_line_that_drops_packets_is_given_up_on_also_where_what_was_sent_is_not_acknowledged(
    own_shop: RealDatabase,
) -> None:
    """Linux asks no keepalive while something is on its way, and sends that again for a quarter of an hour."""
    with line_to(own_shop.cluster) as line:
        engine = PostgresEngine(f"{own_shop.reader_dsn} host=127.0.0.1 port={line.port}")
        async with engine.snapshot(time_zone="UTC", timeout_seconds=10) as snapshot:
            with socket.socket(fileno=os.dup(snapshot._connection.fileno())) as end:
                idle, interval, count, user_milliseconds = (
                    end.getsockopt(socket.IPPROTO_TCP, option)
                    for option in (
                        *(socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT),
                        socket.TCP_USER_TIMEOUT,
                    )
                )
        await engine.close()
    assert idle + count * interval <= user_milliseconds / 1000 <= 30  # it would cut keepalives short


async def test_a_server_too_old_is_told_by_its_version(
    engine: PostgresEngine, own_shop: RealDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connector, "SERVERS", range(99, 100))
    with own_shop.connect() as connection:
        release = (connection.info.parameter_status("server_version") or "").split()[0]  # Debian adds its own
    with pytest.raises(EngineTooOld, match=f"is PostgreSQL {release}, and must be 99 or newer"):
        await engine.catalog()


@pytest.mark.parametrize(("number", "shown"), [(130023, "13.23"), (90624, "9.6.24"), (80002, "8.0.2")])
def test_a_version_is_written_as_its_server_writes_it(number: int, shown: str) -> None:
    assert connector.written_version(number) == shown


async def test_an_abandoned_snapshot_leaves_nothing_running(engine: PostgresEngine, own_shop: RealDatabase) -> None:
    task = asyncio.create_task(run(engine, "SELECT pg_sleep(50) /* abandon me */", seconds=60))
    await until(lambda: is_active(own_shop.dsn, "abandon me"))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await until(lambda: not is_active(own_shop.dsn, "abandon me"))


async def test_another_database_at_the_same_address_is_as_good_as_none(own_shop: RealDatabase) -> None:
    engine = PostgresEngine(own_shop.reader_dsn)
    assert await run(engine, "SELECT 1") == [[(b"1",)]]

    await engine.bind("7300000000000000000")
    with pytest.raises(EngineAway, match="another database") as caught:
        await run(engine, "SELECT 1")
    assert caught.value.cause.reason == "other_database"

    await engine.bind((await PostgresEngine(own_shop.reader_dsn).catalog()).system_identifier)
    assert await run(engine, "SELECT 1") == [[(b"1",)]]
    await engine.close()


async def test_a_server_that_is_away_is_said_to_be(own_shop: RealDatabase) -> None:
    engine = PostgresEngine(f"host={own_shop.cluster.directory} port=1 dbname=shop connect_timeout=2")
    with pytest.raises(EngineAway, match="cannot connect"):
        await engine.catalog()


async def test_a_table_that_changed_since_it_was_planned_stops_the_snapshot(
    engine: PostgresEngine, own_shop: RealDatabase
) -> None:
    planned = await orders(engine)
    async with engine.snapshot(time_zone="UTC", timeout_seconds=10, tables=[planned]) as snapshot:
        assert await snapshot.run(written("SELECT 1")) == [(b"1",)]
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


@pytest.mark.parametrize(
    "change",
    [
        "ALTER TABLE proofs DROP CONSTRAINT proofs_pkey",
        "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'proofs_pkey'::regclass",
        "UPDATE pg_index SET indislive = false WHERE indexrelid = 'proofs_pkey'::regclass",
        "CREATE TABLE proofs_child () INHERITS (proofs)",
        "ALTER TABLE proofs ENABLE ROW LEVEL SECURITY",
        'ALTER TABLE proofs ALTER name TYPE text COLLATE "POSIX"',
        "ALTER DOMAIN proofs_size DROP CONSTRAINT small",
        "CREATE TABLE proofs_part PARTITION OF proofs_parts FOR VALUES IN (1); CREATE FOREIGN DATA WRAPPER proofs; "
        "CREATE SERVER proofs FOREIGN DATA WRAPPER proofs; "
        "CREATE FOREIGN TABLE proofs_far PARTITION OF proofs_parts FOR VALUES IN (2) SERVER proofs",
    ],
)
async def test_what_proofs_rest_on_is_read_again_in_the_snapshot_of_the_rows(
    engine: PostgresEngine, own_shop: RealDatabase, change: str
) -> None:
    made = """
        CREATE DOMAIN proofs_size AS int CONSTRAINT small CHECK (VALUE < 10);
        CREATE TABLE proofs (id int PRIMARY KEY, name text, size proofs_size);
        CREATE TABLE proofs_parts (id int) PARTITION BY LIST (id);
        GRANT SELECT ON proofs, proofs_parts TO noisegate_reader
    """
    with own_shop.connect() as owner:
        owner.execute(made)
        try:
            catalog = await engine.catalog()
            planned = [table for table in catalog.tables if table.name.name in ("proofs", "proofs_parts")]
            assert len(planned) == 2
            async with engine.snapshot(time_zone="UTC", timeout_seconds=10, tables=planned):
                pass
            owner.execute(change.encode())
            with pytest.raises(SchemaChanged):
                async with engine.snapshot(time_zone="UTC", timeout_seconds=10, tables=planned):
                    pass
        finally:
            owner.execute("DROP TABLE proofs, proofs_parts CASCADE; DROP DOMAIN proofs_size")
            owner.execute("DROP FOREIGN DATA WRAPPER IF EXISTS proofs CASCADE")


async def test_a_key_of_texts_that_were_sorted_by_another_version_of_their_collation_proves_nothing(
    engine: PostgresEngine, own_shop: RealDatabase
) -> None:
    """The server finds some of its entries no more, and takes a second row with the same text."""
    known = "SELECT collname FROM pg_collation WHERE collversion IS NOT NULL AND collencoding IN (-1, 6) ORDER BY 1"
    with own_shop.connect() as owner:
        if (found := owner.execute(known).fetchone()) is None:
            pytest.skip("this server has no collation with a version")
        made = """
            CREATE TABLE named (id int PRIMARY KEY, name text COLLATE "{0}" NOT NULL UNIQUE);
            GRANT SELECT ON named TO noisegate_reader
        """
        owner.execute(made.format(*found).encode())
        newer = "UPDATE pg_collation SET collversion = collversion || '.0' WHERE collname = %s"
        older = "UPDATE pg_collation SET collversion = left(collversion, -2) WHERE collname = %s"
        try:
            before = next(table for table in (await engine.catalog()).tables if table.name.name == "named")
            owner.execute(newer, found)
            after = next(table for table in (await engine.catalog()).tables if table.name.name == "named")
            with pytest.raises(SchemaChanged):
                async with engine.snapshot(time_zone="UTC", timeout_seconds=10, tables=[before]):
                    pass
        finally:
            owner.execute(older, found)
            owner.execute("DROP TABLE named")
    assert [[key.proves for key in table.keys] for table in (before, after)] == [[True, True], [True, False]]
    assert [table.outdated for table in (before, after)] == [(), ("named_name_key",)]


TWINS = "SELECT count(*), count(DISTINCT id) FROM public.twins"


@pytest.mark.parametrize("is_planned", [True, False])
@pytest.mark.parametrize(("parent", "low"), [("twins", 20), ("twins_high", 30)])
async def test_rows_of_a_partition_that_was_attached_after_the_proofs_are_not_used(
    engine: PostgresEngine, own_shop: RealDatabase, parent: str, low: int, is_planned: bool
) -> None:
    """ATTACH waits for no reader, and is seen by old snapshots: in theirs the rows may break the key of the table."""
    made = """
        CREATE TABLE twins (id int PRIMARY KEY) PARTITION BY RANGE (id);
        CREATE TABLE twins_low PARTITION OF twins FOR VALUES FROM (0) TO (10);
        CREATE TABLE twins_high PARTITION OF twins FOR VALUES FROM (30) TO (40) PARTITION BY RANGE (id);
        CREATE TABLE late (id int NOT NULL);
        INSERT INTO twins SELECT generate_series(0, 9); INSERT INTO late SELECT generate_series(0, 9);
        GRANT SELECT ON twins, late TO noisegate_reader
    """
    with own_shop.connect() as owner:
        owner.execute(made)
        try:
            planned = [table for table in (await engine.catalog()).tables if table.name.name == "twins"]
            counted = written(TWINS)
            async with engine.snapshot(
                time_zone="UTC", timeout_seconds=10, tables=planned, statements=[counted] if is_planned else []
            ) as snapshot:
                assert await snapshot.run(counted) == [(b"10", b"10")]
                owner.execute(f"UPDATE late SET id = id + {low}".encode())
                attach = f"ALTER TABLE {parent} ATTACH PARTITION late FOR VALUES FROM ({low}) TO ({low + 10})"
                owner.execute(attach.encode())
                with pytest.raises(SchemaChanged):
                    await snapshot.run(counted)
            planned = [table for table in (await engine.catalog()).tables if table.name.name == "twins"]
            async with engine.snapshot(time_zone="UTC", timeout_seconds=10, tables=planned) as snapshot:
                assert await snapshot.run(counted) == [(b"20", b"20")]
        finally:
            owner.execute("DROP TABLE IF EXISTS twins, late CASCADE")


DOUBLES = "SELECT count(*) FROM public.doubles AS a JOIN public.doubles AS b ON a.id = b.id"


@pytest.mark.parametrize(("made", "fails"), [("CREATE UNIQUE INDEX", True), ("CREATE INDEX", False)])
async def test_what_was_planned_by_a_unique_index_that_is_newer_than_the_rows_is_not_used(
    engine: PostgresEngine, own_shop: RealDatabase, made: str, *, fails: bool
) -> None:
    """PostgreSQL joins by it as if older rows were unique too, and CREATE INDEX waits for no reader."""
    with own_shop.connect() as owner:
        owner.execute("CREATE TABLE doubles (id int NOT NULL, n int); GRANT SELECT ON doubles TO noisegate_reader")
        try:
            owner.execute("INSERT INTO doubles SELECT id, n FROM generate_series(1, 9) id, generate_series(1, 3) n")
            planned = [table for table in (await engine.catalog()).tables if table.name.name == "doubles"]
            counted = written(DOUBLES)
            async with engine.snapshot(
                time_zone="UTC", timeout_seconds=10, tables=planned, statements=[counted]
            ) as snapshot:
                assert await snapshot.run(counted) == [(b"81",)]
                owner.execute("DELETE FROM doubles WHERE n > 1")
                owner.execute(f"{made} ON doubles (id)".encode())
                if fails:
                    with pytest.raises(SchemaChanged):
                        await snapshot.run(counted)
                        await snapshot.run(counted)
                else:
                    assert [await snapshot.run(counted) for _ in range(2)] == [[(b"81",)]] * 2
        finally:
            owner.execute("DROP TABLE doubles")


@pytest.mark.parametrize("of", ["id", "(id + 0)"])
async def test_what_was_planned_by_a_unique_index_that_has_become_valid_since_is_not_used(
    engine: PostgresEngine, own_shop: RealDatabase, of: str
) -> None:
    """CREATE INDEX CONCURRENTLY does not wait for readers of a standby, whose snapshots have doubles that are gone."""
    with own_shop.connect() as owner:
        owner.execute("CREATE TABLE doubles (id int NOT NULL, n int); GRANT SELECT ON doubles TO noisegate_reader")
        try:
            owner.execute(f"CREATE UNIQUE INDEX doubled ON doubles ({of})".encode())
            flags = "UPDATE pg_index SET indisvalid = {0}, indisready = {0} WHERE indexrelid = 'doubled'::regclass"
            owner.execute(flags.format("false").encode())
            owner.execute("INSERT INTO doubles SELECT id, n FROM generate_series(1, 9) id, generate_series(1, 3) n")
            planned = [table for table in (await engine.catalog()).tables if table.name.name == "doubles"]
            counted = written(DOUBLES)
            assert [table.unfinished for table in planned] == [("doubled",)]
            with pytest.raises(SchemaChanged):  # it might become valid after the charge
                async with engine.snapshot(time_zone="UTC", timeout_seconds=10, tables=planned, statements=[counted]):
                    pass
            async with engine.snapshot(time_zone="UTC", timeout_seconds=10, tables=planned) as snapshot:
                owner.execute("DELETE FROM doubles WHERE n > 1; REINDEX INDEX doubled")
                with pytest.raises(SchemaChanged):
                    await snapshot.run(counted)
        finally:
            owner.execute("DROP TABLE doubles")


@pytest.mark.parametrize("is_planned", [True, False])
async def test_rows_of_a_table_that_got_the_name_of_what_was_proved_are_not_used(
    engine: PostgresEngine, own_shop: RealDatabase, *, is_planned: bool
) -> None:
    """Schemas are renamed without a lock on their tables, and PostgreSQL reads the text of a statement again."""
    made = """
        CREATE SCHEMA live; CREATE TABLE live.twins (id int PRIMARY KEY); INSERT INTO live.twins VALUES (1);
        CREATE SCHEMA staged; CREATE TABLE staged.twins (id int); INSERT INTO staged.twins VALUES (1), (1);
        GRANT USAGE ON SCHEMA live, staged TO noisegate_reader;
        GRANT SELECT ON live.twins, staged.twins TO noisegate_reader
    """
    swap = "ALTER SCHEMA live RENAME TO old; ALTER SCHEMA staged RENAME TO live"
    with own_shop.connect() as owner:
        owner.execute(made)
        try:
            planned = [table for table in (await engine.catalog()).tables if str(table.name) == "live.twins"]
            counted = written("SELECT count(*) FROM ONLY live.twins")
            async with engine.snapshot(
                time_zone="UTC", timeout_seconds=10, tables=planned, statements=[counted] if is_planned else []
            ) as snapshot:
                assert await snapshot.run(counted) == [(b"1",)]
                owner.execute(swap.encode())
                with pytest.raises(SchemaChanged):
                    await snapshot.run(counted)
        finally:
            owner.execute("DROP SCHEMA live, old CASCADE")


async def test_where_it_cannot_be_asked_what_is_newer_nothing_is_run(
    engine: PostgresEngine, own_shop: RealDatabase
) -> None:
    """After the charge such a refusal would count as a fault of the analyst."""
    planned = [await orders(engine)]
    with own_shop.connect() as owner:
        owner.execute("REVOKE SELECT ON pg_locks FROM PUBLIC")
        try:
            with pytest.raises(Unplannable) as refused:
                async with engine.snapshot(
                    time_zone="UTC",
                    timeout_seconds=10,
                    tables=planned,
                    statements=[written("SELECT count(*) FROM public.orders")],
                ):
                    pass
            assert refused.value.words == "permission denied for view pg_locks"
        finally:
            owner.execute("GRANT SELECT ON pg_locks TO PUBLIC")


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


@pytest.mark.parametrize(
    ("added", "named"),
    [
        ("CAST (text AS integer) WITH FUNCTION other(text)", "the cast (text AS integer)"),
        ("CAST (varchar AS json) WITHOUT FUNCTION", "the cast (character varying AS json)"),
        ("CAST (integer AS text) WITH INOUT AS IMPLICIT", "the cast (integer AS text)"),
        ("CAST (integer AS text) WITH INOUT", ""),
        (
            "OPERATOR pg_catalog.= (LEFTARG = integer, RIGHTARG = text, FUNCTION = other)",
            "the operator pg_catalog.=(integer,text)",
        ),
        ("OPERATOR pg_catalog.<-|-> (RIGHTARG = text, FUNCTION = other)", ""),
        (
            "FUNCTION pg_catalog.lower(varchar) RETURNS text LANGUAGE sql AS 'SELECT 1 / 0'",
            "the function pg_catalog.lower(character varying)",
        ),
        ("FUNCTION pg_catalog.lower_still(varchar) RETURNS text LANGUAGE sql AS 'SELECT 1 / 0'", ""),
        ("FUNCTION public.lower(varchar) RETURNS text LANGUAGE sql AS 'SELECT 1'", None),
    ],
)
async def test_what_may_stand_in_for_postgresqls_own_is_seen(
    real_cluster: Cluster, added: str, named: str | None
) -> None:
    """The SQL of guards means what it does by PostgreSQL's own casts, operators and functions. None: no change."""
    with psycopg.connect(real_cluster.dsn(), autocommit=True) as owner:
        owner.execute("DROP DATABASE IF EXISTS overridden")
    engine = PostgresEngine(make_shop(real_cluster, "overridden").reader_dsn)
    is_changed = False
    try:
        before = await engine.catalog()
        with psycopg.connect(real_cluster.dsn("overridden"), autocommit=True) as owner:
            owner.execute("CREATE FUNCTION other(text) RETURNS integer LANGUAGE sql AS 'SELECT 1 / 0'")
            owner.execute("CREATE FUNCTION other(integer, text) RETURNS boolean LANGUAGE sql AS 'SELECT true'")
            owner.execute(f"CREATE {added}")
        after = await engine.catalog()
        tables = [table for table in before.tables if str(table.name) == "orders"]
        async with engine.snapshot(time_zone="UTC", timeout_seconds=10, tables=tables):
            pass
    except SchemaChanged:
        is_changed = True
    finally:
        await engine.close()
    assert (before.overrides, after.overrides) == ((), (named,) if named else ())
    assert is_changed == (named is not None)


@pytest.mark.parametrize(
    "body", ["plpgsql IMMUTABLE STRICT AS 'BEGIN RETURN 1 / 0; END'", "sql IMMUTABLE STRICT AS 'SELECT $1'"]
)
async def test_a_function_of_postgresqls_own_that_is_replaced_in_place_is_seen(
    real_cluster: Cluster, body: str
) -> None:
    """It keeps its OID; what it is written in tells. (Before 14 PostgreSQL's own were texts of SQL too.)"""
    with psycopg.connect(real_cluster.dsn(), autocommit=True) as owner:
        owner.execute("DROP DATABASE IF EXISTS replaced")
    engine = PostgresEngine(make_shop(real_cluster, "replaced").reader_dsn)
    try:
        with psycopg.connect(real_cluster.dsn("replaced"), autocommit=True) as owner:
            owner.execute(f"CREATE OR REPLACE FUNCTION pg_catalog.initcap(text) RETURNS text LANGUAGE {body}")
        found = await engine.catalog()
    finally:
        await engine.close()
    is_told = body.startswith("plpgsql") or found.version >= 140000
    assert found.overrides == (("the function pg_catalog.initcap(text)",) if is_told else ())


async def test_an_enum_that_a_function_makes_a_text_is_known_by_no_label(
    engine: PostgresEngine, own_shop: RealDatabase
) -> None:
    """The function of a cast may fail on some labels, or say what is none."""
    before = await orders(engine)
    with own_shop.connect() as owner:
        owner.execute("CREATE FUNCTION shown(status) RETURNS text LANGUAGE sql AS $$SELECT 1 / (random() * 0)$$")
        owner.execute("CREATE CAST (status AS text) WITH FUNCTION shown(status)")
        try:
            after = await orders(engine)
            with pytest.raises(SchemaChanged):
                async with engine.snapshot(time_zone="UTC", timeout_seconds=10, tables=[before]):
                    pass
        finally:
            owner.execute("DROP FUNCTION shown CASCADE")
    found = [column.type.base for table in (before, after) for column in table.columns if column.name == "status"]
    assert found == ["enum", "other"]


@pytest.mark.parametrize(
    ("done", "undone"),
    [
        ("ALTER TYPE status RENAME VALUE 'open' TO 'new'", "ALTER TYPE status RENAME VALUE 'new' TO 'open'"),
        ("ALTER TYPE status RENAME TO state", "ALTER TYPE state RENAME TO status"),
    ],
)
async def test_a_statement_whose_names_have_changed_meanwhile_fails_by_no_row(
    engine: PostgresEngine, own_shop: RealDatabase, done: str, undone: str
) -> None:
    """PostgreSQL reads its text again, for a schema that is made or dropped makes all plans invalid."""
    planned = await orders(engine)
    asked = [written(f"SELECT count(*) FROM public.orders WHERE status {sign} 'open'::public.status") for sign in "=>"]
    async with engine.snapshot(time_zone="UTC", timeout_seconds=10, tables=[planned], statements=asked) as snapshot:
        with own_shop.connect() as owner:
            owner.execute(f"{done}; CREATE SCHEMA made; DROP SCHEMA made".encode())
            try:
                assert await snapshot.run(asked[0])
                with pytest.raises(SchemaChanged):
                    await snapshot.run(asked[1])
            finally:
                owner.execute(undone.encode())


async def test_a_statement_that_can_be_planned_still_has_failed_by_its_rows(
    engine: PostgresEngine, own_shop: RealDatabase
) -> None:
    asked = written("SELECT count(*) FROM public.orders WHERE note::public.status = 'open'")
    with own_shop.connect() as owner:
        owner.execute("UPDATE orders SET note = 'no status' WHERE id = 1")
    planned = await orders(engine)
    async with engine.snapshot(time_zone="UTC", timeout_seconds=10, tables=[planned], statements=[asked]) as snapshot:
        with pytest.raises(StatementFailed) as failed:
            await snapshot.run(asked)
    assert failed.value.sqlstate == "22P02"


async def test_who_cancels_while_it_is_asked_why_a_statement_failed_has_one_that_failed(
    engine: PostgresEngine, own_shop: RealDatabase
) -> None:
    """Or else the fault would be a cancelled statement, which stops nobody."""
    asked, planned = written("SELECT 1 / (id - 1) FROM public.orders"), await orders(engine)
    async with engine.snapshot(time_zone="UTC", timeout_seconds=10, tables=[planned], statements=[asked]) as snapshot:
        with own_shop.connect() as owner, own_shop.connect() as other:
            locks = "SELECT FROM pg_locks WHERE NOT granted AND pid {} %s"
            locking = asyncio.create_task(asyncio.to_thread(owner.execute, "LOCK TABLE orders; SELECT pg_sleep(0.5)"))
            await until(lambda: bool(other.execute(locks.format("="), [owner.info.backend_pid]).fetchall()))
            running = asyncio.create_task(snapshot.run(asked))
            await until(lambda: bool(other.execute(locks.format("<>"), [owner.info.backend_pid]).fetchall()))
            running.cancel()
            with pytest.raises(StatementFailed) as failed:
                await running
            await locking
    assert failed.value.sqlstate == "22012"


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
        await snapshot.run(written("DEALLOCATE ALL"))
    for _ in range(2):
        async with engine.snapshot(time_zone="UTC", timeout_seconds=10, tables=[planned]) as snapshot:
            assert await snapshot.run(written("SELECT 1")) == [(b"1",)]


async def test_a_connection_that_knows_what_others_have_prepared_will_do(
    engine: PostgresEngine, own_shop: RealDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As from a pooler of transactions: by this proxy's other connections, or by one that has ended."""
    connect = psycopg.AsyncConnection.connect

    async def pooled(dsn: str, **options: Any) -> psycopg.AsyncConnection[Any]:
        connection = await connect(dsn, **options)
        await connection.execute("PREPARE noisegate_proofs AS SELECT 'of an older proxy'")
        return connection

    monkeypatch.setattr(psycopg.AsyncConnection, "connect", pooled)
    planned = await orders(engine)
    for _ in range(2):
        async with engine.snapshot(time_zone="UTC", timeout_seconds=10, tables=[planned]) as snapshot:
            assert await snapshot.run(written("SELECT 1")) == [(b"1",)]


PLANS = "SELECT name FROM pg_prepared_statements"


async def test_statements_are_planned_once_before_they_run_and_leave_nothing_behind(
    engine: PostgresEngine,
) -> None:
    asked = [written("SELECT count(*) FROM public.orders"), written("SELECT 'a;b', $$c$$ /* d */")]
    for _ in range(2):
        tables = [await orders(engine)]
        async with engine.snapshot(time_zone="UTC", timeout_seconds=10, tables=tables, statements=asked) as snapshot:
            assert len(await snapshot.run(written(f"{PLANS} WHERE name <> 'noisegate_proofs'"))) == len(asked)
            assert (await snapshot.run(asked[0]))[0] > (b"0",)
            assert await snapshot.run(asked[1]) == [(b"a;b", b"c")]
    assert await run(engine, PLANS) == [[(b"noisegate_proofs",)]]


async def test_plans_of_what_a_dba_took_away_are_left_behind_no_more_than_others(
    engine: PostgresEngine, own_shop: RealDatabase
) -> None:
    planned, counted = await orders(engine), written("SELECT count(*) FROM public.orders")
    joined = written("SELECT count(*) FROM public.orders, public.customers")  # a lock more, with which rights are read
    async with engine.snapshot(time_zone="UTC", timeout_seconds=10, tables=[planned], statements=[counted]) as snapshot:
        with own_shop.connect() as owner:
            owner.execute("REVOKE SELECT ON orders FROM noisegate_reader")
            try:
                with pytest.raises(NotPermitted):
                    await snapshot.run(joined)
            finally:
                owner.execute("GRANT SELECT ON orders TO noisegate_reader")
    assert engine.idle == 1
    assert await run(engine, PLANS) == [[(b"noisegate_proofs",)]]


async def test_a_dba_sees_what_runs_and_no_text_of_it_can_end_the_comment(engine: PostgresEngine) -> None:
    text = "*/ SELECT 1 /* -- \n é"
    asked = written(f"SELECT '{text}', query FROM pg_catalog.pg_stat_activity WHERE pid = pg_backend_pid()")
    async with engine.snapshot(time_zone="UTC", timeout_seconds=10, statements=[asked]) as snapshot:
        ((same, shown),) = await snapshot.run(asked)
    assert same == text.encode()
    assert shown is not None
    assert b"/* SELECT ??? SELECT 1 ?? ?? ? ??, query FROM pg_catalog.pg_stat_activity WHERE pid" in shown


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELECT * FROM public.staff", "permission denied for table staff"),
        ("SELECT nothing FROM public.nowhere", 'relation "public.nowhere" does not exist'),
        ("SELECT 1 / 0", ""),
        ("SELECT CASE WHEN id = -1 THEN 1 / 0 END FROM public.orders", ""),
        ("SELECT missing FROM public.orders", ""),
        ("no sql at all", ""),
    ],
)
async def test_what_cannot_be_planned_is_told_in_the_servers_words_only_where_they_tell_of_the_schema(
    engine: PostgresEngine, sql: str, words: str
) -> None:
    planned, asked = await orders(engine), [written("SELECT 1"), written(sql)]
    with pytest.raises(Unplannable) as caught:
        async with engine.snapshot(time_zone="UTC", timeout_seconds=10, tables=[planned], statements=asked):
            pass
    assert (caught.value.words, caught.value.args) == (words, ())
    assert await run(engine, "SELECT 1") == [[(b"1",)]]


FAILING = (
    "'x'::integer", "1 / 0", "'1e400'::numeric::float8", "'2024-02-30'::date",
    "date_trunc('eon', '2024-01-01'::timestamp)", "ln(-1)",
    "chr(0)", "substring('x' FROM 1 FOR -1)", "'x' ~ '('", "'1'::bit(1) & '10'::bit(2)",
)  # fmt: skip
HOSTILE = """
CREATE TABLE hostile (n integer, t text);
GRANT SELECT ON hostile TO noisegate_reader;
"""


async def test_constants_that_fail_in_planning_fail_alike_whatever_the_rows_and_their_statistics_are(
    engine: PostgresEngine, own_shop: RealDatabase
) -> None:
    """The planner computes constants, and holds some against statistics: what fails so is charged all the same."""
    with own_shop.connect() as connection:
        connection.execute(HOSTILE)
        for rows in (
            "SELECT",
            "INSERT INTO hostile SELECT 0, '(' FROM generate_series(1, 500)",
            "UPDATE hostile SET n = -1",
        ):
            connection.execute(f"{rows}; ANALYZE hostile")
            for constant in FAILING:
                guarded = f"CASE WHEN n = 0 THEN ({constant})::text ELSE 'x' END"
                for sql in (
                    f"SELECT count({guarded}) FROM public.hostile",
                    f"SELECT FROM public.hostile WHERE t = {guarded}",
                ):
                    with pytest.raises(Unplannable) as caught:
                        async with engine.snapshot(time_zone="UTC", timeout_seconds=10, statements=[written(sql)]):
                            pass
                    assert (caught.value.words, caught.value.args) == ("", ()), sql


async def test_a_table_that_changed_is_told_before_what_cannot_be_planned_over_it(engine: PostgresEngine) -> None:
    changed, asked = replace(await orders(engine), fingerprint="of old"), [written("SELECT gone FROM public.orders")]
    for zone, expected in (("UTC", SchemaChanged), ("Mars/Phobos", UnknownTimeZone)):
        with pytest.raises(expected):
            async with engine.snapshot(time_zone=zone, timeout_seconds=10, tables=[changed], statements=asked):
                pass


async def test_planning_that_takes_too_long_is_no_refusal_of_the_statement(engine: PostgresEngine) -> None:
    slow = written("SELECT factorial(32000)")  # of constants, so the planner computes it
    with pytest.raises(EngineError) as caught:
        async with engine.snapshot(time_zone="UTC", timeout_seconds=0.2, statements=[slow]):
            pass
    assert not isinstance(caught.value, Unplannable)


async def test_settings_are_those_that_inner_statements_are_written_for(engine: PostgresEngine) -> None:
    names = [*PINNED, "transaction_read_only", "transaction_isolation"]
    (shown,) = await run(engine, f"SELECT {', '.join(f'current_setting({name!r})' for name in names)}")
    pinned = {**PINNED, "plan_cache_mode": "force_custom_plan"}
    assert dict(zip(names, ((cell or b"").decode() for cell in shown[0]), strict=True)) == {
        **pinned, "transaction_read_only": "on", "transaction_isolation": "repeatable read"
    }  # fmt: skip


def test_no_temporary_type_stands_for_one_of_postgresql(own_shop: RealDatabase) -> None:
    """As a role that others share behind a pooler may leave one on its connections."""
    with own_shop.connect() as connection:
        connection.execute("CREATE DOMAIN pg_temp.int8 AS text")
        connection.execute(OPENING)
        row = connection.execute("SELECT pg_typeof('1'::int8)::text").fetchone()
        connection.execute("ROLLBACK")

    assert row == ("bigint",)


async def test_no_transaction_timeout_of_the_role_ends_a_snapshot(
    engine: PostgresEngine, own_shop: RealDatabase
) -> None:
    """It would end it after the charge: what a statement may take is for its own time-out to say."""
    with own_shop.connect() as owner:
        if owner.execute("SELECT FROM pg_settings WHERE name = 'transaction_timeout'").fetchone() is None:
            pytest.skip("this server has none")
        owner.execute("ALTER ROLE noisegate_reader SET transaction_timeout = '300ms'")
        try:
            assert await run(engine, "SELECT 1 FROM pg_sleep(0.6)") == [[(b"1",)]]
        finally:
            owner.execute("ALTER ROLE noisegate_reader RESET ALL")


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
    assert await run(engine, "SELECT 1") == [[(b"1",)]]


async def test_a_server_that_hides_its_identifier_is_known_by_its_place(
    engine: PostgresEngine, own_shop: RealDatabase
) -> None:
    with own_shop.connect() as connection:
        connection.execute("REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC")
        oid = connection.execute("SELECT oid FROM pg_database WHERE datname = 'engine_shop'").fetchone()
    assert oid is not None
    identifier = (await engine.catalog()).system_identifier
    assert identifier == f"{own_shop.cluster.directory}:5432/{oid[0]}"
    await engine.bind(identifier)
    assert await run(engine, "SELECT 1") == [[(b"1",)]]


async def test_a_reader_is_no_risk_and_an_owner_is(engine: PostgresEngine, own_shop: RealDatabase) -> None:
    assert await engine.risks() == []
    owner = PostgresEngine(own_shop.dsn)
    assert ["superuser" in risk for risk in await owner.risks()] == [True]
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


@pytest.mark.parametrize(("encoding", "codec"), [("LATIN1", "iso8859-1"), ("EUC_JP", "euc_jp"), ("WIN1252", "cp1252")])
async def test_values_come_as_they_are_stored_and_none_of_them_fails(
    own_shop: RealDatabase, encoding: str, codec: str
) -> None:
    """In EUC_JP a9a1 is no letter, in WIN1252 81 is none: a conversion to UTF8 fails on the rows that have them."""
    name = f"in_{encoding.lower()}"
    with own_shop.connect() as connection:
        connection.execute(f"CREATE DATABASE {name} ENCODING '{encoding}' LOCALE 'C' TEMPLATE template0")
    engine = PostgresEngine(own_shop.cluster.dsn(name))
    stored = {"LATIN1": b"\xe9", "EUC_JP": b"\xa9\xa1", "WIN1252": b"\x81"}[encoding]
    asked = {"LATIN1": "Málaga", "EUC_JP": "東京", "WIN1252": "€"}[encoding]
    try:
        async with engine.snapshot(time_zone="UTC", timeout_seconds=10) as snapshot:
            assert snapshot.codec == codec
            rows = await snapshot.run(written(f"SELECT convert_from('\\x{stored.hex()}', '{encoding}'), '{asked}'"))
            assert rows == [(stored, asked.encode(codec))]
            with pytest.raises(EngineError):
                await snapshot.run(written("SELECT 'Ћ'" if encoding != "EUC_JP" else "SELECT 'ħ̷🙂'"))
        assert (await engine.catalog()).encoding == encoding
        async with engine.snapshot(time_zone="UTC", timeout_seconds=10) as snapshot:
            assert await snapshot.run(written("SHOW client_encoding")) == [(encoding.encode(),)]
    finally:
        await engine.close()


async def test_tables_with_names_beyond_ascii_are_known_again_in_another_encoding(own_shop: RealDatabase) -> None:
    with own_shop.connect() as connection:
        connection.execute("CREATE DATABASE named ENCODING 'EUC_JP' LOCALE 'C' TEMPLATE template0")
    with psycopg.connect(own_shop.cluster.dsn("named"), autocommit=True) as connection:
        connection.execute('CREATE TABLE "東京" (a int); INSERT INTO "東京" VALUES (7)')
    engine = PostgresEngine(own_shop.cluster.dsn("named"))
    try:
        planned = (await engine.catalog()).find_table(TableName("public", "東京"))
        assert planned is not None
        async with engine.snapshot(time_zone="UTC", timeout_seconds=10, tables=[planned]) as snapshot:
            assert await snapshot.run(written('SELECT a FROM public."東京"')) == [(b"7",)]
    finally:
        await engine.close()
