"""IN of rows, and ANY, SOME and ALL of a subquery, with NULLs as PostgreSQL has them, over rows of the same unit."""

import pytest

from rules.refusal import NotAllowed, NotSupported
from tests.planner.planned import Planner
from tests.support.shop import LOYAL

# Customers with more orders than the rules count are left out, so that exact numbers can be compared.
ORDERS = f"(SELECT * FROM orders WHERE customer_id NOT IN {LOYAL})"
MINE = "FROM orders AS p WHERE p.customer_id = o.customer_id"


@pytest.mark.parametrize(
    "condition",
    [
        f"amount >= ALL (SELECT p.amount {MINE})",
        f"amount > ANY (SELECT p.amount {MINE})",
        f"amount < SOME (SELECT p.amount {MINE} AND p.status = 'paid')",
        f"amount <> ALL (SELECT p.amount {MINE} AND p.id <> o.id)",
        f"NOT amount <= ANY (SELECT p.amount {MINE} AND p.id <> o.id)",
        f"amount <> ANY (SELECT p.amount {MINE})",
        f"amount = ALL (SELECT p.amount {MINE})",
        # notes may be NULL: NOT IN and ALL are then neither true nor false
        f"note NOT IN (SELECT p.note {MINE} AND p.id <> o.id)",
        f"o.status = 'paid' AND 'call 3' <> ALL (SELECT p.note {MINE})",
        f"'a' < ALL (SELECT p.note {MINE})",
        f"note IN (SELECT p.note {MINE})",
        f"(note IN (SELECT p.note {MINE} AND p.id <> o.id)) IS NULL",
        f"('call 3' < ALL (SELECT p.note {MINE})) IS NOT TRUE",
        f"('zoo' < ANY (SELECT p.note {MINE})) IS FALSE",
        f"coalesce(NOT 'zoo' < ANY (SELECT p.note {MINE}), o.status = 'sent')",
        f"(note NOT IN (SELECT p.note {MINE} AND p.id <> o.id)) IS NOT FALSE",
        # rows
        "(o.customer_id, o.ordered_at) IN (SELECT customer_id, max(ordered_at) FROM orders GROUP BY customer_id)",
        "(o.customer_id, o.status) IN (SELECT p.customer_id, p.status FROM orders AS p WHERE p.id < o.id)",
        "(o.customer_id, o.status) NOT IN (SELECT p.customer_id, p.status FROM orders AS p WHERE p.id < o.id)",
        "(o.customer_id, o.note) NOT IN (SELECT p.customer_id, p.note FROM orders AS p WHERE p.id < o.id)",
        "((o.customer_id, o.note) IN (SELECT p.customer_id, p.note FROM orders AS p WHERE p.id < o.id)) IS NULL",
        "(o.customer_id, 'paid') = ANY (SELECT p.customer_id, p.status FROM orders AS p)",
        "NOT (o.customer_id, o.id) <> ALL (SELECT p.customer_id, p.id FROM orders AS p WHERE p.status = 'open')",
        # arrays of rows
        f"note = ANY (ARRAY(SELECT p.note {MINE}))",
        f"(note = ANY (ARRAY(SELECT p.note {MINE} AND p.id <> o.id))) IS NULL",
        f"(note <> ALL (ARRAY(SELECT p.note {MINE} AND p.id <> o.id))) IS NOT FALSE",
        "amount = ANY (ARRAY(SELECT price FROM products))",
        "amount <> ALL (ARRAY(SELECT nullif(price, 1.37) FROM products))",
        # public rows
        "amount > ALL (SELECT price FROM products)",
        "amount < ANY (SELECT price FROM products WHERE category = 'book')",
        "amount < ALL (SELECT price FROM products WHERE category = 'none')",
        "amount NOT IN (SELECT nullif(price, 1.37) FROM products)",
        "(o.status::text, 'book') NOT IN (SELECT 'paid', category FROM products)",
        "is_odd OR amount < ALL (SELECT nullif(price, 1.37) FROM products)",
    ],
)
def test_a_comparison_with_a_subquery_says_what_postgresql_says(planner: Planner, condition: str) -> None:
    orders = f"(SELECT *, id % 2 = 1 AS is_odd FROM {ORDERS} AS p)"
    sql = f"SELECT count(*), count(*) FILTER (WHERE o.id % 2 = 0) FROM {orders} AS o WHERE {condition}"
    truth = planner.truth(sql)

    assert planner.run(sql) == truth


def test_a_row_is_in_public_rows(planner: Planner) -> None:
    sql = f"""SELECT count(*) FROM order_items AS i JOIN {ORDERS} AS o ON o.id = i.order_id
              WHERE (product_id, unit_price) IN (SELECT id, price FROM products WHERE category = 'book')"""
    truth = planner.truth(sql)

    assert truth[0][0] > 0
    assert planner.run(sql) == truth


def test_a_test_multiplies_no_rows(planner: Planner) -> None:
    sql = f"SELECT count(*) FROM orders AS o WHERE amount >= ALL (SELECT p.amount {MINE})"

    assert planner.sensitivities(sql) == [40]


@pytest.mark.parametrize(
    ("condition", "kind", "words"),
    [
        ("amount > ALL (SELECT p.amount FROM orders AS p)", NotAllowed, "must be joined on their unit columns"),
        ("(o.status, o.amount) IN (SELECT p.status, p.amount FROM orders AS p)", NotAllowed, "must be joined"),
        (
            "o.customer_id < ANY (SELECT p.customer_id FROM orders AS p)",
            NotAllowed,
            "must be joined on their unit columns",
        ),
        ("(o.customer_id, o.id) < ANY (SELECT p.customer_id, p.id FROM orders AS p)", NotSupported, "only by ="),
        (
            "(o.customer_id, 'a') NOT IN (SELECT nullif(p.customer_id, 3), p.note FROM orders AS p)",
            NotAllowed,
            "nullable",
        ),
    ],
)
def test_what_no_unit_ties_is_refused(planner: Planner, condition: str, kind: type[Exception], words: str) -> None:
    refusal = planner.refusal(f"SELECT count(*) FROM orders AS o WHERE {condition}")

    assert isinstance(refusal, kind)
    assert words in refusal.message
    assert refusal.hint
