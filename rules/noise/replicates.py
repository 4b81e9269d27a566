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

from rules.noise.law import Law
from rules.noise.measures import Block, Chosen, Output, Text
from rules.noise.outputs import show
from rules.refusal import TooComplex

Cell = Sequence[int]

# To a level: a prime, whose residues are the points, and the factor that orders them. Found by trying: of any two among
# a dozen numbers that follow each other the sum has its quantiles within 1.7, 1.0 and 0.4 hundredths of their place.
_LATTICES = ((Decimal("0.95"), 509, 71), (Decimal("0.99"), 1021, 66), (Decimal("0.999"), 4003, 911))

_MOST = 6_000_000  # replicates of one block: 10,000 groups have one bar of the usual confidence


def replicate_columns(
    block: Block, cells: Sequence[Cell], counts: Sequence[int], laws: Mapping[int, Law]
) -> tuple[tuple[Text, ...], ...]:
    """For each output that has bars, and each group, an array of what it may stand for.

    `counts` says how many released cells a group's numbers are sums of. A number without a law is exact.
    """
    outputs = [block.outputs[place] for place in block.bars]
    centres = {output.measure for output in outputs if isinstance(output, Chosen)}
    moving = [measure for measure in range(len(block.measures)) if measure in laws or measure in centres]
    turns = {measure: turn for turn, measure in enumerate(moving)}
    noise = {count: _noise(block, count, laws, turns) for count in set(counts)}
    return tuple(
        tuple(_array(output, cell, noise[count], turns, block.level) for cell, count in zip(cells, counts, strict=True))
        for output in outputs
    )


def check_size(bars: int, groups: int, level: Decimal) -> None:
    """So many numbers are computed and sent to the twin, for every group that is shown."""
    prime, _ = points(level)
    if bars * groups * (prime - 1) > _MOST:
        hint = "Ask for fewer groups or fewer bars, or SET noisegate.confidence = 0.95."
        raise TooComplex(f"error bars with a confidence of {level} in {groups:,} groups are too many", hint=hint)


def points(level: Decimal) -> tuple[int, int]:
    """The prime and the factor of the lattice: enough points for the quantiles of a level."""
    return next((prime, factor) for most, prime, factor in _LATTICES if level <= most)


def _noise(
    block: Block, count: int, laws: Mapping[int, Law], turns: Mapping[int, int]
) -> tuple[tuple[int, ...] | None, ...]:
    """By measure the noise in each replicate of a sum of so many cells; None where there is none."""
    return tuple(
        _draws(laws[measure].repeated(count), turns[measure], block.level) if count and measure in laws else None
        for measure in range(len(block.measures))
    )


@lru_cache(maxsize=4096)
def _draws(law: Law, turn: int, level: Decimal) -> tuple[int, ...]:
    """The quantiles of noise, in the order of one dimension of the lattice."""
    ordered = _quantiles(law, points(level)[0] - 1)
    return tuple(ordered[place] for place in _order(turn, level))


@lru_cache(maxsize=256)
def _order(turn: int, level: Decimal) -> tuple[int, ...]:
    """Which of the ordered quantiles each replicate takes."""
    prime, factor = points(level)
    step = pow(factor, turn, prime)
    return tuple(place * step % prime - 1 for place in range(1, prime))


@lru_cache(maxsize=1024)
def _quantiles(law: Law, number: int) -> tuple[int, ...]:
    """So many equally likely values of the noise, in order; as many below zero as above."""
    upper = law.quantiles(_upper_shares(number))
    return (*(-each for each in reversed(upper)), *upper)


def _upper_shares(number: int) -> list[float]:
    """The middles of the upper half of so many equal parts of the probability."""
    return [(2 * place + 1) / (2 * number) for place in range(number // 2, number)]


def _array(
    output: Output,
    cell: Cell,
    noise: Sequence[tuple[int, ...] | None],
    turns: Mapping[int, int],
    level: Decimal,
) -> Text:
    """One output of one group in every replicate."""
    if isinstance(output, Chosen):
        return _between_ends(output, cell, turns[output.measure], level)
    if not any(noise):
        return f"{{{_element(show(output, cell))}}}"
    moved = (
        repeat(number) if draws is None else [number - draw for draw in draws]
        for number, draws in zip(cell, noise, strict=True)
    )
    return "{" + ",".join(_element(show(output, numbers)) for numbers in zip(*moved, strict=False)) + "}"


def _between_ends(output: Chosen, cell: Cell, turn: int, level: Decimal) -> Text:
    """A choice moved towards its ends by the law of its rank, which has them at the level's quantiles."""
    if output.ends is None:
        raise ValueError("a choice without ends has no error bars")
    centre, ends = cell[output.measure], output.ends
    low, high = min(centre, cell[ends.low]), max(centre, cell[ends.high])
    last = len(output.candidates) - 1
    below = [ends.lowest[max(0, math.floor(centre - part * (centre - low)))] for part in _parts(level)]
    above = [ends.highest[min(last, math.ceil(centre + part * (high - centre)))] for part in _parts(level)]
    ordered = [*reversed(below), *above]
    return "{" + ",".join(f'"{ordered[place]}"' for place in _order(turn, level)) + "}"


@lru_cache(maxsize=64)
def _parts(level: Decimal) -> tuple[float, ...]:
    """How far out each upper quantile of a Laplace law lies, in parts of the way to that of the level."""
    to_level = -math.log(1 - float(level))
    return tuple(-math.log(2 * (1 - share)) / to_level for share in _upper_shares(points(level)[0] - 1))


def _element(text: Text) -> str:
    return "NULL" if text is None else text
