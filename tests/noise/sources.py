"""Sources of noise for tests: none at all, or a script."""

import math
from collections.abc import Sequence
from decimal import Decimal


class NoNoise:
    """Adds nothing and chooses the best, and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, int, Decimal]] = []

    def draw(self, count: int, *, sensitivity: int, epsilon: Decimal) -> tuple[int, ...]:
        self.asked.append((count, sensitivity, epsilon))
        return (0,) * count

    def draw_gaussian(self, count: int, *, squared: int, epsilon: Decimal) -> tuple[int, ...]:
        return self.draw(count, sensitivity=squared, epsilon=epsilon)

    def choose(self, scores: Sequence[int], *, sensitivity: int, epsilon: Decimal) -> int:
        self.asked.append((len(scores), sensitivity, epsilon))
        return max(range(len(scores)), key=scores.__getitem__)


class ConstantNoise(NoNoise):
    """Adds the same number everywhere."""

    def __init__(self, constant: int) -> None:
        super().__init__()
        self.constant = constant

    def draw(self, count: int, *, sensitivity: int, epsilon: Decimal) -> tuple[int, ...]:
        super().draw(count, sensitivity=sensitivity, epsilon=epsilon)
        return (self.constant,) * count


class Odds(NoNoise):
    """Remembers the odds of a choice."""

    odds: list[float]

    def choose(self, scores: Sequence[int], *, sensitivity: int, epsilon: Decimal) -> int:
        weights = [math.exp(float(epsilon) * (score - max(scores)) / (2 * sensitivity)) for score in scores]
        self.odds = [weight / sum(weights) for weight in weights]
        return super().choose(scores, sensitivity=sensitivity, epsilon=epsilon)
