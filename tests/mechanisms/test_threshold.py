"""The threshold: found by its formula, checked by adding up the law itself."""

from decimal import Decimal
from math import exp, expm1, log1p

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.mechanisms.additive import laplace_scale
from rules.mechanisms.release_plan import Measure
from rules.mechanisms.threshold import find_threshold


def tail(scale: float, at_least: int) -> float:
    """P(noise ≥ j) of the discrete Laplace law."""
    alpha = exp(-1 / scale)
    return exp(-at_least / scale) / (1 + alpha) if at_least > 0 else 1 - exp((at_least - 1) / scale) / (1 + alpha)


@given(
    groups=st.integers(1, 40),
    epsilon=st.sampled_from(["0.05", "0.1", "0.5", "1", "2"]),
    delta=st.sampled_from(["1e-9", "1e-6", "0.01", "0.3"]),
    group_size=st.integers(1, 6),
    at_least=st.integers(1, 20),
)
def test_all_groups_that_exist_by_one_unit_pass_together_with_at_most_delta(
    groups: int, epsilon: str, delta: str, group_size: int, at_least: int
) -> None:
    units = Measure("units", groups, Decimal(epsilon))
    threshold = find_threshold(units, Decimal(delta), group_size=group_size, at_least=at_least)

    scale = laplace_scale(groups * group_size, Decimal(epsilon))
    passes = tail(scale, threshold - (at_least - 1 + group_size))
    some_group_passes = -expm1(groups * group_size * log1p(-passes))
    assert some_group_passes <= float(delta) * (1 + 1e-6)


@pytest.mark.parametrize(("groups", "expected"), [(40, 17_135), (3, 1_132), (1, 357)])
def test_thresholds_are_the_published_ones(groups: int, expected: int) -> None:
    assert find_threshold(Measure("units", groups, Decimal("0.05")), Decimal("1e-8")) == expected


def test_the_threshold_is_the_smallest_that_holds() -> None:
    threshold = find_threshold(Measure("units", 1, Decimal(1)), Decimal("1e-6"))
    assert tail(1.0, threshold - 1) <= 1e-6 < tail(1.0, threshold - 2)


@pytest.mark.parametrize("delta", ["0", "1", "-1e-9"])
def test_no_threshold_without_a_delta(delta: str) -> None:
    with pytest.raises(ValueError, match="delta"):
        find_threshold(Measure("units", 1, Decimal(1)), Decimal(delta))


def test_no_threshold_is_made_for_noise_with_another_tail() -> None:
    with pytest.raises(ValueError, match="Laplace"):
        find_threshold(Measure("units", 1, Decimal(1), noise="gaussian", at_most_one=True), Decimal("1e-6"))
