"""The laws of randomized response: how often a report says what is so, and how often what is not.

A float cannot be the nominal probability, and by OpenDP's own map the nearest one loses more than ε in most settings,
by an ulp. So probabilities move towards more noise until the map, read as an exact decimal, is at most ε. Reports and
estimates take them from here, so an estimate undoes what was done.
"""

import hashlib
import math
import re
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

import opendp.prelude as dp

from rules.frozen import frozen

dp.enable_features("contrib")

MOST_EPSILON = Decimal(30)
MOST_HASHES, MOST_WIDTH = 1024, 4096


@frozen
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


@lru_cache(maxsize=256)
def sketch_law(width: int, epsilon: Decimal) -> Law:
    """Of a word by one hashed bit of a vector: a word that is not held is matched by its own noise, or by a collision.

    One of `width` words that are not held has the bit of the one that is, so that q is q + (p − q)/width of the bits
    below. (c − q·n)/(p − q) is then the count-mean sketch's (w/(w−1))·(Σ S − n/w) (Apple 2017).
    """
    if width < 2:
        raise ValueError("a sketch is at least 2 bits wide")
    bits = unary_law(epsilon)
    return Law(bits.p, bits.q + (bits.p - bits.q) / width, bits.loss)


def hashed_bit(word: str, number: int, width: int, key: bytes) -> int:
    """The bit that the hash function of this number sets for a word.

    Example:
        >>> hashed_bit("tea", 3, 256, b"key") == hashed_bit("tea", 3, 256, b"key") < 256
        True
    """
    digest = hashlib.blake2b(f"{number}:{word}".encode(), digest_size=16, key=key).digest()
    return int.from_bytes(digest, "big") % width


def unary_mechanism(f: float) -> dp.Measurement:
    return dp.m.make_randomized_response_bitvec(dp.bitvector_domain(max_weight=1), dp.discrete_distance(), f)


def check(epsilon: Decimal) -> None:
    """Refuse an ε of which there is no law."""
    if not 0 < epsilon <= MOST_EPSILON:
        raise ValueError(f"the epsilon of a local report must lie above 0 and be at most {MOST_EPSILON}")


def check_sketch(hashes: int, width: int, key: str) -> None:
    """Refuse hash functions of which there is no sketch."""
    if not (1 <= hashes <= MOST_HASHES and 2 <= width <= MOST_WIDTH):
        raise ValueError(f"a sketch has 1 to {MOST_HASHES} hashes, and is 2 to {MOST_WIDTH} bits wide")
    if re.fullmatch(r"(?:[0-9a-fA-F]{2}){1,64}", key) is None:
        raise ValueError("the key of a sketch is 1 to 64 bytes, as hexadecimal digits")


def _lowered(make: Callable[[float], dp.Measurement], p: float, epsilon: Decimal) -> float:
    while _loss(make(p)) > epsilon:
        p = math.nextafter(p, 0)
    return p


def _loss(mechanism: dp.Measurement) -> Decimal:
    return Decimal(mechanism.map(1))  # type: ignore[no-untyped-call]
