"""Domains of expressions: a range, a finite set, or anything. `nullable` says whether NULL is possible.

A domain is always a superset of the truth, and it holds because SQL enforces it: by a type, a valid constraint, a
condition that stands in the statement, or a clamp that we put there. A declared range is never taken for a fact.
"""

from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import reduce
from itertools import chain
from math import gcd, lcm

from rules.frozen import frozen
from rules.values.value import Value


@frozen
class Range:
    """Numbers, dates or timestamps from low to high; None is no bound, and lets infinities in. NaN may be in any."""

    low: Fraction | None = None
    high: Fraction | None = None
    step: Fraction | None = None  # when all values are multiples of it

    @property
    def is_bounded(self) -> bool:
        return self.low is not None and self.high is not None


@frozen
class Values:
    """One of these, in their order."""

    items: tuple[Value, ...]


@frozen
class Anything:
    """No more is known than the type says."""


Domain = Range | Values | Anything

ANYTHING = Anything()
UNBOUNDED = Range()
ONE = Fraction(1)
TRUTHS = Values((False, True))


def values(items: Iterable[Value]) -> Values:
    values = set(items)
    whole = {item.numerator: item for item in values if isinstance(item, Fraction) and item.denominator == 1}
    if len(whole) == len(values):  # as days are, of which there may be thousands: integers are compared sooner
        return Values(tuple(whole[number] for number in sorted(whole)))
    return Values(tuple(sorted(values, key=lambda item: (isinstance(item, str), item))))


def range_of(domain: Domain) -> Range:
    """The domain as a range of numbers; unbounded where it is none."""
    match domain:
        case Range():
            return domain
        case Values(items=items) if items and all(isinstance(item, Fraction) for item in items):
            numbers = [item for item in items if isinstance(item, Fraction)]
            whole = [number.numerator for number in numbers if number.denominator == 1]
            if len(whole) == len(numbers):
                return Range(Fraction(min(whole)), Fraction(max(whole)), Fraction(gcd(*whole)) or ONE)
            return Range(min(numbers), max(numbers), common_step(numbers))
        case Values(items=()):
            return Range(Fraction(0), Fraction(0), ONE)
        case _:
            return UNBOUNDED


def common_step(numbers: Iterable[Fraction | None]) -> Fraction | None:
    """The largest step of which all are multiples; None when one has no step."""
    numbers = tuple(numbers)
    if numbers and numbers.count(numbers[0]) == len(numbers):  # as mostly; the rest takes its time
        (first, *_) = numbers
        return None if first is None else abs(first) or ONE
    step = Fraction(0)
    for number in numbers:
        if number is None:
            return None
        denominator = lcm(step.denominator, number.denominator)
        numerator = gcd(int(step * denominator), int(abs(number) * denominator))
        step = Fraction(numerator, denominator)
    return step or ONE


def items_of(domain: Domain, limit: int) -> tuple[Value, ...] | None:
    """All values, in order, if there are not more than the limit."""
    match domain:
        case Values(items=items):
            return items if len(items) <= limit else None
        case Range(low=Fraction() as low, high=Fraction() as high, step=Fraction() as step):
            first, last = _multiples(low, high, step)
            if last - first + 1 > limit:
                return None
            if step.denominator == 1:  # whole numbers, which are made sooner than they are multiplied
                return tuple([Fraction(number * step.numerator) for number in range(first, last + 1)])
            return tuple([step * number for number in range(first, last + 1)])
        case _:
            return None


def _multiples(low: Fraction, high: Fraction, step: Fraction) -> tuple[int, int]:
    """The first and the last multiple of a step from low to high, by integers, which divide sooner than fractions."""
    of_low = low.denominator * step.numerator
    of_high = high.denominator * step.numerator
    return -(-low.numerator * step.denominator // of_low), high.numerator * step.denominator // of_high


def number_of_items(domain: Domain, limit: int) -> int | None:
    """How many values there are, if there are not more than the limit."""
    match domain:
        case Values(items=items):
            number = len(items)
        case Range(low=Fraction() as low, high=Fraction() as high, step=Fraction() as step):
            first, last = _multiples(low, high, step)
            number = max(0, last - first + 1)
        case _:
            return None
    return number if number <= limit else None


def union_of(domains: Sequence[Domain]) -> Domain:
    """The union of them all: of finite sets in one go."""
    lists = [domain for domain in domains if isinstance(domain, Values)]
    domain: Domain = values(chain.from_iterable(values.items for values in lists))
    return reduce(union, (part for part in domains if not isinstance(part, Values)), domain)


def union(left: Domain, right: Domain) -> Domain:
    match left, right:
        case Values(items=first), Values(items=second):
            return values((*first, *second))
        case (Anything(), _) | (_, Anything()):
            return ANYTHING
    if left == Values(()):
        return right
    if right == Values(()):
        return left
    first_range, second_range = range_of(left), range_of(right)
    low = None if first_range.low is None or second_range.low is None else min(first_range.low, second_range.low)
    high = None if first_range.high is None or second_range.high is None else max(first_range.high, second_range.high)
    return Range(low, high, common_step((first_range.step, second_range.step)))


def intersect(left: Domain, right: Domain) -> Domain:
    """Return what is in both; a finite set is filtered by the other."""
    match left, right:
        case Anything(), _:
            return right
        case _, Anything():
            return left
        case Values(items=items), _:
            return Values(tuple(item for item in items if contains(right, item)))
        case _, Values(items=items):
            return Values(tuple(item for item in items if contains(left, item)))
        case Range(), Range():
            lows = [bound for bound in (left.low, right.low) if bound is not None]
            highs = [bound for bound in (left.high, right.high) if bound is not None]
            low, high = max(lows, default=None), min(highs, default=None)
            if low is not None and high is not None and low > high:
                return Values(())
            return Range(low, high, left.step or right.step)
    return ANYTHING


def contains(domain: Domain, item: Value) -> bool:
    match domain:
        case Values(items=items):
            return item in items
        case Range(low=low, high=high, step=step) if isinstance(item, Fraction):
            is_between = (low is None or low <= item) and (high is None or item <= high)
            return is_between and (step is None or item % step == 0)
        case _:
            return True


def is_within(inner: Domain, outer: Domain) -> bool:
    """Return whether every value of the inner domain is surely in the outer one."""
    match inner, outer:
        case _, Anything():
            return True
        case Values(items=items), _:
            return all(contains(outer, item) for item in items)
        case Range(low=low, high=high), Range():
            low_fits = outer.low is None or (low is not None and low >= outer.low)
            high_fits = outer.high is None or (high is not None and high <= outer.high)
            return low_fits and high_fits
        case _:
            return False


def clamped(domain: Domain, low: Fraction, high: Fraction) -> Range:
    """The image under least(greatest(x, low), high)."""
    span = range_of(domain)
    new_low = low if span.low is None else max(low, min(span.low, high))
    new_high = high if span.high is None else min(high, max(span.high, low))
    step = span.step if span.step and not (low % span.step or high % span.step) else None
    return Range(new_low, new_high, step)
