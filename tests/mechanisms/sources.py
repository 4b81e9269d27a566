"""Sources of noise for tests: none at all, a script, or the claimed laws from a seed."""

import math
from collections.abc import Sequence
from decimal import Decimal

import numpy as np

from rules.mechanisms.additive import GaussianNoise, LaplaceNoise, gaussian_scale, laplace_scale
from rules.mechanisms.draw import Drawable
from rules.mechanisms.release_plan import Top


class NoNoise:
    """Adds nothing and chooses the best, and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, int, Decimal]] = []

    def draw(self, noise: Drawable, count: int) -> tuple[int, ...]:
        match noise:
            case LaplaceNoise(sensitivity, epsilon) | GaussianNoise(sensitivity, epsilon):
                self.asked.append((count, sensitivity, epsilon))
        return (0,) * count

    def choose(self, scores: Sequence[int], *, sensitivity: int, epsilon: Decimal) -> int:
        self.asked.append((len(scores), sensitivity, epsilon))
        return max(range(len(scores)), key=scores.__getitem__)

    def choose_top(self, scores: Sequence[int], top: Top, *, group_size: int) -> tuple[int, ...]:
        self.asked.append((len(scores), top.sensitivity * group_size, top.epsilon))
        return tuple(sorted(range(len(scores)), key=lambda place: -scores[place])[: top.count])


class ConstantNoise(NoNoise):
    """Adds the same number everywhere."""

    def __init__(self, constant: int) -> None:
        super().__init__()
        self.constant = constant

    def draw(self, noise: Drawable, count: int) -> tuple[int, ...]:
        super().draw(noise, count)
        return (self.constant,) * count


class SeededNoise(NoNoise):
    """Draws by the claimed laws, the same in every run: for what is said of noise, not of where it comes from."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._generator = np.random.default_rng(seed)

    def draw(self, noise: Drawable, count: int) -> tuple[int, ...]:
        match noise:
            case LaplaceNoise(sensitivity, epsilon):
                return self._laplace(laplace_scale(sensitivity, epsilon), count)
            case GaussianNoise(squared, epsilon):
                return self._gaussian(gaussian_scale(squared, epsilon), count)
        raise AssertionError(noise)

    def _laplace(self, scale: float, count: int) -> tuple[int, ...]:
        """The difference of two geometric draws is a discrete Laplace one."""
        one, other = self._generator.geometric(-math.expm1(-1 / scale), (2, count))
        return tuple(map(int, one - other))

    def _gaussian(self, sigma: float, count: int) -> tuple[int, ...]:
        if sigma > 1000:  # a normal draw that is rounded has the same law to many digits
            return tuple(map(int, np.rint(self._generator.normal(0, sigma, count))))
        values = np.arange(-math.ceil(9 * sigma), math.ceil(9 * sigma) + 1)
        weights = np.exp(-(values**2) / (2 * sigma**2))
        return tuple(map(int, self._generator.choice(values, count, p=weights / weights.sum())))


class Odds(NoNoise):
    """Remembers the odds of a choice."""

    odds: list[float]

    def choose(self, scores: Sequence[int], *, sensitivity: int, epsilon: Decimal) -> int:
        weights = [math.exp(float(epsilon) * (score - max(scores)) / (2 * sensitivity)) for score in scores]
        self.odds = [weight / sum(weights) for weight in weights]
        return super().choose(scores, sensitivity=sensitivity, epsilon=epsilon)
