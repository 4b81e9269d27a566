"""The margins that are told beside an answer are those of its error bars, and hold as often as they say."""

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.execute.notices import margins_notice
from rules.mechanisms.noised_outputs import Average, Chosen, Count, Output
from rules.mechanisms.release_plan import Bar, Choice, FromEnd, Quantile
from rules.release.margins import Formula, Margin, Number, Operation, Result, Value, margins_of, places_of_extremes
from rules.release.outputs import show
from rules.release.release import Noised, columns, draw, release
from tests.mechanisms.sent import sent
from tests.mechanisms.sources import SeededNoise
from tests.release.test_replicates import BLOCK, CENT, EXACT, FAR, GROUPS, LAWS, MEASURES, OUTPUTS, STATISTICS
from tests.support.written import NOTHING

RATIO = Operation("/", (Operation("*", (Number("100.0"), Value(1))), Operation("nullif", (Value(0), Number("0")))))


def margin_of(formula: Formula | None, noised: Noised, *outputs: Output, level: str = "0.95") -> Margin:
    block = replace(BLOCK, outputs=outputs or OUTPUTS, bars=(), level=Decimal(level))
    (margin,) = margins_of([Result("m", 0, formula)], 0, block, noised, 1)
    return margin


@pytest.mark.parametrize("output", [*OUTPUTS, FAR, *STATISTICS], ids=str)
@pytest.mark.parametrize("level", ["0.8", "0.95"])
def test_a_margin_is_that_of_the_error_bar(output: Output, level: str) -> None:
    numbers = {0: (3_000, 160, 2_000), 1: (150_000, 900, 40_000), 2: (60_000, -6_000, 10_000)}
    noised = Noised(GROUPS[:3], numbers, LAWS)
    bars = (Bar(0, "margin"),)
    barred = replace(BLOCK, outputs=(output,), output_types=("numeric",), bars=bars, level=Decimal(level))
    *_, ends = columns(barred, noised)
    shown = [Decimal(show(output, [numbers[index][group] for index in range(3)]) or "NaN") for group in range(3)]
    bars_around = [float(abs(Decimal(end or "NaN") - decimal)) for end, decimal in zip(ends, shown, strict=True)]

    margin = margin_of(Value(0), noised, output, level=level)

    known = [number for number in bars_around if number == number]
    assert margin.least is not None and margin.widest is not None
    assert margin.least == pytest.approx(min(known), rel=0.03, abs=1e-9)  # of a count the law's own, to a whole number
    assert margin.widest == pytest.approx(max(known), rel=0.03, abs=1e-9)


@pytest.mark.slow
def test_margins_of_ratios_hold_as_often_as_they_say() -> None:
    draws = draw(BLOCK, range(len(MEASURES)), len(GROUPS), SeededNoise(5), group_size=1)
    noised = release(BLOCK, GROUPS, sent((*group, *EXACT) for group in GROUPS), draws)
    truth = 100 * EXACT[1] * float(CENT) / EXACT[0]

    held = 0
    for place in range(len(GROUPS)):
        numbers = {index: (values[place],) for index, values in noised.values.items()}
        margin = margin_of(RATIO, Noised(GROUPS[:1], numbers, LAWS))
        released = 100 * numbers[1][0] * float(CENT) / numbers[0][0]
        held += margin.widest is not None and abs(released - truth) <= margin.widest

    assert 0.92 < held / len(GROUPS) < 0.98


def test_a_root_of_a_negative_number_has_no_margin_as_it_has_no_value() -> None:
    root = Operation("sqrt", (Value(1),))
    below, above = (
        margin_of(root, Noised(GROUPS[:1], {0: (100,), 1: (number,), 2: (0,)}, LAWS)) for number in (-(10**7), 10**7)
    )

    assert below.widest is None
    assert above.widest is not None and above.widest > 0


@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=5), st.integers(-(10**6), 10**6))
def test_the_range_of_margins_is_that_of_the_groups_by_themselves(counts: list[int], halves: int) -> None:
    groups = GROUPS[: len(counts)]
    every = Noised(groups, {0: tuple(counts), 1: (0,) * len(counts), 2: (halves,) * len(counts)}, LAWS)
    single = [
        margin_of(Value(3), Noised(GROUPS[:1], {0: (count,), 1: (0,), 2: (halves,)}, LAWS)).widest for count in counts
    ]

    margin = margin_of(Value(3), every)

    assert [margin.least, margin.widest] == [
        min(number or 0 for number in single),
        max(number or 0 for number in single),
    ]


def test_a_total_over_groups_has_a_wider_margin_than_a_group() -> None:
    block = replace(BLOCK, sets=((0,), ()), bars=())
    noised = Noised(GROUPS[:9], {0: (100,) * 9, 1: (0,) * 9, 2: (0,) * 9}, LAWS)

    (margin,) = margins_of([Result("n", 0, Value(0))], 0, block, noised, 1)

    assert margin.least == LAWS[0].margin(block.level)
    assert margin.widest == LAWS[0].repeated(9).margin(block.level)


@pytest.mark.parametrize("fraction", ["0.5", "0.9"])
def test_a_quantile_has_a_margin_in_rows_that_its_rank_may_be_off(fraction: str) -> None:
    choice = Choice("median", 4, Decimal("0.1"), NOTHING, 5, Quantile(Fraction(fraction)))
    block = replace(BLOCK, measures=(choice,), outputs=(Chosen(0, ("1", "2", "3", "4", "5")),), bars=())
    noised = Noised(GROUPS[:1], {0: (2,)}, {})

    (alone,) = margins_of([Result("p", 0, Value(0))], 0, block, noised, 1)
    (pairs,) = margins_of([Result("p", 0, Value(0))], 0, block, noised, 2)

    share = max(float(fraction), 1 - float(fraction))
    assert alone.rank_of == "rows" and alone.kind == "quantiles"
    assert alone.widest == pytest.approx(2 * 4 * share / 0.1 * -np.log(0.05))
    assert pairs.widest == pytest.approx(2 * (alone.widest or 0))


def test_a_quantile_that_stands_for_others_says_how_far_they_are() -> None:
    """One of at most 4,096 values is chosen: where rows lie densely it may be beyond the margin of the rank."""
    choice = Choice("median", 4, Decimal("0.1"), NOTHING, 2, Quantile(Fraction(1, 2)))
    days = Chosen(0, ("2025-01-02", "2025-01-05"), reach=Fraction(1))
    block = replace(BLOCK, measures=(choice,), outputs=(days,), output_types=("date",), bars=())

    margins = margins_of([Result("p", 0, Value(0))], 0, block, Noised(GROUPS[:1], {0: (1,)}, {}), 1)

    assert margins_notice(margins) == "; 95% of quantiles within ±120 rows in rank and ±1 days in value"


@pytest.mark.parametrize(("rows", "share"), [(1_000, 0.07), (140, 0.5), (50, 1.0), (-3, 1.0)])
def test_an_extreme_has_its_place_from_the_end(rows: int, share: float) -> None:
    choice = Choice("max", 4, Decimal(1), NOTHING, 5, FromEnd(70, largest=True))
    outputs = Chosen(0, ("1", "2", "3", "4", "5")), Count(1, adds_up=True)
    block = replace(BLOCK, measures=(choice, MEASURES[1]), outputs=outputs, bars=())

    (place,) = places_of_extremes(block, Noised(GROUPS[:1], {0: (2,), 1: (rows,)}, {}))

    assert (place.largest, place.rows, len(place.shares)) == (True, 70, 1)
    assert place.shares[0] == pytest.approx(share)


def test_what_is_more_than_arithmetic_has_no_margin() -> None:
    noised = Noised(GROUPS[:1], {0: (10,), 1: (10,), 2: (0,)}, LAWS)

    assert not margin_of(None, noised).is_known
    assert not margin_of(RATIO, Noised((), {0: (), 1: (), 2: ()}, LAWS)).is_known
    assert isinstance(FAR, Average)
