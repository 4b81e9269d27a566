"""Outputs: digits fixed by the query, averages that stay within their bounds."""

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.mechanisms.noised_outputs import Average, CentredSum, Count, Sum
from rules.release.outputs import show, with_digits

AGE = Average(halves=0, count=1, step=Fraction(1, 10), low=Fraction(20), high=Fraction(60), digits=4)


@given(number=st.fractions(), digits=st.integers(0, 20))
def test_digits_depend_on_the_query_alone_and_round_to_the_nearest(number: Fraction, digits: int) -> None:
    text = with_digits(number, digits)

    assert len(text.partition(".")[2]) == digits
    assert abs(Fraction(text) - number) <= Fraction(1, 2 * 10**digits)
    assert not text.startswith("-") or Fraction(text) < 0


@pytest.mark.parametrize(
    ("number", "digits", "text"), [("0.5", 0, "0"), ("1.5", 0, "2"), ("-0.004", 2, "0.00"), ("-0.006", 2, "-0.01")]
)
def test_ties_go_to_the_even_digit_and_zero_has_no_sign(number: str, digits: int, text: str) -> None:
    assert with_digits(Fraction(number), digits) == text


def test_a_count_is_cut_at_zero_only_where_it_is_shown_bare() -> None:
    assert show(Count(0), [-3]) == "-3"
    assert show(Count(0, shown_bare=True), [-3]) == "0"


@given(number=st.integers(-(2**62), 2**62), most=st.integers(0, 2**20))
def test_a_count_of_listed_values_is_no_more_than_they_are(number: int, most: int) -> None:
    shown = int(show(Count(0, most=most), [number]) or "")

    assert 0 <= shown <= most
    assert shown == number or not 0 <= number <= most


def test_a_sum_is_its_integer_times_the_step() -> None:
    assert show(Sum(0, Fraction(1, 100), 2), [12_345]) == "123.45"
    assert show(Sum(0, Fraction(1, 8), 3), [-9]) == "-1.125"


@given(number=st.integers(-(2**70), 2**70), count=st.integers(-(2**70), 2**70))
def test_a_sum_of_integers_stays_within_their_type(number: int, count: int) -> None:
    most = 2**63 - 1
    centred, summed = CentredSum(0, 1, Fraction(1), 10, 0, most=most), Sum(0, Fraction(3), 0, most=most)
    for output, value in ((centred, (number + 10 * count) / Fraction(2)), (summed, Fraction(3 * number))):
        shown = int(show(output, [number, count]) or "")
        assert abs(shown - min(max(value, Fraction(-most)), Fraction(most))) <= Fraction(1, 2)


def test_an_average_is_the_middle_moved_by_half_of_the_centred_mean() -> None:
    values = [21, 33, 60]  # on a lattice of a tenth between 20 and 60
    halves = sum(2 * (10 * value) - (200 + 600) for value in values)
    assert show(AGE, [halves, 3]) == with_digits(Fraction(sum(values), 3), 4)


@given(halves=st.integers(), count=st.integers(max_value=0))
def test_an_average_over_seemingly_nobody_is_the_middle(halves: int, count: int) -> None:
    assert show(AGE, [halves, count]) == "40.0000"


@given(halves=st.integers(), count=st.integers())
def test_an_average_stays_within_its_bounds(halves: int, count: int) -> None:
    assert Decimal(20) <= Decimal(show(AGE, [halves, count]) or "") <= Decimal(60)
