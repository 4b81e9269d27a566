"""What the log says of private statements: who, what it cost and how it ended. Never what was asked or answered."""

from collections.abc import Iterator
from contextlib import contextmanager

from proxy import log
from rules.ledger.accountant import Totals
from rules.ledger.store import LedgerError, Receipt
from rules.refusal import Refusal


def answered(analyst: str, receipt: Receipt, *, fresh: int, reused: int) -> None:
    """An answer was given: so many measures were drawn, so many served again. Gaussian noise has a ρ alone."""
    cost = {"epsilon": _epsilon(receipt.cost), "rho": float(receipt.cost.rho)}
    log.event("answered", analyst=analyst, **cost, fresh=fresh, reused=reused)


def _epsilon(cost: Totals) -> float | None:
    return float(cost.epsilon) if cost.pure else None


def fault(analyst: str, charge: int, error: BaseException) -> None:
    """Something failed after a charge. The kind of failure is for the DBA; the analyst is told one constant text."""
    log.warn("fault", analyst=analyst, charge=charge, kind=type(error).__name__)


@contextmanager
def of_refusals(analyst: str) -> Iterator[None]:
    """Note every refusal that passes through here, and what is wrong with the ledger."""
    try:
        yield
    except LedgerError as error:
        log.warn("ledger", analyst=analyst, kind=type(error.__cause__ or error).__name__)
        raise
    except Refusal as refusal:
        log.event("refused", analyst=analyst, kind=type(refusal).__name__, sqlstate=refusal.sqlstate)
        raise
