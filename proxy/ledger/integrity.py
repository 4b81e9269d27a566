"""The ends of a ledger's chain: what it begins with and belongs to, its end as a process and an anchor know it."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

from proxy.ledger.connection import Connection
from rules.accounting import chain
from rules.accounting.chain import Closed, Fields
from rules.accounting.store import LedgerError

Result = TypeVar("Result")
Head = tuple[int, str]  # the last entry's number and seal


class Anchor:
    """The chain's end, in a file elsewhere, so that an older copy in the ledger's place is seen."""

    def __init__(self, path: Path | None) -> None:
        self._path = path

    def read(self) -> tuple[int, str]:
        """The number and seal of the last entry that was noted; 0 without any."""
        if self._path is None or not self._path.exists():
            return 0, ""
        number, _, seal = self._path.read_text().strip().partition(" ")
        if not number.isdecimal() or not seal:
            raise LedgerError(f"the ledger's anchor {self._path} is damaged", reason="anchor_damaged")
        return int(number), seal

    def note(self, number: int, seal: str) -> None:
        """Replace the note as a whole; it is on disk before this returns. Another process may know more already."""
        if self._path is not None and self.read()[0] < number:
            self.replace(number, seal)

    def replace(self, number: int, seal: str) -> None:
        """Note another end, whatever was noted."""
        if self._path is None:
            return
        with TemporaryDirectory(dir=self._path.parent, prefix=f"{self._path.name}.") as folder:
            scratch = Path(folder) / "note"
            with scratch.open("w") as file:
                file.write(f"{number} {seal}\n")
                file.flush()
                os.fsync(file.fileno())
            scratch.replace(self._path)
        sync_folder(self._path.parent)


class ChainEnd:
    """The chain's end as this process, and the anchor, know it: only what a power cut cannot take back.

    A commit that did not wait for the disk is in no note; what a durable one has written makes all before it durable.
    """

    def __init__(self, place: str, identity: str, anchor: Anchor) -> None:
        self.place, self._identity, self._anchor = place, identity, anchor
        self._known: Head | None = None
        self._moved: int | None = None  # the entry of the last move that was looked at

    def check(self, connection: Connection, *, durable: bool) -> Head:
        """The end as a transaction finds it; raises LedgerError unless the entry that was noted last is still there.

        Before a charge the anchor's is looked for too: another copy of the ledger may have gone on with that anchor.
        """
        end = head(connection)
        if end != self._known:
            self._check_binding(connection)
        if self._known is not None and end != self._known:
            number, seal = self._known
            if connection.execute("SELECT seal FROM entries WHERE id = ?", (number,)).fetchone() != (seal,):
                raise self._lost(connection, number)
        anchored = self._anchor.read() if durable else (0, "")
        if anchored[0] and anchored not in (self._known, end):
            check_anchor(connection, self.place, find_closed(connection), anchored)
        return end

    def _check_binding(self, connection: Connection) -> None:
        """Check that the ledger is still that of this database: it may have been moved since this was asked."""
        (moved,) = connection.execute(
            "SELECT coalesce(max(id), 0) FROM entries WHERE analyst = ? AND kind = 'move'", (chain.NOBODY,)
        ).fetchone()
        if moved != self._moved and binding(connection) != self._identity:
            raise LedgerError(f"the ledger {self.place} was moved to another database", reason="moved")
        self._moved = moved

    def _lost(self, connection: Connection, number: int) -> LedgerError:
        """Explain why the entry that was noted last is not there; only an anchor can say if it was closed rightly."""
        if find_closed(connection).number >= number:
            return LedgerError(
                f"the ledger {self.place} was closed after the last entry that this proxy has read",
                hint="Restart the proxy.",
                reason="closed",
            )
        return LedgerError(f"the ledger {self.place} was truncated or replaced while in use", reason="cut")

    def note(self, end: Head) -> None:
        """Remember the end that was committed durably."""
        self._known = end
        self._anchor.note(*end)


def check_anchor(connection: Connection, place: str, closed: Closed, anchored: Head) -> None:
    """Check that the entry that the anchor knows is still there; all entries that are not closed were verified."""
    number, known = anchored
    if 0 < number < closed.number or (number == closed.number and number and known != closed.seal):
        raise LedgerError(
            f"the ledger {place} was closed after the last entry of its anchor",
            hint="If you closed the ledger without this anchor, remove the anchor file.",
            reason="other_than_anchor",
        )
    last, _ = head(connection)
    if last < number:
        raise LedgerError(
            f"the ledger {place} is older than its anchor: at least {number - last} entries are missing",
            hint="If a copy of this ledger has gone on elsewhere with the same anchor, go on with that copy alone.",
            reason="older_than_anchor",
        )
    if number > closed.number:
        row = connection.execute("SELECT seal FROM entries WHERE id = ?", (number,)).fetchone()
        if row != (known,):
            raise LedgerError(
                f"the ledger {place} does not belong to its anchor",
                hint="If a copy of this ledger has gone on elsewhere with the same anchor, go on with that copy alone.",
                reason="other_than_anchor",
            )


def append(connection: Connection, entry: str) -> int:
    """Add an entry at the end of the chain."""
    number, seal = head(connection)
    kind, time, analyst = chain.heading(entry)
    connection.execute(
        "INSERT INTO entries (id, kind, time, analyst, entry, seal) VALUES (?, ?, ?, ?, ?, ?)",
        (number + 1, kind, time, analyst, entry, chain.seal(seal, entry)),
    )
    return number + 1


def head(connection: Connection) -> tuple[int, str]:
    """The last entry's number and seal. Before the first one the seal is the database's identity."""
    row = connection.execute("SELECT id, seal FROM entries ORDER BY id DESC LIMIT 1").fetchone()
    if row is None:
        row = connection.execute("SELECT 0, value FROM meta WHERE name = 'identity'").fetchone()
    return int(row[0]), str(row[1])


def read_entry(entry: str, read: Callable[[Fields], Result]) -> Result:
    """An entry as it says, before anybody has verified it: whoever edited it may have left no entry at all."""
    try:
        return read(json.loads(entry))
    except (ValueError, LookupError, TypeError, ArithmeticError) as error:
        raise LedgerError("an entry of the ledger was changed", reason="entry_changed") from error


def find_closed(connection: Connection) -> Closed:
    """The sum that the chain begins with; an empty one where nothing was closed.

    It is in the chain after what it sums up: another one would say what nobody verifies.
    """
    row = connection.execute(
        "SELECT id, entry FROM entries WHERE analyst = ? AND kind = 'close' ORDER BY id DESC LIMIT 1", (chain.NOBODY,)
    ).fetchone()
    if row is not None:
        closed = read_entry(row[1], chain.closed_by)
        if closed.number >= row[0]:
            raise LedgerError("an entry of the ledger was changed", reason="entry_changed")
        return closed
    (identity,) = connection.execute("SELECT value FROM meta WHERE name = 'identity'").fetchone()
    return Closed(seal=identity, identity=identity)


def binding(connection: Connection) -> str:
    """The identity of the database that the ledger belongs to, as its last move says."""
    row = connection.execute(
        "SELECT entry FROM entries WHERE analyst = ? AND kind = 'move' ORDER BY id DESC LIMIT 1", (chain.NOBODY,)
    ).fetchone()
    if row is None:
        return find_closed(connection).identity
    return read_entry(row[0], lambda fields: str(fields["identity"]))


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)
