"""Interval arithmetic over exact fractions: how ranges of numbers move; None for no bound."""

from fractions import Fraction
from math import floor

from rules.values.domain import Range, common_step

_DIGITS = 60  # of a step's denominator: finer lattices are as good as none


def add(left: Range, right: Range) -> Range:
    low = None if left.low is None or right.low is None else left.low + right.low
    high = None if left.high is None or right.high is None else left.high + right.high
    return Range(low, high, common_step((left.step, right.step)))


def negate(bounds: Range) -> Range:
    low = None if bounds.high is None else -bounds.high
    high = None if bounds.low is None else -bounds.low
    return Range(low, high, bounds.step)


def multiply(left: Range, right: Range) -> Range:
    step = _fine(left.step * right.step) if left.step is not None and right.step is not None else None
    if left.low is None or left.high is None or right.low is None or right.high is None:
        return Range(*_half_product(left, right), step)
    corners = [first * second for first in (left.low, left.high) for second in (right.low, right.high)]
    return Range(min(corners), max(corners), step)


def _half_product(left: Range, right: Range) -> tuple[Fraction | None, Fraction | None]:
    """Of two ranges without upper bounds only this is known: above zero stays above zero."""
    if left.low is not None and right.low is not None and left.low >= 0 and right.low >= 0:
        return left.low * right.low, None
    return None, None


def divide(left: Range, right: Range) -> Range:
    """Exact quotients; where the divisor comes near zero, its step says how near."""
    if right.low is not None and right.low == right.high == 0:
        return Range(Fraction(0), Fraction(0), Fraction(1))  # always NULL
    # 1 / |x| at most, for x ≠ 0
    nearest = right.step or Fraction(0)
    if right.low is not None and right.low > 0:
        nearest = max(nearest, right.low)
    if right.high is not None and right.high < 0:
        nearest = max(nearest, -right.high)
    largest = 1 / nearest if nearest > 0 else None
    if largest is None or left.low is None or left.high is None:
        return Range()
    if right.low is not None and right.low >= 0:
        smallest = 1 / right.high if right.high else Fraction(0)
        inverse = Range(smallest, largest)
    elif right.high is not None and right.high <= 0:
        smallest = -1 / right.low if right.low else Fraction(0)
        inverse = Range(-largest, -smallest)
    else:
        inverse = Range(-largest, largest)
    return multiply(Range(left.low, left.high), inverse)


def absolute(bounds: Range) -> Range:
    if bounds.low is not None and bounds.low >= 0:
        return bounds
    if bounds.high is not None and bounds.high <= 0:
        return negate(bounds)
    high = None if bounds.low is None or bounds.high is None else max(-bounds.low, bounds.high)
    return Range(Fraction(0), high, bounds.step)


def rounded(bounds: Range, step: Fraction) -> Range:
    """Any rounding to multiples of a step: towards either side, so both ends are moved outward."""
    if bounds.step is not None and (bounds.step / step).denominator == 1:
        return bounds
    low = None if bounds.low is None else step * floor(bounds.low / step)
    high = None if bounds.high is None else -step * floor(-bounds.high / step)
    return Range(low, high, step)


def truncated_quotient(left: Range, right: Range) -> Range:
    """Integer division, which cuts towards zero."""
    span = divide(left, right)
    if span.low is None or span.high is None:
        # |a / b| ≤ |a| for whole b ≠ 0
        reach = absolute(left).high
        return Range(None if reach is None else -reach, reach, Fraction(1))
    return Range(_cut(span.low), _cut(span.high), Fraction(1))


def _cut(number: Fraction) -> Fraction:
    return Fraction(int(number))


def remainder(left: Range, right: Range) -> Range:
    """a % b has the sign of a and is smaller than b."""
    reach = absolute(right).high
    step = common_step((left.step, right.step))
    below = reach - step if reach is not None and step is not None else reach
    if below is not None and below < 0:
        below = Fraction(0)
    limit = absolute(left).high
    bound = below if limit is None else limit if below is None else min(below, limit)
    low = Fraction(0) if left.low is not None and left.low >= 0 else None if bound is None else -bound
    high = Fraction(0) if left.high is not None and left.high <= 0 else bound
    return Range(low, high, step)


def hull(*ranges: Range) -> Range:
    low = None if any(span.low is None for span in ranges) else min(span.low for span in ranges if span.low is not None)
    high = (
        None
        if any(span.high is None for span in ranges)
        else max(span.high for span in ranges if span.high is not None)
    )
    return Range(low, high, common_step(span.step for span in ranges))


def _fine(step: Fraction) -> Fraction | None:
    return step if step.denominator < 10**_DIGITS else None
