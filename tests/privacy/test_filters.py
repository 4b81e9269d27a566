"""No adversary who chooses each next ε by the answers so far gets past the filters: computed exactly, not simulated.

The answers are randomized responses, whose loss is ±ε_i: for pure ε_i the worst there is. The best strategy is found by
dynamic programming over everything that the filters look at. What δ has to cover of a loss L is (1 − e^(ε−L))₊; that L
is above ε at all is more probable than δ, and no part of the promise.
"""

import math
from decimal import Decimal
from functools import cache

import pytest

from rules.accounting.accountant import Limit, Totals, fits
from rules.mechanisms.cost import Mechanism


def uncovered(loss: float, epsilon: float) -> float:
    """What ε does not cover of a loss: its expectation is the least δ (the hockey-stick divergence)."""
    return max(0.0, -math.expm1(epsilon - loss))


def least_delta(limit: Limit, epsilon: float, unit: Decimal, steps: tuple[int, ...]) -> float:
    """The δ that the best adversary needs, who may ask for these multiples of a unit of ε, or stop."""

    @cache
    def granted(asked: tuple[int, ...]) -> bool:
        mechanisms = [
            Mechanism.pure(unit * step) for step, times in zip(steps, asked, strict=True) for _ in range(times)
        ]
        return fits(Totals().plus(mechanisms), limit)

    @cache
    def best(asked: tuple[int, ...], loss: int) -> float:
        outcomes = [uncovered(loss * float(unit), epsilon)]
        for place, step in enumerate(steps):
            more = (*asked[:place], asked[place] + 1, *asked[place + 1 :])
            if granted(more):
                truth = 1 / (1 + math.exp(-step * float(unit)))
                outcomes.append(truth * best(more, loss + step) + (1 - truth) * best(more, loss - step))
        return max(outcomes)

    return best((0,) * len(steps), 0)


@pytest.mark.parametrize(
    ("epsilon", "delta", "unit", "steps"),
    [
        ("1", "0.1", "0.1", (1, 5)),
        ("1", "0.02", "0.1", (1, 2, 5)),
        ("2", "0.2", "0.1", (1, 10)),
        ("0.5", "0.4", "0.1", (1, 2, 5)),
        ("3", "0.05", "0.25", (1, 2, 6)),
    ],
)
def test_the_better_of_both_filters_keeps_its_promise(
    epsilon: str, delta: str, unit: str, steps: tuple[int, ...]
) -> None:
    limit = Limit(Decimal(epsilon), Decimal(delta))

    assert 0 < least_delta(limit, float(epsilon), Decimal(unit), steps) <= float(limit.conversion_delta)


def test_without_a_delta_no_loss_is_above_epsilon() -> None:
    assert least_delta(Limit(Decimal(1)), 1.0, Decimal("0.1"), (1, 3)) < 1e-12


def test_the_computation_would_see_a_filter_that_grants_too_much() -> None:
    generous = Limit(Decimal(2), Decimal("0.1"))

    assert least_delta(generous, 1.0, Decimal("0.1"), (1, 5)) > 0.05
