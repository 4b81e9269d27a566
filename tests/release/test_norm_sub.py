"""What is shown of counts is not below zero and adds up, and is as near to what was released as that can be."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from rules.release.outputs import norm_sub

numbers = st.lists(st.integers(-1_000, 1_000), max_size=12)


@given(numbers)
def test_nothing_is_below_zero_and_the_sum_stays(released: list[int]) -> None:
    shown = norm_sub(released)

    assert len(shown) == len(released)
    assert min(shown, default=0) >= 0
    assert sum(shown) == max(0, sum(released))


@given(numbers)
def test_the_order_stays_and_all_give_the_same_but_for_one(released: list[int]) -> None:
    shown = norm_sub(released)

    pairs = sorted(zip(released, shown, strict=True))
    assert all(one <= other + 1 for (_, one), (_, other) in pairwise(pairs))
    given_up = {one - other for one, other in pairs if other > 0}
    assert not given_up or max(given_up) - min(given_up) <= 1


@given(st.lists(st.integers(0, 1_000), max_size=12))
def test_what_is_not_below_zero_is_shown_as_it_was_released(released: list[int]) -> None:
    assert norm_sub(released) == tuple(released)
