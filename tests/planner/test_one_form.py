"""One meaning has one form: the condition of a CASE, a NULLIF or a cast is that of a FILTER, whoever wrote it."""

import pytest

from rules.mechanisms.noised_outputs import Average
from rules.mechanisms.release_plan import Block, Measure
from tests.planner.planned import Planner

PAIRS = """
count(DISTINCT CASE WHEN status = 'paid' THEN customer_id END) | count(DISTINCT customer_id) FILTER (WHERE status = 'paid')
count(DISTINCT (CASE WHEN (status = 'paid') THEN customer_id ELSE NULL END)) | count(DISTINCT customer_id) FILTER (WHERE status = 'paid')
count(DISTINCT CASE status WHEN 'paid' THEN customer_id END) | count(DISTINCT customer_id) FILTER (WHERE status = 'paid')
count(DISTINCT CASE WHEN status = 'paid' THEN customer_id WHEN status = 'open' THEN customer_id END) | count(DISTINCT customer_id) FILTER (WHERE status IN ('open', 'paid'))
count(DISTINCT CASE WHEN status <> 'paid' THEN NULL ELSE customer_id END) | count(DISTINCT customer_id) FILTER (WHERE status = 'paid')
count(DISTINCT nullif(customer_id, 7)) | count(DISTINCT customer_id) FILTER (WHERE customer_id <> 7)
count(DISTINCT nullif(note, '')) | count(DISTINCT note) FILTER (WHERE note <> '')
count(DISTINCT CASE WHEN status = 'paid' THEN amount END) | count(DISTINCT amount) FILTER (WHERE status = 'paid')
count(DISTINCT CASE WHEN status = 'paid' THEN id END) FILTER (WHERE amount > 5) | count(DISTINCT id) FILTER (WHERE amount > 5 AND status = 'paid')
count(CASE WHEN status = 'paid' THEN 1 END) | count(*) FILTER (WHERE status = 'paid')
count(CASE WHEN status = 'paid' THEN note END) | count(note) FILTER (WHERE status = 'paid')
count(CASE WHEN status = 'paid' THEN amount ELSE NULL END) | count(amount) FILTER (WHERE status = 'paid')
count(nullif(status = 'paid', false)) | count(*) FILTER (WHERE status = 'paid')
sum(CASE WHEN status = 'paid' THEN 1 ELSE 0 END) | count(*) FILTER (WHERE status = 'paid')
sum(CASE WHEN status = 'paid' THEN 1 END) | count(*) FILTER (WHERE status = 'paid')
sum(CASE status WHEN 'paid' THEN 1 ELSE 0 END) | count(*) FILTER (WHERE status = 'paid')
sum(CASE WHEN status = 'paid' THEN 0 ELSE 1 END) | count(*) FILTER (WHERE status <> 'paid')
sum(CASE WHEN status = 'paid' THEN 1 WHEN status = 'open' THEN 1 ELSE 0 END) | count(*) FILTER (WHERE status IN ('open', 'paid'))
sum(CASE WHEN status = 'paid' THEN 1 WHEN NOT (status = 'paid') THEN 0 ELSE NULL END) | count(*) FILTER (WHERE status = 'paid')
sum((status = 'paid')::int) | count(*) FILTER (WHERE status = 'paid')
sum(cast(status = 'paid' AS integer)::bigint)::int | count(*) FILTER (WHERE status = 'paid')::int
sum(CASE WHEN status = 'paid' THEN 1 ELSE 0.0 END)::int | count(*) FILTER (WHERE status = 'paid')::int
sum(CASE WHEN note LIKE 'call%' THEN 1 ELSE 0 END) | count(*) FILTER (WHERE note LIKE 'call%')
sum(CASE WHEN status = 'paid' THEN amount ELSE 0 END) | sum(amount) FILTER (WHERE status = 'paid')
sum(CASE WHEN status = 'paid' THEN amount END) | sum(amount) FILTER (WHERE status = 'paid')
sum(coalesce(CASE WHEN status = 'paid' THEN amount END, 0)) | sum(amount) FILTER (WHERE status = 'paid')
sum(coalesce(amount, 0)) | sum(amount)
avg((status = 'paid')::int) | avg(CASE WHEN status = 'paid' THEN 1 ELSE 0 END)
avg(CASE WHEN status = 'paid' THEN 1.0 ELSE 0.0 END) | avg((status = 'paid')::int)
avg(CASE WHEN status = 'paid' THEN 1 WHEN NOT status = 'paid' THEN 0 END) | avg((status = 'paid')::int)
avg(CASE WHEN status <> 'paid' THEN 0 ELSE 1 END) | avg((status = 'paid')::int)
avg((status = 'paid')::int::numeric) | avg((status = 'paid')::int)
avg(CASE WHEN status = 'paid' THEN amount END) | avg(amount) FILTER (WHERE status = 'paid')
stddev(CASE WHEN status = 'paid' THEN amount END) | stddev(amount) FILTER (WHERE status = 'paid')
max(CASE WHEN status = 'paid' THEN amount END) | max(amount) FILTER (WHERE status = 'paid')
percentile_disc(0.5) WITHIN GROUP (ORDER BY CASE WHEN status = 'paid' THEN amount END) | percentile_disc(0.5) WITHIN GROUP (ORDER BY amount) FILTER (WHERE status = 'paid')
"""  # noqa: E501 - a pair a line
SEVERAL = """
count(DISTINCT CASE WHEN status = 'paid' THEN customer_id ELSE 0 END) | count(DISTINCT customer_id) FILTER (WHERE status = 'paid')
avg(CASE WHEN status = 'paid' THEN amount ELSE 0 END) | avg(amount) FILTER (WHERE status = 'paid')
count(coalesce(note, '')) | count(note)
avg(coalesce(nullif(amount, 0), 0)) | avg(amount)
avg(nullif(note LIKE 'call%', true)::int) | avg((note LIKE 'call%')::int)
"""  # noqa: E501


def block(planner: Planner, aggregate: str) -> Block:
    return planner.block(f"SELECT {aggregate} FROM orders")


@pytest.mark.parametrize("pair", PAIRS.strip().splitlines())
def test_both_spellings_have_one_plan(planner: Planner, pair: str) -> None:
    one, other = (block(planner, aggregate) for aggregate in pair.split(" | "))

    assert (one.canonical, one.measures, one.statement) == (other.canonical, other.measures, other.statement)


@pytest.mark.parametrize("pair", SEVERAL.strip().splitlines())
def test_what_means_something_else_is_another_question(planner: Planner, pair: str) -> None:
    one, other = (block(planner, aggregate) for aggregate in pair.split(" | "))

    assert one.statement != other.statement


def test_customers_of_a_case_are_counted_as_customers(planner: Planner) -> None:
    (measure,) = block(planner, "count(DISTINCT CASE WHEN status = 'paid' THEN customer_id END)").measures

    assert isinstance(measure, Measure) and measure.sensitivity == measure.factor == 1


def test_a_cast_that_rounds_to_tens_tells_no_number_of_rows(planner: Planner) -> None:
    if planner.catalog.version < 150000:
        pytest.skip("numeric of a negative scale is new in PostgreSQL 15")
    written = "sum((CASE WHEN status = 'paid' THEN 7 ELSE 0 END)::numeric({}))"

    assert block(planner, written.format("3,-1")).statement != block(planner, written.format("3,1")).statement


def test_an_interval_that_a_case_chooses_has_its_own_length_as_bound(planner: Planner) -> None:
    (output,) = block(planner, "avg(CASE WHEN status = 'paid' THEN interval '36 hours' END)").outputs

    assert isinstance(output, Average) and output.low == output.high == 36 * 3600
