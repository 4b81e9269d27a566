"""Promises of noisegate.within in a ledger: a price, so that asking the same after a restart costs nothing either.

A promise follows from a probe, so it tells of rows what the probe has told. It is found for the accounts that have paid
for that: in another period, or in another role, it would be told for nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Final

from proxy.ledger.connection import Connection
from proxy.ledger.integrity import append, read_entry
from rules.accounting import chain
from rules.accounting.chain import Account, Fields
from rules.accounting.store import Promise

MOST_A_DAY: Final = 1000  # of one analyst: each is an entry, and who has nothing left to spend can ask on


@dataclass(frozen=True, slots=True)
class Asked:
    """Name a question, by a digest, who asks it, and the accounts that pay for the probe."""

    analyst: str
    question: str
    accounts: Sequence[Account]

    @property
    def payers(self) -> list[list[str]]:
        """Return the accounts as an entry has them."""
        return [list(account) for account in self.accounts]


def keep(connection: Connection, asked: Asked, promise: Promise, time: datetime) -> None:
    """Append the promise for a question, unless it is there or the analyst has many of this day.

    One that was made before is appended again: it is on numbers that are fresh now.
    """
    (of_today,) = connection.execute(
        "SELECT count(*) FROM entries WHERE analyst = ? AND kind = 'promise' AND time > ?",
        (asked.analyst, chain.stamp(time - timedelta(days=1))),
    ).fetchone()
    known = find(connection, asked)
    if of_today >= MOST_A_DAY or (known == promise and known.time == time):
        return
    about = {"kind": "promise", "time": chain.stamp(time), "analyst": asked.analyst, "question": asked.question}
    said = {"epsilon": str(promise.epsilon), "told": list(promise.notices), "accounts": asked.payers}
    append(connection, chain.canonical({**about, **said}))


def find(connection: Connection, asked: Asked) -> Promise | None:
    """The newest promise for a question of this analyst, if it was made on these accounts."""
    row: Sequence[Any] | None = connection.execute(
        "SELECT entry FROM entries WHERE analyst = ? AND kind = 'promise' AND entry LIKE ? ORDER BY id DESC LIMIT 1",
        (asked.analyst, f"%{asked.question}%"),
    ).fetchone()
    return None if row is None else read_entry(row[0], lambda fields: _promise(fields, asked))


def _promise(fields: Fields, asked: Asked) -> Promise | None:
    """The promise of an entry; those of earlier versions name no accounts."""
    if fields.get("accounts") != asked.payers:
        return None
    return Promise(Decimal(fields["epsilon"]), tuple(fields["told"]), datetime.fromisoformat(fields["time"]))
