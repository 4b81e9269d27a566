"""Means of releases: as precise as their ε² together, whole, and with the noise that is said of them."""

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.noise.additive import GaussianNoise, LaplaceNoise, Reading, combined, noise_of, noise_paid
from rules.noise.cost import mechanism_of
from rules.noise.measures import Block, Count, Measure, NoiseKind, PublicGroups
from tests.noise.sources import SeededNoise

epsilons = st.decimals("0.01", "2", places=3)
kinds = st.sampled_from((LaplaceNoise, GaussianNoise))
numbers = st.lists(st.integers(-(2**62), 2**62), min_size=3, max_size=3)
noises = st.builds(lambda kind, epsilon: kind(4, epsilon), kinds, epsilons)
readings = st.builds(Reading, numbers, noises)


@given(given=st.lists(readings, min_size=1, max_size=6))
def test_a_mean_is_the_nearest_whole_number_to_that_by_precision(given: list[Reading]) -> None:
    means, _ = combined(given)

    variances = [32 if isinstance(each.noise, LaplaceNoise) else 4 for each in given]
    weights = [Fraction(each.noise.epsilon) ** 2 / over for each, over in zip(given, variances, strict=True)]
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


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize("asked", [("0.1",), ("0.1", "0.1"), ("0.1", "0.3"), ("0.5", "0.5", "0.5", "0.1"), ("3", "3")])
def test_margins_of_means_hold_in_95_of_100_cases(asked: tuple[str, ...], kind: NoiseKind) -> None:
    given, source = [], SeededNoise(5)
    for epsilon in asked:
        noise = noise_of(Measure("rows", 1, Decimal(epsilon), noise=kind), group_size=1)
        given.append(Reading(noise.draw(source, 200_000), noise))

    means, law = combined(given)
    margin = law.margin(Decimal("0.95"))

    assert sum(abs(each) <= margin for each in means) / len(means) >= 0.949
    assert margin < 2 or sum(abs(each) < margin for each in means) / len(means) <= 0.953


@pytest.mark.parametrize("group_size", [1, 3])
def test_gaussian_noise_of_a_count_of_units_grows_with_the_root_of_their_groups(group_size: int) -> None:
    units = Measure("units", 40, Decimal("0.1"), noise="gaussian", at_most_one=True)

    noise = noise_of(units, group_size=group_size)

    assert noise == GaussianNoise(40 * group_size**2, Decimal("0.1"))
    assert noise.law.deviation == pytest.approx(group_size * 40**0.5 / 0.1)


def test_gaussian_noise_of_anything_else_is_made_for_all_of_a_unit_in_one_group() -> None:
    rows = Measure("rows", 40, Decimal("0.1"), noise="gaussian")

    assert noise_of(rows, group_size=1).law.deviation == pytest.approx(40 / 0.1)


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_what_a_release_cost_tells_what_noise_is_in_it(kind: NoiseKind) -> None:
    measure = Measure("units", 40, Decimal("0.123456789012"), noise=kind, at_most_one=True)
    block = Block("", "", (), PublicGroups(((),)), (measure,), (Count(0),), ("bigint",), ())

    paid = mechanism_of(block, 0)

    other = replace(measure, noise="laplace", epsilon=Decimal(1))
    assert noise_paid(other, paid, group_size=2) == noise_of(measure, group_size=2)
    assert (paid.epsilon is None) == (kind == "gaussian")
