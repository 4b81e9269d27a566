"""Quantiles, extremes, the mode and the largest groups: scores of candidates, for the exponential mechanism.

A score says, with the sign turned, how many rows would have to be others for the candidate to be right. One row more
or less moves every score by at most `step`, so a unit with m rows in the histogram moves it by m times that.
(Smith 2011; the candidate's own rows count as on the right side, so that a full bin is not punished for being full.)

How many blocks of units the median of their values needs, and how far the ends of its error bar lie, follows from it.
The exponential mechanism gives a candidate that is off by d blocks e^(−ε·d/2r) of the weight of the median, where r is
how many values units that are protected together may replace. Among all candidates those that no block is near, and
which are off by half of the blocks, are chosen with a probability of less than β if B ≥ (4r/ε)·ln(candidates/β).

The groups with the largest counts are chosen in one go, with noise that does not grow by the groups that are not. Their
scores get Gumbel noise of one scale s, and the k largest are taken: as k exponential mechanisms without replacement
(Durfee and Rogers, NeurIPS 2019). A unit that comes moves all scores up, each by Δ at most, so each of the k is
Δ/s-private, and (Δ/s)²/8-zCDP.
"""

import math
from collections.abc import Sequence
from decimal import Decimal
from itertools import accumulate
from statistics import NormalDist
from typing import Final, assert_never

from rules.frozen import frozen
from rules.kernel.special.blocks import MOST_BLOCKS
from rules.mechanisms.additive import NOISES
from rules.mechanisms.cost import price
from rules.mechanisms.draw import Noise
from rules.mechanisms.release_plan import Choice, FromEnd, MostFrequent, Quantile, Target
from rules.policy.model import NoiseKind
from rules.refusal import NotSupported

_LOWEST, _HIGHEST = -(2**62), 2**62  # scores are cut there, which moves none of them further than the rows did
_CANDIDATES = 1024  # at most
_SURE = 0.001  # β
_FEWEST = 25
_SHARE: Final = Decimal("0.5")  # of ε is for the choice of groups, the rest for the numbers of what is chosen
_BETTER: Final = 1.5  # times less noise in a score, or else all groups are noised
_LEAST_LISTED: Final = 3  # times the groups that are asked for


def choose(choice: Choice, histogram: Sequence[int], noise: Noise, *, group_size: int) -> int:
    """The number of the chosen candidate in one group."""
    shift = shift_of(choice, group_size=group_size)
    scores = [max(_LOWEST, min(score, _HIGHEST)) for score in score_candidates(choice.target, histogram, shift)]
    sensitivity = choice.sensitivity * group_size * step(choice.target)
    return noise.choose(scores, sensitivity=sensitivity, epsilon=choice.epsilon)


def shift_of(choice: Choice, *, group_size: int) -> int:
    """By how many rows the target of an error bar's end lies beside that of the choice: by the query and the rules.

    Where the rows lie evenly, a choice misses its target by a number of rows with a Laplace law of scale
    2·m·max(q, 1−q)/ε, whatever their density. A bar reaches over its ends and over the choice itself, which lies on
    either side of the truth in half of draws. So each end may fall short in 1 − level of draws: the bar in half of it.
    """
    if choice.end is None:
        return 0
    if choice.end.reach is not None:
        return choice.end.side * choice.end.reach * choice.factor
    scale = scale_of(choice, group_size=group_size) * choice.factor
    return choice.end.side * math.ceil(-scale * math.log(2 * (1 - float(choice.end.level))))


def scale_of(choice: Choice, *, group_size: int) -> float:
    """The scale, in rows, of the Laplace law by which a choice misses its target where rows lie evenly."""
    units = choice.target.fraction.denominator if isinstance(choice.target, Quantile) else 1
    sensitivity = choice.sensitivity * group_size * step(choice.target) / choice.factor
    return 2 * sensitivity / units / float(choice.epsilon)


def score_candidates(target: Target, histogram: Sequence[int], shift: int = 0) -> list[int]:
    """A score for each candidate; the best is the highest, and 0 where there is a right one.

    The shift moves the target by so many rows; that one row more or less moves a score by `step` is as true then.
    """
    match target:
        case Quantile(fraction=fraction):
            wanted = fraction.numerator * sum(histogram) + shift * fraction.denominator
            return _distances(histogram, fraction.denominator, wanted)
        case FromEnd(place=place, largest=largest):
            turn = -1 if largest else 1
            return _distances(histogram[::turn], 1, place + turn * shift, first=1)[::turn]
        case MostFrequent():
            # All scores move the same way, so exp(ε·score/Δ) is ε-private: twice the score in exp(ε·score/2Δ).
            return [2 * rows for rows in histogram]
        case _:
            assert_never(target)


def step(target: Target) -> int:
    """Return how far one row moves a score."""
    match target:
        case Quantile(fraction=fraction):
            return max(fraction.numerator, fraction.denominator - fraction.numerator)
        case FromEnd() | MostFrequent():
            return 1
        case _:
            assert_never(target)


def place_for_extreme(choices: int, sensitivity: int, epsilon: Decimal) -> int:
    """From which place on the extreme of the data is found rather than an empty candidate beyond it, in 19 of 20 cases.

    Example:
        >>> place_for_extreme(500, 1, Decimal("0.1"))
        185
    """
    return math.ceil(2 * sensitivity / float(epsilon) * math.log(choices / 0.05))


def _distances(histogram: Sequence[int], scale: int, wanted: int, *, first: int = 0) -> list[int]:
    """Minus the distance of `wanted` from a candidate's places: from below + first to below + rows, times scale."""
    upto = list(accumulate(histogram))
    return [
        -max(0, scale * (above - rows + first) - wanted, wanted - scale * above)
        for rows, above in zip(histogram, upto, strict=True)
    ]


def epsilons_of(epsilon: Decimal) -> tuple[Decimal, Decimal]:
    """Return what the choice has of a block's ε, and what the numbers have."""
    chosen = epsilon * _SHARE
    return chosen, epsilon - chosen


def is_better(count: int, listed: int, groups: int, kind: NoiseKind) -> bool:
    """Return whether a choice of so many groups has less noise than the counts of all, where a unit is in so many.

    Example:
        >>> is_better(5, 120, 15, "laplace"), is_better(5, 120, 14, "laplace"), is_better(5, 120, 12, "gaussian")
        (True, False, True)
    """
    if listed < _LEAST_LISTED * count:
        return False
    noise = NOISES[kind]
    chosen = count if noise.is_pure else math.sqrt(count) / 2  # times Δ/ε, the scale of a score's noise
    return noise.reach(groups, groups) >= _BETTER * chosen / float(_SHARE)


@frozen
class BlockNeed:
    """The blocks that an answer needs, from its ε and how many values units that go together may replace."""

    epsilon: Decimal
    replaced: int

    @property
    def fewest(self) -> int:
        """A candidate with nobody near loses to the median by half the blocks: weights exp(−ε·B/4) against all."""
        wanted = 4 * self.replaced / float(self.epsilon) * math.log(_CANDIDATES / _SURE)
        return max(_FEWEST, math.ceil(wanted))

    def blocks(self, requested: int | None, level: Decimal | None) -> int:
        """As many as were asked for, or as are needed; for an error bar so many that its ends lie at the quartiles."""
        if requested is not None:
            return requested
        return min(self.fewest if level is None else max(self.fewest, self._fewest_reaching(4, level)), MOST_BLOCKS)

    def reach(self, blocks: int, level: Decimal) -> int:
        """By how many blocks an end of an error bar lies beside the median: for their spread, and for the noise."""
        reach = math.ceil(self._spread(level) * math.sqrt(blocks) + self._noise(level))
        if 2 * reach < blocks:
            return reach
        needed = self._fewest_reaching(2, level) + 4
        more = f"{needed:,} or more are needed: blocks => {needed}."
        raise NotSupported(
            f"{blocks:,} blocks are too few for an error bar of noisegate.typical at epsilon {price(self.epsilon)}",
            hint=more if needed <= MOST_BLOCKS else "Ask with a higher epsilon, or in fewer groups.",
            about="typical",
        )

    def _fewest_reaching(self, part: int, level: Decimal) -> int:
        """Blocks of which the reach is one of so many parts: B = part·(spread·√B + noise), solved for √B."""
        half = part * self._spread(level) / 2
        return math.ceil((half + math.sqrt(half**2 + part * self._noise(level))) ** 2)

    def _spread(self, level: Decimal) -> float:
        return NormalDist().inv_cdf((1 + float(level)) / 2) / 2

    def _noise(self, level: Decimal) -> float:
        return 2 * self.replaced / float(self.epsilon) * math.log(_CANDIDATES * 2 / (1 - float(level)))
