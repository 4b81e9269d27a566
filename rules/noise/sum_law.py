"""The law of a sum of equally scaled Laplace draws, such as a total over groups has for its noise."""

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

Vector = np.ndarray[tuple[int], np.dtype[np.float64]]

_NORMAL_FROM = 200  # draws: a sum of more is as good as normal, its excess kurtosis being 3 / draws
_WIDEST = 12.0  # standard deviations


def quantile_of_sum(draws: int, shares: Sequence[float]) -> list[float]:
    """For each share ≥ 1/2 the t with P(sum ≤ t) = share, in units of the scale of one draw.

    Example:
        >>> [round(each, 2) for each in quantile_of_sum(1, [0.5, 0.975])]  # the second is log(20)
        [0.0, 3.0]
    """
    distances, within = _law(min(draws, _NORMAL_FROM))
    relative = np.interp([2 * share - 1 for share in shares], within, distances)
    return [float(each) * math.sqrt(2 * draws) for each in relative]


@lru_cache(maxsize=256)
def _law(draws: int) -> tuple[Vector, Vector]:
    """P(|S| ≤ x) = 2/π ∫ sin(xt)/t · φ(t) dt (Gil-Pelaez 1951), for S of variance 1: φ(t) = (1 + t²/2n)^−n."""
    distances = np.linspace(0.0, _WIDEST, 601)
    if draws == 1:
        return distances, 1 - np.exp(-distances * math.sqrt(2))
    t = np.linspace(1e-9, 60.0, 6_001)
    characteristic = (1 + t**2 / (2 * draws)) ** -draws / t
    within = np.array([2 / math.pi * np.trapezoid(np.sin(x * t) * characteristic, t) for x in distances])
    return distances, np.maximum.accumulate(np.clip(within, 0.0, 1.0))
