"""Bounds that are chosen: paid before anybody looks, chosen once, and kept without the rungs that were not chosen."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from rules.noise.ladder import hole
from rules.noise.measures import Block, Bound, Ladder, Measure
from rules.refusal import BudgetSpent, InnerFailure
from tests.query.desk import Desk
from tests.query.plans import FOUND, block_of

LADDER = Ladder("rows of a unit", "rows", Decimal("0.2"), (1, 2, 4, 8), price=10, enough=20)
ROWS = Measure("units", 8, Decimal("0.8"), (Bound(0),))  # called so, for the plans' own aggregates
TALLY = "SELECT 0, needed, units FROM (VALUES (0, 40), (1, 30), (2, 5), (3, 1)) AS t(needed, units)"
ORDERS = f"""
SELECT city, sum(least(orders, {hole(0)}))::int8 FROM (
    SELECT c.city, c.id, count(*) AS orders FROM public.customers AS c JOIN public.orders AS o ON o.customer_id = c.id
    GROUP BY 1, 2
) AS u GROUP BY city
"""


def orders(measure: Measure = ROWS, *, tally: str = TALLY, sql: str = ORDERS) -> Block:
    """Orders by city, of each customer up to a bound that is chosen: with this tally up to 2, if without noise."""
    return replace(block_of(measure, sql=sql, canonical="orders by city"), ladders=(LADDER,), tally=tally)


async def test_the_noise_is_that_of_the_chosen_bound(desk: Desk) -> None:
    answer = await desk.ask(orders())

    assert desk.noise.asked == [(4, 1, Decimal("0.2")), (4, 2, Decimal("0.8"))]
    assert "least(orders, 2)" in desk.engine.seen[1]
    assert "rows of each unit: up to 2 counted, chosen with ε 0.2; the rules allow 8" in answer.notices


async def test_the_choice_is_paid_with_the_answer_before_the_database_is_asked(desk: Desk) -> None:
    with pytest.raises(InnerFailure):
        await desk.ask(orders(tally="SELECT 1/0"))

    assert await desk.spent() == (1, 1)
    with pytest.raises(BudgetSpent):
        await desk.ask(orders(replace(ROWS, epsilon=Decimal("499.9"))), analyst="bob")
    assert len(desk.engine.seen) == 1


@pytest.mark.parametrize("tally", ["SELECT 0, 4, 1", "SELECT 1, 0, 1", "SELECT 0, 'x', 1", "SELECT 0, 0"])
async def test_a_tally_that_is_none_is_a_failure_as_any_other(desk: Desk, tally: str) -> None:
    with pytest.raises(InnerFailure):
        await desk.ask(orders(tally=tally))

    assert await desk.spent() == (1, 1)


async def test_asked_again_nothing_is_chosen_or_paid(desk: Desk) -> None:
    first = await desk.ask(orders())
    again = await desk.ask(orders(tally="SELECT 1/0", sql="SELECT 1/0"))

    assert again.columns == first.columns
    assert await desk.spent() == (1, 1)


async def test_a_new_measure_is_answered_with_the_bound_that_was_chosen_before(desk: Desk) -> None:
    await desk.ask(orders())
    await desk.ask(orders(replace(ROWS, name="sum of id", sensitivity=8000, bounds=(Bound(0, 1000),))))

    assert desk.noise.asked[2:] == [(4, 2000, Decimal("0.8"))]
    assert await desk.spent() == (Decimal("1.8"), Decimal("1.8"))


async def test_a_bound_that_others_paid_for_is_paid_at_first_sight(desk: Desk) -> None:
    await desk.ask(orders())
    for _ in range(2):
        await desk.ask(orders(), analyst="bob")

    assert await desk.spent("bob") == (1, 1)


async def test_without_reuse_the_bound_is_chosen_anew(desk: Desk) -> None:
    await desk.ask(orders())
    await desk.ask(orders(), reuse=False)

    assert await desk.spent() == (2, 2)


async def test_only_the_chosen_rung_is_kept(desk: Desk, tmp_path: Path) -> None:
    await desk.ask(orders())

    with closing(sqlite3.connect(tmp_path / "ledger")) as connection:
        kept = connection.execute("SELECT measure, groups, numbers FROM releases ORDER BY id").fetchall()
    assert kept[0] == ("bound of rows of a unit up to 8", "[[]]", "[2]")
    assert [measure for measure, *_ in kept] == ["bound of rows of a unit up to 8", "units within 2"]


async def test_groups_found_in_the_data_have_chosen_bounds_too(desk: Desk) -> None:
    found = replace(orders(), groups=FOUND)
    answer = await desk.ask(found)

    again = await desk.ask(found)

    assert await desk.spent() == (1, 1)
    assert again.columns == answer.columns
    assert answer.columns[0]


async def test_on_the_lowest_rung_it_is_told_that_much_may_be_cut(desk: Desk) -> None:
    answer = await desk.ask(orders(tally="SELECT 0, 0, 100"))

    told = (
        "rows of each unit: up to 1 counted, chosen with ε 0.2 (the least there is: much may be cut); the rules allow 8"
    )
    assert told in answer.notices
