"""A bound is chosen by how many units it cuts, and no unit moves a rung's score by more than it is made private for."""

import math
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.noise.ladder import (
    choose_bound,
    enough_for,
    filled,
    hole,
    price_of,
    rungs_to,
    score_rungs,
    settled,
    tallies,
)
from rules.noise.measures import Block, Bound, Choice, FromEnd, Ladder, Measure, PublicGroups, Quantile
from rules.noise.quantile import place_for_extreme
from rules.noise.release import MalformedRows
from tests.noise.sources import NoNoise

ROWS = Ladder("rows of a unit", "rows", Decimal("0.1"), rungs_to(40), price=10, enough=70)
BLOCK = Block(
    canonical="orders",
    sql=f"SELECT least(c, {hole(0)}), '{{0}}' WHERE {hole(0)} > 0",
    keys=(),
    groups=PublicGroups(((),)),
    measures=(
        Measure("rows", 40, Decimal(1), (Bound(0),)),
        Measure("sum", 40 * 500, Decimal(1), (Bound(0, 500),)),
        Measure("units", 3, Decimal(1), (Bound(0),)),
        Choice("median", 40, Decimal(1), f"SELECT {hole(0)}", 100, Quantile(Fraction(1, 2)), (Bound(0),)),
        Choice("max", 40, Decimal(1), "SELECT 1", 100, FromEnd(999, largest=True), (Bound(0),)),
    ),
    outputs=(),
    output_types=(),
    tables=("orders",),
    ladders=(ROWS,),
    tally="SELECT 0, 1, 2",
)


@given(st.integers(1, 2**60))
def test_rungs_rise_by_at_most_twice_to_the_ceiling(ceiling: int) -> None:
    rungs = rungs_to(ceiling)

    assert rungs[-1] == ceiling
    assert all(low < high <= 2 * low for low, high in pairwise(rungs))
    assert rungs[0] >= 1


@given(tally=st.lists(st.integers(0, 30), min_size=7, max_size=7), needed=st.integers(0, 6))
def test_one_unit_moves_all_scores_one_way_and_by_two_at_most(tally: list[int], needed: int) -> None:
    """Twice a change that has one direction is what exp(ε·score/2) is ε-private for."""
    more = [units + (rung == needed) for rung, units in enumerate(tally)]

    moved = {one - other for one, other in zip(score_rungs(ROWS, tally), score_rungs(ROWS, more), strict=True)}

    assert moved <= {0, 2} or moved <= {0, -2}


@given(
    tally=st.lists(st.integers(0, 40), min_size=7, max_size=7),
    joining=st.lists(st.integers(0, 6), min_size=1, max_size=5),
)
def test_no_rung_is_more_than_e_to_the_epsilon_times_as_likely_with_a_group_of_units(
    tally: list[int], joining: list[int]
) -> None:
    """The weights of the mechanism exactly, for as many units as are protected together."""
    more = [units + joining.count(rung) for rung, units in enumerate(tally)]
    shares = []
    for each in (tally, more):
        scores = score_rungs(ROWS, each)
        weights = [math.exp(float(ROWS.epsilon) * (score - max(scores)) / (2 * len(joining))) for score in scores]
        shares.append([math.log(weight / sum(weights)) for weight in weights])

    losses = [one - other for one, other in zip(*shares, strict=True)]

    assert max(map(abs, losses)) <= float(ROWS.epsilon) + 1e-9
    assert max(losses) - min(losses) <= float(ROWS.epsilon) + 1e-9  # which is what makes it ε²/8-zCDP


def test_the_best_rung_cuts_few_units_and_spares_much_noise() -> None:
    #                             rungs: 1, 2, 3, 5, 10, 20, 40
    assert choose_bound(ROWS, [900, 500, 200, 100, 3, 2, 1], NoNoise(), group_size=1) == 5
    assert choose_bound(ROWS, [900, 0, 0, 0, 0, 0, 0], NoNoise(), group_size=1) == 1
    assert choose_bound(ROWS, [0, 0, 0, 0, 0, 0, 900], NoNoise(), group_size=1) == 40


@given(st.integers(0, 6), st.integers(0, 10_000))
def test_a_rung_that_all_units_are_above_is_never_the_best(needed: int, units: int) -> None:
    """However few they are: then it is what the rules declare."""
    tally = [units * (rung == needed) for rung in range(7)]

    assert choose_bound(ROWS, tally, NoNoise(), group_size=1) >= ROWS.rungs[needed]


def test_a_ladder_asks_for_as_many_units_as_its_rungs_cost() -> None:
    assert enough_for(rungs_to(40), Decimal("0.1")) == 70


def test_the_choice_is_made_private_for_as_many_units_as_the_rules_protect_together() -> None:
    noise = NoNoise()

    choose_bound(ROWS, [0] * 7, noise, group_size=4)

    assert noise.asked == [(7, 4, Decimal("0.1"))]


def test_a_rung_is_worth_the_noise_of_all_groups_and_never_less_than_the_choice_can_tell() -> None:
    assert price_of(8, Decimal("0.5"), Decimal("0.1")) == 16
    assert price_of(1, Decimal("0.5"), Decimal("0.1")) == 10


def test_a_settled_block_is_as_if_the_bound_had_been_declared() -> None:
    block = settled(BLOCK, (3,))

    assert [measure.sensitivity for measure in block.measures] == [3, 1500, 3, 3, 3]
    assert block.sql == "SELECT least(c, 3), '{0}' WHERE 3 > 0"
    assert (block.ladders, block.tally) == ((), "")
    assert block.canonical != settled(BLOCK, (5,)).canonical
    median, largest = block.measures[3:]
    assert isinstance(median, Choice) and median.sql == "SELECT 3"
    assert isinstance(largest, Choice) and largest.target == FromEnd(place_for_extreme(100, 3, Decimal(1)), True)


def test_the_ceiling_settles_a_block_to_what_the_rules_declare() -> None:
    assert [measure.sensitivity for measure in settled(BLOCK, (40,)).measures] == [40, 20_000, 3, 40, 40]


def test_holes_are_filled_wherever_they_stand() -> None:
    assert filled(f"{hole(1)} and {hole(0)} and {hole(1)}", ("a", 7)) == "7 and a and 7"


def test_a_tally_adds_up_by_rung() -> None:
    assert tallies(BLOCK, [("0", "2", "5"), ("0", "2", "1")]) == ([0, 0, 6, 0, 0, 0, 0],)


@pytest.mark.parametrize("row", [("0", "1"), ("1", "1", "1"), ("0", "7", "1"), ("0", "x", "1"), ("-1", "0", "1")])
def test_a_tally_that_is_none_is_malformed(row: tuple[str, ...]) -> None:
    with pytest.raises(MalformedRows):
        tallies(BLOCK, [row])


def test_bounds_are_told_as_what_they_stand_for() -> None:
    cents = Ladder("sum of amount", "sum(amount)", Decimal(1), (125, 2_000_000), 1, 1, Fraction(1, 100))

    assert (cents.told(125), cents.told(2_000_000)) == ("1.25", "20,000")
