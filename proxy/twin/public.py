"""Copy small public tables into the twin, and copy them again when their rows have changed.

A table that is too large, or that cannot be copied, stays closed: a refusal is an honest answer, an empty table is not.
"""

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Protocol

import psycopg
from psycopg import AsyncConnection

from proxy.twin.roles import close_tables, open_table
from proxy.twin.sync import OWNER_SETTINGS, apply
from proxy.twin.text import Step, qualified, quoted
from rules.catalog import Table, TableName

Row = tuple[str | None, ...]
READ_SECONDS = 120.0
STYLES = "SET LOCAL DateStyle = 'ISO, YMD'; SET LOCAL IntervalStyle = postgres; SET LOCAL TimeZone = UTC"


class Reader(Protocol):
    """A snapshot of the real database, as `proxy.engine` makes it."""

    async def run(self, sql: str) -> Sequence[Row]: ...


class Source(Protocol):
    """Where the rows are."""

    failure: type[Exception]  # what its snapshots raise

    def snapshot(self, *, time_zone: str, timeout_seconds: float) -> AbstractAsyncContextManager[Reader]: ...


@dataclass(frozen=True, slots=True)
class Copied:
    """What is known of a table's rows in the twin."""

    digest: bytes = b""
    reason: str = ""  # why it stays closed; "" when it is open


async def copy_tables(
    connection: AsyncConnection[Any],
    source: Source,
    tables: Sequence[Table],
    known: Mapping[TableName, Copied],
    most_rows: int,
) -> dict[TableName, Copied]:
    """Bring each table's rows, as one snapshot shows them all; those that are the same as known are left alone."""
    found: dict[TableName, Copied] = {}
    while waiting := [table for table in tables if table.name not in found]:
        async with source.snapshot(time_zone="UTC", timeout_seconds=READ_SECONDS) as reader:
            for table in waiting:
                before = known.get(table.name, Copied())
                columns = await _loadable_columns(connection, table)
                try:
                    rows = await reader.run(_select(table.name, columns, most_rows + 1))
                except source.failure:  # which ends the snapshot; what was copied before may stay
                    found[table.name] = before if before.digest else Copied(reason="our role cannot read it")
                    break
                found[table.name] = await _store(connection, table.name, columns, rows, before, most_rows)
    return found


async def _loadable_columns(connection: AsyncConnection[Any], table: Table) -> list[str]:
    """All that the twin does not compute itself."""
    cursor = await connection.execute(
        "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped "
        "AND attgenerated = '' ORDER BY attnum",
        (qualified(table.name),),
    )
    return [name for (name,) in await cursor.fetchall()]


def _select(name: TableName, columns: Sequence[str], rows: int) -> str:
    listed = ", ".join(f"{quoted(column)}::pg_catalog.text" for column in columns) or "NULL"
    return f"SELECT {listed} FROM {qualified(name)} LIMIT {rows}"


async def _store(
    connection: AsyncConnection[Any],
    name: TableName,
    columns: Sequence[str],
    rows: Sequence[Row],
    before: Copied,
    most_rows: int,
) -> Copied:
    if len(rows) > most_rows:
        await apply(connection, _closing(name))
        return Copied(reason=f"it has more than {most_rows} rows")
    digest = _digest(rows)
    if before.digest == digest:
        return before
    try:
        async with connection.transaction():
            await connection.execute(f"{OWNER_SETTINGS}; {STYLES}")  # links to tables without rows do not count here
            await connection.execute(f"DELETE FROM {qualified(name)}")
            await _write(connection, name, columns, rows)
            await connection.execute(open_table(name).sql)
    except psycopg.Error as error:
        await apply(connection, _closing(name))
        return Copied(reason=f"the twin cannot hold its rows (SQLSTATE {error.sqlstate})")
    return Copied(digest)


def _closing(name: TableName) -> list[Step]:
    return [*close_tables([name]), Step(f"DELETE FROM {qualified(name)}")]


async def _write(
    connection: AsyncConnection[Any], name: TableName, columns: Sequence[str], rows: Sequence[Row]
) -> None:
    if not columns:
        return
    listed = ", ".join(map(quoted, columns))
    async with (
        connection.cursor() as cursor,
        cursor.copy(f"COPY {qualified(name)} ({listed}) FROM STDIN") as copy,
    ):
        for row in rows:
            await copy.write_row(row)


def _digest(rows: Sequence[Row]) -> bytes:
    """The same for the same rows in whatever order."""
    each = sorted(hashlib.sha256(repr(row).encode()).digest() for row in rows)
    return hashlib.sha256(b"".join(each)).digest()
