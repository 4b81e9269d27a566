"""Subqueries that depend on the row around them, over rows of the same unit or found by a key: part of the relation."""

import pytest

from tests.planner.planned import Planner
from tests.support.shop import LOYAL

# Customers with more orders than the rules count are left out, so that exact numbers can be compared.
ORDERS = f"(SELECT * FROM orders WHERE customer_id NOT IN {LOYAL})"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) FROM customers AS c WHERE is_vip OR EXISTS (SELECT FROM orders WHERE customer_id = c.id)",
        """SELECT count(*) FILTER (WHERE NOT EXISTS (SELECT FROM orders AS o WHERE o.customer_id = c.id))
           FROM customers AS c""",
        """SELECT count(*) FROM (SELECT EXISTS (SELECT FROM orders WHERE customer_id = c.id AND status = 'paid') AS pays
           FROM customers AS c) AS t WHERE pays IS NOT TRUE""",
        """SELECT count(*) FROM customers AS c
           WHERE NOT (is_vip AND c.id IN (SELECT customer_id FROM orders WHERE status = 'sent'))""",
        """SELECT count(*) FROM customers AS c
           WHERE is_vip OR c.id NOT IN (SELECT customer_id FROM orders GROUP BY 1 HAVING count(*) > 3)""",
        "SELECT count(*) FROM customers AS c WHERE (SELECT count(*) FROM orders WHERE customer_id = c.id) = 0",
        """SELECT count(*) FROM customers AS c
           WHERE (SELECT count(*) + 10 FROM orders AS o WHERE c.id = o.customer_id AND amount > 100) > 12""",
        f"""SELECT count(*) FROM {ORDERS} AS o
            WHERE ordered_at < (SELECT max(p.ordered_at) FROM orders AS p WHERE p.customer_id = o.customer_id)""",
        f"""SELECT count(*) FROM {ORDERS} AS o
            WHERE (SELECT sum(quantity) FROM order_items AS i WHERE i.order_id = o.id) BETWEEN 4 AND 9""",
        f"""SELECT count(*) FROM order_items AS i JOIN {ORDERS} AS o ON i.order_id = o.id
            WHERE (SELECT p.category FROM products AS p WHERE p.id = i.product_id) = 'book'""",
        f"""SELECT count(*) FROM {ORDERS} AS o WHERE (SELECT count(*) FROM orders AS p
            WHERE p.customer_id = o.customer_id AND p.amount::integer % 2 = o.amount::integer % 2) > 2""",
        f"SELECT count(*) FROM {ORDERS} AS o WHERE (SELECT c.is_vip FROM customers AS c WHERE c.id = o.customer_id)",
        """SELECT count(*) FROM customers AS c WHERE EXISTS (SELECT FROM orders AS o WHERE o.customer_id = c.id AND (
               o.amount > 400 OR EXISTS (SELECT FROM order_items AS i WHERE i.order_id = o.id AND i.quantity > 4)))""",
        f"""SELECT count(*) FROM customers AS c JOIN {ORDERS} AS o ON o.customer_id = c.id
                AND o.ordered_at < (SELECT max(p.ordered_at) FROM orders AS p WHERE p.customer_id = c.id)""",
        """SELECT count(*) FROM customers AS c
           WHERE (SELECT status FROM orders WHERE customer_id = c.id ORDER BY ordered_at DESC, id LIMIT 1) = 'paid'""",
        """SELECT count(*) FROM customers AS c
           WHERE 3 < (SELECT count(*) FROM orders WHERE customer_id = c.id AND ordered_at > c.joined)""",
        f"""SELECT count(*), count(*) FILTER (WHERE next IS NULL) FROM (
                SELECT ordered_at, (SELECT min(p.ordered_at) FROM orders AS p
                    WHERE p.customer_id = o.customer_id AND p.ordered_at > o.ordered_at) AS next FROM {ORDERS} AS o
            ) AS t WHERE next < ordered_at + interval '60 days' OR next IS NULL""",
        f"""SELECT count(*) FROM {ORDERS} AS o WHERE (SELECT count(*) - count(DISTINCT p.status) FROM orders AS p
            WHERE p.customer_id = o.customer_id AND p.id <> o.id AND p.amount <= o.amount) >= 1""",
        f"""SELECT count(*) FROM {ORDERS} AS o CROSS JOIN LATERAL (SELECT count(*) AS n, max(p.amount) AS most
            FROM orders AS p WHERE p.customer_id = o.customer_id
                AND p.ordered_at BETWEEN o.ordered_at - interval '90 days' AND o.ordered_at) AS t
            WHERE n > 1 AND most > o.amount""",
    ],
)
def test_a_subquery_of_the_same_unit_says_what_postgresql_says(planner: Planner, sql: str) -> None:
    truth = planner.truth(sql)

    assert truth[0][0] > 0
    assert planner.run(sql) == truth


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) FROM products WHERE id IN (SELECT id FROM orders WHERE id > 3) AND id < 20 AND price > 5",
        """SELECT count(*) FROM products AS p WHERE price > 5
           AND EXISTS (SELECT 1 FROM order_items WHERE product_id = p.id AND quantity > 4 AND order_id < 40)""",
    ],
)
def test_public_rows_that_protected_rows_refer_to_are_as_many_as_postgresql_says(planner: Planner, sql: str) -> None:
    truth = planner.truth(sql)

    assert 0 < truth[0][0] < 28
    assert planner.run(sql) == truth


def test_a_subquery_beside_the_groups_of_a_unit_depends_on_their_keys(planner: Planner) -> None:
    grouped = """SELECT customer_id, count(*) AS n,
                     (SELECT c.country FROM customers AS c WHERE c.id = customer_id) AS land
                 FROM orders GROUP BY customer_id HAVING count(*) > (SELECT count(*) FROM customers AS c
                     WHERE c.id = customer_id AND c.is_vip)"""
    sql = f"SELECT count(*) FROM ({grouped}) AS t WHERE n > 2 AND land = 'DE'"
    truth = planner.truth(sql)

    assert planner.run(sql) == truth
    assert "GROUP BY" in planner.refusal(sql.replace("c.id = customer_id)", "c.id = amount)")).message


def test_a_subquery_is_a_key_of_groups(planner: Planner) -> None:
    sql = """SELECT CASE WHEN EXISTS (SELECT FROM orders WHERE customer_id = c.id) THEN 'buyer' ELSE 'guest' END AS who,
             count(*) FROM customers AS c GROUP BY 1"""
    truth = planner.truth(sql)

    assert sorted(planner.run(sql)) == sorted(truth)
    assert planner.sensitivities(sql) == [1]


@pytest.mark.parametrize(
    ("item", "rows"),
    [
        ("(SELECT count(*) FROM orders WHERE customer_id = c.id)", 40),
        ("(SELECT least(max(amount), 20) FROM orders WHERE customer_id = c.id)", 20),
    ],
)
def test_a_value_of_the_unit_has_bounds_of_its_own(planner: Planner, item: str, rows: int) -> None:
    (total,) = planner.sensitivities(f"SELECT sum({item}) FROM customers AS c")

    assert total == rows * (1 if "count" in item else 100)


@pytest.mark.parametrize(("column", "rows"), [("id", 1), ("ordered_at", 40)])
def test_the_row_with_the_units_largest_key_is_one(planner: Planner, column: str, rows: int) -> None:
    latest = f"o.{column} = (SELECT max(p.{column}) FROM orders AS p WHERE p.customer_id = o.customer_id)"

    assert planner.sensitivities(f"SELECT count(*) FROM orders AS o WHERE {latest}") == [rows]
    assert (
        planner.sensitivities(f"SELECT o.{column}::text, count(*) FROM orders AS o WHERE {latest} GROUP BY 1")[1] == 1
    )


def test_where_a_foreign_key_leads_there_is_a_value(planner: Planner) -> None:
    """So there is no group of rows without one."""
    category = "(SELECT p.category FROM products AS p WHERE p.id = i.product_id)"
    sql = planner.sql(f"SELECT {category}, count(*) FROM order_items AS i GROUP BY 1")

    assert "LEFT JOIN" not in sql
    assert "LEFT JOIN" in planner.sql(
        f"SELECT count(*) FROM order_items AS i WHERE {category[:-1]} AND price > 9) = 'book'"
    )


def test_what_is_joined_by_a_key_multiplies_no_rows(planner: Planner) -> None:
    priced = "SELECT *, (SELECT p.price FROM products AS p WHERE p.id = i.product_id) AS price FROM order_items AS i"

    assert planner.sensitivities(f"SELECT count(*) FROM ({priced}) AS t WHERE price > 10") == [120]


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        (
            "SELECT count(*) FROM customers AS c WHERE 'paid' = (SELECT status FROM orders WHERE customer_id = c.id)",
            "more than one row",
        ),
        (
            """SELECT count(*) FROM order_items AS i
               WHERE 9 < (SELECT price FROM products AS p WHERE p.price < i.quantity)""",
            "more than one row",
        ),
        (
            "SELECT count(*) FROM customers AS c WHERE is_vip OR EXISTS (SELECT FROM orders AS o WHERE o.amount > 400)",
            "must be joined on their unit columns",
        ),
        (
            """SELECT count(*) FROM customers AS c
               WHERE 3 < (SELECT count(*) FROM orders WHERE amount > 3 AND ordered_at > c.joined)""",
            "only by =",
        ),
        (
            """SELECT count(*) FROM customers AS c WHERE 'paid' = (
               SELECT status FROM orders WHERE customer_id = c.id AND ordered_at > c.joined ORDER BY id LIMIT 1)""",
            "only by =",
        ),
        (
            """SELECT count(*) FROM customers AS c
               WHERE 3 < (SELECT count(*) FROM orders WHERE customer_id = c.id::numeric)""",
            "must be joined on their unit columns",
        ),
        (
            """SELECT count(*) FROM customers AS c
               WHERE 3 < (SELECT count(*) FROM orders WHERE id = c.id::double precision)""",
            "values of the same type",
        ),
        (
            "SELECT count(*) FROM customers AS c WHERE 3 < (SELECT count(*) FROM orders WHERE customer_id = c.id + 0)",
            "must be joined on their unit columns",
        ),
    ],
)
def test_a_subquery_that_is_not_the_units_own_is_refused(planner: Planner, sql: str, words: str) -> None:
    refusal = planner.refusal(sql)

    assert words in refusal.message
    assert refusal.hint
