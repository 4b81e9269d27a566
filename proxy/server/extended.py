"""The extended protocol: Parse to Sync are forwarded as they come; at its Bind a private statement is answered.

Handlers return None when they are done, or the work that has to be awaited before the next message.
"""

from collections.abc import Coroutine
from dataclasses import replace
from typing import Any, Final

from proxy.server.asked import Answered, Asked, asked_by_execute
from proxy.server.judge import (
    RESERVED_NAME,
    TOO_MANY_PREPARED,
    UNREADABLE,
    effect_of,
    find_refusal,
    may_be_private,
    needs_look,
    needs_transaction,
)
from proxy.server.names import RESERVED, Portal, Prepared, Undo
from proxy.server.parts import Parts
from proxy.server.private import OUTER, encoded, shape
from proxy.server.probe import TEXT_ARRAY_OID
from proxy.server.relay import Message, TwinError
from proxy.server.replies import ROWS, Edit, Expected, Fate, swallow
from proxy.server.reports import REFUSED_SQL, in_place_of_refusal, moved, notice_report, nowhere, refusal_report
from proxy.wire.backend import FAILED, IDLE, CommandComplete, ErrorResponse, Field, RowDescription
from proxy.wire.buffer import Frame
from proxy.wire.frontend import PORTAL, STATEMENT, Bind, Close, Describe, Execute, Parse, Sync
from rules.refusal import Refusal
from rules.sql.around import split_around
from rules.sql.statement import Kind, Reading, Statement

Work = Coroutine[Any, Any, None]

_RESERVED: Final = RESERVED.encode()
_REFUSED: Final = b"_ng_refused"
_UNREAD: Final = b"_ng_unread"


class Extended:
    """The messages of one session from Parse to Sync. None of them comes here while the twin skips."""

    def __init__(self, parts: Parts) -> None:
        self._parts, self._relay, self._names = parts, parts.relay, parts.names
        self._has_executed = False  # since the last Sync

    def refuse(self, refusal: Refusal, name: bytes = _REFUSED) -> None:
        """Let the twin fail, and the client read why. A Parse fails under its own name, which it may have to free."""
        edit = in_place_of_refusal(refusal_report(refusal, self._relay.codec))
        self._relay.send(Parse(name, REFUSED_SQL.encode()).encode(), Expected(Parse.kind, edit))
        if not name:
            self._names.prepare("", None)

    # Parse

    def parse(self, raw: bytes) -> Work | None:
        name, *texts = raw[5:].split(b"\0", 2)
        if len(texts) < 2:
            self._relay.forward(Parse.kind, raw)  # malformed: the twin says so
            return None
        reading = self._parts.find_reading(texts[0])
        if reading is None:
            return self._read_and_parse(raw, name, texts[0])
        return self._parse(raw, name, reading)

    async def _read_and_parse(self, raw: bytes, name: bytes, text: bytes) -> None:
        try:
            reading = await self._parts.read(text)
        except Refusal as refusal:
            if not self._relay.skipping:
                self.refuse(refusal, name)
            return
        if not self._relay.skipping and (work := self._parse(raw, name, reading)) is not None:
            await work

    def _parse(self, raw: bytes, name: bytes, reading: Reading) -> Work | None:
        if name.startswith(_RESERVED):
            self.refuse(RESERVED_NAME)
        elif reading.unreadable:
            return self._parse_unreadable(raw, name)
        elif len(reading.statements) != 1:
            self._prepare(raw, name, None)  # nothing, or too many: the twin knows what to say
        elif refusal := find_refusal(reading.statements[0], self._parts.service, self._names):
            self.refuse(refusal.moved(reading.statements[0].start), name)
        elif not needs_look(reading.statements[0], self._parts.service, self._names):
            self._prepare(raw, name, None)
        elif name and self._names.are_full:
            self.refuse(TOO_MANY_PREPARED, name)
        else:
            self._prepare(raw, name, Prepared(reading.statements[0], Parse.decode(raw).types))
        return None

    def _prepare(self, raw: bytes, name: bytes, prepared: Prepared | None) -> None:
        undo = self._names.prepare(self._text(name), prepared)
        self._relay.send(raw, Expected(Parse.kind, then=undo))

    async def _parse_unreadable(self, raw: bytes, name: bytes) -> None:
        """The twin says what is wrong with a text that we cannot read. What it can read is refused, and never run."""
        parse = replace(Parse.decode(raw), statement=_UNREAD)
        await self._relay.quiet()
        if self._relay.skipping:
            return
        closes = [Close(STATEMENT, _UNREAD)]
        if not name:
            closes.append(Close(STATEMENT, b""))
            self._names.prepare("", None)
        try:
            await self._relay.ask(*closes, parse, *closes, sync=False)
        except TwinError as error:
            self._relay.client.write(error.raw)
        else:
            self.refuse(UNREADABLE, name)

    # Bind

    def bind(self, raw: bytes) -> Work | None:
        portal, *rest = raw[5:].split(b"\0", 2)
        if len(rest) < 2:
            self._relay.forward(Bind.kind, raw)
            return None
        if portal.startswith(_RESERVED) or rest[0].startswith(_RESERVED):
            self.refuse(RESERVED_NAME)
            return None
        prepared = self._names.find_prepared(self._text(rest[0]))
        if prepared is None and self._names.pending:
            return self._bind_later(raw)
        if prepared is None:
            self._forward_bind(raw, portal, None)
        elif may_be_private(prepared.statement, self._parts.service, self._names):
            return self._bind_looked(raw, prepared)
        else:
            self._forward_bind(raw, portal, prepared)
        return None

    async def _bind_later(self, raw: bytes) -> None:
        """What a name means is known when all that may change it has run."""
        await self._relay.quiet()
        if not self._relay.skipping and (work := self.bind(raw)) is not None:
            await work

    def _forward_bind(self, raw: bytes, name: bytes, prepared: Prepared | None) -> None:
        portal = Portal(effect=prepared.statement) if prepared is not None and prepared.is_as_written else None
        self._relay.send(raw, Expected(Bind.kind, then=self._names.bind(self._text(name), portal)))

    async def _bind_looked(self, raw: bytes, prepared: Prepared) -> None:
        await self._relay.quiet()
        if self._relay.skipping:
            return
        bind = Bind.decode(raw)
        if self._names.find_prepared(self._text(bind.statement)) is not prepared:
            self._forward_bind(raw, bind.portal, None)  # its Parse has failed
            return
        asked = self._asked(bind, prepared)
        if asked is None or self._is_bound_to_fail(prepared.statement):
            self._forward_bind(raw, bind.portal, prepared)
            return
        try:
            answered = await self._parts.private.answer(asked, sync=False)
            if answered is None:
                self._forward_bind(raw, bind.portal, prepared)
            else:
                self._bind_answered(bind, prepared.statement.kind, answered)
        except TwinError as error:
            self._relay.client.write(error.raw)
        except Refusal as refusal:
            self.refuse(refusal)

    def _is_bound_to_fail(self, statement: Statement) -> bool:
        """Whether PostgreSQL refuses any such statement now. An Execute in the same pipeline may have changed that."""
        if self._has_executed:
            return False
        return self._relay.state == FAILED or (self._relay.state == IDLE and needs_transaction(statement))

    def _asked(self, bind: Bind, prepared: Prepared) -> Asked | None:
        """What a Bind asks for; None for EXECUTE of what needs no look."""
        statement = prepared.statement
        if statement.names_prepared:
            return asked_by_execute(statement, self._names, self._relay.codec)
        around = split_around(statement)
        if statement.kind is Kind.QUERY:
            return Asked(statement, around, None, bind.statement, bind=bind)
        place = None if around is None else statement.start + len(around.head)
        return Asked(statement, around, place, types=prepared.types, bind=bind)

    def _bind_answered(self, bind: Bind, kind: Kind, answered: Answered) -> None:
        """Bind the client's portal to the outer statement, so that all that follows is the twin's own business."""
        codec = self._relay.codec
        messages = [] if kind is Kind.QUERY and answered.is_parsed else self._outer(kind, answered)
        arrays = tuple(encoded(array, codec) for array in answered.arrays)
        if kind in (Kind.QUERY, Kind.DECLARE):
            formats = tuple(map(bind.format_of, range(len(bind.parameters)))) + (0,) * len(arrays)
            outer = Bind(bind.portal, OUTER, formats, bind.parameters + arrays, bind.result_formats)
        else:
            outer = replace(bind, statement=OUTER)
        for message in messages:
            self._relay.send(message.encode(), Expected(message.kind, _only_errors))
        notices = b"".join(notice_report(notice, codec) for notice in answered.notices)
        columns = _in_formats(answered.columns, bind.result_formats) if kind in (Kind.QUERY, Kind.EXECUTE) else None
        undo = self._names.bind(self._text(bind.portal), Portal(columns, notices))
        self._relay.send(outer.encode(), Expected(Bind.kind, then=undo))
        self._relay.send(Close(STATEMENT, OUTER).encode(), Expected(Close.kind, swallow))

    def _outer(self, kind: Kind, answered: Answered) -> list[Message]:
        """The whole statement, where what was compared is not all of it or cannot take parameters."""
        if kind in (Kind.QUERY, Kind.DECLARE):
            text = answered.with_parameters()
            types = answered.parameters.types + (TEXT_ARRAY_OID,) * len(answered.arrays)
        else:
            text, types = answered.with_literals(), ()
        return [Close(STATEMENT, OUTER), Parse(OUTER, encoded(text, self._relay.codec), types)]

    # Describe, Execute, Close, Sync

    def describe(self, raw: bytes) -> None:
        name = raw[6:-1]
        portal = self._names.find_portal(self._text(name)) if raw[5:6] == PORTAL else None
        if name.startswith(_RESERVED):
            self.refuse(RESERVED_NAME)
        elif portal is not None and portal.columns is not None:
            self._relay.send(raw, Expected(Describe.kind, _described_as(portal.columns)))
        else:
            self._relay.forward(Describe.kind, raw)

    def execute(self, raw: bytes) -> None:
        name = raw[5:].partition(b"\0")[0]
        portal = self._names.find_portal(self._text(name))
        self._has_executed = True
        if name.startswith(_RESERVED):
            self.refuse(RESERVED_NAME)
        elif portal is None:
            self._relay.forward(Execute.kind, raw)
        else:
            self._relay.send(raw, Expected(Execute.kind, _executed(portal), ROWS, self._after(portal)))

    def _after(self, portal: Portal) -> Undo | None:
        effect = portal.effect
        if effect is None:
            return None
        self._names.pending += 1

        def then(fate: Fate) -> None:
            self._names.pending -= 1
            if fate is Fate.DONE:
                effect_of(effect, self._names, self._parts.private.forget)

        return then

    def close(self, raw: bytes) -> None:
        name = raw[6:-1]
        if name.startswith(_RESERVED):
            self.refuse(RESERVED_NAME)
            return
        change = self._names.bind if raw[5:6] == PORTAL else self._names.prepare
        self._relay.send(raw, Expected(Close.kind, then=change(self._text(name), None)))

    def sync(self, raw: bytes) -> None:
        ended = self._names.portals()
        self._has_executed = False

        def then(_: Fate) -> None:
            if self._relay.state == IDLE:
                self._names.forget_portals(ended)

        self._relay.sync(raw, Expected(Sync.kind, then=then if ended else None))

    def _text(self, name: bytes) -> str:
        """A name of the client; what its encoding cannot read has no entry, and stays the twin's business."""
        return name.decode(self._relay.codec, "replace")


def _only_errors(frame: Frame) -> bytes:
    """For messages of our own whose failure ends the client's pipeline; it has never seen the text."""
    return moved(frame.raw, nowhere) if frame.kind == ErrorResponse.kind else b""


def _described_as(columns: tuple[Field, ...]) -> Edit:
    """The original's description in place of the outer statement's, which has lost the tables of the columns."""

    def edit(frame: Frame) -> bytes:
        if frame.kind != RowDescription.kind or shape(RowDescription.decode(frame.raw).fields) != shape(columns):
            return frame.raw
        return RowDescription(columns).encode()

    return edit


def _executed(portal: Portal) -> Edit:
    """NOTICEs stand just before the CommandComplete of their statement, once."""

    def edit(frame: Frame) -> bytes:
        if frame.kind != CommandComplete.kind:
            return frame.raw
        notices, portal.notices = portal.notices, b""
        return notices + frame.raw

    return edit


def _in_formats(columns: tuple[Field, ...], formats: tuple[int, ...]) -> tuple[Field, ...]:
    """The columns in the formats of a Bind: none is text, one holds for all."""
    each = formats if len(formats) == len(columns) else (formats or (0,)) * len(columns)
    return tuple(replace(column, format=code) for column, code in zip(columns, each, strict=True))
