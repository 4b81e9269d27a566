"""The ledger in a PostgreSQL database of the DBA's, for proxies on several machines."""

import os
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from proxy.ledger.connection import NEWER, SEALED_VERSION, VERSION, Connection, Cursor, statements_from
from proxy.ledger.history import adopt, check_history
from proxy.ledger.integrity import Anchor, ChainEnd
from rules.accounting.store import LedgerError

SCHEMA = "noisegate_ledger"
_PLACE = f"in schema {SCHEMA}"
_SNAPSHOT = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"

# How soon a line is given up on which nobody answers; what the connection string says goes first.
_LINE: Mapping[str, str | int] = {
    "application_name": "noisegate",
    "client_encoding": "UTF8",
    "connect_timeout": 5,
    "tcp_user_timeout": 10_000,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
}
# What the role, its database or the server may say otherwise, as far as the server knows it. How long a job may take is
# known here, and opening a long history takes as long as that is.
_SESSION = {
    "search_path": SCHEMA,
    "lock_timeout": "10s",
    "idle_in_transaction_session_timeout": "30s",
    "idle_session_timeout": "0",
    "statement_timeout": "0",
    "transaction_timeout": "0",
    "default_transaction_read_only": "off",
}
# Who vanishes with the ledger in hand, as behind a network that drops packets, gives it back before those give up who
# wait for it. Between the statements of a job there is no work to speak of.
_HELD_SECONDS = 5
_UNHURRIED = "SET LOCAL idle_in_transaction_session_timeout = '30s'"  # but for one that verifies all its history
_SET = """
SELECT set_config(s.name, s.value, false) FROM unnest(?::text[], ?::text[]) AS s (name, value)
WHERE current_setting(s.name, true) IS NOT NULL"""


class _Connection:
    """psycopg with the ledger's way to write parameters."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection
        self._line = socket.socket(fileno=os.dup(connection.pgconn.socket))  # ours, whoever closes the other
        self._closing = threading.Lock()

    def execute(self, sql: str, parameters: Sequence[Any] = (), /) -> Cursor:
        return self._connection.execute(sql.replace("?", "%s").encode(), parameters or None)

    def close(self) -> None:
        self._connection.close()
        with self._closing:
            self._line.close()

    def break_off(self) -> None:
        """Let a thread that waits for an answer fail at once, by cutting the line below it."""
        with self._closing, suppress(OSError):
            self._line.shutdown(socket.SHUT_RDWR)


class LedgerDatabase:
    """The schema itself. One lock for all proxies: a transaction waits for the one before it."""

    errors: tuple[type[Exception], ...] = (psycopg.Error,)

    def __init__(self, dsn: str, identity: str, anchor: Anchor) -> None:
        self._dsn, self._identity, self._anchor = dsn, identity, anchor
        self._connection: _Connection | None = None
        self.end = ChainEnd(_PLACE, identity, anchor)

    def create(self, fill: Callable[[Connection], None] | None = None) -> None:
        """Make the schema with an empty chain in it, or with what `fill` puts there: in one transaction."""
        if self._anchor.read()[0] and fill is None:
            raise LedgerError(
                "the anchor belongs to a ledger with entries, which a new ledger would lose",
                reason="anchor_knows_another",
            )
        try:
            connection = self._raw_connection()
            _check_encoding(connection)
            connection.execute("BEGIN")
            connection.execute(f"CREATE SCHEMA {SCHEMA}")
            _run_scripts(connection, 0, self._identity)
            if fill is not None:
                fill(connection)
            connection.execute("COMMIT")
            connection.close()
        except psycopg.errors.DuplicateSchema:
            raise LedgerError(f"a ledger {_PLACE} already exists", reason="exists") from None
        except psycopg.Error as error:
            raise LedgerError(f"the ledger {_PLACE} cannot be created: {error}", reason="cannot_be_made") from error

    def connect(self) -> Connection:
        """Open and check the whole ledger: raises LedgerError when it is not what it should be."""
        try:
            connection = self._raw_connection()
        except psycopg.Error as error:
            raise LedgerError(f"the database of the ledger is unavailable: {error}", reason="away") from error
        self._connection = connection
        try:
            self._check(connection)
        except psycopg.errors.UndefinedTable:
            connection.close()
            hint = "Only `noisegate ledger init` creates a new one, which starts with nothing spent."
            raise LedgerError(f"the ledger {_PLACE} is missing", hint=hint, reason="missing") from None
        except BaseException:
            connection.close()
            raise
        return connection

    def begin(self, *, durable: bool) -> tuple[str, ...]:
        wait = f"SET LOCAL synchronous_commit = {'on' if durable else 'off'}"
        leave = f"SET LOCAL idle_in_transaction_session_timeout = '{_HELD_SECONDS}s'"
        return (f"BEGIN; {wait}; {leave}; LOCK TABLE entries IN EXCLUSIVE MODE",)

    def check_pages(self, connection: Connection) -> None:
        """The server's own checksums find a damaged page."""

    def check(self) -> None:
        """A connection that still works leads to the same database."""

    def version(self) -> None:
        """It would have to be asked for over the network."""

    def break_off(self) -> None:
        if self._connection is not None:
            self._connection.break_off()

    @contextmanager
    def snapshot(self) -> Iterator[Connection]:
        """The ledger as it is at one moment, for reading: nobody waits for it."""
        try:
            connection = self._raw_connection()
        except psycopg.Error as error:
            raise LedgerError(f"the database of the ledger is unavailable: {error}", reason="away") from error
        try:
            self._upgrade(connection)
            connection.execute(_SNAPSHOT)
            yield connection
        except psycopg.errors.UndefinedTable:
            raise LedgerError(f"the ledger {_PLACE} is missing", reason="missing") from None
        except psycopg.Error as error:
            raise LedgerError(f"the ledger {_PLACE} cannot be used: {error}", reason="cannot_be_used") from error
        finally:
            connection.close()

    def _check(self, connection: Connection) -> None:
        self._upgrade(connection)
        connection.execute(_SNAPSHOT)  # others go on charging
        check_history(connection, _PLACE, self._identity, self._anchor)
        connection.execute("COMMIT")

    def _upgrade(self, connection: Connection) -> None:
        """Bring an older ledger to this version, with nobody else in it."""
        if _version(connection) == VERSION:
            return
        for statement in (*self.begin(durable=True), _UNHURRIED):
            connection.execute(statement)
        version = _version(connection)
        if version < VERSION:
            _run_scripts(connection, version, self._identity)
        if version < SEALED_VERSION:
            (identity,) = connection.execute("SELECT value FROM meta WHERE name = 'identity'").fetchone()
            adopt(connection, _PLACE, identity, self._anchor)
        connection.execute("COMMIT")

    def _raw_connection(self) -> _Connection:
        parameters = conninfo_to_dict(self._dsn)
        line = {name: value for name, value in _LINE.items() if name not in parameters}
        raw = psycopg.connect(make_conninfo(self._dsn, **line), autocommit=True)
        connection = _Connection(raw)
        connection.execute(_SET, (list(_SESSION), list(_SESSION.values())))
        return connection


def _check_encoding(connection: Connection) -> None:
    """Statements have any character. One that cannot be kept would fail all the charges that are committed with it."""
    (encoding,) = connection.execute("SHOW server_encoding").fetchone()
    if encoding not in ("UTF8", "SQL_ASCII"):  # the second keeps all bytes as they come
        raise LedgerError(
            f"the database of the ledger has the encoding {encoding}, which lacks characters",
            hint="Make another one: CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0.",
            reason="encoding",
        )


def _version(connection: Connection) -> int:
    (text,) = connection.execute("SELECT value FROM meta WHERE name = 'version'").fetchone()
    if int(text) > VERSION:
        raise LedgerError(
            f"the ledger {_PLACE} has version {text}, newer than version {VERSION} of this program",
            hint=NEWER,
            reason="newer_version",
        )
    return int(text)


def _run_scripts(connection: Connection, version: int, identity: str) -> None:
    """Bring the tables to the newest version."""
    for statement in statements_from(version):
        connection.execute(statement)
    if version == 0:
        connection.execute("INSERT INTO meta VALUES ('identity', ?), ('version', '0')", (identity,))
    connection.execute("UPDATE meta SET value = ? WHERE name = 'version'", (str(VERSION),))
