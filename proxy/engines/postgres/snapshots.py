"""A PostgreSQL as the real database: pinned, read-only snapshots over a few connections.

What the server says when it fails may quote rows, so every failure becomes an EngineError without its text. A lost
connection is replaced once while a snapshot is being taken, that is before anything is charged, and never after.
"""

import asyncio
import re
import secrets
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from itertools import count
from typing import Any, TypeVar

import psycopg
from psycopg import AsyncConnection, pq

from proxy.causes import Cause, cause_of
from proxy.engines.engine import (
    EngineAway,
    EngineError,
    NotPermitted,
    Row,
    SchemaChanged,
    StatementFailed,
    UnknownTimeZone,
)
from proxy.engines.postgres.catalog import read_catalog
from proxy.engines.postgres.connector import Connector
from proxy.engines.postgres.opening import (
    BY_DBA,
    GRACE_SECONDS,
    Begun,
    NotPrepared,
    Opening,
    begin,
    check_not_newer,
    is_planned_no_more,
    is_taken_away,
    rows_of,
)
from proxy.engines.postgres.privileges import find_missing, find_risks
from proxy.engines.postgres.proof_queries import ALL_FINGERPRINTS
from rules.catalog import Catalog, Table, TableName, written
from rules.kernel.statement import Bounded, Marginals, Tally

TIME_ZONE = re.compile(r"[A-Za-z0-9_+\-/:<>,. ]{1,100}")
CATALOG_SECONDS = 60
CANCELLED = Cause("cancelled")
_CANCELS = 50  # at most, while the server has GRACE_SECONDS to end a statement

Answer = TypeVar("Answer")


class PostgresSnapshot:
    """One running transaction; see `proxy.engines.engine.Snapshot`."""

    def __init__(self, begun: Begun, deadline: float, opening: Opening) -> None:
        self._connection, self._codec = begun
        self._deadline = deadline
        self._opening = opening
        self._cancelled = False

    @property
    def codec(self) -> str:
        return self._codec

    async def run(self, statement: Bounded | Marginals | Tally) -> Sequence[Row]:
        if type(statement) not in (Bounded, Marginals, Tally):
            raise EngineError(cause=Cause("not_of_the_kernel"))
        try:
            rows, *after = await self._execute(self._opening.running(statement.sql) + self._opening.rechecking())
        except StatementFailed as error:
            if await is_planned_no_more(self._connection, self._opening, statement.sql, error.sqlstate):
                raise SchemaChanged from None
            raise
        for newer in after:
            check_not_newer(newer)
        return rows

    async def read_public(self, sql: str) -> Sequence[Row]:
        """Read rows of a public table, for the twin's copy of it."""
        (rows,) = await self._execute(sql)
        return rows

    async def _execute(self, sql: str) -> Sequence[Sequence[Row]]:
        if self._cancelled:
            raise EngineError(cause=CANCELLED)
        try:
            async with asyncio.timeout_at(self._deadline + GRACE_SECONDS):
                cursor = await self._ended(self._connection.execute(written(sql, self._codec)))
        except psycopg.Error as error:
            if error.sqlstate in BY_DBA and await is_taken_away(self._connection, self._opening):
                raise NotPermitted(sorted(table.name for table in self._opening.tables)) from None
            raise _failure(error, self._connection) from None
        except (OSError, TimeoutError, UnicodeEncodeError) as error:
            raise EngineError(cause=cause_of(error)) from None
        results = [rows_of(cursor.pgresult)]
        while cursor.nextset():
            results.append(rows_of(cursor.pgresult))
        return results

    async def _ended(self, running: Coroutine[Any, Any, Answer]) -> Answer:
        """What runs, at its end. Who is stopped meanwhile stops it, again and again: the server forgets a cancel that
        comes before the statement does."""
        task = asyncio.ensure_future(running)
        task.add_done_callback(_heard)
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            for _ in range(_CANCELS):
                await self.cancel()
                if (await asyncio.wait([task], timeout=GRACE_SECONDS / _CANCELS))[0]:
                    break
            raise
        finally:
            task.cancel()  # of one that does not end: its connection is given up
        return task.result()

    async def cancel(self) -> None:
        self._cancelled = True
        try:
            await self._connection.cancel_safe(timeout=GRACE_SECONDS)
        except (psycopg.Error, OSError):  # the cancel failed: closing the connection ends it
            await self._connection.close()


class PostgresEngine:
    """See `proxy.engines.engine.Engine`. At most `connections` snapshots are open at once; others wait in line."""

    failure: type[Exception] = EngineError

    def __init__(
        self,
        dsn: str,
        *,
        connections: int = 8,
        most_cost: float | None = None,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self.settings = settings or {}  # of transactions that read rows
        self._connector = Connector(dsn)
        self.connections = connections
        self._most_cost = most_cost
        self._slots = asyncio.Semaphore(connections)
        self._idle: list[AsyncConnection[Any]] = []
        self.in_use = 0
        self._prefix, self._numbers = f"noisegate_{secrets.token_hex(4)}", count()  # of plans: no other proxy has these

    @property
    def idle(self) -> int:
        """Connections that are kept for the next snapshot."""
        return len(self._idle)

    @property
    def is_busy(self) -> bool:
        """Return whether all connections are in use."""
        return self._slots.locked()

    async def bind(self, system_identifier: str) -> None:
        """Answer from this database alone; what was connected to before it was known is made anew."""
        self._connector.system_identifier = system_identifier
        await self._drop_idle()

    async def check(self, timeout_seconds: float) -> None:
        """Begin a transaction and end it; raises EngineError where the database lets nobody in."""
        async with self._transaction(Opening("UTC", timeout_seconds)):
            return

    async def catalog(self) -> Catalog:
        async with self._catalogs() as connection, asyncio.timeout(CATALOG_SECONDS):
            return await read_catalog(connection)

    async def check_unchanged(self, catalog: Catalog) -> None:
        """Raise SchemaChanged where a relation is no longer what this catalog says, in a transaction of its own."""
        async with self._catalogs() as connection:
            rows = await (await connection.execute(ALL_FINGERPRINTS)).fetchall()
        fingerprints = {(schema, name): fingerprint for _, schema, name, fingerprint in rows}
        if any(fingerprints.get((table.name.schema, table.name.name)) != table.fingerprint for table in catalog.tables):
            raise SchemaChanged

    async def risks(self, named: Sequence[TableName] = ()) -> list[str]:
        async with self._catalogs() as connection:
            return await find_risks(connection, named)

    async def missing_rights(self, named: Sequence[TableName]) -> Mapping[TableName, str]:
        async with self._catalogs() as connection:
            return await find_missing(connection, named)

    @asynccontextmanager
    async def _catalogs(self) -> AsyncIterator[AsyncConnection[Any]]:
        """A transaction that reads catalogs alone. The server's words on a failure go no further all the same."""
        async with self._transaction(Opening("UTC", CATALOG_SECONDS)) as (connection, _):
            try:
                yield connection
            except (psycopg.Error, OSError) as error:
                raise EngineError(cause=cause_of(error)) from None

    async def find_refused(self, settings: Mapping[str, str]) -> list[str]:
        """Those of these settings that the server does not take."""
        refused = []
        for name, value in settings.items():
            async with self._transaction(Opening("UTC", CATALOG_SECONDS)) as (connection, _):
                try:
                    await connection.execute("SELECT set_config(%s, %s, true)", (name, value))
                except psycopg.Error as error:
                    if connection.broken:
                        raise EngineError(cause=cause_of(error)) from None
                    refused.append(name)
        return refused

    async def now(self) -> datetime:
        async with self._catalogs() as connection:
            ((moment,),) = await (await connection.execute("SELECT clock_timestamp()")).fetchall()
        assert isinstance(moment, datetime)
        return moment

    async def clock_offsets(
        self, zones: Sequence[str], seconds: Sequence[int], *, by_name: bool, timeout_seconds: float
    ) -> Mapping[str, list[int]]:
        async with self._transaction(Opening("UTC" if by_name else zones[0], timeout_seconds)) as (connection, _):
            try:
                async with asyncio.timeout(timeout_seconds + GRACE_SECONDS):
                    if by_name:
                        return await offsets_by_name(connection, zones, seconds)
                    return await offsets_of_session(connection, zones[0], seconds)
            except psycopg.Error as error:
                raise _failure(error, connection) from None
            except (OSError, TimeoutError) as error:
                raise EngineError(cause=cause_of(error)) from None

    @asynccontextmanager
    async def snapshot(
        self,
        *,
        time_zone: str,
        timeout_seconds: float,
        tables: Sequence[Table] = (),
        statements: Sequence[Bounded | Marginals | Tally] = (),
    ) -> AsyncIterator[PostgresSnapshot]:
        deadline = asyncio.get_running_loop().time() + timeout_seconds
        planned = {statement.sql: f"{self._prefix}_{next(self._numbers)}" for statement in statements}
        pinned = tuple(self.settings.items())
        opening = Opening(time_zone, timeout_seconds, tuple(tables), planned, self._most_cost, pinned, reads_rows=True)
        async with self._transaction(opening) as begun:
            yield PostgresSnapshot(begun, deadline, opening)

    async def close(self) -> None:
        """Close what is idle; what is in use is closed when it comes back."""
        self._slots = asyncio.Semaphore(0)
        await self._drop_idle()

    @asynccontextmanager
    async def _transaction(self, opening: Opening) -> AsyncIterator[Begun]:
        if TIME_ZONE.fullmatch(opening.time_zone) is None:
            raise UnknownTimeZone
        slots = self._slots
        try:
            async with asyncio.timeout(opening.timeout_seconds):
                await slots.acquire()
        except TimeoutError:
            raise EngineError(cause=Cause("no_free_connection")) from None
        try:
            self.in_use += 1
            begun = await self._begin(opening)
            try:
                yield begun
            finally:
                await self._give_back(begun[0], slots, opening)
        finally:
            self.in_use -= 1
            slots.release()

    async def _begin(self, opening: Opening) -> Begun:
        """A connection in its pinned transaction. Kept connections may be stale: then all of them, so a fresh one."""
        while True:
            is_fresh = not self._idle
            connection = await self._connector.connect() if is_fresh else self._idle.pop()
            try:
                return await begin(connection, opening, prepared=self._connector.prepares)
            except EngineAway:
                if is_fresh:
                    raise
                await self._drop_idle()
            except NotPrepared:  # a pooler hands out other connections than it took
                if not self._connector.prepares:
                    raise
                self._connector.prepares = False

    async def _give_back(
        self, connection: AsyncConnection[Any], slots: asyncio.Semaphore, opening: Opening
    ) -> None:  # fmt: skip
        """Keep a connection only if it is certainly at rest."""
        try:
            if connection.info.transaction_status in (pq.TransactionStatus.INTRANS, pq.TransactionStatus.INERROR):
                async with asyncio.timeout(GRACE_SECONDS):
                    await connection.execute(opening.ending())
            at_rest = connection.info.transaction_status is pq.TransactionStatus.IDLE
        except (psycopg.Error, OSError, TimeoutError):
            at_rest = False
        if at_rest and slots is self._slots:
            self._idle.append(connection)
        else:
            await connection.close()

    async def _drop_idle(self) -> None:
        while self._idle:
            await self._idle.pop().close()


def _heard(task: asyncio.Task[Any]) -> None:
    """Take note of a failure that nobody waits for any more, or asyncio writes the server's words into the log."""
    if not task.cancelled():
        task.exception()


def _failure(error: psycopg.Error, connection: AsyncConnection[Any]) -> EngineError:
    """A failure without a word of the server's. One without SQLSTATE is libpq's: a loss, or rows too large for it."""
    if error.sqlstate is not None:
        return StatementFailed(error.sqlstate)
    return EngineError(cause=cause_of(error)) if connection.closed else StatementFailed("XX000")


# Seconds ahead of UTC at each moment, in the order of time. A name may be an abbreviation, a session's zone is none.
BY_NAME = """
SELECT z.name, array_agg(extract(epoch FROM timezone(z.name, m.at) - timezone('UTC', m.at))::bigint ORDER BY m.at)
FROM unnest(%s::text[]) AS z (name), (SELECT to_timestamp(s::float8) AS at FROM unnest(%s::bigint[]) AS u (s)) AS m
GROUP BY z.name
"""
OF_SESSION = """
SELECT %s, array_agg(extract(epoch FROM m.at::timestamp - timezone('UTC', m.at))::bigint ORDER BY m.at)
FROM (SELECT to_timestamp(s::float8) AS at FROM unnest(%s::bigint[]) AS u (s)) AS m
"""


async def offsets_by_name(
    connection: AsyncConnection[Any], zones: Sequence[str], seconds: Sequence[int]
) -> Mapping[str, list[int]]:
    """Return how far ahead of UTC these zones are, as AT TIME ZONE reads their names."""
    cursor = await connection.execute(BY_NAME, (list(zones), list(seconds)))
    return {name: list(offsets) for name, offsets in await cursor.fetchall()}


async def offsets_of_session(
    connection: AsyncConnection[Any], zone: str, seconds: Sequence[int]
) -> Mapping[str, list[int]]:
    """Return how far ahead of UTC the connection's own TimeZone is, which is this one."""
    cursor = await connection.execute(OF_SESSION, (zone, list(seconds)))
    return {name: list(offsets) for name, offsets in await cursor.fetchall()}
