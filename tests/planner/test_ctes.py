"""Names of CTEs: which tables they hide, and which of them a part of a statement has."""

from decimal import Decimal

import pytest

from rules.planner.plan import NeedsInner, Request
from rules.planner.planner import plan
from tests.planner.planned import Planner

RECURSIVE = "WITH RECURSIVE orders AS (SELECT customer_id, id::numeric FROM public.orders UNION ALL {}) SELECT count(*)"


def first(planner: Planner, sql: str) -> NeedsInner:
    """Return what has to be answered before a statement."""
    made = plan(Request(sql, ("pg_catalog", "public"), epsilon=Decimal(1)), planner.policy, planner.catalog)
    assert isinstance(made, NeedsInner)
    return made


@pytest.mark.parametrize(
    "sql",
    [
        RECURSIVE.format("SELECT customer_id, id - 9 FROM orders WHERE id > 9") + " FROM orders",
        RECURSIVE.format("SELECT customer_id, o.id - 9 FROM customers c, orders o WHERE o.id > 9") + " FROM orders",
        "WITH RECURSIVE a AS (SELECT * FROM customers), customers AS (SELECT city FROM public.customers "
        "WHERE city = 'Lyon') SELECT count(*) FROM a",
    ],
)
def test_a_recursive_cte_is_no_table_of_its_name_where_it_is_not_made_yet(planner: Planner, sql: str) -> None:
    """The table was counted in its place."""
    assert planner.refusal(sql)


@pytest.mark.parametrize(
    ("sql", "read"),
    [
        (
            "WITH RECURSIVE p AS (SELECT id FROM products), products AS (SELECT 1 AS id) "
            "SELECT count(*) FROM order_items WHERE product_id IN (SELECT id FROM p)",
            "WITH RECURSIVE p AS (SELECT id FROM products), products AS (SELECT 1 AS id) SELECT id FROM p",
        ),
        (
            "WITH RECURSIVE orders AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM orders WHERE n < 3) "
            "SELECT count(*) FROM customers WHERE length(city) IN (SELECT n FROM orders)",
            "WITH RECURSIVE orders AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM orders WHERE n < 3) "
            "SELECT n FROM orders",
        ),
        (
            "WITH a AS (SELECT * FROM customers) SELECT count(*) FROM a WHERE length(city) IN "
            "(SELECT generate_series(1, 5))",
            "SELECT generate_series(1, 5)",
        ),
        (
            "WITH a AS (SELECT * FROM customers), b AS (SELECT generate_series(1, 5) AS n) SELECT count(*) FROM a "
            "WHERE length(city) IN (SELECT n FROM b)",
            "WITH b AS (SELECT generate_series(1, 5) AS n) SELECT n FROM b",
        ),
        (
            "WITH a AS (SELECT * FROM customers) SELECT count(*) FROM a WHERE length(city) IN "
            "(WITH a AS (SELECT generate_series(1, 5) AS n) SELECT n FROM a)",
            "SELECT * FROM (WITH a AS (SELECT generate_series(1, 5) AS n) SELECT n FROM a) inner_",
        ),
    ],
)
def test_an_inner_query_has_the_ctes_that_it_reads(planner: Planner, sql: str, read: str) -> None:
    """Others may be rows of units, of which nothing is asked there."""
    assert first(planner, sql).text.replace('"inner"', "inner_") == read


def test_a_cte_that_nothing_reads_is_not_run(planner: Planner) -> None:
    made = planner.plan("WITH a AS (SELECT * FROM customers), b AS (SELECT city FROM a) SELECT 1")

    assert (made.outer_with_parameters(), made.blocks) == ("SELECT 1", ())


@pytest.mark.parametrize("value", ["avg(n)", "(SELECT avg(n) FROM months)"])
def test_the_columns_of_a_cte_are_not_those_of_the_table_that_it_hides(planner: Planner, value: str) -> None:
    """They were taken for columns of the row around the subquery."""
    sql = (
        "WITH orders AS (SELECT date_trunc('month', ordered_at) AS m, count(*) AS n FROM orders GROUP BY 1), "
        "months AS (SELECT * FROM orders) SELECT count(*) FROM customers "
        f"WHERE 5 > (SELECT {value} FROM orders WHERE n > 3)"
    )

    assert "n > 3" in first(planner, sql).text
