"""Which measures pay once: those of which a row is in at most one, and that is proved."""

from decimal import Decimal

import pytest

from rules.mechanisms.release_plan import Measure
from tests.planner.planned import Planner

ONCE = """
count(*) FILTER (WHERE status = 'paid') | count(*) FILTER (WHERE status = 'open')
sum(CASE WHEN status = 'paid' THEN amount ELSE 0 END) | sum(CASE WHEN status = 'open' THEN amount ELSE 0 END)
sum(amount) FILTER (WHERE status = 'paid') | sum(amount) FILTER (WHERE status IN ('open', 'sent'))
count(CASE WHEN status = 'paid' THEN 1 END) | count(CASE WHEN status = 'open' THEN 1 END)
sum(CASE WHEN amount < 100 THEN 1 ELSE 0 END) | sum(CASE WHEN amount >= 100 THEN 1 ELSE 0 END)
count(*) FILTER (WHERE amount BETWEEN 0 AND 9) | count(*) FILTER (WHERE amount BETWEEN 10 AND 19)
count(*) FILTER (WHERE extract(month FROM ordered_at) = 1) | count(*) FILTER (WHERE extract(month FROM ordered_at) = 2)
count(*) FILTER (WHERE note IS NULL) | count(*) FILTER (WHERE note IS NOT NULL)
count(*) FILTER (WHERE amount > 5 AND status = 'paid') | count(*) FILTER (WHERE status = 'open' AND amount < 9)
count(*) FILTER (WHERE NOT amount > 5) | count(*) FILTER (WHERE amount > 5)
"""
EACH = """
count(*) FILTER (WHERE status = 'paid') | count(*) FILTER (WHERE status <> 'open')
count(*) FILTER (WHERE status = 'paid') | count(*) FILTER (WHERE amount > 5)
count(*) FILTER (WHERE amount <= 10) | count(*) FILTER (WHERE amount >= 10)
count(*) FILTER (WHERE status = 'paid') | sum(amount) FILTER (WHERE status = 'open')
avg(CASE WHEN status = 'paid' THEN amount ELSE 0 END) | avg(CASE WHEN status = 'open' THEN amount ELSE 0 END)
count(CASE WHEN status = 'paid' THEN 1 ELSE 0 END) | count(CASE WHEN status = 'open' THEN 1 ELSE 0 END)
sum(CASE WHEN status = 'paid' THEN amount ELSE 1 END) | sum(CASE WHEN status = 'open' THEN amount ELSE 1 END)
count(DISTINCT customer_id) FILTER (WHERE status = 'paid') | count(DISTINCT customer_id) FILTER (WHERE status = 'open')
count(*) FILTER (WHERE status = 'paid' OR amount < 5) | count(*) FILTER (WHERE status = 'open')
count(*) FILTER (WHERE note = 'a') | count(*) FILTER (WHERE lower(note) = 'b')
"""


def vectors(planner: Planner, pair: str) -> list[int | None]:
    measures = planner.block(f"SELECT {pair.replace(' | ', ', ')} FROM orders").measures
    return [measure.vector for measure in measures if isinstance(measure, Measure)]


@pytest.mark.parametrize("pair", ONCE.strip().splitlines())
def test_conditions_that_exclude_each_other_pay_once(planner: Planner, pair: str) -> None:
    one, other = vectors(planner, pair)

    assert one is not None and one == other


@pytest.mark.parametrize("pair", EACH.strip().splitlines())
def test_what_could_both_be_pays_twice(planner: Planner, pair: str) -> None:
    found = [vector for vector in vectors(planner, pair) if vector is not None]

    assert len(found) == len(set(found))


def test_a_pivot_has_the_noise_of_one_count_and_costs_as_much(planner: Planner) -> None:
    months = [f"count(*) FILTER (WHERE extract(month FROM ordered_at) = {month})" for month in range(1, 13)]

    plan = planner.plan(f"SELECT {', '.join(months)} FROM orders")

    assert plan.epsilon == Decimal(1)
    assert {measure.epsilon for measure in plan.blocks[0].measures} == {Decimal(1)}


def test_a_total_beside_a_pivot_shares_with_all_of_it(planner: Planner) -> None:
    parts = [f"avg(amount) FILTER (WHERE status = '{each}')" for each in ("open", "paid", "sent", "returned")]

    block = planner.block(f"SELECT count(*), {', '.join(parts)} FROM orders")

    assert len(block.measures) == 9
    total, *others = (measure.epsilon for measure in block.measures)
    assert (total, set(others)) == (Decimal("0.2"), {Decimal("0.4")})  # one output is made of it, and four of a vector
    assert block.epsilon == 1
