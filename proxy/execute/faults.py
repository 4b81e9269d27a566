"""Failures after the charge. One that a row can have caused tells of it, so it is an analyst's last until forgiven."""

import asyncio
from collections import defaultdict, deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

from proxy.causes import cause_of
from proxy.engines.engine import EngineError, StatementFailed
from proxy.execute import audit
from proxy.execute.clock import Clock
from proxy.execute.statement_context import StatementContext
from rules.accounting.store import LedgerError, LedgerStore, Receipt
from rules.refusal import InnerFailure, can_tell_of_rows


class FailedStatement(Exception):
    """An inner statement that failed, or whose rows could not be read, and why."""

    def __init__(self, sql: str, reason: Exception) -> None:
        super().__init__()
        self.sql, self.reason = sql, reason


@contextmanager
def failures_of(sql: str) -> Iterator[None]:
    """Whatever fails inside, in the database or in our own reading of its rows, is a failure of this statement."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - our own mistakes over rows are faults too
        raise FailedStatement(sql, error) from None


@dataclass(frozen=True, slots=True)
class _Fault:
    charge: int
    time: datetime
    cause: str
    stops: bool


class Faults:
    """Puts them into the ledger, whatever happens to the session, and to the ledger, meanwhile."""

    def __init__(self, ledger: LedgerStore, clock: Clock) -> None:
        self._ledger, self._clock = ledger, clock
        self._waiting: defaultdict[str, deque[_Fault]] = defaultdict(deque)  # by analyst: not in the ledger yet
        self._writing = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()

    async def note(self, receipt: Receipt, context: StatementContext, error: Exception) -> InnerFailure:
        """Keep one, and return what the analyst is told of it: the same words whatever happened.

        Who cancels, or leaves, at this very moment is stopped all the same.
        """
        sql, reason = (error.sql, error.reason) if isinstance(error, FailedStatement) else ("", error)
        kind, stops = _classify(reason)
        cause = reason.cause if isinstance(reason, EngineError) else cause_of(reason)
        if stops:
            audit.fault(context, receipt.charge, kind, cause, sql)
        else:
            audit.unfinished(context, receipt.charge, kind, cause)
        self._waiting[context.analyst].append(_Fault(receipt.charge, self._clock(), kind, stops))
        task = asyncio.create_task(self._try_to_write(context.analyst))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        await asyncio.shield(task)
        return inner_failure()

    async def write(self, analyst: str) -> None:
        """Bring into the ledger what it did not take when it happened: nothing is charged before."""
        if analyst not in self._waiting:
            return
        async with self._writing:
            waiting = self._waiting[analyst]
            while waiting:
                fault = waiting[0]
                await self._ledger.fault(fault.charge, fault.time, cause=fault.cause, stops=fault.stops)
                waiting.popleft()
            del self._waiting[analyst]

    async def _try_to_write(self, analyst: str) -> None:
        try:
            await self.write(analyst)
        except LedgerError as error:
            audit.ledger(analyst, error)


def _classify(reason: Exception) -> tuple[str, bool]:
    """A failure's name for log and ledger, and whether a row can have caused it. Our own mistakes count as rows do."""
    match reason:
        case StatementFailed(sqlstate=sqlstate):
            return sqlstate[:2], can_tell_of_rows(sqlstate)
        case EngineError():
            return "connection", False
        case TimeoutError():
            return "time", False
        case _:
            return type(reason).__name__, True


def inner_failure() -> InnerFailure:
    """The one refusal after a charge."""
    return InnerFailure("the statement failed after it was charged", hint="Its ε is spent.")
