"""Load the rows of a synthetic table: tried where no constraint is, and mended until they hold all of them.

Rows come as texts of COPY, with the number of their bin in each column. A row that breaks a CHECK is drawn again within
its bins, up to 20 times; then it gets the values of another row that holds. So no load can fail for a row.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from psycopg import AsyncConnection

from proxy.twin.sql_text import qualified, quoted
from rules.catalog import Table, TableName
from rules.synopses.shown import condition_of
from rules.values.types import type_of

_STRIDE: Final = 7919  # a prime, so that rows that are near one another take the values of rows that are not
_TIMES: Final = 20  # that a row is drawn again
_POOL: Final = 1000  # values of a bin to draw from: they were drawn evenly within it, each by itself


@dataclass(frozen=True, slots=True)
class SyntheticTable:
    """One table: its definition in the synopsis' schema, its rows, and how its rows refer to others."""

    table: Table
    columns: tuple[str, ...]  # in the order of the rows
    binned: tuple[str, ...]  # those of the columns that were drawn within bins
    rows: bytes  # lines of COPY: a number, the bins of `binned`, then these columns
    real: TableName  # whose rows these might be
    conditions: tuple[str, ...] = ()  # that rows must hold, besides its CHECKs: those of domains
    link: tuple[str, TableName, str] | None = None  # a column, the table that it refers to, and the column there

    @property
    def broken(self) -> str:
        """As a condition: that a row breaks a CHECK; "" where there is none to break."""
        conditions = [*(condition_of(check.definition) for check in self.table.checks), *self.conditions]
        return " OR ".join(f"(({condition}) IS FALSE)" for condition in conditions)


async def load_rows(connection: AsyncConnection[Any], synthetic_table: SyntheticTable, stage: str) -> tuple[int, int]:
    """Put the rows of one table into it, in the transaction; returns how many there are, and were replaced."""
    name, table = qualified(synthetic_table.table.name), synthetic_table.table
    columns = ", ".join(map(quoted, synthetic_table.columns))
    types = ", ".join(f"{quoted(column.name)} {type_of(column).sql}" for column in table.columns)  # below domains
    head = "noisegate_row integer, noisegate_bins smallint[]"
    await connection.execute(f"CREATE TEMP TABLE {stage} ({head}, {types}) ON COMMIT DROP")
    copy_of = f"COPY pg_temp.{stage} (noisegate_row, noisegate_bins, {columns}) FROM STDIN"
    async with connection.cursor() as cursor, cursor.copy(copy_of.encode()) as copy:
        await copy.write(synthetic_table.rows)
    replaced = 0
    if synthetic_table.broken:
        await _draw_again(connection, synthetic_table, stage)
        replaced = await _replace(connection, synthetic_table, stage)
    if synthetic_table.link is not None:
        column, target, key = synthetic_table.link
        missing = f"NOT EXISTS (SELECT FROM {qualified(target)} AS t WHERE t.{quoted(key)} = s.{quoted(column)})"
        await connection.execute(f"DELETE FROM pg_temp.{stage} AS s WHERE {missing}")
    loaded = await connection.execute(
        f"INSERT INTO {name} ({columns}) SELECT {columns} FROM pg_temp.{stage} ORDER BY noisegate_row"
    )
    return loaded.rowcount, replaced


async def _draw_again(connection: AsyncConnection[Any], synthetic_table: SyntheticTable, stage: str) -> None:
    """Draw rows that break a CHECK again within their bins, until they hold, or a number of times.

    A value comes from a row with the same bin of its column. All of these were drawn by one law and apart from one
    another, so it is one more draw; which one follows from the row's number, so that a load can be made again.
    """
    for place, name in enumerate(map(quoted, synthetic_table.binned), start=1):
        numbered = f"row_number() OVER (PARTITION BY noisegate_bins[{place}] ORDER BY noisegate_row)"
        source = f"SELECT noisegate_bins[{place}] AS b, {name} AS v, {numbered} AS n FROM pg_temp.{stage}"
        await connection.execute(
            f"CREATE TEMP TABLE {stage}_{place} ON COMMIT DROP AS SELECT b AS noisegate_bin_{place}, "
            f"array_agg(v ORDER BY n) AS noisegate_pool_{place} FROM ({source}) AS x WHERE n <= {_POOL} GROUP BY b"
        )
    pools = ", ".join(f"pg_temp.{stage}_{place}" for place in range(1, len(synthetic_table.binned) + 1))
    bins = " AND ".join(
        f"noisegate_bins[{place}] = noisegate_bin_{place}" for place in range(1, len(synthetic_table.binned) + 1)
    )  # fmt: skip
    for time in range(_TIMES if synthetic_table.binned else 0):
        drawn = ", ".join(_drawn(synthetic_table, time))
        sql = f"UPDATE pg_temp.{stage} SET {drawn} FROM {pools} WHERE {bins} AND ({synthetic_table.broken})"
        if not (await connection.execute(sql.encode())).rowcount:
            return


def _drawn(synthetic_table: SyntheticTable, time: int) -> Iterator[str]:
    for place, name in enumerate(map(quoted, synthetic_table.binned), start=1):
        number = f"hashint8extended(noisegate_row, {time * 100 + place}) & 9223372036854775807"
        pool = f"noisegate_pool_{place}"
        yield f"{name} = {pool}[1 + ({number}) % cardinality({pool})]"


async def _replace(connection: AsyncConnection[Any], synthetic_table: SyntheticTable, stage: str) -> int:
    """Give each row that breaks a CHECK the values of one that holds; its key and its parent stay. Returns how many.

    So rows come from the distribution that was fitted, on the condition that they hold. What still breaks one is left
    out.
    """
    kept = {name for key in synthetic_table.table.keys for name in key.columns} | (
        {synthetic_table.link[0]} if synthetic_table.link else set()
    )
    values = [quoted(name) for name in synthetic_table.columns if name not in kept]
    replaced = 0
    if values:
        taken = ", ".join(f"{name} = g.{name}" for name in values)
        cursor = await connection.execute(
            "WITH g AS (SELECT *, row_number() OVER (ORDER BY noisegate_row) - 1 AS noisegate_place, "
            f"count(*) OVER () AS noisegate_count FROM pg_temp.{stage} WHERE NOT ({synthetic_table.broken})), "
            "b AS (SELECT noisegate_row AS r, row_number() OVER (ORDER BY noisegate_row) AS j "
            f"FROM pg_temp.{stage} WHERE {synthetic_table.broken}) UPDATE pg_temp.{stage} AS s SET {taken} "
            f"FROM b JOIN g ON g.noisegate_place = b.j * {_STRIDE} % g.noisegate_count "
            "WHERE s.noisegate_row = b.r"
        )
        replaced = cursor.rowcount
    await connection.execute(f"DELETE FROM pg_temp.{stage} WHERE {synthetic_table.broken}")
    return replaced
