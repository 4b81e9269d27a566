"""A crash of the twin costs a session only what it had there: one that is idle goes on, with its settings."""

import asyncio
import os
import signal
from collections.abc import Iterator

import psycopg
import pytest

from proxy.session.session import Session
from proxy.twin.embedded import Cluster
from proxy.wire.frontend import Bind, Execute, Parse, Query, Sync
from tests.server.raw import Message, RawClient, errors, kinds
from tests.server.stage import DATABASE, Stage, make_twin
from tests.support.waiting import until


@pytest.fixture(scope="module", params=[18, pytest.param(16, marks=pytest.mark.extended)], ids=["on 18", "on 16"])
def twin_cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """One of its own: what is crashed here would end the sessions of other tests."""
    cluster = make_twin(request.param)
    yield cluster
    cluster.stop()


async def crash(stage: Stage, cluster: Cluster) -> None:
    """Kill a backend as a crash does: the server ends all others, and begins again."""
    links = [session._relay.link for session in stage.sessions.all()]
    with psycopg.connect(cluster.dsn(DATABASE)) as owner:
        os.kill(owner.info.backend_pid, signal.SIGKILL)
    await until(lambda: all(link._transport is None for link in links))


async def seen(stage: Stage) -> Session:
    """The only session, once it has been still for a while."""
    (session,) = stage.sessions.all()
    await until(lambda: session.activity != "active")
    session._relay.quiet_since -= 10
    session.look()
    await until(lambda: session.activity != "active")
    return session


async def value(client: RawClient, statement: bytes) -> bytes:
    frames = await client.ask(Query(statement))
    (row,) = [frame.raw for frame in frames if frame.kind == b"D"]
    return row[11:]


@pytest.fixture
async def client(stage: Stage, twin_cluster: Cluster) -> RawClient:
    async with asyncio.timeout(20):
        while True:
            try:
                return await stage.client(application_name="begun")
            except (OSError, EOFError):
                await asyncio.sleep(0.1)  # it is still beginning again after the crash of another test


async def test_an_idle_session_goes_on_with_its_settings(
    client: RawClient, stage: Stage, twin_cluster: Cluster
) -> None:
    await client.ask(Query(b"SET work_mem = '7MB'; SET noisegate.epsilon = '0.5'; SET search_path = other, public"))
    await client.ask(Query(b"SET DateStyle = 'SQL, DMY'; SET application_name = 'changed'"))
    await seen(stage)
    before = await value(client, b"SELECT pg_backend_pid()")
    await seen(stage)

    await crash(stage, twin_cluster)

    assert await value(client, b"SHOW work_mem") == b"7MB"
    for name, expected in (
        (b"noisegate.epsilon", b"0.5"),
        (b"search_path", b"other, public"),
        (b"DateStyle", b"SQL, DMY"),
        (b"application_name", b"changed"),
    ):
        assert await value(client, b"SHOW " + name) == expected
    assert await value(client, b"SELECT pg_backend_pid()") != before
    (session,) = stage.sessions.all()
    assert dict(stage.sessions.numbered()) == {session._relay.link.key.process_id: session}


async def test_a_session_that_has_said_nothing_yet_goes_on(
    client: RawClient, stage: Stage, twin_cluster: Cluster
) -> None:
    await crash(stage, twin_cluster)

    assert await value(client, b"SHOW application_name") == b"begun"


@pytest.mark.parametrize("ended_by", ["the client", "an operator"])
async def test_a_session_that_has_ended_is_not_moved(
    client: RawClient, stage: Stage, twin_cluster: Cluster, ended_by: str
) -> None:
    """Nor does it leave a connection on the twin, of which there are so many as clients may come."""
    (session,) = stage.sessions.all()
    if ended_by == "an operator":
        session.terminate()
    else:
        client.writer.transport.abort()
    await until(lambda: session._relay.link._transport is None)

    await asyncio.sleep(0.5)

    assert stage.sessions.all() == []
    with psycopg.connect(twin_cluster.dsn(DATABASE)) as owner:
        assert owner.execute("SELECT pid FROM pg_stat_activity WHERE application_name = 'begun'").fetchall() == []


async def test_a_client_that_leaves_while_it_waits_for_the_twin_ends_quietly(
    client: RawClient, stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    client.send(Query(b"SELECT pg_sleep(60); SELECT count(*) FROM public.orders"))
    (session,) = stage.sessions.all()
    await until(lambda: session._relay._quiet is not None)
    client.writer.transport.abort()

    await until(lambda: session._relay.link._transport is None)

    assert (session._relay.is_quiet, caplog.text) == (True, "")


async def test_the_unnamed_statement_is_parsed_again(client: RawClient, stage: Stage, twin_cluster: Cluster) -> None:
    await client.ask(Parse(b"", b"SELECT 41 + $1::int", (23,)), Sync())
    await seen(stage)

    await crash(stage, twin_cluster)

    assert kinds(await client.ask(Bind(b"", b"", (), (b"1",)), Execute(b""), Sync())) == "2DCZ"


@pytest.mark.parametrize(
    "messages",
    [
        [Query(b"BEGIN")],
        [Query(b"PREPARE p AS SELECT 1")],
        [Parse(b"p", b"SELECT 1"), Sync()],
        [Query(b"LISTEN x")],
        [Query(b"SELECT set_config('mine.too', 'x', false)")],
        [Query(b"SET mine.too = 'x'")],
        [Query(b"DECLARE c CURSOR WITH HOLD FOR SELECT 1")],
    ],
    ids=lambda messages: str(messages[0]),
)
async def test_a_session_that_would_lose_something_is_told_that_it_has(
    client: RawClient, stage: Stage, twin_cluster: Cluster, messages: list[Message]
) -> None:
    assert not errors(await client.ask(*messages))
    await seen(stage)

    await crash(stage, twin_cluster)

    (error,) = errors(await client.rest())
    assert (error.sqlstate, error.fields["S"]) == ("57P02", "FATAL")
    assert error.fields["H"] == "In a moment you should be able to reconnect to the database and repeat your command."


async def test_a_session_that_was_not_still_yet_is_told_too(
    client: RawClient, stage: Stage, twin_cluster: Cluster
) -> None:
    await client.ask(Query(b"SELECT 1"))

    await crash(stage, twin_cluster)

    assert [error.sqlstate for error in errors(await client.rest())] == ["57P02"]


async def test_a_type_that_has_another_number_is_not_the_same_twin(
    client: RawClient, stage: Stage, twin_cluster: Cluster
) -> None:
    await client.ask(Query(b"SELECT 1"))
    await seen(stage)
    with psycopg.connect(twin_cluster.dsn(DATABASE), autocommit=True) as owner:
        owner.execute("CREATE TYPE another AS ENUM ('x')")
        owner.execute("CHECKPOINT")

    await crash(stage, twin_cluster)

    assert [error.sqlstate for error in errors(await client.rest())] == ["57P02"]
    with psycopg.connect(twin_cluster.dsn(DATABASE), autocommit=True) as owner:
        owner.execute("DROP TYPE another")
