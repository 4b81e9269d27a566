"""A ladder is climbed until a step is not worth it, and no unit moves a choice further than it is private for."""

import math
from collections import Counter
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.kernel.bounded import PARTS
from rules.mechanisms.draw import OpenDPNoise
from rules.mechanisms.release_plan import Block, Ladder, Measure, PublicGroups
from rules.release.bound_ladder import (
    MOST_STEPS,
    MalformedRows,
    Noisy,
    choose_bound,
    draw_climb,
    rungs_to,
    tallies,
    thresholds_of,
)
from tests.mechanisms.climbs import law_of_climb
from tests.mechanisms.sent import sent
from tests.mechanisms.sources import NoNoise
from tests.support.written import NOTHING

RUNGS = rungs_to(40)  # 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 40
ROWS = Ladder("rows of a unit", "rows", Decimal("0.1"), RUNGS, (10 * PARTS,) * 10)
BLOCK = Block(
    canonical="orders",
    statement=NOTHING,
    keys=(),
    groups=PublicGroups(((),)),
    measures=(Measure("rows", 40, Decimal(1), (0,)),),
    outputs=(),
    output_types=(),
    tables=("orders",),
    ladders=(ROWS,),
)
totals = st.lists(st.integers(0, 100), max_size=60)


def heights_of(rungs: tuple[int, ...], given: list[int]) -> list[int]:
    """By the definition."""
    return [
        sum(min(PARTS, max(0, PARTS * (min(total, high) - low) // (high - low))) for total in given)
        for low, high in pairwise(rungs)
    ]


def rows_of(rungs: tuple[int, ...], given: list[int]) -> list[tuple[int, int, int, int]]:
    """What a tally says: by rung the units that need it, and what they have of the step to it."""
    units, parts = Counter[int](), Counter[int]()
    for total in given:
        rung = min(sum(rung < total for rung in rungs), len(rungs) - 1)
        units[rung] += 1
        if rung:
            low, high = rungs[rung - 1], rungs[rung]
            parts[rung] += PARTS * (min(total, high) - low) // (high - low)
    return [(0, rung, number, parts[rung]) for rung, number in units.items()]


@given(st.integers(1, 2**60), st.integers(1, 2**40))
def test_rungs_rise_by_at_most_twice_to_the_ceiling(ceiling: int, lowest: int) -> None:
    rungs = rungs_to(ceiling, lowest)

    assert rungs[0] == min(lowest, ceiling)
    assert rungs[-1] == ceiling
    assert all(low < high for low, high in pairwise(rungs))
    assert all(high <= 2 * low for low, high in pairwise(rungs[:MOST_STEPS]))
    assert len(rungs) <= MOST_STEPS + 1


@given(totals)
def test_heights_are_made_of_units_by_rung(given: list[int]) -> None:
    assert tallies(BLOCK, sent(rows_of(RUNGS, given))) == (heights_of(RUNGS, given),)


@given(totals, st.integers(0, 10**9))
def test_one_unit_moves_the_height_of_a_step_by_one_whole_at_most(given: list[int], joining: int) -> None:
    pairs = zip(heights_of(RUNGS, [*given, joining]), heights_of(RUNGS, given), strict=True)

    assert all(0 <= one - other <= PARTS for one, other in pairs)


@given(
    heights=st.lists(st.integers(0, 40 * PARTS), min_size=3, max_size=3),
    thresholds=st.tuples(*[st.integers(0, 30 * PARTS)] * 3),
    moves=st.lists(st.tuples(*[st.integers(0, PARTS)] * 3), min_size=1, max_size=4),
    epsilon=st.sampled_from(("0.05", "0.3", "1", "3")),
    favours_height=st.booleans(),
)
def test_no_rung_is_more_than_e_to_the_epsilon_times_as_likely_with_more_units(
    heights: list[int],
    thresholds: tuple[int, int, int],
    moves: list[tuple[int, int, int]],
    epsilon: str,
    favours_height: bool,
) -> None:
    """The law of the mechanism itself, for as many units as are protected together."""
    rungs = (1, 2, 3, 4)
    ladder = Ladder("rows", "rows", Decimal(epsilon), rungs, thresholds, favours_height=favours_height)
    more = [height + sum(moved) for height, moved in zip(heights, zip(*moves, strict=True), strict=True)]
    one, other = (law_of_climb(ladder, each, group_size=len(moves)) for each in (heights, more))

    assert sum(one) == pytest.approx(1)
    for before, after in zip(one, other, strict=True):
        if max(before, after) > 1e-12:
            assert abs(math.log(before / after)) <= float(epsilon) * (1 + 1e-6) + 1e-9


def test_the_first_rung_from_which_a_step_is_not_worth_it_is_chosen() -> None:
    quiet = (0,) * 11
    many = [900 * PARTS] * 5 + [3 * PARTS] * 5
    assert choose_bound(ROWS, many, quiet) == 8
    assert choose_bound(ROWS, [0] * 10, quiet) == 1
    assert choose_bound(ROWS, [900 * PARTS] * 10, quiet) == 40
    assert choose_bound(ROWS, many, (7 * PARTS, *quiet[1:])) == 40, "the threshold is lowered by its noise"
    assert choose_bound(ROWS, many, (0, 0, 0, 891 * PARTS, *quiet[4:])) == 3, "a step by its own"


@pytest.mark.parametrize("epsilon", ["0.03", "0.3"])
def test_where_nobody_has_more_than_one_the_cap_is_hardly_ever_far_above(epsilon: str) -> None:
    """Among all up to a million: what a climb from below is for."""
    rungs, choice = rungs_to(1_000_000), Decimal(epsilon)
    thresholds = thresholds_of(rungs, 1, [Noisy(choice * 7 / 3)], choice)
    law = law_of_climb(Ladder("rows", "rows", choice, rungs, thresholds), [0] * len(thresholds))

    assert sum(share for rung, share in zip(rungs, law, strict=True) if rung <= 2) >= 0.94
    assert sum(share for rung, share in zip(rungs, law, strict=True) if rung <= 16) >= 0.99
    assert law[-1] < 0.001


@pytest.mark.parametrize("units", [45, 90, 600])
def test_where_height_is_favoured_fewer_climbs_end_where_much_is_cut(units: int) -> None:
    """Units with 40 to 60 each, among bounds up to 24,000, with 5 groups and ε 1."""
    rungs, choice, measure = rungs_to(24_000), Decimal("0.2"), Noisy(Decimal("0.8"))
    heights = heights_of(rungs, [40 + unit % 21 for unit in range(units)])
    cut, far = [], []
    for favours in (False, True):
        thresholds = thresholds_of(rungs, 5, [measure], choice, favours_height=favours)
        law = law_of_climb(Ladder("", "", choice, rungs, thresholds, favours_height=favours), heights)
        cut.append(sum(share for rung, share in zip(rungs, law, strict=True) if rung < 35))
        far.append(sum(share for rung, share in zip(rungs, law, strict=True) if rung > 8 * 64))

    assert cut[1] <= cut[0] * 2 / 3 + 1e-9
    assert far[1] <= 0.08


def test_the_noise_of_a_choice_is_one_sided_and_drawn_for_every_step() -> None:
    noise = NoNoise()

    drawn = draw_climb(ROWS, noise, group_size=4)

    assert drawn == (0,) * 11
    third = Decimal("0.0333333333334")
    assert noise.asked == [(2, 4 * PARTS, Decimal("0.1") - third), (20, 4 * PARTS, third)]
    draw_climb(replace(ROWS, favours_height=True), noise, group_size=4)
    assert noise.asked[2:] == [(2, 4 * PARTS, Decimal("0.055")), (20, 4 * PARTS, Decimal("0.045"))]
    ladder = replace(ROWS, rungs=(1, 2, 3), thresholds=(0, 0))
    assert all(number >= 0 for _ in range(200) for number in draw_climb(ladder, OpenDPNoise(), group_size=1))


def test_parts_of_a_price_of_many_digits_are_no_more_than_the_whole() -> None:
    noise, epsilon = NoNoise(), Decimal("0." + "1" * 29 + "97")
    draw_climb(replace(ROWS, epsilon=epsilon), noise, group_size=1)

    assert sum(Fraction(part) for _, _, part in noise.asked) <= Fraction(epsilon)


def test_a_step_is_worth_the_noise_of_all_groups_and_never_less_than_the_choice_can_tell() -> None:
    half, tenth = Noisy(Decimal("0.5")), Decimal("0.1")
    assert thresholds_of((1, 2, 4), 18, [half, half], tenth) == (36 * PARTS,) * 2
    assert thresholds_of((1, 2, 4), 1, [half], tenth) == (20 * PARTS,) * 2
    assert thresholds_of((1, 2, 4), 1, [half], tenth, group_size=3) == (60 * PARTS,) * 2
    first, later = thresholds_of((1, 4, 9), 100, [replace(half, by_root=True)], Decimal(1))
    assert abs(first - PARTS * 100 * 1.6 / 3) < 2
    assert abs(later - PARTS * 100 * 1.6 / 5) < 2


@pytest.mark.parametrize(
    "row",
    [("0", "1", "1"), ("1", "1", "1", "1"), ("0", "11", "1", "1"), ("0", "x", "1", "1"), ("0", "1", "1", "65")],
)
def test_a_tally_that_is_none_is_malformed(row: tuple[str, ...]) -> None:
    with pytest.raises(MalformedRows):
        tallies(BLOCK, sent([row]))


def test_bounds_are_told_as_what_they_stand_for() -> None:
    cents = Ladder("sum of amount", "sum(amount)", Decimal(1), (125, 2_000_000), (1,), Fraction(1, 100))

    assert (cents.bound_text(125), cents.bound_text(2_000_000)) == ("1.25", "20,000")
