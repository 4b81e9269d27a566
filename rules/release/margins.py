"""Margins of each column of an answer: how far noise may have moved it.

A count or a sum has one margin whatever is found. That of an average, a statistic or a ratio depends on the group: it
is a quantile of the distances of replicates from what was released (`release.replicates`), so it costs nothing. A
quantile is chosen by its rank, and how far that may be off is known from its ε alone, where rows lie evenly.

A select item is arithmetic over a block's outputs: enough of it to tell how far noise moves the item.
Whatever else an item is made of has no formula. It is computed all the same, by the twin; only its margin is not known
without asking for it.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce
from itertools import compress
from statistics import median
from typing import Final, Literal

import numpy as np

from rules.frozen import frozen, replace
from rules.kernel.bounded import Statement
from rules.kernel.keys import Bins
from rules.kernel.summand import Summand
from rules.mechanisms.exponential_choice import scale_of
from rules.mechanisms.noised_outputs import (
    Average,
    CentredSum,
    Chosen,
    ChosenList,
    Count,
    Estimate,
    Matrix,
    Output,
    Statistic,
    Sum,
    margin_of_output,
)
from rules.mechanisms.release_plan import Block, Choice, FromEnd, Measure, MostFrequent
from rules.release.outputs import lattice_number, lattice_step, replicated
from rules.release.release import Noised, is_about_few, shown_cells
from rules.release.replicates import Laws, known_laws, noise_by_laws, places_by_laws
from rules.values.expression import Apply

Operator = Literal["+", "-", "*", "/", "nullif", "coalesce", "greatest", "least", "abs", "sqrt"]


@frozen
class Value:
    """One of the block's outputs."""

    output: int


@frozen
class Number:
    """A constant, in a double: a margin needs no more."""

    text: str


@frozen
class Operation:
    """An operator or function over formulas."""

    operator: Operator
    operands: "tuple[Formula, ...]"


Formula = Value | Number | Operation


@frozen
class Result:
    """A column of an answer that has noise."""

    name: str  # as the client sees it, or as the analyst wrote it below the outermost SELECT
    block: int
    formula: Formula | None
    item: int | None = None  # which item of the outermost SELECT it is; None: it stands below that


def outputs_in(formula: Formula) -> tuple[int, ...]:
    """The outputs that a formula needs."""
    match formula:
        case Value(output=output):
            return (output,)
        case Number():
            return ()
        case Operation(operands=operands):
            return tuple(dict.fromkeys(output for operand in operands for output in outputs_in(operand)))


def _evaluate(formula: Formula, outputs: dict[int, Matrix]) -> Matrix:
    """The formula over rows of replicates, NaN where it is NULL or not defined."""
    with np.errstate(all="ignore"):
        match formula:
            case Value(output=output):
                return outputs[output]
            case Number(text=text):
                return np.array([[float(text)]])
            case Operation(operator=operator, operands=operands):
                return _operated(operator, [_evaluate(operand, outputs) for operand in operands])


def _operated(operator: Operator, arrays: Sequence[Matrix]) -> Matrix:
    first, *others = arrays
    match operator:
        case "+" | "-" if not others:
            return first if operator == "+" else -first
        case "+":
            return first + others[0]
        case "-":
            return first - others[0]
        case "*":
            return first * others[0]
        case "/":
            return np.where(others[0] == 0, np.nan, first / others[0])
        case "nullif":
            return np.where(first == others[0], np.nan, first)
        case "coalesce":
            return reduce(lambda known, other: np.where(np.isnan(known), other, known), arrays)
        case "greatest":
            return reduce(np.fmax, arrays)
        case "least":
            return reduce(np.fmin, arrays)
        case "abs":
            return np.abs(first)
        case "sqrt":
            return np.sqrt(first)  # of a negative number NaN, as the answer has NULL there


_TOGETHER = 256  # groups that are computed at once
_UNITS = (("date", " days"), ("timestamp", " seconds"))
_STATISTICS = {"corr": "correlations", "stddev": "deviations", "var": "variances", "covar": "covariances"}


# How much noise matters, by the share of a number that its margin is: the largest share of which each word is true.
NOISE_WORDS: Final = (("none", 0.01), ("low", 0.05), ("medium", 0.2), ("high", 1.0), ("too high", math.inf))


def noise_word(share: float) -> str:
    """How much noise matters.

    Example:
        >>> noise_word(0.01), noise_word(0.04), noise_word(0.5), noise_word(7.0)
        ('none', 'low', 'high', 'too high')
    """
    return next(word for word, most in NOISE_WORDS if share <= most)


def noise_advice(share: float) -> str:
    """What makes noise matter less, where it does; "" where it is low.

    Example:
        >>> noise_advice(0.2)
        'for low noise: fewer groups, a longer range, or about 4 times the epsilon'
    """
    if share <= _LOW:
        return ""
    times = f", or about {math.ceil(round(share / _LOW, 6)):,} times the epsilon" if share <= _MOST_TIMES * _LOW else ""
    return f"for low noise: fewer groups{'' if times else ' or'}{',' * bool(times)} a longer range{times}"


_LOW = 0.05
_MOST_TIMES = 1_000  # the ε; more is no advice


@frozen
class Margin:
    """The margin of one column: the least and the widest of its groups, or nothing where none can be told."""

    name: str
    kind: str  # in words: "counts"; "" for what has no word but its name
    level: Decimal
    least: float | None = None
    widest: float | None = None
    rank_of: str = ""  # "rows": in these by which the rank may be off, not in the value's own unit
    reach: float = 0.0  # by how much more the value may be off, which stands for others near it
    unit: str = ""  # of that
    share: float | None = None  # of a number that its margin is, in the median of the shown groups

    @property
    def is_known(self) -> bool:
        return self.widest is not None


def margins_of(
    results: Sequence[Result],
    number: int,
    block: Block,
    noised: Noised,
    group_size: int,
    kept: Sequence[bool] | None = None,
) -> list[Margin]:
    """The margins of the columns that this block of a plan answers, in the groups that are kept."""
    _, cells, laws = shown_cells(block, noised)
    if kept is not None and any(kept):
        cells, laws = list(compress(cells, kept)), list(compress(laws, kept))
    released = _Released(block, cells, laws, group_size)
    return [released.margin(result) for result in results if result.block == number]


def moving_outputs(block: Block) -> tuple[int, ...]:
    """The outputs whose margin depends on what is found."""
    moving = Average | Statistic | Estimate
    return tuple(number for number, output in enumerate(block.outputs) if isinstance(output, moving))


def rank_margin(output: Chosen | ChosenList, block: Block, group_size: int) -> float | None:
    """By how many rows the rank of a quantile may be off; the most frequent value has no rank."""
    places = (output.measure,) if isinstance(output, Chosen) else output.measures
    choices = [mechanism for place in places if isinstance(mechanism := block.measures[place], Choice)]
    if any(isinstance(choice.target, MostFrequent) for choice in choices):
        return None
    return max(scale_of(choice, group_size=group_size) for choice in choices) * -math.log(1 - float(block.level))


def rank_unit(output: Chosen | ChosenList, block: Block) -> str:
    """Return what a rank is counted in."""
    place = output.measure if isinstance(output, Chosen) else output.measures[0]
    return "blocks" if _is_of_blocks(block.measures[place]) else "rows"


@frozen
class PlaceOfExtreme:
    """The row that stands for min or max: so many from the end, and its part of the rows of each group, if known."""

    largest: bool
    rows: int
    shares: tuple[float, ...]


def places_of_extremes(block: Block, noised: Noised, kept: Sequence[bool] | None = None) -> tuple[PlaceOfExtreme, ...]:
    """Return the place of each min and max of a block."""
    _, cells, _ = shown_cells(block, noised)
    cells = list(cells) if kept is None else list(compress(cells, kept))
    counted = _counted(block)
    places = []
    for output in block.outputs:
        choice = block.measures[output.measure] if isinstance(output, Chosen) else None
        if isinstance(choice, Choice) and isinstance(target := choice.target, FromEnd):
            place = math.ceil(target.place / choice.factor)
            known = [] if counted is None or _is_filtered(choice) else [cell[counted] for cell in cells]
            shares = tuple(min(1.0, place / max(1, rows)) for rows in known)
            places.append(PlaceOfExtreme(target.largest, place, shares))
    return tuple(places)


def _is_filtered(choice: Choice) -> bool:
    """Tell whether it is made of fewer rows than a count beside it."""
    match choice.statement:
        case Statement(keys=(*_, Bins(summand=Summand(expression=Apply(name="case"))))):
            return True
    return False


def _counted(block: Block) -> int | None:
    """The measure that counts rows, if there is one."""
    counts = (output.measure for output in block.outputs if isinstance(output, Count) and output.adds_up)
    return next(counts, block.counted)


def unit_of_reach(output_type: str) -> str:
    """Return what the values of a type are apart in, where numbers alone do not say it."""
    return next((unit for name, unit in _UNITS if output_type.startswith(name)), "")


def _is_of_blocks(measure: Measure | Choice) -> bool:
    return isinstance(measure, Choice) and measure.blocks is not None


def kind_of(formula: Formula | None, block: Block) -> str:
    """Return what a column is called beside others of its kind."""
    if not isinstance(formula, Value):
        return ""
    words = _kind_of_output(formula.output, block)
    return f"{words} in seconds" if block.output_types[formula.output] == "interval" else words


def _kind_of_output(output: int, block: Block) -> str:
    match block.outputs[output]:
        case Count():
            return "counts"
        case Sum() | CentredSum():
            return "sums"
        case Average():
            return "averages"
        case Statistic(kind=kind):
            return _STATISTICS.get(kind.partition("_")[0], "regressions")
        case Estimate(bounds=bounds):
            return "estimates" if bounds is None else "estimated means"
        case Chosen(measure=measure) if _is_of_blocks(block.measures[measure]):
            return "typical values"
        case Chosen() | ChosenList():
            return "quantiles"


@dataclass(slots=True)
class _Released:
    """The release of a block, and the noise in it."""

    block: Block
    cells: Sequence[Sequence[int]]
    laws: Sequence[Laws]
    group_size: int

    def margin(self, result: Result) -> Margin:
        margin = Margin(result.name, kind_of(result.formula, self.block), self.block.level)
        match result.formula:
            case None:
                return margin
            case Value(output=output) if isinstance(shown := self.block.outputs[output], Chosen | ChosenList):
                rank = rank_margin(shown, self.block, self.group_size)
                unit = unit_of_reach(self.block.output_types[output])
                margin = replace(margin, rank_of=rank_unit(shown, self.block), reach=float(shown.reach), unit=unit)
                return margin if rank is None else _with(margin, [(rank, rows) for rows in self._rows()])
            case Value(output=output) if isinstance(of := self.block.outputs[output], Count | Sum | CentredSum):
                return _with(margin, self._static(output, of))
        return _with(margin, self._moving(result.formula))

    def _rows(self) -> list[float]:
        """The rows of each group where they were counted: what the error of a rank is a part of."""
        measure = _counted(self.block)
        return [math.nan] if measure is None else [float(cell[measure]) for cell in self.cells]

    def _static(self, place: int, output: Count | Sum | CentredSum) -> list[tuple[float, float]]:
        """A total over more cells has more noise."""
        margins: list[tuple[float, float]] = []
        step = float(lattice_step(output))
        for own, places in places_by_laws(self.laws).items():
            if not (known := known_laws(own)):
                continue
            margin = margin_of_output(output, known, self.block.level)
            assert margin is not None, "a count or a sum has a margin of its own"
            width = float(margin)
            alike = (self.cells[number] for number in places)
            numbers = (
                math.nan if is_about_few(self.block, cell, (place,)) else lattice_number(output, cell) * step
                for cell in alike
            )
            margins += [(width, number) for number in numbers]
        return margins

    def _moving(self, formula: Formula) -> list[tuple[float, float]]:
        """Of every group whose value is defined."""
        if any(isinstance(self.block.outputs[place], Chosen | ChosenList) for place in outputs_in(formula)):
            return []
        spreads: list[tuple[float, float]] = []
        places = places_by_laws(self.laws)
        for own, noise in noise_by_laws(self.block, places).items():
            mine = (self.cells[place] for place in places[own])
            alike = [cell for cell in mine if not is_about_few(self.block, cell, outputs_in(formula))]
            for start in range(0, len(alike), _TOGETHER):
                spreads += self._distances(formula, alike[start : start + _TOGETHER], noise)
        return spreads

    def _distances(
        self, formula: Formula, cells: Sequence[Sequence[int]], noise: Sequence[tuple[int, ...] | None]
    ) -> Iterator[tuple[float, float]]:
        released = [np.array([[cell[place]] for cell in cells], dtype=np.float64) for place in range(len(noise))]
        moved = [
            column if draws is None else column - np.array([draws], dtype=np.float64)
            for column, draws in zip(released, noise, strict=True)
        ]
        middle, replicates = self._formula(formula, released), self._formula(formula, moved)
        if middle is None or replicates is None:
            return
        rows = np.sort(np.abs(replicates - middle), axis=1)  # what is not defined comes last
        known = np.count_nonzero(~np.isnan(rows), axis=1)
        ranks = np.ceil(float(self.block.level) * known).astype(int) - 1
        distances = np.where(known > 0, np.take_along_axis(rows, np.maximum(ranks, 0)[:, None], axis=1)[:, 0], np.nan)
        if isinstance(formula, Value) and isinstance(mean := self.block.outputs[formula.output], Average):
            nobody = released[mean.count][:, 0] <= 0  # then the middle of the bounds is shown, whatever the sum
            distances = np.where(nobody, float(mean.high - mean.low) / 2, distances)
            middle = middle + float(mean.high + mean.low) / 2  # of which `_formula` leaves out
        defined = ~np.isnan(distances)
        middles = np.broadcast_to(middle[:, 0], defined.shape)[defined]
        yield from zip(distances[defined].tolist(), middles.tolist(), strict=True)

    def _formula(self, formula: Formula, measures: list[Matrix]) -> Matrix | None:
        is_bare = isinstance(formula, Value)
        shown = {place: self.block.outputs[place] for place in outputs_in(formula)}
        outputs = {place: replicated(_centred(of) if is_bare else of, measures) for place, of in shown.items()}
        known = {place: output for place, output in outputs.items() if output is not None}
        return _evaluate(formula, known) if len(known) == len(outputs) else None


def _centred(output: Output) -> Output:
    """A mean around zero has the same margin, and doubles tell it well however far from zero its bounds lie."""
    if not isinstance(output, Average):
        return output
    half = (output.high - output.low) / 2
    return replace(output, low=-half, high=half, least=None)


def _with(margin: Margin, values: Sequence[tuple[float, float]]) -> Margin:
    """The margin from those of groups, each beside its number, NaN where that is not known or not shown."""
    if not values:
        return margin
    widths = [width for width, _ in values]
    shares = [width / abs(number) if number else math.inf for width, number in values if not math.isnan(number)]
    share = median(shares) if shares else None
    return replace(margin, least=min(widths), widest=max(widths), share=share)
