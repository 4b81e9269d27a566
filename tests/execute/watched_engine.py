"""The engine of the product, which tells what it was asked."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from proxy.engines.engine import Row
from proxy.engines.postgres.snapshots import PostgresEngine, PostgresSnapshot
from rules.catalog import Table
from rules.kernel.statement import Bounded, Marginals, Tally


class WatchedSnapshot(PostgresSnapshot):
    def __init__(self, snapshot: PostgresSnapshot, seen: list[str]) -> None:
        self._snapshot, self._seen = snapshot, seen

    @property
    def codec(self) -> str:
        return self._snapshot.codec

    async def run(self, statement: Bounded | Marginals | Tally) -> Sequence[Row]:
        self._seen.append(statement.sql)
        return await self._snapshot.run(statement)

    async def cancel(self) -> None:
        await self._snapshot.cancel()


class WatchedEngine(PostgresEngine):
    """Remembers the inner statements that it ran."""

    def __init__(self, dsn: str) -> None:
        super().__init__(dsn)
        self.seen: list[str] = []

    @asynccontextmanager
    async def snapshot(
        self,
        *,
        time_zone: str,
        timeout_seconds: float,
        tables: Sequence[Table] = (),
        statements: Sequence[Bounded | Marginals | Tally] = (),
    ) -> AsyncIterator[PostgresSnapshot]:
        async with super().snapshot(
            time_zone=time_zone, timeout_seconds=timeout_seconds, tables=tables, statements=statements
        ) as snapshot:
            yield WatchedSnapshot(snapshot, self.seen)
