"""Put answers together from their releases, and keep the newest of each analyst, for the own page and noisegate.last.

Columns for the outer statement, their margins and notices are made of releases alone. All of an answer was sent to its
analyst. Nothing of it is written anywhere, and a restart forgets it.
"""

from collections import OrderedDict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from hashlib import blake2b
from itertools import chain, islice
from math import isfinite
from typing import Final

from proxy.execute.execute_private import Answered
from proxy.execute.notices import (
    agreement_notices,
    bound_notices,
    cells_notices,
    cut_words,
    empty_groups_notices,
    empty_groups_words,
    extremes_notices,
    few_units_notices,
    least_shown,
    left_out_notices,
    outside_notices,
    reuse_notice,
    top_notices,
    undefined_notices,
    what_is_cut,
)
from proxy.execute.question import Question
from proxy.execute.rulebook import Rulebook
from rules.accounting.budgets import Budgets, period_of
from rules.accounting.store import Receipt
from rules.mechanisms.noised_outputs import Text
from rules.mechanisms.release_plan import Block
from rules.planner.plan import Plan
from rules.release.empty_groups import shown_groups
from rules.release.margins import Margin, Value, margins_of, noise_advice, noise_word
from rules.release.marks import mark_columns
from rules.release.release import Noised, columns
from rules.release.replicates import points
from rules.sql.system_views import Cell, row_text

_MOST_ANSWERS: Final = 12
_MOST_ANALYSTS: Final = 1000
_MOST_BARS: Final = 24  # groups of an answer
_SHOWN_BYTES: Final = 4096  # of one, without its texts
_TEXT_BYTES: Final = 64
_DOUBLES: Final = 10  # replicates of a margin in the time of one that is shown
_UP: Final = Context(prec=6, rounding=ROUND_CEILING)
_DOWN: Final = Context(prec=6, rounding=ROUND_FLOOR)


@dataclass(frozen=True, slots=True)
class Shown:
    """All that follows from releases alone: the same for the same ones."""

    columns: tuple[tuple[Text, ...], ...]
    margins: tuple[Margin, ...]
    cut: str  # what the margins do not hold
    is_cut: tuple[str, ...]  # the same, by itself
    left_out: tuple[str, ...]  # which groups are not shown
    notices: tuple[str, ...]
    released: tuple[tuple[Block, Noised], ...]  # of what it is made
    origin: str  # a digest that names these releases

    @property
    def size(self) -> int:
        """About so many bytes of memory."""
        texts = sum(len(text) for column in self.columns for text in column if text is not None)
        return _SHOWN_BYTES + texts + _TEXT_BYTES * sum(map(len, self.columns))


def show(plan: Plan, answered: Sequence[Answered], rulebook: Rulebook) -> Shown:
    """Put an answer together. Error bars take some milliseconds a group."""
    group_size = rulebook.policy.group_size
    pairs = [(question.block, noised) for question, noised in answered]
    shown = shown_groups(pairs)
    kept = [each.kept for each in shown]
    margins = (
        margins_of(plan.results, place, *pair, group_size, own)
        for place, (pair, own) in enumerate(zip(pairs, kept, strict=True))
    )
    marks = mark_columns(plan.marks, pairs, kept)
    questions = [question for question, _ in answered]
    again = reuse_notice(questions)
    return Shown(
        (*(column for pair, own in zip(pairs, kept, strict=True) for column in columns(*pair, own)), *marks),
        tuple(chain.from_iterable(margins)),
        cut_words(questions),
        what_is_cut(questions, group_size),
        tuple(dict.fromkeys((*_left_out(questions, group_size), *empty_groups_words(shown)))),
        (
            *bound_notices(questions, rulebook),
            *empty_groups_notices(shown),
            *left_out_notices(questions, group_size),
            *top_notices(questions, group_size),
            *outside_notices(answered),
            *few_units_notices(answered),
            *undefined_notices(answered),
            *extremes_notices(answered, kept),
            *cells_notices(questions),
            *agreement_notices(answered),
            *_marks_notice(marks),
            *(() if again is None else (again,)),
        ),
        tuple(pairs),
        _origin(questions),
    )


def _origin(questions: Sequence[Question]) -> str:
    """Tell whether two answers are made of the same releases, and not only of equal numbers."""
    names = [sorted(question.origins) for question in questions]
    return blake2b(repr(names).encode(), digest_size=16).hexdigest()


def _marks_notice(marks: Sequence[Sequence[Text]]) -> Iterator[str]:
    """Say why a tool shows numbers as empty."""
    marked, numbers = sum(column.count("t") for column in marks), sum(map(len, marks))
    if marked:
        yield f"{marked} of {numbers} numbers are marked: noise alone could have made them (noisegate.mark)"


def work_of(answered: Sequence[Answered]) -> int:
    """Return how many numbers that takes."""
    return sum(len(noised.groups) * _numbers(question.block) for question, noised in answered)


def _numbers(block: Block) -> int:
    """For one group."""
    replicates, _ = points(block.level)
    return len(block.outputs) + replicates * len(block.bars) + replicates * len(block.outputs) // _DOUBLES


@dataclass(frozen=True, slots=True)
class ShownBar:
    """One number of an answer, in its group."""

    group: str
    value: float


@dataclass(frozen=True, slots=True)
class NoisedColumn:
    """A column of an answer, and how far noise has moved its numbers at most, in most draws."""

    name: str
    margin: float
    level: str
    noise: str  # how much that matters, or ""
    bars: tuple[ShownBar, ...]
    more: int  # groups that are not among them


@dataclass(frozen=True, slots=True)
class RecentAnswer:
    """The answer to one statement."""

    time: datetime
    period: str  # in which it was paid
    role: str | None  # of the analyst then
    statement: str  # its fingerprint
    shape: str
    columns: tuple[NoisedColumn, ...]


class RecentAnswers:
    """By analyst; whoever asked longest ago is forgotten first."""

    def __init__(self) -> None:
        self._answers: OrderedDict[str, deque[RecentAnswer]] = OrderedDict()

    def note(self, analyst: str, plan: Plan, shown: Shown, now: datetime, budgets: Budgets) -> None:
        """Keep an answer of one block, which is what a chart can show. The same one again takes its own place."""
        if len(plan.blocks) != 1:
            return
        columns = tuple(_noised_columns(plan, shown))
        if not columns:
            return
        known = self._answers.setdefault(analyst, deque(maxlen=_MOST_ANSWERS))
        self._answers.move_to_end(analyst)
        for each in [each for each in known if (each.statement, each.columns) == (plan.fingerprint, columns)]:
            known.remove(each)
        known.append(
            RecentAnswer(now, period_of(now, budgets), budgets.role_of(analyst), plan.fingerprint, plan.shape, columns)
        )
        while len(self._answers) > _MOST_ANALYSTS:
            self._answers.popitem(last=False)

    def of(self, analyst: str, period: str, budgets: Budgets) -> Sequence[RecentAnswer]:
        """The newest first: of the running period and the analyst's role, whose accounts have paid for them."""
        known, role = reversed(self._answers.get(analyst, ())), budgets.role_of(analyst)
        return tuple(each for each in known if each.period == period and each.role == role)


def _noised_columns(plan: Plan, shown: Shown) -> Iterator[NoisedColumn]:
    """The columns that are one output each, and whose margin is in their own unit."""
    block, results = plan.blocks[0], [result for result in plan.results if result.block == 0]
    for result, margin in zip(results, shown.margins, strict=True):
        if isinstance(result.formula, Value) and margin.widest is not None and not margin.rank_of:
            bars, more = _bars(block, plan, result.formula.output, shown.columns)
            if bars:
                level = f"{(margin.level * 100).normalize():f}%"
                noise = "" if margin.share is None else noise_word(margin.share)
                yield NoisedColumn(result.name, margin.widest, level, noise, bars, more)


def _bars(
    block: Block, plan: Plan, output: int, columns: Sequence[Sequence[Text]]
) -> tuple[tuple[ShownBar, ...], int]:  # fmt: skip
    """A number for each group as the client saw it (a bare count is not below zero), and how many are left out."""
    own = columns[: len(columns) - len(plan.marks)]
    width = len(block.keys)
    place = len(own) - len(block.shown) + block.shown.index(output) if output in block.shown else None
    values = own[width + bool(block.sets) + output if place is None else place]
    groups = (", ".join(_label(own[key][number]) for key in range(width)) for number in range(len(values)))
    pairs = islice(zip(groups, values, strict=True), _MOST_BARS)
    bars = (ShownBar(group, float(value)) for group, value in pairs if value is not None)
    return tuple(bar for bar in bars if isfinite(bar.value)), max(0, len(values) - _MOST_BARS)


def _label(text: Text) -> str:
    return "NULL" if text is None else text


def last_rows(receipt: Receipt, shown: Shown, now: datetime) -> tuple[str, ...]:
    """A row for each column that has noise; without one, the cost alone."""
    cost = receipt.cost
    left = receipt.tightest[0].left
    paid = (
        now.isoformat(sep=" "),
        _plain_number(cost.epsilon, _UP) if cost.pure else None,
        _plain_number(cost.delta, _UP),
        _plain_number(cost.rho, _UP),
        _plain_number(max(Decimal(0), left), _DOWN),
        "; ".join(shown.left_out) or "none",
        "; ".join(shown.is_cut) or "nothing",
    )
    worst = max((margin.share for margin in shown.margins if margin.share is not None), default=None)
    return tuple(row_text((*_column(margin, worst), *paid)) for margin in shown.margins) or (
        row_text((None,) * 7 + paid),
    )


def _column(margin: Margin, worst: float | None) -> tuple[Cell, ...]:
    ends = (None if end is None else _plain_number(Decimal(repr(end)), _UP) for end in (margin.least, margin.widest))
    return (
        margin.name,
        *ends,
        f"{margin.rank_of} in rank" if margin.rank_of else "value",
        f"{margin.level.normalize():f}",
        None if margin.share is None else noise_word(margin.share),
        noise_advice(margin.share) or None if margin.share is not None and margin.share == worst else None,
    )


def _left_out(questions: Sequence[Question], group_size: int) -> Iterator[str]:
    """By the rules alone: which groups are missing is not known."""
    for question in questions:
        if (top := question.block.top) is not None:
            yield f"all but the {top.count} largest, chosen privately"
        if (units := least_shown(question, group_size)) is not None:
            yield f"those of fewer than about {units:,} units"


def _plain_number(number: Decimal, context: Context) -> str:
    return f"{context.create_decimal(number).normalize():f}"
