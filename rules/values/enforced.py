"""Facts that the text of a number or moment enforces: by its type, a constant, or a clamp or CASE that makes it.

Only this may make a guard unnecessary. A condition elsewhere, a CHECK or a declared range does not keep an expression
from failing, since PostgreSQL evaluates the parts of a query in the order that it likes; what they say is the domain
of an expression, and costs meaning at most where it is wrong. A number that was computed is never NaN or infinite (the
guards of `functions.guard` leave these out); a column can be NaN whatever its type says.
"""

from fractions import Fraction
from functools import lru_cache

from rules.frozen import frozen
from rules.values.types import Type, integer_range


@frozen
class Sure:
    """Bounds of all values but NULL and NaN, and how many digits stand behind the point at most. None: nothing is sure.

    Numbers are what they are, dates are days and timestamps microseconds since 1970.
    """

    low: Fraction | None = None
    high: Fraction | None = None
    digits: int | None = None

    def is_within(self, low: Fraction, high: Fraction) -> bool:
        return self.low is not None and self.high is not None and low <= self.low and self.high <= high

    def has(self, number: Fraction) -> bool:
        """Return whether it may have this value."""
        return (self.low is None or self.low <= number) and (self.high is None or number <= self.high)

    @property
    def reach(self) -> Fraction | None:
        """Return how far from zero a value is at most."""
        return None if self.low is None or self.high is None else max(abs(self.low), abs(self.high))


UNSURE = Sure()
_ZERO = Fraction(0)


@lru_cache(maxsize=1_000)
def of_type(sql_type: Type) -> Sure:
    """Return what no value of a type passes."""
    if sql_type.kind == "integer":
        first, last = integer_range(sql_type.base)
        return Sure(Fraction(first), Fraction(last), 0)
    if sql_type.kind == "numeric" and sql_type.size is not None and sql_type.scale is not None:
        largest = Fraction(10) ** (sql_type.size - sql_type.scale)
        return Sure(-largest, largest, max(sql_type.scale, 0))
    return UNSURE


def plus(left: Sure, right: Sure) -> Sure:
    low = None if left.low is None or right.low is None else left.low + right.low
    high = None if left.high is None or right.high is None else left.high + right.high
    return Sure(low, high, _more(left.digits, right.digits))


def minus(left: Sure, right: Sure) -> Sure:
    return plus(left, negated(right))


def negated(sure: Sure) -> Sure:
    low, high = sure.low, sure.high
    return Sure(None if high is None else -high, None if low is None else -low, sure.digits)


def times(left: Sure, right: Sure) -> Sure:
    digits = None if left.digits is None or right.digits is None else left.digits + right.digits
    if left.low is None or left.high is None or right.low is None or right.high is None:
        return Sure(digits=digits)
    corners = [first * second for first in (left.low, left.high) for second in (right.low, right.high)]
    return Sure(min(corners), max(corners), digits)


def either(*facts: Sure) -> Sure:
    """One of several values, as CASE gives."""
    sure = facts[0]
    for other in facts[1:]:
        low = None if sure.low is None or other.low is None else min(sure.low, other.low)
        high = None if sure.high is None or other.high is None else max(sure.high, other.high)
        sure = Sure(low, high, _more(sure.digits, other.digits))
    return sure


def between(sure: Sure, low: Fraction | None, high: Fraction | None) -> Sure:
    """A value that is left out, or replaced, beyond these bounds; zero stands for none where no value is left."""
    lows = [bound for bound in (sure.low, low) if bound is not None]
    highs = [bound for bound in (sure.high, high) if bound is not None]
    first, last = max(lows, default=None), min(highs, default=None)
    if first is not None and last is not None and first > last:
        return Sure(_ZERO, _ZERO, sure.digits)
    return Sure(first, last, sure.digits)


def clamped(sure: Sure, low: Fraction, high: Fraction) -> Sure:
    """least(greatest(x, low), high), which never falls as x rises."""
    first = min(low, high) if sure.low is None else min(max(sure.low, low), high)
    last = high if sure.high is None else min(max(sure.high, low), high)
    return Sure(first, last, sure.digits)


def _more(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else max(one, other)
