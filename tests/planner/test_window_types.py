"""Windows over rows with values of any type: in an order that fails on no row and calls no function of the database."""

import pytest

from rules.refusal import NotSupported
from tests.conftest import RealDatabase
from tests.planner.planned import Planner
from tests.support import shop as tables

SCHEMA = """
CREATE TYPE mark AS (n integer);
CREATE FUNCTION shown(mark) RETURNS text LANGUAGE plpgsql AS 'BEGIN RAISE ''called''; END';
CREATE CAST (mark AS text) WITH FUNCTION shown(mark) AS IMPLICIT;
CREATE TABLE people (id integer PRIMARY KEY);
CREATE TABLE events (id bigint PRIMARY KEY, person integer, at date, props jsonb, mark mark);
CREATE TABLE loose (person integer, at date, props jsonb, mark mark, tags text[], bits varbit, took interval);
INSERT INTO people VALUES (1), (2);
INSERT INTO events SELECT n, 1 + n % 2, '2024-01-01', jsonb_build_object('a', n), '(7)' FROM generate_series(1, 6) AS n;
INSERT INTO loose SELECT person, at, props, mark, ARRAY[id::text], id::bit(8), id * interval '1 day' FROM events;
"""
RULES = """\
database: ${NOISEGATE_DATABASE}
unit: people.id
tables: {people: {unit: id}, events: {unit: person, rows_per_unit: 9}, loose: {unit: person, rows_per_unit: 9}}
""" + tables.RULES[tables.RULES.index("budget:") :]


@pytest.fixture(scope="module")
def database(shop: RealDatabase) -> RealDatabase:
    with shop.connect() as owner:
        owner.execute("CREATE DATABASE window_types")
    made = RealDatabase(shop.cluster, "window_types")
    with made.connect() as connection:
        connection.execute(SCHEMA)
    return made


@pytest.fixture(scope="module")
def planner(database: RealDatabase) -> Planner:
    return Planner(database.dsn, RULES)


def _first(table: str, item: str, condition: str = "true") -> str:
    numbered = f"SELECT *, row_number() OVER (PARTITION BY person ORDER BY at) AS r FROM {table}"
    return f"SELECT count({item}) FROM ({numbered}) AS t WHERE r <= 2 AND {condition}"


@pytest.mark.parametrize(
    ("table", "item", "condition"),
    [
        ("events", "props", "props ->> 'a' IS NOT NULL"),
        ("events", "mark", "true"),
        ("(SELECT e.* FROM events AS e JOIN people AS p ON p.id = e.person) AS e", "mark", "props IS NOT NULL"),
        ("loose", "tags", "bits IS NOT NULL"),
        ("loose", "took", "true"),
        ("(SELECT person, at, props ->> 'a' AS a FROM loose) AS l", "a", "true"),
    ],
)
def test_rows_have_an_order_by_their_key_or_by_their_values(
    planner: Planner, database: RealDatabase, table: str, item: str, condition: str
) -> None:
    block = planner.block(_first(table, item, condition))

    assert planner.numbers(block) == [4]


@pytest.mark.parametrize(
    ("table", "item"),
    [("loose", "props"), ("loose", "mark"), ("(SELECT * FROM events UNION ALL TABLE events) AS e", "mark")],
)
def test_values_without_an_order_need_a_key_that_decides(planner: Planner, table: str, item: str) -> None:
    with pytest.raises(NotSupported, match="have no order for a window function without a primary key") as refused:
        planner.block(_first(table, item))

    assert "sub-select below the window function" in refused.value.hint
