"""Sums and counts by order, say: the rows of a unit are shared out, so all shares are no more than one may be."""

import pytest

from rules.kernel.measures import Sum
from tests.planner.planned import Planner
from tests.support.shop import LOYAL

ITEMS = f"(SELECT i.* FROM order_items AS i JOIN orders AS o ON o.id = i.order_id WHERE o.customer_id NOT IN {LOYAL})"
BASKETS = f"(SELECT order_id, sum(quantity) AS size, count(*) AS n FROM {ITEMS} AS i GROUP BY order_id) AS b"
MOST = 120  # rows of a unit, each of a quantity up to 100


@pytest.mark.parametrize(
    ("sql", "halves"),
    [
        (f"SELECT avg(size) FROM {BASKETS}", 2 * MOST * 100),
        (f"SELECT avg(n) FROM {BASKETS}", 2 * MOST),
        (f"SELECT avg(2 * coalesce(size, 0) + n) FROM {BASKETS}", 2 * (2 * MOST * 100 + MOST)),
        (f"SELECT avg(size::numeric / 10) FROM {BASKETS} WHERE n > 1", 2 * MOST * 10 * 10**6),  # in millionths
        (f"SELECT avg(CASE WHEN n > 1 THEN size ELSE 0 END) FROM {BASKETS}", 2 * MOST * 100),
        (f"SELECT avg(size) FROM {BASKETS} JOIN orders AS o ON o.id = b.order_id", 2 * MOST * 100),
        (f"SELECT sum(size) FROM {BASKETS}", MOST * 100),
        (f"SELECT sum(n) FROM {BASKETS}", MOST),
    ],
)
def test_a_unit_moves_all_shares_by_no_more_than_the_whole(planner: Planner, sql: str, halves: int) -> None:
    assert planner.sensitivities(sql)[0] == halves


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT sum(size) FROM {BASKETS} JOIN order_items AS i ON i.order_id = b.order_id",  # once for each item
        f"SELECT sum(n + 1) FROM {BASKETS}",
        f"SELECT sum(size * n) FROM {BASKETS}",
        "SELECT sum(most) FROM (SELECT order_id, max(quantity) AS most FROM order_items GROUP BY order_id) AS b",
    ],
)  # fmt: skip
def test_what_is_no_share_is_bounded_row_by_row(planner: Planner, sql: str) -> None:
    block = planner.block(sql)

    assert "of a unit" not in " ".join(measure.name for measure in block.measures)


@pytest.mark.parametrize("column", ["size", "n", "size - n", "CASE WHEN n > 1 THEN size END"])
def test_the_sum_of_shares_is_postgresqls_own(planner: Planner, column: str) -> None:
    sql = f"SELECT sum({column}) FROM {BASKETS}"

    assert planner.run(sql) == planner.truth(sql)


def test_the_rows_of_a_large_table_do_not_saturate_a_mean_of_shares_far_from_zero(planner: Planner) -> None:
    """Its halves lie around zero, and had the steps of a range that is narrow."""
    shares = "(SELECT customer_id, status, sum(amount) / 3 AS share FROM orders GROUP BY 1, 2) AS s"
    sql = f"SELECT avg(share) FROM {shares} WHERE share BETWEEN 1000 AND 1000.01"
    (total, *_) = planner.block(sql).statement.measures

    assert isinstance(total, Sum)
    assert total.reach * 2**27 <= 2**62


def test_a_sum_beside_its_mean_costs_nothing_more(planner: Planner) -> None:
    assert len(planner.block(f"SELECT avg(size), sum(size) FROM {BASKETS}").measures) == 2
