"""A column with a collation of its own is read in the database's: what could differ by that is refused."""

import pytest

from proxy.twin.embedded import Cluster
from tests.conftest import make_shop
from tests.planner.planned import Planner


@pytest.fixture(scope="module")
def planner(real_cluster: Cluster) -> Planner:
    shop = make_shop(real_cluster, "collated")
    with shop.connect() as connection:
        connection.execute('CREATE DOMAIN posix AS text COLLATE "POSIX"; CREATE DOMAIN plain AS text')
        connection.execute('ALTER TABLE customers ALTER name TYPE text COLLATE "C", ALTER email TYPE plain')
        connection.execute("ALTER TABLE orders ALTER note TYPE posix")
    return Planner(shop.dsn)


@pytest.mark.parametrize(
    "condition",
    [
        "name < 'm'",
        "'m' >= name",
        "name BETWEEN 'a' AND 'm'",
        "greatest(name, 'm') = 'm'",
        "lower(name) = 'customer 7'",
        "upper(name || '!') LIKE 'C%'",
        "initcap(name) = 'Customer 7'",
        "name ILIKE 'c%'",
        "name ~* '^c'",
        "name ~ '(?i)^c'",
        "substring(name FROM '(?i)^c') = 'C'",
        r"name ~ '\w 7$'",
        "name ~ '[[:alpha:]] 7$'",
        "regexp_replace(name, 'c', '', 'i') = 'ustomer 7'",
        "CASE WHEN is_vip THEN name ELSE city END < 'm'",
        "EXISTS (SELECT FROM customers AS c WHERE c.id = customers.id AND c.name > customers.city)",
    ],
)
def test_the_order_and_the_letters_of_its_texts_are_not_asked_for(planner: Planner, condition: str) -> None:
    refusal = planner.refusal(f"SELECT count(*) FROM customers WHERE {condition}")
    assert (refusal.sqlstate, refusal.about) == ("0A000", "name")
    assert '"name" has another one' in refusal.message


@pytest.mark.parametrize(
    "rows",
    [
        "SELECT id, name AS n FROM customers",
        "SELECT id, name || city AS n FROM customers",
        "SELECT id, coalesce(name, city) AS n FROM customers",
        "SELECT id, city AS n FROM customers UNION ALL SELECT id, name FROM customers",
        "SELECT id, lag(name) OVER (PARTITION BY id ORDER BY joined) AS n FROM customers",
        "SELECT id, name AS n FROM customers GROUP BY id, name",
    ],
)
def test_it_is_known_through_subqueries(planner: Planner, rows: str) -> None:
    assert planner.refusal(f"SELECT count(*) FROM ({rows}) AS s WHERE n < 'm'").sqlstate == "0A000"


@pytest.mark.parametrize(
    "asked",
    [
        "SELECT id, max(name) FROM customers GROUP BY id",
        "SELECT id, mode() WITHIN GROUP (ORDER BY name) FROM customers GROUP BY id",
        "SELECT row_number() OVER (PARTITION BY id ORDER BY name) FROM customers",
    ],
)
def test_rows_of_one_unit_are_not_ordered_by_it(planner: Planner, asked: str) -> None:
    refusal = planner.refusal(f"SELECT count(*) FROM ({asked}) AS s")
    assert (refusal.sqlstate, refusal.about) == ("0A000", "name")


@pytest.mark.parametrize(
    "condition",
    [
        "name = 'Customer 7'",
        "name <> city",
        "name IN ('Customer 7', 'Customer 8')",
        "name LIKE 'Customer _'",
        "name ~ '^Customer [0-4]$'",
        "length(name) < 11",
        "left(name, 3) = 'Cus'",
        "city < 'M' AND name IS NOT NULL",
    ],
)
def test_what_is_the_same_in_every_collation_is_answered(planner: Planner, condition: str) -> None:
    sql = f"SELECT count(*) FROM customers WHERE {condition}"
    assert planner.run(sql) == planner.truth(sql)


def test_a_domain_is_ordered_by_its_own_collation(planner: Planner) -> None:
    assert planner.refusal("SELECT count(*) FROM orders WHERE note < 'm'").about == "note"


def test_a_domain_without_one_is_ordered_as_the_database_does(planner: Planner) -> None:
    planner.rules = planner.rules.replace("      email: hidden\n", "")
    sql = "SELECT count(*) FROM customers WHERE lower(email) < 'customer2'"
    assert planner.run(sql) == planner.truth(sql)
