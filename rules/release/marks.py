"""Marks: which numbers of an answer noise alone could have made, decided from what was released.

A number is marked where zero lies within its margin; a mean, a statistic or a ratio where the count that it is divided
by is. With one margin for each number, one in twenty empty cells would pass, so most answers with many cells had a
false one: by default the margin is that of all numbers of the answer together (Bonferroni). What passes by a little
was more likely lucky than not, and is too large by that.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import compress

from rules.frozen import frozen
from rules.mechanisms.distribution import Distribution
from rules.mechanisms.noised_outputs import (
    Average,
    CentredSum,
    Count,
    Estimate,
    Output,
    Statistic,
    Sum,
    Text,
)
from rules.mechanisms.release_plan import Block
from rules.release.estimates import missed_by
from rules.release.margins import Formula, Number, Operation, Value, outputs_in
from rules.release.outputs import lattice_number
from rules.release.release import Noised, is_about_few, shown_cells
from rules.release.replicates import Laws, known_laws, places_by_laws


@frozen
class Mark:
    """A column of an answer whose numbers are marked."""

    block: int
    formula: Formula
    is_alone: bool  # each number has a margin of its own


def mark_columns(
    marks: Sequence[Mark], answered: Sequence[tuple[Block, Noised]], kept: Sequence[Sequence[bool]] | None = None
) -> tuple[tuple[Text, ...], ...]:
    """For each column and each group that is kept whether it is marked, as PostgreSQL reads it."""
    together = sum(len(shown_cells(*answered[mark.block])[0]) for mark in marks)
    columns = (_column(mark, *answered[mark.block], 1 if mark.is_alone else max(1, together)) for mark in marks)
    if kept is None:
        return tuple(columns)
    return tuple(tuple(compress(column, kept[mark.block])) for mark, column in zip(marks, columns, strict=True))


def _column(mark: Mark, block: Block, noised: Noised, together: int) -> tuple[Text, ...]:
    _, cells, laws = shown_cells(block, noised)
    missed = (1 - block.level) / together
    marked = ["f"] * len(cells)
    outputs = outputs_in(mark.formula)
    for own, places in places_by_laws(laws).items():
        reach = Reach(own, missed)
        for place in places:
            is_hidden = is_about_few(block, cells[place], outputs)  # whose numbers say nothing
            marked[place] = "t" if is_hidden or _is_marked(mark.formula, block, cells[place], reach) else "f"
    return tuple(marked)


def _is_marked(formula: Formula, block: Block, cell: Sequence[int], reach: "Reach") -> bool:
    """Return whether the number is marked. A constant is not; of several numbers all are."""
    match formula:
        case Value(output=output):
            return reach.is_within(block.outputs[output], cell)
        case Operation(operator="/", operands=(_, divisor)) if outputs_in(divisor):
            return _is_marked(divisor, block, cell, reach)
        case Operation(operands=operands):
            noisy = [operand for operand in operands if outputs_in(operand)]
            return bool(noisy) and all(_is_marked(formula, block, cell, reach) for formula in noisy)
        case Number():
            return False


@dataclass(frozen=True, slots=True)
class Reach:
    """How far noise of these laws brings a number from zero, but in this share of draws."""

    laws: Laws
    missed: Decimal
    _known: dict[Output, float] = field(default_factory=dict)

    def is_within(self, output: Output, cell: Sequence[int]) -> bool:
        """Return whether noise alone could have made the number of a group; of a mean, the count that it is of."""
        if isinstance(output, Estimate):
            return missed_by(output, cell, known_laws(self.laws), self.missed)
        counted = _counted(output)
        return counted is not None and abs(lattice_number(counted, cell)) <= self.distance(counted)

    def distance(self, output: Count | Sum | CentredSum) -> float:
        """The distance from zero, in the smallest parts of a count or a sum."""
        if output not in self._known:
            self._known[output] = self.law(output).reach(self.missed)
        return self._known[output]

    def law(self, output: Count | Sum | CentredSum) -> Distribution:
        """The law of its noise, in the same parts."""
        match output:
            case Count(measure=measure) | Sum(measure=measure):
                return self._law(measure)
            case CentredSum(halves=halves, count=count, middle=middle):
                return self._law(halves).plus(self._law(count).times(middle))

    def _law(self, measure: int) -> Distribution:
        return self.laws[measure] or Distribution()


def _counted(output: Output) -> Count | Sum | CentredSum | None:
    """The number whose distance from zero counts; a choice has none."""
    match output:
        case Count() | Sum() | CentredSum():
            return output
        case Average(count=count) | Statistic(count=count):
            return Count(count)
    return None
