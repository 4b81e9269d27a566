"""Means of releases: as precise as their ε² together, whole, and with the noise that is said of them."""

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.noise.additive import LaplaceNoise, Reading, combined, noise_of
from rules.noise.measures import Measure
from rules.noise.mechanism import OpenDPNoise

epsilons = st.decimals("0.01", "2", places=3)
numbers = st.lists(st.integers(-(2**62), 2**62), min_size=3, max_size=3)
readings = st.builds(Reading, numbers, st.builds(LaplaceNoise, st.just(4), epsilons))


@given(given=st.lists(readings, min_size=1, max_size=6))
def test_a_mean_is_the_nearest_whole_number_to_that_by_precision(given: list[Reading]) -> None:
    means, _ = combined(given)

    weights = [Fraction(each.noise.epsilon) ** 2 for each in given]
    for group, mean in enumerate(means):
        exact = sum(each.numbers[group] * weight for each, weight in zip(given, weights, strict=True)) / sum(weights)
        assert abs(mean - exact) <= Fraction(1, 2)
        assert mean == round(exact)


@given(given=st.lists(readings, min_size=1, max_size=6))
def test_a_mean_does_not_depend_on_the_order_of_releases(given: list[Reading]) -> None:
    assert combined(given)[0] == combined(given[::-1])[0]


def test_two_releases_are_as_good_as_one_with_the_root_of_their_squares() -> None:
    both = [Reading([0], LaplaceNoise(2, Decimal(each))) for each in ("0.3", "0.4")]

    assert combined(both)[1].deviation == pytest.approx(LaplaceNoise(2, Decimal("0.5")).law.deviation)


def test_one_release_is_shown_as_it_is() -> None:
    alone = Reading([5, -7], LaplaceNoise(3, Decimal("0.1")))

    assert combined([alone]) == ((5, -7), alone.noise.law)


@pytest.mark.parametrize("asked", [("0.1", "0.1"), ("0.1", "0.3"), ("0.5", "0.5", "0.5", "0.1"), ("3", "3")])
def test_margins_of_means_hold_in_95_of_100_cases(asked: tuple[str, ...]) -> None:
    given = []
    for epsilon in asked:
        noise = noise_of(Measure("rows", 1, Decimal(epsilon)), group_size=1)
        given.append(Reading(noise.draw(OpenDPNoise(), 20_000), noise))

    means, law = combined(given)
    margin = law.margin(Decimal("0.95"))

    assert sum(abs(each) <= margin for each in means) / len(means) >= 0.945
    assert margin < 2 or sum(abs(each) < margin for each in means) / len(means) <= 0.955
