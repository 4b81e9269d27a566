"""Private statements meet the session: what a client sees of them, message by message."""

from proxy.wire.backend import CommandComplete, DataRow, NoticeResponse, RowDescription
from proxy.wire.frontend import PORTAL, STATEMENT, Bind, Describe, Execute, Flush, Parse, Query, Sync
from tests.server.raw import errors, kinds
from tests.server.stage import Stage, stage, twin_cluster  # noqa: F401

COUNT = b"SELECT count(*) FROM orders"


async def test_a_private_query_is_answered_from_the_noised_columns(stage: Stage) -> None:
    client = await stage.client()

    frames = await client.ask(Query(COUNT))

    assert kinds(frames) == "TDCZ"
    assert DataRow.decode(frames[1].raw).values == (b"42",)


async def test_the_extended_protocol_gives_types_first_and_the_answer_at_bind(stage: Stage) -> None:
    client = await stage.client()

    described = await client.ask(Parse(b"s", COUNT), Describe(STATEMENT, b"s"), Sync())
    assert kinds(described) == "1tTZ"
    assert stage.service.answered == 0

    frames = await client.ask(Bind(b"", b"s"), Describe(PORTAL, b""), Execute(b""), Sync())
    assert kinds(frames) == "2TDCZ"
    assert stage.service.answered == 1
