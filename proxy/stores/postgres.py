"""The ledger in a PostgreSQL database of the DBA's, for proxies on several machines."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psycopg

from proxy.stores.connection import Connection, Cursor
from proxy.stores.history import Anchor, ChainEnd, adopt, check_history, check_identity
from proxy.stores.ledger import Ledger
from proxy.stores.schema import VERSION, statements_from
from rules.ledger.store import LedgerError

SCHEMA = "noisegate_ledger"
_PLACE = f"in schema {SCHEMA}"


class PostgresLedger(Ledger):
    """Use `create` once, `open` ever after."""

    @classmethod
    def create(cls, dsn: str, identity: str, *, anchor: Path | None = None) -> None:
        """Make an empty ledger for the database of this identity, in a schema of its own that must not be there."""
        LedgerDatabase(dsn, identity, Anchor(anchor)).create()

    @classmethod
    async def open(cls, dsn: str, identity: str, *, anchor: Path | None = None) -> "PostgresLedger":
        """Open a ledger that exists; raises LedgerError with the reason why it cannot be used."""
        return await cls.at(LedgerDatabase(dsn, identity, Anchor(anchor)))


class _Connection:
    """psycopg with the ledger's way to write parameters."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection

    def execute(self, sql: str, parameters: Sequence[Any] = (), /) -> Cursor:
        return self._connection.execute(sql.replace("?", "%s").encode(), parameters or None)

    def close(self) -> None:
        self._connection.close()


class LedgerDatabase:
    """The schema itself. One lock for all proxies: a transaction waits for the one before it."""

    errors: tuple[type[Exception], ...] = (psycopg.Error,)

    def __init__(self, dsn: str, identity: str, anchor: Anchor) -> None:
        self._dsn, self._identity, self._anchor = dsn, identity, anchor
        self.end = ChainEnd(_PLACE, anchor)

    def create(self) -> None:
        try:
            connection = self._raw_connection()
            connection.execute("BEGIN")
            connection.execute(f"CREATE SCHEMA {SCHEMA}")
            _run_scripts(connection, 0, self._identity)
            connection.execute("COMMIT")
            connection.close()
        except psycopg.errors.DuplicateSchema:
            raise LedgerError(f"there is a ledger {_PLACE} already: it is never made anew over another") from None
        except psycopg.Error as error:
            raise LedgerError(f"the ledger {_PLACE} cannot be made: {error}") from error

    def connect(self) -> Connection:
        """Open and check the whole ledger: raises LedgerError when it is not what it should be."""
        try:
            connection = self._raw_connection()
        except psycopg.Error as error:
            raise LedgerError(f"the ledger's database is away: {error}") from error
        try:
            self._check(connection)
        except psycopg.errors.UndefinedTable:
            connection.close()
            hint = "A new one starts with nothing spent: only `noisegate ledger init` makes it."
            raise LedgerError(f"the ledger {_PLACE} is missing", hint=hint) from None
        except BaseException:
            connection.close()
            raise
        return connection

    def begin(self, *, durable: bool) -> tuple[str, ...]:
        wait = f"SET LOCAL synchronous_commit = {'on' if durable else 'off'}"
        return "BEGIN", wait, "LOCK TABLE entries IN EXCLUSIVE MODE"

    def check(self) -> None:
        """A connection that still works leads to the same database."""

    def _check(self, connection: Connection) -> None:
        for statement in self.begin(durable=True):
            connection.execute(statement)
        (text,) = connection.execute("SELECT value FROM meta WHERE name = 'version'").fetchone()
        if int(text) > VERSION:
            raise LedgerError(f"the ledger {_PLACE} is of version {text}, newer than this program's {VERSION}")
        if int(text) < VERSION:
            _run_scripts(connection, int(text), self._identity)
            adopt(connection, _PLACE, self._identity, self._anchor)
        check_identity(connection, _PLACE, self._identity)
        check_history(connection, _PLACE, self._identity, self._anchor)
        connection.execute("COMMIT")

    def _raw_connection(self) -> Connection:
        connection = psycopg.connect(self._dsn, autocommit=True, connect_timeout=10, application_name="noisegate")
        for name, value in (("search_path", SCHEMA), ("lock_timeout", "10s")):
            connection.execute("SELECT set_config(%s, %s, false)", (name, value))
        return _Connection(connection)


def _run_scripts(connection: Connection, version: int, identity: str) -> None:
    """Bring the tables to the newest version."""
    for statement in statements_from(version):
        connection.execute(statement)
    if version == 0:
        connection.execute("INSERT INTO meta VALUES ('identity', ?), ('version', '0')", (identity,))
    connection.execute("UPDATE meta SET value = ? WHERE name = 'version'", (str(VERSION),))
