"""The ledger in a SQLite file: durable, sealed entry by entry, bound to one database, shared by processes."""

import os
import sqlite3
import stat
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from urllib.parse import quote

from proxy.stores import entries
from proxy.stores.batches import Batches
from proxy.stores.schema import APPLICATION_ID, SCRIPTS, VERSION
from rules.ledger import chain
from rules.ledger.book import Budgets
from rules.ledger.store import Balance, Charge, KeptRelease, LedgerError, Receipt, Release, Wanted

_BUSY_SECONDS = 10.0


class SqliteLedger:
    """A LedgerStore in one file. Use `create` once, `open` ever after."""

    def __init__(self, file: "LedgerFile") -> None:
        self._batches = Batches(file)

    @classmethod
    def create(cls, path: Path, identity: str, *, anchor: Path | None = None) -> None:
        """Make an empty ledger for the database of this identity. Never over a file that is there."""
        LedgerFile(path, identity, anchor).create()

    @classmethod
    async def open(cls, path: Path, identity: str, *, anchor: Path | None = None) -> "SqliteLedger":
        """Open a ledger that exists, checked from its first entry to its last; raises LedgerError."""
        ledger = cls(LedgerFile(path, identity, anchor))
        try:
            await ledger._batches.run(lambda connection: None)
        except LedgerError as refusal:
            await ledger.close()
            raise refusal.__cause__ or refusal from None
        return ledger

    async def charge(self, charge: Charge, budgets: Budgets) -> Receipt:
        return await self._batches.run(lambda connection: entries.charge(connection, charge, budgets))

    async def settle(self, charge: int, releases: Sequence[Release]) -> None:
        await self._batches.run(lambda connection: entries.settle(connection, charge, releases))

    async def fault(self, charge: int, time: datetime) -> None:
        await self._batches.run(lambda connection: entries.fault(connection, charge, time))

    async def are_faults_used_up(self, analyst: str, since: datetime, allowed: int) -> bool:
        return await self._batches.run(lambda connection: entries.count_faults(connection, analyst, since) >= allowed)

    async def find_releases(
        self, wanted: Sequence[Wanted], *, analyst: str, budgets: Budgets, now: datetime, since: datetime
    ) -> Sequence[KeptRelease | None]:
        def find(connection: sqlite3.Connection) -> Sequence[KeptRelease | None]:
            period = entries.running_period(connection, now, budgets)
            return [entries.find_release(connection, each, analyst, period, since) for each in wanted]

        return await self._batches.run(find)

    async def balances(self, analyst: str, budgets: Budgets, now: datetime) -> tuple[Balance, Balance]:
        def read(connection: sqlite3.Connection) -> tuple[Balance, Balance]:
            return entries.balances(connection, analyst, budgets, entries.running_period(connection, now, budgets))

        return await self._batches.run(read)

    async def close(self) -> None:
        await self._batches.close()


class LedgerFile:
    """The file itself: made with care, opened with suspicion."""

    def __init__(self, path: Path, identity: str, anchor: Path | None = None) -> None:
        self._path, self._identity, self._anchor = path, identity, anchor
        self._inode = 0

    def create(self) -> None:
        """Make the file, readable by its owner alone, with an empty chain in it."""
        try:
            os.close(os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        except FileExistsError:
            raise LedgerError(f"{self._path} exists already: a ledger is never made anew over another") from None
        except OSError as error:
            raise LedgerError(f"the ledger {self._path} cannot be made: {error.strerror}") from error
        connection = self._raw_connection()
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        _upgrade(connection, 0, self._identity)
        connection.close()
        _sync_folder(self._path.parent)

    def connect(self) -> sqlite3.Connection:
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

    def check(self, connection: sqlite3.Connection) -> None:
        """Whether the path still leads to the file that was opened: what is written to a deleted file is lost."""
        if self._path.stat().st_ino != self._inode:
            raise LedgerError(f"the ledger {self._path} was replaced while it was in use")

    def committed(self, connection: sqlite3.Connection) -> None:
        """Note the chain's end in the anchor, so that an older copy put in the ledger's place is seen."""
        if self._anchor is not None:
            number, seal = entries.head(connection)
            _write_safely(self._anchor, f"{number} {seal}\n")

    def _checked_connection(self) -> sqlite3.Connection:
        self._inode = self._path.stat().st_ino
        connection = self._raw_connection()
        try:
            self._check_kind(connection)
            connection.execute("BEGIN IMMEDIATE")  # fails on a read-only file, and waits for other processes
            self._check_chain(connection)
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
        connection.create_function("at_least", 2, entries.at_least, deterministic=True)
        return connection

    def _check_kind(self, connection: sqlite3.Connection) -> None:
        """It is a ledger, whole, of a version that we know, of our database."""
        (application_id,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if application_id != APPLICATION_ID:
            raise LedgerError(f"{self._path} is no ledger of Noisegate")
        if version > VERSION:
            raise LedgerError(f"the ledger {self._path} is of version {version}, newer than this program's {VERSION}")
        damage = connection.execute("PRAGMA quick_check(1)").fetchone()
        if damage != ("ok",):
            raise LedgerError(f"the ledger {self._path} is damaged", hint="Restore it from a copy of today.")
        if version < VERSION:
            _upgrade(connection, version, self._identity)
        (identity,) = connection.execute("SELECT value FROM meta WHERE name = 'identity'").fetchone()
        if identity != self._identity:
            raise LedgerError(f"the ledger {self._path} belongs to another database ({identity})")

    def _check_chain(self, connection: sqlite3.Connection) -> None:
        """Every seal holds, the totals are the sums of the entries, and nothing is missing that the anchor knows."""
        seal, anchored = self._identity, self._read_anchor()
        texts = []
        for number, (identifier, entry, sealed) in enumerate(
            connection.execute("SELECT id, entry, seal FROM entries ORDER BY id"), start=1
        ):
            seal = chain.seal(seal, entry)
            if identifier != number or sealed != seal:
                raise LedgerError(f"entry {number} of the ledger {self._path} was changed")
            if anchored and number == anchored[0] and seal != anchored[1]:
                raise LedgerError(f"the ledger {self._path} is not the one that its anchor {self._anchor} knows")
            texts.append(entry)
        if anchored and len(texts) < anchored[0]:
            raise LedgerError(f"the ledger {self._path} is older than its anchor {self._anchor}: entries are missing")
        replayed = chain.replay(texts)
        if any(entries.read_totals(connection, account) != totals for account, totals in replayed.items()):
            raise LedgerError(f"the totals of the ledger {self._path} are not the sums of its entries")

    def _read_anchor(self) -> tuple[int, str] | None:
        if self._anchor is None or not self._anchor.exists():
            return None
        number, _, seal = self._anchor.read_text().strip().partition(" ")
        return int(number), seal


def _upgrade(connection: sqlite3.Connection, version: int, identity: str) -> None:
    """Run the scripts that are missing, all or none."""
    connection.execute("BEGIN IMMEDIATE")
    for script in SCRIPTS[version:]:
        for statement in script.split(";"):
            connection.execute(statement)
    if version == 0:
        connection.execute("INSERT INTO meta VALUES ('identity', ?)", (identity,))
    connection.execute(f"PRAGMA user_version = {VERSION}")
    connection.execute("COMMIT")


def _write_safely(path: Path, text: str) -> None:
    """Replace a small file as a whole, on disk before this returns."""
    scratch = path.with_name(f"{path.name}.{os.getpid()}")
    with scratch.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    scratch.replace(path)
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)
