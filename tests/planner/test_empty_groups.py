"""Which blocks leave out empty groups, and what is counted to tell them."""

from decimal import Decimal

import pytest

from rules.mechanisms.release_plan import Block, Choice
from tests.planner.planned import Planner


def block_of(planner: Planner, sql: str) -> Block:
    (block,) = planner.plan(sql).blocks
    return block


@pytest.mark.parametrize(
    ("sql", "hides"),
    [
        ("SELECT city, count(*) FROM customers GROUP BY city", True),
        ("SELECT city, avg(extract(year FROM birth_date)) FROM customers GROUP BY city", True),
        ("SELECT count(*) FROM customers", False),  # without GROUP BY there is always a row
        ("SELECT city, count(*) FROM customers WHERE city = 'Lyon' GROUP BY city", False),  # a list of one group
        ("SELECT name, count(*) FROM customers GROUP BY name", False),  # found: what passed the threshold is shown
        ("SELECT DISTINCT city FROM customers", False),  # a declared list, without a number
        (
            "SELECT p.category, count(o.order_id) FROM products AS p LEFT JOIN order_items AS o ON o.product_id = p.id "
            "GROUP BY 1",
            False,  # PostgreSQL has a group for each public row
        ),
    ],
)
def test_listed_groups_are_left_out_unless_postgresql_has_them_anyway(
    planner: Planner, sql: str, *, hides: bool
) -> None:
    assert block_of(planner, sql).hides_empty is hides
    (shown,) = planner.plan(sql, empty_groups="show").blocks
    assert not shown.hides_empty


def test_where_nothing_adds_up_rows_are_counted_for_a_tenth_of_epsilon(planner: Planner) -> None:
    sql = "SELECT status, percentile_cont(0.5) WITHIN GROUP (ORDER BY amount) FROM orders GROUP BY status"
    block = block_of(planner, sql)
    (plain,) = planner.plan(sql, empty_groups="show").blocks

    assert block.counted is not None
    assert block.measures[block.counted].epsilon == Decimal("0.1")
    assert [measure.epsilon for measure in block.measures if isinstance(measure, Choice)] == [Decimal("0.9")]
    assert block.epsilon == plain.epsilon == Decimal(1)
    assert len(block.outputs) == len(plain.outputs) == 1
    assert plain.counted is None


@pytest.mark.parametrize("more", ["count(*)", "sum(amount)", "avg(amount)"])
def test_where_a_count_or_a_sum_is_asked_for_nothing_more_is_counted(planner: Planner, more: str) -> None:
    block = block_of(planner, f"SELECT status, max(amount), {more} FROM orders GROUP BY status")

    assert block.hides_empty and block.counted is None
