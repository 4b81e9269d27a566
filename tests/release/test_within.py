"""Asking by error: the least ε is found, and an answer that is served is wrong as seldom as it was promised."""

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rules.mechanisms.additive import LaplaceNoise, laws_of
from rules.mechanisms.draw import Noise
from rules.mechanisms.noised_outputs import Average, Chosen, Count, margin_of_output
from rules.mechanisms.release_plan import Block, Choice, KeyColumn, LeastUnits, Measure, PublicGroups, Quantile
from rules.mechanisms.weighted_means import mean, of_cells
from rules.refusal import NotSupported
from rules.release.margins import Formula, Operation, Result, Value
from rules.release.release import Noised
from rules.release.within import (
    Demand,
    are_met,
    demands_of,
    least_epsilon,
    level_of_rest,
    needs_after,
    needs_beforehand,
)
from rules.sql.session_settings import Within
from tests.mechanisms.sources import SeededNoise
from tests.support.written import NOTHING

LEVEL = Decimal("0.95")
PROBE = Decimal("0.0334")
MEAN = Average(1, 0, Fraction(1), Fraction(0), Fraction(100), 16)


def block_of(*sensitivities: int, epsilon: Decimal = Decimal(1)) -> Block:
    """Rows, and halves of numbers from 0 to 100."""
    measures = tuple(Measure(f"m{place}", sensitivity, epsilon) for place, sensitivity in enumerate(sensitivities))
    return Block(
        "asked", NOTHING, (KeyColumn("text", "k"),), PublicGroups((("a",),)), measures, (Count(0), MEAN), ("int8",), ()
    )


def absolute(amount: float) -> Within:
    return Within(Fraction(amount), is_relative=False, text=str(amount))


def relative(share: str) -> Within:
    return Within(Fraction(share), is_relative=True, text=share)


@given(sensitivity=st.integers(1, 10**6), amount=st.floats(1, 1e6), level=st.sampled_from(["0.8", "0.95", "0.99"]))
@settings(deadline=None)
def test_the_least_epsilon_keeps_the_margin_inside_and_a_tenth_less_does_not(
    sensitivity: int, amount: float, level: str
) -> None:
    block = block_of(sensitivity)
    needs = needs_beforehand([Demand(0, 0)], [block], absolute(amount))
    assert needs is not None

    epsilon = least_epsilon(needs, [block], Decimal(1), Decimal(level), 1)

    assert epsilon is not None
    margins = []
    for factor in (Decimal("1.01"), Decimal("0.9")):  # a scale is rounded up, as a margin is to whole numbers
        priced = replace(block, measures=(Measure("m0", sensitivity, epsilon * factor),))
        margins.append(margin_of_output(Count(0), laws_of(priced, group_size=1), Decimal(level)) or 0)
    assert margins[0] <= amount
    assert margins[1] > amount - 1


def asked(block: Block, within: Within, output: int, exact: tuple[int, ...], noise: Noise) -> float | None:
    """One answer as it is asked in two steps; None where it is refused."""
    probe = replace(block, measures=tuple(replace(measure, epsilon=PROBE / len(exact)) for measure in block.measures))
    drawn = [noise.draw(_noise(measure), 1)[0] for measure in probe.measures if isinstance(measure, Measure)]
    values = {place: (number + drawn[place],) for place, number in enumerate(exact)}
    first = Noised((("a",),), values, laws_of(probe, group_size=1))
    needs, _ = needs_after([Demand(0, output)], [(block, first)], within, LEVEL)
    epsilon = least_epsilon(needs, [block], Decimal(1), level_of_rest(LEVEL), 1) if needs.can_be_met else None
    if epsilon is None or epsilon + PROBE > 1:
        return None
    priced = [
        replace(measure, epsilon=measure.epsilon * epsilon)
        for measure in block.measures
        if isinstance(measure, Measure)
    ]
    shown = []
    for place, number in enumerate(exact):
        fresh = of_cells((number + noise.draw(_noise(priced[place]), 1)[0],), _noise(priced[place]))
        both = [of_cells(values[place], _noise(probe.measures[place])), fresh]
        shown.append(mean(both)[0][0])
    return shown[0] if output == 0 else 50 + shown[1] / max(1, shown[0]) / 2


def _noise(measure: Measure | Choice) -> LaplaceNoise:
    assert isinstance(measure, Measure)
    return LaplaceNoise(measure.sensitivity, measure.epsilon)


@pytest.mark.parametrize("rows", [30, 100, 300, 600, 6_000, 100_000])
def test_counts_that_are_served_and_wrong_are_one_in_twenty_at_most(rows: int) -> None:
    noise, block = SeededNoise(rows), block_of(1)
    answers = [asked(block, relative("0.05"), 0, (rows,), noise) for _ in range(600)]

    wrong = sum(shown is not None and abs(shown - rows) > 0.05 * rows for shown in answers)
    served = sum(shown is not None for shown in answers)
    assert wrong / len(answers) < 0.08  # 0.05 and three standard deviations
    assert served > 590 or rows < 600


@pytest.mark.extended
@pytest.mark.parametrize("rows", [100, 1_000, 20_000])
@pytest.mark.parametrize("within", [absolute(2), relative("0.05")], ids=["2", "5%"])
def test_averages_that_are_served_and_wrong_are_one_in_twenty_at_most(rows: int, within: Within) -> None:
    noise, block = SeededNoise(rows), block_of(1, 100, epsilon=Decimal("0.5"))
    mean = 80  # halves are 2q − 100 for numbers from 0 to 100
    answers = [asked(block, within, 1, (rows, (2 * mean - 100) * rows), noise) for _ in range(400)]

    allowed = 2 if not within.is_relative else 0.05 * mean
    wrong = sum(shown is not None and abs(shown - mean) > allowed for shown in answers)
    assert wrong / len(answers) < 0.09
    assert rows < 20_000 or all(shown is not None for shown in answers)


def test_small_groups_are_not_promised() -> None:
    groups = (("a",), ("b",), ("c",))
    block = replace(block_of(1), groups=PublicGroups(groups))
    probed = Noised(groups, {0: (10_000, 9_000, 3)}, laws_of(block, group_size=1))

    needs, at_least = needs_after([Demand(0, 0)], [(block, probed)], relative("0.05"), LEVEL)

    assert (needs.promised, needs.numbers) == (2, 3)
    assert 440 < needs.needs[0].allowed < 450 < at_least.needs[0].allowed < 460
    assert are_met(needs, [block], [laws_of(block, group_size=1)], LEVEL)


def test_numbers_about_few_units_are_not_looked_at() -> None:
    """They are not shown, and neither is what an error of them would take."""
    groups = (("a",), ("b",), ("c",))
    block = replace(block_of(1), groups=PublicGroups(groups), least_units=LeastUnits((0, 0), 9_500))
    laws = laws_of(block, group_size=1)

    first, second = (
        needs_after([Demand(0, 0)], [(block, Noised(groups, {0: (10_000, few, 3)}, laws))], relative("0.05"), LEVEL)
        for few in (9_000, 5)
    )
    none, _ = needs_after([Demand(0, 0)], [(block, Noised(groups, {0: (9, 8, 3)}, laws))], relative("0.05"), LEVEL)

    assert first == second and (first[0].promised, first[0].numbers) == (1, 3)
    assert not none.can_be_met and none.promised == 0


REFUSED: list[tuple[Formula | None, str]] = [
    (Value(2), "is a quantile"),
    (Operation("/", (Value(0), Value(0))), "is computed from several numbers"),
    (None, "is computed from several numbers"),
]


@pytest.mark.parametrize(("formula", "words"), REFUSED, ids=[words for _, words in REFUSED])
def test_what_has_no_error_that_can_be_promised_is_refused_by_name(formula: Formula | None, words: str) -> None:
    median = Choice("median", 1, Decimal(1), NOTHING, 2, Quantile(Fraction(1, 2)))
    block = block_of(1, 100)
    block = replace(block, measures=(*block.measures, median), outputs=(*block.outputs, Chosen(2, ("1", "2"))))

    with pytest.raises(NotSupported, match=f'"share", which {words}'):
        demands_of([Result("share", 0, formula)], [block])
    with pytest.raises(NotSupported, match="totals together with their parts"):
        demands_of([Result("n", 0, Value(0))], [replace(block, sets=((0,), ()))])
