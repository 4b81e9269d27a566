"""Note how private statements end: in the log, and for failures after the charge in the ledger too.

`statement` is the fingerprint of the analyst's text without its constants, as the ledger has it too. A failure that a
row can have caused tells of it, so it is an analyst's last until forgiven.
"""

import asyncio
from collections import defaultdict, deque
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, TypeVar

from proxy import log
from proxy.causes import Cause, cause_of, ledger_cause
from proxy.engines.engine import EngineError, NotPermitted, SchemaChanged, StatementFailed, Unplannable
from proxy.execute.clock import Clock
from proxy.execute.rulebook import StatementContext
from proxy.log import warn
from proxy.metrics import ANSWERS, BUDGET_ALERTS, DATABASE_FAILURES, FAULTS, LEDGER_FAILURES
from rules.accounting.store import Balance, FiledRequest, LedgerError, LedgerStore, Receipt
from rules.refusal import InnerFailure, Refusal, RulesChanged, Unavailable, can_tell_of_rows

Result = TypeVar("Result")

LEVELS: Final = (50, 80, 100)
_ALL: Final = 99  # percent: what is left pays for nothing that is worth asking
_RETRY_SECONDS: Final = 2.0  # until the ledger takes a fault that it did not take at once


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


def answered(context: StatementContext, receipt: Receipt, *, fresh: int, reused: int) -> None:
    """An answer was given: so many measures were drawn, so many served again. Gaussian noise has a ρ alone."""
    ANSWERS.labels("drawn" if not reused else "both" if fresh else "served_again").inc()
    epsilon, rho = float(receipt.cost.epsilon) if receipt.cost.pure else None, float(receipt.cost.rho)
    about = {"analyst": context.analyst, "statement": context.statement}
    log.event("answered", **about, epsilon=epsilon, rho=rho, fresh=fresh, reused=reused)


def requested(context: StatementContext, filed: FiledRequest) -> None:
    """An analyst asks for more budget. The reason is in the ledger: the log has no words of analysts."""
    log.event("budget_requested", analyst=context.analyst, request=filed.number, epsilon=float(filed.terms.epsilon))


def away(context: StatementContext, error: EngineError | TimeoutError) -> None:
    """The real database did not do what has to be done before a charge: nothing was paid."""
    DATABASE_FAILURES.inc()
    cause = error.cause if isinstance(error, EngineError) else Cause("time_out")
    log.warn(
        "database", analyst=context.analyst, statement=context.statement, kind=type(error).__name__, **cause.fields
    )


def unfinished(context: StatementContext, charge: int, kind: str, cause: Cause) -> None:
    """A charged statement was cut off, by its time or with its connection: nothing that rows have caused."""
    about = {"analyst": context.analyst, "statement": context.statement, "kind": kind}
    log.warn("unfinished", charge=charge, **about, **cause.fields)


def fault(context: StatementContext, charge: int, kind: str, cause: Cause, sql: str) -> None:
    """A charged statement failed as only rows, or a mistake of ours, can make it: its analyst is stopped.

    What was run is for the DBA, who reports it; the analyst is told one constant text.
    """
    FAULTS.inc()
    about = {"analyst": context.analyst, "statement": context.statement, "kind": kind}
    log.alarm("fault", charge=charge, **about, **cause.fields, inner_sql=sql)


def ledger(analyst: str, error: LedgerError) -> None:
    """The ledger could not be read or written when this analyst needed it."""
    LEDGER_FAILURES.inc()
    kind = type(error.__cause__ or error).__name__
    log.warn("ledger", analyst=analyst, kind=kind, **ledger_cause(error).fields)


@contextmanager
def of_ledger(analyst: str) -> Iterator[None]:
    """Note what is wrong with the ledger where it keeps a statement from its answer."""
    try:
        yield
    except LedgerError as error:
        ledger(analyst, error)
        raise


@contextmanager
def after_charge(analyst: str) -> Iterator[None]:
    """Whatever the ledger does not do after a charge is one constant refusal, as of a fault that it does not take."""
    try:
        with of_ledger(analyst):
            yield
    except LedgerError:
        raise _not_kept() from None


class BudgetAlerts:
    """Tells each threshold of each account once in a period; a grant begins anew, and so does a restart."""

    def __init__(self) -> None:
        self._told: dict[tuple[str | None, str | None], int] = {}

    def note(self, analyst: str, receipt: Receipt, role: str | None = None) -> None:
        """Look at all accounts after a charge."""
        self._note(analyst, None, receipt.analyst)
        self._note(None, None, receipt.dataset)
        if role is not None and receipt.role is not None:
            self._note(None, role, receipt.role)

    def _note(self, analyst: str | None, role: str | None, balance: Balance) -> None:
        reached, account = level_of(balance), (analyst, role)
        if reached > self._told.get(account, 0):
            of_role = {} if role is None else {"role": role}
            warn("budget_used", analyst=analyst, **of_role, percent=reached, left=float(balance.left))
            BUDGET_ALERTS.labels(str(reached)).inc()
        self._told[account] = reached


def level_of(balance: Balance) -> int:
    """The highest level that is reached.

    Example:
        >>> from decimal import Decimal
        >>> [level_of(Balance(Decimal(spent), Decimal(10), Decimal(99))) for spent in ("4.9", "5", "8.1", "9.95", "12")]
        [0, 50, 80, 100, 100]
    """
    percent = 100 * balance.spent / balance.limit if balance.limit else 100
    return max((level for level in LEVELS if percent >= min(level, _ALL)), default=0)


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
        self._tasks: set[asyncio.Task[Any]] = set()

    async def note(self, receipt: Receipt, context: StatementContext, error: Exception) -> Refusal:
        """Keep one, and return what the analyst is told of it: the same words whatever happened.

        But for a schema that changed meanwhile, which follows from what the DBA does and from no row.
        Who cancels, or leaves, at this very moment is stopped all the same. A fault is told once the ledger has it.
        Where it does not take it, an answer would not be told either, in the words that are returned then: of a stop
        that is lost with this proxy nobody has learnt anything.
        """
        sql, reason = (error.sql, error.reason) if isinstance(error, FailedStatement) else ("", error)
        kind, stops = _classify(reason)
        cause = reason.cause if isinstance(reason, EngineError) else cause_of(reason)
        if stops:
            fault(context, receipt.charge, kind, cause, sql)
        else:
            unfinished(context, receipt.charge, kind, cause)
        self._waiting[context.analyst].append(_Fault(receipt.charge, self._clock(), kind, stops))
        if not await asyncio.shield(self._start(self._try_to_write(context.analyst))):
            return _not_kept()
        return _schema_changed() if isinstance(reason, SchemaChanged) else inner_failure()

    async def write(self, analyst: str) -> None:
        """Bring into the ledger what it did not take when it happened: nothing is charged, or answered, before."""
        if analyst not in self._waiting:
            return
        async with self._writing:
            waiting = self._waiting[analyst]
            while waiting:
                noted = waiting[0]
                await self._ledger.fault(noted.charge, noted.time, cause=noted.cause, stops=noted.stops)
                waiting.popleft()
            del self._waiting[analyst]

    async def _try_to_write(self, analyst: str) -> bool:
        try:
            await self.write(analyst)
        except LedgerError as error:
            ledger(analyst, error)
            self._start(self._write_later(analyst))
            return False
        return True

    async def _write_later(self, analyst: str) -> None:
        """Other proxies may reach the ledger while we do not, and a stop has to hold there too."""
        while analyst in self._waiting:
            await asyncio.sleep(_RETRY_SECONDS)
            with suppress(LedgerError):
                await self.write(analyst)

    def _start(self, work: Coroutine[None, None, Result]) -> asyncio.Task[Result]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def _classify(reason: Exception) -> tuple[str, bool]:
    """A failure's name for log and ledger, and whether a row can have caused it. Our own mistakes count as rows do."""
    match reason:
        case StatementFailed(sqlstate=sqlstate):
            return sqlstate[:2], can_tell_of_rows(sqlstate)
        case Unplannable(cause=cause):
            return cause.sqlstate[:2], True
        case SchemaChanged() | NotPermitted():
            return "schema", False
        case EngineError():
            return "connection", False
        case TimeoutError():
            return "time", False
        case _:
            return type(reason).__name__, True


def inner_failure() -> InnerFailure:
    """The one refusal after a charge of whatever rows can have caused."""
    return InnerFailure("the statement failed after it was charged", hint="Its ε is spent.")


def _not_kept() -> Unavailable:
    """The one refusal after a charge while the ledger takes neither answers nor faults."""
    return Unavailable("the privacy ledger has failed, so the statement is not answered", hint="Its ε is spent.")


def _schema_changed() -> RulesChanged:
    return RulesChanged(
        "the schema changed while the statement ran",
        hint="Its ε is spent. Run it again: it is charged anew.",
    )
