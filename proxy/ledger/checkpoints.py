"""A ledger opens quickly however long it has served: by checkpoints, and by sums that old entries are closed into.

What checkpoints let an opening take on trust is verified while it serves. Everything is read from snapshots of its own
and without a lock; a checkpoint is one short transaction.

The chain vouches for a sum. None of its three steps stops those who charge for long: the sum is made from a snapshot,
one short transaction appends it, and what it stands for is deleted a little at a time. From the second step on nobody
reads what is closed: grants and other words of it, which are found by their kind, are deleted in that step.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from functools import partial
from typing import Final, NoReturn

from proxy import log
from proxy.causes import ledger_cause
from proxy.ledger import charges, requests
from proxy.ledger.connection import Connection
from proxy.ledger.group_commit import GroupCommit, Home
from proxy.ledger.history import CHANGED, PART, WORDS, beginning, check_part, checked_entries, newest_checkpoint, walk
from proxy.ledger.integrity import append, find_closed, head
from rules.accounting import chain
from rules.accounting.chain import Checkpoint, Closed, Fields
from rules.accounting.store import BudgetRequest, KeptBounds, LedgerError

_EACH_SECONDS: Final = 60.0  # how often it is looked whether another is due
_PAUSE_SECONDS: Final = 1.0  # between two of a ledger that has none yet
_IDLE: Final = 4  # times as long as it worked: a processor of the proxy's is for others

_AT_ONCE: Final = 2_000  # rows that one transaction deletes

Job = Callable[[Connection], int]


class Checkpoints:
    """Those of one ledger."""

    def __init__(self, home: Home, batches: GroupCommit) -> None:
        self._home, self._batches = home, batches

    async def keep(self, clock: Callable[[], datetime]) -> NoReturn:
        """Append them as the ledger grows, and verify once what its opening took on trust.

        What was changed by hand there condemns the ledger: it answers nothing more.
        """
        verified = False
        while True:
            is_behind = False
            try:
                is_behind = await self.append(clock())
                if not is_behind:
                    verified = verified or await self._verify_slowly()
            except LedgerError as error:
                log.warn("ledger", kind=type(error).__name__, **ledger_cause(error).fields)
                if error.reason in CHANGED:
                    self._batches.condemn(error)
                    verified = True
            await asyncio.sleep(_PAUSE_SECONDS if is_behind else _EACH_SECONDS)

    async def _verify_slowly(self) -> bool:
        made = await self.verify(hurries=False)
        log.event("ledger_verified", entries=made.sum.number, charges=made.sum.charges)
        return True

    async def append(self, time: datetime) -> bool:
        """Verify the entries after the last checkpoint and append the next, if there are enough for one."""
        made = await asyncio.to_thread(self._next)
        return made is not None and await self._batches.run(
            lambda connection: _append(connection, made, time), durable=False
        )

    async def verify(self, *, hurries: bool) -> Checkpoint:
        """Verify the whole chain; what it comes to. Raises LedgerError where something was changed."""
        clock, at = asyncio.get_running_loop().time, None
        await asyncio.to_thread(self._check_pages)
        while True:
            began, before = clock(), at
            at = await asyncio.to_thread(self._verify_part, before)
            if before is not None and at.sum.number == before.sum.number:
                return at
            if not hurries:
                await asyncio.sleep(_IDLE * (clock() - began))

    def _next(self) -> Checkpoint | None:
        with self._home.snapshot() as connection:
            closed = find_closed(connection)
            last, _ = head(connection)
            newest = newest_checkpoint(connection, closed)
            if last < newest.sum.number + PART:
                return None
            return check_part(connection, self._home.end.place, newest, closed, PART)

    def _check_pages(self) -> None:
        with self._home.snapshot() as connection:
            self._home.check_pages(connection)

    def _verify_part(self, after: Checkpoint | None) -> Checkpoint:
        with self._home.snapshot() as connection:
            closed = find_closed(connection)
            if after is None or after.base != closed.number:  # it was closed meanwhile: what is left begins there
                after = beginning(closed)
            return next(walk(connection, self._home.end.place, after, closed))


@dataclass(frozen=True, slots=True)
class Closing:
    """Hold what is about to be closed: the sum, and its stops, grants and open requests, which stay in force."""

    before: Closed
    after: Closed
    stops: tuple[Fields, ...]
    grants: tuple[Fields, ...]
    requests: Mapping[int, Fields]
    bounds: tuple[KeptBounds, ...]


def _append(connection: Connection, made: Checkpoint, time: datetime) -> bool:
    """Unless the ledger was closed, or another proxy has made one, meanwhile."""
    closed = find_closed(connection)
    if made.base != closed.number or made.sum.number <= newest_checkpoint(connection, closed).sum.number:
        return False
    append(connection, made.entry(time))
    return True


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
    number = append(connection, closing.after.entry(time))
    for fields in closing.stops:
        if charges.is_stopped(connection, fields["analyst"]):
            stopped = datetime.fromisoformat(fields["time"])
            about = fields["charge"], fields["analyst"], stopped
            append(connection, chain.fault_entry(*about, cause=fields["cause"], stops=True))
    newer = {(bound.table, bound.column) for bound in charges.kept_bounds(connection, after=closing.after.number)}
    for kept in closing.bounds:
        if (kept.table, kept.column) not in newer:
            append(connection, chain.bounds_entry(kept))
    for fields in closing.grants:
        append(connection, chain.grant_entry(chain.grant_of(fields), fields["period"]))
    for request, fields in closing.requests.items():
        if requests.is_open(connection, fields["analyst"], request):
            budget_request = BudgetRequest(Decimal(fields["epsilon"]), fields["reason"])
            filed = datetime.fromisoformat(fields["time"])
            entry = chain.request_entry(
                fields["analyst"], filed, period=fields["period"], terms=budget_request, number=request
            )
            append(connection, entry)
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
