"""The law of noise, once it is drawn: of one draw, and of draws that are multiplied, added up and rounded.

Only margins and error bars are computed from it, in floats: what is private is decided by `mechanism` and `cost`.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from functools import lru_cache
from typing import Self

import numpy as np

Vector = np.ndarray[tuple[int], np.dtype[np.float64]]

_UP = Context(prec=60, rounding=ROUND_CEILING)
_WIDEST = 20.0  # standard deviations, beyond which no law here has 1e-12 of itself
_STEPS = 2048


@dataclass(frozen=True, slots=True)
class Law:
    """Of a sum of independent draws: Laplace ones, by their scales and how many there are of each, and a normal part.

    Draws are whole numbers. Where they are what is asked for, P(|noise| ≤ t) is taken to be that of a continuous law at
    t + ½, as for a number that was rounded; for a single Laplace draw the exact law is at hand.
    """

    laplace: tuple[tuple[float, int], ...] = ()
    variance: float = 0.0  # of the normal part

    @classmethod
    def of_laplace(cls, scale: float) -> Self:
        return cls(((scale, 1),))

    @property
    def deviation(self) -> float:
        """The standard deviation."""
        return math.sqrt(self.variance + sum(2 * count * scale**2 for scale, count in self.laplace))

    def times(self, factor: float) -> "Law":
        """Of so many times the noise."""
        scales = tuple((scale * abs(factor), count) for scale, count in self.laplace)
        return Law(scales, self.variance * factor**2)

    def plus(self, other: "Law") -> "Law":
        """Of a sum with independent noise."""
        counts = Counter(dict(self.laplace))
        counts.update(dict(other.laplace))
        return Law(tuple(sorted(counts.items())), self.variance + other.variance)

    def repeated(self, count: int) -> "Law":
        """Of a sum of so many draws like this."""
        return Law(tuple((scale, each * count) for scale, each in self.laplace), self.variance * count)

    def within(self, share: float) -> float:
        """The distance from zero within which this share of the noise lies, taken as continuous.

        Example:
            >>> round(Law.of_laplace(1.0).within(0.95), 2), round(Law(variance=1.0).within(0.95), 2)
            (3.0, 1.96)
        """
        return self._distances([share])[0]

    def margin(self, level: Decimal) -> int:
        """The smallest whole t with P(|noise| ≤ t) ≥ level.

        Example:
            >>> Law.of_laplace(10.0).margin(Decimal("0.95")), Law(variance=100.0).margin(Decimal("0.95"))
            (30, 20)
        """
        if (scale := self._single) is not None:
            return _margin_of_draw(scale, level)
        return _rounded(self.within(float(level)))

    def quantiles(self, shares: Sequence[float]) -> list[int]:
        """For each share ≥ ½ the smallest whole t with P(noise ≤ t) ≥ share."""
        if (scale := self._single) is not None:
            return [_quantile_of_draw(scale, share) for share in shares]
        return [_rounded(distance) for distance in self._distances([2 * share - 1 for share in shares])]

    @property
    def _single(self) -> float | None:
        """The scale of a single Laplace draw."""
        match self:
            case Law(laplace=((scale, 1),), variance=0.0):
                return scale
        return None

    def _distances(self, shares: Sequence[float]) -> list[float]:
        if (scale := self._single) is not None:
            return [-scale * math.log1p(-share) for share in shares]
        deviation = self.deviation
        shape = tuple((scale / deviation, count) for scale, count in self.laplace)
        within = _shape(shape, self.variance / deviation**2)
        distances = np.linspace(0.0, _WIDEST, _STEPS + 1)
        return [float(each) * deviation for each in np.interp(shares, within, distances)]


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
    sines = np.fft.irfft(terms, 2 * _STEPS)[: _STEPS + 1]
    within: Vector = np.maximum.accumulate(np.clip(np.linspace(0.0, 1.0, _STEPS + 1) + sines, 0.0, 1.0))
    return within
