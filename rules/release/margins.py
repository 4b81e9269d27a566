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
from typing import Literal

import numpy as np

from rules.frozen import frozen, replace
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
from rules.mechanisms.release_plan import Block, Choice, Measure, MostFrequent
from rules.release.outputs import replicated
from rules.release.release import Noised, is_about_few, shown_cells
from rules.release.replicates import known_laws, noise_by_laws, places_by_laws

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

    @property
    def is_known(self) -> bool:
        return self.widest is not None


def margins_of(results: Sequence[Result], number: int, block: Block, noised: Noised, group_size: int) -> list[Margin]:
    """The margins of the columns that this block of a plan answers."""
    released = _Released(block, noised, group_size)
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
    noised: Noised
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
                return margin if rank is None else _with(margin, [rank])
            case Value(output=output) if isinstance(self.block.outputs[output], Count | Sum | CentredSum):
                return _with(margin, self._static(self.block.outputs[output]))
        return _with(margin, self._moving(result.formula))

    def _static(self, output: Output) -> list[float]:
        """A total over more cells has more noise."""
        _, _, laws = shown_cells(self.block, self.noised)
        margins = []
        for known in map(known_laws, places_by_laws(laws)):
            if not known:
                continue
            margin = margin_of_output(output, known, self.block.level)
            assert margin is not None, "a count or a sum has a margin of its own"
            margins.append(float(margin))
        return margins

    def _moving(self, formula: Formula) -> list[float]:
        """Of every group whose value is defined."""
        if any(isinstance(self.block.outputs[place], Chosen | ChosenList) for place in outputs_in(formula)):
            return []
        _, cells, laws = shown_cells(self.block, self.noised)
        spreads: list[float] = []
        places = places_by_laws(laws)
        for own, noise in noise_by_laws(self.block, places).items():
            mine = (cells[place] for place in places[own])
            alike = [cell for cell in mine if not is_about_few(self.block, cell, outputs_in(formula))]
            for start in range(0, len(alike), _TOGETHER):
                spreads += self._distances(formula, alike[start : start + _TOGETHER], noise)
        return spreads

    def _distances(
        self, formula: Formula, cells: Sequence[Sequence[int]], noise: Sequence[tuple[int, ...] | None]
    ) -> Iterator[float]:
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
        yield from distances[~np.isnan(distances)].tolist()

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


def _with(margin: Margin, values: Sequence[float]) -> Margin:
    return replace(margin, least=min(values), widest=max(values)) if values else margin
