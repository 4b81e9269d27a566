"""Tables of several schemas, names that need quotes, and one name that stands in two schemas."""

from collections.abc import Iterator

import psycopg
import pytest

from proxy.twin.embedded import Cluster
from tests.planner.planned import Planner
from tests.support import shop

SCHEMA = """
CREATE SCHEMA sales; CREATE SCHEMA "Old Sales";
CREATE TABLE people (id integer PRIMARY KEY, "Home Town" text);
CREATE TABLE sales.orders (id integer PRIMARY KEY, person integer NOT NULL, "Amount €" numeric(8,2));
CREATE TABLE "Old Sales".orders (id integer PRIMARY KEY, person integer NOT NULL, total integer);
CREATE TABLE orders (id integer);
"""
RULES = """\
database: ${NOISEGATE_DATABASE}
unit: people.id
tables:
  people: {unit: id, columns: {"Home Town": {values: [Lyon, Graz]}}}
  sales.orders: {unit: person, rows_per_unit: 4, columns: {"Amount €": {lower: 0, upper: 10}}}
  Old Sales.orders: {unit: person, rows_per_unit: 3, columns: {total: {lower: 0, upper: 5}}}
""" + shop.RULES[shop.RULES.index("budget:") :]


@pytest.fixture(scope="module")
def planner(real_cluster: Cluster) -> Iterator[Planner]:
    with psycopg.connect(real_cluster.dsn(), autocommit=True) as connection:
        connection.execute("CREATE DATABASE schemas")
    with psycopg.connect(real_cluster.dsn("schemas"), autocommit=True) as connection:
        connection.execute(SCHEMA)
    yield Planner(real_cluster.dsn("schemas"), RULES)


@pytest.mark.parametrize(
    ("sql", "sensitivities"),
    [
        ('SELECT sum("Amount €") FROM sales.orders', [4000]),
        ('SELECT count(*) FROM "Old Sales".orders', [3]),
        ('SELECT o.total, count(*) FROM "Old Sales".orders AS o GROUP BY 1', [3]),
        (
            "SELECT count(*) FROM people AS p JOIN sales.orders ON orders.person = p.id WHERE \"Home Town\" = 'Lyon'",
            [4],
        ),
        ('SELECT count(*) FROM sales.orders AS a JOIN "Old Sales".orders AS b USING (person)', [12]),
        ('SELECT sales.orders."Amount €" > 3, count(*) FROM sales.orders GROUP BY sales.orders."Amount €" > 3', [4]),
    ],
)
def test_tables_are_found_by_their_schema(planner: Planner, sql: str, sensitivities: list[int]) -> None:
    assert planner.sensitivities(sql) == sensitivities


def test_a_bare_name_means_what_the_search_path_finds(planner: Planner) -> None:
    """`orders` is public.orders, which the rules do not name: it does not exist for analysts."""
    assert planner.refusal("SELECT count(*) FROM orders JOIN people ON people.id = orders.id").sqlstate in (
        "42501",
        "0A000",
    )
