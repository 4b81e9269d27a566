"""Why the ledger could not be read or written: what an operator is told of it."""

import sqlite3

from proxy.causes import UNKNOWN, Cause, cause_of
from rules.accounting.store import LedgerError


def ledger_cause(error: LedgerError) -> Cause:
    """The first reason of all: of SQLite, PostgreSQL or the system where one of them failed, else a word of ours.

    Example:
        >>> ledger_cause(LedgerError("the ledger was cut", reason="cut"))
        Cause(reason='cut', sqlstate='')
    """
    match error.__cause__:
        case LedgerError() as inner:
            return ledger_cause(inner)
        case sqlite3.Error() as failure:
            return Cause(getattr(failure, "sqlite_errorname", error.reason))
        case BaseException() as failure if (found := cause_of(failure)) != UNKNOWN:
            return found
        case _:
            return Cause(error.reason)
