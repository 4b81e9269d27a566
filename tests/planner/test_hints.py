"""What a refusal's hint says to write instead is answered."""

import pytest

from tests.planner.planned import Planner
from tests.planner.test_refusal_table import rows

# What somebody would write who does what the hint says, under each hint of the table in docs/errors.md.
HEEDED = {
    "Select an aggregate such as count(*)": "SELECT count(*), avg(amount) FROM orders",
    "Aggregate the protected table in a subquery": (
        "SELECT * FROM (SELECT 1 AS one) AS t, (SELECT count(*) FROM customers) AS c"
    ),
    "Group by the values instead": "SELECT name, count(*) FROM customers GROUP BY name",
    "Aggregate over these groups instead": (
        "SELECT count(*), avg(n) FROM (SELECT customer_id, count(*) AS n FROM orders GROUP BY customer_id) AS t"
    ),
    "Count the rows for which it is true": "SELECT count(*) FILTER (WHERE is_vip) FROM customers",
    "Join protected tables on their unit columns": (
        "SELECT count(*) FROM customers AS c JOIN orders AS o ON o.customer_id = c.id"
        " JOIN order_items ON order_id = o.id"
    ),
    "Select an aggregate such as count(*) or avg(x), and apply LIMIT": (
        "SELECT status, count(*) FROM orders GROUP BY status ORDER BY 2 DESC LIMIT 3"
    ),
    "Put the unit column first": (
        "SELECT count(*) FROM (SELECT DISTINCT ON (customer_id) * FROM orders ORDER BY customer_id, ordered_at) AS t"
    ),
    "Ask your DBA to set lower and upper": "SELECT sum(least(greatest(id, 0), 100)) FROM orders",
    "Only listed functions, which fail on no row, read protected rows": (
        "SELECT md5(city), n FROM (SELECT city, count(*) AS n FROM customers GROUP BY city) AS t"
    ),
    "Supported are . [a-z]": r"SELECT count(*) FROM customers WHERE name ~ '^[A-Z]\w+( |-)(?:ab){2,5}\d*$'",
    "Group by public columns, count a column": (
        "SELECT category, count(order_id) FROM products LEFT JOIN order_items ON product_id = id GROUP BY category"
    ),
    "Select the unit column in each branch, use UNION ALL": (
        "SELECT count(*) FROM (SELECT customer_id, status FROM orders EXCEPT SELECT customer_id, status FROM orders"
        " UNION ALL SELECT customer_id, status FROM orders) AS t"
    ),
    "Use PARTITION BY with the unit column first": "SELECT status, sum(count(*)) OVER () FROM orders GROUP BY status",
    "Use last_value(…) OVER": (
        "SELECT count(w) FROM (SELECT last_value(note) OVER (PARTITION BY customer_id ORDER BY status"
        " ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS w FROM orders) AS t"
    ),
    "Use GROUPS or RANGE instead of ROWS": (
        "SELECT sum(w) FROM (SELECT count(*) OVER (PARTITION BY customer_id ORDER BY ordered_at GROUPS 3 PRECEDING)"
        " AS w FROM orders) AS t"
    ),
    "Compare a unique key in its WHERE": (
        "SELECT count(*) FROM customers AS c WHERE 'paid' = (SELECT min(status) FROM orders WHERE customer_id = c.id)"
    ),
    "Join the tables, and group by the unit column": (
        "SELECT avg(n) FROM (SELECT customer_id, count(*) AS n FROM orders WHERE status = 'paid'"
        " GROUP BY customer_id) AS t"
    ),
    "Group by it and order by count(*)": "SELECT name, count(*) FROM customers GROUP BY name ORDER BY count(*) DESC",
    "Group by it and count": "SELECT max(amount) FROM orders",
    "Nothing was charged. Where a divisor": "SELECT sum(amount) / nullif(count(*), 0) FROM orders",
    "Leave ONLY out": "SELECT count(*) FROM customers",
    "Use aggregates over all rows": "SELECT count(*) FROM customers",
    "Apply it to an aggregate": "SELECT noisegate.margin(avg(amount)) FROM orders",
    "Group by the values, and select the error bars": (
        "SELECT status, noisegate.low(count(*)) FROM orders GROUP BY status"
    ),
    "Remove FOR UPDATE": "SELECT count(*) FROM customers",
    "Write the escape character twice": r"SELECT count(*) FROM customers WHERE name LIKE 'a\\'",
    "Give the lower bound first": "SELECT noisegate.typical(avg(amount), 0, 500) FROM orders",
    "Divide it, or ask count() itself": "SELECT count(*) FROM orders",
    "Count it as it is": "SELECT status, count(*) FROM orders GROUP BY status",
    "Aggregate protected rows in a CTE": (
        "WITH RECURSIVE a AS (SELECT count(*) AS n FROM customers),"
        " r AS (SELECT n FROM a UNION ALL SELECT n - 1000 FROM r WHERE n > 0) SELECT count(*) FROM r"
    ),
    "Use count, sum, avg": "SELECT stddev(amount), corr(amount, id % 5) FROM orders",
}
NOT_IN_SQL = ("Ask your DBA to store the value in a column of that type.",)  # that is for the DBA


@pytest.mark.parametrize("heeded", HEEDED.values(), ids=[hint[:40] for hint in HEEDED])
def test_who_does_what_the_hint_says_is_answered(planner: Planner, heeded: str) -> None:
    assert planner.plan(heeded).blocks


def test_every_hint_of_the_catalogue_is_heeded_here() -> None:
    hints = {hint for *_, hint in rows()} - set(NOT_IN_SQL)

    assert [hint for hint in hints if not hint.startswith(tuple(HEEDED))] == []
    assert [known for known in HEEDED if not any(hint.startswith(known) for hint in hints)] == []


def test_rows_of_an_outer_join_are_counted_by_a_column(planner: Planner) -> None:
    """By count(*) they would be refused again."""
    sql = "SELECT p.id, count({}) FROM products AS p LEFT JOIN order_items AS i ON i.product_id = p.id GROUP BY p.id"

    assert "with an outer join, count a column" in planner.refusal(sql.format("i.*")).hint
    assert "count a column" in planner.refusal(sql.format("*")).hint
    assert planner.block(sql.format("i.order_id")).measures
