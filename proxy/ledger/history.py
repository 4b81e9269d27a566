"""Verify a ledger: every seal, and all that follows from entries, a part of the chain at a time.

An opening verifies from the newest checkpoint on, and the checkpoint's own words; the rest is verified by whoever
walks from the beginning: while the ledger serves (`checkpoints.py`), and for copies and `noisegate ledger verify`.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby, islice
from operator import itemgetter
from typing import Final

from proxy.ledger import charges, sights, stored_releases
from proxy.ledger.connection import Connection
from proxy.ledger.integrity import Anchor, check_anchor, find_closed, read_entry
from proxy.ledger.totals import read_totals, write_totals
from rules.accounting import chain
from rules.accounting.chain import Checkpoint, Closed, Fields
from rules.accounting.store import LedgerError

PART: Final = 20_000  # entries that are verified together, and that stand between two checkpoints
CHANGED: Final = frozenset(  # reasons: somebody has edited it, or the disk is broken
    {
        *("entry_changed", "sum_changed", "totals_changed"),
        *("sights_changed", "release_changed", "release_missing", "damaged"),
    }
)
_PAGE: Final = "SELECT id, kind, time, analyst, entry, seal FROM entries WHERE id > ? ORDER BY id LIMIT 10000"
_RELEASES: Final = "WHERE r.id > ? AND r.id <= ? ORDER BY r.id LIMIT 1000"
WORDS: Final = "kind NOT IN ('charge', 'settle', 'checkpoint')"  # as their index says it
_NO_END: Final = 2**31 - 1  # of the numbers of entries and releases

Entry = tuple[int, str, Fields, str]  # number, seal, fields, text


def check_history(connection: Connection, place: str, identity: str, anchor: Anchor, *, whole: bool = False) -> None:
    """Raise LedgerError unless seals hold, what the anchor knows is there, and all else follows from entries.

    From the newest checkpoint on, or the whole chain. The connection is in a snapshot, and nobody else waits for it.
    """
    closed = find_closed(connection)
    start = beginning(closed) if whole else newest_checkpoint(connection, closed)
    _check_words(connection, place, start)
    *_, end = walk(connection, place, start, closed)
    check_anchor(connection, place, closed, anchor.read())
    belongs_to, accounts = end.sum.identity, end.sum.accounts
    if belongs_to != identity:
        raise LedgerError(
            f"the ledger {place} belongs to another database ({belongs_to})",
            hint="If that database was upgraded, renamed, restored or failed over to this one, run: noisegate ledger "
            f"move RULES --from {belongs_to}",
            reason="other_database",
        )
    (rows,) = connection.execute("SELECT count(*) FROM totals").fetchone()
    if rows != len(accounts) or any(read_totals(connection, account) != accounts[account] for account in accounts):
        raise LedgerError(f"the totals of the ledger {place} do not match its entries", reason="totals_changed")


def beginning(closed: Closed) -> Checkpoint:
    """Return where a walk over the whole chain begins."""
    return Checkpoint(closed, closed.number)


def newest_checkpoint(connection: Connection, closed: Closed) -> Checkpoint:
    """The last one that was made since the ledger was closed, or where the chain begins.

    It is in the chain after what it sums up, so that whoever walks on from it verifies it too.
    """
    row = connection.execute(
        "SELECT id, entry FROM entries WHERE analyst = ? AND kind = ? ORDER BY id DESC LIMIT 1",
        (chain.NOBODY, chain.CHECKPOINT),
    ).fetchone()
    if row is None:
        return beginning(closed)
    made = read_entry(row[1], chain.checkpoint_by)
    return made if made.base == closed.number and made.sum.number < row[0] else beginning(closed)


def walk(connection: Connection, place: str, start: Checkpoint, closed: Closed) -> Iterator[Checkpoint]:
    """Verify what follows on a checkpoint, a part at a time; what everything comes to at the end of each part.

    The checkpoints on the way have to say what is found.
    """
    cursor = connection.execute(
        "SELECT entry FROM entries WHERE analyst = ? AND kind = ?", (chain.NOBODY, chain.CHECKPOINT)
    )
    made = [read_entry(entry, chain.checkpoint_by) for (entry,) in cursor]
    claims = [checkpoint for checkpoint in made if checkpoint.base == start.base]
    while True:
        ahead = min(
            (claim.sum.number - start.sum.number for claim in claims if claim.sum.number > start.sum.number),
            default=PART,
        )
        most = min(PART, ahead)
        end = check_part(connection, place, start, closed, most)
        if any(claim.sum.number == end.sum.number and claim != end for claim in claims):
            raise LedgerError(f"a checkpoint of the ledger {place} does not match its entries", reason="sum_changed")
        yield end
        if end.sum.number < start.sum.number + most:
            return
        start = end


def check_part(connection: Connection, place: str, start: Checkpoint, closed: Closed, most: int) -> Checkpoint:
    """Verify the next entries, so many at most, and what they vouch for; what everything comes to then."""
    read = list(islice(checked_entries(connection, place, start.sum), most))
    replayed = chain.replay(((number, fields) for number, _, fields, _ in read), start.sum, closed.release)
    number, seal = (read[-1][0], read[-1][1]) if read else (start.sum.number, start.sum.seal)
    end = Closed(number, seal, replayed.identity, replayed.charges, replayed.last_release, replayed.accounts)
    is_last = len(read) < most
    begin = -1 if start.sum.number == closed.number else start.sum.number
    _check_sights(connection, place, replayed.sights, (begin, _NO_END if is_last else number, closed.release))
    _check_releases(connection, place, replayed.releases, start.sum.release, _NO_END if is_last else end.release)
    words = start.words
    for identifier, _, fields, entry in read:
        if fields["kind"] not in chain.SUMMED:
            words = chain.word_seal(words, identifier, chain.heading_of(fields), entry)
    return replace(start, sum=end, words=words)


def checked_entries(connection: Connection, place: str, start: Closed) -> Iterator[Entry]:
    """Each entry after a sum; raises LedgerError where a seal does not hold."""
    number, seal = start.number, start.seal
    while page := list(connection.execute(_PAGE, (number,))):
        for identifier, *heading, entry, sealed in page:
            number, seal = number + 1, chain.seal(seal, entry)
            fields = json.loads(entry) if sealed == seal else None
            if identifier != number or fields is None or tuple(heading) != chain.heading_of(fields):
                raise LedgerError(f"entry {number} of the ledger {place} was changed", reason="entry_changed")
            yield number, seal, fields, entry


def _check_words(connection: Connection, place: str, made: Checkpoint) -> None:
    """Check that the words before a checkpoint are those that it was made of, none more and none less.

    Of what is closed there are none: whoever looks for a grant would find one that no entry of the chain vouches for.
    """
    rows = connection.execute(
        f"SELECT id, kind, time, analyst, entry FROM entries WHERE {WORDS} AND id <= ? ORDER BY id", (made.sum.number,)
    )
    words_found = ""
    for number, *heading, entry in rows:
        words_found = chain.word_seal(words_found, number, heading, entry)
    if words_found != made.words:
        raise LedgerError(f"a grant, stop, request or move in the ledger {place} was changed", reason="entry_changed")


def _check_sights(
    connection: Connection, place: str, expected: dict[tuple[str, str, int], int], span: tuple[int, int, int]
) -> None:
    """Entries of a part, and no others, vouch for these sights of releases that are kept."""
    rows = connection.execute(
        "SELECT account, period, release, entry FROM seen WHERE entry > ? AND entry <= ? AND release > ?", span
    )
    if {(account, period, release): entry for account, period, release, entry in rows} != expected:
        raise LedgerError(
            f"the ledger {place} has a record of seen releases that does not match its entries", reason="sights_changed"
        )


def _check_releases(
    connection: Connection, place: str, expected: dict[int, tuple[int, str]], after: int, until: int
) -> None:
    last = after
    query = f"SELECT r.entry, {stored_releases.COLUMNS} FROM releases r {_RELEASES}"
    while page := list(connection.execute(query, (last, until))):
        for entry, *row in page:
            last = row[0]
            if expected.pop(last, None) != (entry, stored_releases.seal_of(tuple(row))):
                raise LedgerError(f"release {last} in the ledger {place} was changed", reason="release_changed")
    if expected:
        raise LedgerError(f"release {min(expected)} in the ledger {place} is missing", reason="release_missing")


def adopt(connection: Connection, place: str, identity: str, anchor: Anchor) -> None:
    """Put what version 1 kept beside its chain under it; sums of entries are made anew from them."""
    unclosed = Closed(seal=identity, identity=identity)
    for _ in checked_entries(connection, place, unclosed):
        """Every seal holds."""
    check_anchor(connection, place, unclosed, anchor.read())
    rows = connection.execute(f"SELECT {stored_releases.COLUMNS} FROM releases r ORDER BY r.charge, r.id")
    seals = [(row[1], row[0], stored_releases.seal_of(row)) for row in rows]
    for charge, releases in groupby(seals, key=itemgetter(0)):
        number = charges.vouch(connection, charge, [(release, seal) for _, release, seal in releases])
        connection.execute("UPDATE releases SET entry = ? WHERE charge = ?", (number, charge))
    entries = ((number, fields) for number, _, fields, _ in checked_entries(connection, place, unclosed))
    replayed = chain.replay(entries, unclosed)
    for account, totals in replayed.accounts.items():
        write_totals(connection, {account: totals})
    for (name, period, release), entry in replayed.sights.items():
        sights.mark_paid(connection, (name, period), [release], entry)
