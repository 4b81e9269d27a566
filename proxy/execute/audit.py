"""The log's word on private statements: who, what it cost, how it ended and why. Only of a fault it tells what was run.

`statement` is the fingerprint of the analyst's text without its constants, as the ledger has it too.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from proxy import log
from proxy.causes import Cause
from proxy.engines.engine import EngineError
from proxy.execute.statement_context import StatementContext
from proxy.ledger.causes import ledger_cause
from proxy.metrics import ANSWERS, DATABASE_FAILURES, FAULTS, LEDGER_FAILURES
from rules.accounting.accountant import Totals
from rules.accounting.store import FiledRequest, LedgerError, Receipt


def answered(context: StatementContext, receipt: Receipt, *, fresh: int, reused: int) -> None:
    """An answer was given: so many measures were drawn, so many served again. Gaussian noise has a ρ alone."""
    ANSWERS.labels("drawn" if not reused else "both" if fresh else "served_again").inc()
    cost = {"epsilon": _epsilon(receipt.cost), "rho": float(receipt.cost.rho)}
    log.event("answered", analyst=context.analyst, statement=context.statement, **cost, fresh=fresh, reused=reused)


def _epsilon(cost: Totals) -> float | None:
    return float(cost.epsilon) if cost.pure else None


def requested(context: StatementContext, filed: FiledRequest) -> None:
    """An analyst asks for more budget. The reason is in the ledger: the log has no words of analysts."""
    log.event("budget_requested", analyst=context.analyst, request=filed.number, epsilon=float(filed.asked.epsilon))


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
