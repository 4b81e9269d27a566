"""Which blocks leave out empty groups, and what is counted to tell them."""

from decimal import Decimal

import pytest

from rules.mechanisms.release_plan import Block, Choice, Measure, PublicGroups
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


@pytest.mark.parametrize(
    "rows",
    [
        "customers WHERE birth_date > '2000-01-01'",
        "customers WHERE city <> 'Lyon' AND is_vip",
        "customers WHERE city > 'C'",  # the database may sort otherwise than the twin, so Berlin is in the list
        "customers WHERE greatest(city, 'C') = 'C'",  # as is NULL, which is below
        "customers AS c JOIN orders AS o ON o.customer_id = c.id",
        "customers WHERE id IN (SELECT customer_id FROM orders)",
        "(SELECT city FROM customers WHERE is_vip) AS c",
    ],
)
def test_distinct_values_of_some_rows_are_those_whose_people_are_counted(planner: Planner, rows: str) -> None:
    distinct, grouped = (
        block_of(planner, sql.format(rows))
        for sql in ("SELECT DISTINCT city FROM {}", "SELECT city FROM {} GROUP BY city")
    )
    (whole,) = planner.plan(f"SELECT DISTINCT city FROM {rows}", empty_groups="show").blocks

    assert distinct.counted == 0 and distinct.epsilon == 1 and not distinct.outputs
    assert (distinct.statement, distinct.measures) == (grouped.statement, grouped.measures)
    assert whole.epsilon == 0 and any("every value that is listed is shown" in notice for notice in whole.notices)


def test_a_person_is_counted_once_for_each_distinct_value(planner: Planner) -> None:
    block = block_of(planner, "SELECT DISTINCT status FROM orders WHERE amount > 5")
    (measure,) = block.measures

    assert isinstance(measure, Measure) and measure.at_most_one
    assert measure.sensitivity == 4 * measure.factor  # the statuses, not the 40 rows


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT DISTINCT city FROM customers",
        "SELECT DISTINCT city FROM customers WHERE city IS NOT NULL LIMIT 1000",
        "SELECT DISTINCT city FROM customers WHERE city LIKE '%o%'",
        "SELECT DISTINCT upper(city) FROM (SELECT city FROM customers) AS c",
    ],
)
def test_distinct_values_of_a_whole_table_are_its_list(planner: Planner, sql: str) -> None:
    block = block_of(planner, sql)

    assert block.epsilon == 0 and not block.hides_empty
    assert any("every value that is listed is shown" in notice for notice in block.notices)


def test_null_is_no_value_of_a_list(planner: Planner) -> None:
    """It is a group only where it was counted, or all groups are asked for."""
    sql = "SELECT DISTINCT city FROM customers"
    (shown,), (whole,) = planner.plan(sql).blocks, planner.plan(sql, empty_groups="show").blocks

    assert isinstance(shown.groups, PublicGroups) and isinstance(whole.groups, PublicGroups)
    assert (None,) in whole.groups.rows
    assert shown.groups.rows == tuple(row for row in whole.groups.rows if row != (None,))
