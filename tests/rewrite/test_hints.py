"""What a refusal's hint says to write instead is answered."""

import pytest

from tests.rewrite.planned import Planner
from tests.rewrite.test_refusal_table import rows

# What somebody would write who does what the hint says, under each hint of the catalogue in rules/README.md.
HEEDED = {
    "Ask for an aggregate, such as count(*)": "SELECT count(*), avg(amount) FROM orders",
    "The rules may hide it; \\d lists": "SELECT count(city) FROM customers",
    "Join the answers to each other": "SELECT * FROM (SELECT 1 AS one) AS t, (SELECT count(*) FROM customers) AS c",
    "Group by the values instead": "SELECT name, count(*) FROM customers GROUP BY name",
    "Ask how many rows have it": "SELECT count(*) FILTER (WHERE is_vip) FROM customers",
    "Join protected tables on their units": (
        "SELECT count(*) FROM customers AS c JOIN orders AS o ON o.customer_id = c.id"
        " JOIN order_items ON order_id = o.id"
    ),
    "Ask for an aggregate, such as count(*) or avg(x), and limit": (
        "SELECT status, count(*) FROM orders GROUP BY status ORDER BY 2 DESC LIMIT 3"
    ),
    "Name the column of the unit first": (
        "SELECT count(*) FROM (SELECT DISTINCT ON (customer_id) * FROM orders ORDER BY customer_id, ordered_at) AS t"
    ),
    "Ask your DBA for lower and upper": "SELECT sum(least(greatest(id, 0), 100)) FROM orders",
    "Over protected rows only functions that cannot fail": (
        "SELECT md5(city), n FROM (SELECT city, count(*) AS n FROM customers GROUP BY city) AS t"
    ),
    "Known are . [a-z]": r"SELECT count(*) FROM customers WHERE name ~ '^[A-Z]\w+( |-)(?:ab){2,5}\d*$'",
    "Group by public columns, count a column": (
        "SELECT category, count(order_id) FROM products LEFT JOIN order_items ON product_id = id GROUP BY category"
    ),
    "Select the unit in each branch, write UNION ALL": (
        "SELECT count(*) FROM (SELECT customer_id, status FROM orders EXCEPT SELECT customer_id, status FROM orders"
        " UNION ALL SELECT customer_id, status FROM orders) AS t"
    ),
    "PARTITION BY the unit first": "SELECT status, sum(count(*)) OVER () FROM orders GROUP BY status",
    "Write last_value(…) OVER": (
        "SELECT count(w) FROM (SELECT last_value(note) OVER (PARTITION BY customer_id ORDER BY status"
        " ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS w FROM orders) AS t"
    ),
    "Write GROUPS or RANGE in place of ROWS": (
        "SELECT sum(w) FROM (SELECT count(*) OVER (PARTITION BY customer_id ORDER BY ordered_at GROUPS 3 PRECEDING)"
        " AS w FROM orders) AS t"
    ),
    "Compare a unique key in its WHERE": (
        "SELECT count(*) FROM customers AS c WHERE 'paid' = (SELECT min(status) FROM orders WHERE customer_id = c.id)"
    ),
    "Join the rows, and group by the unit": (
        "SELECT avg(n) FROM (SELECT customer_id, count(*) AS n FROM orders WHERE status = 'paid'"
        " GROUP BY customer_id) AS t"
    ),
    "Group by it and order by count(*)": "SELECT name, count(*) FROM customers GROUP BY name ORDER BY count(*) DESC",
    "Group by it and count": "SELECT max(amount) FROM orders",
    "Aggregates over all rows": "SELECT count(*) FROM customers",
    "Write it around aggregates": "SELECT noisegate.margin(avg(amount)) FROM orders",
    "Group by the values and ask for the error bars": (
        "SELECT status, noisegate.low(count(*)) FROM orders GROUP BY status"
    ),
    "Leave out FOR UPDATE": "SELECT count(*) FROM customers",
    "Write two": r"SELECT count(*) FROM customers WHERE name LIKE 'a\\'",
    "There are count, sum, avg": "SELECT stddev(amount), corr(amount, id % 5) FROM orders",
}
NOT_IN_SQL = ("A column of the right type has to hold the value.",)  # that is for the DBA


@pytest.mark.parametrize("heeded", HEEDED.values(), ids=[hint[:40] for hint in HEEDED])
def test_who_does_what_the_hint_says_is_answered(planner: Planner, heeded: str) -> None:
    assert planner.plan(heeded).blocks


def test_every_hint_of_the_catalogue_is_heeded_here() -> None:
    hints = {hint for *_, hint in rows()} - set(NOT_IN_SQL)

    assert [hint for hint in hints if not hint.startswith(tuple(HEEDED))] == []
    assert [known for known in HEEDED if not any(hint.startswith(known) for hint in hints)] == []
