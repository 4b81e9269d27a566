"""Draw noise: discrete Laplace and Gaussian laws and the exponential mechanism, all by OpenDP.

Noise is drawn for the known number of groups before the database is asked (how long a draw takes tells of its size),
and added in Python's own integers afterwards. The draws are OpenDP's: exact, from the system's generator.
"""

import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Protocol

import opendp.prelude as dp

from rules.mechanisms.top_groups import Top, gumbel_scale, rho_of_top

dp.enable_features("contrib")

LARGEST_SENSITIVITY = 2**60
LARGEST_VALUE = 2**62  # the inner statements saturate their sums there, and so do we
# OpenDP's noise saturates at ±(2^63 − 1). A sum that is cut at LARGEST_RESULT is the same whether the noise before it
# was cut there or not, because LARGEST_VALUE + LARGEST_RESULT ≤ 2^63 − 1: so the cut is mere post-processing.
LARGEST_RESULT = 2**63 - 1 - LARGEST_VALUE


class Noise(Protocol):
    """A source of noise. The product has one, below; a test may hand in another. No setting switches it off."""

    def draw(self, count: int, *, sensitivity: int, epsilon: Decimal) -> tuple[int, ...]:
        """Independent discrete Laplace draws that make a vector of L1 sensitivity `sensitivity` ε-private."""

    def draw_gaussian(self, count: int, *, squared: int, epsilon: Decimal) -> tuple[int, ...]:
        """Independent discrete Gaussian draws that make a vector ε²/2-zCDP, by the square of its L2 sensitivity."""

    def choose(self, scores: Sequence[int], *, sensitivity: int, epsilon: Decimal) -> int:
        """The index of a score, chosen with weights exp(ε·score / (2·sensitivity))."""

    def choose_top(self, scores: Sequence[int], top: Top, *, group_size: int) -> tuple[int, ...]:
        """The indexes of the largest noised scores, in their order: exponential mechanisms without replacement."""


class OpenDPNoise:
    """Noise from OpenDP."""

    def draw(self, count: int, *, sensitivity: int, epsilon: Decimal) -> tuple[int, ...]:
        if count == 0:
            return ()
        return tuple(_laplace(sensitivity, epsilon)([0] * count))

    def draw_gaussian(self, count: int, *, squared: int, epsilon: Decimal) -> tuple[int, ...]:
        if count == 0:
            return ()
        return tuple(_gaussian(squared, epsilon)([0] * count))

    def choose(self, scores: Sequence[int], *, sensitivity: int, epsilon: Decimal) -> int:
        index: int = _gumbel(sensitivity, epsilon)(list(scores))
        return index

    def choose_top(self, scores: Sequence[int], top: Top, *, group_size: int) -> tuple[int, ...]:
        made = _make_top(top.count, top_scale(top, group_size=group_size))
        return tuple(made(list(scores)))


def add(value: int, noise: int) -> int:
    """The noised number, cut where neither a sum nor a draw can reach without having been cut itself."""
    value = max(-LARGEST_VALUE, min(value, LARGEST_VALUE))
    return max(-LARGEST_RESULT, min(value + noise, LARGEST_RESULT))


def in_whole(noised: int, factor: int) -> int:
    """The nearest whole number to a noised integer that is so many times it, exactly; a tie goes up.

    Example:
        >>> in_whole(7, 1), in_whole(5, 4), in_whole(6, 4), in_whole(-6, 4), in_whole(-7, 4)
        (7, 1, 2, -1, -2)
    """
    return (noised + factor // 2) // factor


@lru_cache(maxsize=1024)
def laplace_scale(sensitivity: int, epsilon: Decimal) -> float:
    """The scale that is really drawn: Δ/ε, rounded up until OpenDP's own map says at most ε.

    Example:
        >>> laplace_scale(1, Decimal("0.5"))
        2.0
        >>> laplace_scale(1, Decimal("0.1")) >= 10
        True
    """
    _check_parameters(sensitivity, epsilon)
    scale = float(Fraction(sensitivity) / Fraction(epsilon))
    while _loss(_make_laplace(scale), sensitivity) > Fraction(epsilon):
        scale = math.nextafter(scale, math.inf)
    return scale


@lru_cache(maxsize=1024)
def gaussian_scale(squared: int, epsilon: Decimal) -> float:
    """The σ that is really drawn with: Δ/ε, rounded up until Δ² times OpenDP's own map(1) is at most ρ = ε²/2.

    On whole numbers ρ is Δ²/2σ² exactly (Canonne, Kamath and Steinke 2020, theorem 14), so Δ² is enough to know.

    Example:
        >>> gaussian_scale(4, Decimal("0.5"))
        4.0
        >>> 10 * 2**0.5 <= gaussian_scale(2, Decimal("0.1")) < 14.1422
        True
    """
    _check_parameters(math.isqrt(squared), epsilon)
    scale = math.sqrt(float(squared)) / float(epsilon)
    while squared * _loss(_make_gaussian(scale), 1.0) > Fraction(epsilon) ** 2 / 2:
        scale = math.nextafter(scale, math.inf)
    return scale


def _check_parameters(sensitivity: int, epsilon: Decimal) -> None:
    if not 1 <= sensitivity <= LARGEST_SENSITIVITY:
        raise ValueError(f"a sensitivity of {sensitivity} is not between 1 and 2^60")
    if not (epsilon.is_finite() and epsilon > 0):
        raise ValueError(f"an epsilon of {epsilon} is not finite and above zero")


@lru_cache(maxsize=1024)
def _laplace(sensitivity: int, epsilon: Decimal) -> dp.Measurement:
    return _make_laplace(laplace_scale(sensitivity, epsilon))


def _make_laplace(scale: float) -> dp.Measurement:
    integers = dp.vector_domain(dp.atom_domain(T="i64"))
    return dp.m.make_laplace(integers, dp.l1_distance(T="i64"), scale=scale)


@lru_cache(maxsize=1024)
def _gaussian(squared: int, epsilon: Decimal) -> dp.Measurement:
    return _make_gaussian(gaussian_scale(squared, epsilon))


def _make_gaussian(scale: float) -> dp.Measurement:
    integers = dp.vector_domain(dp.atom_domain(T="i64"))
    return dp.m.make_gaussian(integers, dp.l2_distance(T="f64"), scale=scale)


@lru_cache(maxsize=1024)
def _gumbel(sensitivity: int, epsilon: Decimal) -> dp.Measurement:
    """OpenDP's exact noisy max with Gumbel noise, which is the exponential mechanism: ε = 2Δ/scale, ρ = ε²/8."""
    _check_parameters(sensitivity, epsilon)
    wanted = 2 * Fraction(sensitivity) / Fraction(epsilon)
    scale = float(wanted)
    while Fraction(scale) < wanted or _loss(_make_gumbel(scale), sensitivity) > Fraction(epsilon) ** 2 / 8:
        scale = math.nextafter(scale, math.inf)
    return _make_gumbel(scale)


def _make_gumbel(scale: float) -> dp.Measurement:
    integers = dp.vector_domain(dp.atom_domain(T="i64"))
    return dp.m.make_noisy_max(
        integers, dp.linf_distance(T="i64"), dp.zero_concentrated_divergence(), scale=scale, negate=False
    )


@lru_cache(maxsize=1024)
def top_scale(top: Top, *, group_size: int) -> float:
    """The scale that is really drawn with, rounded up until OpenDP's own map says at most the ρ that is charged.

    With s ≥ kΔ/ε the choice is ε-private as well, and its ρ is k(Δ/s)²/8 ≤ ε²/8k.

    Example:
        >>> round(top_scale(Top("units", 1, Decimal("0.5"), 10, 100), group_size=1), 9)
        20.0
    """
    sensitivity = top.sensitivity * group_size
    _check_parameters(sensitivity, top.epsilon)
    least = Fraction(top.count * sensitivity) / Fraction(top.epsilon) if top.is_pure else Fraction(0)
    scale, charged = gumbel_scale(top, group_size=group_size), rho_of_top(top)
    while Fraction(scale) < least or _loss(_make_top(top.count, scale), sensitivity) > charged:
        scale = math.nextafter(scale, math.inf)
    return scale


def _make_top(count: int, scale: float) -> dp.Measurement:
    integers = dp.vector_domain(dp.atom_domain(T="i64"))
    return dp.m.make_noisy_top_k(
        integers,
        dp.linf_distance(T="i64", monotonic=True),
        dp.zero_concentrated_divergence(),
        k=count,
        scale=scale,
        negate=False,
    )


def _loss(measurement: dp.Measurement, sensitivity: float) -> Fraction:
    """OpenDP's own bound of the privacy loss, exactly as it says it."""
    return Fraction(measurement.map(sensitivity))  # type: ignore[no-untyped-call]
