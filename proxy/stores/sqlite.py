"""The ledger in a SQLite file: durable, bound to one database, shared by the processes of one machine."""

import os
import sqlite3
import stat
from pathlib import Path
from urllib.parse import quote

from proxy.stores.connection import Connection
from proxy.stores.history import Anchor, ChainEnd, adopt, check_history, check_identity, sync_folder
from proxy.stores.ledger import Ledger
from proxy.stores.schema import VERSION, statements_from
from rules.ledger.store import LedgerError

APPLICATION_ID = 0x4E474C44  # "NGLD": tells a ledger from any other SQLite file
_BUSY_SECONDS = 10.0


class SqliteLedger(Ledger):
    """Use `create` once, `open` ever after."""

    @classmethod
    def create(cls, path: Path, identity: str, *, anchor: Path | None = None) -> None:
        """Make an empty ledger for the database of this identity. Never over a file that is there."""
        LedgerFile(path, identity, Anchor(anchor)).create()

    @classmethod
    async def open(cls, path: Path, identity: str, *, anchor: Path | None = None) -> "SqliteLedger":
        """Open a ledger that exists; raises LedgerError with the reason why it cannot be used."""
        return await cls.at(LedgerFile(path, identity, Anchor(anchor)))


class LedgerFile:
    """The file itself: made with care, opened with suspicion."""

    errors: tuple[type[Exception], ...] = (sqlite3.Error,)

    def __init__(self, path: Path, identity: str, anchor: Anchor) -> None:
        self._path, self._identity, self._anchor = path, identity, anchor
        self.end = ChainEnd(str(path), anchor)
        self._inode = 0

    def create(self) -> None:
        """Make the file, readable by its owner alone, with an empty chain in it."""
        number, _ = self._anchor.read()
        if number:
            raise LedgerError(f"the anchor knows of a ledger with {number} entries: a new one would forget them")
        for companion in ("-wal", "-shm", "-journal"):
            if self._path.with_name(self._path.name + companion).exists():
                raise LedgerError(f"{self._path}{companion} is left of another ledger, which is missing")
        try:
            os.close(os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        except FileExistsError:
            raise LedgerError(f"{self._path} exists already: a ledger is never made anew over another") from None
        except OSError as error:
            raise LedgerError(f"the ledger {self._path} cannot be made: {error.strerror}") from error
        connection = self._raw_connection()
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute("BEGIN IMMEDIATE")
        self._run_scripts(connection, 0)
        connection.execute("INSERT INTO meta VALUES ('identity', ?)", (self._identity,))
        connection.execute("COMMIT")
        connection.close()
        sync_folder(self._path.parent)

    def connect(self) -> Connection:
        """Open and check the whole file: raises LedgerError when it is not the ledger that it should be."""
        if not self._path.exists():
            raise LedgerError(
                f"the ledger {self._path} is missing",
                hint="A new one starts with nothing spent: only `noisegate ledger init` makes it.",
            )
        if stat.S_IMODE(self._path.stat().st_mode) & 0o077:
            raise LedgerError(f"the ledger {self._path} is open to others", hint=f"chmod 600 {self._path}")
        try:
            return self._checked_connection()
        except sqlite3.Error as error:
            raise LedgerError(f"the ledger {self._path} cannot be used: {error}") from error

    def begin(self, *, durable: bool) -> tuple[str, ...]:
        """IMMEDIATE waits for other processes, and fails on a read-only file."""
        return f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}", "BEGIN IMMEDIATE"

    def check(self) -> None:
        """Whether the path still leads to the file that was opened: what is written to a deleted file is lost."""
        if self._path.stat().st_ino != self._inode:
            raise LedgerError(f"the ledger {self._path} was replaced while it was in use")

    def _checked_connection(self) -> Connection:
        self._inode = self._path.stat().st_ino
        connection = self._raw_connection()
        try:
            self._check_kind(connection)
            connection.execute("BEGIN IMMEDIATE")
            check_identity(connection, str(self._path), self._identity)
            self._upgrade(connection)
            check_history(connection, str(self._path), self._identity, self._anchor)
            connection.execute("COMMIT")
        except BaseException:
            connection.close()
            raise
        return connection

    def _raw_connection(self) -> sqlite3.Connection:
        uri = f"file:{quote(str(self._path))}?mode=rw"
        connection = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=_BUSY_SECONDS)
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        return connection

    def _check_kind(self, connection: sqlite3.Connection) -> None:
        """It is a ledger, whole, and of a version that we know."""
        (application_id,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if application_id != APPLICATION_ID:
            raise LedgerError(f"{self._path} is no ledger of Noisegate")
        if version > VERSION:
            raise LedgerError(f"the ledger {self._path} is of version {version}, newer than this program's {VERSION}")
        if connection.execute("SELECT name FROM sqlite_schema WHERE type IN ('trigger', 'view')").fetchone():
            raise LedgerError(f"the ledger {self._path} was changed: it has parts that no version of it has")
        if connection.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
            raise LedgerError(f"the ledger {self._path} is damaged", hint="Restore it from its newest copy.")

    def _upgrade(self, connection: sqlite3.Connection) -> None:
        """Another process may have done it since the kind was checked."""
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version < VERSION:
            self._run_scripts(connection, version)
            adopt(connection, str(self._path), self._identity, self._anchor)

    def _run_scripts(self, connection: sqlite3.Connection, version: int) -> None:
        """Bring the tables to the newest version."""
        for statement in statements_from(version):
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {VERSION}")
