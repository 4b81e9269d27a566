"""The laws of additive noise, each with all that depends on it: scale, draws, distribution, tails, price and words.

`NOISES` has them by the names of the rules file. Each makes its measurement by OpenDP; `draw` alone draws with it.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, Final, Self

import opendp.prelude as dp

from rules.frozen import frozen, replace
from rules.mechanisms.cost import Mechanism, mechanism_of_ladder, mechanism_of_top, price
from rules.mechanisms.distribution import Distribution
from rules.mechanisms.draw import INTEGERS, calibrated, check_parameters, loss
from rules.mechanisms.release_plan import Block, Choice, GroupsFoundFirst, Measure, PrivateGroups
from rules.policy.model import NoiseKind

_UP = Context(prec=120, rounding=ROUND_CEILING)
_DOWN = Context(prec=120, rounding=ROUND_FLOOR)


class AdditiveNoise(ABC):
    """Noise for a vector of integers of which `factor` are one; what is said of it is said of the rounded numbers."""

    __slots__ = ()

    epsilon: Decimal
    factor: int
    title: ClassVar[str]
    is_pure: ClassVar[bool]  # whether a draw has a pure ε; others are paid as ρ alone

    @classmethod
    @abstractmethod
    def over(cls, l1: int, l2_squared: int, epsilon: Decimal, factor: int = 1) -> Self:
        """Noise for a vector that moves by at most so much in L1, and in L2 by the root of so much."""

    @staticmethod
    @abstractmethod
    def reach(l1: int, l2_squared: int) -> float:
        """The distance in whose proportion it is scaled."""

    @classmethod
    @abstractmethod
    def price(cls, epsilon: Decimal) -> Mechanism:
        """The cost of a draw that is scaled by ε."""

    @property
    @abstractmethod
    def measurement(self) -> dp.Measurement:
        """What OpenDP draws with."""

    @property
    @abstractmethod
    def scale(self) -> float: ...

    @property
    @abstractmethod
    def law(self) -> Distribution: ...

    @property
    @abstractmethod
    def precision(self) -> Fraction:
        """One over the variance, before scales are rounded up and numbers to whole ones."""

    @abstractmethod
    def least_tail(self, share: Decimal) -> int:
        """The smallest j ≥ 1 with P(noise ≥ j) ≤ share, by the exact law of one draw."""

    @property
    @abstractmethod
    def price_words(self) -> str: ...

    @abstractmethod
    def sensitivity_words(self, most: str) -> str: ...

    @abstractmethod
    def scale_words(self, most: str) -> str: ...


@frozen
class LaplaceNoise(AdditiveNoise):
    """Discrete Laplace noise for a vector that moves by at most so much in L1: ε-private."""

    title = "discrete Laplace"
    is_pure = True

    sensitivity: int
    epsilon: Decimal
    factor: int = 1

    @classmethod
    def over(cls, l1: int, l2_squared: int, epsilon: Decimal, factor: int = 1) -> Self:
        return cls(l1, epsilon, factor)

    @staticmethod
    def reach(l1: int, l2_squared: int) -> float:
        return float(l1)

    @classmethod
    def price(cls, epsilon: Decimal) -> Mechanism:
        return Mechanism.pure(epsilon)

    @property
    def measurement(self) -> dp.Measurement:
        return _make_laplace(laplace_scale(self.sensitivity, self.epsilon))

    @property
    def scale(self) -> float:
        return laplace_scale(self.sensitivity, self.epsilon) / self.factor

    @property
    def law(self) -> Distribution:
        return Distribution.of_laplace(self.scale, is_rounded=self.factor > 1)

    @property
    def precision(self) -> Fraction:
        return (Fraction(self.epsilon) * self.factor) ** 2 / (2 * self.sensitivity**2)

    def least_tail(self, share: Decimal) -> int:
        """P(noise ≥ j) = α^j / (1 + α), for α = exp(−1/scale)."""
        scale = Decimal(laplace_scale(self.sensitivity, self.epsilon))
        alpha = _UP.exp(_UP.minus(_DOWN.divide(Decimal(1), scale)))
        log_share = _DOWN.ln(_DOWN.multiply(share, _DOWN.add(Decimal(1), alpha)))
        least = _UP.multiply(scale, _UP.minus(log_share))
        return max(1, int(least.to_integral_value(ROUND_CEILING)))

    @property
    def price_words(self) -> str:
        return f"epsilon {price(self.epsilon)}"

    def sensitivity_words(self, most: str) -> str:
        return f"sensitivity {most}{Fraction(self.sensitivity, self.factor)}"

    def scale_words(self, most: str) -> str:
        return f"noise scale {most}{self.scale:.6g}"


@lru_cache(maxsize=1024)
def laplace_scale(sensitivity: int, epsilon: Decimal) -> float:
    """The scale that is really drawn: Δ/ε, rounded up until OpenDP's own map says at most ε.

    Example:
        >>> laplace_scale(1, Decimal("0.5"))
        2.0
        >>> laplace_scale(1, Decimal("0.1")) >= 10
        True
    """
    check_parameters(sensitivity, epsilon)
    charged = Fraction(epsilon)
    least = float(Fraction(sensitivity) / charged)
    return calibrated(least, lambda scale: loss(_make_laplace(scale), sensitivity) <= charged)


@lru_cache(maxsize=1024)
def _make_laplace(scale: float) -> dp.Measurement:
    return dp.m.make_laplace(INTEGERS, dp.l1_distance(T="i64"), scale=scale)


@frozen
class GaussianNoise(AdditiveNoise):
    """Discrete Gaussian noise for a vector whose distance in L2 has at most this square: ε²/2-zCDP."""

    title = "discrete Gaussian"
    is_pure = False

    squared: int
    epsilon: Decimal
    factor: int = 1

    @classmethod
    def over(cls, l1: int, l2_squared: int, epsilon: Decimal, factor: int = 1) -> Self:
        return cls(l2_squared, epsilon, factor)

    @staticmethod
    def reach(l1: int, l2_squared: int) -> float:
        return math.sqrt(l2_squared)

    @classmethod
    def price(cls, epsilon: Decimal) -> Mechanism:
        """A draw with σ = Δ/ε is ε²/2-zCDP, and ε-private for no ε (Canonne, Kamath and Steinke 2020, theorem 14)."""
        return Mechanism.concentrated(epsilon)

    @property
    def measurement(self) -> dp.Measurement:
        return _make_gaussian(gaussian_scale(self.squared, self.epsilon))

    @property
    def scale(self) -> float:
        return gaussian_scale(self.squared, self.epsilon) / self.factor

    @property
    def law(self) -> Distribution:
        return Distribution(variance=self.scale**2, roundings=float(self.factor > 1))

    @property
    def precision(self) -> Fraction:
        return (Fraction(self.epsilon) * self.factor) ** 2 / self.squared

    def least_tail(self, share: Decimal) -> int:
        raise ValueError("a threshold is made for the tail of Laplace noise")

    @property
    def price_words(self) -> str:
        return f"epsilon {price(self.epsilon)} paid as rho {price(self.price(self.epsilon).rho)}"

    def sensitivity_words(self, most: str) -> str:
        return f"L2 sensitivity {most}{math.sqrt(self.squared) / self.factor:.6g}"

    def scale_words(self, most: str) -> str:
        return f"Gaussian noise of sigma {most}{self.scale:.6g}"


@lru_cache(maxsize=1024)
def gaussian_scale(squared: int, epsilon: Decimal) -> float:
    """The σ that is really drawn with: Δ/ε, rounded up until Δ² times OpenDP's own map(1) is at most ρ = ε²/2.

    On whole numbers ρ is Δ²/2σ² exactly (Canonne, Kamath and Steinke 2020, theorem 14), so Δ² is enough to know.

    Example:
        >>> gaussian_scale(4, Decimal("0.5"))
        4.0
        >>> 10 * 2**0.5 <= gaussian_scale(2, Decimal("0.1")) < 14.1422
        True
    """
    check_parameters(math.isqrt(squared), epsilon)
    charged = Fraction(epsilon) ** 2 / 2
    least = math.sqrt(float(squared)) / float(epsilon)
    return calibrated(least, lambda scale: squared * loss(_make_gaussian(scale), 1.0) <= charged)


@lru_cache(maxsize=1024)
def _make_gaussian(scale: float) -> dp.Measurement:
    return dp.m.make_gaussian(INTEGERS, dp.l2_distance(T="f64"), scale=scale)


NOISES: Final[Mapping[NoiseKind, type[AdditiveNoise]]] = {"laplace": LaplaceNoise, "gaussian": GaussianNoise}


def kind_paid(mechanism: Mechanism) -> NoiseKind:
    """The noise whose draws are paid like this, whatever the rules said: without pure ε it was Gaussian."""
    return next(kind for kind, law in NOISES.items() if law.is_pure == (mechanism.epsilon is not None))


def noise_of(measure: Measure, *, group_size: int) -> AdditiveNoise:
    """Describe a fresh draw of a measure. So many units that are protected together move it so many times as far."""
    l1, l2_squared = measure.sensitivity * group_size, measure.squared * group_size**2
    return NOISES[measure.noise].over(l1, l2_squared, measure.epsilon, measure.factor)


def noise_paid(measure: Measure, mechanism: Mechanism, *, group_size: int) -> AdditiveNoise:
    """Describe the draw of this measure that cost so much."""
    paid = replace(measure, epsilon=mechanism.strength, noise=kind_paid(mechanism))
    return noise_of(paid, group_size=group_size)


def laws_of(block: Block, *, group_size: int) -> Mapping[int, Distribution]:
    """The laws of fresh draws, by measure; a choice has none."""
    return {
        index: noise_of(measure, group_size=group_size).law
        for index, measure in enumerate(block.measures)
        if isinstance(measure, Measure)
    }


def mechanism_of(block: Block, index: int) -> Mechanism:
    """Price a fresh draw of one measure of a block. A threshold's δ is paid with the units that it looks at."""
    match block.measures[index], block.groups:
        case Choice(epsilon=epsilon), _:
            return Mechanism.choice(epsilon)
        case Measure(epsilon=epsilon), PrivateGroups(measure=units, delta=delta) if units == index:
            return Mechanism.pure(epsilon, delta)
        case Measure(epsilon=epsilon, noise=kind), _:
            return NOISES[kind].price(epsilon)


def mechanisms_of(block: Block) -> tuple[Mechanism, ...]:
    """Return what a block costs that is answered anew."""
    ladders = tuple(map(mechanism_of_ladder, block.ladders))
    report = () if block.report is None else (Mechanism.pure(block.report),)
    top = () if block.top is None else (mechanism_of_top(block.top),)
    finder = mechanisms_of(block.groups.finder) if isinstance(block.groups, GroupsFoundFirst) else ()
    return finder + (
        ladders + report + top + tuple(mechanism_of(block, index) for index in block.paying(range(len(block.measures))))
    )
