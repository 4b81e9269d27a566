"""Groups of one unit's rows below a block: exact, in no order of rows, whatever is asked of them."""

import pytest

from rules.mechanisms.noised_outputs import Chosen, ChosenList
from tests.planner.planned import Planner
from tests.support.shop import LOYAL


@pytest.mark.parametrize(
    ("aggregate", "condition"),
    [
        ("percentile_cont(0.5) WITHIN GROUP (ORDER BY extract(hour FROM ordered_at))", "x BETWEEN 9.5 AND 16"),
        ("percentile_disc(0.9) WITHIN GROUP (ORDER BY ordered_at)", "x < '2024-09-01'"),
        ("percentile_disc(0.25) WITHIN GROUP (ORDER BY status DESC)", "x = 'sent'"),
        ("mode() WITHIN GROUP (ORDER BY status)", "x = 'open'"),
        ("mode() WITHIN GROUP (ORDER BY status) FILTER (WHERE amount > 100)", "x IS NULL"),
        ("count(DISTINCT status)", "x = 3"),
        ("max(ordered_at) - min(ordered_at)", "x > '1 year'"),
        ("bool_and(status <> 'returned')", "x"),
    ],
)
def test_an_aggregate_of_one_units_rows_is_postgresqls(planner: Planner, aggregate: str, condition: str) -> None:
    orders = f"orders WHERE customer_id NOT IN {LOYAL}"
    sql = f"SELECT count(*) FROM (SELECT {aggregate} AS x FROM {orders} GROUP BY customer_id) AS t WHERE {condition}"
    truth = planner.truth(sql)

    assert truth[0][0] > 0
    assert planner.run(sql) == truth


TOTALS = "(SELECT customer_id, count(*) AS n, sum(amount) AS total FROM orders GROUP BY customer_id) AS t"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) FROM (SELECT customer_id FROM orders GROUP BY customer_id HAVING count(*) * 2 > 100) AS t",
        f"SELECT count(*) FROM {TOTALS} WHERE n + 0 > 60",
        f"SELECT count(*) FILTER (WHERE n * 2 > 100) FROM {TOTALS}",
        f"SELECT sum(CASE WHEN n * 2 > 100 THEN 1 ELSE 0 END) FROM {TOTALS}",
        f"SELECT least(n, 60)::text AS k, count(*) FROM {TOTALS} GROUP BY 1",
        f"SELECT width_bucket(n, 0, 200, 10)::text AS k, count(*) FROM {TOTALS} GROUP BY 1",
        "SELECT count(*) FROM customers AS c WHERE (SELECT count(*) FROM orders WHERE customer_id = c.id) * 2 > 100",
    ],
)
def test_conditions_and_keys_with_bounds_read_totals_beyond_the_cap_as_they_are(planner: Planner, sql: str) -> None:
    """The cap is 40, and four customers have 150 orders each."""
    truth = planner.truth(sql)

    assert truth[0][-1] > 0
    assert sorted(planner.run(sql)) == sorted(truth)
    assert not planner.block(sql).cuts


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT n, count(*) FROM {TOTALS} GROUP BY n",
        f"SELECT n / 10, count(*) FROM {TOTALS} GROUP BY 1",
        f"SELECT max(n) FROM {TOTALS}",
        f"SELECT sum(n) FROM {TOTALS}",
        f"SELECT sum(CASE WHEN total > 50 THEN n END) FROM {TOTALS}",
        f"SELECT noisegate.typical(avg(n), 0, 100) FROM {TOTALS}",
        "SELECT k, count(*) FROM (SELECT least(count(*), 60) AS k FROM orders GROUP BY customer_id) AS t GROUP BY k",
        "SELECT count(*) FROM (SELECT count(*) * 2 AS k FROM orders GROUP BY customer_id) AS t WHERE k > 100",
    ],
)
def test_totals_of_a_unit_that_are_clamped_are_said_to_be_cut(planner: Planner, sql: str) -> None:
    (cut,) = planner.block(sql).cuts

    assert str(cut) == "40 rows of a unit (the rules' cap)"


def test_a_median_of_a_unit_lies_within_the_bounds_of_its_column(planner: Planner) -> None:
    median = "percentile_cont(0.5) WITHIN GROUP (ORDER BY amount)"
    total, _ = planner.sensitivities(f"SELECT avg(x) FROM (SELECT {median} AS x FROM orders GROUP BY customer_id) AS t")

    assert total == 500 * 2**22  # on a lattice of doubles


@pytest.mark.parametrize(
    "aggregate",
    [
        "percentile_cont(1.5) WITHIN GROUP (ORDER BY amount)",
        "percentile_cont(amount) WITHIN GROUP (ORDER BY amount)",
        "percentile_cont(0.5) WITHIN GROUP (ORDER BY ordered_at)",
        "array_agg(amount)",
    ],
)
def test_what_a_unit_has_no_single_value_for_is_refused(planner: Planner, aggregate: str) -> None:
    refusal = planner.refusal(f"SELECT count(x) FROM (SELECT {aggregate} AS x FROM orders GROUP BY customer_id) AS t")

    assert aggregate.partition("(")[0] in refusal.message


@pytest.mark.parametrize(
    ("asked", "reach"),
    [
        ("max(amount)", "0.06"),  # of 50,001 cents between the bounds thirteen have one candidate
        ("percentile_disc(0.5) WITHIN GROUP (ORDER BY ordered_at)", "11559.375"),  # seconds
        ("percentile_disc(0.5) WITHIN GROUP (ORDER BY ordered_at::date)", "0"),
        ("percentile_cont(ARRAY[0.1, 0.5]) WITHIN GROUP (ORDER BY amount)", "0.06"),
    ],
)
def test_a_quantile_knows_how_far_it_is_from_what_it_stands_for(planner: Planner, asked: str, reach: str) -> None:
    (output,) = planner.block(f"SELECT {asked} FROM orders").outputs
    assert isinstance(output, Chosen | ChosenList)
    assert float(output.reach) == pytest.approx(float(reach))
