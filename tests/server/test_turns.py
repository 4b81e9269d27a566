"""A client that sends much, and reads nothing, is handled in turns, and takes no memory of the proxy's."""

import asyncio
import itertools

from proxy.wire.backend import DataRow, ReadyForQuery
from proxy.wire.frontend import Bind, Execute, Flush, Parse, Query, Sync
from tests.server.raw import RawClient, kinds
from tests.server.stage import Stage
from tests.support.waiting import until

ONE = Parse(b"", b"SELECT 1").encode() + Bind(b"", b"").encode() + Execute(b"").encode()
MOST_MESSAGES = 500  # in one round of the event loop
MOST_OWED = 4_000 + MOST_MESSAGES  # replies that the twin owes for messages of one client


async def test_no_round_handles_more_than_a_turn_of_what_a_client_sends(stage: Stage) -> None:
    greedy, other = await stage.client(), await stage.client()
    session, _ = stage.sessions.all()
    greedy.writer.write(ONE * 20_000)
    heard, owed, rounds = [session._heard], [0], 0

    async def watch() -> None:
        while True:
            heard.append(session._heard)
            owed.append(len(session._relay._expected))
            await asyncio.sleep(0)

    watching = asyncio.create_task(watch())
    while session._relay.paused_since is None and session._heard < 60_000:
        assert kinds(await other.ask(Query(b"SELECT 1"))) == "TDCZ"
        rounds += 1
    watching.cancel()

    assert rounds > 3
    assert max(later - earlier for earlier, later in itertools.pairwise(heard)) <= MOST_MESSAGES
    assert max(earlier - later for earlier, later in itertools.pairwise(owed)) <= MOST_MESSAGES
    assert max(owed) <= MOST_OWED


async def test_all_that_was_sent_without_a_sync_is_answered_when_it_is_read(stage: Stage) -> None:
    """More of it than the twin may owe at once: it keeps its replies to itself until it is asked to flush them."""
    client = await stage.client()
    client.writer.write(ONE * 5_000 + Sync().encode())

    frames = await client.until()

    assert sum(frame.kind == DataRow.kind for frame in frames) == 5_000
    assert frames[-1].kind == ReadyForQuery.kind


async def test_a_client_that_stops_in_the_middle_of_a_pipeline_is_not_held_for_ever(stage: Stage) -> None:
    client = await stage.client()
    (session,) = stage.sessions.all()
    parses = b"".join(Parse(f"s{number}".encode(), b"SELECT 1").encode() for number in range(6_000))

    client.writer.write(parses)
    await until(lambda: session._heard == 6_000)

    frames = await client.ask(Flush(), Sync())
    assert kinds(frames) == "1" * 6_000 + "Z"


async def test_rows_are_passed_on_in_turns_too(stage: Stage) -> None:
    reader, other = await stage.client(), await stage.client()
    reader.send(Query(b"SELECT generate_series(1, 200000)"))
    reading = asyncio.create_task(_read(reader))
    rounds = 0
    while not reading.done():
        assert kinds(await other.ask(Query(b"SELECT 1"))) == "TDCZ"
        rounds += 1

    assert reading.result() == 200_000
    assert rounds > 3


async def _read(client: RawClient) -> int:
    return sum(frame.kind == DataRow.kind for frame in await client.until())
