"""Columns for the outer statement, their margins and notices: all that is made of releases alone."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

from proxy.execute.execute_private import Answered
from proxy.execute.notices import (
    agreement_notices,
    bound_notices,
    cells_notices,
    cut_words,
    few_units_notices,
    outside_notices,
    reuse_notice,
    top_notices,
    undefined_notices,
    what_is_cut,
)
from proxy.execute.rulebook import Rulebook
from rules.mechanisms.noised_outputs import Text
from rules.mechanisms.release_plan import Block
from rules.planner.plan import Plan
from rules.release.margins import Margin, margins_of
from rules.release.marks import mark_columns
from rules.release.release import Noised, columns
from rules.release.replicates import points

_SHOWN_BYTES: Final = 4096  # of one, with its plan
_TEXT_BYTES: Final = 64
_DOUBLES: Final = 10  # replicates of a margin in the time of one that is shown


@dataclass(frozen=True, slots=True)
class Shown:
    """All that follows from releases alone: the same for the same ones."""

    columns: tuple[tuple[Text, ...], ...]
    margins: tuple[Margin, ...]
    cut: str  # what the margins do not hold
    is_cut: tuple[str, ...]  # the same, by itself
    notices: tuple[str, ...]
    released: tuple[tuple[Block, Noised], ...]  # of what it is made

    @property
    def size(self) -> int:
        """About so many bytes of memory."""
        texts = sum(len(text) for column in self.columns for text in column if text is not None)
        return _SHOWN_BYTES + texts + _TEXT_BYTES * sum(map(len, self.columns))


def show(plan: Plan, answered: Sequence[Answered], rulebook: Rulebook) -> Shown:
    """Put an answer together. Error bars take some milliseconds a group."""
    group_size = rulebook.policy.group_size
    pairs = [(question.block, noised) for question, noised in answered]
    margins = (margins_of(plan.results, place, *pair, group_size) for place, pair in enumerate(pairs))
    marks = mark_columns(plan.marks, pairs)
    questions = [question for question, _ in answered]
    again = reuse_notice(questions)
    return Shown(
        (*(column for pair in pairs for column in columns(*pair)), *marks),
        tuple(chain.from_iterable(margins)),
        cut_words(questions),
        what_is_cut(questions, group_size),
        (
            *bound_notices(questions, rulebook),
            *top_notices(questions, group_size),
            *outside_notices(answered),
            *few_units_notices(answered),
            *undefined_notices(answered),
            *cells_notices(questions),
            *agreement_notices(answered),
            *_marks_notice(marks, by_rows=any(mark.by_rows for mark in plan.marks)),
            *(() if again is None else (again,)),
        ),
        tuple(pairs),
    )


def _marks_notice(marks: Sequence[Sequence[Text]], *, by_rows: bool) -> Iterator[str]:
    """Say why a tool shows numbers as empty, or fewer rows."""
    rows = list(zip(*marks, strict=True))
    kept = [row for row in rows if not (by_rows and all(mark == "t" for mark in row))]
    if left_out := len(rows) - len(kept):
        words = "row is left out" if left_out == 1 else "rows are left out"
        yield f"{left_out} {words}, of {len(rows)}: noise alone could have made all of the numbers (noisegate.mark)"
    marked, numbers = sum(row.count("t") for row in kept), sum(map(len, kept))
    if marked:
        yield f"{marked} of {numbers} numbers are marked: noise alone could have made them (noisegate.mark)"


def work_of(answered: Sequence[Answered]) -> int:
    """Return how many numbers that takes."""
    return sum(len(noised.groups) * _numbers(question.block) for question, noised in answered)


def _numbers(block: Block) -> int:
    """For one group."""
    replicates, _ = points(block.level)
    return len(block.outputs) + replicates * len(block.bars) + replicates * len(block.outputs) // _DOUBLES
