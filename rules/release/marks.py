"""Marks: which numbers of an answer noise alone could have made, decided from what was released.

A number is marked where zero lies within its margin; a mean, a statistic or a ratio where the count that it is divided
by is. With one margin for each number, one in twenty empty cells would pass, so most answers with many cells had a
false one: by default the margin is that of all numbers of the answer together (Bonferroni). What passes by a little
was more likely lucky than not, and is too large by that.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from rules.frozen import frozen
from rules.mechanisms.distribution import Distribution
from rules.mechanisms.noised_outputs import (
    Average,
    CentredSum,
    Chosen,
    ChosenList,
    Count,
    Estimate,
    Statistic,
    Sum,
    Text,
)
from rules.mechanisms.release_plan import Block
from rules.release.estimates import missed_by
from rules.release.margins import Formula, Number, Operation, Value, outputs_in
from rules.release.release import Noised, is_about_few, shown_cells
from rules.release.replicates import Laws, known_laws, places_by_laws


@frozen
class Mark:
    """A column of an answer whose numbers are marked."""

    block: int
    formula: Formula
    is_alone: bool  # each number has a margin of its own
    by_rows: bool = False  # a row of which all such numbers are marked is left out


def mark_columns(marks: Sequence[Mark], answered: Sequence[tuple[Block, Noised]]) -> tuple[tuple[Text, ...], ...]:
    """For each column and group whether it is marked, as PostgreSQL reads it."""
    together = sum(len(shown_cells(*answered[mark.block])[0]) for mark in marks)
    return tuple(_column(mark, *answered[mark.block], 1 if mark.is_alone else max(1, together)) for mark in marks)


def _column(mark: Mark, block: Block, noised: Noised, together: int) -> tuple[Text, ...]:
    _, cells, laws = shown_cells(block, noised)
    missed = (1 - block.level) / together
    marked = ["f"] * len(cells)
    outputs = outputs_in(mark.formula)
    for own, places in places_by_laws(laws).items():
        reach = _Reach(block, own, missed)
        for place in places:
            is_hidden = is_about_few(
                block, cells[place], outputs
            )  # whose numbers say nothing, by whether a row stays too
            marked[place] = "t" if is_hidden or reach.holds(mark.formula, cells[place]) else "f"
    return tuple(marked)


@dataclass(slots=True)
class _Reach:
    """The reach of noise of these laws."""

    block: Block
    laws: Laws
    missed: Decimal

    def holds(self, formula: Formula, cell: Sequence[int]) -> bool:
        """Return whether the number is marked. A constant is not; of several numbers all are."""
        match formula:
            case Value(output=output):
                return self._is_within(output, cell)
            case Operation(operator="/", operands=(_, divisor)) if outputs_in(divisor):
                return self.holds(divisor, cell)
            case Operation(operands=operands):
                noisy = [operand for operand in operands if outputs_in(operand)]
                return bool(noisy) and all(self.holds(formula, cell) for formula in noisy)
            case Number():
                return False

    def _is_within(self, output: int, cell: Sequence[int]) -> bool:
        shown = self.block.outputs[output]
        match shown:
            case Count(measure=measure) | Sum(measure=measure):
                return abs(cell[measure]) <= self._law(measure).reach(self.missed)
            case Average(count=count) | Statistic(count=count):
                return abs(cell[count]) <= self._law(count).reach(self.missed)
            case CentredSum(halves=halves, count=count, middle=middle):
                law = self._law(halves).plus(self._law(count).times(middle))
                return abs(cell[halves] + middle * cell[count]) <= law.reach(self.missed)
            case Estimate():
                return missed_by(shown, cell, known_laws(self.laws), self.missed)
            case Chosen() | ChosenList():
                return False

    def _law(self, measure: int) -> Distribution:
        return self.laws[measure] or Distribution()
