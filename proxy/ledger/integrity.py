"""Whether a ledger is what it was: every seal, all that follows from entries, and an anchor kept elsewhere."""

import json
import os
from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from proxy.ledger import charges, stored_releases
from proxy.ledger.connection import Connection
from rules.accounting import chain
from rules.accounting.chain import Closed, Fields
from rules.accounting.store import LedgerError

Head = tuple[int, str]  # the last entry's number and seal
_PAGE: Final = "SELECT id, kind, time, analyst, entry, seal FROM entries WHERE id > ? ORDER BY id LIMIT 10000"
_RELEASES: Final = "WHERE r.id > ? ORDER BY r.id LIMIT 1000"


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
    """What this process, and the anchor, know of the chain's end: only what a power cut cannot take back.

    A commit that did not wait for the disk is in no note; what a durable one has written makes all before it durable.
    """

    def __init__(self, place: str, identity: str, anchor: Anchor) -> None:
        self._place, self._identity, self._anchor = place, identity, anchor
        self._known: Head | None = None
        self._moved: int | None = None  # the entry of the last move that was looked at

    def check(self, connection: Connection) -> Head:
        """The end as a transaction finds it; raises LedgerError unless the entry that was noted last is still there."""
        found = charges.head(connection)
        if found != self._known:
            self._check_binding(connection)
        if self._known is not None and found != self._known:
            number, seal = self._known
            if connection.execute("SELECT seal FROM entries WHERE id = ?", (number,)).fetchone() != (seal,):
                raise self._lost(connection, number)
        return found

    def _check_binding(self, connection: Connection) -> None:
        """Whether the ledger is still that of this database, where it may have been moved since this was asked."""
        (moved,) = connection.execute(
            "SELECT coalesce(max(id), 0) FROM entries WHERE analyst = ? AND kind = 'move'", (chain.NOBODY,)
        ).fetchone()
        if moved != self._moved and binding(connection) != self._identity:
            raise LedgerError(f"the ledger {self._place} was moved to another database", reason="moved")
        self._moved = moved

    def _lost(self, connection: Connection, number: int) -> LedgerError:
        """Why the entry that was noted last is not there. Whether what closed it was right, only an anchor can say."""
        if find_closed(connection).number >= number:
            return LedgerError(
                f"the ledger {self._place} was closed after the last entry that this proxy has read",
                hint="Restart the proxy.",
                reason="closed",
            )
        return LedgerError(f"the ledger {self._place} was truncated or replaced while in use", reason="cut")

    def note(self, end: Head) -> None:
        """Remember the end that was committed durably."""
        self._known = end
        self._anchor.note(*end)


def check_history(connection: Connection, place: str, identity: str, anchor: Anchor) -> None:
    """Raise LedgerError unless every seal holds, what the anchor knows is there, and all else follows from entries.

    The connection is in a snapshot, and nobody else waits for it.
    """
    closed = find_closed(connection)
    replayed = chain.replay(_anchored(connection, place, closed, anchor), closed)
    if replayed.identity != identity:
        raise LedgerError(
            f"the ledger {place} belongs to another database ({replayed.identity})",
            hint="If that database was upgraded, renamed, restored or failed over to this one, run: noisegate ledger "
            f"move RULES --from {replayed.identity}",
            reason="other_database",
        )
    accounts = replayed.accounts
    (rows,) = connection.execute("SELECT count(*) FROM totals").fetchone()
    if rows != len(accounts) or any(charges.read_totals(connection, each) != accounts[each] for each in accounts):
        raise LedgerError(f"the totals of the ledger {place} do not match its entries", reason="totals_changed")
    _check_sights(connection, place, dict(replayed.sights), closed.release)
    _check_releases(connection, place, dict(replayed.releases), closed.release)


def find_closed(connection: Connection) -> Closed:
    """The sum that the chain begins with; an empty one where nothing was closed."""
    found = connection.execute(
        "SELECT entry FROM entries WHERE analyst = ? AND kind = 'close' ORDER BY id DESC LIMIT 1", (chain.NOBODY,)
    ).fetchone()
    if found is not None:
        return chain.closed_by(json.loads(found[0]))
    (identity,) = connection.execute("SELECT value FROM meta WHERE name = 'identity'").fetchone()
    return Closed(seal=identity, identity=identity)


def binding(connection: Connection) -> str:
    """The identity of the database that the ledger belongs to, as its last move says."""
    found = connection.execute(
        "SELECT entry FROM entries WHERE analyst = ? AND kind = 'move' ORDER BY id DESC LIMIT 1", (chain.NOBODY,)
    ).fetchone()
    return find_closed(connection).identity if found is None else str(json.loads(found[0])["identity"])


def checked_entries(connection: Connection, place: str, closed: Closed) -> Iterator[tuple[int, str, Fields]]:
    """Number, seal and fields of each entry that is not closed; raises LedgerError where a seal does not hold."""
    number, seal = closed.number, closed.seal
    while page := list(connection.execute(_PAGE, (number,))):
        for identifier, *heading, entry, sealed in page:
            number, seal, fields = number + 1, chain.seal(seal, entry), json.loads(entry)
            if identifier != number or sealed != seal or tuple(heading) != chain.heading_of(fields):
                raise LedgerError(f"entry {number} of the ledger {place} was changed", reason="entry_changed")
            yield number, seal, fields


def _anchored(
    connection: Connection, place: str, closed: Closed, anchor: Anchor
) -> Iterator[tuple[int, Fields]]:  # fmt: skip
    """All entries, with what the anchor knows among them."""
    (anchored, known), last = anchor.read(), closed.number
    if 0 < anchored < closed.number or (anchored == closed.number and anchored and known != closed.seal):
        raise LedgerError(
            f"the ledger {place} was closed after the last entry of its anchor",
            hint="If you closed the ledger without this anchor, remove the anchor file.",
            reason="other_than_anchor",
        )
    for number, seal, fields in checked_entries(connection, place, closed):
        last = number
        if number == anchored and seal != known:
            raise LedgerError(f"the ledger {place} does not belong to its anchor", reason="other_than_anchor")
        yield number, fields
    if last < anchored:
        raise LedgerError(
            f"the ledger {place} is older than its anchor: at least {anchored - last} entries are missing",
            reason="older_than_anchor",
        )


def _check_sights(
    connection: Connection, place: str, expected: dict[tuple[str, str, int], int], closed: int
) -> None:  # fmt: skip
    rows = connection.execute("SELECT account, period, release, entry FROM seen WHERE release > ?", (closed,))
    if {(account, period, release): entry for account, period, release, entry in rows} != expected:
        raise LedgerError(
            f"the ledger {place} has a record of seen releases that does not match its entries", reason="sights_changed"
        )


def _check_releases(connection: Connection, place: str, expected: dict[int, tuple[int, str]], closed: int) -> None:
    last = closed
    while page := list(
        connection.execute(f"SELECT r.entry, {stored_releases.COLUMNS} FROM releases r {_RELEASES}", (last,))
    ):
        for entry, *row in page:
            last = row[0]
            if expected.pop(last, None) != (entry, stored_releases.seal_of(tuple(row))):
                raise LedgerError(f"release {last} in the ledger {place} was changed", reason="release_changed")
    if expected:
        raise LedgerError(f"release {min(expected)} in the ledger {place} is missing", reason="release_missing")


def adopt(connection: Connection, place: str, identity: str, anchor: Anchor) -> None:
    """Put what version 1 kept beside its chain under it; sums of entries are made anew from them."""
    unclosed = Closed(seal=identity, identity=identity)
    for _ in _anchored(connection, place, unclosed, anchor):
        """Every seal holds."""
    rows = connection.execute(f"SELECT {stored_releases.COLUMNS} FROM releases r ORDER BY r.charge, r.id")
    seals = [(row[1], row[0], stored_releases.seal_of(row)) for row in rows]
    for charge, releases in groupby(seals, key=itemgetter(0)):
        number = charges.vouch(connection, charge, [(release, seal) for _, release, seal in releases])
        connection.execute("UPDATE releases SET entry = ? WHERE charge = ?", (number, charge))
    replayed = chain.replay(_anchored(connection, place, unclosed, Anchor(None)), unclosed)
    for account, totals in replayed.accounts.items():
        charges.write_totals(connection, {account: totals})
    for (name, period, release), entry in replayed.sights.items():
        stored_releases.mark_paid(connection, (name, period), [release], entry)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)
