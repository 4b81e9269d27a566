"""Margins: the stated share of draws lies within them, no more and no less."""

from decimal import Decimal
from fractions import Fraction
from math import exp

from hypothesis import given
from hypothesis import strategies as st

from rules.mechanisms.additive import laws_of
from rules.mechanisms.distribution import Distribution
from rules.mechanisms.noised_outputs import Average, Count, Sum, margin_of_output
from rules.mechanisms.release_plan import Block, Measure, PublicGroups
from tests.support.written import NOTHING


@given(scale=st.floats(0.5, 1e6), level=st.sampled_from(["0.5", "0.9", "0.95", "0.99"]))
def test_the_margin_of_one_draw_is_the_smallest_that_holds(scale: float, level: str) -> None:
    margin, alpha = Distribution.of_laplace(scale).margin(Decimal(level)), exp(-1 / scale)
    beyond = [2 * alpha ** (distance + 1) / (1 + alpha) for distance in (margin, margin - 1)]

    assert beyond[0] <= (1 - float(level)) * (1 + 1e-9)
    assert margin == 0 or beyond[1] >= (1 - float(level)) * (1 - 1e-9)


def test_outputs_have_the_margin_of_their_measure_in_their_own_unit() -> None:
    measures = (Measure("count", 1, Decimal(1)), Measure("sum", 500, Decimal(1)))
    outputs = (Count(0), Sum(1, Fraction(1, 100), 2), Average(1, 0, Fraction(1), Fraction(0), Fraction(1), 4))
    block = Block("", NOTHING, (), PublicGroups(((),)), measures, outputs, (), ())

    laws = laws_of(block, group_size=2)
    margins = [margin_of_output(output, laws, block.level) for output in outputs]
    assert margins == [6, Fraction(Distribution.of_laplace(1000.0).margin(Decimal("0.95")), 100), None]
