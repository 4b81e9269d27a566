"""A session's life: greeting, encodings, time limits, draining, and what becomes of it when the twin goes."""

import asyncio
import contextlib

import psycopg
import pytest

from proxy.session.literals import text_array
from proxy.settings import SessionSettings
from proxy.twin.embedded import Cluster
from proxy.twin.steps import literal
from proxy.wire.backend import DataRow, ErrorResponse
from proxy.wire.buffer import Frame
from proxy.wire.frontend import Bind, Execute, Parse, Query, Sync
from tests.server.raw import errors, kinds
from tests.server.stage import Stage
from tests.support.waiting import until

COUNT = b"SELECT count(*) FROM orders"


async def test_a_client_in_another_encoding_reads_and_writes_its_own_bytes(stage: Stage) -> None:
    client = await stage.client(client_encoding="LATIN1")

    text = "SELECT 'é' AS é, note FROM orders"
    (error,) = errors(await client.ask(Query(text.encode("latin-1"))))
    assert (error.sqlstate, error.fields["P"]) == ("42501", str(text.index("note") + 1))
    frames = await client.ask(Query(COUNT))

    assert kinds(frames) == "TDCZ"
    assert b"epsilon 0.1 spent" in b"".join(frame.raw for frame in frames if frame.kind == b"N")


async def test_arrays_and_literals_come_back_as_they_were(stage: Stage) -> None:
    values = ["", "NULL", None, "a,b", '"', "\\", "'", "{}", "é\n\t", "\\'"]
    client = await stage.client()

    frames = await client.ask(Query(f"SELECT unnest({literal(text_array(values))}::text[])".encode()))

    rows = [DataRow.decode(frame.raw).values[0] for frame in frames if frame.kind == DataRow.kind]
    assert [None if row is None else row.decode() for row in rows] == values


@pytest.mark.parametrize("extended", [False, True])
@pytest.mark.parametrize(
    "statements",
    [
        ("BEGIN", "SELECT 1 / 0", "PREPARE TRANSACTION 'x'", "SELECT 1"),
        ("BEGIN", "PREPARE TRANSACTION 'x'", "SELECT 1"),
        ("PREPARE TRANSACTION 'x'", "COMMIT PREPARED 'x'", "ROLLBACK PREPARED 'x'"),
        ("SET ROLE none", "SET ROLE 'none'", "RESET ROLE"),
        ("SELECT ts_rewrite('a & b'::tsquery, 'a'::tsquery, 'c'::tsquery)",),
    ],
)
async def test_what_harms_nobody_is_as_in_postgresql(stage: Stage, statements: tuple[str, ...], extended: bool) -> None:
    direct, proxied = await stage.direct_client(), await stage.client()
    for sql in map(str.encode, statements):
        asked = (Parse(b"", sql), Bind(b"", b""), Execute(b""), Sync()) if extended else (Query(sql),)

        assert await proxied.ask(*asked) == await direct.ask(*asked)


async def test_a_statement_of_the_twin_that_takes_too_long_is_cancelled_and_then_ended(
    stage: Stage, twin_cluster: Cluster
) -> None:
    client = await stage.client()
    (session,) = stage.sessions.all()
    await client.ask(Query(b"SET statement_timeout = 0"))
    client.send(Query(b"SELECT pg_sleep(59)"))
    await _until_asleep(twin_cluster, 59, 1)

    session.check_time(0.01, 60)
    (error,) = errors(await client.until())
    assert error.sqlstate == "57014"
    assert "the proxy's limit of 0.01 s" in error.fields["M"] and "--statement-timeout" in error.fields["H"]

    client.send(Query(b"SELECT pg_sleep(59)"))
    await _until_asleep(twin_cluster, 59, 1)
    session.cancel()  # the client's own cancel has PostgreSQL's words
    assert errors(await client.until())[0].fields["M"] == "canceling statement due to user request"

    client.send(Query(b"SELECT pg_sleep(59)"))
    await _until_asleep(twin_cluster, 59, 1)
    session.check_time(0, 0)
    assert [error.sqlstate for error in errors(await client.rest())] == ["57014"]


async def test_the_watch_looks_at_all_sessions(stage: Stage) -> None:
    stage.sessions.settings = SessionSettings(statement_timeout_seconds=0.1)
    client = await stage.client()
    watching = asyncio.create_task(stage.sessions.watch())

    frames = await client.ask(Query(b"SELECT pg_sleep(30)"))

    assert errors(frames)[0].sqlstate == "57014"
    watching.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await watching


async def test_what_a_client_leaves_running_on_the_twin_is_ended(stage: Stage, twin_cluster: Cluster) -> None:
    client = await stage.client()
    watching = asyncio.create_task(stage.sessions.watch())
    client.send(Query(b"SET statement_timeout = 0"), Query(b"SELECT pg_sleep(60)"), Query(b"SELECT pg_sleep(60)"))
    await _until_asleep(twin_cluster, 60, 1)

    await client.close()

    await _until_asleep(twin_cluster, 60, 0)
    watching.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await watching


async def _until_asleep(cluster: Cluster, seconds: int, count: int) -> None:
    """Wait until so many statements sleep so long on the twin."""
    running = f"SELECT FROM pg_stat_activity WHERE query = 'SELECT pg_sleep({seconds})' AND state = 'active'"
    async with asyncio.timeout(10):
        with psycopg.connect(cluster.dsn(), autocommit=True) as owner:
            while len(owner.execute(running).fetchall()) != count:
                await asyncio.sleep(0.05)


async def test_a_drained_session_ends_when_its_transaction_does(stage: Stage) -> None:
    client = await stage.client()
    await client.ask(Query(b"BEGIN"))
    (session,) = stage.sessions.all()

    session.drain()
    assert kinds(await client.ask(Query(b"SELECT 1"))) == "TDCZ"
    client.send(Query(b"COMMIT"))

    frames = await client.rest()
    assert kinds(frames) == "CZE"
    assert ErrorResponse.decode(frames[-1].raw).sqlstate == "57P01"


async def test_a_drained_session_that_is_idle_ends_at_once(stage: Stage) -> None:
    client = await stage.client()
    (session,) = stage.sessions.all()

    session.drain()

    assert [error.sqlstate for error in errors(await client.rest())] == ["57P01"]


async def test_the_end_of_the_twins_backend_is_the_end_of_the_session_in_its_words(
    stage: Stage, twin_cluster: Cluster
) -> None:
    client = await stage.client()
    with psycopg.connect(twin_cluster.dsn(), autocommit=True) as owner:
        owner.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'ada'")

    assert [error.sqlstate for error in errors(await client.rest())] == ["57P01"]


async def test_a_backend_that_is_cancelled_by_sql_stops_what_runs_inside(stage: Stage) -> None:
    client = await stage.client()
    frames = await client.ask(Query(b"SELECT pg_backend_pid()"))
    process_id = int(DataRow.decode(frames[1].raw).values[0] or 0)
    stage.service.seconds = 30
    client.send(Query(COUNT))
    await until(lambda: stage.service.answered == 1)

    stage.sessions.cancel_backend(process_id)

    assert errors(await client.until())[0].sqlstate == "57014"


async def test_a_slow_reader_gets_every_row(stage: Stage) -> None:
    client = await stage.client()
    client.send(Query(b"SELECT repeat('x', 1000) FROM generate_series(1, 30000)"))
    await asyncio.sleep(0.5)  # meanwhile all buffers fill up, and the twin has to wait

    frames = await client.until()

    assert len([frame for frame in frames if frame.kind == DataRow.kind]) == 30_000


async def test_a_flood_of_small_messages_is_held_in_the_turn_in_which_it_comes(stage: Stage) -> None:
    await stage.client()
    (session,) = stage.sessions.all()
    sync, taken = Sync().encode(), 0

    while not session._holds and taken < 1_000_000:
        session.frame(Sync.kind, sync)
        taken += 1

    assert taken < 300_000  # of five bytes each


async def test_a_large_pipeline_is_answered_in_order(stage: Stage) -> None:
    client = await stage.client()
    batch = [
        message
        for number in range(500)
        for message in (
            Parse(b"", COUNT if number % 50 == 0 else f"SELECT {number}".encode()),
            Bind(b"", b""),
            Execute(b""),
        )
    ]

    frames = await client.ask(*batch, Sync())

    rows = [DataRow.decode(frame.raw).values[0] for frame in frames if frame.kind == DataRow.kind]
    assert rows == [b"42" if number % 50 == 0 else str(number).encode() for number in range(500)]


@pytest.mark.parametrize(
    "setting",
    [
        "statement_timeout = 1",
        "search_path = nowhere",
        "standard_conforming_strings = off",
        "local_preload_libraries = 'nowhere'",
    ],
)
async def test_what_a_role_sets_for_its_sessions_to_come_is_taken_back(
    stage: Stage, twin_cluster: Cluster, setting: str
) -> None:
    """PostgreSQL lets each role do it. That the proxy refuses the statement is not relied on."""
    name = setting.split()[0]
    client = await stage.client()
    before = values(await client.ask(Query(f"SHOW {name}".encode())))
    direct = await stage.direct_client()
    for role in ("ada", "ada IN DATABASE twin"):
        frames = await direct.ask(Query(f"ALTER ROLE {role} SET {setting}".encode()))
        assert errors(frames) == []

    client = await stage.client()

    assert values(await client.ask(Query(f"SHOW {name}".encode()))) == before
    with psycopg.connect(twin_cluster.dsn()) as owner:
        assert owner.execute("SELECT FROM pg_db_role_setting WHERE setrole <> 0").fetchall() == []


def values(frames: list[Frame]) -> list[bytes | None]:
    """The first column of the rows."""
    return [DataRow.decode(frame.raw).values[0] for frame in frames if frame.kind == DataRow.kind]
