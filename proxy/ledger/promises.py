"""Promises of noisegate.within in a ledger: a price, so that asking the same after a restart costs nothing either."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Final

from proxy.ledger import charges
from proxy.ledger.connection import Connection
from proxy.ledger.integrity import read_entry
from rules.accounting import chain
from rules.accounting.store import Promise

MOST_A_DAY: Final = 1000  # of one analyst: each is an entry, and who has nothing left to spend can ask on


def keep(connection: Connection, analyst: str, question: str, promise: Promise, time: datetime) -> None:
    """Append the promise for a question, which is a digest, unless it is there or the analyst has many of this day."""
    (of_today,) = connection.execute(
        "SELECT count(*) FROM entries WHERE analyst = ? AND kind = 'promise' AND time > ?",
        (analyst, chain.stamp(time - timedelta(days=1))),
    ).fetchone()
    if of_today >= MOST_A_DAY or find(connection, analyst, question) == promise:
        return
    about = {"kind": "promise", "time": chain.stamp(time), "analyst": analyst, "question": question}
    charges.append(
        connection, chain.canonical({**about, "epsilon": str(promise.epsilon), "told": list(promise.notices)})
    )


def find(connection: Connection, analyst: str, question: str) -> Promise | None:
    """The newest promise for a question of this analyst."""
    row: Sequence[Any] | None = connection.execute(
        "SELECT entry FROM entries WHERE analyst = ? AND kind = 'promise' AND entry LIKE ? ORDER BY id DESC LIMIT 1",
        (analyst, f"%{question}%"),
    ).fetchone()
    if row is None:
        return None
    return read_entry(row[0], lambda fields: Promise(Decimal(fields["epsilon"]), tuple(fields["told"])))
