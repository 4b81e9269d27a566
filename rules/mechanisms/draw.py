"""Draw noise: that which is added, whatever its law, and that of the exponential mechanism, all by OpenDP.

Noise is drawn for the known number of groups before the database is asked (how long a draw takes tells of its size),
and added in Python's own integers afterwards. The draws are OpenDP's: exact, from the system's generator.
"""

import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Protocol

import opendp.prelude as dp

from rules.frozen import replace
from rules.mechanisms.release_plan import Top, gumbel_scale

dp.enable_features("contrib")

INTEGERS = dp.vector_domain(dp.atom_domain(T="i64"))

LARGEST_SENSITIVITY = 2**60
LARGEST_VALUE = 2**62  # the inner statements saturate their sums there, and so do we
# OpenDP's noise saturates at ±(2^63 − 1). A sum that is cut at LARGEST_RESULT is the same whether the noise before it
# was cut there or not, because LARGEST_VALUE + LARGEST_RESULT ≤ 2^63 − 1: so the cut is mere post-processing.
LARGEST_RESULT = 2**63 - 1 - LARGEST_VALUE


class Drawable(Protocol):
    """Noise that is added, as OpenDP draws it: `additive` has its laws."""

    @property
    def measurement(self) -> dp.Measurement:
        """What OpenDP draws with: its own map says at most the loss that is charged."""


class Noise(Protocol):
    """A source of noise. The product has one, below; a test may hand in another. No setting switches it off."""

    def draw(self, noise: Drawable, count: int) -> tuple[int, ...]:
        """Independent draws, so many, of noise for one vector."""

    def choose(self, scores: Sequence[int], *, sensitivity: int, epsilon: Decimal) -> int:
        """The index of a score, chosen with weights exp(ε·score / (2·sensitivity))."""

    def choose_top(self, scores: Sequence[int], top: Top, *, group_size: int) -> tuple[int, ...]:
        """The indexes of the largest noised scores, in their order: exponential mechanisms without replacement."""


class OpenDPNoise:
    """Noise from OpenDP."""

    def draw(self, noise: Drawable, count: int) -> tuple[int, ...]:
        return tuple(noise.measurement([0] * count)) if count else ()

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


def calibrated(scale: float, is_enough: Callable[[float], bool]) -> float:
    """The scale, rounded up until it is enough: by OpenDP's own bound of the loss."""
    while not is_enough(scale):
        scale = math.nextafter(scale, math.inf)
    return scale


def check_parameters(sensitivity: int, epsilon: Decimal) -> None:
    if not 1 <= sensitivity <= LARGEST_SENSITIVITY:
        raise ValueError(f"a sensitivity of {sensitivity} is not between 1 and 2^60")
    if not (epsilon.is_finite() and epsilon > 0):
        raise ValueError(f"an epsilon of {epsilon} is not finite and above zero")


def loss(measurement: dp.Measurement, sensitivity: float) -> Fraction:
    """OpenDP's own bound of the privacy loss, exactly as it says it."""
    return Fraction(measurement.map(sensitivity))  # type: ignore[no-untyped-call]


@lru_cache(maxsize=1024)
def _gumbel(sensitivity: int, epsilon: Decimal) -> dp.Measurement:
    """OpenDP's exact noisy max with Gumbel noise, which is the exponential mechanism: ε = 2Δ/scale, ρ = ε²/8."""
    check_parameters(sensitivity, epsilon)
    wanted, charged = 2 * Fraction(sensitivity) / Fraction(epsilon), Fraction(epsilon) ** 2 / 8

    def is_enough(scale: float) -> bool:
        return Fraction(scale) >= wanted and loss(_make_gumbel(scale), sensitivity) <= charged

    return _make_gumbel(calibrated(float(wanted), is_enough))


def _make_gumbel(scale: float) -> dp.Measurement:
    return dp.m.make_noisy_max(
        INTEGERS, dp.linf_distance(T="i64"), dp.zero_concentrated_divergence(), scale=scale, negate=False
    )


def rho_of_top(top: Top) -> Fraction:
    """The ρ that a choice is charged with: k(Δ/s)²/8, by its scale."""
    squared = Fraction(top.epsilon) ** 2
    return squared / (8 * top.count) if top.is_pure else squared / 2


def top_scale(top: Top, *, group_size: int) -> float:
    """The scale that is really drawn with, rounded up until OpenDP's own map says at most the ρ that is charged.

    With s ≥ kΔ/ε the choice is ε-private as well, and its ρ is k(Δ/s)²/8 ≤ ε²/8k.

    Example:
        >>> round(top_scale(Top("units", 1, Decimal("0.5"), 10, 100), group_size=1), 9)
        20.0
    """
    return _top_scale(replace(top, name=""), group_size)


@lru_cache(maxsize=1024)
def _top_scale(top: Top, group_size: int) -> float:
    sensitivity = top.sensitivity * group_size
    check_parameters(sensitivity, top.epsilon)
    least = Fraction(top.count * sensitivity) / Fraction(top.epsilon) if top.is_pure else Fraction(0)
    charged = rho_of_top(top)

    def is_enough(scale: float) -> bool:
        return Fraction(scale) >= least and loss(_make_top(top.count, scale), sensitivity) <= charged

    return calibrated(gumbel_scale(top, group_size=group_size), is_enough)


def _make_top(count: int, scale: float) -> dp.Measurement:
    return dp.m.make_noisy_top_k(
        INTEGERS,
        dp.linf_distance(T="i64", monotonic=True),
        dp.zero_concentrated_divergence(),
        k=count,
        scale=scale,
        negate=False,
    )
