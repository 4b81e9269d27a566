"""One connection, one thread, and group commit: jobs that wait together are committed together, with one fsync."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from proxy.stores import entries
from proxy.stores.connection import Connection
from proxy.stores.history import ChainEnd
from rules.ledger.store import LedgerError
from rules.refusal import Refusal

Result = TypeVar("Result")
Job = Callable[[Connection], Result]


class Home(Protocol):
    """Where a ledger is kept."""

    def begin(self, *, durable: bool) -> Sequence[str]:
        """What begins a transaction that no other one of any process overlaps.

        One that is not durable is whole or not at all, but a power cut may take it back, until a durable one follows.
        """

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        """What is raised when it is away, full or damaged."""

    def connect(self) -> Connection:
        """Open it and check it whole; raises LedgerError."""

    def check(self) -> None:
        """Before each transaction: whether it is still what was opened; raises LedgerError."""

    @property
    def end(self) -> ChainEnd:
        """What is known of the chain's end."""


@dataclass(frozen=True, slots=True)
class _Waiting:
    job: Job[Any]
    durable: bool
    done: Future[Any] = field(default_factory=Future)


class Batches:
    """Runs jobs in transactions. A job that refuses is undone alone; when the home fails, none of them happened."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._waiting: deque[_Waiting] = deque()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="ledger")
        self._connection: Connection | None = None

    async def run(self, job: Job[Result], *, durable: bool = True) -> Result:
        """Run one job; when this returns, it is on disk. A job that is cancelled before it began is not run."""
        waiting = _Waiting(job, durable)
        self._waiting.append(waiting)
        self._thread.submit(self._run_all)
        result: Result = await asyncio.wrap_future(waiting.done)
        return result

    async def close(self) -> None:
        """Finish what waits, then close the connection."""
        await asyncio.wrap_future(self._thread.submit(self._disconnect))
        self._thread.shutdown()

    def _run_all(self) -> None:
        """Run everything that waits by now as one transaction."""
        batch = []
        while self._waiting:
            waiting = self._waiting.popleft()
            if waiting.done.set_running_or_notify_cancel():
                batch.append(waiting)
        if not batch:
            return
        try:
            outcomes = self._commit(batch)
        except BaseException as error:
            self._disconnect()
            outcomes = [_refused(error)] * len(batch)
            if not isinstance(error, (*self._home.errors, OSError, LedgerError)):
                raise
        finally:
            _tell(batch, outcomes)

    def _commit(self, batch: Sequence[_Waiting]) -> list[Any]:
        if self._connection is None:
            self._connection = self._home.connect()
        connection, durable = self._connection, any(waiting.durable for waiting in batch)
        self._home.check()
        for statement in self._home.begin(durable=durable):
            connection.execute(statement)
        before = self._home.end.check(connection)
        outcomes = [_attempt(waiting.job, connection) for waiting in batch]
        after = entries.head(connection) if durable else before
        connection.execute("COMMIT")
        if after != before:
            self._home.end.note(after)
        return outcomes

    def _disconnect(self) -> None:
        """Closing rolls back what was not committed; the next batch opens the ledger anew."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


def _attempt(job: Job[Any], connection: Connection) -> Any:
    connection.execute("SAVEPOINT job")
    try:
        outcome = job(connection)
    except Refusal as refusal:
        connection.execute("ROLLBACK TO job")
        outcome = refusal
    connection.execute("RELEASE job")
    return outcome


def _refused(error: BaseException) -> LedgerError:
    """What those who waited are told, the same words for every reason: the reason is for the log."""
    refusal = LedgerError("the privacy ledger is out of order, so nothing is answered")
    refusal.__cause__ = error
    return refusal


def _tell(batch: Sequence[_Waiting], outcomes: Sequence[Any]) -> None:
    for waiting, outcome in zip(batch, outcomes, strict=True):
        if isinstance(outcome, Refusal):
            waiting.done.set_exception(outcome)
        else:
            waiting.done.set_result(outcome)
