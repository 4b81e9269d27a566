"""The laws of randomized response: how often a report says what is so, and how often what is not.

A float cannot be the nominal probability, and by OpenDP's own map the nearest one loses more than ε in most settings,
by an ulp. So probabilities move towards more noise until the map, read as an exact decimal, is at most ε. Reports and
estimates take them from here, so an estimate undoes what was done.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

import opendp.prelude as dp

dp.enable_features("contrib")

MOST_EPSILON = Decimal(30)


@dataclass(frozen=True, slots=True)
class Law:
    """With chance p a report matches a value that is held, with chance q one that is not. Its loss is at most ε."""

    p: Fraction
    q: Fraction
    loss: Decimal


@lru_cache(maxsize=256)
def kary_law(values: int, epsilon: Decimal) -> Law:
    """Of one of k values: the own one with p, any other with (1 − p)/(k − 1).

    Example:
        >>> law = kary_law(2, Decimal(1))
        >>> round(float(law.p), 4), law.loss <= 1
        (0.7311, True)
    """
    check(epsilon)
    if values < 2:
        raise ValueError("a randomized answer needs at least two values")
    grown = math.exp(float(epsilon))
    categories = list(map(str, range(values)))
    p = _lowered(lambda prob: dp.m.make_randomized_response(categories, prob), grown / (grown + values - 1), epsilon)
    return Law(Fraction(p), (1 - Fraction(p)) / (values - 1), _loss(dp.m.make_randomized_response(categories, p)))


@lru_cache(maxsize=256)
def bit_law(epsilon: Decimal) -> Law:
    """Of yes or no: as it is with p.

    Example:
        >>> bit_law(Decimal(1)).loss <= 1 < Decimal(dp.m.make_randomized_response_bool(1 / (1 + math.exp(-1))).map(1))
        True
    """
    check(epsilon)
    grown = math.exp(float(epsilon))
    p = _lowered(dp.m.make_randomized_response_bool, grown / (grown + 1), epsilon)
    return Law(Fraction(p), 1 - Fraction(p), _loss(dp.m.make_randomized_response_bool(p)))


@lru_cache(maxsize=256)
def unary_law(epsilon: Decimal) -> Law:
    """Of a bit for each value, of which one is set: each bit is flipped with f/2. Two values differ in two bits."""
    check(epsilon)
    f = 2 / (math.exp(float(epsilon) / 2) + 1)
    while _loss(unary_mechanism(f)) > epsilon:
        f = math.nextafter(f, 1)
    return Law(1 - Fraction(f) / 2, Fraction(f) / 2, _loss(unary_mechanism(f)))


def unary_mechanism(f: float) -> dp.Measurement:
    return dp.m.make_randomized_response_bitvec(dp.bitvector_domain(max_weight=1), dp.discrete_distance(), f)


def check(epsilon: Decimal) -> None:
    """Refuse an ε of which there is no law."""
    if not 0 < epsilon <= MOST_EPSILON:
        raise ValueError(f"the epsilon of a local report must lie above 0 and be at most {MOST_EPSILON}")


def _lowered(make: Callable[[float], dp.Measurement], p: float, epsilon: Decimal) -> float:
    while _loss(make(p)) > epsilon:
        p = math.nextafter(p, 0)
    return p


def _loss(mechanism: dp.Measurement) -> Decimal:
    return Decimal(mechanism.map(1))  # type: ignore[no-untyped-call]
