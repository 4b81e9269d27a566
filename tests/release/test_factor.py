"""Noise is made for the database's integers, of which a factor are one; what is said of it holds of rounded numbers."""

import math
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.mechanisms.additive import (
    GaussianNoise,
    LaplaceNoise,
    laplace_scale,
    laws_of,
    mechanism_of,
    noise_of,
    noise_paid,
)
from rules.mechanisms.distribution import Distribution
from rules.mechanisms.draw import in_whole
from rules.mechanisms.noised_outputs import CentredSum, Count, Sum, margin_of_output
from rules.mechanisms.release_plan import Bar, Block, KeyColumn, Measure, PublicGroups
from rules.mechanisms.threshold import find_threshold
from rules.mechanisms.weighted_means import mean, of_cells
from rules.policy.model import NoiseKind
from rules.release.release import Noised, columns, draw, release
from rules.release.replicates import points
from tests.mechanisms.sent import sent
from tests.mechanisms.sources import NoNoise, SeededNoise
from tests.support.written import NOTHING

factors = st.sampled_from((2, 4, 64, 2**16, 2**30))
levels = st.sampled_from(("0.5", "0.8", "0.9", "0.95", "0.99", "0.999"))

GROUPS = tuple((str(number),) for number in range(20_000))


def block_of(*measures: Measure, groups: int = len(GROUPS)) -> Block:
    return Block(
        canonical="parts",
        statement=NOTHING,
        keys=(KeyColumn("text", "k"),),
        groups=PublicGroups(GROUPS[:groups]),
        measures=measures,
        outputs=tuple(map(Count, range(len(measures)))),
        output_types=("bigint",) * len(measures),
        tables=(),
    )


@given(noised=st.integers(-(2**63), 2**63), factor=factors | st.just(1))
def test_a_noised_integer_is_rounded_to_the_nearest_whole_number_and_a_tie_up(noised: int, factor: int) -> None:
    assert in_whole(noised, factor) == math.floor(Fraction(noised, factor) + Fraction(1, 2))


@given(noised=st.integers(-(2**63), 2**63))
def test_without_a_factor_nothing_is_rounded(noised: int) -> None:
    assert in_whole(noised, 1) == noised


@pytest.mark.parametrize("factor", [0, -1, 3, 6, 2**16 + 1])
def test_a_factor_is_a_power_of_two(factor: int) -> None:
    with pytest.raises(ValueError, match="power of two"):
        Measure("rows", 1, Decimal(1), factor=factor)


def tails(scale: float, factor: int, number: int) -> tuple[float, float]:
    """P(rounded > k) and P(rounded < −k), added up over the discrete Laplace law that is drawn from."""
    alpha, most = math.exp(-1 / scale), int(60 * scale) + factor * (number + 2)
    drawn = np.arange(-most, most + 1)
    weights = (1 - alpha) / (1 + alpha) * np.exp(-np.abs(drawn) / scale)
    rounded = (drawn + factor // 2) // factor
    return float(weights[rounded > number].sum()), float(weights[rounded < -number].sum())


@given(factor=st.sampled_from((2, 4, 64)), scale=st.floats(0.3, 30), number=st.integers(0, 40))
def test_rounded_noise_has_the_tail_that_is_said_of_it(factor: int, scale: float, number: int) -> None:
    """exp(−(k+½)/s), of which a tie that goes up has the part above zero, as 1 to α."""
    above, below = tails(scale * factor, factor, number)

    assert above + below == pytest.approx(math.exp(-(number + 0.5) / scale), rel=1e-6, abs=1e-12)
    assert below == pytest.approx(above * math.exp(-1 / (scale * factor)), rel=1e-6, abs=1e-12)


@given(scale=st.floats(0.05, 1e6), level=levels)
def test_the_margin_of_a_rounded_draw_is_the_smallest_that_holds(scale: float, level: str) -> None:
    margin, beyond = Distribution.of_laplace(scale, is_rounded=True).margin(Decimal(level)), 1 - float(level)

    assert math.exp(-(margin + 0.5) / scale) <= beyond * (1 + 1e-9)
    assert margin == 0 or math.exp(-(margin - 0.5) / scale) >= beyond * (1 - 1e-9)


@given(scale=st.floats(0.05, 1e6), share=st.floats(0.5, 0.9999))
def test_quantiles_of_a_rounded_draw_are_the_smallest_that_hold(scale: float, share: float) -> None:
    (quantile,) = Distribution.of_laplace(scale, is_rounded=True).quantiles([share])

    assert math.exp(-(quantile + 0.5) / scale) / 2 <= (1 - share) * (1 + 1e-9)
    assert quantile == 0 or math.exp(-(quantile - 0.5) / scale) / 2 >= (1 - share) * (1 - 1e-9)


@pytest.mark.extended
@pytest.mark.parametrize("is_gaussian", [False, True])
@pytest.mark.parametrize("factor", [2, 64, 2**16])
@pytest.mark.parametrize("epsilon", ["0.1", "0.5", "1", "2"])
def test_margins_of_released_numbers_hold_as_often_as_they_say(factor: int, epsilon: str, is_gaussian: bool) -> None:
    """Not more often than a whole number less would allow, either."""
    kind: NoiseKind = "gaussian" if is_gaussian else "laplace"
    measure = Measure("rows", 3 * factor, Decimal(epsilon), noise=kind, factor=factor)
    numbers = noised(measure, times=5)
    law = noise_of(measure, group_size=1).law

    for level in ("0.8", "0.95", "0.99"):
        margin, most = law.margin(Decimal(level)), 3.5 * math.sqrt(0.25 / len(numbers))
        assert np.mean(np.abs(numbers) <= margin) >= float(level) - most
        assert margin == 0 or np.mean(np.abs(numbers) <= margin - 1) <= float(level) + most


def noised(measure: Measure, *, times: int = 1, exact: int = 0) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """What is released beyond the exact number, of so many draws for all groups."""
    block, source = block_of(measure), SeededNoise(3)
    rows = [(*group, str(exact * measure.factor)) for group in GROUPS]
    found = list[int]()
    for _ in range(times):
        draws = draw(block, (0,), len(GROUPS), source, group_size=1)
        found += release(block, GROUPS, sent(rows), draws).values[0]
    return np.array(found, dtype=np.int64) - exact


@pytest.mark.extended
@pytest.mark.parametrize("factor", [64, 2**16])
@pytest.mark.parametrize("scale", [0.5, 1.0, 3.0, 20.0])
def test_sums_of_rounded_draws_have_the_deviation_that_is_said(scale: float, factor: int) -> None:
    """cosh(b/2) / 2·sinh²(b/2) for b = 1/s is what one has exactly, by its tail; 2s² + 1/12 is near it and above."""
    half = 1 / (2 * scale)
    exact = math.cosh(half) / (2 * math.sinh(half) ** 2)

    said = Distribution.of_laplace(scale, is_rounded=True).repeated(7).deviation

    assert 1 - 1e-9 <= said / math.sqrt(7 * exact) <= 1.03
    numbers = noised(Measure("rows", 1 * factor, Decimal(str(1 / scale)), factor=factor), times=7)
    sums = numbers.reshape(7, -1).sum(axis=0)
    assert np.std(sums) == pytest.approx(math.sqrt(7 * exact), rel=0.02)


@pytest.mark.extended
@pytest.mark.parametrize("factor", [1, 2, 64, 2**16])
@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize("asked", [("0.5", "0.5"), ("1", "1", "1"), ("0.3", "1"), ("2", "2"), ("0.1", "0.2", "0.3")])
def test_margins_of_means_of_rounded_releases_hold_as_often_as_they_say(
    asked: Sequence[str], kind: NoiseKind, factor: int
) -> None:
    readings = []
    for place, epsilon in enumerate(asked):
        measure = Measure("rows", factor, Decimal(epsilon), noise=kind, factor=factor)
        source, noise = SeededNoise(place), noise_of(measure, group_size=1)
        readings.append(of_cells([in_whole(number, factor) for number in source.draw(noise, 100_000)], noise))

    means, (law, *_) = mean(readings)
    margin = law.margin(Decimal("0.95"))

    assert sum(abs(mean) <= margin for mean in means) / len(means) >= 0.948
    assert margin < 2 or sum(abs(mean) < margin for mean in means) / len(means) <= 0.953


@pytest.mark.parametrize("factor", [1, 2, 2**16])
def test_releases_weigh_by_their_precision_whatever_their_factor(factor: int) -> None:
    """Four times the ε is sixteen times the weight, and twice the factor changes nothing."""
    readings = [
        of_cells([number], LaplaceNoise(factor, Decimal(epsilon), factor)) for number, epsilon in ((0, 1), (17, 4))
    ]

    assert mean(readings)[0] == (16,)
    assert LaplaceNoise(factor, Decimal(2), factor).precision == LaplaceNoise(1, Decimal(2)).precision
    assert GaussianNoise(factor**2, Decimal(2), factor).precision == GaussianNoise(1, Decimal(2)).precision


@pytest.mark.parametrize("factor", [2, 2**16])
def test_noise_is_drawn_for_the_integer_and_told_of_the_number(factor: int) -> None:
    rows = Measure("rows", 40 * factor, Decimal("0.1"), factor=factor)
    source = NoNoise()
    draw(block_of(rows, groups=3), (0,), 3, source, group_size=2)

    noise = noise_of(rows, group_size=2)
    assert source.asked == [(3, 80 * factor, Decimal("0.1"))]
    assert (noise.sensitivity_words("at most "), noise.scale_words("")) == ("sensitivity at most 80", "noise scale 800")
    assert noise.law.deviation == pytest.approx(800 * math.sqrt(2))


@pytest.mark.parametrize("group_size", [1, 3])
def test_gaussian_noise_of_scaled_units_is_made_for_the_root_of_their_groups(group_size: int) -> None:
    """d groups of at most F·min(1, K/d) each: the squares are at most F²·K."""
    factor = 2**16
    units = Measure("units", 40 * factor, Decimal("0.1"), noise="gaussian", at_most_one=True, factor=factor)
    for groups in (1, 39, 40, 41, 1000):
        each = factor * 40 // max(groups, 40)
        assert groups * each**2 <= units.squared

    noise = noise_of(units, group_size=group_size)

    assert noise == GaussianNoise(40 * factor**2 * group_size**2, Decimal("0.1"), factor)
    assert noise.scale_words("") == f"Gaussian noise of sigma {group_size * 40**0.5 / 0.1:.6g}"


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_what_a_release_cost_tells_what_noise_is_in_it(kind: NoiseKind) -> None:
    measure = Measure("rows", 40 * 64, Decimal("0.123456789012"), noise=kind, factor=64)

    paid = mechanism_of(block_of(measure), 0)

    other = replace(measure, noise="laplace", epsilon=Decimal(1))
    assert noise_paid(other, paid, group_size=2) == noise_of(measure, group_size=2)


@given(exact=st.integers(-(10**9), 10**9), part=st.integers(0, 2**16 - 1))
def test_without_noise_a_released_number_is_the_nearest_to_the_integer(exact: int, part: int) -> None:
    measure, factor = Measure("rows", 2**16, Decimal(1), factor=2**16), 2**16
    block = block_of(measure, groups=2)
    draws = draw(block, (0,), 2, NoNoise(), group_size=1)

    found = release(block, GROUPS[:2], sent([(*GROUPS[0], exact * factor + part)]), draws).values[0]

    assert found == (exact + (part >= factor // 2), 0)


@pytest.mark.parametrize("factor", [2, 16])
@pytest.mark.parametrize("exact", [0, 3, 37])
def test_no_released_number_is_more_than_e_to_the_epsilon_times_as_likely_with_a_unit_as_without(
    factor: int, exact: int
) -> None:
    """Computed over the law that is drawn from: rounding is post-processing, whatever part of one the integer has."""
    epsilon, sensitivity = Decimal("0.7"), 3 * factor
    scale = laplace_scale(sensitivity, epsilon)
    alpha = math.exp(-1 / scale)

    def law(integer: int) -> dict[int, float]:
        found: dict[int, float] = {}
        for noise in range(-60 * factor, 60 * factor + 1):
            weight = (1 - alpha) / (1 + alpha) * math.exp(-abs(noise) / scale)
            number = in_whole(integer + noise, factor)
            found[number] = found.get(number, 0.0) + weight
        return found

    for moved in {1, factor - 1, sensitivity}:
        with_unit, without = law(exact + moved), law(exact)
        for number in range(-15, 16):
            ratio = with_unit[number] / without[number]
            assert math.exp(-float(epsilon)) * (1 - 1e-9) <= ratio <= math.exp(float(epsilon)) * (1 + 1e-9)


def test_a_threshold_is_made_for_whole_units_only() -> None:
    with pytest.raises(ValueError, match="whole units"):
        find_threshold(Measure("units", 2**16, Decimal(1), factor=2**16), Decimal("1e-6"))


@pytest.mark.extended
@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize("factor", [2, 2**16])
@pytest.mark.parametrize("epsilon", ["0.1", "1"])
def test_bars_around_rounded_numbers_and_their_ratios_hold_as_often_as_they_say(
    epsilon: str, factor: int, kind: NoiseKind
) -> None:
    """Counts, sums, and ratios of both. Bars of whole numbers hold more, but one that is narrower by one does not."""
    rows = Measure("rows", 2 * factor, Decimal(epsilon), noise=kind, factor=factor)
    total = Measure("sum", 200 * factor, Decimal(epsilon), noise=kind, factor=factor)
    some = GROUPS[:2_500]
    block = replace(block_of(rows, total, groups=len(some)), bars=(Bar(0), Bar(1)))
    exact = (3_000, 150_000)
    inner = [(*group, *(str(number * factor) for number in exact)) for group in some]
    draws = draw(block, (0, 1), len(some), SeededNoise(11), group_size=1)
    found = replace(release(block, some, sent(inner), draws), laws=laws_of(block, group_size=1))
    counts, sums = (
        np.array([(text or "").strip("{}").split(",") for text in column], dtype=np.float64)
        for column in columns(block, found)[-2:]
    )

    for replicates, truth, step in (
        (counts, exact[0], 1),
        (sums, exact[1], 1),
        (sums / counts, exact[1] / exact[0], 0),
    ):
        ordered = np.sort(replicates, axis=1)
        last = points(block.level)[0] - 2
        low, high = ordered[:, round(0.025 * last)], ordered[:, round(0.975 * last)]
        assert np.mean((low <= truth) & (truth <= high)) > 0.93
        assert np.mean((low + step <= truth) & (truth <= high - step)) < 0.965


@pytest.mark.extended
def test_totals_of_rounded_numbers_have_bars_that_hold_too() -> None:
    """Each of the twenty cells was rounded by itself, which noise of less than one tells of."""
    factor, cells = 2**16, 20
    measure = Measure("rows", factor, Decimal(2), factor=factor)
    law = noise_of(measure, group_size=1).law.repeated(cells)
    totals = noised(measure, times=cells).reshape(cells, -1).sum(axis=0)

    margin = law.margin(Decimal("0.95"))

    assert np.mean(np.abs(totals) <= margin - 1) < 0.955
    assert np.mean(np.abs(totals) <= margin) > 0.947


def test_outputs_have_the_margin_of_their_measure_in_their_own_unit() -> None:
    factor = 2**16
    measures = (
        Measure("rows", factor, Decimal(1), factor=factor),
        Measure("sum", 500 * factor, Decimal(1), factor=factor),
    )
    block = replace(block_of(*measures), outputs=(Count(0), Sum(1, Fraction(1, 100), 2)))
    laws = laws_of(block, group_size=2)

    rows, total = (margin_of_output(output, laws, block.level) for output in block.outputs)
    centred = margin_of_output(CentredSum(1, 0, Fraction(1, 100), 7, 2), laws, block.level)

    assert rows == math.ceil(2 * math.log(20) - 0.5)
    assert total == Fraction(math.ceil(1000 * math.log(20) - 0.5), 100)
    assert centred is not None and float(centred) == pytest.approx(1000 * math.log(20) / 200, rel=0.01)


def test_a_release_without_laws_is_shown_as_it_is() -> None:
    block = block_of(Measure("rows", 2**16, Decimal(1), factor=2**16), groups=2)

    assert columns(block, Noised(GROUPS[:2], {0: (5, -7)})) == (("0", "1"), ("5", "-7"))
