"""Whether a ledger is what it was: every seal, all that follows from entries, and an anchor kept elsewhere."""

import os
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from tempfile import TemporaryDirectory

from proxy.stores import entries, kept
from proxy.stores.connection import Connection
from rules.ledger import chain
from rules.ledger.store import LedgerError

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


class ChainEnd:
    """What this process, and the anchor, know of the chain's end: only what a power cut cannot take back.

    A commit that did not wait for the disk is in no note; what a durable one has written makes all before it durable.
    """

    def __init__(self, place: str, anchor: Anchor) -> None:
        self._place, self._anchor = place, anchor
        self._known: Head | None = None

    def check(self, connection: Connection) -> Head:
        """The end as a transaction finds it; raises LedgerError unless the entry that was noted last is still there."""
        found = entries.head(connection)
        if self._known is not None and found != self._known:
            number, seal = self._known
            if connection.execute("SELECT seal FROM entries WHERE id = ?", (number,)).fetchone() != (seal,):
                raise LedgerError(f"the ledger {self._place} was cut or replaced while it was in use")
        return found

    def note(self, end: Head) -> None:
        """Remember the end that was committed durably."""
        self._known = end
        self._anchor.note(*end)


def check_history(connection: Connection, place: str, identity: str, anchor: Anchor) -> None:
    """Raise LedgerError unless every seal holds, what the anchor knows is there, and all else follows from entries."""
    replayed = chain.replay(check_chain(connection, place, identity, anchor))
    accounts = replayed.accounts
    (rows,) = connection.execute("SELECT count(*) FROM totals").fetchone()
    if rows != len(accounts) or any(entries.read_totals(connection, each) != accounts[each] for each in accounts):
        raise LedgerError(f"the totals of the ledger {place} are not the sums of its entries")
    sights = connection.execute("SELECT account, period, release, entry FROM seen")
    if {(account, period, release): entry for account, period, release, entry in sights} != replayed.sights:
        raise LedgerError(f"who has seen what, in the ledger {place}, is not what its entries say")
    _check_releases(connection, place, dict(replayed.releases))


def check_chain(connection: Connection, place: str, identity: str, anchor: Anchor) -> list[str]:
    """The texts of all entries; raises LedgerError unless every seal holds and what the anchor knows is there."""
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
    return texts


def _check_releases(connection: Connection, place: str, expected: dict[int, tuple[int, str]]) -> None:
    for entry, *row in connection.execute(f"SELECT r.entry, {kept.COLUMNS} FROM releases r"):
        if expected.pop(row[0], None) != (entry, kept.seal_of(tuple(row))):
            raise LedgerError(f"release {row[0]} in the ledger {place} was changed")
    if expected:
        raise LedgerError(f"release {min(expected)} in the ledger {place} is missing")


def adopt(connection: Connection, place: str, identity: str, anchor: Anchor) -> None:
    """Put what version 1 kept beside its chain under it; sums of entries are made anew from them."""
    check_chain(connection, place, identity, anchor)
    rows = connection.execute(f"SELECT {kept.COLUMNS} FROM releases r ORDER BY r.charge, r.id")
    seals = [(row[1], row[0], kept.seal_of(row)) for row in rows]
    for charge, releases in groupby(seals, key=itemgetter(0)):
        number = entries.vouch(connection, charge, [(release, seal) for _, release, seal in releases])
        connection.execute("UPDATE releases SET entry = ? WHERE charge = ?", (number, charge))
    texts = connection.execute("SELECT entry FROM entries ORDER BY id")
    replayed = chain.replay(entry for (entry,) in texts)
    for account, totals in replayed.accounts.items():
        entries.write_totals(connection, {account: totals})
    for (name, period, release), entry in replayed.sights.items():
        kept.mark_paid(connection, (name, period), [release], entry)


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
