"""Copies of a ledger: made while it serves, checked, and put back with what the anchor knows of their end.

A copy is a ledger in a SQLite file of its own, wherever the ledger itself lives; it may be put back into either home.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from proxy.ledger.connection import Connection
from proxy.ledger.group_commit import Home
from proxy.ledger.history import check_history
from proxy.ledger.integrity import Anchor, append, binding, head
from proxy.ledger.sqlite import LedgerFile
from rules.accounting import chain
from rules.accounting.store import LedgerError

_AT_ONCE: Final = 200  # rows of one INSERT
_TABLES: Final = {  # in the order in which they refer to each other
    "entries": "id, kind, time, analyst, entry, seal",
    "totals": "account, period, epsilon, delta, rho, pure",
    "releases": "id, charge, time, block, measure, cost, epsilon, groups, list, numbers, entry",
    "seen": "account, period, release, entry",
}


@dataclass(frozen=True, slots=True)
class Copy:
    """The content of a copy."""

    entries: int
    last: str  # when the last entry was made
    missing: int = 0  # entries that the anchor knows and the copy does not have
    is_anchored: bool = False


def back_up(home: Home, path: Path) -> Copy:
    """Write a copy as of one moment, and check it as an opening does. Those who charge do not wait."""
    with home.snapshot() as source:
        identity, root = binding(source), _root(source)
        copy = LedgerFile(path, root, Anchor(None))

        def fill(target: Connection) -> None:
            _copy_rows(source, target)
            check_history(target, str(path), identity, Anchor(None), whole=True)

        copy.create(fill)
    with copy.snapshot() as made:
        return _told(made)


def restore(path: Path, home_of: Callable[[str], Home], anchor: Anchor, time: datetime, missing: int | None) -> Copy:
    """Put a copy in the place of a ledger that is gone, and note in it that this was done.

    `home_of` makes the home for a ledger that began with an identity.
    `missing` has to say how many entries the anchor knows of that are not in the copy, if there are any: what these
    have charged is not counted from then on.
    """
    with LedgerFile(path, "", Anchor(None)).snapshot() as source:
        identity, root = binding(source), _root(source)
        check_history(source, str(path), identity, Anchor(None), whole=True)
        copy = _compared(source, anchor)
        if copy.missing and missing != copy.missing:
            raise LedgerError(
                f"the anchor has {copy.missing} entries that are not in {path}, which ends at {copy.last}: "
                "their charges would be lost",
                hint=f"Look for a newer copy. If there is none: --missing {copy.missing}, and lower the budgets in the "
                "rules for this period by what may have been spent.",
                reason="older_than_anchor",
            )

        def fill(target: Connection) -> None:
            _copy_rows(source, target)
            number, seal = head(target)
            append(target, chain.restore_entry(time, number=number, seal=seal, missing=copy.missing))
            check_history(target, str(path), identity, Anchor(None))

        home = home_of(root)
        home.create(fill)
    with home.snapshot() as made:
        anchor.replace(*head(made))
    return copy


def _compared(connection: Connection, anchor: Anchor) -> Copy:
    copy, (known, seal) = _told(connection), anchor.read()
    number, _ = head(connection)
    if not known:
        return copy
    if known > number:
        return Copy(copy.entries, copy.last, known - number, is_anchored=True)
    row = connection.execute("SELECT seal FROM entries WHERE id = ?", (known,)).fetchone()
    if row != (seal,):
        raise LedgerError("the copy belongs to another ledger than the anchor", reason="other_than_anchor")
    return Copy(copy.entries, copy.last, is_anchored=True)


def _told(connection: Connection) -> Copy:
    number, _ = head(connection)
    row = connection.execute("SELECT time FROM entries ORDER BY id DESC LIMIT 1").fetchone()
    return Copy(number, "never" if row is None else str(row[0]))


def _root(connection: Connection) -> str:
    (identity,) = connection.execute("SELECT value FROM meta WHERE name = 'identity'").fetchone()
    return str(identity)


def _copy_rows(source: Connection, target: Connection) -> None:
    for table, columns in _TABLES.items():
        width = len(columns.split(", "))
        for rows in _pieces(source, table, columns):
            values = ", ".join([f"({', '.join('?' * width)})"] * len(rows))
            sql = f"INSERT INTO {table} ({columns}) VALUES {values}"
            target.execute(sql, [value for row in rows for value in row])


def _pieces(source: Connection, table: str, columns: str) -> Iterator[Sequence[Any]]:
    """The rows of a table, a few at a time: all of them may be more than there is memory for."""
    if columns.startswith("id, "):
        last = 0
        while rows := list(
            source.execute(f"SELECT {columns} FROM {table} WHERE id > ? ORDER BY id LIMIT {_AT_ONCE}", (last,))
        ):
            last = rows[-1][0]
            yield rows
        return
    rows = list(source.execute(f"SELECT {columns} FROM {table}"))
    for begin in range(0, len(rows), _AT_ONCE):
        yield rows[begin : begin + _AT_ONCE]
