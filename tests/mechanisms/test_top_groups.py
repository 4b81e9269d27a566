"""A choice of the largest groups: its law, what it costs, and where it is better than noising all groups."""

import math
from collections import Counter
from decimal import Decimal
from fractions import Fraction
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.mechanisms.additive import LaplaceNoise
from rules.mechanisms.cost import mechanism_of_top
from rules.mechanisms.draw import OpenDPNoise, _make_top, loss, top_scale
from rules.mechanisms.exponential_choice import is_better
from rules.mechanisms.release_plan import Top, gumbel_scale

DRAWS = 20_000


def top(count: int, listed: int, epsilon: str = "1", *, is_pure: bool = True, sensitivity: int = 1) -> Top:
    return Top("units", sensitivity, Decimal(epsilon), count, listed, is_pure=is_pure)


def law(scores: list[int], count: int, scale: float) -> dict[tuple[int, ...], float]:
    """Exponential mechanisms without replacement: by hand."""
    found = {}
    for order in permutations(range(len(scores)), count):
        left, share = list(range(len(scores))), 1.0
        for place in order:
            share *= math.exp(scores[place] / scale) / sum(math.exp(scores[number] / scale) for number in left)
            left.remove(place)
        found[order] = share
    return found


@pytest.mark.extended
@pytest.mark.parametrize("scores", [[3, 0, 1, 5], [0, 0, 0], [7, 7, 2, 2, 2]])
def test_what_is_chosen_has_the_law_of_exponential_mechanisms_without_replacement(scores: list[int]) -> None:
    asked = top(2, len(scores), "0.5")
    expected = law(scores, 2, top_scale(asked, group_size=1))
    counted = Counter(OpenDPNoise().choose_top(scores, asked, group_size=1) for _ in range(DRAWS))

    statistic = sum((counted[order] - DRAWS * share) ** 2 / (DRAWS * share) for order, share in expected.items())
    degrees = len(expected) - 1
    assert statistic < degrees + 6 * math.sqrt(2 * degrees) + 18  # one run in 10^8 is above


@given(
    count=st.integers(1, 20),
    sensitivity=st.integers(1, 2**20),
    epsilon=st.decimals("0.001", "10", places=3),
    is_pure=st.booleans(),
    group_size=st.integers(1, 3),
)
def test_the_charge_covers_what_opendp_says(
    count: int, sensitivity: int, epsilon: Decimal, is_pure: bool, group_size: int
) -> None:
    asked = Top("units", sensitivity, epsilon, count, 3 * count, is_pure=is_pure)
    scale, cost = top_scale(asked, group_size=group_size), mechanism_of_top(asked)

    assert loss(_make_top(count, scale), sensitivity * group_size) <= Fraction(cost.rho)
    assert scale == pytest.approx(gumbel_scale(asked, group_size=group_size))
    if is_pure:
        assert Fraction(count * sensitivity * group_size) / Fraction(scale) <= Fraction(epsilon) == cost.epsilon
    else:
        assert cost.epsilon is None


@given(scores=st.lists(st.integers(0, 4), min_size=2, max_size=5), joined=st.data(), count=st.integers(1, 2))
def test_a_unit_that_comes_changes_no_choice_by_more_than_is_charged(
    scores: list[int], joined: st.DataObject, count: int
) -> None:
    more = [score + joined.draw(st.integers(0, 1)) for score in scores]
    asked = top(count, len(scores), "0.7")
    scale = top_scale(asked, group_size=1)
    one, other = law(scores, count, scale), law(more, count, scale)

    assert max(abs(math.log(one[numbers] / other[numbers])) for numbers in one) <= 0.7 + 1e-9


@pytest.mark.parametrize(
    ("count", "groups", "is_one_shot"), [(5, 20, True), (10, 50, True), (5, 5, False), (10, 20, False)]
)
def test_a_choice_finds_the_largest_where_it_is_taken_for_the_better_way(
    count: int, groups: int, is_one_shot: bool
) -> None:
    """Recall of 120 groups of a Zipf law with 600 units: that of the better of both ways, but for a twentieth."""
    sizes = [round(600 / place) for place in range(1, 121)]
    best, noise, times = set(range(count)), OpenDPNoise(), 60

    chosen = sum(len(best & set(noise.choose_top(sizes, top(count, 120, "0.05"), group_size=1))) for _ in range(times))
    noised = 0
    for _ in range(times):
        drawn = noise.draw(LaplaceNoise(groups, Decimal("0.1")), 120)
        order = sorted(range(120), key=lambda place: -sizes[place] - drawn[place])
        noised += len(best & set(order[:count]))

    assert is_better(count, 120, groups, "laplace") == is_one_shot
    better, other = (chosen, noised) if is_one_shot else (noised, chosen)
    assert better / (times * count) >= other / (times * count) - 0.05


@pytest.mark.extended
def test_a_group_beyond_the_margin_is_missing_in_at_most_one_of_twenty_choices() -> None:
    asked = top(3, 40, "1")
    reach = math.ceil(asked.margin(group_size=1))
    scores = [0, 0, *[reach] * 3, *[0] * 35]

    missed = sum({2, 3, 4} != set(OpenDPNoise().choose_top(scores, asked, group_size=1)) for _ in range(2000))
    assert missed / 2000 < 0.05 + 0.03
