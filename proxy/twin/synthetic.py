"""Schemas of synthetic rows in the twin: real tables with keys and constraints, which their readers alone may read.

A refresh is one transaction that keeps the tables: who reads meanwhile sees the old rows. Whoever has not paid for the
new ones has lost every right to the tables before.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any

from psycopg import AsyncConnection
from psycopg.types.json import Jsonb

from proxy.twin import ddl
from proxy.twin.steps import OWNER_SETTINGS, Step, apply, literal, qualified, quoted
from proxy.twin.synthetic_rows import SyntheticTable, load_rows
from rules.catalog import Table, TableName

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
    "synopses.epsilon": "what it cost, once, each of its readers and all together",
    "synopses.rho": "the same as zCDP's rho, where it was paid so",
    "synopses.rows": "of all its tables, or the cells of a cube",
    "synopses.replaced": "rows that broke a CHECK, and have the values of others that hold",
    "synopses.seconds": "that the fit took",
    "synopsis_pairs": "how far each measured set of columns may be from the data; told from noised counts alone, free",
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
