"""The noise that is added to a measure, and all that depends on which noise it is: draws, law, precision."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction

from rules.noise.cost import Mechanism, price
from rules.noise.law import Law
from rules.noise.measures import Block, Measure, NoiseKind
from rules.noise.mechanism import Noise, gaussian_scale, laplace_scale


@dataclass(frozen=True, slots=True)
class LaplaceNoise:
    """Discrete Laplace noise for a vector that moves by at most so much in L1: ε-private."""

    sensitivity: int
    epsilon: Decimal

    @property
    def scale(self) -> float:
        return laplace_scale(self.sensitivity, self.epsilon)

    @property
    def law(self) -> Law:
        return Law.of_laplace(self.scale)

    @property
    def precision(self) -> Fraction:
        """One over the variance, before scales are rounded up."""
        return Fraction(self.epsilon) ** 2 / (2 * self.sensitivity**2)

    def draw(self, source: Noise, count: int) -> tuple[int, ...]:
        return source.draw(count, sensitivity=self.sensitivity, epsilon=self.epsilon)

    @property
    def price_words(self) -> str:
        return f"epsilon {price(self.epsilon)}"

    def sensitivity_words(self, most: str) -> str:
        return f"sensitivity {most}{self.sensitivity}"

    def scale_words(self, most: str) -> str:
        return f"noise scale {most}{self.scale:.6g}"


@dataclass(frozen=True, slots=True)
class GaussianNoise:
    """Discrete Gaussian noise for a vector whose distance in L2 has at most this square: ε²/2-zCDP."""

    squared: int
    epsilon: Decimal

    @property
    def scale(self) -> float:
        return gaussian_scale(self.squared, self.epsilon)

    @property
    def law(self) -> Law:
        return Law(variance=self.scale**2)

    @property
    def precision(self) -> Fraction:
        """One over the variance, before scales are rounded up."""
        return Fraction(self.epsilon) ** 2 / self.squared

    def draw(self, source: Noise, count: int) -> tuple[int, ...]:
        return source.draw_gaussian(count, squared=self.squared, epsilon=self.epsilon)

    @property
    def price_words(self) -> str:
        rho = Mechanism.gaussian(self.epsilon).rho
        return f"epsilon {price(self.epsilon)} paid as rho {price(rho)}"

    def sensitivity_words(self, most: str) -> str:
        return f"L2 sensitivity {most}{math.sqrt(self.squared):.6g}"

    def scale_words(self, most: str) -> str:
        return f"Gaussian noise of sigma {most}{self.scale:.6g}"


AdditiveNoise = LaplaceNoise | GaussianNoise


def noise_of(measure: Measure, *, group_size: int) -> AdditiveNoise:
    """What a fresh draw of a measure is. So many units that are protected together move it so many times as far."""
    if measure.noise == "gaussian":
        return GaussianNoise(measure.squared * group_size**2, measure.epsilon)
    return LaplaceNoise(measure.sensitivity * group_size, measure.epsilon)


def noise_paid(measure: Measure, mechanism: Mechanism, *, group_size: int) -> AdditiveNoise:
    """What a draw of this measure was that cost so much, whatever the rules said: without pure ε it was Gaussian."""
    kind: NoiseKind = "gaussian" if mechanism.epsilon is None else "laplace"
    return noise_of(replace(measure, epsilon=mechanism.strength, noise=kind), group_size=group_size)


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
    noise: AdditiveNoise


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
