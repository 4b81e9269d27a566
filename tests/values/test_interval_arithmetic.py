"""Interval arithmetic holds what it promises: no result lies outside of the image."""

from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.values import interval_arithmetic
from rules.values.domain import Range, common_step, contains, items_of, range_of, values

numbers = st.integers(-40, 40)
steps = st.sampled_from((Fraction(1), Fraction(1, 10), Fraction(5)))


@st.composite
def places(draw: st.DrawFn) -> tuple[Range, Fraction]:
    """A range, sometimes without one of its bounds, and a number in it."""
    step = draw(steps)
    low, high = sorted((draw(numbers), draw(numbers)))
    inside = step * draw(st.integers(low, high))
    bounds = [None if draw(st.integers(0, 4)) == 0 else step * bound for bound in (low, high)]
    return Range(bounds[0], bounds[1], draw(st.sampled_from((step, None)))), inside


def _cut(number: Fraction) -> Fraction:
    return Fraction(int(number))


TWO: list[tuple[Callable[[Range, Range], Range], Callable[[Fraction, Fraction], Fraction | None]]] = [
    (interval_arithmetic.add, lambda x, y: x + y),
    (interval_arithmetic.multiply, lambda x, y: x * y),
    (interval_arithmetic.divide, lambda x, y: x / y if y else None),
    (
        interval_arithmetic.truncated_quotient,
        lambda x, y: _cut(x / y) if y and x.denominator == y.denominator == 1 else None,
    ),
    (interval_arithmetic.remainder, lambda x, y: x - y * _cut(x / y) if y else None),
]


@pytest.mark.parametrize(("moved", "compute"), TWO)
@given(one=places(), other=places())
def test_no_result_of_two_numbers_lies_outside_the_image(
    moved: Callable[[Range, Range], Range],
    compute: Callable[[Fraction, Fraction], Fraction | None],
    one: tuple[Range, Fraction],
    other: tuple[Range, Fraction],
) -> None:
    result = compute(one[1], other[1])
    found = moved(one[0], other[0])
    assert result is None or contains(found, result)
    assert result is None or found.step is None or (result / found.step).denominator == 1


@given(one=places(), step=steps)
def test_no_result_of_one_number_lies_outside_the_image(one: tuple[Range, Fraction], step: Fraction) -> None:
    given_range, number = one
    assert contains(interval_arithmetic.negate(given_range), -number)
    assert contains(interval_arithmetic.absolute(given_range), abs(number))
    assert contains(interval_arithmetic.rounded(given_range, step), step * (number / step).__floor__())
    assert contains(interval_arithmetic.rounded(given_range, step), step * (number / step).__ceil__())


@given(st.lists(st.fractions(max_denominator=100), min_size=1, max_size=5))
def test_a_common_step_divides_all(given_numbers: list[Fraction]) -> None:
    step = common_step(given_numbers)
    assert step is not None
    assert all((number / step).denominator == 1 for number in given_numbers)
    assert range_of(values(given_numbers)).low == min(given_numbers)


def test_a_range_lists_its_multiples_in_order() -> None:
    assert items_of(Range(Fraction(-3), Fraction(11), Fraction(5)), 10) == (Fraction(0), Fraction(5), Fraction(10))
    assert items_of(Range(Fraction(0), Fraction(11), Fraction(1)), 10) is None
