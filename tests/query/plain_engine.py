"""The simplest engine over a real PostgreSQL: a connection for each snapshot."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import psycopg
from psycopg import AsyncConnection

from proxy.engine.engine import EngineError, Row
from rules.catalog import Catalog


class PlainSnapshot:
    def __init__(self, connection: AsyncConnection, seen: list[str]) -> None:
        self._connection, self._seen = connection, seen

    async def run(self, sql: str) -> Sequence[Row]:
        self._seen.append(sql)
        try:
            cursor = await self._connection.execute(sql.encode())
            return [tuple(None if cell is None else str(cell) for cell in row) for row in await cursor.fetchall()]
        except psycopg.Error:
            raise EngineError from None

    async def cancel(self) -> None:
        self._connection.cancel()


class PlainEngine:
    """Remembers the statements that it ran."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self.seen: list[str] = []

    async def catalog(self) -> Catalog:
        return Catalog("shop", 180000, "1", "UTF8", ())

    @asynccontextmanager
    async def snapshot(self, *, time_zone: str, timeout_seconds: float) -> AsyncIterator[PlainSnapshot]:
        try:
            connection = await AsyncConnection.connect(self._dsn)
            await connection.set_isolation_level(psycopg.IsolationLevel.REPEATABLE_READ)
            await connection.set_read_only(True)
            await connection.execute("SELECT set_config('TimeZone', %s, true)", (time_zone,))
        except psycopg.Error:
            raise EngineError from None
        try:
            yield PlainSnapshot(connection, self.seen)
        finally:
            await asyncio.shield(connection.close())

    async def close(self) -> None: ...
