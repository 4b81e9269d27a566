"""Conditions read columns as they are: bounds are for what is summed, and for groups."""

import pytest

from tests.planner.planned import Planner


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) FROM orders WHERE amount * 2 > 300",
        "SELECT count(*) FROM orders WHERE round(amount) = 100",
        "SELECT count(*) FILTER (WHERE amount + 1 > 301) FROM orders",
        "SELECT sum(CASE WHEN amount / 2 > 60 THEN 1 ELSE 0 END) FROM orders",
        "SELECT count(*) FROM customers WHERE id IN (SELECT customer_id FROM orders WHERE amount * 2 > 600)",
        "SELECT count(*) FROM customers WHERE extract(year FROM birth_date) = 1970",
        "SELECT count(*) FROM customers WHERE birth_date + 1 > '1990-01-01'",
    ],
)
def test_a_condition_computes_with_values_beyond_the_bounds(planner: Planner, sql: str) -> None:
    rules = planner.rules.replace("rows_per_unit: 40", "rows_per_unit: 1000")
    rules = rules.replace("amount: {lower: 0, upper: 500}", "amount: {lower: 0, upper: 100}")
    narrow = Planner(
        planner.dsn, rules.replace("{lower: 1920-01-01, upper: 2012-12-31}", "{lower: 1960-01-01, upper: 1969-12-31}")
    )
    truth = planner.truth(sql)

    assert truth[0][0] > 0
    assert narrow.run(sql) == truth


@pytest.mark.parametrize("of", ["'1 minute' * id", "'1 day' * id", "'-1 hour' * (id * 24)", "'1 second' * amount"])
def test_a_condition_moves_moments_by_numbers_without_bounds(planner: Planner, of: str) -> None:
    sql = f"SELECT count(*) FROM orders WHERE ordered_at + interval {of} > '2025-01-01'"
    uncut = Planner(planner.dsn, planner.rules.replace("rows_per_unit: 40", "rows_per_unit: 1000"))
    truth = planner.truth(sql)

    assert truth[0][0] > 0
    assert uncut.run(sql) == truth
