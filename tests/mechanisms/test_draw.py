"""The draws: their scale never promises more than it holds, their law is the one claimed, their ends tell nothing."""

import math
from collections import Counter
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.mechanisms.additive import GaussianNoise, LaplaceNoise, gaussian_scale, laplace_scale
from rules.mechanisms.draw import LARGEST_RESULT, LARGEST_SENSITIVITY, LARGEST_VALUE, OpenDPNoise, add

epsilons = st.decimals("0.000001", "10", places=6).filter(lambda epsilon: epsilon > 0)


@given(sensitivity=st.integers(1, LARGEST_SENSITIVITY), epsilon=epsilons)
def test_the_scale_is_never_below_sensitivity_over_epsilon(sensitivity: int, epsilon: Decimal) -> None:
    scale = Fraction(laplace_scale(sensitivity, epsilon))

    wanted = Fraction(sensitivity) / Fraction(epsilon)
    assert wanted <= scale <= wanted * (1 + Fraction(1, 2**50))


@pytest.mark.parametrize("sensitivity", [0, -1, LARGEST_SENSITIVITY + 1])
def test_a_sensitivity_that_cannot_be_noised_is_not_noised(sensitivity: int) -> None:
    with pytest.raises(ValueError, match="sensitivity"):
        OpenDPNoise().draw(LaplaceNoise(sensitivity, Decimal(1)), 1)


@pytest.mark.parametrize("epsilon", ["0", "-1", "NaN", "Infinity"])
def test_an_epsilon_that_means_nothing_is_not_drawn_for(epsilon: str) -> None:
    with pytest.raises(ValueError, match="epsilon"):
        OpenDPNoise().draw(LaplaceNoise(1, Decimal(epsilon)), 1)
    with pytest.raises(ValueError, match="epsilon"):
        OpenDPNoise().draw(GaussianNoise(1, Decimal(epsilon)), 1)
    with pytest.raises(ValueError, match="epsilon"):
        OpenDPNoise().choose([1, 2], sensitivity=1, epsilon=Decimal(epsilon))


def test_draws_follow_the_discrete_laplace_law_of_their_scale() -> None:
    count, epsilon = 40_000, Decimal("0.4")
    drawn = Counter(OpenDPNoise().draw(LaplaceNoise(2, epsilon), count))

    alpha = math.exp(-1 / laplace_scale(2, epsilon))
    cells = {value: (1 - alpha) / (1 + alpha) * alpha ** abs(value) for value in range(-20, 21)}
    statistic = sum((drawn[value] - count * p) ** 2 / (count * p) for value, p in cells.items())
    assert statistic < 130  # chi-square of 41 degrees: 1 run in 10^11 is above


@given(squared=st.integers(1, 2**40) | st.integers(1, 2**60).map(lambda root: root**2), epsilon=epsilons)
def test_sigma_is_never_below_the_root_of_the_square_over_epsilon(squared: int, epsilon: Decimal) -> None:
    """By whole numbers: σ²·ε² ≥ Δ²."""
    sigma = Fraction(gaussian_scale(squared, epsilon))

    assert squared <= sigma**2 * Fraction(epsilon) ** 2 <= squared * (1 + Fraction(1, 2**46))


@pytest.mark.slow
def test_gaussian_draws_follow_the_discrete_gaussian_law_of_their_scale() -> None:
    """P(x) is proportional to exp(−x²/2σ²) on whole numbers; a rounded normal law of this σ would be seen."""
    count, sigma = 40_000, gaussian_scale(1, Decimal("1.25"))
    drawn = Counter(OpenDPNoise().draw(GaussianNoise(1, Decimal("1.25")), count))

    weights = {value: math.exp(-(value**2) / (2 * sigma**2)) for value in range(-50, 51)}
    whole = sum(weights.values())
    assert chi_square(drawn, {value: weights[value] / whole * count for value in range(-2, 3)}) < 60  # 1 run in 10^11
    rounded = {
        value: count * (math.erf((value + 0.5) / sigma / 2**0.5) - math.erf((value - 0.5) / sigma / 2**0.5)) / 2
        for value in range(-2, 3)
    }
    assert chi_square(drawn, rounded) > 100  # it is around 255: 1 run in 10^9 is below


@pytest.mark.slow
def test_wide_gaussian_draws_follow_their_law_too() -> None:
    count, sigma = 40_000, gaussian_scale(365, Decimal("0.5"))
    drawn = OpenDPNoise().draw(GaussianNoise(365, Decimal("0.5")), count)

    cells = Counter(value // 10 for value in drawn)
    weights = {value: math.exp(-(value**2) / (2 * sigma**2)) for value in range(-500, 500)}
    whole = sum(weights.values())
    expected = {
        cell: sum(weights[10 * cell + number] for number in range(10)) / whole * count for cell in range(-11, 11)
    }
    assert chi_square(cells, expected) < 100  # 22 degrees: 1 run in 10^11 is above


def chi_square(drawn: Counter[int], expected: dict[int, float]) -> float:
    return sum((drawn[value] - number) ** 2 / number for value, number in expected.items())


@pytest.mark.slow
def test_choices_follow_the_exponential_mechanism() -> None:
    scores, count = [0, 4, 6], 6_000
    source = OpenDPNoise()
    chosen = Counter(source.choose(scores, sensitivity=2, epsilon=Decimal(1)) for _ in range(count))

    weights = [math.exp(score / 4) for score in scores]
    expected = [count * weight / sum(weights) for weight in weights]
    statistic = sum((chosen[index] - number) ** 2 / number for index, number in enumerate(expected))
    assert statistic < 50  # chi-square of 2 degrees: 1 run in 10^10 is above


@given(value=st.integers(-(2**64), 2**64), noise=st.integers(-(2**70), 2**70))
def test_a_draw_that_was_cut_by_the_library_changes_no_result(value: int, noise: int) -> None:
    """Otherwise a saturated draw added to a number would show that number exactly."""
    cut = max(-(2**63) + 1, min(noise, 2**63 - 1))
    assert add(value, cut) == add(value, noise)
    assert abs(add(value, noise)) <= LARGEST_RESULT


def test_large_numbers_move_only_as_far_as_the_rows_moved_them() -> None:
    assert add(2**80, -5) == LARGEST_VALUE - 5
    assert add(LARGEST_VALUE, 2**63 - 1) == LARGEST_RESULT
