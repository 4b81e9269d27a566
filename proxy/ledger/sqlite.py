"""The ledger in a SQLite file: durable, bound to one database, shared by the processes of one machine."""

import os
import sqlite3
import stat
import threading
from collections.abc import Callable, Hashable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import quote

from proxy.ledger.connection import NEWER, SEALED_VERSION, VERSION, Connection, statements_from
from proxy.ledger.history import adopt, check_history
from proxy.ledger.integrity import Anchor, ChainEnd, sync_folder
from rules.accounting.store import LedgerError

APPLICATION_ID = 0x4E474C44  # "NGLD": tells a ledger from any other SQLite file
_BUSY_SECONDS = 10.0
_SMALL_BYTES = 256 * 1024 * 1024  # whose pages an opening checks, within 1.1 s; `verify` checks those of all


class _Watcher:
    """A connection that writes nothing and sees whether anybody has written.

    The event loop asks it while the ledger's thread may close it, which SQLite does not survive without a lock.
    """

    def __init__(self, uri: str) -> None:
        self._connection = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=0, check_same_thread=False)
        self._lock = threading.Lock()

    def commits(self) -> int | None:
        """SQLite's own mark of others' commits; None while it is being closed, and ever after."""
        if not self._lock.acquire(blocking=False):
            return None
        try:
            ((commits,),) = self._connection.execute("PRAGMA data_version").fetchall()
            return int(commits)
        except sqlite3.Error:
            return None
        finally:
            self._lock.release()

    def close(self) -> None:
        with self._lock:
            self._connection.close()


class _Connection(sqlite3.Connection):
    """The ledger's, with its watcher."""

    watcher: _Watcher | None = None

    def close(self) -> None:
        if self.watcher is not None:
            self.watcher.close()
        super().close()


class LedgerFile:
    """The file itself: made with care, opened with suspicion."""

    errors: tuple[type[Exception], ...] = (sqlite3.Error,)

    def __init__(self, path: Path, identity: str, anchor: Anchor) -> None:
        self._path, self._identity, self._anchor = path, identity, anchor
        self.end = ChainEnd(str(path), identity, anchor)
        self._inode = 0
        self._watcher: _Watcher | None = None
        self._opened = 0  # times; each watcher counts commits anew

    def create(self, fill: Callable[[Connection], None] | None = None) -> None:
        """Make the file, readable by its owner alone, with an empty chain in it, or with what `fill` puts there."""
        number, _ = self._anchor.read()
        if number and fill is None:
            raise LedgerError(
                f"the anchor belongs to a ledger with {number} entries, which a new ledger would lose",
                reason="anchor_knows_another",
            )
        if (
            self._path.exists()
        ):  # which a proxy may be using, with a write-ahead log that nobody must take for a remnant
            raise LedgerError(f"{self._path} already exists", reason="exists")
        for companion in ("-wal", "-shm", "-journal"):
            if self._path.with_name(self._path.name + companion).exists():
                raise LedgerError(
                    f"{self._path}{companion} is left over from another ledger, which is missing",
                    hint="Stop the proxies that use it, and move that file away.",
                    reason="left_over",
                )
        try:
            os.close(os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        except FileExistsError:
            raise LedgerError(f"{self._path} already exists", reason="exists") from None
        except OSError as error:
            raise LedgerError(
                f"the ledger {self._path} cannot be created: {error.strerror}", reason="cannot_be_made"
            ) from error
        try:
            self._fill(fill)
        except BaseException:
            self._path.unlink()
            raise
        sync_folder(self._path.parent)

    def _fill(self, fill: Callable[[Connection], None] | None) -> None:
        connection = self._raw_connection()
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute("BEGIN IMMEDIATE")
            self._run_scripts(connection, 0)
            connection.execute("INSERT INTO meta VALUES ('identity', ?)", (self._identity,))
            if fill is not None:
                fill(connection)
            connection.execute("COMMIT")
        finally:
            connection.close()

    @contextmanager
    def snapshot(self) -> Iterator[Connection]:
        """The ledger as it is at one moment, for reading: nobody waits for it."""
        if not self._path.exists():
            raise LedgerError(f"the ledger {self._path} is missing", reason="missing")
        try:
            with closing(self._raw_connection()) as connection:
                self._check_kind(connection)
                self._upgrade(connection)
                connection.execute("BEGIN")
                yield connection
        except sqlite3.Error as error:
            raise LedgerError(f"the ledger {self._path} cannot be used: {error}", reason="cannot_be_used") from error

    def check_place(self) -> None:
        """Raise LedgerError where there is no file, or one that others can read."""
        if not self._path.exists():
            raise LedgerError(
                f"the ledger {self._path} is missing",
                hint="Only `noisegate ledger init` creates a new one, which starts with nothing spent.",
                reason="missing",
            )
        if not self._path.is_file():
            raise LedgerError(f"the ledger {self._path} is not a file", reason="no_file")
        if stat.S_IMODE(self._path.stat().st_mode) & 0o077:
            raise LedgerError(
                f"the ledger {self._path} is accessible to other users",
                hint=f"Run chmod 600 {self._path}.",
                reason="open_to_others",
            )

    def connect(self) -> Connection:
        """Open and check the whole file: raises LedgerError when it is not the ledger that it should be."""
        self.check_place()
        try:
            return self._checked_connection()
        except sqlite3.Error as error:
            raise LedgerError(f"the ledger {self._path} cannot be used: {error}", reason="cannot_be_used") from error

    def begin(self, *, durable: bool) -> tuple[str, ...]:
        """IMMEDIATE waits for other processes, and fails on a read-only file."""
        return f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}", "BEGIN IMMEDIATE"

    def check(self) -> None:
        """Check that the path still leads to the file that was opened: what is written to a deleted file is lost."""
        if self._path.stat().st_ino != self._inode:
            raise LedgerError(f"the ledger {self._path} was replaced while it was in use", reason="replaced")

    def version(self) -> Hashable | None:
        """By SQLite's own mark of other connections' commits, and by the file's, should it be changed past SQLite."""
        commits = None if self._watcher is None else self._watcher.commits()
        if commits is None:
            return None
        try:
            file = os.stat(self._path)  # noqa: PTH116 (asked for each answer that is served again)
        except OSError:  # away: the next transaction says why
            return None
        return self._opened, commits, file.st_ino, file.st_size, file.st_mtime_ns

    def break_off(self) -> None:
        """A disk that does not answer cannot be told to: SQLite's own waits are short."""

    def _checked_connection(self) -> Connection:
        self._inode = self._path.stat().st_ino
        connection = self._raw_connection()
        try:
            self._check_kind(connection)
            if self._path.stat().st_size <= _SMALL_BYTES:
                self.check_pages(connection)
            self._upgrade(connection)
            connection.execute("BEGIN")  # a snapshot: others go on charging
            check_history(connection, str(self._path), self._identity, self._anchor)
            connection.execute("COMMIT")
            self._opened += 1
            connection.watcher = self._watcher = _Watcher(f"file:{quote(str(self._path))}?mode=ro")
        except BaseException:
            connection.close()
            raise
        return connection

    def _raw_connection(self) -> _Connection:
        uri = f"file:{quote(str(self._path))}?mode=rw"
        connection = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=_BUSY_SECONDS, factory=_Connection)
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        return connection

    def _check_kind(self, connection: sqlite3.Connection) -> None:
        """It is a ledger, and of a version that we know."""
        (application_id,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if application_id != APPLICATION_ID:
            raise LedgerError(f"{self._path} is not a Noisegate ledger", reason="no_ledger")
        if version > VERSION:
            raise LedgerError(
                f"the ledger {self._path} has version {version}, newer than version {VERSION} of this program",
                hint=NEWER,
                reason="newer_version",
            )
        if connection.execute("SELECT name FROM sqlite_schema WHERE type IN ('trigger', 'view')").fetchone():
            raise LedgerError(
                f"the ledger {self._path} was changed: its schema matches no version", reason="schema_changed"
            )

    def check_pages(self, connection: Connection) -> None:
        """Check every page, and that indexes agree with their tables."""
        if connection.execute("PRAGMA integrity_check(1)").fetchone() != ("ok",):
            raise LedgerError(
                f"the ledger {self._path} is damaged",
                hint="If `noisegate ledger backup` can still copy it, only indexes are damaged: restore that copy. "
                "Otherwise restore the newest copy that you have.",
                reason="damaged",
            )

    def _upgrade(self, connection: sqlite3.Connection) -> None:
        """Bring an older ledger to this version, with nobody else in it: another process may do so meanwhile."""
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version == VERSION:
            return
        connection.execute("BEGIN IMMEDIATE")
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version < VERSION:
            self._run_scripts(connection, version)
        if version < SEALED_VERSION:
            (identity,) = connection.execute("SELECT value FROM meta WHERE name = 'identity'").fetchone()
            adopt(connection, str(self._path), identity, self._anchor)
        connection.execute("COMMIT")

    def _run_scripts(self, connection: sqlite3.Connection, version: int) -> None:
        """Bring the tables to the newest version."""
        for statement in statements_from(version):
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {VERSION}")
