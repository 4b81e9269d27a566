"""Previews: no row of the data, whatever the rules let a tool see instead."""

import re

import psycopg
import pytest

from rules.refusal import NotAllowed
from tests.conftest import RealDatabase
from tests.planner.planned import Planner, Rows
from tests.support import shop as shop_data

PREVIEW = "SELECT * FROM customers LIMIT 5"


def planner(database: RealDatabase, previews: str) -> Planner:
    return Planner(database.dsn, shop_data.RULES.replace("budget:", f"previews: {previews}\nbudget:"))


def run(database: RealDatabase, previews: str, sql: str) -> Rows:
    """The rows of a statement that is answered without the real database, run on nothing but its own text."""
    plan = planner(database, previews).plan(sql)
    assert not plan.blocks
    assert not plan.epsilon
    assert not plan.delta
    with psycopg.connect(database.cluster.dsn(), autocommit=True) as elsewhere:
        elsewhere.execute("SET client_min_messages = error")
        for made in re.findall(r"CREATE TYPE (.*);", shop_data.SCHEMA):
            elsewhere.execute(f"DO $$ BEGIN CREATE TYPE {made}; EXCEPTION WHEN duplicate_object THEN NULL; END $$")
        return elsewhere.execute(plan.outer_with_parameters()).fetchall()


def test_a_preview_is_refused_unless_the_rules_say_otherwise(shop: RealDatabase) -> None:
    assert isinstance(planner(shop, "refuse").refusal(PREVIEW), NotAllowed)


@pytest.mark.parametrize("previews", ["empty", "synthetic"])
def test_rows_without_a_limit_are_no_preview(shop: RealDatabase, previews: str) -> None:
    for sql in ("SELECT * FROM customers", "SELECT count(*) FROM (SELECT * FROM customers LIMIT 5) AS t"):
        assert isinstance(planner(shop, previews).refusal(sql), NotAllowed)


@pytest.mark.parametrize("previews", ["empty", "synthetic"])
def test_what_can_be_answered_is_answered(shop: RealDatabase, previews: str) -> None:
    for sql in ("SELECT count(*) FROM customers LIMIT 1", "SELECT city, count(*) FROM customers GROUP BY city LIMIT 2"):
        assert planner(shop, previews).plan(sql).blocks


@pytest.mark.parametrize(
    "sql",
    [
        PREVIEW,
        "SELECT city FROM (SELECT * FROM customers WHERE is_vip) AS t ORDER BY id LIMIT 10 OFFSET 2",
        "SELECT p.name, i.* FROM products AS p LEFT JOIN order_items AS i ON i.product_id = p.id LIMIT 10",
        "SELECT *, (SELECT count(*) FROM orders) FROM customers FETCH FIRST ROW ONLY",
    ],
)
def test_an_empty_preview_has_no_rows(shop: RealDatabase, sql: str) -> None:
    if "products" in sql:  # a public table: the text is all that can be looked at here
        assert "LIMIT 0" in planner(shop, "empty").plan(sql).outer_with_parameters()
    else:
        assert run(shop, "empty", sql) == []


def test_synthetic_rows_are_within_what_the_rules_and_the_types_say(shop: RealDatabase) -> None:
    sql = "SELECT city, country, birth_date, is_vip, segment::text FROM customers LIMIT 100"
    rows = run(shop, "synthetic", sql)
    assert len(rows) == 100
    cities, countries, dates, vips, segments = (set(column) for column in zip(*rows, strict=True))
    assert cities == {"Berlin", "Lyon", "Porto", "Graz"}
    assert countries == {"DE", "FR", "PT", "AT"}
    assert all("1920" <= str(date) < "2013" for date in dates)
    assert (vips, segments) == ({True, False}, {"consumer", "business", "public sector"})


def test_synthetic_rows_of_several_tables_meet_at_their_keys(shop: RealDatabase) -> None:
    sql = (
        "SELECT c.id, o.customer_id, i.order_id, o.id, o.amount FROM customers AS c "
        "JOIN orders AS o ON o.customer_id = c.id JOIN order_items AS i ON i.order_id = o.id LIMIT 1000"
    )
    rows = run(shop, "synthetic", sql)
    assert len(rows) == 100
    for customer, of_order, order, of_item, amount in rows:
        assert (customer, order) == (of_order, of_item)
        assert 0 <= float(str(amount)) <= 500


def test_synthetic_rows_are_the_same_whenever_they_are_asked_for(shop: RealDatabase) -> None:
    assert run(shop, "synthetic", PREVIEW) == run(shop, "synthetic", PREVIEW)


def test_synthetic_rows_are_filtered_and_computed_as_rows_are(shop: RealDatabase) -> None:
    rows = run(shop, "synthetic", "SELECT upper(city), id + 1 FROM customers WHERE city = 'Lyon' ORDER BY id LIMIT 2")
    assert [row[0] for row in rows] == ["LYON", "LYON"]


def test_a_preview_says_what_it_is(shop: RealDatabase) -> None:
    (empty,) = planner(shop, "empty").plan(PREVIEW).notices
    (synthetic,) = planner(shop, "synthetic").plan(PREVIEW).notices
    assert "empty" in empty
    assert "not from the data" in synthetic


def test_hidden_columns_are_in_no_preview(shop: RealDatabase) -> None:
    assert "email" not in planner(shop, "synthetic").plan(PREVIEW).outer_with_parameters()
