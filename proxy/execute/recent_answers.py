"""The newest answers of each analyst, with their margins: for the analyst's own page, and as rows of noisegate.last.

All of it was sent to this analyst. Nothing of it is written anywhere, and a restart forgets it.
"""

from collections import OrderedDict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from itertools import islice
from math import isfinite
from typing import Final

from proxy.execute.shown import Shown
from rules.accounting.store import Receipt
from rules.mechanisms.noised_outputs import Text
from rules.mechanisms.release_plan import Block, PrivateGroups
from rules.mechanisms.threshold import find_threshold
from rules.planner.plan import Plan
from rules.release.margins import Margin, Value
from rules.release.release import plain_measure
from rules.sql.system_views import Cell, row_text

_MOST_ANSWERS: Final = 12
_MOST_ANALYSTS: Final = 1000
_MOST_BARS: Final = 24  # groups of an answer


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
    bars: tuple[ShownBar, ...]
    more: int  # groups that are not among them


@dataclass(frozen=True, slots=True)
class RecentAnswer:
    """The answer to one statement."""

    time: datetime
    statement: str  # its fingerprint
    shape: str
    columns: tuple[NoisedColumn, ...]


class RecentAnswers:
    """By analyst; whoever asked longest ago is forgotten first."""

    def __init__(self) -> None:
        self._answers: OrderedDict[str, deque[RecentAnswer]] = OrderedDict()

    def note(self, analyst: str, plan: Plan, shown: Shown, now: datetime) -> None:
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
        known.append(RecentAnswer(now, plan.fingerprint, plan.shape, columns))
        while len(self._answers) > _MOST_ANALYSTS:
            self._answers.popitem(last=False)

    def of(self, analyst: str) -> Sequence[RecentAnswer]:
        """The newest first."""
        return tuple(reversed(self._answers.get(analyst, ())))


def _noised_columns(plan: Plan, shown: Shown) -> Iterator[NoisedColumn]:
    """The columns that are one output each, and whose margin is in their own unit."""
    block, results = plan.blocks[0], [result for result in plan.results if result.block == 0]
    for result, margin in zip(results, shown.margins, strict=True):
        if isinstance(result.formula, Value) and margin.widest is not None and not margin.rank_of:
            bars, more = _bars(block, plan, result.formula.output, shown.columns)
            if bars:
                level = f"{(margin.level * 100).normalize():f}%"
                yield NoisedColumn(result.name, margin.widest, level, bars, more)


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


_UP: Final = Context(prec=6, rounding=ROUND_CEILING)
_DOWN: Final = Context(prec=6, rounding=ROUND_FLOOR)


def last_rows(
    receipt: Receipt, shown: Shown, blocks: Sequence[Block], now: datetime, *, group_size: int
) -> tuple[str, ...]:
    """A row for each column that has noise; without one, the cost alone."""
    cost = receipt.cost
    left = receipt.tightest[0].left
    paid = (
        now.isoformat(sep=" "),
        _number(cost.epsilon, _UP) if cost.pure else None,
        _number(cost.delta, _UP),
        _number(cost.rho, _UP),
        _number(max(Decimal(0), left), _DOWN),
        "; ".join(dict.fromkeys(_left_out(blocks, group_size))) or "none",
        "; ".join(shown.is_cut) or "nothing",
    )
    return tuple(row_text((*column, *paid)) for column in map(_column, shown.margins)) or (
        row_text((None,) * 5 + paid),
    )


def _column(margin: Margin) -> tuple[Cell, ...]:
    ends = (None if end is None else _number(Decimal(repr(end)), _UP) for end in (margin.least, margin.widest))
    return (
        margin.name,
        *ends,
        f"{margin.rank_of} in rank" if margin.rank_of else "value",
        f"{margin.level.normalize():f}",
    )


def _left_out(blocks: Sequence[Block], group_size: int) -> Iterator[str]:
    """By the rules alone: which groups are missing is not known."""
    for block in blocks:
        if block.top is not None:
            yield f"all but the {block.top.count} largest, chosen privately"
        if isinstance(groups := block.groups, PrivateGroups):
            units = plain_measure(block, groups.measure)
            threshold = find_threshold(units, groups.delta, group_size=group_size, at_least=groups.at_least)
            yield f"those with less than about {threshold:,} units"


def _number(number: Decimal, context: Context) -> str:
    return f"{context.create_decimal(number).normalize():f}"
