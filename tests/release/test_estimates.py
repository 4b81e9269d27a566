"""Estimates from randomized reports: unbiased, as far off as the formula says, and their bars hold what they say."""

import math
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from rules.local.laws import Law, bit_law, kary_law, unary_law
from rules.mechanisms.distribution import Distribution
from rules.mechanisms.noised_outputs import Estimate
from rules.mechanisms.release_plan import Bar, Block, KeyColumn, Measure, PublicGroups
from rules.release.estimates import compute, law_of, local_variance, placed
from rules.release.margins import Value
from rules.release.marks import Mark, mark_columns
from rules.release.release import Noised, columns
from tests.support.written import NOTHING

Matrix = np.ndarray[tuple[int, ...], np.dtype[np.int64]]
RUNS, PEOPLE, HELD = 4_000, 20_000, 2_000


def kary(law: Law, values: int, held: tuple[int, ...], generator: np.random.Generator) -> Matrix:
    """Reports of each value, by run."""
    told = np.zeros((RUNS, values), dtype=np.int64)
    for own, people in enumerate(held):
        shares = [float(law.p if value == own else law.q) for value in range(values)]
        told += generator.multinomial(people, np.array(shares) / sum(shares), RUNS)
    return told


def block(estimate: Estimate, measures: int, groups: int) -> Block:
    return Block(
        canonical="",
        statement=NOTHING,
        keys=(KeyColumn("text", "k"),),
        groups=PublicGroups(tuple((str(number),) for number in range(groups))),
        measures=tuple(Measure(str(number), 1, Decimal(1)) for number in range(measures)),
        outputs=placed((estimate,), measures),
        output_types=("double precision",),
        tables=(),
        bars=(Bar(0, "margin"), Bar(0)),
    )


def coverage(asked: Block, cells: Matrix, scale: float, truth: float) -> float:
    """How often the margin of a released estimate holds the truth."""
    generator = np.random.default_rng(5)
    noise = np.rint(generator.laplace(0, scale, cells.shape)).astype(np.int64)
    values = {place: tuple(map(int, column)) for place, column in enumerate((cells + noise).T)}
    laws = dict.fromkeys(values, Distribution.of_laplace(scale))
    assert isinstance(asked.groups, PublicGroups)
    _, estimates, ends, arrays = columns(asked, Noised(asked.groups.rows, values, laws))
    assert all((array or "").startswith("{") for array in arrays)
    pairs = [(float(one or 0), float(end or 0)) for one, end in zip(estimates, ends, strict=True)]
    return float(np.mean([abs(one - truth) <= abs(one - end) for one, end in pairs]))


@pytest.mark.parametrize("epsilon", ["0.5", "1", "2"])
def test_k_ary_and_unary_estimates_are_unbiased_and_as_far_off_as_the_formula_says(epsilon: str) -> None:
    generator = np.random.default_rng(3)
    first, second = kary_law(9, Decimal(epsilon)), unary_law(Decimal(epsilon))
    for law in (first, second):
        hits = generator.binomial(HELD, float(law.p), RUNS) + generator.binomial(PEOPLE - HELD, float(law.q), RUNS)
        estimate = Estimate(0, (1,), law.p, law.q, chance=2, others=3)
        found = [float(compute(estimate, (int(hit), PEOPLE, 0, 0)) or 0) for hit in hits]
        expected = local_variance(estimate, HELD * float(law.p) + (PEOPLE - HELD) * float(law.q), PEOPLE)

        assert abs(np.mean(found) - HELD) < 6 * math.sqrt(expected / RUNS)
        assert abs(np.var(found) / expected - 1) < 0.13  # six standard deviations


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1.0, 300.0])
def test_bars_of_one_value_hold_it_as_often_as_they_say(scale: float) -> None:
    """With little central noise, and with more of it than chance."""
    law = kary_law(4, Decimal(1))
    cells = kary(law, 4, (HELD, 3_000, 5_000, 10_000), np.random.default_rng(7))
    estimate = Estimate(0, (0, 1, 2, 3), law.p, law.q)

    assert 0.93 < coverage(block(estimate, 4, RUNS), cells, scale, float(HELD)) < 0.975


@pytest.mark.slow
def test_bars_of_the_values_that_are_groups_hold_them_too() -> None:
    law, held = kary_law(4, Decimal(1)), (HELD, 3_000, 5_000, 10_000)
    cells = kary(law, 4, held, np.random.default_rng(8))
    groups = tuple((str(value), str(run)) for run in range(RUNS // 4) for value in range(4))
    estimate = Estimate(0, (0,), law.p, law.q, key=0, groups=4)
    asked = replace(
        block(estimate, 1, 1), keys=(KeyColumn("text", "mood"), KeyColumn("text", "city")), groups=PublicGroups(groups)
    )
    counted = cells[: RUNS // 4].reshape(-1, 1)
    noised = Noised(groups, {0: tuple(map(int, counted[:, 0]))}, {0: Distribution.of_laplace(1.0)})

    _, _, estimates, ends, _ = columns(asked, noised)
    pairs = zip(estimates, ends, np.tile(np.array(held), RUNS // 4), strict=True)
    hits = [abs(float(one or 0) - true) <= abs(float(one or 0) - float(end or 0)) for one, end, true in pairs]
    assert 0.93 < np.mean(hits) < 0.975


@pytest.mark.slow
def test_bars_of_means_hold_them() -> None:
    """A number as a bit: of hours from 0 to 12 everybody has 3."""
    law, generator = bit_law(Decimal(1)), np.random.default_rng(9)
    share = float(law.p) * 0.25 + float(law.q) * 0.75
    hits = generator.binomial(PEOPLE, share, RUNS)
    cells = np.stack([hits, np.full(RUNS, PEOPLE)], axis=1)
    estimate = Estimate(0, (1,), law.p, law.q, (Fraction(0), Fraction(12)))

    assert 0.93 < coverage(block(estimate, 2, RUNS), cells, 3.0, 3.0) <= 1


def test_a_mean_of_nobody_is_null_and_an_estimate_may_be_below_zero() -> None:
    law = bit_law(Decimal(1))
    mean = Estimate(0, (1,), law.p, law.q, (Fraction(0), Fraction(12)), chance=2, others=3)
    count = Estimate(0, (1,), law.p, law.q, chance=2, others=3)

    assert compute(mean, (5, 0, 0, 0)) is None
    assert (compute(count, (0, 100, 0, 0)) or 0) < 0


def test_the_law_of_an_estimate_is_that_of_noise_and_chance_together() -> None:
    law = kary_law(3, Decimal(1))
    estimate = Estimate(0, (0, 1, 2), law.p, law.q)
    noise = Distribution(variance=100.0)
    found = law_of(estimate, (500, 300, 200), {0: noise, 1: noise, 2: noise})
    p, q = float(law.p), float(law.q)
    central = 100 * ((1 - q) ** 2 + 2 * q**2) / (p - q) ** 2

    assert found.deviation**2 == pytest.approx(central + local_variance(estimate, 500, 1000))


def test_an_estimate_that_chance_could_have_made_is_marked() -> None:
    law = kary_law(4, Decimal(1))
    asked = block(Estimate(0, (0, 1, 2, 3), law.p, law.q), 4, 2)
    assert isinstance(asked.groups, PublicGroups)
    values = {0: (3_550, 9_000), 1: (5_500, 4_000), 2: (5_500, 4_000), 3: (5_500, 4_000)}
    noised = Noised(asked.groups.rows, values, dict.fromkeys(values, Distribution.of_laplace(2.0)))

    assert mark_columns([Mark(0, Value(0), is_alone=True)], [(asked, noised)]) == (("t", "f"),)
