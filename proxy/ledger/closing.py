"""Old entries closed into a sum that the chain vouches for, so that a ledger opens quickly however long it has served.

Three steps, none of which stops those who charge for long: the sum is made from a snapshot, one short transaction
appends it, and what it stands for is deleted a little at a time. From the second step on nobody reads what is closed:
grants and other words of it, which are found by their kind, are deleted in that step.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from functools import partial
from typing import Final

from proxy.ledger import charges, requests
from proxy.ledger.connection import Connection
from proxy.ledger.history import WORDS, checked_entries
from proxy.ledger.integrity import find_closed
from rules.accounting import chain
from rules.accounting.chain import Closed, Fields
from rules.accounting.store import BudgetRequest, KeptBounds, LedgerError

_AT_ONCE: Final = 2_000  # rows that one transaction deletes

Job = Callable[[Connection], int]


@dataclass(frozen=True, slots=True)
class Closing:
    """Hold what is about to be closed: the sum, and its stops, grants and open requests, which stay in force."""

    before: Closed
    after: Closed
    stops: tuple[Fields, ...]
    grants: tuple[Fields, ...]
    requests: Mapping[int, Fields]
    bounds: tuple[KeptBounds, ...]


def sum_up(connection: Connection, place: str, until: datetime) -> Closing:
    """Add up all entries before a moment; up to the first that is not before it."""
    closed, limit = find_closed(connection), chain.stamp(until)
    number, seal, summed = closed.number, closed.seal, []
    for entry_number, sealed, fields, _ in checked_entries(connection, place, closed):
        if fields["time"] >= limit:
            break
        number, seal = entry_number, sealed
        summed.append((entry_number, fields))
    replayed = chain.replay(iter(summed), closed)
    stops = tuple(fields for _, fields in replayed.stops.values() if fields["kind"] == "stop")
    after = Closed(number, seal, replayed.identity, replayed.charges, replayed.last_release, accounts=replayed.accounts)
    return Closing(closed, after, stops, tuple(replayed.grants), replayed.requests, tuple(replayed.bounds.values()))


def close(connection: Connection, closing: Closing, time: datetime) -> int:
    """Append the sum; stops in force, grants, bounds and open requests follow again. Returns its entry's number."""
    row = connection.execute("SELECT seal FROM entries WHERE id = ?", (closing.after.number,)).fetchone()
    if find_closed(connection).number != closing.before.number or row != (closing.after.seal,):
        raise LedgerError("the ledger changed while its totals were computed", hint="Try again.", reason="changed")
    number = charges.append(connection, closing.after.entry(time))
    for fields in closing.stops:
        if charges.is_stopped(connection, fields["analyst"]):
            stopped = datetime.fromisoformat(fields["time"])
            about = fields["charge"], fields["analyst"], stopped
            charges.append(connection, chain.fault_entry(*about, cause=fields["cause"], stops=True))
    newer = {(bound.table, bound.column) for bound in charges.kept_bounds(connection, after=closing.after.number)}
    for kept in closing.bounds:
        if (kept.table, kept.column) not in newer:
            charges.append(connection, chain.bounds_entry(kept))
    for fields in closing.grants:
        charges.append(connection, chain.grant_entry(chain.grant_of(fields), fields["period"]))
    for request, fields in closing.requests.items():
        if requests.is_open(connection, fields["analyst"], request):
            budget_request = BudgetRequest(Decimal(fields["epsilon"]), fields["reason"])
            filed = datetime.fromisoformat(fields["time"])
            entry = chain.request_entry(
                fields["analyst"], filed, period=fields["period"], terms=budget_request, number=request
            )
            charges.append(connection, entry)
    connection.execute(f"DELETE FROM entries WHERE {WORDS} AND id <= ?", (closing.after.number,))
    return number


def deletions(closed: Closed) -> list[Job]:
    """Jobs that delete what is closed; each is run until it has deleted nothing."""
    return [
        partial(_delete, table="seen", column="release", last=closed.release),
        partial(_delete, table="releases", column="id", last=closed.release),
        partial(_delete, table="entries", column="id", last=closed.number),
    ]


def _delete(connection: Connection, *, table: str, column: str, last: int) -> int:
    """Delete the lowest of the rows up to a number; returns how many numbers there were."""
    rows = connection.execute(
        f"SELECT DISTINCT {column} FROM {table} WHERE {column} <= ? ORDER BY {column} LIMIT {_AT_ONCE}", (last,)
    )
    numbers = [number for (number,) in rows]
    if numbers:
        connection.execute(f"DELETE FROM {table} WHERE {column} <= ?", (numbers[-1],))
    return len(numbers)
