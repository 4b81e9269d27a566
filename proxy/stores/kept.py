"""The releases that a ledger keeps: who has paid for which, and which of them may be shown again.

Each release, and each sight of one, names the entry of the chain that vouches for it; what is read is held against it.
"""

import hashlib
import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from proxy.stores.connection import Connection
from rules.ledger import chain
from rules.ledger.chain import Account, Sight
from rules.ledger.store import Found, KeptRelease, LedgerError, Release, Wanted

_CLOSE = 1 - 1e-9  # a float may be a little below the decimal that it stands for
_MOST = 100  # releases of one measure: what more there are is less precise than all of these
COLUMNS = "r.id, r.charge, r.time, r.block, r.measure, r.cost, r.epsilon, r.groups, r.list, r.numbers"
_ALIKE = "r.block = ? AND r.measure = ? AND r.time >= ? AND r.list = coalesce(?, r.list)"

Row = tuple[Any, ...]  # as COLUMNS has them


def new_rows(connection: Connection, charge: int, time: str, releases: Sequence[Release]) -> list[Row]:
    """The noised measures of a charge as they are to be kept."""
    (last,) = connection.execute("SELECT coalesce(max(id), 0) FROM releases").fetchone()
    return [_row(number, charge, time, release) for number, release in enumerate(releases, start=last + 1)]


def _row(number: int, charge: int, time: str, release: Release) -> Row:
    groups, mechanism = _text(release.groups), release.mechanism
    cost, strength = _text(chain.cost(mechanism)), float(mechanism.strength)
    names = (release.block, release.measure, cost, strength)
    return number, charge, time, *names, groups, _digest(groups), _text(release.values)


def seal_of(row: Row) -> str:
    """A seal over all that is kept of a release."""
    *head, groups, listed, numbers = row
    return _digest("\n".join((_text([*head, listed]), groups, numbers)))


def keep(connection: Connection, rows: Iterable[Row], entry: int) -> None:
    """Keep releases for which an entry vouches."""
    for row in rows:
        connection.execute(
            "INSERT INTO releases (id, charge, time, block, measure, cost, epsilon, groups, list, numbers, entry)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (*row, entry),
        )


def mark_paid(connection: Connection, account: Account, releases: Iterable[int], entry: int) -> None:
    """Note that an entry has put releases on an account."""
    for release in releases:
        connection.execute(
            "INSERT INTO seen (account, period, release, entry) VALUES (?, ?, ?, ?)", (*account, release, entry)
        )


def unpaid(connection: Connection, releases: Iterable[int], account: Account) -> list[Sight]:
    """The releases among these that are not on an account, with their full cost.

    One that was made in an earlier period is not on the dataset's account of this one before somebody has seen it.
    """
    found = []
    for release in dict.fromkeys(releases):
        if not _is_on(connection, release, account):
            mechanism = _one(connection, release, account).release.mechanism
            found.append(Sight(release, mechanism, is_first=not _is_shared(connection, release, account[1])))
    return found


def find(connection: Connection, wanted: Wanted, account: Account, since: datetime) -> Found:
    """What an account has of a measure, and the cheapest release of others that would do."""
    groups = None if wanted.groups is None else _digest(_text(wanted.groups))
    alike = wanted.block, wanted.measure, chain.stamp(since), groups
    return Found(_own(connection, alike, account), _other(connection, wanted, alike, account))


def find_alike(
    connection: Connection, release: Release, account: Account, since: datetime
) -> tuple[KeptRelease, ...]:  # fmt: skip
    """What an account has of the same measure over the same groups."""
    alike = release.block, release.measure, chain.stamp(since), _digest(_text(release.groups))
    return _own(connection, alike, account)


def _own(connection: Connection, alike: tuple[str | None, ...], account: Account) -> tuple[KeptRelease, ...]:
    rows = connection.execute(
        f"SELECT p.entry, e.entry, {COLUMNS} FROM releases r"
        " JOIN seen s ON s.release = r.id AND s.account = ? AND s.period = ?"
        " LEFT JOIN entries e ON e.id = r.entry LEFT JOIN entries p ON p.id = s.entry"
        f" WHERE {_ALIKE} ORDER BY r.epsilon DESC, r.id DESC LIMIT {_MOST}",
        (*account, *alike),
    )
    found = []
    for seen, settled, *row in rows:
        _check_sight(seen, (*account, row[0]))
        found.append(_read(row, settled, paid=True, shared=True))
    return tuple(found)


def _other(
    connection: Connection, wanted: Wanted, alike: tuple[str | None, ...], account: Account
) -> KeptRelease | None:  # fmt: skip
    """Of equally cheap ones the newest."""
    rows = connection.execute(
        f"SELECT r.id, r.cost FROM releases r WHERE {_ALIKE} AND r.epsilon >= ? AND NOT EXISTS"
        " (SELECT 1 FROM seen s WHERE s.release = r.id AND s.account = ? AND s.period = ?)"
        " ORDER BY r.epsilon, r.id DESC",
        (*alike, float(wanted.epsilon) * _CLOSE, *account),
    )
    for number, cost in rows:
        if chain.mechanism(json.loads(cost)).strength >= wanted.epsilon:
            return _one(connection, number, account)
    return None


def _one(connection: Connection, number: int, account: Account) -> KeptRelease:
    """A release that is not on the account."""
    found = connection.execute(
        f"SELECT e.entry, {COLUMNS} FROM releases r LEFT JOIN entries e ON e.id = r.entry WHERE r.id = ?", (number,)
    ).fetchone()
    if found is None:
        raise LedgerError("the privacy ledger does not hold this release, so nothing is answered")
    settled, *row = found
    return _read(row, settled, paid=False, shared=_is_shared(connection, number, account[1]))


def _is_on(connection: Connection, release: int, account: Account) -> bool:
    found = connection.execute(
        "SELECT p.entry FROM seen s LEFT JOIN entries p ON p.id = s.entry"
        " WHERE s.account = ? AND s.period = ? AND s.release = ?",
        (*account, release),
    ).fetchone()
    if found is not None:
        _check_sight(found[0], (*account, release))
    return found is not None


def _is_shared(connection: Connection, release: int, period: str) -> bool:
    """Whether somebody has paid for it in this period, and so has the dataset."""
    found = connection.execute(
        "SELECT s.account, p.entry FROM seen s LEFT JOIN entries p ON p.id = s.entry"
        " WHERE s.release = ? AND s.period = ? LIMIT 1",
        (release, period),
    ).fetchone()
    if found is not None:
        _check_sight(found[1], (found[0], period, release))
    return found is not None


def _check_sight(entry: str | None, sight: tuple[str, str, int]) -> None:
    """An entry has to say that this release was paid for."""
    if entry is None or sight not in chain.seen_by(json.loads(entry)):
        raise LedgerError("the privacy ledger shows a release as paid that is not, so nothing is answered")


def _read(row: Sequence[Any], settled: str | None, *, paid: bool, shared: bool) -> KeptRelease:
    number, _, time, block, measure, cost, _, groups, _, numbers = row
    if settled is None or chain.seals_in(json.loads(settled)).get(number) != seal_of(tuple(row)):
        raise LedgerError("a release in the privacy ledger was changed, so nothing is answered")
    keys = tuple(tuple(group) for group in json.loads(groups))
    release = Release(block, measure, chain.mechanism(json.loads(cost)), keys, tuple(json.loads(numbers)))
    return KeptRelease(number, datetime.fromisoformat(time), release, paid, shared)


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _digest(text: str) -> str:
    """Of groups too: measures over one list of them are found without reading it."""
    return hashlib.sha256(text.encode()).hexdigest()
