"""A session that outlives a budget period tells nothing more of what that period has paid for."""

import asyncio
from collections.abc import Sequence

import pytest

from proxy.wire.frontend import Bind, Execute, Flush, Parse, Query, Sync
from tests.server.raw import Message, RawClient, errors, kinds
from tests.server.stage import Stage

COUNT = b"SELECT count(*) FROM orders"
GROUPS = b"SELECT status, count(*) AS n FROM orders GROUP BY status"
NEXT = "month:2026-12"
HELD: list[Message] = [Query(b"DECLARE c SCROLL CURSOR WITH HOLD FOR " + GROUPS)]
OPEN: list[Message] = [Query(b"BEGIN"), Query(b"DECLARE c SCROLL CURSOR FOR " + GROUPS), Query(b"FETCH 1 FROM c")]
HALF: list[Message] = [Query(b"BEGIN"), Parse(b"s", GROUPS), Bind(b"p", b"s"), Execute(b"p", 1), Sync()]
FETCH: list[Message] = [Query(b"FETCH ALL FROM c")]
PREPARED_FETCH: list[Message] = [Parse(b"", b"FETCH ALL FROM c"), Bind(b"", b""), Execute(b""), Sync()]
REST: list[Message] = [Execute(b"p"), Sync()]


async def said(client: RawClient, messages: Sequence[Message]) -> str:
    """Send messages and wait for the end of each batch."""
    client.send(*messages)
    batches = sum(isinstance(message, Query | Sync) for message in messages)
    return "".join([kinds(await client.until()) for _ in range(batches)])


@pytest.mark.parametrize(
    ("first", "then"),
    [(HELD, FETCH), (HELD, PREPARED_FETCH), (OPEN, FETCH), (OPEN, PREPARED_FETCH), (HALF, REST)],
    ids=["held", "held, prepared", "open", "open, prepared", "half fetched"],
)
async def test_what_a_cursor_still_has_is_told_in_its_own_period_alone(
    stage: Stage, first: list[Message], then: list[Message]
) -> None:
    stay, leave = await stage.client(), await stage.client()
    for client in (stay, leave):
        assert "E" not in await said(client, first)
    assert "DD" in await said(stay, then)

    stage.service.period = NEXT

    assert errors(await leave.ask(*then))[0].sqlstate == "34000"
    assert stage.service.answered == 2


async def test_a_portal_is_closed_in_the_middle_of_a_pipeline(stage: Stage) -> None:
    client = await stage.client()
    client.send(Parse(b"", GROUPS), Bind(b"", b""), Execute(b"", 1), Flush())
    await client.until(b"s")

    stage.service.period = NEXT

    frames = await client.ask(Execute(b""), Sync())
    assert kinds(frames) == "EZ"
    assert errors(frames)[0].sqlstate == "34000"
    assert kinds(await client.ask(Query(COUNT))) == "TDCZ"


@pytest.mark.parametrize("then", [Query(b"ROLLBACK TO s"), Query(b"ROLLBACK TO s; FETCH ALL FROM c")])
async def test_a_failed_transaction_that_would_come_back_to_its_cursor_ends(stage: Stage, then: Message) -> None:
    client = await stage.client()
    await said(client, [*OPEN, Query(b"SAVEPOINT s"), Query(b"SELECT 1/0")])

    stage.service.period = NEXT

    client.send(then)
    (error,) = errors(await client.rest())
    assert (error.fields["S"], error.sqlstate) == ("FATAL", "25P03")


async def test_a_string_of_statements_does_not_carry_a_cursor_over_the_end(stage: Stage) -> None:
    client = await stage.client()
    await said(client, OPEN)

    client.send(Query(b"TABLE products; SELECT pg_sleep(0.5); FETCH ALL FROM c; " + COUNT))
    await client.until(b"C")
    await asyncio.sleep(0.1)
    stage.service.period = NEXT

    (error,) = errors(await client.until())
    assert error.sqlstate == "0A000"
    assert "period ended" in error.fields["M"]


async def test_an_answer_that_comes_after_the_end_is_of_the_period_that_paid(stage: Stage) -> None:
    client = await stage.client()
    stage.service.seconds = 0.3

    client.send(*HELD)
    while not stage.service.answered:
        await asyncio.sleep(0.01)
    stage.service.period = NEXT
    assert "E" not in kinds(await client.until())

    assert errors(await client.ask(*FETCH))[0].sqlstate == "34000"


async def test_noisegate_last_is_of_the_running_period(stage: Stage) -> None:
    client = await stage.client()
    for _ in range(2):
        await client.ask(Query(COUNT))
    assert len(stage.service.last) == 1

    stage.service.period = NEXT
    await client.ask(Query(COUNT))

    assert not stage.service.last


async def test_a_session_without_answers_keeps_its_cursors(stage: Stage) -> None:
    client = await stage.client()
    await client.ask(Query(b"DECLARE c CURSOR WITH HOLD FOR TABLE products"))

    stage.service.period = NEXT

    assert kinds(await client.ask(Query(b"FETCH 1 FROM c"))) == "TDCZ"


ENDS: list[Message] = [Bind(b"", b""), Execute(b""), Sync()]


@pytest.mark.parametrize(
    "messages",
    [
        [Query(GROUPS)],
        [Query(b"SELECT 1; " + GROUPS)],
        [Query(b"COPY (" + GROUPS + b") TO STDOUT")],
        [Query(b"PREPARE p AS " + GROUPS + b"; EXECUTE p")],
        [Parse(b"", GROUPS), *ENDS],
        [Parse(b"", b"COPY (" + GROUPS + b") TO STDOUT"), *ENDS],
    ],
    ids=["query", "string", "copy", "execute", "extended", "extended copy"],
)
async def test_no_text_that_other_sessions_of_the_analyst_are_shown_has_an_answer(
    stage: Stage, messages: list[Message]
) -> None:
    client, other = await stage.client(), await stage.client()
    assert "E" not in await said(client, messages)

    frames = await other.ask(Query(b"SELECT query FROM pg_stat_activity WHERE usename = current_user"))
    told = b"".join(frame.raw for frame in frames if frame.kind == b"D")
    assert b"FROM orders GROUP BY status" in told or b"FROM unnest($" in told or b"COMMIT" in told
    assert b'"-3"' not in told
