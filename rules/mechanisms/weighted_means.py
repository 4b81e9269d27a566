"""Means of releases of one measure, each weighted by its precision, and the law of the noise in them."""

import math
from collections.abc import Sequence
from fractions import Fraction

from rules.frozen import frozen
from rules.mechanisms.additive import AdditiveNoise
from rules.mechanisms.distribution import Distribution


@frozen
class HalvedNoise:
    """The noise in a sum that is told by its centred sum and its count: half of that sum and of `middle` counts.

    Where one count tells so many sums (`sharing`), its draws are in all of them, while bars take the noise of measures
    for independent. By Cauchy and Schwarz (Σ aₖ)² ≤ sharing · Σ aₖ², so its part is told that much larger: then no sum
    or difference of these has a bar that is too short.
    """

    centred: AdditiveNoise
    count: AdditiveNoise
    middle: int
    sharing: int = 1

    @property
    def law(self) -> Distribution:
        of_counts = self.count.law.times(self.middle / 2 * math.sqrt(self.sharing))
        return self.centred.law.times(0.5).plus(of_counts).rounded()

    @property
    def precision(self) -> Fraction:
        """One over the variance, before scales are rounded up and numbers to whole ones."""
        return 4 / (1 / self.centred.precision + self.middle**2 / self.count.precision)

    def sum(self, centred: int, count: int) -> int:
        """The sum of a cell, or of several, in whole numbers.

        Example:
            >>> from decimal import Decimal
            >>> from rules.mechanisms.additive import LaplaceNoise
            >>> noise = HalvedNoise(LaplaceNoise(1, Decimal(1)), LaplaceNoise(1, Decimal(1)), 10)
            >>> noise.sum(centred=2 * 13 - 2 * 10, count=2)  # of 6 and 7
            13
        """
        return _nearest(centred + self.middle * count, 2)


@frozen
class SummedCells:
    """What one release says of each group: a number that is the sum of so many noised ones, None where it has none.

    A release of the very question has one cell for each group.
    """

    numbers: Sequence[int | None]
    counts: Sequence[int]
    noise: AdditiveNoise | HalvedNoise  # of a single one


def of_cells(numbers: Sequence[int], noise: AdditiveNoise) -> SummedCells:
    """Numbers of one cell each."""
    return SummedCells(numbers, (1,) * len(numbers), noise)


def mean(readings: Sequence[SummedCells]) -> tuple[tuple[int, ...], tuple[Distribution, ...]]:
    """The mean of all readings of each group, each weighted by its precision, and the law of its noise.

    No other weights leave less variance, which is then one over the sum of all precisions: releases at 0.3 and 0.4 are
    as good as one at 0.5. A mean is rounded to the nearest number of the lattice, half to even.
    """
    noises, counts = [reading.noise for reading in readings], [reading.counts for reading in readings]
    numbers = [[number or 0 for number in reading.numbers] for reading in readings]
    kinds = list(zip(*counts, strict=True))  # of few different ones, so that a group takes little time
    known = {kind: _weighted(noises, kind) for kind in set(kinds)}
    laws = tuple(known[kind][1] for kind in kinds)
    if len(readings) == 1 and all(counts[0]):
        return tuple(numbers[0]), laws
    rows = zip((known[kind][0] for kind in kinds), zip(*numbers, strict=True), strict=True)
    return tuple(_nearest(sum(map(int.__mul__, weights, row)), sum(weights)) for weights, row in rows), laws


def _weighted(
    noises: Sequence[AdditiveNoise | HalvedNoise], counts: Sequence[int]
) -> tuple[tuple[int, ...], Distribution]:
    """Whole weights in proportion to precisions, and the law of the noise in their mean. A sum of none has none."""
    precisions = [
        noise.precision / count if count else Fraction(0) for noise, count in zip(noises, counts, strict=True)
    ]
    shared = math.lcm(*(precision.denominator for precision in precisions))
    weights = tuple(int(precision * shared) for precision in precisions)
    taken = [place for place, weight in enumerate(weights) if weight]
    if len(taken) == 1:
        return weights, noises[taken[0]].law.repeated(counts[taken[0]])
    law = Distribution()
    for place in taken:
        law = law.plus(noises[place].law.repeated(counts[place]).times(weights[place] / sum(weights)))
    return weights, law.rounded() if law.roundings else law


def _nearest(numerator: int, denominator: int) -> int:
    """The nearest whole number; a tie goes to the even one."""
    whole, rest = divmod(numerator, denominator)
    return whole + (2 * rest > denominator or (2 * rest == denominator and whole % 2))
