"""The largest groups are chosen privately wherever a statement shows them alone, and only there."""

import pytest

from tests.planner.planned import Planner

COUNT = "count(DISTINCT orders.customer_id)"
GROUPED = f"SELECT product_id, {COUNT} AS n{{}} FROM order_items JOIN orders ON orders.id = order_id GROUP BY 1"
PLAIN = GROUPED.format("")
RANKED = GROUPED.format(f", row_number() OVER (ORDER BY {COUNT} DESC) AS r")


def chosen(planner: Planner, sql: str) -> int | None:
    """How many groups are chosen; None where all are answered."""
    (block,) = planner.plan(sql).blocks
    return None if block.top is None else block.top.count


@pytest.mark.parametrize(
    ("sql", "count"),
    [
        (f"{PLAIN} ORDER BY n DESC LIMIT 3", 3),
        (f"SELECT * FROM ({PLAIN}) AS t ORDER BY n DESC LIMIT 3", 3),
        (f"SELECT t.product_id, t.n AS m FROM ({PLAIN}) AS t ORDER BY 2 DESC NULLS LAST LIMIT 3 OFFSET 1", 4),
        (f"SELECT product_id FROM ({PLAIN}) AS t ORDER BY t.n DESC LIMIT 2", 2),
        (f"WITH t AS ({PLAIN}) SELECT n, product_id FROM t ORDER BY n DESC, product_id LIMIT 3", 3),
        (f"SELECT * FROM (SELECT * FROM ({PLAIN}) AS t ORDER BY n DESC LIMIT 3) AS u ORDER BY product_id", 3),
        (f"SELECT * FROM ({RANKED}) AS t WHERE r <= 3", 3),
        (f"SELECT product_id FROM ({RANKED}) AS t WHERE t.r = 1", 1),
        (f"SELECT * FROM ({RANKED}) AS t WHERE r < 3 AND product_id > 4 ORDER BY r", 2),
        (f"WITH t AS ({PLAIN}), s AS (SELECT *, rank() OVER (ORDER BY n DESC) AS r FROM t) TABLE s LIMIT 9", None),
        (f"WITH s AS (SELECT *, rank() OVER (ORDER BY n DESC) r FROM ({PLAIN}) t) SELECT n FROM s WHERE r < 4", 3),
    ],
)  # fmt: skip
def test_groups_that_are_shown_alone_are_chosen(planner: Planner, sql: str, count: int | None) -> None:
    assert chosen(planner, sql) == count


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT * FROM ({PLAIN}) AS t ORDER BY n LIMIT 3",
        f"SELECT * FROM ({PLAIN}) AS t ORDER BY product_id DESC LIMIT 3",
        f"SELECT * FROM ({PLAIN}) AS t ORDER BY n * 2 DESC LIMIT 3",
        f"SELECT * FROM ({PLAIN}) AS t LIMIT 3",
        f"SELECT *, sum(n) OVER () FROM ({PLAIN}) AS t ORDER BY n DESC LIMIT 3",
        f"SELECT sum(n) FROM ({PLAIN}) AS t ORDER BY 1 DESC LIMIT 3",
        f"SELECT * FROM ({PLAIN}) AS t WHERE n < 100 ORDER BY n DESC LIMIT 3",
        f"SELECT product_id, -n AS n FROM ({PLAIN}) AS t ORDER BY n DESC LIMIT 3",
        f"SELECT product_id AS n, n AS product_id FROM ({PLAIN}) AS t ORDER BY t.product_id DESC LIMIT 3",
        f"SELECT * FROM ({PLAIN}) AS t(n, product_id) ORDER BY n DESC LIMIT 3",
        f"SELECT * FROM ({PLAIN}) AS t WHERE n > (SELECT 3) ORDER BY n DESC LIMIT 3",
        f"SELECT * FROM ({RANKED}) AS t WHERE r >= 3",
        f"SELECT * FROM ({RANKED}) AS t WHERE r <= 3 OR n > 5",
        f"SELECT * FROM ({RANKED.replace('row_number', 'dense_rank')}) AS t WHERE r <= 3",
        f"SELECT * FROM ({RANKED.replace('DESC', 'ASC')}) AS t WHERE r <= 3",
        f"SELECT * FROM ({RANKED.replace('(ORDER', '(PARTITION BY product_id % 2 ORDER')}) AS t WHERE r <= 3",
        f"SELECT *, r - 1 AS r FROM ({RANKED}) AS t ORDER BY r DESC LIMIT 3",
        f"WITH t AS ({PLAIN}) SELECT * FROM t ORDER BY (SELECT max(n) FROM t) DESC LIMIT 3",
    ],
)
def test_where_others_count_too_all_are_answered(planner: Planner, sql: str) -> None:
    assert chosen(planner, sql) is None
