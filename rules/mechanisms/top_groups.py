"""The groups with the largest counts, chosen in one go, with noise that does not grow by the groups that are not.

Scores get Gumbel noise of one scale s, and the k largest are taken: as k exponential mechanisms without replacement
(Durfee and Rogers, NeurIPS 2019). A unit that comes moves all scores up, each by Δ at most, so each of the k is
Δ/s-private, and (Δ/s)²/8-zCDP.
"""

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Final, Literal

_SHARE: Final = Decimal("0.5")  # of ε is for the choice, the rest for the numbers of what is chosen
_BETTER: Final = 1.5  # times less noise in a score, or else all groups are noised
_MISSED: Final = 20  # one in so many choices leaves out a group that is further above the last one than is told
_LEAST_LISTED: Final = 3  # times the groups that are asked for


@dataclass(frozen=True, slots=True)
class Top:
    """So many groups of a list, those with the largest noised numbers of the block's only measure."""

    name: str
    sensitivity: int  # of ONE unit in one group; the rules' group_size multiplies it
    epsilon: Decimal
    count: int
    listed: int  # among so many
    factor: int = 1  # how many of the statement's integers are one
    is_pure: bool = True  # or else it is paid by ρ alone, as Gaussian noise is

    def margin(self, *, group_size: int) -> float:
        """By how much a group may be above the last one and be left out all the same, in one of twenty choices.

        Two scores differ by logistic noise; one of the pairs of a chosen and another group is further off with at most
        as often as all of them together.
        """
        scale = gumbel_scale(self, group_size=group_size) / self.factor
        return scale * math.log(_MISSED * self.listed * self.count)


def gumbel_scale(top: Top, *, group_size: int) -> float:
    """About the scale of the noise in a score; `draw.top_scale` rounds it up."""
    sensitivity, epsilon = top.sensitivity * group_size, float(top.epsilon)
    return top.count * sensitivity / epsilon if top.is_pure else math.sqrt(top.count) * sensitivity / (2 * epsilon)


def rho_of_top(top: Top) -> Fraction:
    """The ρ that a choice is charged with: k(Δ/s)²/8, by its scale."""
    squared = Fraction(top.epsilon) ** 2
    return squared / (8 * top.count) if top.is_pure else squared / 2


def epsilons_of(epsilon: Decimal) -> tuple[Decimal, Decimal]:
    """Return what the choice has of a block's ε, and what the numbers have."""
    chosen = epsilon * _SHARE
    return chosen, epsilon - chosen


def is_better(count: int, listed: int, groups: int, noise: Literal["laplace", "gaussian"]) -> bool:
    """Return whether a choice of so many groups has less noise than the counts of all, where a unit is in so many.

    Example:
        >>> is_better(5, 120, 15, "laplace"), is_better(5, 120, 14, "laplace"), is_better(5, 120, 12, "gaussian")
        (True, False, True)
    """
    if listed < _LEAST_LISTED * count:
        return False
    if noise == "laplace":
        return groups >= _BETTER * count / float(_SHARE)
    return math.sqrt(groups) >= _BETTER * math.sqrt(count) / (2 * float(_SHARE))
