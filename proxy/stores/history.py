"""Whether a ledger's entries are what they were: every seal, the totals, and an anchor kept elsewhere."""

import os
from pathlib import Path
from tempfile import TemporaryDirectory

from proxy.stores import entries
from proxy.stores.connection import Connection
from rules.ledger import chain
from rules.ledger.store import LedgerError


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
            raise LedgerError(f"the ledger's anchor {self._path} is damaged")
        return int(number), seal

    def note(self, number: int, seal: str) -> None:
        """Replace the note as a whole; it is on disk before this returns. Another process may know more already."""
        if self._path is None or self.read()[0] >= number:
            return
        with TemporaryDirectory(dir=self._path.parent, prefix=f"{self._path.name}.") as folder:
            scratch = Path(folder) / "note"
            with scratch.open("w") as file:
                file.write(f"{number} {seal}\n")
                file.flush()
                os.fsync(file.fileno())
            scratch.replace(self._path)
        sync_folder(self._path.parent)


def check_history(connection: Connection, place: str, identity: str, anchor: Anchor) -> None:
    """Raise LedgerError unless every seal holds, totals are the sums of entries, and what the anchor knows is there."""
    seal, anchored, texts = identity, anchor.read(), []
    rows = connection.execute("SELECT id, kind, time, analyst, entry, seal FROM entries ORDER BY id")
    for number, (identifier, *heading, entry, sealed) in enumerate(rows, start=1):
        seal = chain.seal(seal, entry)
        if identifier != number or sealed != seal or tuple(heading) != chain.heading(entry):
            raise LedgerError(f"entry {number} of the ledger {place} was changed")
        if number == anchored[0] and seal != anchored[1]:
            raise LedgerError(f"the ledger {place} is not the one that its anchor knows")
        texts.append(entry)
    if len(texts) < anchored[0]:
        raise LedgerError(f"the ledger {place} is older than its anchor: entries are missing")
    accounts = chain.replay(texts)
    (kept,) = connection.execute("SELECT count(*) FROM accounts").fetchone()
    if kept != len(accounts) or any(entries.read_totals(connection, each) != accounts[each] for each in accounts):
        raise LedgerError(f"the totals of the ledger {place} are not the sums of its entries")


def check_identity(connection: Connection, place: str, identity: str) -> None:
    """Raise LedgerError unless the ledger is bound to this database."""
    (found,) = connection.execute("SELECT value FROM meta WHERE name = 'identity'").fetchone()
    if found != identity:
        raise LedgerError(f"the ledger {place} belongs to another database ({found})")


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)
