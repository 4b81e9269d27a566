"""Groups of a key that WHERE compares: those for which the condition can be true, and no others."""

import pytest

from rules.mechanisms.release_plan import PublicGroups
from tests.planner.planned import Planner


@pytest.mark.parametrize(
    ("key", "table", "condition"),
    [
        ("ordered_at::date", "orders", "ordered_at::date >= '2024-06-01'"),
        ("date(ordered_at)", "orders", "date(ordered_at) BETWEEN '2024-06-01' AND '2024-06-07'"),
        ("date_trunc('month', ordered_at)", "orders", "date_trunc('month', ordered_at) > '2025-10-01'"),
        ("extract(year FROM birth_date)", "customers", "extract(year FROM birth_date) BETWEEN 1980 AND 1989"),
        ("extract(year FROM birth_date)", "customers", "1990 > extract(year FROM birth_date)"),
        ("extract(year FROM birth_date)", "customers", "extract(year FROM birth_date) IS NOT NULL"),
        ("to_char(ordered_at, 'YYYY-MM')", "orders", "to_char(ordered_at, 'YYYY-MM') IN ('2024-02', '2024-03')"),
        ("upper(status::text)", "orders", "upper(status::text) <> 'PAID'"),
        ("lower(city)", "customers", "lower(city) = 'lyon'"),
        ("left(upper(city), 2)", "customers", "left(upper(city), 2) IN ('LY', 'BE')"),
        ("floor(amount / 50)", "orders", "floor(amount / 50) < 3 OR floor(amount / 50) = 5"),
        ("width_bucket(amount, 0, 500, 10)", "orders", "amount BETWEEN 100 AND 200"),
        ("width_bucket(amount, 500, 0, 10)", "orders", "amount BETWEEN 100 AND 200"),
    ],
)
def test_a_key_has_the_values_for_which_a_condition_on_it_is_true(
    planner: Planner, key: str, table: str, condition: str
) -> None:
    sql = f"SELECT {key} AS k, count(*) FROM {table} WHERE {condition} GROUP BY 1"
    listed = planner.block(sql).groups
    every = planner.block(f"SELECT {key} AS k, count(*) FROM {table} GROUP BY 1").groups

    assert isinstance(listed, PublicGroups) and isinstance(every, PublicGroups)
    assert 0 < len(listed.rows) < len(every.rows)
    found = planner.truth(f"SELECT k::text FROM ({sql}) AS t")
    assert {(text,) for (text,) in found} <= set(listed.rows)


@pytest.mark.parametrize(
    ("period", "low", "high"),
    [
        ("extract(year FROM ordered_at) = 2025", "2025-01-01", "2026-01-01"),
        ("extract(year FROM ordered_at)::int IN (2025)", "2025-01-01", "2026-01-01"),
        ("date_part('year', ordered_at) BETWEEN 2024 AND 2025", "2024-01-01", "2026-01-01"),
        ("date_trunc('quarter', ordered_at) = '2025-04-01'", "2025-04-01", "2025-07-01"),
        ("date_trunc('month', ordered_at)::date = date '2025-02-01'", "2025-02-01", "2025-03-01"),
        ("ordered_at::date BETWEEN '2025-02-01' AND '2025-02-28'", "2025-02-01", "2025-03-01"),
    ],
)
def test_a_condition_on_the_period_of_a_moment_is_one_on_the_moment(
    planner: Planner, period: str, low: str, high: str
) -> None:
    counts = "SELECT date_trunc('month', ordered_at), count(*) FROM orders WHERE {} GROUP BY 1"

    one = planner.block(counts.format(period))
    other = planner.block(counts.format(f"ordered_at >= '{low}' AND ordered_at < '{high}'"))

    assert one.canonical == other.canonical
    assert one.groups == other.groups


def test_another_condition_on_the_same_column_leaves_the_groups_as_they_are(planner: Planner) -> None:
    key = "date_trunc('month', ordered_at)"
    some = planner.block(f"SELECT {key}, count(*) FROM orders WHERE extract(dow FROM ordered_at) = 1 GROUP BY 1").groups

    assert some == planner.block(f"SELECT {key}, count(*) FROM orders GROUP BY 1").groups


@pytest.mark.parametrize(
    "key", ["ordered_at::date", "date_trunc('month', ordered_at)", "extract(year FROM ordered_at)"]
)
def test_a_condition_that_nothing_between_the_bounds_meets_leaves_no_group(planner: Planner, key: str) -> None:
    made = planner.plan(f"SELECT {key}, count(*) FROM orders WHERE ordered_at >= '2090-01-01' GROUP BY 1")

    assert not made.blocks and made.epsilon == 0
    assert ["listed group" in notice for notice in made.notices] == [True]
