"""Shares of ε: never more than there was, and short enough to be added exactly for ever."""

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.mechanisms.cost import share


@given(
    epsilon=st.decimals("0.000001", "10", places=9).filter(lambda epsilon: epsilon > 0),
    weights=st.lists(st.fractions(min_value=Fraction(1, 1000), max_value=1000), min_size=1, max_size=30),
)
def test_shares_are_positive_and_together_at_most_the_whole(epsilon: Decimal, weights: list[Fraction]) -> None:
    shares = share(epsilon, weights)

    assert sum(map(Fraction, shares)) <= Fraction(epsilon)
    assert sum(map(Fraction, shares)) >= Fraction(epsilon) * (1 - Fraction(1, 10**10))
    assert all(share > 0 and len(share.as_tuple().digits) <= 12 for share in shares)


def test_every_measure_has_a_weight() -> None:
    with pytest.raises(ValueError, match="weight"):
        share(Decimal(1), [Fraction(1), Fraction(0)])
