"""What is sure of a result follows from what is sure of its operands: no value lies outside, none has more digits."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from rules.values import enforced
from rules.values.enforced import UNSURE, Sure
from rules.values.expression import Apply, Column, Constant
from rules.values.types import INT2, INT4, INT8, NUMERIC, TEXT, Type

DIGITS = 3
numbers = st.integers(-(10**6), 10**6).map(lambda each: Fraction(each, 10**DIGITS))


def digits_of(number: Fraction) -> int:
    return next(places for places in range(2 * DIGITS + 1) if (number * 10**places).denominator == 1)


@st.composite
def known(draw: st.DrawFn) -> tuple[Sure, Fraction]:
    """What is sure of a number, one bound of it perhaps or nothing, and the number."""
    low, number, high = sorted(draw(numbers) for _ in range(3))
    bounds = [None if draw(st.integers(0, 4)) == 0 else bound for bound in (low, high)]
    digits = None if draw(st.integers(0, 3)) == 0 else digits_of(number) + draw(st.integers(0, 1))
    return Sure(bounds[0], bounds[1], digits), number


def holds(found: Sure, number: Fraction) -> bool:
    return found.has(number) and (found.digits is None or digits_of(number) <= found.digits)


@given(one=known(), other=known())
def test_sums_differences_and_products(one: tuple[Sure, Fraction], other: tuple[Sure, Fraction]) -> None:
    (left, x), (right, y) = one, other
    assert holds(enforced.plus(left, right), x + y)
    assert holds(enforced.minus(left, right), x - y)
    assert holds(enforced.times(left, right), x * y)
    assert holds(enforced.negated(left), -x)


@given(one=known(), other=known())
def test_either_of_two(one: tuple[Sure, Fraction], other: tuple[Sure, Fraction]) -> None:
    found = enforced.either(one[0], other[0])
    assert holds(found, one[1])
    assert holds(found, other[1])


@given(one=known(), low=numbers, high=numbers)
def test_clamps_and_what_is_left_between_bounds(one: tuple[Sure, Fraction], low: Fraction, high: Fraction) -> None:
    """Bounds in the wrong order too, as those of an empty list are."""
    given_, number = one
    assert enforced.clamped(given_, low, high).has(min(max(number, low), high))
    if low <= number <= high:
        assert holds(enforced.between(given_, low, high), number)


@given(one=known(), limit=st.integers(0, 10**6).map(Fraction))
def test_within_means_that_no_value_is_outside(one: tuple[Sure, Fraction], limit: Fraction) -> None:
    given_, number = one
    assert not given_.is_within(-limit, limit) or abs(number) <= limit


def test_a_type_bounds_its_values_and_no_others_do() -> None:
    assert enforced.of_type(INT2) == Sure(Fraction(-32768), Fraction(32767), 0)
    assert enforced.of_type(Type("numeric", size=6, scale=2)) == Sure(Fraction(-10000), Fraction(10000), 2)
    assert enforced.of_type(Type("numeric", size=2, scale=-3)).high == 10**5
    assert [enforced.of_type(sql_type) for sql_type in (NUMERIC, TEXT, Type("float8"), Type("date"))] == [UNSURE] * 4


def test_nothing_is_sure_by_a_domain() -> None:
    """Which conditions and CHECKs narrow: they may be looked at after what they would guard."""
    narrow = Column(1, INT4, Constant(INT4, "1", Fraction(1)).domain, nullable=False)

    assert narrow.sure == enforced.of_type(INT4)


def test_of_what_was_computed_the_width_is_sure_and_the_precision_is_not() -> None:
    assert Apply("x", "x", (), Type("numeric", size=6, scale=2)).sure == UNSURE
    assert Apply("x", "x", (), INT8).sure == enforced.of_type(INT8)
    assert Apply("x", "x", (), INT4, held=Sure(Fraction(0), Fraction(7))).sure == Sure(Fraction(0), Fraction(7), 0)


def test_null_is_bounded_and_a_constant_is_itself() -> None:
    assert Constant(NUMERIC, None).sure == Sure(Fraction(0), Fraction(0), 0)
    assert Constant(NUMERIC, "1.50", Fraction(3, 2)).sure == Sure(Fraction(3, 2), Fraction(3, 2), 2)
