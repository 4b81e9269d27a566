"""Bounds that are chosen: paid before anybody looks, chosen once, and kept without the rungs that were not chosen."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from rules.kernel.bounded import RowLadder
from rules.mechanisms.release_plan import Block, Groups, Ladder, Measure
from rules.refusal import BudgetSpent, InnerFailure
from tests.execute.desk import Desk
from tests.execute.plans import CITIES, FAULTY, FOUND, UNITS, block_of
from tests.support.written import ROWS_PER_UNIT, tally_of

LADDER = Ladder("rows of a unit", "rows", Decimal("0.2"), (1, 2, 4, 8), thresholds=(640,) * 3)
ROWS = Measure("units", 8, Decimal("0.8"), (0,))  # called so, for the plans' own aggregates
TALLY = "SELECT 0, * FROM (VALUES (0, 40, 0), (1, 30, 960), (2, 5, 99), (3, 1, 9)) AS t(needed, units, parts)"
ORDERS = f"""
SELECT city, sum(least(orders, {ROWS_PER_UNIT}))::int8 FROM (
    SELECT c.city, c.id, count(*) AS orders FROM public.customers AS c JOIN public.orders AS o ON o.customer_id = c.id
    GROUP BY 1, 2
) AS u GROUP BY city
"""


def orders(measure: Measure = ROWS, *, tally: str = TALLY, sql: str = ORDERS, groups: Groups = CITIES) -> Block:
    """Orders by city, of each customer up to a bound that is chosen: with this tally up to 2, if without noise."""
    block = block_of(measure, groups=groups, sql=sql, canonical="orders by city", rows_per_unit=8)
    return replace(block, ladders=(LADDER,), tally=tally_of(tally, RowLadder(LADDER.rungs), rows_per_unit=8))


async def test_the_noise_is_that_of_the_chosen_bound(desk: Desk) -> None:
    answer = await desk.ask(orders())

    third = Decimal("0.0666666666667")
    assert desk.noise.asked == [(2, 64, Decimal("0.2") - third), (6, 64, third), (4, 2, Decimal("0.8"))]
    assert "least(orders, 2)" in desk.engine.seen[1]
    words = "rows of each unit: up to 2 counted, chosen with ε 0.2"
    assert any(notice.startswith(words) for notice in answer.notices)


async def test_the_choice_is_paid_with_the_answer_before_the_database_is_asked(desk: Desk) -> None:
    with pytest.raises(InnerFailure):
        await desk.ask(orders(tally=FAULTY))

    assert await desk.spent() == (1, 1)
    with pytest.raises(BudgetSpent):
        await desk.ask(orders(replace(ROWS, epsilon=Decimal("499.9"))), analyst="bob")
    assert len(desk.engine.seen) == 1


@pytest.mark.parametrize("tally", ["SELECT 0, 4, 1, 0", "SELECT 1, 0, 1, 0", "SELECT 0, 'x', 1, 0", "SELECT 0, 0, 1"])
async def test_a_tally_that_is_none_is_a_failure_as_any_other(desk: Desk, tally: str) -> None:
    with pytest.raises(InnerFailure):
        await desk.ask(orders(tally=tally))

    assert await desk.spent() == (1, 1)


async def test_asked_again_nothing_is_chosen_or_paid(desk: Desk) -> None:
    first = await desk.ask(orders())
    again = await desk.ask(orders(tally=FAULTY, sql=FAULTY))

    assert again.columns == first.columns
    assert await desk.spent() == (1, 1)


async def test_a_new_measure_is_answered_with_the_bound_that_was_chosen_before(desk: Desk) -> None:
    await desk.ask(orders())
    await desk.ask(orders(replace(ROWS, name="sum of id", sensitivity=8000, chosen_by=(0,))))

    assert desk.noise.asked[3:] == [(4, 2000, Decimal("0.8"))]
    assert await desk.spent() == (Decimal("1.8"), Decimal("1.8"))


async def test_a_bound_that_others_paid_for_is_paid_at_first_sight(desk: Desk) -> None:
    await desk.ask(orders())
    for _ in range(2):
        await desk.ask(orders(), analyst="bob")

    assert await desk.spent("bob") == (1, 1)


async def test_a_bound_of_others_that_is_far_dearer_is_not_paid(desk: Desk) -> None:
    await desk.ask(replace(orders(), ladders=(replace(LADDER, epsilon=Decimal("0.5")),)))
    await desk.ask(orders(), analyst="bob")

    assert (await desk.spent("bob"))[0] == 1


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
    found = orders(groups=FOUND)
    answer = await desk.ask(found)

    again = await desk.ask(found)

    assert await desk.spent() == (1, 1)
    assert again.columns == answer.columns
    assert answer.columns[0]


BOTH = f"""
SELECT city, count(DISTINCT id)::int8, sum(least(orders, {ROWS_PER_UNIT}))::int8 FROM (
    SELECT c.city, c.id, count(*) AS orders FROM public.customers AS c JOIN public.orders AS o ON o.customer_id = c.id
    GROUP BY 1, 2
) AS u GROUP BY city
"""


def found_orders(ladder: Ladder) -> Block:
    """Orders of the cities that are found by their customers, of each customer up to a bound that is chosen then."""
    units, rows = Measure("units", 1, Decimal("0.4")), replace(ROWS, name="sum of id", epsilon=Decimal("0.4"))
    block = block_of(units, rows, groups=FOUND, sql=BOTH, canonical="found orders", rows_per_unit=8)
    return replace(block, ladders=(ladder,), tally=tally_of(TALLY, RowLadder(ladder.rungs), rows_per_unit=8))


@pytest.mark.parametrize(("most", "bound"), [(64, 8), (1, 1)])
async def test_a_bound_for_groups_that_are_found_is_chosen_for_as_many_as_were_found(
    desk: Desk, most: int, bound: int
) -> None:
    """A step is worth more noise where few groups have it. The list comes first, and is not drawn for again."""
    ladder = replace(LADDER, by_groups=((most, (0,) * 3), (1000, (10**9,) * 3)))
    block = found_orders(ladder)

    answer = await desk.ask(block)

    assert len(answer.columns[0]) > 1
    assert [len(draws) for draws in (answer.columns[0], answer.columns[1])] == [len(answer.columns[2])] * 2
    assert any(f"up to {bound} counted" in notice for notice in answer.notices)
    first, *_, last = desk.engine.seen
    assert (f"least(orders, {ladder.rungs[-1]})" in first, f"least(orders, {bound})" in last) == (True, True)
    drawn = [sensitivity for _, sensitivity, _ in desk.noise.asked]
    assert sorted(drawn) == sorted((64, 64, 1, 1000 * bound))
    assert (await desk.ask(block)).columns == answer.columns
    assert await desk.spent() == (1, 1)


async def test_groups_and_a_bound_for_them_are_chosen_in_one_block_of_several(desk: Desk) -> None:
    """Such a block has a list of groups that no earlier release has told, when what the others tell is looked for."""
    blocks = found_orders(replace(LADDER, by_groups=((64, (0,) * 3),))), block_of(UNITS)

    answer = await desk.ask(*blocks)

    assert (await desk.ask(*blocks)).columns == answer.columns
    assert await desk.spent() == (2, 2)


async def test_what_a_bound_cuts_is_in_no_margin_and_on_the_lowest_rungs_it_may_be_most(desk: Desk) -> None:
    answer = await desk.ask(orders(tally="SELECT 0, 0, 100, 0"))

    assert (
        "rows of each unit: up to 1 counted, chosen with ε 0.2 (a higher one could not be told from noise: SET "
        "noisegate.rows_per_unit = 40); the rules allow 8; margins do not include what is beyond"
    ) in answer.notices


async def test_a_bound_is_kept_for_longer_than_an_answer_and_chosen_again_for_much_more_epsilon(desk: Desk) -> None:
    """The noise of the measures is that of the bound, whichever was chosen, so a bound may be of another day."""
    await desk.ask(orders())
    desk.now += timedelta(days=2)
    again = await desk.ask(orders(tally=FAULTY))

    assert await desk.spent() == (Decimal("1.8"), Decimal("1.8"))
    assert not any("reused the answer" in notice for notice in again.notices), "but the bound"
    desk.now += timedelta(days=31)
    await desk.ask(orders())
    assert await desk.spent() == (Decimal("2.8"), Decimal("2.8"))


async def test_a_bound_serves_questions_of_up_to_four_times_its_epsilon(desk: Desk) -> None:
    def asked(epsilon: str) -> Block:
        block = orders(replace(ROWS, epsilon=Decimal(epsilon) * 4))
        return replace(block, ladders=(replace(LADDER, epsilon=Decimal(epsilon)),))

    await desk.ask(asked("0.2"))
    again = await desk.ask(asked("0.8"))
    assert await desk.spent() == (Decimal("4.2"), Decimal("4.2"))
    assert any("chosen with ε 0.2 (" in notice for notice in again.notices), "as it was paid"
    await desk.ask(asked("0.81"))
    assert await desk.spent() == (Decimal("8.25"), Decimal("8.25"))
