"""One connection, one thread, and group commit: jobs that wait together are committed together, with one fsync."""

import asyncio
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypeVar

from proxy.ledger.connection import Connection
from proxy.ledger.integrity import ChainEnd, head
from proxy.metrics import LEDGER_COMMIT, LEDGER_JOBS
from rules.accounting.store import LedgerError
from rules.refusal import NOTHING_CHARGED, Refusal

PATIENCE_SECONDS = 15.0  # for a job, of which none takes a second
CLOSE_SECONDS = 5.0  # for what runs when the proxy ends
_MAY_BE_CHARGED: Final = "It may have been charged; TABLE noisegate.budget shows it."

Result = TypeVar("Result")
Job = Callable[[Connection], Result]


class Home(Protocol):
    """The place where a ledger is kept."""

    def begin(self, *, durable: bool) -> Sequence[str]:
        """Return what begins a transaction that no other one of any process overlaps.

        One that is not durable is whole or not at all, but a power cut may take it back, until a durable one follows.
        """

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        """Return what is raised when it is away, full or damaged."""

    def connect(self) -> Connection:
        """Open it and check it whole; raises LedgerError."""

    def create(self, fill: Callable[[Connection], None] | None = None) -> None:
        """Make it, empty or with what `fill` puts there; raises LedgerError where there is one already."""

    def snapshot(self) -> AbstractContextManager[Connection]:
        """Return what it holds at one moment, for reading, unchecked: nobody waits for it; raises LedgerError."""

    def check_pages(self, connection: Connection) -> None:
        """Check how the home itself is stored, indexes included; raises LedgerError."""

    def check(self) -> None:
        """Before each transaction: whether it is still what was opened; raises LedgerError."""

    def version(self) -> Hashable | None:
        """Return what changes with every write of any process. Called by the event loop's thread: None, no waiting."""

    def break_off(self) -> None:
        """Let whoever waits for the home fail. Called by another thread than all the rest, at any time."""

    @property
    def end(self) -> ChainEnd:
        """Return what is known of the chain's end."""


@dataclass(frozen=True, slots=True)
class _Waiting:
    job: Job[Any]
    durable: bool
    done: Future[Any] = field(default_factory=Future)


class GroupCommit:
    """Runs jobs in transactions. A job that refuses is undone alone; when the home fails, none of them happened."""

    def __init__(self, home: Home, *, patience_seconds: float = PATIENCE_SECONDS) -> None:
        self._home, self._patience_seconds = home, patience_seconds
        self._waiting: deque[_Waiting] = deque()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="ledger")
        self._connection: Connection | None = None
        self._condemned: LedgerError | None = None
        self._is_committing = False
        self.has_failed = False  # the last batch that may have written something; nothing was written since

    def condemn(self, finding: LedgerError) -> None:
        """Run nothing more: the ledger is not what it was."""
        self._condemned = finding

    async def run(self, job: Job[Result], *, durable: bool = True, is_opening: bool = False) -> Result:
        """Run one job; when this returns, it is on disk. A job that is cancelled before it began is not run.

        A home that does not answer is waited for only so long, also where whoever asks has less patience and leaves;
        opening one may take as long as its history is.
        """
        waiting = _Waiting(job, durable)
        self._waiting.append(waiting)
        if len(self._waiting) == 1:  # whoever is to run those before takes this one along
            self._wake()
        result: asyncio.Future[Result] = asyncio.wrap_future(waiting.done)
        if is_opening:
            return await result
        watch = asyncio.get_running_loop().call_later(self._patience_seconds, self._break_off, waiting)
        try:
            async with asyncio.timeout(self._patience_seconds):
                return await result
        except TimeoutError:
            raise _late(has_begun=not waiting.done.cancelled()) from None
        finally:
            if waiting.done.done():
                watch.cancel()

    def version(self) -> Hashable | None:
        """Return what changes with every write of any process; None where that cannot be told at once."""
        return self._home.version()

    async def close(self) -> None:
        """Finish what waits, then close the connection; a home that does not answer is left as it is."""
        done = asyncio.wrap_future(self._thread.submit(self._disconnect))
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                await asyncio.shield(done)
        except TimeoutError:
            self._home.break_off()
            await asyncio.wait([done], timeout=CLOSE_SECONDS)
        self._thread.shutdown(wait=False)

    def _break_off(self, waiting: _Waiting) -> None:
        if waiting.done.running():
            self._home.break_off()

    def _wake(self) -> None:
        try:
            self._thread.submit(self._run_all)
        except RuntimeError:  # it is closed, so nobody may wait
            self._waiting.clear()
            raise

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
            with LEDGER_COMMIT.time():
                outcomes = self._commit(batch)
            LEDGER_JOBS.inc(len(batch))
        except BaseException as error:
            self.has_failed = True
            self._disconnect()
            outcomes = [_refused(error, may_be_charged=self._is_committing)] * len(batch)
            if not isinstance(error, (*self._home.errors, OSError, LedgerError)):
                raise
        finally:
            _tell(batch, outcomes)

    def _commit(self, batch: Sequence[_Waiting]) -> list[Any]:
        self._is_committing = False
        if self._condemned is not None:
            raise self._condemned
        if self._connection is None:
            self._connection = self._home.connect()
        connection, durable = self._connection, any(waiting.durable for waiting in batch)
        self._home.check()
        for statement in self._home.begin(durable=durable):
            connection.execute(statement)
        before = self._home.end.check(connection, durable=durable)
        outcomes = [_attempt(waiting.job, connection) for waiting in batch]
        after = head(connection) if durable else before
        self._is_committing = True
        connection.execute("COMMIT")
        if after != before:
            self._home.end.note(after)
            self.has_failed = False
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


def _refused(error: BaseException, *, may_be_charged: bool) -> LedgerError:
    """Refuse all who waited in the same words, whatever the reason: the reason is for the log."""
    refusal = LedgerError(
        "the privacy ledger has failed, so the statement is not answered",
        hint=f"{_MAY_BE_CHARGED if may_be_charged else NOTHING_CHARGED} Try again later, or ask your DBA: the log has "
        "the reason.",
        reason="out_of_order",
    )
    refusal.__cause__ = error
    return refusal


def _late(*, has_begun: bool) -> LedgerError:
    """For a job whose home did not answer in time."""
    known = _MAY_BE_CHARGED if has_begun else NOTHING_CHARGED
    return LedgerError(
        "the privacy ledger does not respond, so the statement is not answered",
        hint=f"{known} Try again later.",
        reason="no_answer",
    )


def _tell(batch: Sequence[_Waiting], outcomes: Sequence[Any]) -> None:
    for waiting, outcome in zip(batch, outcomes, strict=True):
        if isinstance(outcome, Refusal):
            waiting.done.set_exception(outcome)
        else:
            waiting.done.set_result(outcome)
