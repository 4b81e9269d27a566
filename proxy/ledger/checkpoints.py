"""Checkpoints of a ledger: made while it serves, and what they let an opening take on trust verified, without haste.

Everything is read from snapshots of its own and without a lock; a checkpoint is one short transaction.
"""

import asyncio
from collections.abc import Callable
from datetime import datetime
from typing import Final, NoReturn

from proxy import log
from proxy.causes import ledger_cause
from proxy.ledger import charges
from proxy.ledger.connection import Connection
from proxy.ledger.group_commit import GroupCommit, Home
from proxy.ledger.history import CHANGED, PART, beginning, check_part, newest_checkpoint, walk
from proxy.ledger.integrity import find_closed
from rules.accounting.chain import Checkpoint
from rules.accounting.store import LedgerError

_EACH_SECONDS: Final = 60.0  # how often it is looked whether another is due
_PAUSE_SECONDS: Final = 1.0  # between two of a ledger that has none yet
_IDLE: Final = 4  # times as long as it worked: a processor of the proxy's is for others


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
            last, _ = charges.head(connection)
            newest = newest_checkpoint(connection, closed)
            if last < newest.sum.number + PART:
                return None
            return check_part(connection, self._home.end.place, newest, closed, PART)

    def _verify_part(self, after: Checkpoint | None) -> Checkpoint:
        with self._home.snapshot() as connection:
            closed = find_closed(connection)
            if after is None or after.base != closed.number:  # it was closed meanwhile: what is left begins there
                after = beginning(closed)
            return next(walk(connection, self._home.end.place, after, closed))


def _append(connection: Connection, made: Checkpoint, time: datetime) -> bool:
    """Unless the ledger was closed, or another proxy has made one, meanwhile."""
    closed = find_closed(connection)
    if made.base != closed.number or made.sum.number <= newest_checkpoint(connection, closed).sum.number:
        return False
    charges.append(connection, made.entry(time))
    return True
