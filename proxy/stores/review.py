"""What an analyst may read of the ledger: both accounts, and the charges on the own one."""

import json
from datetime import datetime
from typing import Any

from proxy.stores import entries
from proxy.stores.connection import Connection
from rules.ledger import chain
from rules.ledger.accountant import Limit
from rules.ledger.book import Budgets
from rules.ledger.chain import DATASET, account_of
from rules.ledger.store import PastCharge, Review, Standing, State


def review(connection: Connection, analyst: str, budgets: Budgets, now: datetime, most_charges: int) -> Review:
    """Read within one transaction, so that the accounts are the sums of the charges."""
    period = entries.running_period(connection, now, budgets)
    return Review(
        period,
        _standing(connection, account_of(analyst), period, budgets.limit_of(analyst)),
        _standing(connection, DATASET, period, budgets.dataset),
        _charges(connection, analyst, most_charges) if most_charges else (),
    )


def _standing(connection: Connection, account: str, period: str, limit: Limit) -> Standing:
    totals = entries.spent(connection, account, period)
    return Standing(totals, limit, entries.lifetime(connection, account, limit))


def _charges(connection: Connection, analyst: str, most: int) -> tuple[PastCharge, ...]:
    found = connection.execute(
        "SELECT id, entry FROM entries WHERE analyst = ? AND kind = 'charge' ORDER BY time DESC, id DESC LIMIT ?",
        (analyst, most),
    )
    rows = [(number, json.loads(entry)) for number, entry in found]
    settled = connection.execute(
        "SELECT DISTINCT r.charge FROM seen s JOIN releases r ON r.id = s.release WHERE s.account = ?",
        (account_of(analyst),),
    )
    faults = connection.execute("SELECT entry FROM entries WHERE analyst = ? AND kind = 'fault'", (analyst,))
    states: dict[int, State] = dict.fromkeys((int(charge) for (charge,) in settled), "settled")
    states |= dict.fromkeys((json.loads(entry)["charge"] for (entry,) in faults), "failed")
    return tuple(_charge(entry, states.get(number, "charged")) for number, entry in reversed(rows))


def _charge(fields: dict[str, Any], state: State) -> PastCharge:
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
    )
