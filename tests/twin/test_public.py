"""A public table in the twin holds what the real one holds, value by value, under any name."""

from collections.abc import AsyncIterator

import psycopg
import pytest
from psycopg import AsyncConnection

from proxy.engines.postgres.snapshots import PostgresEngine
from proxy.twin.embedded import Cluster
from proxy.twin.twin import Twin
from tests.conftest import RealDatabase
from tests.support import shop as shop_data

NAME = 'My "Shop"'
RULES = shop_data.RULES.replace(
    "  products: public\n",
    r"""  products: public
  "Odd's \\ \"Table": public
  kinds: {public: true, columns: {secret: hidden}}
  parted: public
  copies: public
""",
)
SCHEMA = r"""
CREATE TYPE mood AS ENUM ('glad', 'so ''so');
CREATE DOMAIN cents AS numeric(12,2) CHECK (VALUE >= 0);
CREATE TABLE kinds (
    id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, secret text, small smallint, float real, double float8,
    cents cents, mood mood, moods mood[], bytes bytea, fixed char(5), moment timestamptz, local timestamp, day date,
    clock timetz, span interval, json jsonb, name uuid, net inet, bits varbit, spans int4range, point point,
    money money, words tsvector, twice float8 GENERATED ALWAYS AS (double * 2) STORED
);
INSERT INTO kinds (secret, small, float, double, cents, mood, moods, bytes, fixed, moment, local, day, clock, span,
                   json, name, net, bits, spans, point, money, words)
VALUES ('hidden', -3, 1.1, 0.1::float8 + 0.2::float8, 12.30, 'so ''so', '{glad,"so ''so",NULL}', '\x00ff5c', 'ab',
        '2024-02-29 12:00+01', '2024-01-02 03:04:05.678', '0044-03-15 BC', '12:00+05:30', '-1 year 2 days -03:04',
        '{"a": [1, "\t"]}', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '10.0.0.0/8', '1011', '[1,5)', '(1,2)', 12.5,
        'a:1 b:2'),
       (NULL, NULL, 'NaN', '-Infinity', NULL, NULL, NULL, NULL, NULL, 'infinity', NULL, '-infinity', NULL, NULL,
        NULL, NULL, NULL, NULL, 'empty', NULL, NULL, NULL);
CREATE TABLE "Odd's \ ""Table" ("a'b\c" text, "%s" text);
INSERT INTO "Odd's \ ""Table" VALUES (E'\\N', E'tab\tline\nback\\slash'), (NULL, '');
CREATE TABLE parted (a int PRIMARY KEY, b text) PARTITION BY RANGE (a);
CREATE TABLE part PARTITION OF parted FOR VALUES FROM (0) TO (10);
INSERT INTO parted VALUES (1, 'x');
CREATE TABLE copies (a int PRIMARY KEY);
CREATE TABLE more_copies () INHERITS (copies);
INSERT INTO copies VALUES (1);
INSERT INTO more_copies VALUES (1);
"""
TABLES = ["products", "kinds", "parted", "copies", '"Odd\'s \\ ""Table"']


@pytest.fixture(scope="module")
async def real(real_cluster: Cluster) -> RealDatabase:
    with psycopg.connect(real_cluster.dsn(), autocommit=True) as connection:
        connection.execute('CREATE DATABASE "My ""Shop"""')
    real = RealDatabase(real_cluster, NAME)
    with real.connect() as connection:
        for part in (shop_data.SCHEMA, shop_data.DATA, shop_data.GRANTS, SCHEMA):
            connection.execute(part)
        connection.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {shop_data.READER}")
    return real


@pytest.fixture(scope="module")
async def odd_twin(real: RealDatabase) -> AsyncIterator[Twin]:
    engine = PostgresEngine(real.reader_dsn)
    twin = await Twin.open(await engine.catalog(), shop_data.policy(rules=RULES), engine)
    yield twin
    await twin.close()
    await engine.close()


@pytest.mark.parametrize("table", TABLES)
async def test_every_row_of_a_public_table_is_in_the_twin_as_it_is(
    real: RealDatabase, odd_twin: Twin, table: str
) -> None:
    assert odd_twin.closed_tables == {}
    async with await AsyncConnection.connect(odd_twin.dsn("ada"), autocommit=True) as ada:
        described = (await ada.execute(f"SELECT * FROM {table} LIMIT 0")).description
        assert described is not None
        columns = ", ".join('"' + column.name.replace('"', '""') + '"' for column in described)
        asked = f"SELECT t::text FROM (SELECT {columns} FROM {table}) AS t ORDER BY 1"
        found = await (await ada.execute(asked)).fetchall()
    with real.connect() as connection:
        connection.execute("SET TimeZone = UTC")
        assert found == connection.execute(asked).fetchall()
    assert found


async def test_a_hidden_column_of_a_public_table_stays_outside(odd_twin: Twin) -> None:
    async with await AsyncConnection.connect(odd_twin.dsn("ada"), autocommit=True) as ada:
        with pytest.raises(psycopg.errors.UndefinedColumn):
            await ada.execute("SELECT secret FROM kinds")
        assert await (await ada.execute("SELECT current_database()")).fetchone() == (NAME,)


async def test_a_real_database_may_be_called_postgres(real_cluster: Cluster) -> None:
    with psycopg.connect(real_cluster.dsn("postgres"), autocommit=True) as connection:
        connection.execute("CREATE SCHEMA IF NOT EXISTS plain; CREATE TABLE plain.here (a int)")
    engine = PostgresEngine(real_cluster.dsn("postgres"))
    policy = shop_data.policy(rules=shop_data.RULES.replace("  products: public\n", "  plain.here: public\n"))
    twin = await Twin.open(await engine.catalog(), policy, engine)
    try:
        async with await AsyncConnection.connect(twin.dsn("ada"), autocommit=True) as ada:
            assert await (await ada.execute("SELECT count(*) FROM plain.here")).fetchone() == (0,)
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                await ada.execute("CREATE TEMP TABLE t (a int)")
    finally:
        await twin.close()
        await engine.close()
