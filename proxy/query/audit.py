"""What the log says of private statements: who, what it cost and how it ended. Never what was asked or answered."""

from collections.abc import Iterator
from contextlib import contextmanager

from proxy import log
from rules.ledger.store import LedgerError, Receipt
from rules.refusal import Refusal


def answered(analyst: str, receipt: Receipt, *, fresh: int, reused: int) -> None:
    """An answer was given: so many measures were drawn, so many served again."""
    log.event("answered", analyst=analyst, epsilon=float(receipt.epsilon), fresh=fresh, reused=reused)


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
