"""Choose a lattice for a number: the step, and the whole multiples of it between which the kernel clamps.

Bounds are rounded inward, so that no multiple of the step lies outside of them.
"""

from fractions import Fraction
from math import ceil, floor

from rules.kernel.sensitivity import MOST_SENSITIVE
from rules.kernel.summand import Lattice

LARGEST = 2**52  # of one row: exact in a double, and far from where sums overflow
_FINE_BINARY = 2**20  # steps between the bounds of a double
_FINE_DECIMAL = 10**6  # and of a numeric whose scale nobody knows
_DIGITS = 12


def find_lattice(low: Fraction, high: Fraction, step: Fraction | None, rows: int, *, binary: bool) -> Lattice | None:
    """A lattice on which `rows` rows of a unit stay in range, or None when no multiple of the step fits the bounds.

    Example:
        >>> find_lattice(Fraction(0), Fraction("99.995"), Fraction("0.01"), rows=40, binary=False)
        Lattice(step=Fraction(1, 100), low=0, high=9999)
    """
    chosen = _binary_step(high - low) if binary else _decimal_step(high - low, step)
    limit = min(LARGEST, MOST_SENSITIVE // (2 * max(rows, 1)))
    while max(abs(low), abs(high)) / chosen > limit:
        chosen *= 2 if binary else 10
    first, last = ceil(low / chosen), floor(high / chosen)
    return Lattice(chosen, first, last) if first <= last else None


def digits_of(lattice: Lattice) -> int:
    """Digits after the point that every multiple of the step has at most."""
    digits = 0
    while (lattice.step * 10**digits).denominator != 1:
        digits += 1
    return digits


def _binary_step(width: Fraction) -> Fraction:
    """A power of two: division by it is exact in a double."""
    step = Fraction(1, 2**40)
    while step * _FINE_BINARY * 2 <= width:
        step *= 2
    return step


def _decimal_step(width: Fraction, step: Fraction | None) -> Fraction:
    """The power of ten of which all values are multiples, or one that is fine enough for the range."""
    if step is not None:
        for digits in range(_DIGITS + 1):
            if (step * 10**digits).denominator == 1:
                return Fraction(1, 10**digits)
    chosen = Fraction(1, 10**_DIGITS)
    while chosen * _FINE_DECIMAL * 10 <= width:
        chosen *= 10
    return chosen
