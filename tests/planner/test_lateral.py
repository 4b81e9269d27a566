"""LATERAL subqueries over rows of the same unit: joins, the first rows of each unit, and what they add up to."""

import pytest

from tests.planner.planned import Planner
from tests.support.shop import LOYAL

ORDERS = f"(SELECT * FROM orders WHERE customer_id NOT IN {LOYAL})"


@pytest.mark.parametrize(
    "sql",
    [
        """SELECT count(*) FROM customers AS c
           CROSS JOIN LATERAL (SELECT count(*) AS n, max(ordered_at) AS last FROM orders WHERE customer_id = c.id) AS t
           WHERE t.n = 0 OR last > '2025-06-01'""",
        """SELECT count(*) FROM customers AS c LEFT JOIN LATERAL (
               SELECT status FROM orders AS o WHERE o.customer_id = c.id ORDER BY ordered_at DESC, id LIMIT 1
           ) AS t ON true WHERE t.status = 'paid' OR t.status IS NULL""",
        """SELECT count(*) FROM customers AS c, LATERAL (
               SELECT * FROM orders AS o WHERE o.customer_id = c.id ORDER BY ordered_at, id LIMIT 3
           ) AS t (number) WHERE t.amount > 100""",
        f"SELECT count(*) FROM {ORDERS} AS o, LATERAL (SELECT o.amount / 2 AS half) AS t WHERE half BETWEEN 5 AND 50",
        f"""SELECT count(*) FROM {ORDERS} AS o JOIN LATERAL (
                SELECT sum(quantity) AS pieces FROM order_items AS i WHERE i.order_id = o.id) AS t ON true
            WHERE pieces > 4 AND EXISTS (SELECT FROM customers AS c WHERE c.id = o.customer_id AND pieces > 5)""",
        f"""SELECT count(*) FROM {ORDERS} AS o, LATERAL (SELECT quantity FROM order_items WHERE order_id = o.id) AS t
            WHERE quantity = 3""",
    ],
)
def test_lateral_says_what_postgresql_says(planner: Planner, sql: str) -> None:
    truth = planner.truth(sql)

    assert truth[0][0] > 0
    assert planner.run(sql) == truth


@pytest.mark.parametrize(
    "source",
    [
        "customers AS c CROSS JOIN LATERAL ({}) AS t JOIN orders AS p ON p.customer_id = c.id AND p.amount > t.s",
        "customers AS c LEFT JOIN LATERAL ({}) AS t ON true JOIN orders AS p ON p.customer_id = c.id",
        "customers AS c, LATERAL ({}) AS t, orders AS p WHERE p.customer_id = c.id",
    ],
)
def test_tables_may_stand_behind_lateral(planner: Planner, source: str) -> None:
    paid = "SELECT count(*) AS s FROM orders AS o WHERE o.customer_id = c.id AND o.status = 'paid'"
    sql = f"SELECT count(*), count(DISTINCT c.id) FROM {source.format(paid)}"
    generous = Planner(planner.dsn, planner.rules.replace("rows_per_unit: 40", "rows_per_unit: 400"))
    truth = planner.truth(sql)

    assert truth[0][0] > 0
    assert generous.run(sql) == truth


@pytest.mark.parametrize(
    "source",
    [
        "customers AS c LEFT JOIN LATERAL ({}) AS t ON t.n > 3",
        "customers AS c LEFT JOIN LATERAL ({}) AS t ON true LEFT JOIN orders AS p ON p.customer_id = c.id",
    ],
)
def test_lateral_where_order_matters_is_refused_with_a_place_for_it(planner: Planner, source: str) -> None:
    counted = "SELECT count(*) AS n FROM orders AS o WHERE o.customer_id = c.id"
    refusal = planner.refusal(f"SELECT count(*) FROM {source.format(counted)}")

    assert "LATERAL is not supported at this position" in refusal.message
    assert "behind all outer joins" in (refusal.hint or "")


@pytest.mark.parametrize(("limit", "rows"), [("LIMIT 1", 1), ("LIMIT 3", 3), ("", 40)])
def test_the_first_rows_of_each_unit_are_proved_to_be_few(planner: Planner, limit: str, rows: int) -> None:
    latest = f"SELECT * FROM orders AS o WHERE o.customer_id = c.id ORDER BY ordered_at DESC {limit}"

    assert planner.sensitivities(f"SELECT count(*) FROM customers AS c, LATERAL ({latest}) AS t") == [rows]


@pytest.mark.parametrize(
    ("lateral", "words"),
    [
        ("SELECT status FROM orders AS o", "must be joined on their unit columns"),
        (
            "SELECT count(*) FROM orders AS o WHERE o.status = 'paid'",
            "must be joined to the outer query on the unit column",
        ),
        ("SELECT status, count(*) FROM orders AS o WHERE o.customer_id = c.id GROUP BY 1", "LATERAL"),
        ("SELECT * FROM orders AS o WHERE o.customer_id = c.id AND o.ordered_at > c.joined LIMIT 1", "only by ="),
    ],
)
def test_lateral_that_is_not_the_units_own_is_refused(planner: Planner, lateral: str, words: str) -> None:
    refusal = planner.refusal(f"SELECT count(*) FROM customers AS c, LATERAL ({lateral}) AS t")

    assert words in refusal.message
    assert refusal.hint
