"""Who reads slowly, or not at all, takes its time and no memory of the proxy's."""

import asyncio

import pytest

from proxy.session.prepared_statements import Prepared, PreparedStatements
from proxy.session.usage_limits import ByteQuota, ByteQuotaLimits
from proxy.settings import SessionSettings
from proxy.wire.backend import DataRow, ErrorResponse
from proxy.wire.buffer import FrameBuffer
from proxy.wire.frontend import Bind, Execute, Parse, Query, Sync
from proxy.wire.startup import StartupMessage
from rules.functions.function import LiteralSettings
from rules.sql.statement import Kind, Statement
from tests.server.raw import RawClient, errors, kinds
from tests.server.stage import ANALYST, DATABASE, Stage
from tests.support.waiting import until

LARGE = 20_000_000
WIDE = f"SELECT repeat('x', {LARGE})".encode()
LONG = b"SELECT repeat('x', 1000) FROM generate_series(1, 20000)"


@pytest.mark.parametrize("extended", [False, True])
async def test_a_row_larger_than_any_message_may_be_is_passed_on_as_it_comes(stage: Stage, extended: bool) -> None:
    client = await stage.client()

    frames = await client.ask(
        *([Parse(b"", WIDE), Bind(b"", b""), Execute(b""), Sync()] if extended else [Query(WIDE)])
    )

    (row,) = (frame for frame in frames if frame.kind == DataRow.kind)
    assert DataRow.decode(row.raw).values == (b"x" * LARGE,)
    assert kinds(await client.ask(Query(b"SELECT 1"))) == "TDCZ"


async def test_any_other_message_that_is_too_large_ends_its_session_alone(stage: Stage) -> None:
    client, neighbour = await stage.client(), await stage.client()

    client.send(Query(f"SELECT repeat('x', {LARGE})::int".encode()))  # the error quotes it

    assert [error.sqlstate for error in errors(await client.rest())] == ["54000"]
    assert kinds(await neighbour.ask(Query(b"SELECT 1"))) == "TDCZ"


@pytest.mark.extended
async def test_the_time_for_which_a_client_reads_nothing_is_no_time_of_its_statement(stage: Stage) -> None:
    stage.sessions.settings = SessionSettings(statement_timeout_seconds=3)
    watching = asyncio.create_task(stage.sessions.watch())
    client = await _reader(stage)
    client.send(Query(LONG))
    await until(lambda: stage.sessions.all()[0]._relay.paused_since is not None)

    await asyncio.sleep(4.5)  # the watch has looked when the limit was over
    frames = await client.until()

    assert errors(frames) == []
    assert sum(frame.kind == DataRow.kind for frame in frames) == 20_000
    watching.cancel()


@pytest.mark.extended
async def test_a_client_may_be_ended_that_takes_nothing_in(stage: Stage) -> None:
    stage.sessions.settings = SessionSettings(reading_timeout_seconds=0.5)
    watching = asyncio.create_task(stage.sessions.watch())
    client = await _reader(stage)
    client.send(Query(LONG))

    await asyncio.sleep(2.5)  # the watch has looked twice
    frames = await client.rest()

    assert [error.sqlstate for error in errors(frames)] == ["57P05"]
    assert 0 < sum(frame.kind == DataRow.kind for frame in frames) < 20_000
    watching.cancel()


@pytest.mark.parametrize("text", [LONG, WIDE], ids=["between rows", "inside a row"])
async def test_a_farewell_never_stands_inside_a_row(stage: Stage, text: bytes) -> None:
    client = await _reader(stage)
    client.send(Query(text))
    await until(lambda: stage.sessions.all()[0]._relay.paused_since is not None)

    stage.sessions.all()[0].terminate()
    frames = await client.rest()

    assert {frame.kind for frame in frames} <= {b"T", b"D", ErrorResponse.kind}
    assert all(b"57P01" not in frame.raw for frame in frames if frame.kind == DataRow.kind)


async def _reader(stage: Stage) -> RawClient:
    """A client that keeps little of what it has not been asked for."""
    reader, writer = await asyncio.open_unix_connection(str(stage.proxied), limit=1000)
    writer.write(StartupMessage({"user": ANALYST, "database": DATABASE}).encode())
    client = RawClient(reader, writer, FrameBuffer(1 << 30))
    await client.until()
    return client


def test_what_sessions_prepare_has_a_limit_for_each_analyst_and_in_all() -> None:
    statement = Prepared(Statement(Kind.QUERY, "x" * 9_000, 0), LiteralSettings())
    room = ByteQuota(ByteQuotaLimits(session=15_000, analyst=25_000, in_all=35_000))
    ada = [PreparedStatements(room.share("ada")) for _ in range(3)]
    bob = PreparedStatements(room.share("bob"))

    ada[0].has_prepared("a", statement)
    assert not ada[0].are_full
    ada[0].has_prepared("b", statement)
    assert ada[0].are_full and not ada[1].are_full
    ada[1].has_prepared("a", statement)
    assert all(names.are_full for names in ada) and not bob.are_full
    bob.has_prepared("a", statement)
    assert bob.are_full

    ada[0].close()
    ada[0].has_prepared("c", statement)
    assert not any(names.are_full for names in (*ada[1:], bob))
    ada[1].forget_prepared()
    bob.has_prepared("a", None)
    assert (room.in_all, dict(room.taken)) == (0, {})
