"""Replicates of an answer: its released numbers with their noise taken back, at fixed points of the noise's law.

Of the noise only its law is known. Each replicate takes another quantile of it from every number, and error bars are
quantiles of the analyst's own expression over the replicates. Nothing is drawn: the points are a lattice rule
(Korobov 1959), in which each number runs through all its quantiles once, in an order of its own. So the same release
has the same bars for ever, and they cost nothing.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from functools import lru_cache

import numpy as np

from rules.frozen import frozen
from rules.mechanisms.distribution import Distribution
from rules.mechanisms.noised_outputs import Chosen, ChosenList, Count, Matrix, Output, Statistic, Sum, Text
from rules.mechanisms.release_plan import Bar, BarEnd, Block
from rules.refusal import TooComplex
from rules.release.outputs import arrays, replicated, show

Cell = Sequence[int]
Laws = tuple[Distribution | None, ...]  # of the noise in a group's numbers, by measure; None: exact

# To a level: a prime, whose residues are the points, and the factor that orders them. Found by trying: bars of sums and
# differences of any two among eleven numbers that follow each other hold what they say within 1.4, 0.9 and 0.3
# hundredths, of any three within 2.4, 1.7 and 0.8, with Laplace noise and with Gaussian.
_LATTICES = ((Decimal("0.95"), 557, 198), (Decimal("0.99"), 1021, 225), (Decimal("0.999"), 4003, 2318))

_MOST = 6_000_000  # replicates of one block: 10,000 groups have one bar of the usual confidence
_LIGHT = 0.1  # what a replicate weighs that is not sent
_TOGETHER = 256  # groups that are computed at once


def replicate_columns(block: Block, cells: Sequence[Cell], laws: Sequence[Laws]) -> tuple[tuple[Text, ...], ...]:
    """For each output that has bars, and each group, an array of what it may stand for, by the laws of its noise."""
    turns = _turns(block, laws)
    places = places_by_laws(laws)
    noise = noise_by_laws(block, places)
    columns = [list[Text]([None] * len(cells)) for _ in block.bars]
    for own, alike in places.items():
        for start in range(0, len(alike), _TOGETHER):
            some = alike[start : start + _TOGETHER]
            part = _Part([cells[place] for place in some], noise[own], turns, block, known_laws(own))
            for column, bar in zip(columns, block.bars, strict=True):
                for place, text in zip(some, part.texts(bar), strict=True):
                    column[place] = text
    return tuple(map(tuple, columns))


def places_by_laws(laws: Sequence[Laws]) -> dict[Laws, list[int]]:
    """The places of numbers whose noise has equal laws."""
    places_of: dict[Laws, list[int]] = {}
    last, places = None, list[int]()
    for place, law in enumerate(laws):
        if law is not last:  # most are one and the same
            last, places = law, places_of.setdefault(law, [])
        places.append(place)
    return places_of


def known_laws(laws: Laws) -> dict[int, Distribution]:
    """The laws by measure, without what is exact."""
    return {measure: law for measure, law in enumerate(laws) if law is not None}


def noise_by_laws(block: Block, laws: Iterable[Laws]) -> dict[Laws, tuple[tuple[int, ...] | None, ...]]:
    """By measure, the noise in each replicate of numbers with these laws."""
    different = tuple(dict.fromkeys(laws))
    turns = _turns(block, different)
    return {laws: _noise(block, laws, turns) for laws in different}


def _turns(block: Block, laws: Iterable[Laws]) -> dict[int, int]:
    """Return which dimension of the lattice each measure has."""
    outputs = [block.outputs[bar.output] for bar in block.bars]
    centres = {output.measure for output in outputs if isinstance(output, Chosen)}
    noisy = {measure for group_laws in set(laws) for measure, law in enumerate(group_laws) if law is not None}
    moving = [measure for measure in range(block.numbers) if measure in noisy or measure in centres]
    return {measure: turn for turn, measure in enumerate(moving)}


def check_size(bars: Sequence[Bar], groups: int, level: Decimal) -> None:
    """So many numbers are computed and, unless a bar is that of one output, sent to the twin, for every group."""
    prime, _ = points(level)
    weight = sum(1 if bar.end is None else _LIGHT for bar in bars)
    if weight * groups * (prime - 1) > _MOST:
        hint = "Select fewer groups or fewer error bars, or SET noisegate.confidence = 0.95."
        raise TooComplex(f"error bars with confidence {level} in {groups:,} groups exceed the limit", hint=hint)


def points(level: Decimal) -> tuple[int, int]:
    """The prime and the factor of the lattice: enough points for the quantiles of a level."""
    return next((prime, factor) for most, prime, factor in _LATTICES if level <= most)


def _noise(block: Block, laws: Laws, turns: Mapping[int, int]) -> tuple[tuple[int, ...] | None, ...]:
    """By measure the noise in each replicate; None where there is none."""
    return tuple(None if law is None else _draws(law, turns[measure], block.level) for measure, law in enumerate(laws))


@lru_cache(maxsize=4096)
def _draws(law: Distribution, turn: int, level: Decimal) -> tuple[int, ...]:
    """The quantiles of noise, in the order of one dimension of the lattice."""
    ordered = _quantiles(law, points(level)[0] - 1)
    return tuple(ordered[place] for place in _order(turn, level))


@lru_cache(maxsize=256)
def _order(turn: int, level: Decimal) -> tuple[int, ...]:
    """Return which of the ordered quantiles each replicate takes."""
    prime, factor = points(level)
    step = pow(factor, turn, prime)
    return tuple(place * step % prime - 1 for place in range(1, prime))


@lru_cache(maxsize=1024)
def _quantiles(law: Distribution, number: int) -> tuple[int, ...]:
    """So many equally likely values of the noise, in order; as many below zero as above."""
    upper = law.quantiles(_upper_shares(number))
    return (*(-bound for bound in reversed(upper)), *upper)


def _upper_shares(number: int) -> list[float]:
    """The middles of the upper half of so many equal parts of the probability."""
    return [(2 * place + 1) / (2 * number) for place in range(number // 2, number)]


@frozen
class _Part:
    """Some groups whose numbers are sums of equally many cells, with the noise of each replicate."""

    cells: Sequence[Cell]
    noise: tuple[tuple[int, ...] | None, ...]
    turns: Mapping[int, int]
    block: Block
    laws: Mapping[int, Distribution]  # of the numbers that have noise

    def texts(self, bar: Bar) -> list[Text]:
        """The end of a bar, or all replicates as an array, for each group."""
        output = self.block.outputs[bar.output]
        if isinstance(output, Chosen):
            return [_between_ends(output, cell, self.turns[output.measure], self.block.level) for cell in self.cells]
        if not any(self.noise):
            shown = [show(output, cell) for cell in self.cells]
            return shown if bar.end else [f"{{{_element(text)}}}" for text in shown]
        return self._arrays(output) if bar.end is None else self._ends(output, bar.end)

    def _arrays(self, output: Output) -> list[Text]:
        if isinstance(output, Count):
            return [self._counts(output, cell) for cell in self.cells]
        replicates = None if isinstance(output, Chosen | ChosenList) else replicated(output, self._matrices())
        if replicates is None or isinstance(output, Chosen | ChosenList):
            return [f"{{{','.join(map(_element, self._exactly(output, cell)))}}}" for cell in self.cells]
        return list[Text](arrays(replicates, output.digits, is_statistic=isinstance(output, Statistic)))

    def _counts(self, output: Count, cell: Cell) -> Text:
        number, draws = cell[output.measure], self.noise[output.measure] or (0,)
        return f"{{{','.join(str(output.held(number - draw)) for draw in draws)}}}"

    def _ends(self, output: Output, end: BarEnd) -> list[Text]:
        """The replicate at the bar's quantile, as percentile_disc finds it; what is shown of it is computed exactly."""
        replicates, middles = (
            replicated(output, self._matrices()),
            [[_number(show(output, cell))] for cell in self.cells],
        )
        distances = self._distances(output) if replicates is None else replicates - np.array(middles, dtype=np.float64)
        if end == "margin" or replicates is None:
            replicates = np.abs(distances) if end == "margin" else distances
        ranks = [
            _rank(known, end, self.block.level) for known in np.count_nonzero(~np.isnan(replicates), axis=1).tolist()
        ]
        order = np.argsort(replicates, axis=1, kind="stable")  # what is not defined comes last
        known = [self._at_margin(output, cell) if end == "margin" else None for cell in self.cells]
        return [
            text or (None if rank is None else show(output, self._replicate(cell, int(row[rank]))))
            for text, cell, row, rank in zip(known, self.cells, order, ranks, strict=True)
        ]

    def _at_margin(self, output: Output, cell: Cell) -> Text:
        """A count or a sum that its law's margin was added to, as the NOTICE tells it; None: its margin is no such."""
        if not isinstance(output, Count | Sum) or output.measure not in self.laws:
            return None
        moved = list(cell)
        moved[output.measure] += (reach := self.laws[output.measure].margin(self.block.level))
        is_clamped = isinstance(output, Count) and (
            output.most is not None or (output.shown_bare and cell[output.measure] < reach)
        )
        return None if is_clamped else show(output, moved)

    def _distances(self, output: Output) -> Matrix:
        """Return how far every replicate lies from what was released, or from zero where that is NULL."""
        rows = []
        for cell in self.cells:
            middle = _number(show(output, cell))
            shown = [_number(text) for text in self._exactly(output, cell)]
            rows.append([float(decimal if middle.is_nan() else decimal - middle) for decimal in shown])
        return np.array(rows)

    def _matrices(self) -> list[Matrix]:
        """By measure the numbers of all groups in all replicates; of what is exact the numbers alone."""
        numbers = np.array(self.cells, dtype=np.float64)
        return [
            numbers[:, [measure]] - (0.0 if draws is None else np.array(draws, dtype=np.float64))
            for measure, draws in enumerate(self.noise)
        ]

    def _replicate(self, cell: Cell, place: int) -> list[int]:
        return [
            number if draws is None else number - draws[place] for number, draws in zip(cell, self.noise, strict=True)
        ]

    def _exactly(self, output: Output, cell: Cell) -> list[Text]:
        """Return what would be shown of each replicate."""
        return [show(output, self._replicate(cell, place)) for place in range(points(self.block.level)[0] - 1)]


def _number(text: Text) -> Decimal:
    return Decimal("NaN" if text is None else text)


def share_below(end: BarEnd, level: Decimal) -> Decimal:
    """At which quantile of the replicates, or of their distances, a bar ends."""
    return {"margin": level, "low": (1 - level) / 2, "high": (1 + level) / 2}[end]


def _rank(known: int, end: BarEnd, level: Decimal) -> int | None:
    return max(1, math.ceil(float(share_below(end, level)) * known)) - 1 if known else None


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
    """Return how far out each upper quantile of a Laplace law lies, in parts of the way to that of the level."""
    to_level = -math.log(1 - float(level))
    return tuple(-math.log(2 * (1 - share)) / to_level for share in _upper_shares(points(level)[0] - 1))


def _element(text: Text) -> str:
    return "NULL" if text is None else text
