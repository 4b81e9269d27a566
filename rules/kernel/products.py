"""Products of decimal columns, from the integers that stand for their factors.

A report sums a price, a discount, price · (1 − discount), and more of the kind. As numerics each of these reads, clamps
and multiplies anew. Here each column becomes an integer once, as it does for a sum of its own, and the products are
bigints. They are clamped last like every summand, so no amount rests on this; that the integers are those of numeric
arithmetic follows from the column's own type, which has no more digits than the steps in which it is counted.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import prod

from rules.kernel.summand import LARGEST, Lattice, Summand
from rules.values.expression import Apply, Column, Constant, Expression

_MOST = 8  # factors
_DECIMAL = re.compile(r"-?[0-9]{1,40}(\.[0-9]{1,40})?")
_CLAMPED = "CASE WHEN {0} <> 'NaN' THEN least(greatest({0}, {1}), {2}) END"


@dataclass(frozen=True, slots=True)
class Factor:
    """constant + sign · q, in steps of a column's lattice."""

    summand: Summand
    constant: int = 0
    sign: int = 1

    @property
    def reach(self) -> int:
        lattice = self.summand.lattice
        return max(1, *(abs(self.constant + self.sign * end) for end in (lattice.low, lattice.high)))

    def sql(self, name: str) -> str:
        return f"({self.constant} {'+' if self.sign > 0 else '-'} {name})" if self.constant else name


def factors_of(summand: Summand, is_stored: Callable[[Expression], bool]) -> tuple[Factor, ...]:
    """Factors whose product is the summand's integer before its last clamp; none where it is no product that fits."""
    factors = _factors(summand.expression, is_stored)
    if not 1 < len(factors) <= _MOST:
        return ()
    step = prod(factor.summand.lattice.step for factor in factors)
    fits = step == summand.lattice.step and prod(factor.reach for factor in factors) < LARGEST
    return factors if fits else ()


def _factors(expression: Expression, is_stored: Callable[[Expression], bool]) -> tuple[Factor, ...]:
    match expression:
        case Apply(sql="({0} * {1})", arguments=(left, right)):
            one, two = _factors(left, is_stored), _factors(right, is_stored)
            return (*one, *two) if one and two else ()
        case Apply(sql="({0} + {1})" | "({0} - {1})" as sql, arguments=(Constant(text=text), other)):
            sign, decimals = 1 if "+" in sql else -1, _decimals(other, is_stored)
            number = _whole(text, decimals.lattice.step) if decimals else None
            return (Factor(decimals, number, sign),) if decimals and number else ()
        case _:
            decimals = _decimals(expression, is_stored)
            return (Factor(decimals),) if decimals else ()


def _decimals(expression: Expression, is_stored: Callable[[Expression], bool]) -> Summand | None:
    """A table's own numeric(p, s), clamped, in steps of its last digit."""
    match expression:
        case Apply(sql=sql, arguments=(Column(type=kind) as column, Constant() as least, Constant() as most)):
            if sql != _CLAMPED or kind.kind != "numeric" or kind.scale is None or not is_stored(column):
                return None
            step = Fraction(1, 10 ** max(kind.scale, 0))
            low, high = _whole(least.text, step), _whole(most.text, step)
            if low is not None and high is not None and -LARGEST <= low <= high <= LARGEST:
                return Summand(column, Lattice(step, low, high))
    return None


def _whole(text: str | None, step: Fraction) -> int | None:
    """A constant in steps, if it is a whole number of them. Of a text it is not known who wrote it: 1e999999999 has few
    signs and many digits."""
    if text is None or _DECIMAL.fullmatch(text) is None:
        return None
    number = Fraction(text) / step
    return int(number) if number.denominator == 1 else None
