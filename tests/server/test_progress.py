"""NOTICEs that a statement still runs, message by message."""

import asyncio
from collections.abc import Mapping

import pytest

from proxy.wire.backend import BindComplete, CommandComplete, NoticeResponse, ParseComplete
from proxy.wire.buffer import Frame
from proxy.wire.frontend import PORTAL, Bind, Describe, Execute, Parse, Query, Sync
from tests.server.raw import Message, RawClient, errors
from tests.server.stage import Stage

COUNT = b"SELECT count(*) FROM orders"
EVERY_SECOND = {"noisegate.progress": "1"}
STILL = "still running after 1 s (300 s at most): "


def said(frames: list[Frame]) -> list[str]:
    return [NoticeResponse.decode(frame.raw).fields["M"] for frame in frames if frame.kind == NoticeResponse.kind]


async def slow_client(stage: Stage, settings: Mapping[str, str] = EVERY_SECOND, seconds: float = 1.3) -> RawClient:
    stage.service.seconds = seconds
    return await stage.client(**settings)


async def test_a_simple_query_says_that_it_still_runs_before_anything_else(stage: Stage) -> None:
    client = await slow_client(stage)

    frames = await client.ask(Query(COUNT))

    assert said(frames) == [STILL + COUNT.decode(), "ε 0.1 spent"]
    assert b"".join(frame.kind for frame in frames) == b"NTDNCZ"


async def test_in_a_pipeline_it_stands_between_whole_messages(stage: Stage) -> None:
    client = await slow_client(stage)
    question = Parse(b"", COUNT), Bind(b"", b""), Describe(PORTAL, b""), Execute(b"")

    frames = await client.ask(Parse(b"one", b"SELECT 1"), *question, Sync())

    order = [frame.kind for frame in frames]
    at = order.index(NoticeResponse.kind)
    assert order[:at] == [ParseComplete.kind, ParseComplete.kind]
    assert order[at + 1] == BindComplete.kind
    assert said(frames) == [STILL + COUNT.decode(), "ε 0.1 spent"]
    assert not errors(frames)


@pytest.mark.extended
@pytest.mark.parametrize(
    "messages",
    [
        (Query(b"PREPARE p AS " + COUNT), Query(b"EXECUTE p")),
        (Query(b"COPY (" + COUNT + b") TO STDOUT"),),
        (Query(b"BEGIN; DECLARE c CURSOR FOR " + COUNT),),
    ],
    ids=["prepared", "copied", "by a cursor"],
)
async def test_by_every_way_a_statement_may_be_asked(stage: Stage, messages: tuple[Message, ...]) -> None:
    client = await slow_client(stage)

    frames = [frame for message in messages for frame in await client.ask(message)]

    assert [words for words in said(frames) if words.startswith(STILL)]
    assert CommandComplete.kind in [frame.kind for frame in frames] and not errors(frames)


DEAF: tuple[dict[str, str], ...] = (
    {"noisegate.progress": "off"},
    {"noisegate.progress": "2"},
    {"noisegate.progress": "1", "noisegate.notices": "off"},
    {"noisegate.progress": "1", "client_min_messages": "warning"},
    {},
)


@pytest.mark.extended
async def test_who_wants_none_or_does_not_wait_so_long_hears_nothing(stage: Stage) -> None:
    clients = [await slow_client(stage, settings) for settings in (*DEAF, EVERY_SECOND)]

    answers = await asyncio.gather(*(client.ask(Query(COUNT)) for client in clients))

    heard = [sum(words.startswith("still") for words in said(answer)) for answer in answers]
    assert heard == [0, 0, 0, 0, 0, 1]


@pytest.mark.extended
async def test_a_client_that_does_not_read_is_told_nothing_more(stage: Stage) -> None:
    client = await slow_client(stage)
    client.send(Query(COUNT))
    await asyncio.sleep(0.3)
    (session,) = stage.sessions.all()
    session.pause_writing()
    await asyncio.sleep(0.9)
    session.resume_writing()

    assert said(await client.until()) == ["ε 0.1 spent"]


@pytest.mark.extended
async def test_nothing_is_said_once_it_is_cancelled(stage: Stage) -> None:
    client = await slow_client(stage, seconds=9)
    client.send(Query(COUNT))
    told = await client.until(NoticeResponse.kind)
    (session,) = stage.sessions.all()
    session.cancel()

    assert [error.sqlstate for error in errors(await client.until())] == ["57014"]
    assert said(told) == [STILL + COUNT.decode()]
    client.send(Query(b"SELECT pg_sleep(1.2)"))
    assert said(await client.until()) == []


@pytest.mark.extended
async def test_a_long_statement_is_shown_by_its_beginning_in_one_line(stage: Stage) -> None:
    client = await slow_client(stage)
    text = b"SELECT status,\n       count(*) AS n\n  FROM orders\n" + b" " * 9999 + b" GROUP BY status"

    (told, *_) = said(await client.ask(Query(text)))

    assert told == f"{STILL}SELECT status, count(*) AS n FROM orders"
