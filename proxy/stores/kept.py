"""The releases that a ledger keeps: who has paid for which, and which of them may be shown again."""

import hashlib
import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from proxy.stores.connection import Connection
from rules.ledger import chain
from rules.ledger.chain import Account
from rules.ledger.store import Found, KeptRelease, Release, Wanted

_CLOSE = 1 - 1e-9  # a float may be a little below the decimal that it stands for
_MOST = 100  # releases of one measure: what more there are is less precise than all of these
_COLUMNS = "r.id, r.time, r.block, r.measure, r.cost, r.groups, r.numbers"
_ALIKE = "r.block = ? AND r.measure = ? AND r.time >= ? AND r.list = coalesce(?, r.list)"


def keep(connection: Connection, charge: int, time: str, releases: Sequence[Release]) -> list[int]:
    """Keep the noised measures of a charge."""
    (last,) = connection.execute("SELECT coalesce(max(id), 0) FROM releases").fetchone()
    for number, release in enumerate(releases, start=last + 1):
        groups = _text(release.groups)
        cost, strength = chain.cost(release.mechanism), release.mechanism.strength
        connection.execute(
            "INSERT INTO releases (id, charge, time, block, measure, cost, epsilon, groups, list, numbers)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                *(number, charge, time, release.block, release.measure, _text(cost)),
                *(float(strength), groups, _digest(groups), _text(release.values)),
            ),
        )
    return list(range(last + 1, last + 1 + len(releases)))


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
        f"SELECT {_COLUMNS} FROM releases r JOIN sights s ON s.release = r.id AND s.account = ? AND s.period = ?"
        f" WHERE {_ALIKE} ORDER BY r.epsilon DESC, r.id DESC LIMIT {_MOST}",
        (*account, *alike),
    )
    return tuple(_read(row, paid=True, shared=True) for row in rows)


def _other(
    connection: Connection, wanted: Wanted, alike: tuple[str | None, ...], account: Account
) -> KeptRelease | None:  # fmt: skip
    """Of equally cheap ones the newest."""
    rows = connection.execute(
        f"SELECT r.id, r.cost FROM releases r WHERE {_ALIKE} AND r.epsilon >= ? AND NOT EXISTS"
        " (SELECT 1 FROM sights s WHERE s.release = r.id AND s.account = ? AND s.period = ?)"
        " ORDER BY r.epsilon, r.id DESC",
        (*alike, float(wanted.epsilon) * _CLOSE, *account),
    )
    for number, cost in rows:
        if chain.mechanism(json.loads(cost)).strength >= wanted.epsilon:
            found = connection.execute(f"SELECT {_COLUMNS} FROM releases r WHERE r.id = ?", (number,))
            return _read(found.fetchone(), paid=False, shared=_is_shared(connection, number, account[1]))
    return None


def _is_shared(connection: Connection, release: int, period: str) -> bool:
    """Whether somebody has paid for it in this period, and so has the dataset."""
    sights = connection.execute("SELECT 1 FROM sights WHERE release = ? AND period = ? LIMIT 1", (release, period))
    return sights.fetchone() is not None


def _read(row: tuple[Any, ...], *, paid: bool, shared: bool) -> KeptRelease:
    number, time, block, measure, cost, groups, numbers = row
    keys = tuple(tuple(group) for group in json.loads(groups))
    release = Release(block, measure, chain.mechanism(json.loads(cost)), keys, tuple(json.loads(numbers)))
    return KeptRelease(number, datetime.fromisoformat(time), release, paid, shared)


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _digest(groups: str) -> str:
    """Measures over one list of groups are found without reading it."""
    return hashlib.sha256(groups.encode()).hexdigest()
