"""Review the ledger: for an analyst both accounts and the own charges, for an operator all."""

import json
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any, Final

from proxy.ledger import charges
from proxy.ledger.connection import Connection
from proxy.ledger.integrity import find_closed
from proxy.ledger.periods import running_period
from rules.accounting import chain
from rules.accounting.accountant import Limit
from rules.accounting.budgets import Budgets
from rules.accounting.chain import DATASET, account_of, account_of_role
from rules.accounting.store import AccountState, LedgerReview, PastCharge, State

PREFIX: Final = account_of("")


def review(connection: Connection, analyst: str, budgets: Budgets, now: datetime, most_charges: int) -> LedgerReview:
    """Read within one transaction, so that the accounts are the sums of the charges."""
    period = running_period(connection, now, budgets)
    budgets, role = charges.with_grants(connection, budgets, analyst, period), budgets.role_of(analyst)
    return LedgerReview(
        period,
        _standing(connection, account_of(analyst), period, budgets.limit_of(analyst)),
        _standing(connection, DATASET, period, budgets.dataset),
        _charges(connection, analyst, most_charges) if most_charges else (),
        None if role is None else _standing(connection, account_of_role(role), period, budgets.roles[role]),
    )


def _standing(connection: Connection, account: str, period: str, limit: Limit) -> AccountState:
    totals = charges.spent(connection, account, period)
    return AccountState(totals, limit, charges.lifetime(connection, account, limit))


def _charges(connection: Connection, analyst: str, most: int) -> tuple[PastCharge, ...]:
    cursor = connection.execute(
        "SELECT id, entry FROM entries WHERE analyst = ? AND kind = 'charge' ORDER BY time DESC, id DESC LIMIT ?",
        (analyst, most),
    )
    rows = [(number, json.loads(entry)) for number, entry in cursor]
    settled = connection.execute(
        "SELECT DISTINCT r.charge FROM seen s JOIN releases r ON r.id = s.release WHERE s.account = ?",
        (account_of(analyst),),
    )
    faults = connection.execute("SELECT entry FROM entries WHERE analyst = ? AND kind IN ('fault', 'stop')", (analyst,))
    states: dict[int, State] = dict.fromkeys((int(charge) for (charge,) in settled), "settled")
    states |= dict.fromkeys((json.loads(entry)["charge"] for (entry,) in faults), "failed")
    return tuple(_charge(number, entry, states.get(number, "charged")) for number, entry in reversed(rows))


@dataclass(frozen=True, slots=True)
class Wish:
    """The charges that an operator wants to see; the newest of them, so many at most."""

    analyst: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    statement: str | None = None
    most: int | None = None


@dataclass(frozen=True, slots=True)
class History:
    """The ledger for an operator: charges in the order of time, those who paid, and what is only a sum."""

    charges: tuple[PastCharge, ...]
    analysts: tuple[str, ...]
    closed: int  # charges that are in sums alone


def history(connection: Connection, wish: Wish) -> History:
    """Read what an operator asks for."""
    conditions, values = _conditions(wish)
    cursor = connection.execute(
        f"SELECT id, entry FROM entries WHERE {' AND '.join(conditions)} ORDER BY id DESC", values
    )
    rows = ((number, json.loads(entry)) for number, entry in cursor)
    wanted = (row for row in rows if wish.statement in (None, row[1].get("fingerprint")))
    newest = list(islice(wanted, wish.most))
    states = _all_states(connection)
    accounts = [account for (account,) in connection.execute("SELECT DISTINCT account FROM totals ORDER BY account")]
    analysts = (account.removeprefix(PREFIX) for account in accounts if account.startswith(PREFIX))
    charges = (_charge(number, entry, states.get(number, "charged")) for number, entry in reversed(newest))
    return History(tuple(charges), tuple(analysts), find_closed(connection).charges)


def _conditions(wish: Wish) -> tuple[list[str], list[str]]:
    conditions, texts = ["kind = 'charge'"], list[str]()
    wishes = (("analyst = ?", wish.analyst), ("time >= ?", wish.since), ("time < ?", wish.until))
    for condition, value in wishes:
        if value is not None:
            conditions.append(condition)
            texts.append(chain.stamp(value) if isinstance(value, datetime) else value)
    return conditions, texts


def _all_states(connection: Connection) -> dict[int, State]:
    states: dict[int, State] = {
        int(charge): "settled" for (charge,) in connection.execute("SELECT DISTINCT charge FROM releases")
    }
    for (entry,) in connection.execute("SELECT entry FROM entries WHERE kind IN ('fault', 'stop')"):
        states[json.loads(entry)["charge"]] = "failed"
    return states


def _charge(number: int, fields: dict[str, Any], state: State) -> PastCharge:
    """A statement that only showed releases again was settled when it was charged."""
    seen, first = chain.sights_of(fields)
    return PastCharge(
        datetime.fromisoformat(fields["time"]),
        fields["period"],
        fields["session"],
        fields["statement"],
        tuple(fields["tables"]),
        tuple(map(chain.mechanism, fields["mechanisms"])),
        tuple(seen),
        tuple(first),
        state if fields["mechanisms"] else "settled",
        number,
        fields["analyst"],
        fields.get("fingerprint", ""),
        fields.get("shape", ""),
    )
