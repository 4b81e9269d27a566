"""Add up costs over an adaptive sequence of releases, and tell when one more still fits.

Two additive filters run side by side: basic composition (Σε ≤ ε) and, where there is a δ, zero-concentrated
differential privacy (ε(Σρ) ≤ ε at δ_c). A release is granted when δ suffices and either filter grants it. That holds
because δ has to cover (1 − e^(ε−L))₊ only, in expectation over the loss L: where L is above ε the basic sum has passed
ε too, so the zCDP filter held to the end, and such runs are runs of a process that stops at that filter. Only filters
valid for adaptive parameters are used (Rogers, Roth, Ullman and Vadhan 2016; Feldman and Zrnic 2021).
"""

import math
from collections.abc import Callable, Iterable
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from functools import lru_cache

from rules.frozen import frozen
from rules.mechanisms.cost import UPWARD, Mechanism

_UP = Context(prec=32, rounding=ROUND_CEILING)
_DOWN = Context(prec=32, rounding=ROUND_FLOOR)
_SLACK = Decimal("1e-20")  # ln rounds to the nearest digit, whatever the context says
_JUST_BELOW = Decimal(1) - _SLACK  # so does sqrt


@frozen
class Totals:
    """The sums that an account has paid in one period."""

    epsilon: Decimal = Decimal(0)
    delta: Decimal = Decimal(0)
    rho: Decimal = Decimal(0)
    pure: bool = True  # False once a release without pure ε is among them: then Σε is infinite

    def plus(self, mechanisms: Iterable[Mechanism]) -> "Totals":
        """These totals with some draws more. Sums are exact, or rounded up."""
        epsilon, delta, rho, pure = self.epsilon, self.delta, self.rho, self.pure
        for mechanism in mechanisms:
            pure = pure and mechanism.epsilon is not None
            epsilon = UPWARD.add(epsilon, mechanism.epsilon or Decimal(0))
            delta = UPWARD.add(delta, mechanism.delta)
            rho = UPWARD.add(rho, mechanism.rho)
        return Totals(epsilon, delta, rho, pure)


@frozen
class Limit:
    """An (ε, δ) that the totals of a period may not pass. Half of δ is the conversion's, fixed once and for all."""

    epsilon: Decimal
    delta: Decimal = Decimal(0)

    @property
    def conversion_delta(self) -> Decimal:
        return _DOWN.divide(self.delta, Decimal(2))


def fits(totals: Totals, limit: Limit) -> bool:
    """Return whether these totals, the new release among them, are within the limit."""
    if totals.delta > _DOWN.subtract(limit.delta, limit.conversion_delta):
        return False
    if totals.pure and totals.epsilon <= limit.epsilon:
        return True
    return limit.conversion_delta > 0 and totals.rho <= largest_rho(limit.epsilon, limit.conversion_delta)


def loss(totals: Totals, limit: Limit) -> Decimal:
    """The ε that is spent by the better of the two filters."""
    bounds = [totals.epsilon] if totals.pure else []
    if limit.conversion_delta > 0 and totals.rho > 0:
        bounds.append(epsilon_of(totals.rho, limit.conversion_delta))
    return min(bounds, default=Decimal("Infinity"))


def grantable(totals: Totals, limit: Limit) -> Decimal:
    """The ε of the largest pure release that still fits; a little below it, for one that costs ρ = ε²/2."""
    if totals.delta > _DOWN.subtract(limit.delta, limit.conversion_delta):
        return Decimal(0)
    basic = _DOWN.subtract(limit.epsilon, totals.epsilon) if totals.pure else Decimal(0)
    rho = Decimal(0)
    if limit.conversion_delta > 0:
        rho = max(rho, _DOWN.subtract(largest_rho(limit.epsilon, limit.conversion_delta), totals.rho))
    by_rho = _DOWN.multiply(_DOWN.sqrt(_DOWN.multiply(rho, Decimal(2))), _JUST_BELOW)
    return max(Decimal(0), basic, by_rho)


@lru_cache(maxsize=256)
def largest_rho(epsilon: Decimal, delta: Decimal) -> Decimal:
    """The largest ρ that still means (ε, δ), rounded down."""
    wanted, constant = float(epsilon), _constant_in_floats(delta)
    order = _best(lambda alpha: (constant(alpha) - wanted) / alpha, math.log(1e-6), math.log(1e9))
    return max(Decimal(0), _DOWN.divide(_DOWN.subtract(epsilon, _constant(order, delta)), order))


@lru_cache(maxsize=1024)
def epsilon_of(rho: Decimal, delta: Decimal) -> Decimal:
    """The ε that ρ-zCDP means at δ, rounded up.

    For every order α > 1: ε = αρ + (ln(1/δ) + (α−1)·ln(α−1) − α·ln α) / (α−1) (Canonne, Kamath and Steinke 2020,
    proposition 12). Any order is sound, so a good one may be searched for in floats, near the simple conversion's.
    """
    slope, constant = float(rho), _constant_in_floats(delta)
    simple = math.log(-float(delta.ln(_DOWN)) / slope) / 2
    order = _best(lambda alpha: alpha * slope + constant(alpha), simple - 2, simple + 2)
    return max(Decimal(0), _UP.add(_UP.multiply(order, rho), _constant(order, delta)))


def _constant(order: Decimal, delta: Decimal) -> Decimal:
    """The part of ε(α) without ρ, rounded up."""
    less = _UP.subtract(order, Decimal(1))
    excess = _UP.subtract(_UP.multiply(less, _UP.ln(less)), _DOWN.multiply(order, _DOWN.ln(order)))
    return _UP.add(_UP.divide(_UP.subtract(excess, _DOWN.ln(delta)), less), _SLACK)


def _constant_in_floats(delta: Decimal) -> Callable[[float], float]:
    logarithm = float(-_DOWN.ln(delta))
    return lambda alpha: (logarithm + (alpha - 1) * math.log(alpha - 1) - alpha * math.log(alpha)) / (alpha - 1)


def _best(cost: Callable[[float], float], low: float, high: float) -> Decimal:
    """The order α with the least cost: a ternary search over ln(α−1), where the cost has one valley."""
    while high - low > 1e-3:
        left, right = low + (high - low) / 3, high - (high - low) / 3
        if cost(1 + math.exp(left)) < cost(1 + math.exp(right)):
            high = right
        else:
            low = left
    return Decimal(1 + math.exp((low + high) / 2))
