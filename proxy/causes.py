"""Name why a database did not do what it was asked: its SQLSTATE, and a word of ours for it, never of its own."""

import errno
import sqlite3
from dataclasses import dataclass
from typing import Final

import psycopg

from rules.accounting.store import LedgerError

_BY_STATE: Final = (
    ("08", "connection_lost"),
    ("28P01", "password_refused"),
    ("28", "login_refused"),
    ("3D000", "no_such_database"),
    ("40001", "snapshot_too_old"),
    ("40", "rolled_back"),
    ("42501", "permission_denied"),
    ("53100", "disk_full"),
    ("53200", "out_of_memory"),
    ("53300", "too_many_connections"),
    ("53", "out_of_resources"),
    ("54", "limit_exceeded"),
    ("55P03", "lock_not_available"),
    ("55", "wrong_state"),
    ("57014", "time_out_or_cancelled"),
    ("57P", "server_not_available"),
    ("25P03", "time_out_or_cancelled"),
    ("25006", "server_is_read_only"),
    ("42", "schema_or_syntax"),
    ("22", "data_exception"),
    ("23", "constraint"),
    ("58", "server_system_error"),
    ("XX", "server_internal_error"),
)
# libpq has no SQLSTATE for what goes wrong before a session begins; its text is about the connection alone.
_BY_TEXT: Final = (
    ("could not translate host name", "host_unknown"),
    ("failed to resolve host", "host_unknown"),
    ("Name or service not known", "host_unknown"),
    ("name resolution", "host_unknown"),
    ("Connection refused", "connection_refused"),
    ("timeout expired", "time_out"),
    ("certificate file", "tls_certificate"),
    ("No such file or directory", "no_such_socket"),
    ("password authentication failed", "password_refused"),
    ("no password supplied", "password_missing"),
    ("no pg_hba.conf entry", "login_refused"),
    ("pg_hba.conf rejects", "login_refused"),
    ("too many clients", "too_many_connections"),
    ("remaining connection slots", "too_many_connections"),
    ("is starting up", "server_starts"),
    ("is shutting down", "server_stops"),
    ("permission denied for database", "connect_denied"),
    ("certificate", "tls_certificate"),
    ("SSL", "tls"),
    ('database "', "no_such_database"),
    ('role "', "no_such_role"),
    ("does not exist", "role_or_database_missing"),
    ("Network is unreachable", "network_unreachable"),
    ("No route to host", "network_unreachable"),
)


_ADVICE: Final = {
    "host_unknown": "no machine has the name of host: is it spelled right, and can this machine resolve it?",
    "connection_refused": "nothing listens there: are host and port right, does the server run, and does its "
    "listen_addresses name that address?",
    "time_out": "no answer within the time limit: is there a firewall between, or is the port another one?",
    "no_such_socket": "there is no server at that socket: is host a folder with a socket of this port?",
    "password_refused": "the password is wrong, or the role has none: \\password in psql sets one",
    "password_missing": "the server asks for a password: write it into the connection string",
    "login_refused": "the server does not let this role in, from here or not like this: see its pg_hba.conf",
    "no_such_database": "there is no such database on that server: is dbname right?",
    "no_such_role": "there is no such role: noisegate grants prints the SQL that makes it",
    "role_or_database_missing": "the role or the database does not exist there",
    "connect_denied": "the role may not connect to this database: noisegate grants prints the SQL",
    "permission_denied": "the role lacks a right that it needs: noisegate grants prints the SQL",
    "tls_certificate": "the server's certificate does not fit: sslrootcert names its authority, host its name",
    "tls": "the two sides do not agree on TLS or its version: sslmode chooses it",
    "too_many_connections": "all connections of the server are taken",
    "server_starts": "the server is starting up",
    "server_stops": "the server is shutting down",
    "wrong_state": "the server is in a state that does not allow this: is it a standby, which cannot write?",
    "network_unreachable": "there is no way to that address from this machine",
    "connection_lost": "the connection was lost",
    "other_database": "it is another database than the proxy began with: does its address lead elsewhere now? If the "
    "same data live on there, run noisegate ledger move and restart the proxy",
}
"""Advice for the DBA; no analyst sees it."""


@dataclass(frozen=True, slots=True)
class Cause:
    """The cause of a failure, in words for an operator."""

    reason: str
    sqlstate: str = ""

    @property
    def fields(self) -> dict[str, str]:
        """For a line of the log."""
        return {"reason": self.reason, **({"sqlstate": self.sqlstate} if self.sqlstate else {})}

    @property
    def advice(self) -> str:
        """In words, and what to do about it."""
        return _ADVICE.get(self.reason, f"{self.reason} {self.sqlstate}".strip())


UNKNOWN: Final = Cause("unknown")


def cause_of(error: BaseException | None) -> Cause:
    """The cause of what psycopg, the system or a clock has raised.

    Example:
        >>> cause_of(psycopg.errors.InsufficientPrivilege("permission denied for table patients"))
        Cause(reason='permission_denied', sqlstate='42501')
        >>> cause_of(TimeoutError())
        Cause(reason='time_out', sqlstate='')
        >>> cause_of(psycopg.OperationalError('root certificate file "/ca.crt" does not exist')).reason
        'tls_certificate'
    """
    match error:
        case psycopg.Error(sqlstate=str() as sqlstate):
            return Cause(reason_of(sqlstate), sqlstate)
        case psycopg.Error():
            text = str(error)
            return Cause(next((reason for part, reason in _BY_TEXT if part in text), "connection_lost"))
        case TimeoutError():
            return Cause("time_out")
        case OSError(errno=int() as number):
            return Cause(errno.errorcode.get(number, "unknown"))
        case _:
            return UNKNOWN


def reason_of(sqlstate: str) -> str:
    """A word of ours for an SQLSTATE.

    Example:
        >>> [reason_of(state) for state in ("28P01", "28000", "57P03", "P0001")]
        ['password_refused', 'login_refused', 'server_not_available', 'other']
    """
    return next((reason for beginning, reason in _BY_STATE if sqlstate.startswith(beginning)), "other")


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
        case BaseException() as failure if (cause := cause_of(failure)) != UNKNOWN:
            return cause
        case _:
            return Cause(error.reason)
