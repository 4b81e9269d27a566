"""Margins: the stated share of draws lies within them, no more and no less."""

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from math import exp

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.noise.margin import margin_of_draw, margin_of_output, margin_of_sum
from rules.noise.measures import Average, Block, Count, Measure, PublicGroups, Sum


@given(scale=st.floats(0.5, 1e6), level=st.sampled_from(["0.5", "0.9", "0.95", "0.99"]))
def test_the_margin_of_one_draw_is_the_smallest_that_holds(scale: float, level: str) -> None:
    margin, alpha = margin_of_draw(scale, Decimal(level)), exp(-1 / scale)
    beyond = [2 * alpha ** (distance + 1) / (1 + alpha) for distance in (margin, margin - 1)]

    assert beyond[0] <= (1 - float(level)) * (1 + 1e-9)
    assert margin == 0 or beyond[1] >= (1 - float(level)) * (1 - 1e-9)


@pytest.mark.parametrize("scales", [[10.0], [10.0, 10.0], [10.0, 1.0], [1.0, 100.0, 50.0], [3.0] * 12, [1.0, 1e-3]])
def test_the_margin_of_a_sum_covers_95_percent(scales: Sequence[float]) -> None:
    generator = np.random.default_rng(7)
    sums = sum(generator.laplace(0, scale, 200_000) for scale in scales)

    assert np.mean(np.abs(sums) <= margin_of_sum(scales)) == pytest.approx(0.95, abs=0.002)


def test_outputs_have_the_margin_of_their_measure_in_their_own_unit() -> None:
    measures = (Measure("count", 1, Decimal(1)), Measure("sum", 500, Decimal(1)))
    outputs = (Count(0), Sum(1, Fraction(1, 100), 2), Average(1, 0, Fraction(1), Fraction(0), Fraction(1), 4))
    block = Block("", "", (), PublicGroups(((),)), measures, outputs, (), ())

    margins = [margin_of_output(block, output, group_size=2) for output in outputs]
    assert margins == [6, Fraction(margin_of_draw(1000.0), 100), None]
