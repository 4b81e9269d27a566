"""What an analyst sees of noised integers: each output's text, with digits fixed by the query.

Everything here is computed from noised numbers alone, in exact fractions, so it costs nothing and its digits tell
nothing more than the numbers do.
"""

from collections.abc import Sequence
from fractions import Fraction
from math import isqrt
from typing import assert_never

from rules.noise.measures import Average, CentredSum, Chosen, ChosenList, Count, Output, Statistic, Sum, Text
from rules.noise.moments import Root, compute


def show(output: Output, measures: Sequence[int]) -> Text:
    """The text of one output for one group, from that group's noised measures."""
    match output:
        case Count(measure=measure, shown_bare=shown_bare):
            return str(max(0, measures[measure]) if shown_bare else measures[measure])
        case Sum(measure=measure, step=step, digits=digits):
            return with_digits(measures[measure] * step, digits)
        case CentredSum(halves=halves, count=count, step=step, middle=middle, digits=digits):
            return with_digits((measures[halves] + middle * measures[count]) * step / 2, digits)
        case Average(digits=digits):
            return with_digits(_average(output, measures), digits)
        case Statistic(digits=digits):
            return _number(compute(output, measures), digits)
        case Chosen(measure=measure, candidates=candidates):
            return candidates[measures[measure]]
        case ChosenList(measures=places, candidates=candidates):
            return "{" + ",".join(f'"{candidates[measures[place]]}"' for place in places) + "}"
        case _:
            assert_never(output)


def with_digits(number: Fraction, digits: int) -> str:
    """The nearest decimal with exactly so many digits after the point; a tie goes to the even one.

    Example:
        >>> with_digits(Fraction(-1, 3), 4)
        '-0.3333'
        >>> with_digits(Fraction(5), 0)
        '5'
    """
    scaled = round(number * 10**digits)
    sign, whole = ("-", -scaled) if scaled < 0 else ("", scaled)
    text = str(whole).rjust(digits + 1, "0")
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


def _average(output: Average, measures: Sequence[int]) -> Fraction:
    """The middle of the bounds moved by the centred mean, within the bounds; the middle where nobody seems to be."""
    middle = (output.low + output.high) / 2
    count = measures[output.count]
    if count <= 0:
        return middle
    mean = middle + measures[output.halves] * output.step / (2 * count)
    return max(output.low, min(mean, output.high))
