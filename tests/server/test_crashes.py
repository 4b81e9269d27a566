"""No messages of a client reach the places where PostgreSQL itself crashes: a crash would end everybody's sessions."""

import psycopg
import pytest

from proxy.twin.embedded import Cluster
from proxy.wire.frontend import PORTAL, STATEMENT, Bind, Close, Describe, Execute, Parse, Query, Sync
from tests.server.raw import Message, errors, kinds
from tests.server.stage import Stage

COUNT = b"SELECT count(*) FROM orders"


def run(text: bytes, name: bytes = b"") -> list[Message]:
    return [Parse(name, text), Bind(b"", name), Execute(b""), Sync()]


async def test_explain_does_not_follow_prepared_statements_without_end(stage: Stage) -> None:
    neighbour, client = await stage.client(), await stage.client()

    assert errors(await client.ask(Parse(b"s1", b"EXECUTE s1"), Sync()))[0].sqlstate == "0A000"
    await client.ask(Query(b"EXPLAIN EXECUTE s1"))

    assert kinds(await client.ask(Query(b"SELECT 1"))) == "TDCZ"
    assert kinds(await neighbour.ask(Query(b"SELECT 1"))) == "TDCZ"


@pytest.mark.parametrize(
    ("script", "refused"),
    [
        ([Parse(b"a", b"EXECUTE b"), Parse(b"b", b"EXECUTE a")], "0A000"),
        (
            [Parse(b"b", b"SELECT 1"), Parse(b"a", b"EXECUTE b"), Close(STATEMENT, b"b"), Parse(b"b", b"EXECUTE a")],
            "0A000",
        ),
        ([Parse(b"a", b"EXECUTE b"), Parse(b"b", b"EXECUTE c")], "0A000"),
        ([Parse(b"b", b"EXECUTE c"), Parse(b"a", b"EXECUTE b")], "0A000"),
        ([Parse("é".encode(), b"EXECUTE b")], "0A000"),
        ([Parse(b"a", 'EXECUTE "é"'.encode())], "0A000"),
        ([Parse(b"a" * 64, b"EXECUTE " + b"a" * 63)], "0A000"),
        ([Parse(b"a", b"EXECUTE b"), Query(b"SELECT 1/0"), Close(STATEMENT, b"a"), Parse(b"b", b"EXECUTE a")], "22012"),
    ],
)
async def test_prepared_statements_that_execute_others_never_stand_in_a_row(
    stage: Stage, script: list[Message], refused: str
) -> None:
    client = await stage.client()

    client.send(*script, Sync(), Parse(b"last", b"SELECT 1"), Sync())
    frames = await client.until()
    while b"".join(frame.kind for frame in frames[-2:]) != b"1Z":
        frames += await client.until()

    assert [error.sqlstate for error in errors(frames)] == [refused]


async def test_a_name_is_not_believed_to_be_free_before_it_is(stage: Stage) -> None:
    """A Close behind an error is skipped; the next pipeline is on its way before that is known."""
    client = await stage.client()
    await client.ask(Parse(b"a", b"EXECUTE b"), Sync())

    client.send(*run(b"SELECT 1/0")[:-1], Close(STATEMENT, b"a"), Sync(), Parse(b"b", b"EXECUTE a"), Sync())

    assert [error.sqlstate for error in errors(await client.until())] == ["22012"]
    assert [error.sqlstate for error in errors(await client.until())] == ["0A000"]


async def test_a_prepared_execute_still_runs_and_is_explained(stage: Stage) -> None:
    client = await stage.client()
    await client.ask(Query(b"PREPARE a AS SELECT 7"))

    assert kinds(await client.ask(*run(b"EXECUTE a", b"e"))) == "12DCZ"
    assert kinds(await client.ask(Bind(b"", b"e"), Execute(b""), Sync())) == "2DCZ"
    assert kinds(await client.ask(Query(b"EXPLAIN EXECUTE e"))) == "TDCZ"


@pytest.mark.parametrize("message", [Execute(b""), Describe(PORTAL, b"")], ids=["Execute", "Describe"])
@pytest.mark.parametrize(
    "between",
    [
        [],
        [Query(b"ABORT AND CHAIN"), Query(b"EXECUTE nothing"), Bind(b"", b"_ng_outer"), Sync()],
        [Query(b"ABORT AND CHAIN"), Query(b"SELECT 1/0"), Bind(b"", b"nothing"), Sync()],
        [Bind(b"", b"nothing"), Sync()],
        [Query(b"ROLLBACK")],
        [Query(b"SELECT 1")],
    ],
    ids=["at once", "the chain", "a chain with another", "a Bind that fails", "after a ROLLBACK", "a failed one"],
)
async def test_the_unnamed_portal_of_a_failed_query_is_not_reached(
    stage: Stage, twin_cluster: Cluster, message: Message, between: list[Message]
) -> None:
    client = await stage.client(client_encoding="LATIN1")
    with psycopg.connect(twin_cluster.dsn()) as neighbour:
        client.send(Query(b"BEGIN; " + COUNT + b"; SELECT 1/0"), *between, message, Sync(), Query(b"ROLLBACK"))
        client.send(Query(b"SELECT 'the last'"))
        frames = await client.until()
        while b"the last" not in frames[-3].raw:
            frames += await client.until()

        assert "34000" in [error.sqlstate for error in errors(frames)]
        assert 'portal "" does not exist' in [error.fields["M"] for error in errors(frames)]
        assert neighbour.execute("SELECT 1").fetchone() == (1,)


async def test_the_unnamed_portal_of_a_bind_is_reached_in_whatever_order_messages_come(stage: Stage) -> None:
    client = await stage.client()
    await client.ask(Query(b"BEGIN"))

    client.send(Parse(b"", b"SELECT 1"), Bind(b"", b""), Sync(), Describe(PORTAL, b""), Execute(b""), Sync())
    assert kinds(await client.until()) == "12Z"
    assert kinds(await client.until()) == "TDCZ"
    client.send(Query(b"SELECT 1"), Bind(b"", b""), Sync(), Execute(b""), Sync())
    assert kinds(await client.until()) == "TDCZ"
    assert kinds(await client.until()) == "EZ"  # a Query ends the unnamed statement


async def test_portals_of_what_runs_inside_others_are_nobody_s(stage: Stage) -> None:
    client = await stage.client()

    for message in (Execute(b"<unnamed portal 1>"), Describe(PORTAL, b"<unnamed portal 1>")):
        assert errors(await client.ask(message, Sync()))[0].sqlstate == "42501"
