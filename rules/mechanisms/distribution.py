"""The law of noise, once it is drawn: of one draw, and of draws that are multiplied, added up and rounded.

Only margins and error bars are computed from it, in floats: what is private is decided by `mechanism` and `cost`.
"""

import math
from collections import Counter
from collections.abc import Sequence
from decimal import ROUND_CEILING, Context, Decimal
from functools import lru_cache
from statistics import NormalDist
from typing import Self

import numpy as np
from numpy.fft import irfft  # by name: numpy reads it from the disk at first use, which a planner process may not

from rules.frozen import frozen, replace

Vector = np.ndarray[tuple[int], np.dtype[np.float64]]

_UP = Context(prec=60, rounding=ROUND_CEILING)
_WIDEST = 20.0  # standard deviations, beyond which no law here has 1e-12 of itself
_FAR = Decimal("0.001")  # of the noise is told by series, less by bounds
_SLOPES = 256  # that are tried in a bound of sums
_STEPS = 2048


@frozen
class Distribution:
    """Of a sum of independent draws: Laplace ones, by their scales and how many there are of each, and a normal part.

    Draws are whole numbers. Where they are what is asked for, P(|noise| ≤ t) is taken to be that of a continuous law at
    t + ½, as for a number that was rounded; for a single Laplace draw the exact law is at hand.

    A draw that was made for finer integers, F of which are one, and then rounded is such a number. It is exactly that:
    N of the discrete Laplace law with α = exp(−1/F·s) is rounded to more than k where N ≥ F(k+½), and to less than −k
    where N < −F(k+½), so P(|rounded| > k) = (α^(F(k+½)) + α^(F(k+½)+1)) / (1+α) = exp(−(k+½)/s), for F = 2, 4, 8, …
    (A tie goes up, which moves the mean by less than 1/2F.) In sums each rounding adds a twelfth to the variance: the
    last one is what t + ½ stands for.
    """

    laplace: tuple[tuple[float, int], ...] = ()
    variance: float = 0.0  # of the normal part
    roundings: float = 0.0  # how many of them there are, each weighted by the square of what it was multiplied by

    @classmethod
    def of_laplace(cls, scale: float, *, is_rounded: bool = False) -> Self:
        return cls(((scale, 1),), roundings=float(is_rounded))

    @property
    def deviation(self) -> float:
        """The standard deviation."""
        return math.sqrt(self._normal + sum(2 * count * scale**2 for scale, count in self.laplace))

    @property
    def _normal(self) -> float:
        """The variance of the normal part with that of all roundings."""
        return self.variance + self.roundings / 12

    def times(self, factor: float) -> "Distribution":
        """Of so many times the noise."""
        scales = tuple((scale * abs(factor), count) for scale, count in self.laplace)
        return Distribution(scales, self.variance * factor**2, self.roundings * factor**2)

    def plus(self, other: "Distribution") -> "Distribution":
        """Of a sum with independent noise."""
        counts = Counter(dict(self.laplace))
        counts.update(dict(other.laplace))
        variance, roundings = self.variance + other.variance, self.roundings + other.roundings
        return Distribution(tuple(sorted(counts.items())), variance, roundings)

    def rounded(self) -> "Distribution":
        """Of the noise in a number that is rounded once more."""
        return replace(self, roundings=self.roundings + 1)

    def repeated(self, count: int) -> "Distribution":
        """Of a sum of so many draws like this."""
        scales = tuple((scale, entry * count) for scale, entry in self.laplace)
        return Distribution(scales, self.variance * count, self.roundings * count)

    def within(self, share: float) -> float:
        """The distance from zero within which this share of the noise lies, taken as continuous.

        Example:
            >>> round(Distribution.of_laplace(1.0).within(0.95), 2), round(Distribution(variance=1.0).within(0.95), 2)
            (3.0, 1.96)
        """
        return self._distances([share])[0]

    def margin(self, level: Decimal) -> int:
        """The smallest whole t with P(|noise| ≤ t) ≥ level.

        Example:
            >>> Distribution.of_laplace(10.0).margin(Decimal("0.95"))
            30
            >>> Distribution(variance=100.0).margin(Decimal("0.95"))
            20
            >>> Distribution.of_laplace(10.0, is_rounded=True).margin(Decimal("0.95"))
            30
        """
        if (scale := self._single) is not None:
            return _margin_of_draw(scale, level)
        return _rounded(*self._before_rounding._distances([float(level)]))

    def reach(self, missed: Decimal) -> float:
        """A distance that the noise is beyond in at most this share of draws, however small that is.

        Far out, where the series below is not exact enough, by Chernoff's bound, P(S > t) ≤ exp(−λt)·E[exp(λS)], at the
        best of some λ.

        Example:
            >>> Distribution.of_laplace(10.0).reach(Decimal("0.05"))
            30.0
            >>> [round(Distribution.of_laplace(10.0).repeated(4).reach(Decimal(missed))) for missed in ("0.05", "1e-6")]
            [57, 231]
        """
        if (scale := self._single) is not None:
            return float(_margin_of_draw(scale, 1 - missed))
        if not self.laplace:
            return -NormalDist().inv_cdf(float(missed) / 2) * math.sqrt(self._normal)
        if missed >= _FAR:
            return float(self.margin(1 - missed))
        return _chernoff_reach(self.laplace, self._normal, float(missed))

    def quantiles(self, shares: Sequence[float]) -> list[int]:
        """For each share ≥ ½ the smallest whole t with P(noise ≤ t) ≥ share.

        A tie is rounded up, so a rounded number lies above zero a little more often than below (by α, which is near 1):
        each side is taken to have half of P(|noise| > t).
        """
        if (scale := self._single) is not None:
            return [_quantile_of_draw(scale, share) for share in shares]
        distances = self._before_rounding._distances([2 * share - 1 for share in shares])
        return [_rounded(distance) for distance in distances]

    @property
    def _single(self) -> float | None:
        """The scale of a single Laplace draw that is what was drawn."""
        match self:
            case Distribution(laplace=((scale, 1),), variance=0.0, roundings=0.0):
                return scale
        return None

    @property
    def _before_rounding(self) -> "Distribution":
        """Of a whole number before the last rounding."""
        return replace(self, roundings=max(0.0, self.roundings - 1))

    def _distances(self, shares: Sequence[float]) -> list[float]:
        if (scale := self._single) is not None:
            return [-scale * math.log1p(-share) for share in shares]
        deviation = self.deviation
        shape = tuple((scale / deviation, count) for scale, count in self.laplace)
        within = _shape(shape, self._normal / deviation**2)
        distances = np.linspace(0.0, _WIDEST, _STEPS + 1)
        return [float(float64) * deviation for float64 in np.interp(shares, within, distances)]


@lru_cache(maxsize=1024)
def _chernoff_reach(laplace: tuple[tuple[float, int], ...], variance: float, missed: float) -> float:
    """The distance at which the bound is half of what may be missed, on either side."""
    widest = max(scale for scale, _ in laplace)
    slopes = np.arange(1, _SLOPES) / (_SLOPES * widest)
    moments = variance * slopes**2 / 2
    for scale, count in laplace:
        moments -= count * np.log1p(-((slopes * scale) ** 2))
    return float(np.min((moments - math.log(missed / 2)) / slopes))


def _rounded(distance: float) -> int:
    return max(0, math.ceil(distance - 0.5))


@lru_cache(maxsize=1024)
def _margin_of_draw(scale: float, level: Decimal) -> int:
    """For one discrete Laplace draw: P(|noise| > t) = 2α^(t+1) / (1+α)."""
    alpha = _UP.exp(_UP.divide(Decimal(-1), Decimal(scale)))
    tail = _UP.divide(_UP.multiply(1 - level, _UP.add(Decimal(1), alpha)), Decimal(2))
    return max(0, int(_UP.multiply(-_UP.ln(tail), Decimal(scale)).to_integral_value(ROUND_CEILING)) - 1)


def _quantile_of_draw(scale: float, share: float) -> int:
    """The smallest t with P(noise ≤ t) = 1 − α^(t+1) / (1+α) ≥ share, for a discrete Laplace draw and share ≥ ½."""
    alpha = math.exp(-1 / scale)
    return max(0, math.ceil(-scale * math.log((1 - share) * (1 + alpha))) - 1)


@lru_cache(maxsize=256)
def _shape(laplace: tuple[tuple[float, int], ...], variance: float) -> Vector:
    """P(|S| ≤ x) at equal steps of x up to W, for S of variance 1, from its characteristic function φ.

    As a Fourier series of the law wrapped around at ±W: x/W + Σ 2/(πk)·φ(πk/W)·sin(πkx/W), k = 1, 2, … The rest of the
    series is less than 1e-5, since φ(t) falls at least as 1/(1 + t²/2).
    """
    k = np.arange(1, _STEPS)
    t = math.pi * k / _WIDEST
    characteristic = np.exp(-variance * t**2 / 2)
    for scale, count in laplace:
        characteristic *= (1 + (scale * t) ** 2) ** -float(count)
    terms = np.zeros(_STEPS + 1, dtype=np.complex128)
    terms[1:-1] = -1j * _STEPS * 2 / (math.pi * k) * characteristic
    sines = irfft(terms, 2 * _STEPS)[: _STEPS + 1]
    within: Vector = np.maximum.accumulate(np.clip(np.linspace(0.0, 1.0, _STEPS + 1) + sines, 0.0, 1.0))
    return within
