"""Means of releases: as precise as their ε² together, whole, and with the noise that is said of them."""

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from rules.mechanisms.additive import GaussianNoise, LaplaceNoise, noise_of
from rules.mechanisms.release_plan import Measure
from rules.mechanisms.weighted_means import HalvedNoise, SummedCells, mean, of_cells
from rules.policy.model import NoiseKind
from tests.mechanisms.sources import SeededNoise

epsilons = st.decimals("0.01", "2", places=3)
kinds = st.sampled_from((LaplaceNoise, GaussianNoise))
numbers = st.lists(st.integers(-(2**62), 2**62), min_size=3, max_size=3)
noises = st.builds(lambda kind, epsilon: kind(4, epsilon), kinds, epsilons)
readings = st.builds(of_cells, numbers, noises)


@given(given=st.lists(readings, min_size=1, max_size=6))
def test_a_mean_is_the_nearest_whole_number_to_that_by_precision(given: list[SummedCells]) -> None:
    means, _ = mean(given)

    laws = [noise for measure in given if isinstance(noise := measure.noise, LaplaceNoise | GaussianNoise)]
    weights = [Fraction(noise.epsilon) ** 2 / (32 if isinstance(noise, LaplaceNoise) else 4) for noise in laws]
    for group, shown in enumerate(means):
        exact = sum(
            (measure.numbers[group] or 0) * weight for measure, weight in zip(given, weights, strict=True)
        ) / sum(weights)
        assert abs(shown - exact) <= Fraction(1, 2)
        assert shown == round(exact)


@given(given=st.lists(readings, min_size=1, max_size=6))
def test_a_mean_does_not_depend_on_the_order_of_releases(given: list[SummedCells]) -> None:
    assert mean(given)[0] == mean(given[::-1])[0]


def test_two_releases_are_as_good_as_one_with_the_root_of_their_squares() -> None:
    both = [of_cells([0], LaplaceNoise(2, Decimal(each))) for each in ("0.3", "0.4")]

    assert mean(both)[1][0].deviation == pytest.approx(LaplaceNoise(2, Decimal("0.5")).law.deviation)


def test_one_release_is_shown_as_it_is() -> None:
    alone = of_cells([5, -7], LaplaceNoise(3, Decimal("0.1")))

    assert mean([alone]) == ((5, -7), (alone.noise.law,) * 2)


@pytest.mark.extended
@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize("asked", [("0.1",), ("0.1", "0.1"), ("0.1", "0.3"), ("0.5", "0.5", "0.5", "0.1"), ("3", "3")])
def test_margins_of_means_hold_in_95_of_100_cases(asked: tuple[str, ...], kind: NoiseKind) -> None:
    given, source = [], SeededNoise(5)
    for epsilon in asked:
        noise = noise_of(Measure("rows", 1, Decimal(epsilon), noise=kind), group_size=1)
        given.append(of_cells(source.draw(noise, 200_000), noise))

    means, (law, *_) = mean(given)
    margin = law.margin(Decimal("0.95"))

    assert sum(abs(mean) <= margin for mean in means) / len(means) >= 0.949
    assert margin < 2 or sum(abs(mean) < margin for mean in means) / len(means) <= 0.953


@pytest.mark.extended
@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize(
    "asked", [((1, "1"),), ((2, "0.3"),), ((12, "1"),), ((365, "2"),), ((2, "0.5"), (7, "1"), (1, "0.2"))]
)
def test_margins_of_sums_of_cells_and_of_their_means_hold_in_95_of_100_cases(
    asked: tuple[tuple[int, str], ...], kind: NoiseKind
) -> None:
    groups, source = 20_000, SeededNoise(7)
    cells = []
    for count, epsilon in asked:
        noise = noise_of(Measure("rows", 2, Decimal(epsilon), noise=kind), group_size=1)
        drawn = source.draw(noise, groups * count)
        numbers = [sum(drawn[place * count : (place + 1) * count]) for place in range(groups)]
        cells.append(SummedCells(numbers, (count,) * groups, noise))

    means, laws = mean(cells)
    margin = laws[0].margin(Decimal("0.95"))

    assert set(laws) == {laws[0]}
    assert sum(abs(mean) <= margin for mean in means) / groups >= 0.943
    assert sum(abs(mean) < margin for mean in means) / groups <= 0.957


@given(
    whole=st.lists(readings, max_size=2),
    cells=st.lists(st.tuples(numbers, st.lists(st.integers(0, 9), min_size=3, max_size=3), noises), max_size=3),
)
def test_each_group_has_the_mean_of_what_is_known_of_it(
    whole: list[SummedCells], cells: list[tuple[list[int], list[int], LaplaceNoise | GaussianNoise]]
) -> None:
    sums = [
        SummedCells([number if count else None for number, count in zip(told, counts, strict=True)], counts, noise)
        for told, counts, noise in cells
    ]
    assume(whole or (all(any(counts) for counts in zip(*(cells.counts for cells in sums), strict=True)) and sums))

    means, laws = mean([*whole, *sums])

    for group, shown in enumerate(means):
        known = [(measure.numbers[group] or 0, measure.noise.precision) for measure in whole]
        known += [
            (cells.numbers[group] or 0, cells.noise.precision / cells.counts[group])
            for cells in sums
            if cells.counts[group]
        ]
        weight = sum(precision for _, precision in known)
        assert shown == round(sum(number * precision for number, precision in known) / weight)
        assert laws[group].deviation == pytest.approx(float(1 / weight) ** 0.5, rel=0.2)


@given(low=st.integers(-50, 50), width=st.integers(0, 90), parts=st.lists(st.floats(0, 1), max_size=12))
def test_a_sum_follows_from_its_centred_sum_and_its_count(low: int, width: int, parts: list[float]) -> None:
    numbers, middle = [low + round(part * width) for part in parts], 2 * low + width
    halved = HalvedNoise(LaplaceNoise(1, Decimal(1)), LaplaceNoise(1, Decimal(1)), middle)

    assert halved.sum(sum(2 * number - middle for number in numbers), len(numbers)) == sum(numbers)


@given(
    noises=st.tuples(noises, noises),
    middles=st.lists(st.integers(-2000, 2000), min_size=1, max_size=5),
    weights=st.lists(st.integers(-9, 9), min_size=5, max_size=5),
)
def test_no_sum_of_numbers_that_share_a_count_varies_more_than_their_laws_say(
    noises: tuple[LaplaceNoise | GaussianNoise, LaplaceNoise | GaussianNoise], middles: list[int], weights: list[int]
) -> None:
    """The draws of the count are in all of them; bars add the laws up as if they were apart."""
    centred, count = noises
    own, shared = centred.law.deviation**2 / 4, count.law.deviation**2 / 4
    pairs = list(zip(weights, middles, strict=False))
    varies = (
        sum(weight**2 * own for weight, _ in pairs) + sum(weight * middle for weight, middle in pairs) ** 2 * shared
    )
    laws = [HalvedNoise(centred, count, middle, len(middles)).law for middle in middles]

    told = sum((weight * law.deviation) ** 2 for weight, law in zip(weights, laws, strict=False))

    assert varies <= told * (1 + 1e-9)
    alone = HalvedNoise(centred, count, middles[0])
    assert alone.precision == pytest.approx(1 / (1 / (4 * centred.precision) + middles[0] ** 2 / (4 * count.precision)))
    assert alone.law.deviation == pytest.approx(float(1 / alone.precision + 1 / 12) ** 0.5, rel=0.01)


@pytest.mark.extended
@pytest.mark.parametrize("kind", [LaplaceNoise, GaussianNoise])
@pytest.mark.parametrize(
    ("epsilons", "middle"), [(("1", "1"), 0), (("0.5", "2"), 10), (("2", "0.1"), -500), (("1", "1"), 7)]
)
def test_halves_of_draws_have_the_law_that_is_told_of_them(
    kind: type[LaplaceNoise | GaussianNoise], epsilons: tuple[str, str], middle: int
) -> None:
    draws, source = 100_000, SeededNoise(11)
    centred, count = kind(abs(middle) + 20, Decimal(epsilons[0])), kind(1, Decimal(epsilons[1]))
    halved = HalvedNoise(centred, count, middle)
    pairs = zip(source.draw(centred, draws), source.draw(count, draws), strict=True)

    # A tie goes to the even number, so that sums of both kinds are looked at.
    off = [halved.sum(2 * true - middle * 50 + one, 50 + two) - true for true, (one, two) in enumerate(pairs)]
    margin = halved.law.margin(Decimal("0.95"))

    assert sum(number**2 for number in off) / draws == pytest.approx(halved.law.deviation**2, rel=0.04)
    assert abs(sum(off) / draws) < 6 * halved.law.deviation / draws**0.5 + 0.01
    assert sum(abs(number) <= margin for number in off) / draws >= 0.945
    assert sum(abs(number) < margin for number in off) / draws <= 0.955
