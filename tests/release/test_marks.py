"""Marks: of numbers that are all noise, an answer shows one in at most one of twenty cases."""

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from rules.mechanisms.additive import laws_of, noise_of
from rules.mechanisms.distribution import Distribution
from rules.mechanisms.noised_outputs import Average, Chosen, Count, Sum
from rules.mechanisms.release_plan import Block, KeyColumn, Measure, PublicGroups
from rules.policy.model import NoiseKind
from rules.release.margins import Formula, Number, Operation, Value
from rules.release.marks import Mark, mark_columns
from rules.release.release import Noised
from tests.mechanisms.sources import SeededNoise
from tests.support.written import NOTHING

GROUPS = tuple((str(number),) for number in range(120))
MEASURES = (Measure("rows", 1, Decimal("0.1")), Measure("halves", 100, Decimal("0.1")))
MEAN = Average(1, 0, Fraction(1), Fraction(0), Fraction(100), 2)
BLOCK = Block(
    "marks",
    NOTHING,
    (KeyColumn("text", "k"),),
    PublicGroups(GROUPS),
    MEASURES,
    (Count(0), Sum(1, Fraction(1), 0), MEAN),
    ("int8",),
    (),
)
SHARE = Operation("/", (Operation("*", (Value(1), Number("100"))), Value(0)))


def marked(noised: Noised, *formulas: Formula, block: Block = BLOCK, is_alone: bool = False) -> list[list[bool]]:
    columns = mark_columns([Mark(0, formula, is_alone) for formula in formulas], [(block, noised)])
    return [[text == "t" for text in column] for column in columns]


@pytest.mark.extended
@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize("sets", [(), ((0,), ())], ids=["groups", "totals"])
def test_an_answer_has_a_false_number_in_at_most_one_of_twenty_cases(
    kind: NoiseKind, sets: tuple[tuple[int, ...], ...]
) -> None:
    noise, runs = SeededNoise(3), 1_500
    measures = tuple(replace(measure, noise=kind) for measure in MEASURES)
    block = replace(BLOCK, measures=measures, sets=sets)
    laws, alone, false = laws_of(block, group_size=1), 0, 0
    for _ in range(runs):
        draws = {
            place: noise.draw(noise_of(measure, group_size=1), len(GROUPS)) for place, measure in enumerate(measures)
        }
        noised = Noised(GROUPS, draws, laws)
        false += not all(map(all, marked(noised, Value(0), Value(1), block=block)))
        (cells,) = marked(noised, Value(0), block=block, is_alone=True)
        alone += cells.count(False)

    cells_of_all = runs * (len(GROUPS) + bool(sets))
    assert false / runs < 0.05 + 3 * np.sqrt(0.05 / runs)
    assert 0.04 < alone / cells_of_all < 0.06


def test_what_is_large_beside_the_noise_is_not_marked() -> None:
    values = {0: (10_000, 20, -5), 1: (-500_000, 100, 20_000)}
    noised = Noised(GROUPS[:3], values, laws_of(BLOCK, group_size=1))

    count, total, mean, share, both = marked(
        noised, Value(0), Value(1), Value(2), SHARE, Operation("+", (Value(0), Value(1)))
    )

    assert count == mean == share == [False, True, True]  # a mean and a ratio as what they are divided by
    assert total == both == [False, True, False]


def test_quantiles_and_constants_are_not_marked() -> None:
    block = replace(BLOCK, outputs=(Chosen(0, ("a", "b")),))
    noised = Noised(GROUPS[:2], {0: (0, 1), 1: (0, 0)}, laws_of(BLOCK, group_size=1))

    assert marked(noised, Value(0), Number("0"), block=block) == [[False, False], [False, False]]


LAWS = {
    "one": Distribution.of_laplace(10.0),
    "mean": Distribution.of_laplace(7.0).plus(Distribution.of_laplace(3.0)).rounded(),
    "twelve": Distribution.of_laplace(10.0).repeated(12),
    "normal": Distribution(variance=100.0),
    "mixed": Distribution.of_laplace(5.0).plus(Distribution(variance=50.0)),
}


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
@pytest.mark.parametrize("missed", ["0.05", "0.001", "1e-7"])
def test_noise_is_beyond_its_reach_as_seldom_as_is_said(law: Distribution, missed: str) -> None:
    drawn = np.random.default_rng(11)
    sums = np.sqrt(law.variance) * drawn.standard_normal(400_000)
    for scale, count in law.laplace:
        sums += drawn.laplace(scale=scale, size=(count, 400_000)).sum(axis=0)

    reach = law.reach(Decimal(missed))

    assert np.mean(np.abs(sums) > reach) <= float(missed) * 1.05 + 5 * np.sqrt(float(missed) / 400_000)
    assert reach <= 3 * law.deviation * np.sqrt(2 * -np.log(float(missed))) + 40
