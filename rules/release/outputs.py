"""From noised integers to what is shown: totals of grouping sets, counts not below zero, texts, doubles.

ROLLUP, CUBE and GROUPING SETS are added up from the noised cells of the finest groups: they cost nothing more. Every
level adds up to the level above, which separate draws would not do. A level's noise is that of all its cells.

Norm-sub (Wang et al., Locally differentially private frequency estimation with consistency, NDSS 2020): x becomes
max(x − c, 0), with the c for which the sum stays what it was. It is post-processing of released numbers, and display
alone: who computes takes them as released, for sums of cut numbers are too large.

Everything here is computed from noised numbers alone, so it costs nothing. What is shown is computed in exact
fractions, with digits fixed by the query, and of a small statistic by itself: these tell nothing more than the numbers
do. Replicates are what an answer might be, so their order and their digits come from doubles, which tell values apart
far below the noise.
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import pairwise
from math import isqrt
from typing import assert_never

import numpy as np

from rules.mechanisms.draw import add
from rules.mechanisms.noised_outputs import (
    Average,
    CentredSum,
    Chosen,
    ChosenList,
    Count,
    Estimate,
    Matrix,
    Output,
    Statistic,
    Sum,
    Text,
)
from rules.release import estimates, moments
from rules.release.moments import Root

_FINE = 2.0**20  # how many widths from zero bounds may lie, so that a double tells where between them a value is
Group = tuple[Text, ...]
Cell = tuple[int, ...]


def roll_up(
    groups: tuple[Group, ...], cells: list[Cell], sets: tuple[tuple[int, ...], ...], *, keys: int, measures: int
) -> tuple[tuple[Group, ...], list[Cell]]:
    """The groups of every set, each followed by the set's number from 1, and their cells.

    Example:
        >>> roll_up((("a",), ("b",)), [(3,), (4,)], ((0,), ()), keys=1, measures=1)
        ((('a', '1'), ('b', '1'), (None, '2')), [(3,), (4,), (7,)])
    """
    rolled_up: list[Group] = []
    totals: list[Cell] = []
    for number, (names, places) in enumerate(levels(groups, sets, keys=keys), start=1):
        level = [(0,) * measures] * len(names)
        for place, cell in zip(places, cells, strict=True):
            level[place] = tuple(map(add, level[place], cell))
        rolled_up += [(*name, str(number)) for name in names]
        totals += level
    return tuple(rolled_up), totals


def levels(
    groups: tuple[Group, ...], sets: tuple[tuple[int, ...], ...], *, keys: int
) -> Iterator[tuple[tuple[Group, ...], tuple[int, ...]]]:
    """Yield for every set its groups, and by finest group the place of that which it adds to."""
    for kept in sets:
        level: dict[Group, int] = {} if kept else {(None,) * keys: 0}  # () has a row even over nothing
        names = (tuple(text if place in kept else None for place, text in enumerate(group)) for group in groups)
        places = tuple(level.setdefault(name, len(level)) for name in names)
        yield tuple(level), places


def norm_sub_within(numbers: Sequence[int], nested: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """The same within each of the coarser groups that numbers are in, whose sums are cut before: the coarsest first.

    Example:
        >>> norm_sub_within([5, -2, -4, 1], [(0, 0, 0, 0), (0, 0, 1, 1)])
        (0, 0, 0, 0)
        >>> norm_sub_within([9, -2, -4, 1], [(0, 0, 0, 0), (0, 0, 1, 1)])
        (4, 0, 0, 0)
    """
    totals: dict[int, int] = {0: sum(numbers)}
    levels = [*(nested or [(0,) * len(numbers)]), range(len(numbers))]
    for outer, inner in pairwise(levels):
        inside: dict[int, dict[int, int]] = {}
        for number, above, below in zip(numbers, outer, inner, strict=True):
            sums = inside.setdefault(above, {})
            sums[below] = sums.get(below, 0) + number
        totals = {
            part: shown
            for above, sums in inside.items()
            for part, shown in zip(sums, norm_sub(list(sums.values()), totals[above]), strict=True)
        }
    return tuple(totals[place] for place in range(len(numbers)))


def norm_sub(numbers: Sequence[int], total: int | None = None) -> tuple[int, ...]:
    """The nearest whole numbers of which none is below zero, with this sum, or their own; zeros, where that is below 0.

    Example:
        >>> norm_sub([326, -390, 541]), norm_sub([5, 0, 2]), norm_sub([-3, 1]), norm_sub([5, 0], 3)
        ((131, 0, 346), (5, 0, 2), (0, 0), (3, 0))
    """
    whole = sum(numbers)
    total = max(0, whole if total is None else total)
    if total == whole and min(numbers, default=0) >= 0:
        return tuple(numbers)
    order = sorted(range(len(numbers)), key=lambda place: (-numbers[place], place))
    kept, above = 0, 0
    for count, place in enumerate(order, start=1):
        if numbers[place] * count <= above + numbers[place] - total:
            break
        kept, above = count, above + numbers[place]
    shown = [0] * len(numbers)
    if not kept:
        return tuple(shown)
    cut, rest = divmod(above - total, kept)  # the first of them give one more
    for rank, place in enumerate(reversed(order[:kept])):
        shown[place] = numbers[place] - cut - (rank < rest)
    return tuple(max(0, number) for number in shown)


def show(output: Output, measures: Sequence[int]) -> Text:
    """The text of one output for one group, from that group's noised measures."""
    match output:
        case Count(measure=measure):
            return str(output.held(measures[measure]))
        case Sum() | CentredSum():
            return show_number(output, lattice_number(output, measures))
        case Average(digits=digits):
            return _decimal(*_average(output, measures), digits)
        case Statistic(digits=digits):
            return _statistic(moments.compute(output, measures), digits)
        case Estimate(digits=digits):
            estimate = estimates.compute(output, measures)
            return None if estimate is None else with_digits(estimate, digits)
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


def lattice_step(output: Count | Sum | CentredSum) -> Fraction:
    """One of these parts."""
    match output:
        case Count():
            return Fraction(1)
        case Sum(step=step):
            return step
        case CentredSum(step=step):
            return step / 2


def show_number(output: Count | Sum | CentredSum, number: int) -> str:
    """So many of these parts as a text."""
    match output:
        case Count():
            return str(output.held(number))
        case Sum(step=step, digits=digits, most=most):
            return _decimal(*_within(most, number * step.numerator, step.denominator), digits)
        case CentredSum(step=step, digits=digits, most=most):
            return _decimal(*_within(most, number * step.numerator, 2 * step.denominator), digits)


def _within(most: int | None, numerator: int, denominator: int) -> tuple[int, int]:
    """A fraction, at most so far from zero: what its type does not have would end an answer that is paid."""
    if most is None or abs(numerator) <= most * denominator:
        return numerator, denominator
    return (most if numerator > 0 else -most), 1


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


def _statistic(number: Fraction | Root | None, digits: int) -> Text:
    """Of a small one digits are counted from its first: a variance of nanometres is no zero."""
    match number:
        case Root(square=square, negative=negative):
            digits += _zeros(square) // 2
            return with_digits((-1 if negative else 1) * _root(square, digits), digits)
        case Fraction():
            return with_digits(number, digits + _zeros(number))
        case None:
            return None


def _zeros(number: Fraction) -> int:
    """Zeros after the point before the first other digit, or one more; none of zero itself."""
    numerator = abs(number.numerator)
    return len(str(number.denominator // numerator)) - 1 if 0 < numerator < number.denominator else 0


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
    least = output.low if output.least is None else output.least
    if numerator * least.denominator < least.numerator * denominator:
        return least.numerator, least.denominator
    if numerator * output.high.denominator > output.high.numerator * denominator:
        return output.high.numerator, output.high.denominator
    return numerator, denominator


def replicated(output: Output, measures: list[Matrix]) -> Matrix | None:
    """The output of every replicate, NaN where it is NULL; None for an output that doubles do not tell well enough."""
    with np.errstate(all="ignore"):  # what is not defined is NaN, and is asked for below
        match output:
            case Count(measure=measure, shown_bare=shown_bare, most=most):
                least = 0.0 if shown_bare or most is not None else None
                return measures[measure] if least is None else np.clip(measures[measure], least, most)
            case Sum(measure=measure, step=step):
                return measures[measure] * float(step)
            case CentredSum(halves=halves, count=count, step=step, middle=middle):
                return (measures[halves] + float(middle) * measures[count]) * float(step / 2)
            case Average():
                return _replicated_average(output, measures)
            case Estimate():
                return estimates.replicated(output, measures)
            case Statistic():
                return moments.replicated(output, measures)
    return None


def arrays(numbers: Matrix, digits: int, *, is_statistic: bool) -> list[str]:
    """Every row as an array in PostgreSQL's text; of a statistic, which may be small, digits count from its first."""
    width = numbers.shape[1]
    row = "{" + ",".join([f"%.{digits}{'e' if is_statistic else 'f'}"] * width) + "}"
    written = (row % tuple(cells) for cells in numbers.tolist())
    return [text.replace("nan", "NULL") for text in written] if np.isnan(numbers).any() else list(written)


def _replicated_average(output: Average, measures: list[Matrix]) -> Matrix | None:
    low, high = float(output.low), float(output.high)
    if abs(low) + abs(high) > _FINE * (high - low):
        return None
    count = measures[output.count]
    mean = np.where(count > 0, measures[output.halves] / count * float(output.step / 2), 0.0)
    return np.clip((low + high) / 2 + mean, low if output.least is None else float(output.least), high)
