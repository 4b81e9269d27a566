"""A name means to the proxy what it means to the twin, whatever of a pipeline fails or is skipped."""

import pytest

from proxy.wire.frontend import STATEMENT, Bind, Close, Execute, Parse, Query, Sync
from tests.server.raw import Message, errors, kinds
from tests.server.stage import Stage

COUNT, OTHER = b"SELECT count(*) FROM orders", b"SELECT count(*) FROM public.orders"
FAILS = Execute(b"nothing")

SKIPPED: list[list[Message]] = [
    [Parse(b"", OTHER)],
    [Parse(b"", OTHER), Parse(b"", OTHER)],
    [Parse(b"", b"SELECT 1")],
    [Parse(b"", OTHER), Parse(b"", b"SELECT 1"), Parse(b"", OTHER)],
    [Parse(b"", b"DELETE FROM products")],
    [Close(STATEMENT, b"")],
    [Close(STATEMENT, b""), Parse(b"", OTHER)],
    [Query(b"SELECT 1")],
    [Query(OTHER)],
    [Bind(b"", b""), Execute(b""), Query(b"SELECT '\xff'")],
]


@pytest.mark.parametrize("skipped", SKIPPED)
async def test_what_is_skipped_leaves_a_statement_as_it_was(stage: Stage, skipped: list[Message]) -> None:
    client = await stage.client()
    assert kinds(await client.ask(Parse(b"", COUNT), Sync())) == "1Z"

    client.send(FAILS, *skipped, Sync(), Bind(b"", b""), Execute(b""), Sync())

    assert kinds(await client.until()) == "EZ"
    assert kinds(await client.until()) == "2DCZ"
    assert [request.text for request in stage.service.requests] == [COUNT.decode()]


async def test_a_statement_that_is_closed_and_parsed_anew_where_that_is_skipped_stays(stage: Stage) -> None:
    client = await stage.client()
    assert kinds(await client.ask(Parse(b"named", COUNT), Sync())) == "1Z"

    client.send(FAILS, Close(STATEMENT, b"named"), Parse(b"named", OTHER), Query(b"EXECUTE named"), Sync())
    client.send(
        Query(b"EXECUTE named"), Close(STATEMENT, b"named"), Parse(b"named", OTHER), Bind(b"", b"named"), Sync()
    )

    assert kinds(await client.until()) == "EZ"
    assert kinds(await client.until()) == "TDCZ"
    assert kinds(await client.until()) == "312Z"
    assert [request.text for request in stage.service.requests] == [COUNT.decode(), OTHER.decode()]


@pytest.mark.parametrize("failing", [b"SELEC", b"SELECT nothing FROM orders", b"DELETE FROM products"])
async def test_an_unnamed_statement_that_fails_takes_the_one_before_it_away(stage: Stage, failing: bytes) -> None:
    client = await stage.client()

    client.send(Parse(b"", COUNT), Parse(b"", failing), Sync(), Bind(b"", b""), Execute(b""), Sync())

    assert kinds(await client.until()) == "1EZ"
    assert errors(await client.until())[0].sqlstate == "26000"
    assert stage.service.requests == []


async def test_a_cursor_outside_a_transaction_fails_as_in_postgresql_behind_any_sync(stage: Stage) -> None:
    """Nothing that the proxy asks makes PostgreSQL take it for a part of a longer pipeline."""
    client = await stage.client()
    cursor = b"DECLARE c CURSOR FOR " + COUNT

    client.send(Parse(b"", b"SELECT 1"), Bind(b"", b""), Execute(b""), Sync())
    client.send(Parse(b"", cursor), Bind(b"", b""), Execute(b""), Sync())

    assert kinds(await client.until()) == "12DCZ"
    assert errors(await client.until())[0].sqlstate == "25P01"
