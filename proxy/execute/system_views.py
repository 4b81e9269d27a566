"""The rows of the virtual relations: what one analyst may know of the budgets, the ledger and the rules.

All of it follows from the rules, the catalog and the ledger, and no charge depends on a row. Of other analysts only
what all of them have spent together is told: it binds this analyst too. The real database is never asked.
"""

import asyncio
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from functools import partial
from typing import Final

from proxy.execute.clock import Clock
from proxy.execute.rulebook import Rulebook
from rules.accounting.accountant import Totals, grantable, loss
from rules.accounting.bets import bet_words
from rules.accounting.budgets import Budgets, span_of
from rules.accounting.store import AccountState, FiledRequest, LedgerReview, LedgerStore, PastCharge
from rules.mechanisms.cost import price
from rules.planner.column_facts import ColumnFacts, column_facts
from rules.policy.model import Policy
from rules.sql.system_views import Cell, array_text, row_text

MOST_CHARGES: Final = 1_000
_SHORT: Final = 12  # digits of a fingerprint
_CELLS: Final = re.compile(r" \[.*?\](?= [0-9a-f]{32})")
_UP, _DOWN = Context(prec=12, rounding=ROUND_CEILING), Context(prec=12, rounding=ROUND_FLOOR)

Row = Sequence[Cell]
OwnRows = Callable[[], Mapping[str, tuple[str, ...]]]  # of a session, by system view: made where one is read


class SystemViews:
    """Tells an analyst what the ledger and the rules say, in one consistent moment."""

    def __init__(self, ledger: LedgerStore, clock: Clock) -> None:
        self._ledger, self._clock = ledger, clock
        self._columns: tuple[int, tuple[str, ...]] = (-1, ())  # by generation of the rules

    async def tell(
        self, names: Sequence[str], analyst: str, rulebook: Rulebook, own: OwnRows
    ) -> tuple[tuple[tuple[str, ...], ...], tuple[str, ...]]:
        """For each system view its rows, as texts, and notices; `own` makes those that the session knows."""
        view_rows, notices = dict(own()), tuple[str, ...]()
        if "columns" in names:
            view_rows["columns"] = await self._columns_of(rulebook)
        if "budget" in names or "ledger" in names:
            most = MOST_CHARGES if "ledger" in names else 0
            review = await self._ledger.review(analyst, rulebook.budgets, self._clock(), most_charges=most)
            view_rows["budget"] = _texts(budget_rows(review, rulebook.budgets))
            notices = (bet_notice(review, rulebook.policy),) if "budget" in names else ()
            view_rows["ledger"] = await asyncio.to_thread(lambda: _texts(map(ledger_row, review.charges)))
        if "requests" in names:
            filed_requests = await self._ledger.requests(rulebook.budgets, self._clock(), analyst=analyst)
            view_rows["requests"] = _texts(map(request_row, filed_requests[-MOST_CHARGES:]))
        return tuple(view_rows[name] for name in names), notices

    async def _columns_of(self, rulebook: Rulebook) -> tuple[str, ...]:
        generation, texts = self._columns
        if generation != rulebook.generation:
            facts = partial(column_facts, rulebook.policy, rulebook.catalog)
            texts = await asyncio.to_thread(lambda: _texts(map(column_row, facts())))
            self._columns = (rulebook.generation, texts)
        return texts


def _texts(rows: Iterable[Row]) -> tuple[str, ...]:
    return tuple(map(row_text, rows))


def budget_rows(review: LedgerReview, budgets: Budgets) -> Iterator[Row]:
    """The analyst's own account, and the one that all share."""
    span = span_of(review.period, budgets)
    start, end = (None, None) if span is None else map(_moment, span)
    accounts = [("yours", review.analyst), ("shared", review.dataset)]
    if review.role is not None:
        accounts.insert(1, ("role", review.role))
    for account, standing in accounts:
        yield account, *_epsilon(standing, budgets), *_delta(standing), budgets.per, start, end, _up(standing.lifetime)


def bet_notice(review: LedgerReview, policy: Policy) -> str:
    """What the analyst's answers of this period tell of one person: by the account with the least ε, for all bind."""
    accounts = (review.analyst, review.role, review.dataset)
    return bet_words(min((each.limit for each in accounts if each is not None), key=lambda each: each.epsilon), policy)


def ledger_row(charge: PastCharge) -> Row:
    """One charge, as it was."""
    paid, shared = Totals().plus((*charge.fresh, *charge.seen)), Totals().plus((*charge.fresh, *charge.first_seen))
    return (
        _moment(charge.time),
        charge.state,
        *(price(totals.epsilon) if totals.pure else None for totals in (paid, shared)),
        *map(price, (paid.delta, paid.rho)),
        str(len(charge.fresh)),
        str(len(charge.seen)),
        array_text(charge.tables),
        charge.period.rpartition(":")[2],
        charge.session,
        _shortened(charge.fingerprint),
    )


def _shortened(fingerprint: str) -> str:
    """The digests of a charge's questions, cut; between two of them a question may describe its cells.

    Example:
        >>> _shortened(f"{'a1' * 32} [true,[[3 5]]] {'0b' * 32}")
        'a1a1a1a1a1a1 0b0b0b0b0b0b'
        >>> _shortened(f"monthly {'0b' * 32}")
        'monthly 0b0b0b0b0b0b'
    """
    words = _CELLS.sub("", fingerprint).split()
    return " ".join(word[:_SHORT] for word in words)


def request_row(filed: FiledRequest) -> Row:
    """One request for more budget, and what became of it."""
    return (
        str(filed.number),
        _moment(filed.time),
        _number(filed.terms.epsilon),
        filed.terms.reason,
        filed.state,
        None if filed.granted is None else _number(filed.granted),
        filed.answer or None,
        filed.period.rpartition(":")[2],
    )


def column_row(facts: ColumnFacts) -> Row:
    """One column, and what may be done with it."""
    bounds, rows = facts.bounds, facts.rows
    return (
        facts.table.name.schema,
        facts.table.name.name,
        facts.column.name,
        facts.column.type.sql,
        *map(_truth, (facts.is_public, facts.is_unit, facts.can_be_summed)),
        bounds.lower,
        bounds.upper,
        None if bounds.values is None else array_text(bounds.values),
        bounds.source,
        facts.groups,
        None if rows.most is None else str(rows.most),
        rows.source,
    )


def _epsilon(standing: AccountState, budgets: Budgets) -> Iterator[Cell]:
    """Rounded against the analyst, so that what is told to be left is left."""
    totals, limit = standing.totals, standing.limit
    spent = loss(totals, limit)
    yield _number(limit.epsilon)
    yield _up(spent)
    yield _down(limit.epsilon - spent)
    yield _down(grantable(totals if budgets.is_pure else replace(totals, pure=False), limit))


def _delta(standing: AccountState) -> Iterator[Cell]:
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


def _truth(value: object) -> str:
    return "t" if value else "f"


def _moment(moment: datetime) -> str:
    return moment.isoformat(sep=" ")
