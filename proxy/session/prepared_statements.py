"""Prepared statements and portals that need a look when they are used, by name, and the replies about such portals.

What is relayed untouched is not kept here. SQL's PREPARE and the protocol's Parse share one space of names.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, Generic, TypeVar

from proxy.session.errors import moved, nowhere
from proxy.session.replies import Edit, Fate, shape
from proxy.session.usage_limits import QuotaShare
from proxy.wire.backend import CommandComplete, ErrorResponse, Field, RowDescription
from proxy.wire.buffer import Frame
from rules.functions.function import LiteralSettings
from rules.sql.statement import Kind, Statement

RESERVED: Final = "_ng"
MOST_VIEWS: Final = 1000  # names of temporary views that are kept of one session

_NAME_BYTES: Final = 63  # PostgreSQL cuts what is longer
_BESIDE_BYTES: Final = 1024  # what is kept of a statement besides its text, roughly


@dataclass(frozen=True, slots=True)
class Prepared:
    """A prepared statement that reads what may be protected, or that changes names itself."""

    statement: Statement
    literals: LiteralSettings  # by which its literals were read
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
Settle = Callable[[Fate], None]


class _Weighed(dict[str, Prepared]):
    """Prepared statements, and the room that they take."""

    def __init__(self, share: QuotaShare) -> None:
        super().__init__()
        self._share = share

    def __setitem__(self, name: str, prepared: Prepared) -> None:
        if name in self:
            del self[name]
        self._share.take(prepared.size)
        super().__setitem__(name, prepared)

    def __delitem__(self, name: str) -> None:
        self._share.take(-self[name].size)
        super().__delitem__(name)


class _Named(Generic[Kept]):
    """What is kept by name, as it will be once all that is on its way to the twin has succeeded."""

    def __init__(self, kept: dict[str, Kept]) -> None:
        self.kept: dict[str, Kept] = kept
        self._decided: dict[str, tuple[int, Kept | None]] = {}  # of some names: changes on their way, and what is now

    @property
    def is_changing(self) -> bool:
        return bool(self._decided)

    def change(self, name: str, new: Kept | None) -> Settle | None:
        """Note a change that is on its way; the twin's fate of it is to be told. None: nothing changes."""
        name = _cut(name)
        waiting, now = self._decided.get(name, (0, self.kept.get(name)))
        if new is None and now is None and not waiting:
            return None
        self._decided[name] = waiting + 1, now
        _put(self.kept, name, new)

        def settle(fate: Fate) -> None:
            waiting, now = self._decided.pop(name)
            if fate is Fate.DONE:
                now = new
            elif fate is Fate.FAILED and not name:  # PostgreSQL drops the old one first
                now = None
            if waiting > 1:
                self._decided[name] = waiting - 1, now
            else:
                _put(self.kept, name, now)

        return settle

    def put(self, name: str, value: Kept | None) -> None:
        """Note what has happened on the twin."""
        name = _cut(name)
        if name in self._decided:
            self._decided[name] = self._decided[name][0], value
        else:
            _put(self.kept, name, value)

    def clear(self) -> None:
        for name in {*self.kept, *self._decided}:
            self.put(name, None)


class PreparedStatements:
    """The statements and portals of one session, by name."""

    def __init__(self, share: QuotaShare, most_views: int = 10_000) -> None:
        self._share = share
        self.most_views = most_views  # that may be made in the session's life
        self.made_views = 0
        self.pending = 0  # statements on their way that may change names when they have run
        self._views: set[str] = set()  # temporary ones that the session may have, or has had
        self._prepared: _Named[Prepared] = _Named(_Weighed(share))
        self._portals: _Named[Portal] = _Named({})

    @property
    def are_changing(self) -> bool:
        """Tell whether a name may mean something else to the twin when all has run that is on its way."""
        return bool(self.pending) or self._prepared.is_changing

    @property
    def are_full(self) -> bool:
        """Tell whether no other statement may be prepared: all of this is kept for as long as the session lives."""
        return self._share.is_full

    def note_view(self, name: str) -> None:
        """One that is about to be made. It is kept when it is dropped too, for that may be taken back."""
        if len(self._views) <= MOST_VIEWS:
            self._views.add(_cut(name))

    def makes_view(self, statement: Statement) -> bool:
        """Return whether a statement, which is run now, makes a view."""
        makes = statement.kind is Kind.VIEW and statement.name is not None  # DROP VIEW names none
        self.made_views += makes
        return makes

    def may_be_view(self, name: str) -> bool:
        """After so many views every name may be one; the twin, which lets few of them live at a time, knows."""
        return name in self._views or len(self._views) > MOST_VIEWS

    def find_prepared(self, name: str) -> Prepared | None:
        return self._prepared.kept.get(_cut(name))

    def find_portal(self, name: str) -> Portal | None:
        return self._portals.kept.get(_cut(name))

    def would_nest(self, name: str, target: str) -> bool:
        """Return whether an EXECUTE of `target`, prepared as `name`, would be of another one, or another one of it."""
        prepared = self.find_prepared(target)
        if _cut(target) == _cut(name) or (prepared is not None and prepared.statement.kind is Kind.EXECUTE):
            return True
        return any(
            _cut(prepared.statement.name or "") == _cut(name)
            for prepared in self._prepared.kept.values()
            if prepared.statement.kind is Kind.EXECUTE
        )

    def prepare(self, name: str, prepared: Prepared | None) -> Settle | None:
        """A Parse of this name, or its Close, is on its way; None for a statement that needs no look."""
        return self._prepared.change(name, prepared)

    def has_prepared(self, name: str, prepared: Prepared | None) -> None:
        """PREPARE or DEALLOCATE of this name has run."""
        self._prepared.put(name, prepared)

    def bind(self, name: str, portal: Portal | None) -> Settle | None:
        return self._portals.change(name, portal)

    def forget_prepared(self) -> None:
        """DEALLOCATE ALL, DISCARD ALL."""
        self._prepared.clear()

    def close(self) -> None:
        """The session is gone, and its room is free."""
        self._share.close()
        self._prepared.kept.clear()

    def portals(self) -> dict[str, Portal]:
        """All that are known now."""
        return dict(self._portals.kept)

    def forget_portals(self, ended: dict[str, Portal]) -> None:
        """The transaction of these is over; others may have been bound in the next one already."""
        for name, portal in ended.items():
            if self._portals.kept.get(name) is portal:
                self._portals.put(name, None)


class UnnamedPortal:
    """Tells whether the unnamed portal is one that a Bind has made.

    PostgreSQL runs a Query in the unnamed portal too. What a failed one leaves of it, inside a transaction, points to
    memory that is free again, and is reached by Execute and Describe.
    """

    def __init__(self) -> None:
        self._queries = 0
        self.is_bound = False  # by a Bind that has succeeded since the last Query
        self.is_awaited = False  # a Bind is on its way: should it fail, the twin skips what follows up to the Sync

    def queried(self) -> None:
        self._queries += 1
        self.is_bound = self.is_awaited = False

    def synced(self) -> None:
        self.is_awaited = False

    def binding(self, settle: Settle | None) -> Settle:
        """A Bind is sent; `settle` is told its fate too."""
        queries, self.is_awaited = self._queries, True

        def then(fate: Fate) -> None:
            if fate is Fate.DONE and queries == self._queries:
                self.is_bound = True
            if settle is not None:
                settle(fate)

        return then


def _put(kept: dict[str, Kept], name: str, value: Kept | None) -> None:
    if value is not None:
        kept[name] = value
    elif name in kept:
        del kept[name]


def _cut(name: str) -> str:
    """A name as PostgreSQL keeps those of the protocol: it cuts in the middle of characters too."""
    if len(name) <= _NAME_BYTES and name.isascii():
        return name
    return name.encode("utf-8", "surrogateescape")[:_NAME_BYTES].decode("utf-8", "surrogateescape")


NO_PORTAL: Final = b"_ng_none"
"""The name of a portal that never is: the twin says so, in whatever state it is."""


def only_errors(frame: Frame) -> bytes:
    """For messages of our own whose failure ends the client's pipeline; it has never seen the text."""
    return moved(frame.raw, nowhere) if frame.kind == ErrorResponse.kind else b""


def no_portal(frame: Frame) -> bytes:
    """The twin's words for a portal that is not there, with the name that the client gave: none."""
    if frame.kind != ErrorResponse.kind:
        return frame.raw
    fields = dict(ErrorResponse.decode(frame.raw).fields)
    fields["M"] = fields["M"].replace(NO_PORTAL.decode(), "")
    return ErrorResponse(fields).encode()


def described_as(columns: tuple[Field, ...]) -> Edit:
    """The original's description in place of the outer statement's, which has lost the tables of the columns."""

    def edit(frame: Frame) -> bytes:
        if frame.kind != RowDescription.kind:
            return frame.raw
        return (_described_kept if len(frame.raw) <= _KEPT_BYTES else _described)(frame.raw, columns)

    return edit


def _described(raw: bytes, columns: tuple[Field, ...]) -> bytes:
    is_alike = shape(RowDescription.decode(raw).fields) == shape(columns)
    return RowDescription(columns).encode() if is_alike else raw


_KEPT_BYTES: Final = 4_096
_described_kept = lru_cache(maxsize=256)(_described)  # who asks again gets the same description


def executed(portal: Portal) -> Edit:
    """NOTICEs stand just before the CommandComplete of their statement, once."""

    def edit(frame: Frame) -> bytes:
        if frame.kind != CommandComplete.kind:
            return frame.raw
        notices, portal.notices = portal.notices, b""
        return notices + frame.raw

    return edit


def in_formats(columns: tuple[Field, ...], formats: tuple[int, ...]) -> tuple[Field, ...]:
    """The columns in the formats of a Bind: none is text, one holds for all."""
    column_format = formats if len(formats) == len(columns) else (formats or (0,)) * len(columns)
    paired = zip(columns, column_format, strict=True)
    return tuple(column if column.format == code else replace(column, format=code) for column, code in paired)
