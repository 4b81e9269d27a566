"""What an analyst sees of noised integers: each output's text, with digits fixed by the query.

Everything here is computed from noised numbers alone, in exact fractions, so it costs nothing and its digits tell
nothing more than the numbers do.
"""

from collections.abc import Sequence
from fractions import Fraction
from math import isqrt
from typing import assert_never

from rules.mechanisms.noised_outputs import (
    Average,
    CentredSum,
    Chosen,
    ChosenList,
    Count,
    Estimate,
    Output,
    Statistic,
    Sum,
    Text,
)
from rules.release.estimates import compute as estimated
from rules.release.moments import Root, compute


def show(output: Output, measures: Sequence[int]) -> Text:
    """The text of one output for one group, from that group's noised measures."""
    match output:
        case Count(measure=measure, shown_bare=shown_bare):
            return str(max(0, measures[measure]) if shown_bare else measures[measure])
        case Sum() | CentredSum():
            return show_number(output, lattice_number(output, measures))
        case Average(digits=digits):
            return _decimal(*_average(output, measures), digits)
        case Statistic(digits=digits):
            return _number(compute(output, measures), digits)
        case Estimate(digits=digits):
            return _number(estimated(output, measures), digits)
        case Chosen(measure=measure, candidates=candidates):
            return candidates[measures[measure]]
        case ChosenList(measures=places, candidates=candidates):
            return "{" + ",".join(f'"{candidates[measures[place]]}"' for place in places) + "}"
        case _:
            assert_never(output)


def lattice_number(output: Count | Sum | CentredSum, measures: Sequence[int]) -> int:
    """A count or a sum in its own smallest parts."""
    match output:
        case Count(measure=measure) | Sum(measure=measure):
            return measures[measure]
        case CentredSum(halves=halves, count=count, middle=middle):
            return measures[halves] + middle * measures[count]


def show_number(output: Count | Sum | CentredSum, number: int) -> str:
    """So many of these parts as a text."""
    match output:
        case Count():
            return str(number)
        case Sum(step=step, digits=digits):
            return _decimal(number * step.numerator, step.denominator, digits)
        case CentredSum(step=step, digits=digits):
            return _decimal(number * step.numerator, 2 * step.denominator, digits)


def with_digits(number: Fraction, digits: int) -> str:
    """The nearest decimal with exactly so many digits after the point; a tie goes to the even one.

    Example:
        >>> with_digits(Fraction(-1, 3), 4)
        '-0.3333'
        >>> with_digits(Fraction(5), 0)
        '5'
    """
    return _decimal(number.numerator, number.denominator, digits)


def _decimal(numerator: int, denominator: int, digits: int) -> str:
    """The same of a fraction that need not be in lowest terms: error bars ask for hundreds of them at a time."""
    whole, rest = divmod(abs(numerator) * 10**digits, denominator)
    whole += 2 * rest > denominator or (2 * rest == denominator and whole % 2)
    sign, text = "-" if numerator < 0 and whole else "", str(whole).rjust(digits + 1, "0")
    return f"{sign}{text[:-digits]}.{text[-digits:]}" if digits else f"{sign}{text}"


def _number(number: Fraction | Root | None, digits: int) -> Text:
    match number:
        case Root(square=square, negative=negative):
            return with_digits((-1 if negative else 1) * _root(square, digits), digits)
        case Fraction():
            return with_digits(number, digits)
        case None:
            return None


def _root(square: Fraction, digits: int) -> Fraction:
    """The root, cut four digits beyond those that are shown."""
    scale = 10 ** (digits + 4)
    return Fraction(isqrt(square.numerator * scale**2 // square.denominator), scale)


def _average(output: Average, measures: Sequence[int]) -> tuple[int, int]:
    """The middle of the bounds moved by the centred mean, within the bounds; the middle where nobody seems to be.

    Over the denominator 2·count·d₁·d₂ the middle of the bounds, n₁/2d₁, and the mean, halves·n₂/2·count·d₂, add up.
    """
    both, step = output.low + output.high, output.step
    count = measures[output.count]
    if count <= 0:
        return both.numerator, 2 * both.denominator
    denominator = 2 * count * both.denominator * step.denominator
    numerator = both.numerator * count * step.denominator + measures[output.halves] * step.numerator * both.denominator
    if numerator * output.low.denominator < output.low.numerator * denominator:
        return output.low.numerator, output.low.denominator
    if numerator * output.high.denominator > output.high.numerator * denominator:
        return output.high.numerator, output.high.denominator
    return numerator, denominator
