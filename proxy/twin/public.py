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

from proxy.twin.ddl import empty_table, rows_of, show_rows
from proxy.twin.roles import close_tables, open_table
from proxy.twin.steps import OWNER_SETTINGS, Step, apply, qualified, quoted
from rules.catalog import Catalog, Table, TableName

Row = tuple[str | None, ...]
Sent = tuple[bytes | None, ...]  # a row as the database wrote it
READ_SECONDS = 120.0
_TOGETHER = 200_000  # rows of several tables that are held until the schema was looked at again
STYLES = "SET LOCAL DateStyle = 'ISO, YMD'; SET LOCAL IntervalStyle = postgres; SET LOCAL TimeZone = UTC"


class PublicReader(Protocol):
    """A snapshot of the real database, as `proxy.engines` makes it."""

    @property
    def codec(self) -> str: ...

    async def read_public(self, sql: str) -> Sequence[Sent]: ...


class RowSource(Protocol):
    """The source of the rows."""

    failure: type[Exception]  # what its snapshots raise

    def snapshot(self, *, time_zone: str, timeout_seconds: float) -> AbstractAsyncContextManager[PublicReader]: ...

    async def check_unchanged(self, catalog: Catalog) -> None:
        """Raise a failure where a relation is no longer what this catalog says."""


@dataclass(frozen=True, slots=True)
class Copied:
    """The copy of a table's rows in the twin, and when it was made."""

    digest: bytes = b""
    reason: str = ""  # why it stays closed; "" when it is open


@dataclass(frozen=True, slots=True)
class _Read:
    """The rows of a table, as they were read; None where a text is none."""

    table: Table
    columns: Sequence[str]
    rows: Sequence[Row] | None


async def copy_tables(
    connection: AsyncConnection[Any],
    source: RowSource,
    catalog: Catalog,
    tables: Sequence[Table],
    known: Mapping[TableName, Copied],
    most_rows: int,
) -> dict[TableName, Copied]:
    """Bring each table's rows, as one snapshot shows them all; those that are the same as known are left alone.

    The catalog says what was found fit to be public. A change of the schema that was waited for while rows were read is
    seen after them: then nothing of what was read is shown.
    """
    copieds: dict[TableName, Copied] = {}
    while waiting := [table for table in tables if table.name not in copieds]:
        async with source.snapshot(time_zone="UTC", timeout_seconds=READ_SECONDS) as reader:
            some = list[_Read]()
            for table in waiting:
                before = known.get(table.name, Copied())
                columns = await _loadable_columns(connection, table)
                try:
                    listed = ", ".join(f"{quoted(column)}::pg_catalog.text" for column in columns) or "NULL"
                    rows = await reader.read_public(
                        f"SELECT {listed} FROM {qualified(table.name)} LIMIT {most_rows + 1}"
                    )
                except source.failure:  # which ends the snapshot; what was copied before may stay
                    copieds[table.name] = before if before.digest else Copied(reason="the proxy could not read it")
                    break
                some.append(_Read(table, columns, _texts(rows, reader.codec)))
                if sum(len(read.rows or ()) for read in some) > _TOGETHER:
                    break
        await source.check_unchanged(catalog)
        for read in some:
            before = known.get(read.table.name, Copied())
            copieds[read.table.name] = await _store(connection, read, before, most_rows)
    return copieds


async def _loadable_columns(connection: AsyncConnection[Any], table: Table) -> list[str]:
    """All that the twin does not compute itself."""
    cursor = await connection.execute(
        "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped "
        "AND attgenerated = '' ORDER BY attnum",
        (qualified(rows_of(table)),),
    )
    return [name for (name,) in await cursor.fetchall()]


def _texts(rows: Sequence[Sent], codec: str) -> list[Row] | None:
    """The rows as texts, or None where one is none."""
    try:
        return [tuple(None if cell is None else cell.decode(codec) for cell in row) for row in rows]
    except UnicodeDecodeError:
        return None


async def _store(connection: AsyncConnection[Any], read: _Read, before: Copied, most_rows: int) -> Copied:
    table, columns, rows = read.table, read.columns, read.rows
    if rows is None:
        await apply(connection, _closing(table))
        return Copied(reason="a text in it is invalid in the encoding of the database")
    if len(rows) > most_rows:
        await apply(connection, _closing(table))
        return Copied(reason=f"it has more than {most_rows:,} rows (--max-public-rows)")
    rows_in_one_order = sorted(hashlib.sha256(repr(row).encode()).digest() for row in rows)
    digest = hashlib.sha256(b"".join(rows_in_one_order)).digest()
    if before.digest == digest:
        return before
    try:
        async with connection.transaction():
            await connection.execute(f"{OWNER_SETTINGS}; {STYLES}")  # links to tables without rows do not count here
            await connection.execute(f"DELETE FROM {qualified(rows_of(table))}")
            await _write(connection, rows_of(table), columns, rows)
            for step in (*show_rows(table), open_table(table.name)):
                await connection.execute(step.sql)
    except psycopg.Error as error:
        await apply(connection, _closing(table))
        return Copied(reason=f"the twin cannot hold its rows (SQLSTATE {error.sqlstate})")
    return Copied(digest)


def _closing(table: Table) -> list[Step]:
    return [*close_tables([table.name]), *empty_table(table)]


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
