"""A PostgreSQL as the real database: pinned, read-only snapshots over a few connections.

What the server says when it fails may quote rows, so every failure becomes an EngineError without its text. A lost
connection is replaced once while a snapshot is being taken, that is before anything is charged, and never after.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import psycopg
from psycopg import AsyncConnection, pq
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.sql import Identifier, Literal

from proxy.engine.catalog import read_catalog
from proxy.engine.catalog_queries import FINGERPRINTS
from proxy.engine.engine import EngineAway, EngineError, EngineTooOld, Row, SchemaChanged, UnknownTimeZone
from proxy.engine.risks import find_risks
from rules.catalog import SERVERS, Catalog, Table

PINNED = {
    "search_path": "",
    "client_encoding": "UTF8",
    "client_min_messages": "error",
    "standard_conforming_strings": "on",
    "escape_string_warning": "off",
    "transform_null_equals": "off",
    "DateStyle": "ISO, YMD",
    "IntervalStyle": "postgres",
    "extra_float_digits": "1",
    "bytea_output": "hex",
    "timezone_abbreviations": "Default",
    "gin_fuzzy_search_limit": "0",
    "row_security": "off",  # an error instead of rows silently left out
    "lc_numeric": "C",
    "lc_time": "C",
    "lc_monetary": "C",
    "debug_print_parse": "off",
    "debug_print_rewritten": "off",
    "debug_print_plan": "off",
    "plan_cache_mode": "force_generic_plan",  # for PROOFS: all that is asked there is by OID
}
PROOFS = f"{FINGERPRINTS} WHERE c.oid = ANY ($1)"
PREPARE = f"PREPARE noisegate_proofs (regclass[]) AS {PROOFS}"  # planning it would cost more than running it
OPENING = "; ".join(
    ["BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", *(f"SET LOCAL {name} = '{PINNED[name]}'" for name in PINNED)]
)
TIME_ZONE = re.compile(r"[A-Za-z0-9_+\-/:<>,. ]{1,100}")
GRACE_SECONDS = 2  # for the server to end a statement by its own time-out before we leave it
CATALOG_SECONDS = 60
CONNECTION: dict[str, str | int | None] = {
    "application_name": "noisegate",
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
}


class _NotPrepared(EngineError):
    """The connection forgot what was prepared on it."""


class PostgresSnapshot:
    """One running transaction; see `proxy.engine.engine.Snapshot`."""

    def __init__(self, connection: AsyncConnection[Any], deadline: float) -> None:
        self._connection = connection
        self._deadline = deadline
        self._cancelled = False

    async def run(self, sql: str) -> Sequence[Row]:
        if self._cancelled:
            raise EngineError
        try:
            async with asyncio.timeout_at(self._deadline + GRACE_SECONDS):
                cursor = await self._connection.execute(sql)
        except (psycopg.Error, OSError, TimeoutError):
            raise EngineError from None
        return _texts(cursor.pgresult)

    async def cancel(self) -> None:
        self._cancelled = True
        try:
            await self._connection.cancel_safe(timeout=GRACE_SECONDS)
        except (psycopg.Error, OSError):  # the server cannot be told: leaving it ends the statement for us
            await self._connection.close()


class PostgresEngine:
    """See `proxy.engine.engine.Engine`. At most `connections` snapshots are open at once; others wait in line."""

    failure: type[Exception] = EngineError

    def __init__(self, dsn: str, *, connections: int = 8) -> None:
        self._dsn = make_conninfo("", **CONNECTION | conninfo_to_dict(dsn) | {"client_encoding": "UTF8"})
        self.connections = connections
        self._slots = asyncio.Semaphore(connections)
        self._idle: list[AsyncConnection[Any]] = []
        self._prepares = True

    async def catalog(self) -> Catalog:
        async with self._transaction("UTC", CATALOG_SECONDS, ()) as connection:
            try:
                async with asyncio.timeout(CATALOG_SECONDS):
                    return await read_catalog(connection)
            except (psycopg.Error, OSError, TimeoutError):
                raise EngineError from None

    async def risks(self) -> list[str]:
        async with self._transaction("UTC", CATALOG_SECONDS, ()) as connection:
            try:
                return await find_risks(connection)
            except (psycopg.Error, OSError):
                raise EngineError from None

    @asynccontextmanager
    async def snapshot(
        self, *, time_zone: str, timeout_seconds: float, tables: Sequence[Table] = ()
    ) -> AsyncIterator[PostgresSnapshot]:
        deadline = asyncio.get_running_loop().time() + timeout_seconds
        async with self._transaction(time_zone, timeout_seconds, tables) as connection:
            yield PostgresSnapshot(connection, deadline)

    async def close(self) -> None:
        """Close what is idle; what is in use is closed when it comes back."""
        self._slots = asyncio.Semaphore(0)
        await self._drop_idle()

    @asynccontextmanager
    async def _transaction(
        self, time_zone: str, timeout_seconds: float, tables: Sequence[Table]
    ) -> AsyncIterator[AsyncConnection[Any]]:
        if TIME_ZONE.fullmatch(time_zone) is None:
            raise UnknownTimeZone
        slots = self._slots
        try:
            async with asyncio.timeout(timeout_seconds):
                await slots.acquire()
        except TimeoutError:
            raise EngineError from None
        try:
            connection = await self._begin(time_zone, timeout_seconds, tables)
            try:
                yield connection
            finally:
                await self._give_back(connection, slots)
        finally:
            slots.release()

    async def _begin(self, time_zone: str, timeout_seconds: float, tables: Sequence[Table]) -> AsyncConnection[Any]:
        """A connection in its pinned transaction. Kept connections may be stale: then all of them, so a fresh one."""
        while True:
            is_fresh = not self._idle
            connection = await self._connect() if is_fresh else self._idle.pop()
            statements = _opening(time_zone, timeout_seconds, tables, prepared=self._prepares)
            try:
                return await _begun(connection, statements, timeout_seconds, tables)
            except EngineAway:
                if is_fresh:
                    raise
                await self._drop_idle()
            except _NotPrepared:  # a pooler hands out other connections than it took
                if not self._prepares:
                    raise
                self._prepares = False

    async def _connect(self) -> AsyncConnection[Any]:
        try:
            connection = await AsyncConnection.connect(
                self._dsn,
                autocommit=True,  # the transaction's own statements say when it begins
                prepare_threshold=None,
            )
            if 0 < (version := connection.info.server_version) < SERVERS[0] * 10_000:  # 0 where it is not said
                await connection.close()
                raise EngineTooOld(
                    f"the database is PostgreSQL {written_version(version)}, and has to be {SERVERS[0]} or newer"
                )
            if self._prepares:
                await connection.execute(PREPARE)
            return connection
        except (psycopg.Error, OSError) as error:
            raise EngineAway(f"cannot connect to the real database: {error}") from None

    async def _give_back(self, connection: AsyncConnection[Any], slots: asyncio.Semaphore) -> None:
        """Keep a connection only if it is certainly at rest."""
        try:
            if connection.info.transaction_status in (pq.TransactionStatus.INTRANS, pq.TransactionStatus.INERROR):
                async with asyncio.timeout(GRACE_SECONDS):
                    await connection.execute("ROLLBACK")
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


def written_version(version: int) -> str:
    """130023 is 13.23, 90624 was 9.6.24."""
    first, second, third = version // 10_000, version // 100 % 100, version % 100
    return f"{first}.{third}" if first >= 10 else f"{first}.{second}.{third}"


def _opening(time_zone: str, timeout_seconds: float, tables: Sequence[Table], *, prepared: bool) -> str:
    """All that begins a transaction, as one message: settings, locks, and the question whether the tables changed.

    LOCK takes no snapshot, so the snapshot that the question takes is one that no change of these tables can pass.
    """
    milliseconds = max(1, int(timeout_seconds * 1000))
    parts = [
        OPENING,
        f"SET LOCAL TimeZone = '{time_zone}'",  # which has no quotes: it was looked at
        f"SET LOCAL statement_timeout = {milliseconds}",
        f"SET LOCAL lock_timeout = {milliseconds}",
        f"SET LOCAL idle_in_transaction_session_timeout = {milliseconds + GRACE_SECONDS * 1000}",
    ]
    if tables:
        names = [Identifier(table.name.schema, table.name.name).as_string() for table in tables]
        listed = ", ".join(f"{Literal(name).as_string()}::regclass" for name in names)
        parts.append(f"LOCK TABLE {', '.join(names)} IN ACCESS SHARE MODE")
        array = f"ARRAY[{listed}]"
        parts.append(f"EXECUTE noisegate_proofs ({array})" if prepared else PROOFS.replace("$1", array))
    return "; ".join(parts)


async def _begun(
    connection: AsyncConnection[Any], statements: str, timeout_seconds: float, tables: Sequence[Table]
) -> AsyncConnection[Any]:
    """Begin; whatever goes wrong closes the connection, since no one else will."""
    try:
        async with asyncio.timeout(timeout_seconds + GRACE_SECONDS):
            cursor = await connection.execute(statements)
        while cursor.nextset():
            pass
        if tables:
            found = {(schema, name): fingerprint for _, schema, name, fingerprint in await cursor.fetchall()}
            if any(found.get((table.name.schema, table.name.name)) != table.fingerprint for table in tables):
                raise SchemaChanged
    except BaseException as error:
        gone = connection.broken
        await connection.close()
        if isinstance(error, psycopg.errors.InvalidParameterValue):
            raise UnknownTimeZone from None
        if isinstance(error, psycopg.errors.UndefinedTable | psycopg.errors.InvalidSchemaName):
            raise SchemaChanged from None
        if isinstance(error, psycopg.errors.InvalidSqlStatementName):
            raise _NotPrepared from None
        if isinstance(error, psycopg.OperationalError) and gone:
            raise EngineAway("the connection to the real database was lost") from None
        if isinstance(error, psycopg.Error | OSError | TimeoutError):
            raise EngineError from None
        raise
    return connection


def _texts(result: pq.abc.PGresult | None) -> list[Row]:
    """The rows as the server wrote them, in its text format."""
    if result is None:
        return []
    columns = range(result.nfields)
    return [tuple(_text(result.get_value(row, column)) for column in columns) for row in range(result.ntuples)]


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode("utf-8")
