"""What an answer may stand for: its released numbers with their noise taken back, at fixed points of the noise's law.

Of the noise only its law is known. Each replicate takes another quantile of it from every number, and error bars are
quantiles of the analyst's own expression over the replicates. Nothing is drawn: the points are a lattice rule
(Korobov 1959), in which each number runs through all its quantiles once, in an order of its own. So the same release
has the same bars for ever, and they cost nothing.
"""

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from itertools import repeat

from rules.noise.measures import Block, Output, Text
from rules.noise.outputs import show
from rules.noise.sum_law import quantile_of_sum

Cell = Sequence[int]

# To a level: a prime, whose residues are the points, and the factor that orders them; even in two and in three numbers.
_LATTICES = ((Decimal("0.95"), 257, 54), (Decimal("0.99"), 1021, 395), (Decimal("0.999"), 4003, 709))


def replicate_columns(
    block: Block, cells: Sequence[Cell], counts: Sequence[int], scales: Mapping[int, float]
) -> tuple[tuple[Text, ...], ...]:
    """For each output that has bars, and each group, an array of what it may stand for.

    `counts` says how many released cells a group's numbers are sums of. A number without a scale is exact.
    """
    noises = [_noise(block, count, scales) for count in sorted(set(counts))]
    by_count = dict(zip(sorted(set(counts)), noises, strict=True))
    return tuple(
        tuple(_array(block.outputs[place], cell, by_count[count]) for cell, count in zip(cells, counts, strict=True))
        for place in block.bars
    )


def points(level: Decimal) -> tuple[int, int]:
    """The prime and the factor of the lattice: enough points for the quantiles of a level."""
    return next((prime, factor) for most, prime, factor in _LATTICES if level <= most)


def _noise(block: Block, count: int, scales: Mapping[int, float]) -> tuple[tuple[int, ...] | None, ...]:
    """By measure the noise of each replicate, or None where there is none. Their order follows from their number."""
    noisy = [measure for measure in range(len(block.measures)) if count and scales.get(measure)]
    turns = {measure: turn for turn, measure in enumerate(noisy)}
    return tuple(
        _draws(scales[measure], count, turns[measure], block.level) if measure in turns else None
        for measure in range(len(block.measures))
    )


@lru_cache(maxsize=4096)
def _draws(scale: float, count: int, turn: int, level: Decimal) -> tuple[int, ...]:
    """The quantiles of a sum of draws, in the order of one dimension of the lattice."""
    prime, factor = points(level)
    step = pow(factor, turn, prime)
    ordered = _quantiles(scale, count, prime - 1)
    return tuple(ordered[place * step % prime - 1] for place in range(1, prime))


@lru_cache(maxsize=1024)
def _quantiles(scale: float, count: int, number: int) -> tuple[int, ...]:
    """So many equally likely values of the noise, in order; as many below zero as above."""
    shares = [(2 * place + 1) / (2 * number) for place in range(number // 2, number)]
    if count == 1:
        upper = [_quantile(scale, share) for share in shares]
    else:
        upper = [round(scale * each) for each in quantile_of_sum(count, shares)]
    return (*(-each for each in reversed(upper)), *upper)


def _quantile(scale: float, share: float) -> int:
    """The smallest t with P(noise ≤ t) = 1 − α^(t+1) / (1+α) ≥ share, for a discrete Laplace draw and share ≥ 1/2."""
    alpha = math.exp(-1 / scale)
    return max(0, math.ceil(-scale * math.log((1 - share) * (1 + alpha))) - 1)


def _array(output: Output, cell: Cell, noise: Sequence[tuple[int, ...] | None]) -> Text:
    """One output of one group in every replicate."""
    if not any(noise):
        return "{" + _element(show(output, cell)) + "}"
    moved = (
        repeat(number) if draws is None else [number - draw for draw in draws]
        for number, draws in zip(cell, noise, strict=True)
    )
    return "{" + ",".join(_element(show(output, numbers)) for numbers in zip(*moved, strict=False)) + "}"


def _element(text: Text) -> str:
    return "NULL" if text is None else text
