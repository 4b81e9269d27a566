"""What thresholds cost, computed exactly: each alone, and many of them under the filters, in both directions.

One person is alone in K − 1 groups and is one of several in another. The law of everything that is shown, over the
database with her and without, is that of independent groups, so the least δ at an ε follows from the laws of their
losses, which have few values.
"""

import math
from collections.abc import Iterable, Sequence
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.accounting.accountant import Limit, Totals, fits, loss
from rules.mechanisms.additive import laplace_scale
from rules.mechanisms.cost import Mechanism
from rules.mechanisms.draw import Drawable
from rules.mechanisms.noised_outputs import Count
from rules.mechanisms.release_plan import Block, KeyColumn, Measure, PrivateGroups
from rules.mechanisms.threshold import find_threshold
from rules.release.release import Noised, release_found
from tests.mechanisms.sent import sent
from tests.mechanisms.sources import NoNoise
from tests.support.written import NOTHING

Losses = dict[float, float]  # how probable each loss is, in whole hundred-millionths; infinite where one side cannot be
_FINE = 1e8


def of_group(units: tuple[int, int], threshold: int, scale: float) -> tuple[Losses, Losses]:
    """The losses of one group with so many units and without, over the one and over the other."""
    one, other = (_shown(unit, threshold, scale) for unit in units)
    forward: Losses = {}
    backward: Losses = {}
    for first, second in zip(one, other, strict=True):
        distance = math.inf if not second else -math.inf if not first else math.log(first / second)
        key = distance if math.isinf(distance) else round(distance * _FINE)
        forward[key] = forward.get(key, 0.0) + first
        backward[-key] = backward.get(-key, 0.0) + second
    return forward, backward


def _shown(units: int, threshold: int, scale: float) -> list[float]:
    """How probable it is that a group is hidden, or shown with each number."""
    alpha, most = math.exp(-1 / scale), threshold + int(40 * scale)
    if not units:  # no candidate
        return [1.0, *(0.0 for _ in range(threshold, most))]
    law = [(1 - alpha) / (1 + alpha) * math.exp(-abs(number - units) / scale) for number in range(threshold, most)]
    return [1 - sum(law), *law]


def together(parts: Iterable[Losses]) -> Losses:
    """The losses of all of these, which are independent, add up."""
    found: Losses = {0: 1.0}
    for part in parts:
        more: Losses = {}
        for one, probable in found.items():
            for other, number in part.items():
                if probable * number > 1e-18:
                    more[one + other] = more.get(one + other, 0.0) + probable * number
        found = more
    return found


def least_delta(losses: Losses, epsilon: float) -> float:
    """The hockey-stick divergence at this ε."""
    return sum(probable * max(0.0, -math.expm1(epsilon - number / _FINE)) for number, probable in losses.items())


def losses_of(epsilon: str, delta: str, groups: int, others: int, less: int = 0) -> tuple[Losses, Losses]:
    """Of one statement: its K − 1 lone groups, and the one with others. `less` is what is left off the threshold."""
    units = Measure("units", groups, Decimal(epsilon))
    threshold, scale = find_threshold(units, Decimal(delta)) - less, laplace_scale(groups, Decimal(epsilon))
    pairs = [(1, 0)] * (groups - 1) + [(others + 1, others)]
    both = [of_group(pair, threshold, scale) for pair in pairs]
    return together(numbers for numbers, _ in both), together(numbers for _, numbers in both)


CASES = [("1", "1e-3", 1, 6), ("1", "1e-2", 3, 9), ("0.5", "0.05", 2, 0), ("2", "1e-6", 4, 12), ("0.1", "0.2", 3, 20)]


@pytest.mark.parametrize(("epsilon", "delta", "groups", "others"), CASES)
def test_a_threshold_alone_has_the_epsilon_and_the_delta_that_are_charged(
    epsilon: str, delta: str, groups: int, others: int
) -> None:
    for losses in losses_of(epsilon, delta, groups, others):
        assert least_delta(losses, float(epsilon)) <= float(delta) * (1 + 1e-6)


def test_all_of_a_persons_groups_may_be_hers_alone() -> None:
    """Then δ is nearly spent, by the losses that are infinite; where the threshold is a little lower it does not do."""
    forward, backward = losses_of("1", "1e-3", 3, 0)
    lower, _ = losses_of("1", "1e-3", 3, 0, less=3)

    assert 0.3e-3 < forward[math.inf] <= 1e-3
    assert least_delta(backward, 1.0) <= 1e-3
    assert least_delta(lower, 1.0) > 1e-3


@pytest.mark.parametrize(("epsilon", "delta", "groups", "others"), CASES[:4])
@pytest.mark.parametrize("times", [2, 5, 12])
def test_many_thresholds_are_covered_by_the_delta_of_each_and_that_of_the_conversion(
    epsilon: str, delta: str, groups: int, others: int, times: int
) -> None:
    """At the ε that the better filter says: by Σε with Σδ alone, by Σρ with δ_c besides."""
    paid = Totals().plus([Mechanism.pure(Decimal(epsilon), Decimal(delta))] * times)
    limit = Limit(Decimal(1000), 2 * paid.delta)
    conversion = float(limit.conversion_delta)
    assert fits(paid, limit)

    for one in losses_of(epsilon, delta, groups, others):
        losses = together([one] * times)
        assert least_delta(losses, float(paid.epsilon)) <= float(paid.delta) * (1 + 1e-6)
        assert least_delta(losses, float(loss(paid, limit))) <= (float(paid.delta) + conversion) * (1 + 1e-6)


@pytest.mark.parametrize("groups", [1, 3])
def test_thresholds_and_draws_of_pure_epsilon_are_covered_together(groups: int) -> None:
    """And the computation would see what is not: without the δ of the thresholds their losses are not covered."""
    limit = Limit(Decimal(1000), Decimal("0.02"))
    draws = [Mechanism.pure(Decimal("0.3"))] * 10
    paid = Totals().plus([*draws, *[Mechanism.pure(Decimal(1), Decimal("0.002"))] * 5])
    truth = 1 / (1 + math.exp(-0.3))
    answered: Losses = {round(0.3 * _FINE): truth, round(-0.3 * _FINE): 1 - truth}  # randomized response is the worst

    for one in losses_of("1", "0.002", groups, 0):
        losses = together([*[one] * 5, *[answered] * 10])
        assert least_delta(losses, float(loss(paid, limit))) <= float(limit.delta)
        assert least_delta(losses, float(paid.epsilon)) <= float(paid.delta) * (1 + 1e-6)
    forward, _ = losses_of("1", "0.002", groups, 0)
    assert least_delta(forward, float(paid.epsilon)) > 0


class Scripted(NoNoise):
    """Noise by the number of groups that were drawn for before."""

    def __init__(self, script: Sequence[int]) -> None:
        super().__init__()
        self.script = list(script)

    def draw(self, noise: Drawable, count: int) -> tuple[int, ...]:
        drawn, self.script = self.script[:count], self.script[count:]
        return tuple(drawn)


UNITS = Measure("units", 3, Decimal(1))
FOUND = PrivateGroups(measure=0, delta=Decimal("1e-3"))
BLOCK = Block(
    canonical="by label",
    statement=NOTHING,
    keys=(KeyColumn("text", "label"),),
    groups=FOUND,
    measures=(UNITS,),
    outputs=(Count(0),),
    output_types=("bigint",),
    tables=(),
)


def found(counts: dict[str, int], noise: dict[str, int]) -> Noised:
    script = [noise[label] for label in sorted(counts) if counts[label] > 0]
    return release_found(BLOCK, FOUND, sent(counts.items()), Scripted(script), group_size=1)


@given(
    others=st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 40)),
    alone=st.sets(st.sampled_from("uvwxyz"), max_size=2),
    noise=st.fixed_dictionaries({text: st.integers(-30, 30) for text in "abcdefuvwxyz"}),
)
def test_unless_a_group_of_hers_alone_passes_the_release_is_one_over_the_groups_of_the_others(
    others: dict[str, int], alone: set[str], noise: dict[str, int]
) -> None:
    """The decomposition, run: the noise of her own groups changes nothing but whether one of them is shown."""
    hers = {label: others.get(label, 0) + (label in alone) for label in {*others, *alone}}

    shown, of_others = found(hers, noise), found({label: hers[label] for label in others}, noise)

    threshold = find_threshold(UNITS, FOUND.delta)
    if not any(1 + noise[label] >= threshold for label in alone):
        assert shown == of_others
    assert [group for group in shown.groups if group[0] not in alone] == list(of_others.groups)
