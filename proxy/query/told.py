"""The rows of the virtual relations: what one analyst may know of the budgets, the ledger and the rules.

All of it follows from the rules, the catalog and the ledger, and no charge depends on a row. Of other analysts only
what all of them have spent together is told: it binds this analyst too. The real database is never asked.
"""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import Final

from proxy.query.clock import Clock
from proxy.query.rulebook import Rulebook
from rules.ledger.accountant import grantable, loss
from rules.ledger.book import Budgets, span_of
from rules.ledger.store import LedgerStore, Review, Standing
from rules.sql.virtual import Cell, row_text

MOST_CHARGES: Final = 10_000
_UP, _DOWN = Context(prec=12, rounding=ROUND_CEILING), Context(prec=12, rounding=ROUND_FLOOR)

Row = Sequence[Cell]


@dataclass(frozen=True, slots=True)
class Teller:
    """Tells an analyst what the ledger and the rules say, in one consistent moment."""

    ledger: LedgerStore
    clock: Clock

    async def tell(self, names: Sequence[str], analyst: str, rulebook: Rulebook) -> tuple[tuple[str, ...], ...]:
        """For each virtual relation its rows, as texts."""
        if not names:
            return ()
        most = MOST_CHARGES if "ledger" in names else 0
        review = await self.ledger.review(analyst, rulebook.budgets, self.clock(), most_charges=most)
        return await asyncio.to_thread(
            lambda: tuple(tuple(map(row_text, _rows(name, review, rulebook))) for name in names)
        )


def _rows(name: str, review: Review, rulebook: Rulebook) -> Iterator[Row]:
    yield from budget_rows(review, rulebook.budgets)


def budget_rows(review: Review, budgets: Budgets) -> Iterator[Row]:
    """The analyst's own account, and the one that all share."""
    span = span_of(review.period, budgets)
    start, end = (None, None) if span is None else map(_moment, span)
    for account, standing in (("yours", review.analyst), ("shared", review.dataset)):
        yield account, *_epsilon(standing), *_delta(standing), budgets.per, start, end, _up(standing.lifetime)


def _epsilon(standing: Standing) -> Iterator[Cell]:
    """Rounded against the analyst, so that what is told to be left is left."""
    totals, limit = standing.totals, standing.limit
    spent = loss(totals, limit)
    yield _number(limit.epsilon)
    yield _up(spent)
    yield _down(limit.epsilon - spent)
    yield _down(grantable(totals, limit))


def _delta(standing: Standing) -> Iterator[Cell]:
    totals, limit = standing.totals, standing.limit
    yield _number(limit.delta)
    yield _up(totals.delta)
    yield _down(limit.delta - limit.conversion_delta - totals.delta)


def _up(number: Decimal) -> str:
    return _number(_UP.plus(number))


def _down(number: Decimal) -> str:
    return _number(_DOWN.plus(max(Decimal(0), number)))


def _number(number: Decimal) -> str:
    return f"{number.normalize():f}"


def _moment(moment: datetime) -> str:
    return moment.isoformat(sep=" ")
