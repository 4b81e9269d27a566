"""asyncpg: Parse, Describe, Flush, then binary in both directions, and portals with row limits."""

from collections.abc import AsyncIterator
from decimal import Decimal

import asyncpg
import pytest

from tests.clients.questions import AMOUNTS, CITIES, ROWS, check_amounts, check_cities
from tests.support import shop
from tests.support.running import Noisegate

Cities = dict[str | None, int]


@pytest.fixture
async def connection(proxy: Noisegate) -> AsyncIterator[asyncpg.Connection]:
    connection = await _connect(proxy)
    yield connection
    await connection.close()


async def _connect(proxy: Noisegate) -> asyncpg.Connection:
    return await asyncpg.connect(
        host="127.0.0.1",
        port=proxy.port,
        user="ada",
        password=shop.PASSWORDS["ada"],
        database=proxy.database,
        ssl="require",
    )


async def test_answers_come_in_binary(connection: asyncpg.Connection, cities: Cities) -> None:
    check_cities([tuple(row) for row in await connection.fetch(CITIES)], cities)
    check_amounts([tuple(row) for row in await connection.fetch(AMOUNTS.format("$1"), Decimal(50))])


async def test_a_prepared_statement_is_described_before_it_is_run(connection: asyncpg.Connection) -> None:
    statement = await connection.prepare(AMOUNTS.format("$1"))

    assert [kind.name for kind in statement.get_parameters()] == ["numeric"]
    assert [(column.name, column.type.name) for column in statement.get_attributes()] == [
        ("status", "status"),
        ("count", "int8"),
        ("avg", "numeric"),
        ("sum", "numeric"),
    ]
    check_amounts([tuple(row) for row in await statement.fetch(Decimal(50))])
    check_amounts([tuple(row) for row in await statement.fetch(Decimal(50))])


async def test_one_row_and_one_value_suspend_the_portal(connection: asyncpg.Connection, cities: Cities) -> None:
    assert await connection.fetchval(CITIES) == "Berlin"
    row = await connection.fetchrow(CITIES)
    assert row is not None
    assert row["city"] == "Berlin"
    check_cities([tuple(row) for row in await connection.fetch(CITIES)], cities)


async def test_cursors_go_over_a_private_answer(connection: asyncpg.Connection, cities: Cities) -> None:
    async with connection.transaction():
        check_cities([tuple(row) async for row in connection.cursor(CITIES, prefetch=2)], cities)
        cursor = await connection.cursor(CITIES)
        await cursor.forward(1)
        assert (await cursor.fetchrow())["city"] == "Graz"


async def test_a_refusal_leaves_the_session_usable(connection: asyncpg.Connection, cities: Cities) -> None:
    with pytest.raises(asyncpg.InsufficientPrivilegeError) as refusal:
        await connection.fetch(ROWS)
    assert refusal.value.hint
    check_cities([tuple(row) for row in await connection.fetch(CITIES)], cities)


async def test_a_refusal_in_a_transaction_is_rolled_back_to_its_savepoint(
    connection: asyncpg.Connection, cities: Cities
) -> None:
    async with connection.transaction():
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            async with connection.transaction():
                await connection.fetch(ROWS)
        check_cities([tuple(row) for row in await connection.fetch(CITIES)], cities)


async def test_copy_from_query_takes_parameters(connection: asyncpg.Connection) -> None:
    chunks: list[bytes] = []

    async def keep(data: bytes) -> None:
        chunks.append(data)

    await connection.copy_from_query(AMOUNTS.format("$1"), Decimal(50), output=keep, format="csv")

    rows = [line.split(",") for line in b"".join(chunks).decode().splitlines()]
    check_amounts([(status, int(count), average, total) for status, count, average, total in rows])


async def test_a_pool_resets_its_connections(proxy: Noisegate, cities: Cities) -> None:
    pool = await asyncpg.create_pool(
        host="127.0.0.1",
        port=proxy.port,
        user="ada",
        password=shop.PASSWORDS["ada"],
        database=proxy.database,
        ssl="require",
        min_size=2,
        max_size=2,
    )
    async with pool:
        for _ in range(4):
            async with pool.acquire() as connection:
                check_cities([tuple(row) for row in await connection.fetch(CITIES)], cities)


async def test_types_that_it_does_not_know_are_looked_up(connection: asyncpg.Connection) -> None:
    assert await connection.fetch("SELECT DISTINCT category FROM products ORDER BY 1")
    kinds = await connection.fetchval("SELECT enum_range(NULL::status)")
    assert kinds == ["open", "paid", "sent", "returned"]
    assert await connection.fetchval("SELECT 'paid'::status = ANY($1::status[])", ["paid", "sent"]) is True


async def test_a_statement_that_takes_too_long_is_cancelled(connection: asyncpg.Connection) -> None:
    with pytest.raises(TimeoutError):
        await connection.fetch("SELECT pg_sleep(20)", timeout=0.3)
    assert await connection.fetchval("SELECT 1") == 1
