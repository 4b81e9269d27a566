"""Windows beside values of hundreds of megabytes: PostgreSQL holds no text, and no row, of more than one gigabyte."""

from functools import partial

import pytest

from tests.conftest import RealDatabase
from tests.kernel.faults import OF_LARGE, assert_found
from tests.planner.planned import Planner
from tests.support import shop as tables

pytestmark = pytest.mark.long

MANY = range(26)
SCHEMA = f"""
CREATE TABLE people (id integer PRIMARY KEY);
CREATE TABLE t (id integer PRIMARY KEY, person integer, j jsonb, n jsonb, days date[], texts text[], numbers numeric[]);
CREATE TABLE loose (person integer, days date[], texts text[]);
CREATE TABLE wide (id integer PRIMARY KEY, person integer, b bpchar,
    {", ".join(f"c{n} character(10485760)" for n in MANY)});
INSERT INTO people VALUES (1), (2);
INSERT INTO t (id, person) VALUES (1, 1);
INSERT INTO t VALUES (2, 2, '{{"a": 1}}', '1', '{{2024-01-01}}', '{{a}}', '{{1}}');
INSERT INTO wide (id, person, c0, c1, b) VALUES (1, 1, '', '', ''), (2, 2, 'a', 'b ', 'c ');
UPDATE t SET (n, numbers) = (SELECT jsonb_agg(1e131071::numeric), array_agg(1e131071::numeric)
    FROM generate_series(1, 9000)) WHERE id = 1;
UPDATE t SET j = jsonb_build_object('a', repeat('x', 250000000)) WHERE id = 1;
UPDATE t SET days = array_fill('4713-01-01 BC'::date, ARRAY[68000000]) WHERE id = 1;
UPDATE t SET texts = ARRAY[repeat('"', 540000000)] WHERE id = 1;
INSERT INTO loose SELECT person, days, texts FROM t;
{"".join(f"UPDATE wide SET c{n} = repeat('🎈', 10485760) WHERE id = 1;" for n in MANY)}
UPDATE wide SET b = repeat('🎈', 60000000) WHERE id = 1;
"""
RULES = """\
database: ${NOISEGATE_DATABASE}
unit: people.id
tables:
  people: {unit: id}
  t: {unit: person, rows_per_unit: 9}
  loose: {unit: person, rows_per_unit: 9}
  wide: {unit: person, rows_per_unit: 9}
""" + tables.RULES[tables.RULES.index("budget:") :]


def _first(table: str, *items: str) -> str:
    """How many rows have all of these values, of the first row of each unit."""
    named = ", ".join(f"{item} AS x{place}" for place, item in enumerate(items))
    there = " AND ".join(f"x{place} IS NOT NULL" for place in range(len(items)))
    numbered = "SELECT *, row_number() OVER (PARTITION BY person ORDER BY person) AS r"
    rows = f"{numbered} FROM (SELECT person, {named} FROM {table}) AS s"
    return f"SELECT count(*) FROM ({rows}) AS q WHERE r = 1 AND {there}"


STORED = {
    "a jsonb": _first("t", "j"),
    "numbers with many digits": _first("t", "n"),
    "an array of numbers with many digits": _first("t", "numbers"),
    "an array of days that a key orders": _first("t", "days"),
    "an array of texts that a key orders": _first("t", "texts"),
    "an array of days": _first("loose", "days"),
    "an array of texts": _first("loose", "texts"),
}


@pytest.fixture(scope="module")
def planner(shop: RealDatabase) -> Planner:
    with shop.connect() as owner:
        owner.execute("CREATE DATABASE large_rows")
    made = RealDatabase(shop.cluster, "large_rows")
    with made.connect() as connection:
        connection.execute(SCHEMA)
    return Planner(made.dsn, RULES)


COMPUTED = {
    "parts of a document": (_first("t", *["j -> 'a'"] * 5), 1),
    "many texts with blanks": (_first("wide", *(f"c{n}" for n in MANY)), 0),
    "texts with blanks": (_first("wide", "c0", "c1"), 1),
    "a text with blanks of any length": (_first("wide", "b"), 1),
    "texts with blanks that are compared": ("SELECT count(*) FROM wide WHERE c1 = 'b' AND b = 'c'", 1),
}


@pytest.mark.parametrize("name", STORED)
def test_a_large_value_is_carried_beside_a_window(planner: Planner, name: str) -> None:
    assert planner.numbers(planner.block(STORED[name])) == [2]


@pytest.mark.parametrize("name", COMPUTED)
def test_what_is_computed_makes_no_row_of_more_than_a_gigabyte(planner: Planner, name: str) -> None:
    sql, found = COMPUTED[name]

    assert planner.numbers(planner.block(sql)) == [found]


@pytest.mark.parametrize("name", OF_LARGE)
def test_a_fault_is_found_by_a_large_value(planner: Planner, name: str) -> None:
    asked = [*STORED.values(), *(sql for sql, _ in COMPUTED.values())]
    assert_found(OF_LARGE[name], *(partial(lambda sql: planner.numbers(planner.block(sql)), sql) for sql in asked))
