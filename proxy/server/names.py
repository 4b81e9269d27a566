"""Prepared statements and portals that need a look when they are used, by name.

What is relayed untouched is not kept here. SQL's PREPARE and the protocol's Parse share one space of names.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeVar

from proxy.server.replies import Fate
from proxy.wire.backend import Field
from rules.sql.statement import Statement

RESERVED: Final = "_ng"
MOST_BYTES: Final = 8 * 1024 * 1024  # of the texts of one session's prepared statements
MOST_VIEWS: Final = 1000  # names of temporary views that are kept of one session

_NAME_BYTES: Final = 63  # PostgreSQL cuts what is longer
_BESIDE_BYTES: Final = 1024  # what is kept of a statement besides its text, roughly


@dataclass(frozen=True, slots=True)
class Prepared:
    """A prepared statement that reads what may be protected, or that changes names itself."""

    statement: Statement
    types: tuple[int, ...] = ()  # as Parse declared them
    is_as_written: bool = True  # False: its text was printed from PREPARE, so that places in it mean nothing

    @property
    def size(self) -> int:
        return len(self.statement.text) + len(self.statement.query) + _BESIDE_BYTES


@dataclass(slots=True, eq=False)
class Portal:
    """A bound statement whose replies are not the twin's alone."""

    columns: tuple[Field, ...] | None = None  # the description that the client gets, in place of the twin's
    notices: bytes = b""  # frames, due before its CommandComplete; empty once they were sent
    effect: Statement | None = None  # what it does to names when it is executed


Kept = TypeVar("Kept", Prepared, Portal)
Undo = Callable[[Fate], None]


class _Weighed(dict[str, Prepared]):
    """Prepared statements, and how much they are."""

    bytes = 0

    def __setitem__(self, name: str, prepared: Prepared) -> None:
        if name in self:
            del self[name]
        self.bytes += prepared.size
        super().__setitem__(name, prepared)

    def __delitem__(self, name: str) -> None:
        self.bytes -= self[name].size
        super().__delitem__(name)


class Names:
    """What one session knows by name. A change that turns out to have failed is undone."""

    def __init__(self) -> None:
        self.pending = 0  # statements on their way that may change names when they have run
        self._views: set[str] = set()  # temporary ones that the session may have, or has had
        self._prepared = _Weighed()
        self._portals: dict[str, Portal] = {}

    @property
    def are_full(self) -> bool:
        """Whether no other statement may be prepared: all of this is kept in the proxy, for as long as the session."""
        return self._prepared.bytes > MOST_BYTES

    def note_view(self, name: str) -> None:
        """One that is about to be made. It is kept when it is dropped too, for that may be taken back."""
        if len(self._views) <= MOST_VIEWS:
            self._views.add(_cut(name))

    def may_be_view(self, name: str) -> bool:
        """After so many views every name may be one; the twin, which lets few of them live at a time, knows."""
        return name in self._views or len(self._views) > MOST_VIEWS

    def find_prepared(self, name: str) -> Prepared | None:
        return self._prepared.get(_cut(name))

    def find_portal(self, name: str) -> Portal | None:
        return self._portals.get(_cut(name))

    def prepare(self, name: str, prepared: Prepared | None) -> Undo | None:
        """A Parse or PREPARE of this name; None for a statement that needs no look."""
        return _change(self._prepared, _cut(name), prepared)

    def bind(self, name: str, portal: Portal | None) -> Undo | None:
        return _change(self._portals, _cut(name), portal)

    def forget_prepared(self) -> None:
        """DEALLOCATE ALL, DISCARD ALL."""
        self._prepared = _Weighed()

    def portals(self) -> dict[str, Portal]:
        """All that are known now."""
        return dict(self._portals)

    def forget_portals(self, ended: dict[str, Portal]) -> None:
        """The transaction of these is over; others may have been bound in the next one already."""
        for name, portal in ended.items():
            if self._portals.get(name) is portal:
                del self._portals[name]


def _change(kept: dict[str, Kept], name: str, new: Kept | None) -> Undo | None:
    old = kept.get(name)
    if new is None and old is None:
        return None
    _put(kept, name, new)

    def undo(fate: Fate) -> None:
        if fate is not Fate.DONE and kept.get(name) is new:
            _put(kept, name, old)

    return undo


def _put(kept: dict[str, Kept], name: str, value: Kept | None) -> None:
    if value is not None:
        kept[name] = value
    elif name in kept:
        del kept[name]


def _cut(name: str) -> str:
    return (
        name if len(name) <= _NAME_BYTES and name.isascii() else name.encode()[:_NAME_BYTES].decode("utf-8", "ignore")
    )
