"""Schemas of synthetic rows in the twin: real tables with keys and constraints, which their readers alone may read.

A refresh is one transaction that keeps the tables: a reader sees the old rows meanwhile, and one who has not paid for
the new ones has lost every right to the tables before. Rows come as texts of COPY, with the number of their bin in each
column. They are loaded where no constraint is. A row that breaks a CHECK is drawn again within its bins, up to 20
times; then it gets the values of another row that holds. So no load can fail for a row.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

from psycopg import AsyncConnection
from psycopg.types.json import Jsonb

from proxy.twin import ddl
from proxy.twin.steps import OWNER_SETTINGS, Step, apply, literal, qualified, quoted
from rules.catalog import Table, TableName
from rules.synopses.shown import ROW, ShownPartner, ShownReference, condition_of
from rules.values.types import type_of

_STRIDE: Final = 7919  # a prime, so that rows that are near one another take the values of rows that are not
_TIMES: Final = 20  # that a row is drawn again
_POOL: Final = 1000  # values of a bin to draw from: they were drawn evenly within it, each by itself


@dataclass(frozen=True, slots=True)
class SyntheticTable:
    """One table: its definition in the synopsis' schema, its rows, and how its rows refer to others."""

    table: Table
    columns: tuple[str, ...]  # in the order of the rows
    binned: tuple[tuple[int, str], ...]  # those of the columns that were drawn within bins, with their places there
    rows: bytes  # lines of COPY: a number, the bins of the fit, then these columns
    real: TableName  # whose rows these might be
    conditions: tuple[str, ...] = ()  # that rows must hold, besides its CHECKs: those of domains
    link: tuple[str, TableName, str] | None = None  # a column, the table that it refers to, and the column there
    partners: tuple[ShownPartner, ...] = ()  # public rows that its rows refer to
    references: tuple[ShownReference, ...] = ()  # synthetic rows that they refer to besides

    @property
    def broken(self) -> str:
        """As a condition: that a row breaks a CHECK; "" where there is none to break."""
        conditions = [*(condition_of(check.definition) for check in self.table.checks), *self.conditions]
        return " OR ".join(f"(({each}) IS FALSE)" for each in conditions)


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
    for number, partner in enumerate(synthetic_table.partners):
        await _refer(connection, partner, stage, f"{stage}_p{number}", number)
    replaced = 0
    if synthetic_table.broken:
        await _draw_again(connection, synthetic_table, stage)
        replaced = await _replace(connection, synthetic_table, stage)
    if synthetic_table.link is not None:
        column, target, key = synthetic_table.link
        missing = f"NOT EXISTS (SELECT FROM {qualified(target)} AS t WHERE t.{quoted(key)} = s.{quoted(column)})"
        await connection.execute(f"DELETE FROM pg_temp.{stage} AS s WHERE {missing}")
    for number, reference in enumerate(synthetic_table.references):
        await _refer_besides(connection, reference, stage, number)
    partners = (partner.column for partner in synthetic_table.partners)
    references = (reference.column.name for reference in synthetic_table.references)
    columns = ", ".join(map(quoted, (*synthetic_table.columns, *partners, *references)))
    inserted = await connection.execute(
        f"INSERT INTO {name} ({columns}) SELECT {columns} FROM pg_temp.{stage} ORDER BY noisegate_row"
    )
    return inserted.rowcount, replaced


async def _refer(connection: AsyncConnection[Any], partner: ShownPartner, stage: str, pool: str, number: int) -> None:
    """Let each row refer to one of the public rows in its bins, all alike likely.

    Noise may fill bins that no public row has: then one that is in the bin of the first column, and else none.
    """
    name, key = quoted(partner.column), quoted(partner.target_column)
    await connection.execute(
        f"CREATE TEMP TABLE {pool} ON COMMIT DROP AS SELECT ARRAY[{', '.join(partner.bins)}]::smallint[] AS "
        f"noisegate_at, {key} AS noisegate_key FROM {qualified(partner.target)}".encode()
    )
    drawn = f"hashint8extended(noisegate_row, {5000 + number}) & 9223372036854775807"
    for places in dict.fromkeys((len(partner.places), 1)):
        bins = ", ".join(f"noisegate_bins[{place + 1}]" for place in partner.places[:places])
        keys = f"SELECT noisegate_at[1:{places}] AS a, array_agg(noisegate_key ORDER BY noisegate_key) AS k "
        await connection.execute(
            f"UPDATE pg_temp.{stage} SET {name} = k[1 + ({drawn}) % cardinality(k)] "
            f"FROM ({keys} FROM pg_temp.{pool} GROUP BY 1) AS x WHERE a = ARRAY[{bins}] AND {name} IS NULL"
        )
    if partner.is_required:
        await connection.execute(f"DELETE FROM pg_temp.{stage} WHERE {name} IS NULL")


async def _refer_besides(connection: AsyncConnection[Any], reference: ShownReference, stage: str, number: int) -> None:
    """Let each row refer to the row that its other keys tell, to one of those that they leave, or to any.

    Which one follows from the row's number, so that a load can be made again.
    """
    name, key, target = quoted(reference.column.name), quoted(reference.target_column), qualified(reference.target)
    update = f"UPDATE pg_temp.{stage} AS {ROW} SET {name} ="
    drawn = f"hashint8extended({ROW}.noisegate_row, {6000 + number}) & 9223372036854775807"
    one_of = f"k[1 + ({drawn}) % cardinality(k)] FROM (SELECT array_agg({key} ORDER BY {key}) AS k"
    if reference.same:
        await connection.execute(f"{update} {reference.same}".encode())
    elif reference.theirs:
        theirs = quoted(reference.theirs)
        pool = f"{one_of}, {theirs} AS a FROM {target} GROUP BY {theirs}) AS x"
        await connection.execute(f"{update} {pool} WHERE x.a = {reference.mine}".encode())
    if reference.column.not_null:
        await connection.execute(f"{update} {one_of} FROM {target}) AS x WHERE {ROW}.{name} IS NULL".encode())
        await connection.execute(f"DELETE FROM pg_temp.{stage} WHERE {name} IS NULL".encode())


async def _draw_again(connection: AsyncConnection[Any], synthetic_table: SyntheticTable, stage: str) -> None:
    """Draw rows that break a CHECK again within their bins, until they hold, or a number of times.

    A value comes from a row with the same bin of its column. All of these were drawn by one law and apart from one
    another, so it is one more draw; which one follows from the row's number, so that a load can be made again.
    """
    for place, name in synthetic_table.binned:
        numbered = f"row_number() OVER (PARTITION BY noisegate_bins[{place + 1}] ORDER BY noisegate_row)"
        source = f"SELECT noisegate_bins[{place + 1}] AS b, {quoted(name)} AS v, {numbered} AS n FROM pg_temp.{stage}"
        await connection.execute(
            f"CREATE TEMP TABLE {stage}_{place} ON COMMIT DROP AS SELECT b AS noisegate_bin_{place}, "
            f"array_agg(v ORDER BY n) AS noisegate_pool_{place} FROM ({source}) AS x WHERE n <= {_POOL} GROUP BY b"
        )
    pools = ", ".join(f"pg_temp.{stage}_{place}" for place, _ in synthetic_table.binned)
    bins = " AND ".join(f"noisegate_bins[{place + 1}] = noisegate_bin_{place}" for place, _ in synthetic_table.binned)
    for time in range(_TIMES if synthetic_table.binned else 0):
        drawn = ", ".join(_drawn(synthetic_table, time))
        sql = f"UPDATE pg_temp.{stage} SET {drawn} FROM {pools} WHERE {bins} AND ({synthetic_table.broken})"
        if not (await connection.execute(sql.encode())).rowcount:
            return


def _drawn(synthetic_table: SyntheticTable, time: int) -> Iterator[str]:
    for place, name in synthetic_table.binned:
        number = f"hashint8extended(noisegate_row, {time * 100 + place}) & 9223372036854775807"
        pool = f"noisegate_pool_{place}"
        yield f"{quoted(name)} = {pool}[1 + ({number}) % cardinality({pool})]"


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


COMMENT = "synthetic rows; not data"


@dataclass(frozen=True, slots=True)
class SyntheticSchema:
    """All of a synopsis; of a cube only what is said of it, since it has no tables."""

    name: str
    tables: tuple[SyntheticTable, ...]
    readers: tuple[str, ...]
    made_at: datetime
    epsilon: Decimal
    rho: Decimal
    seconds: float
    state: str = "ready"
    pairs: tuple[dict[str, object], ...] = field(default=(), compare=False)
    cube_of: str = ""  # the table that a cube is of, as the rules name it
    cells: int = 0  # of a cube

    @property
    def targets(self) -> frozenset[TableName]:
        """The public tables that its rows refer to."""
        return frozenset(partner.target for table in self.tables for partner in table.partners)

    @property
    def shape(self) -> tuple[Table, ...]:
        """Describe its tables; rows of the same shape take the place of others."""
        return tuple(table.table for table in self.tables)


def create_registry() -> Iterator[Step]:
    """noisegate.synopses and noisegate.synopsis_pairs: what their readers may know, which is free."""
    yield Step("SET LOCAL allow_system_table_mods = on")
    yield Step(
        "CREATE TABLE pg_catalog.noisegate_synopses (name text, state text, made_at timestamptz, epsilon numeric, "
        "rho numeric, tables text[], rows bigint, replaced bigint, seconds numeric, pairs jsonb, kind text, "
        "readers text[])"
    )
    yield Step("REVOKE ALL ON pg_catalog.noisegate_synopses FROM PUBLIC")
    yield Step("SET LOCAL allow_system_table_mods = off")
    mine = "current_user::text = ANY (s.readers)"
    yield Step(
        "CREATE VIEW noisegate.synopses WITH (security_barrier) AS SELECT s.name, s.state, s.made_at, s.epsilon, "
        "s.rho, s.tables, s.rows, s.replaced, s.seconds, s.kind FROM pg_catalog.noisegate_synopses AS s "
        f"WHERE {mine}"
    )
    yield Step(
        "CREATE VIEW noisegate.synopsis_pairs WITH (security_barrier) AS SELECT s.name, p.* "
        'FROM pg_catalog.noisegate_synopses AS s, pg_catalog.jsonb_to_recordset(s.pairs) AS p ("table" text, '
        "column_1 text, column_2 text, column_3 text, cells integer, noise_sd numeric, expected_distance numeric, "
        f"low numeric, high numeric, fit_residual numeric) WHERE {mine}"
    )
    for name, words in _COMMENTS.items():
        view, _, column = name.partition(".")
        if not column:
            yield Step(f"GRANT SELECT ON noisegate.{view} TO PUBLIC")
        place = f"COLUMN noisegate.{view}.{quoted(column)}" if column else f"VIEW noisegate.{view}"
        yield Step(f"COMMENT ON {place} IS {literal(words)}")


_COMMENTS = {
    "synopses": "the schemas of synthetic rows, and the cubes, that you may read; reading this is free",
    "synopses.name": "the schema, or the cube",
    "synopses.kind": "rows: a schema of synthetic rows; cube: counts and sums that serve questions about its table",
    "synopses.made_at": "when its counts were taken from the data",
    "synopses.tables": "its tables, or the one that a cube is of",
    "synopses.state": "ready, or outdated: the rules have changed since it was made",
    "synopses.epsilon": "its price, charged once to each of its readers and to all together",
    "synopses.rho": "the same as zCDP's rho, where it was paid so",
    "synopses.rows": "of all its tables, or the cells of a cube",
    "synopses.replaced": "rows that broke a CHECK, and have the values of others that hold",
    "synopses.seconds": "that the fit took",
    "synopsis_pairs": "how far each measured set of columns may be from the data, estimated from noised counts; free",
    "synopsis_pairs.name": "the synopsis",
    "synopsis_pairs.table": "the table, as the rules name it",
    "synopsis_pairs.column_1": "a column, in its bins",
    "synopsis_pairs.column_2": "another one; NULL where the table has one column",
    "synopsis_pairs.column_3": "a third one, in marginals of three columns; NULL in pairs",
    "synopsis_pairs.cells": "the cells of these columns that were counted",
    "synopsis_pairs.noise_sd": "the standard deviation of the noise of each count",
    "synopsis_pairs.expected_distance": "the share of rows that lie in another cell (total variation), expected",
    "synopsis_pairs.low": "the least distance of five fits to noise that was drawn likewise",
    "synopsis_pairs.high": "the greatest one",
    "synopsis_pairs.fit_residual": "the distance of the rows from the counts that they were fitted to",
}


def drop_synthetic(name: str) -> Iterator[Step]:
    """Remove a schema, and what is said of it."""
    yield Step(f"DROP SCHEMA IF EXISTS {quoted(name)} CASCADE")
    yield Step(f"DELETE FROM pg_catalog.noisegate_synopses WHERE name = {literal(name)}")


def grant_readers(name: str, readers: Sequence[str]) -> Iterator[Step]:
    """Let these roles read it, and nobody else."""
    schema = quoted(name)
    yield Step(f"REVOKE ALL ON SCHEMA {schema} FROM PUBLIC")
    for reader in readers:
        yield Step(f"GRANT USAGE ON SCHEMA {schema} TO {quoted(reader)}")
        yield Step(f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {quoted(reader)}")


def _take_back(schema: SyntheticSchema, readers: Sequence[str]) -> Iterator[Step]:
    """Take the rights of these. The lock waits for whoever reads, so that nobody reads on by a right that is gone."""
    tables = ", ".join(qualified(table.table.name) for table in schema.tables)
    yield Step(f"LOCK TABLE {tables} IN ACCESS EXCLUSIVE MODE")
    for reader in map(quoted, readers):
        yield Step(f"REVOKE ALL ON ALL TABLES IN SCHEMA {quoted(schema.name)} FROM {reader}")
        yield Step(f"REVOKE ALL ON SCHEMA {quoted(schema.name)} FROM {reader}")


async def show_synthetic(
    connection: AsyncConnection[Any], schema: SyntheticSchema, before: SyntheticSchema | None, patience_seconds: float
) -> None:
    """Put a schema, or its new rows, in the place of what is there: all at once."""
    if schema.cube_of:
        async with connection.transaction():
            await connection.execute(OWNER_SETTINGS)
            await _register(connection, schema, schema.cells, 0)
        return
    if before is None or before.shape != schema.shape:
        steps = [*drop_synthetic(schema.name), *_create(schema)]
        await apply(connection, steps, patience_seconds)
    elif lost := sorted(set(before.readers) - set(schema.readers)):
        await apply(connection, list(_take_back(schema, lost)), patience_seconds)
    async with connection.transaction():
        await connection.execute(OWNER_SETTINGS)
        for table in reversed(schema.tables):
            await connection.execute(f"DELETE FROM {qualified(table.table.name)}")
        counts = [
            await load_rows(connection, table, f"noisegate_stage_{number}")
            for number, table in enumerate(schema.tables)
        ]
        await _register(connection, schema, *map(sum, zip(*counts, strict=True)))
        for step in grant_readers(schema.name, schema.readers):
            await connection.execute(step.sql)


async def _register(connection: AsyncConnection[Any], schema: SyntheticSchema, rows: int, replaced: int) -> None:
    await connection.execute("DELETE FROM pg_catalog.noisegate_synopses WHERE name = %s", (schema.name,))
    await connection.execute(
        "INSERT INTO pg_catalog.noisegate_synopses VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)",
        (
            schema.name, schema.state, schema.made_at, schema.epsilon, schema.rho,
            [table.table.name.name for table in schema.tables] or [schema.cube_of], rows, replaced,
            round(schema.seconds, 1), Jsonb(list(schema.pairs)), "cube" if schema.cube_of else "rows",
            list(schema.readers),
        ),
    )  # fmt: skip


def _create(schema: SyntheticSchema) -> Iterator[Step]:
    yield Step(f"CREATE SCHEMA {quoted(schema.name)}")
    yield ddl.comment_on_schema(schema.name, COMMENT)
    for table in schema.tables:
        yield from ddl.create_table(table.table)
        yield Step(f"REVOKE ALL ON {qualified(table.table.name)} FROM PUBLIC")
        # What an ANALYZE counts stands in pg_class, for everybody.
        yield Step(f"ALTER TABLE {qualified(table.table.name)} SET (autovacuum_enabled = off)")
        yield from ddl.constraints(table.table).values()
    for table in schema.tables:
        for key in table.table.foreign_keys:
            yield ddl.add_foreign_key(table.table.name, key)
        if table.link is not None:
            yield Step(f"CREATE INDEX ON {qualified(table.table.name)} ({quoted(table.link[0])})")
