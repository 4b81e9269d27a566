"""The noise that is added to a measure, and all that depends on which noise it is: draws, law, precision."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from rules.noise.law import Law
from rules.noise.measures import Block, Measure
from rules.noise.mechanism import Noise, laplace_scale


@dataclass(frozen=True, slots=True)
class LaplaceNoise:
    """Discrete Laplace noise for a vector that moves by at most so much in L1."""

    sensitivity: int
    epsilon: Decimal

    @property
    def law(self) -> Law:
        return Law.of_laplace(laplace_scale(self.sensitivity, self.epsilon))

    @property
    def precision(self) -> Fraction:
        """One over the variance, before scales are rounded up."""
        return Fraction(self.epsilon) ** 2 / (2 * self.sensitivity**2)

    def draw(self, source: Noise, count: int) -> tuple[int, ...]:
        return source.draw(count, sensitivity=self.sensitivity, epsilon=self.epsilon)


def noise_of(measure: Measure, *, group_size: int) -> LaplaceNoise:
    """What a fresh draw of a measure is. So many units that are protected together move it so many times as far."""
    return LaplaceNoise(measure.sensitivity * group_size, measure.epsilon)


def laws_of(block: Block, *, group_size: int) -> Mapping[int, Law]:
    """The laws of fresh draws, by measure; a choice has none."""
    return {
        index: noise_of(measure, group_size=group_size).law
        for index, measure in enumerate(block.measures)
        if isinstance(measure, Measure)
    }


@dataclass(frozen=True, slots=True)
class Reading:
    """One release of a measure: its noised numbers by group, and the noise in them."""

    numbers: Sequence[int]
    noise: LaplaceNoise


def combined(readings: Sequence[Reading]) -> tuple[tuple[int, ...], Law]:
    """The mean of releases, each weighted by its precision, in whole numbers, and the law of its noise.

    No other weights leave less variance, which is then one over the sum of all precisions: releases at 0.3 and 0.4 are
    as good as one at 0.5. A mean is rounded to the nearest number of the lattice, half to even.
    """
    if len(readings) == 1:
        return tuple(readings[0].numbers), readings[0].noise.law
    precisions = [each.noise.precision for each in readings]
    shared = math.lcm(*(each.denominator for each in precisions))
    weights = [int(each * shared) for each in precisions]
    whole, law = sum(weights), Law()
    for each, weight in zip(readings, weights, strict=True):
        law = law.plus(each.noise.law.times(weight / whole))
    numbers = zip(*(each.numbers for each in readings), strict=True)
    return tuple(_nearest(sum(map(int.__mul__, row, weights)), whole) for row in numbers), law


def _nearest(numerator: int, denominator: int) -> int:
    """The nearest whole number; a tie goes to the even one."""
    whole, rest = divmod(numerator, denominator)
    return whole + (2 * rest > denominator or (2 * rest == denominator and whole % 2))
