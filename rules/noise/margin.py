"""How far noise moves an answer: the distance within which a stated share of answers lies.

Only noise is in a margin. What clamping, truncation and thresholds take away is not.
"""

import math
from collections.abc import Sequence
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from functools import lru_cache

import numpy as np

from rules.noise.measures import Block, CentredSum, Count, Output, Sum
from rules.noise.mechanism import laplace_scale
from rules.sql.commands import CONFIDENCE

_UP = Context(prec=60, rounding=ROUND_CEILING)


@lru_cache(maxsize=1024)
def margin_of_draw(scale: float, level: Decimal = CONFIDENCE) -> int:
    """The smallest t with P(|noise| ≤ t) ≥ level, for one discrete Laplace draw: P(|noise| > t) = 2α^(t+1) / (1+α).

    Example:
        >>> margin_of_draw(10.0)
        30
    """
    alpha = _UP.exp(_UP.divide(Decimal(-1), Decimal(scale)))
    tail = _UP.divide(_UP.multiply(1 - level, _UP.add(Decimal(1), alpha)), Decimal(2))
    return max(0, int(_UP.multiply(-_UP.ln(tail), Decimal(scale)).to_integral_value(ROUND_CEILING)) - 1)


def margin_of_sum(scales: Sequence[float], level: float = float(CONFIDENCE)) -> float:
    """The margin of a sum of independent Laplace draws: from its characteristic function, by bisection."""
    if len(scales) == 1:
        return -scales[0] * math.log1p(-level)
    spread = math.sqrt(sum(2 * scale**2 for scale in scales))
    relative = np.array(scales) / spread
    low, high = 0.0, 20.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if _share_within(middle, relative) >= level else (middle, high)
    return high * spread


def percent(level: Decimal) -> str:
    """A level in words.

    Example:
        >>> percent(Decimal("0.950")), percent(Decimal("0.999"))
        ('95%', '99.9%')
    """
    return f"{(level * 100).normalize():f}%"


def margin_of_output(block: Block, output: Output, *, group_size: int = 1) -> Fraction | None:
    """The margin, at the block's level, of one draw or a sum of two; None where it depends on the answer itself."""
    match output:
        case Count(measure=measure):
            return Fraction(_margin(block, measure, group_size))
        case Sum(measure=measure, step=step):
            return _margin(block, measure, group_size) * step
        case CentredSum():
            return _margin_of_centred(block, output, group_size)
        case _:
            return None


def _margin_of_centred(block: Block, output: CentredSum, group_size: int) -> Fraction:
    scales = [_scale(block, output.halves, group_size), _scale(block, output.count, group_size) * abs(output.middle)]
    return Fraction(margin_of_sum(scales, float(block.level))) * output.step / 2


def _scale(block: Block, index: int, group_size: int) -> float:
    measure = block.measures[index]
    return laplace_scale(measure.sensitivity * group_size, measure.epsilon)


def _margin(block: Block, index: int, group_size: int) -> int:
    return margin_of_draw(_scale(block, index, group_size), block.level)


def _share_within(distance: float, scales: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
    """P(|S| ≤ x) = 2/π ∫ sin(xt)/t · φ(t) dt (Gil-Pelaez 1951), for two or more draws: φ falls as t^−4."""
    t = np.linspace(1e-9, 100.0, 20_001)
    characteristic = np.ones_like(t)
    for scale in scales:
        characteristic /= 1 + (scale * t) ** 2
    return float(2 / math.pi * np.trapezoid(np.sin(distance * t) / t * characteristic, t))
