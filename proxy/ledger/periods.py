"""The running period of the budgets. One of a kind that is new to the ledger begins with what was spent in its time.

Otherwise rules that change `per` would open a budget in which nothing is spent yet.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from proxy.ledger.connection import Connection
from proxy.ledger.integrity import append, find_closed
from proxy.ledger.sights import mark_paid
from proxy.ledger.totals import write_totals
from rules.accounting import chain
from rules.accounting.accountant import Limit, Totals, loss
from rules.accounting.budgets import LABELS, Budgets, Per, overlaps, period_of, span_of
from rules.accounting.chain import DATASET, LIFETIME, account_of
from rules.mechanisms.cost import Mechanism, price


def running_period(connection: Connection, time: datetime, budgets: Budgets) -> str:
    """The period of a moment, not before the latest one that was charged. One of a new kind is begun now."""
    period, carried = foresee(connection, time, budgets)
    if carried.accounts:
        number = append(connection, chain.begin_entry(time, period, carried))
        write_totals(connection, {(account, period): paid for account, paid in carried.accounts.items()})
        for account, release in carried.sights:
            mark_paid(connection, (account, period), [release], number)
    return period


def foresee(connection: Connection, time: datetime, budgets: Budgets) -> tuple[str, chain.Carried]:
    """The period of a moment, and what it begins with if the ledger has none of its kind yet for this time."""
    periods = _periods(connection)
    period = _period_of_kind(budgets.per, periods, time, budgets)
    span = span_of(period, budgets)
    if period in periods or span is None:
        return period, chain.Carried()
    others = [other for other in periods if chain.kind_of(other) != budgets.per and overlaps(other, span, budgets)]
    return period, _spent_since(connection, span, budgets) if others else chain.Carried()


@dataclass(frozen=True, slots=True)
class Begun:
    """A period that began, or will begin, with what was spent under periods of other kinds."""

    period: str
    spent: Totals  # by all together
    limit: Limit

    @property
    def words(self) -> str:
        spent = f"ε {price(loss(self.spent, self.limit))} of {self.limit.epsilon.normalize():f}"
        return f"{self.period} begins with {spent}, which all analysts together spent in its time under another `per`"


def begun(connection: Connection, time: datetime, budgets: Budgets) -> Begun | None:
    """What the running period began with, or will at its first charge; None: with nothing of another kind."""
    period, carried = foresee(connection, time, budgets)
    if not carried.accounts:
        rows = connection.execute(
            "SELECT entry FROM entries WHERE analyst = ? AND kind = ? ORDER BY id", (chain.NOBODY, chain.BEGIN)
        )
        begins = {fields["period"]: fields for fields in map(json.loads, (entry for (entry,) in rows))}
        carried = chain.carried_by(begins[period]) if period in begins else carried
    return Begun(period, carried.accounts[DATASET], budgets.dataset) if carried.accounts else None


def also_running(connection: Connection, time: datetime, budgets: Budgets) -> list[str]:
    """The periods of other kinds that run at a moment and were begun: by rules before, or by another proxy's."""
    periods = _periods(connection)
    kinds: set[Per] = {kind for kind in LABELS if kind != "ever" and kind != budgets.per}
    running = {_period_of_kind(kind, periods, time, budgets) for kind in kinds & set(map(chain.kind_of, periods))}
    return sorted(running & periods)


def _periods(connection: Connection) -> set[str]:
    """All periods in which something was charged."""
    rows = connection.execute("SELECT period FROM totals WHERE account = ? AND period <> ?", (DATASET, LIFETIME))
    return {period for (period,) in rows}


def _period_of_kind(kind: Per, periods: Iterable[str], time: datetime, budgets: Budgets) -> str:
    latest = max((period for period in periods if chain.kind_of(period) == kind), default="")
    return period_of(time, replace(budgets, per=kind), latest)


def _spent_since(connection: Connection, span: tuple[datetime, datetime], budgets: Budgets) -> chain.Carried:
    """Add up what was charged from a moment on in periods of other kinds; all of a closed sum that may be later."""
    carried, closed, start = chain.Carried(), find_closed(connection), chain.stamp(span[0])
    (closed_at,) = connection.execute(
        "SELECT max(time) FROM entries WHERE analyst = ? AND kind = 'close'", (chain.NOBODY,)
    ).fetchone()
    if closed_at is not None and closed_at >= start:
        for (account, period), paid in closed.accounts.items():
            if period != LIFETIME and chain.kind_of(period) != budgets.per and overlaps(period, span, budgets):
                carried.add(account, [Mechanism(paid.epsilon if paid.pure else None, paid.delta, paid.rho)])
    prefix = account_of("")
    accounts = connection.execute("SELECT account FROM totals WHERE period = ?", (LIFETIME,))
    for analyst in [name.removeprefix(prefix) for (name,) in accounts if name.startswith(prefix)]:
        rows = connection.execute(
            "SELECT entry FROM entries WHERE analyst = ? AND kind IN ('charge', 'settle') AND time >= ? AND id > ?",
            (analyst, start, closed.number),
        )
        for fields in map(json.loads, (entry for (entry,) in rows)):
            if chain.kind_of(fields["period"]) != budgets.per:
                carried.note(fields)
    carried.sights = {(account, release) for account, release in carried.sights if release > closed.release}
    return carried
