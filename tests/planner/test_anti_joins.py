"""Outer joins and their units: LEFT JOIN … IS NULL has the noise of NOT EXISTS, and both sides one unit."""

import pytest

from tests.planner.planned import Planner

CUSTOMERS = "SELECT count(*) FROM customers AS c WHERE NOT EXISTS (SELECT FROM orders AS o WHERE o.customer_id = c.id)"
ORDERS = "SELECT count(*) FROM orders AS o WHERE NOT EXISTS (SELECT FROM order_items AS i WHERE i.order_id = o.id)"


JOINED = "FROM customers AS c LEFT JOIN orders AS o ON o.customer_id = c.id"


@pytest.mark.parametrize(
    ("sql", "same"),
    [
        (f"SELECT count(*) {JOINED} WHERE o.id IS NULL", CUSTOMERS),
        (f"SELECT count(*) {JOINED} WHERE o.customer_id IS NULL AND c.id > 0", CUSTOMERS),
        (f"SELECT count(*) FROM (SELECT c.id, o.id AS ordered {JOINED}) AS x WHERE ordered IS NULL", CUSTOMERS),
        (
            "SELECT count(*) FROM orders AS o RIGHT JOIN customers AS c ON o.customer_id = c.id WHERE o.id IS NULL",
            CUSTOMERS,
        ),
        (
            "SELECT count(*) FROM orders AS o LEFT JOIN order_items AS i ON i.order_id = o.id WHERE i.order_id IS NULL",
            ORDERS,
        ),
    ],
)
def test_absent_partners_multiply_no_rows(planner: Planner, sql: str, same: str) -> None:
    assert planner.sensitivities(sql) == planner.sensitivities(same)
    assert planner.run(sql) == planner.truth(sql)


@pytest.mark.parametrize(
    "condition",
    ["o.note IS NULL", "o.id IS NOT NULL", "o.id IS NULL OR o.amount > 1"],
)
def test_partners_that_may_be_there_multiply_rows(planner: Planner, condition: str) -> None:
    sql = f"SELECT count(*) {JOINED} WHERE {condition}"

    assert planner.sensitivities(sql)[0] > planner.sensitivities(CUSTOMERS)[0]


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT count(DISTINCT o.customer_id) {JOINED}",
        f"SELECT count(DISTINCT o.customer_id) FILTER (WHERE o.amount > 100) {JOINED}",
        "SELECT count(DISTINCT o.customer_id) FROM orders AS o RIGHT JOIN customers AS c ON o.customer_id = c.id",
        f"SELECT count(DISTINCT ordered) FROM (SELECT c.id, o.customer_id AS ordered {JOINED}) AS x",
        "SELECT count(DISTINCT o.customer_id) FROM orders AS o FULL JOIN customers AS c ON o.customer_id = c.id",
    ],
)
def test_units_are_counted_as_units_by_either_side(planner: Planner, sql: str) -> None:
    """A customer without an order has NULL there, and is not counted."""
    assert planner.sensitivities(sql) == [1]
    assert planner.run(sql) == planner.truth(sql)


def test_such_a_unit_is_in_the_groups_that_it_is_in_anyway(planner: Planner) -> None:
    by_city = f"SELECT city, count(DISTINCT o.customer_id) {JOINED} GROUP BY city"

    assert planner.sensitivities(by_city) == [1]
