"""Rows without a partner stand once each: LEFT JOIN … IS NULL has the noise of NOT EXISTS."""

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
