"""The rows of noisegate.last: what the NOTICEs of an answer say, as numbers, for tools that hide NOTICEs."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import Final

from proxy.execute.shown import Shown
from rules.accounting.store import Receipt
from rules.mechanisms.release_plan import Block, PrivateGroups
from rules.mechanisms.threshold import find_threshold
from rules.release.margins import Margin
from rules.release.release import plain_measure
from rules.sql.system_views import Cell, row_text

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
    ends = (None if each is None else _number(Decimal(repr(each)), _UP) for each in (margin.least, margin.widest))
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
        if isinstance(found := block.groups, PrivateGroups):
            units = plain_measure(block, found.measure)
            threshold = find_threshold(units, found.delta, group_size=group_size, at_least=found.at_least)
            yield f"those with less than about {threshold:,} units"


def _number(number: Decimal, context: Context) -> str:
    return f"{context.create_decimal(number).normalize():f}"
