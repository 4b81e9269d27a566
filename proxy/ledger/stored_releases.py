"""The releases that a ledger keeps: who has paid for which, and which of them may be shown again.

Each release, and each sight of one, names the entry of the chain that vouches for it; what is read is held against it.
"""

import hashlib
import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from typing import Any, Final

from proxy.ledger.connection import Connection
from proxy.recent_values import RecentValues
from rules.accounting import chain
from rules.accounting.chain import Account
from rules.accounting.store import KeptRelease, LedgerError, Release, ReleaseQuery, ServableReleases

_CLOSE = 1 - 1e-9  # a float may be a little below the decimal that it stands for
_MOST = 100  # releases of one measure: what more there are is less precise than all of these
_MOST_LASTING = 10_000  # of cubes, with every period in which they were paid: beside the others, in nobody's place
COLUMNS = "r.id, r.charge, r.time, r.block, r.measure, r.cost, r.epsilon, r.groups, r.list, r.numbers"

Row = tuple[Any, ...]  # as COLUMNS has them
Accounts = Sequence[Account]  # of one period: an analyst's, and the role's, each of which must have what is free

# What was read, and held against its seal, before: by all the texts that it was read from.
_CHECKED: Final[RecentValues[Row, tuple[datetime, Release]]] = RecentValues(64 * 1024 * 1024)
_OBJECTS: Final = 8  # times as much memory as texts


@dataclass(frozen=True, slots=True)
class Age:
    """Say which releases are fresh: those since a moment, and those of cubes that last."""

    since: datetime
    lasting: tuple[int, ...] = ()

    @property
    def is_lasting(self) -> str:
        """As a condition; its parameters are `lasting`."""
        return f"r.id IN ({', '.join('?' * len(self.lasting))})" if self.lasting else "1 = 0"

    @property
    def is_fresh(self) -> str:
        """As a condition on releases; its parameters are `parameters`."""
        return f"(r.time >= ? OR {self.is_lasting})"

    @property
    def parameters(self) -> tuple[str | int, ...]:
        return chain.stamp(self.since), *self.lasting


@dataclass(frozen=True, slots=True)
class _Alike:
    """Releases of one measure of a block, over one list of groups or over any."""

    block: str
    measure: str
    groups: str | None  # their digest
    age: Age

    @property
    def condition(self) -> str:
        return f"r.block = ? AND r.measure = ? AND {self.age.is_fresh} AND r.list = coalesce(?, r.list)"

    @property
    def parameters(self) -> tuple[str | int | None, ...]:
        return self.block, self.measure, *self.age.parameters, self.groups


def new_rows(connection: Connection, charge: int, time: str, releases: Sequence[Release]) -> list[Row]:
    """The noised measures of a charge as they are to be kept."""
    (last,) = connection.execute("SELECT max(id) FROM releases").fetchone()
    last = _last_closed(connection) if last is None else last
    return [_row(number, charge, time, release) for number, release in enumerate(releases, start=last + 1)]


def _last_closed(connection: Connection) -> int:
    """The number of the last release that was closed: none is given twice."""
    row = connection.execute(
        "SELECT entry FROM entries WHERE analyst = ? AND kind = 'close' ORDER BY id DESC LIMIT 1", (chain.NOBODY,)
    ).fetchone()
    return 0 if row is None else chain.closed_by(json.loads(row[0])).release


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


def find(connection: Connection, wanted: ReleaseQuery, accounts: Accounts, age: Age) -> ServableReleases:
    """Find what is on all these accounts of a measure, and the cheapest other release that would do."""
    groups = None if wanted.groups is None else _digest(_text(wanted.groups))
    alike = _Alike(wanted.block, wanted.measure, groups, age)
    return ServableReleases(_own(connection, alike, accounts), _other(connection, wanted, alike, accounts))


def find_cells(
    connection: Connection, families: Sequence[str], accounts: Accounts, age: Age
) -> tuple[KeptRelease, ...]:
    """Find what is on all these accounts of blocks that are kept under a family, which is how their names begin."""
    holes = ", ".join("?" * len(families))
    alike = f"substr(r.block, 1, {len(families[0])}) IN ({holes})"
    newest = f"{alike} AND r.time >= ? AND NOT {age.is_lasting} ORDER BY r.id DESC"
    others = _of_accounts(connection, accounts, age, newest, (*families, chain.stamp(age.since), *age.lasting))
    if not age.lasting:
        return others
    wanted = f"{alike} AND {age.is_lasting} ORDER BY r.id DESC"
    return _of_accounts(connection, accounts, age, wanted, (*families, *age.lasting), most=_MOST_LASTING) + others


def find_other_cells(
    connection: Connection, families: Sequence[str], accounts: Accounts, age: Age
) -> tuple[KeptRelease, ...]:
    """The same of what is not on all these accounts, but on another one of their period, and does not last."""
    holes, period = ", ".join("?" * len(families)), accounts[0][1]
    rows = connection.execute(
        f"SELECT r.id FROM releases r WHERE substr(r.block, 1, {len(families[0])}) IN ({holes}) AND r.time >= ?"
        " AND EXISTS (SELECT 1 FROM seen s WHERE s.release = r.id AND s.period = ?)"
        f" AND NOT ({_is_on_all(accounts)}) AND NOT {age.is_lasting} ORDER BY r.id DESC LIMIT {_MOST}",
        (*families, chain.stamp(age.since), period, *itertools.chain.from_iterable(accounts), *age.lasting),
    )
    kept_releases = [one(connection, number, period) for (number,) in rows]
    return tuple(release for release in kept_releases if release.shared)


def find_alike(connection: Connection, release: Release, accounts: Accounts, age: Age) -> tuple[KeptRelease, ...]:
    """Find what is on all these accounts of the same measure over the same groups."""
    return _own(connection, _Alike(release.block, release.measure, _digest(_text(release.groups)), age), accounts)


def newest_of(connection: Connection, account: str, measure: str | None) -> tuple[KeptRelease, ...]:
    """The releases of the newest charge on an account that has this measure, of one that sees none of others."""
    rows = connection.execute(
        f"SELECT s.period, p.entry, e.entry, {COLUMNS} FROM releases r"
        " JOIN seen s ON s.release = r.id AND s.account = ?"
        " LEFT JOIN entries e ON e.id = r.entry LEFT JOIN entries p ON p.id = s.entry"
        " WHERE r.charge = (SELECT max(n.charge) FROM releases n JOIN seen t ON t.release = n.id AND t.account = ?"
        " WHERE n.measure = coalesce(?, n.measure)) ORDER BY r.id",
        (account, account, measure),
    )
    return tuple(_seen([(account, period)], [seen], settled, row) for period, seen, settled, *row in rows)


def _own(connection: Connection, alike: _Alike, accounts: Accounts) -> tuple[KeptRelease, ...]:
    wanted = f"{alike.condition} ORDER BY r.epsilon DESC, r.id DESC"
    return _of_accounts(connection, accounts, alike.age, wanted, alike.parameters)


def _of_accounts(
    connection: Connection, accounts: Accounts, age: Age, wanted: str, values: Sequence[str | int | None],
    *, most: int = _MOST,
) -> tuple[KeptRelease, ...]:  # fmt: skip
    """Find what all accounts have in their period, and what lasts of what they have ever had, each once."""
    places, names = range(len(accounts)), [name for name, _ in accounts]
    sights = "".join(
        f" JOIN seen s{place} ON s{place}.release = r.id AND s{place}.account = ?"
        f" AND (s{place}.period = ? OR {age.is_lasting}) LEFT JOIN entries p{place} ON p{place}.id = s{place}.entry"
        for place in places
    )
    periods, entries = (", ".join(part.format(place) for place in places) for part in ("s{}.period", "p{}.entry"))
    rows = connection.execute(
        f"SELECT {periods}, {entries}, e.entry, {COLUMNS} FROM releases r{sights}"
        f" LEFT JOIN entries e ON e.id = r.entry WHERE {wanted} LIMIT {most}",
        (*(part for account in accounts for part in (*account, *age.lasting)), *values),
    )
    count, kept = len(accounts), dict[int, KeptRelease]()
    for row in rows:
        when, seen, (settled, *stored) = row[:count], row[count : 2 * count], row[2 * count :]
        release = _seen(list(zip(names, when, strict=True)), seen, settled, stored)
        kept[release.id] = replace(release, is_lasting=release.id in age.lasting)
    return tuple(kept.values())


def _seen(accounts: Accounts, seen: Sequence[str | None], settled: str | None, row: Sequence[Any]) -> KeptRelease:
    """A release, for which the entries that put it on accounts are held against that."""
    for account, entry in zip(accounts, seen, strict=True):
        check_sight(entry, (*account, row[0]))
    return _read(row, settled, paid=True, shared=True)


def _is_on_all(accounts: Accounts) -> str:
    """Write the condition on releases that accounts have them; its parameters are the parts of these."""
    seen = "EXISTS (SELECT 1 FROM seen s WHERE s.release = r.id AND s.account = ? AND s.period = ?)"
    return " AND ".join([seen] * len(accounts))


def _other(connection: Connection, wanted: ReleaseQuery, alike: _Alike, accounts: Accounts) -> KeptRelease | None:
    """Of equally cheap ones the newest. What lasts is on the accounts that it is for."""
    age = alike.age
    rows = connection.execute(
        f"SELECT r.id, r.charge, r.cost FROM releases r WHERE {alike.condition} AND NOT {age.is_lasting}"
        f" AND r.epsilon >= ? AND NOT ({_is_on_all(accounts)}) ORDER BY r.epsilon, r.id DESC",
        (*alike.parameters, *age.lasting, float(wanted.epsilon) * _CLOSE, *itertools.chain.from_iterable(accounts)),
    )
    for number, charge, cost in rows:
        is_of_one, mechanism = wanted.charges is None or charge in wanted.charges, chain.mechanism(json.loads(cost))
        if is_of_one and mechanism.strength >= wanted.epsilon and mechanism.delta <= wanted.delta:
            return one(connection, number, accounts[0][1])
    return None


def one(connection: Connection, number: int, period: str) -> KeptRelease:
    """A release that is to be paid in a period."""
    stored = connection.execute(
        f"SELECT e.entry, {COLUMNS} FROM releases r LEFT JOIN entries e ON e.id = r.entry WHERE r.id = ?", (number,)
    ).fetchone()
    if stored is None:
        raise LedgerError(
            "the release is missing from the privacy ledger, so the statement is not answered", reason="release_missing"
        )
    settled, *row = stored
    return _read(row, settled, paid=False, shared=is_shared(connection, number, period))


def is_on(connection: Connection, release: int, account: Account) -> bool:
    row = connection.execute(
        "SELECT p.entry FROM seen s LEFT JOIN entries p ON p.id = s.entry"
        " WHERE s.account = ? AND s.period = ? AND s.release = ?",
        (*account, release),
    ).fetchone()
    if row is not None:
        check_sight(row[0], (*account, release))
    return row is not None


def is_shared(connection: Connection, release: int, period: str) -> bool:
    """Return whether somebody has paid for it in this period, and so has the dataset."""
    row = connection.execute(
        "SELECT s.account, p.entry FROM seen s LEFT JOIN entries p ON p.id = s.entry"
        " WHERE s.release = ? AND s.period = ? LIMIT 1",
        (release, period),
    ).fetchone()
    if row is not None:
        check_sight(row[1], (row[0], period, release))
    return row is not None


def check_sight(entry: str | None, sight: tuple[str, str, int]) -> None:
    """An entry has to say that this release was paid for."""
    if entry is None or sight not in _sights_in(entry):
        raise LedgerError(
            "the privacy ledger shows a release as paid that is not, so the statement is not answered",
            reason="sights_changed",
        )


@lru_cache(maxsize=1024)
def _sights_in(entry: str) -> frozenset[tuple[str, str, int]]:
    return frozenset(chain.seen_by(json.loads(entry)))


@lru_cache(maxsize=1024)
def _vectors_in(entry: str) -> Mapping[int, tuple[int, ...]]:
    """The releases that were drawn for one price, by each of them."""
    vectors = json.loads(entry).get("vectors", ())
    return {release: tuple(vector) for vector in vectors for release in vector}


def _read(row: Sequence[Any], settled: str | None, *, paid: bool, shared: bool) -> KeptRelease:
    texts = (settled, *row)
    checked = _CHECKED.find(texts)
    if checked is None:
        checked = _checked(row, settled)
        _CHECKED.keep(texts, checked, _OBJECTS * sum(len(text) for text in texts if isinstance(text, str)))
    vector = _vectors_in(settled).get(row[0], ()) if settled is not None else ()
    return KeptRelease(row[0], *checked, paid, shared, charge=row[1], vector=vector)


def _checked(row: Sequence[Any], settled: str | None) -> tuple[datetime, Release]:
    number, _, time, block, measure, cost, _, groups, _, numbers = row
    if settled is None or chain.seals_in(json.loads(settled)).get(number) != seal_of(tuple(row)):
        raise LedgerError(
            "a release in the privacy ledger was changed, so the statement is not answered", reason="release_changed"
        )
    keys = tuple(tuple(group) for group in json.loads(groups))
    release = Release(block, measure, chain.mechanism(json.loads(cost)), keys, tuple(json.loads(numbers)))
    return datetime.fromisoformat(time), release


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _digest(text: str) -> str:
    """Of groups too: measures over one list of them are found without reading it."""
    return hashlib.sha256(text.encode()).hexdigest()
