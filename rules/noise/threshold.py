"""From which noisy number of units on a group found in the data may be shown, so that its name betrays nobody.

A group that exists only because of one unit must pass with so small a chance that all of that unit's groups together
pass with at most δ. (The form is that of Wilson et al., "Differentially Private SQL with Bounded User Contribution",
2020, with the exact tail of the discrete law.)
"""

from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from functools import lru_cache

from rules.noise.measures import Measure
from rules.noise.mechanism import laplace_scale

_PRECISION = 120
_UP = Context(prec=_PRECISION, rounding=ROUND_CEILING)
_DOWN = Context(prec=_PRECISION, rounding=ROUND_FLOOR)


@lru_cache(maxsize=1024)
def find_threshold(units: Measure, delta: Decimal, *, group_size: int = 1, at_least: int = 1) -> int:
    """The smallest τ with P(k + noise ≥ τ) ≤ 1 − (1−δ)^(1/(k·K)), for k units together and K groups of each.

    Where groups of fewer than `at_least` units were left out before, k units more make a group of at_least − 1 + k
    appear, so τ is that much higher.

    Example:
        >>> find_threshold(Measure("units", sensitivity=1, epsilon=Decimal(1)), Decimal("1e-6"))
        15
        >>> find_threshold(Measure("units", sensitivity=40, epsilon=Decimal("0.05")), Decimal("1e-8"))
        17135
    """
    if units.noise != "laplace":
        raise ValueError("a threshold is made for the tail of Laplace noise")
    if not 0 < delta < 1:
        raise ValueError(f"a threshold needs a delta between 0 and 1, not {delta}")
    groups = units.sensitivity * group_size
    scale = Decimal(laplace_scale(groups, units.epsilon))
    return at_least - 1 + group_size + _least_tail(scale, _share_of(delta, groups))


def _share_of(delta: Decimal, groups: int) -> Decimal:
    """1 − (1−δ)^(1/n), rounded down. By Bernoulli it is never less than δ/n, which serves where digits run out."""
    power = _UP.exp(_UP.divide(_UP.ln(_UP.subtract(Decimal(1), delta)), Decimal(groups)))
    slack = Decimal(10) ** (8 - _PRECISION)  # exp and ln round to the nearest digit, whatever the context says
    return max(_DOWN.subtract(Decimal(1), power) - slack, _DOWN.divide(delta, Decimal(groups)))


def _least_tail(scale: Decimal, share: Decimal) -> int:
    """The smallest j ≥ 1 with P(noise ≥ j) = α^j / (1 + α) ≤ share, for α = exp(−1/scale)."""
    alpha = _UP.exp(_UP.minus(_DOWN.divide(Decimal(1), scale)))
    log_share = _DOWN.ln(_DOWN.multiply(share, _DOWN.add(Decimal(1), alpha)))
    least = _UP.multiply(scale, _UP.minus(log_share))
    return max(1, int(least.to_integral_value(ROUND_CEILING)))
