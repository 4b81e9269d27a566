"""Large messages of a client: up to a limit that a DBA may raise, in room that its analyst and all analysts have."""

import pytest

from proxy.session.usage_limits import ByteQuotaLimits
from proxy.wire.backend import DataRow, ErrorResponse
from proxy.wire.frontend import Bind, CopyData, Execute, Parse, Query, Sync
from tests.server.raw import RawClient, errors, kinds
from tests.server.stage import Stage
from tests.support.waiting import until

MEGABYTE = 1024 * 1024
LENGTH = b"SELECT octet_length($1::bytea)"
COUNT = b"SELECT count(*), $2::text AS tag FROM orders WHERE amount > $1"


def bound(size: int) -> tuple[Bind, Execute, Sync]:
    return Bind(b"", b"length", (1,), (b"x" * size,)), Execute(b""), Sync()


async def of_length(client: RawClient) -> None:
    assert kinds(await client.ask(Parse(b"length", LENGTH), Sync())) == "1Z"


@pytest.mark.extended
async def test_a_value_of_many_megabytes_is_relayed_and_its_room_is_free_afterwards(stage: Stage) -> None:
    client = await stage.client()
    await of_length(client)

    frames = await client.ask(*bound(60 * MEGABYTE))

    (row,) = (frame for frame in frames if frame.kind == DataRow.kind)
    assert DataRow.decode(row.raw).values == (str(60 * MEGABYTE).encode(),)
    await until(lambda: stage.sessions._room.in_all == 0)


@pytest.mark.parametrize(
    "message",
    [Query(b"SELECT 1" + b" " * 65 * MEGABYTE), Parse(b"", b" " * 65 * MEGABYTE), *bound(65 * MEGABYTE)[:1]],
    ids=["Query", "Parse", "Bind"],
)
async def test_a_message_beyond_the_limit_is_refused_with_the_name_of_the_option_and_the_session_goes_on(
    stage: Stage, message: Query | Parse | Bind
) -> None:
    client = await stage.client()
    await of_length(client)

    frames = await (client.ask(message) if isinstance(message, Query) else client.ask(message, Execute(b""), Sync()))

    assert kinds(frames) == "EZ"
    (error,) = errors(frames)
    assert (error.sqlstate, error.fields["V"]) == ("54000", "ERROR")
    assert "64 MB" in error.fields["M"] and "--max-message" in error.fields["H"]
    assert stage.sessions._room.in_all == 0
    assert kinds(await client.ask(Query(b"SELECT 1"))) == "TDCZ"
    assert kinds(await client.ask(*bound(3))) == "2DCZ"


@pytest.mark.extended
async def test_nothing_of_a_message_that_is_refused_is_kept(stage: Stage) -> None:
    client = await stage.client()
    (session,) = stage.sessions.all()
    whole = Query(b"SELECT 1" + b" " * 100 * MEGABYTE).encode()

    client.writer.write(whole[: 80 * MEGABYTE])
    await until(lambda: session._heard == 1)
    await client.writer.drain()

    assert stage.sessions._room.in_all == 0
    client.writer.write(whole[80 * MEGABYTE :])
    assert kinds(await client.until()) == "EZ"
    assert kinds(await client.ask(Query(b"SELECT 1"))) == "TDCZ"


async def test_data_of_a_copy_that_nobody_waits_for_is_let_go(stage: Stage) -> None:
    client = await stage.client()

    assert kinds(await client.ask(CopyData(bytes(70 * MEGABYTE)).encode(), Query(b"SELECT 1"))) == "TDCZ"


@pytest.mark.extended
async def test_messages_that_have_begun_count_for_their_analyst(stage: Stage) -> None:
    """128 MiB at the same time: two are on their way, and the third one is refused."""
    clients = [await stage.client() for _ in range(3)]
    wholes = []
    for client in clients:
        await of_length(client)
        wholes.append(b"".join(message.encode() for message in bound(60 * MEGABYTE)))
    for client, whole in zip(clients[:2], wholes, strict=False):
        client.writer.write(whole[:MEGABYTE])
    await until(lambda: stage.sessions._room.in_all > 110 * MEGABYTE)

    refused = await clients[2].ask(wholes[2])

    assert [error.sqlstate for error in errors(refused)] == ["54000"]
    for client, whole in zip(clients[:2], wholes, strict=False):
        client.writer.write(whole[MEGABYTE:])
        assert ErrorResponse.kind not in {frame.kind for frame in await client.until()}
    await until(lambda: stage.sessions._room.in_all == 0)
    assert kinds(await clients[2].ask(wholes[2])) == "2DCZ"


async def test_a_message_that_its_client_never_ends_is_forgotten_with_it(stage: Stage) -> None:
    client = await stage.client()
    client.writer.write(Query(b" " * 60 * MEGABYTE).encode()[:MEGABYTE])
    await until(lambda: stage.sessions._room.in_all > 0)

    await client.close()

    await until(lambda: stage.sessions._room.in_all == 0)


async def test_values_for_protected_tables_have_a_limit_of_their_own(stage: Stage) -> None:
    client = await stage.client()
    bind = Bind(b"", b"", (), (b"1", b"x" * 5 * MEGABYTE))

    frames = await client.ask(Parse(b"", COUNT), bind, Execute(b""), Sync())

    assert [error.sqlstate for error in errors(frames)] == ["54000"]
    assert stage.service.answered == 0
    assert kinds(await client.ask(Query(b"SELECT 1"))) == "TDCZ"


def test_an_analyst_has_room_for_more_than_one_message() -> None:
    for megabytes in (1, 64, 1000):
        limits = ByteQuotaLimits().beside(megabytes * MEGABYTE)
        assert megabytes * MEGABYTE < limits.analyst < limits.in_all
