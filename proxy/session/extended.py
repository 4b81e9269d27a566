"""The extended protocol: Parse to Sync are forwarded as they come; at its Bind a private statement is answered.

Handlers return None when they are done, or the work that has to be awaited before the next message.
"""

from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any, Final

from proxy.session.answer_private import answer_private
from proxy.session.classify import (
    NESTED_EXECUTE,
    RESERVED_NAME,
    TOO_MANY_PREPARED,
    UNREADABLE,
    effect_of,
    find_refusal,
    is_nested,
    may_be_private,
    needs_look,
    needs_transaction,
)
from proxy.session.errors import REFUSED_SQL, in_place_of_refusal, notice_report
from proxy.session.prepared_statements import (
    NO_PORTAL,
    RESERVED,
    Portal,
    Prepared,
    Settle,
    described_as,
    executed,
    in_formats,
    no_portal,
    only_errors,
)
from proxy.session.private_request import OUTER, Answered, PrivateRequest, request_of_execute
from proxy.session.replies import ROWS, Expected, Fate, Message, TwinRefusal, encoded, swallow
from proxy.session.session_context import SessionContext
from proxy.session.twin_probe import TEXT_ARRAY_OID
from proxy.wire.backend import FAILED, IDLE
from proxy.wire.codec import HEADER_SIZE
from proxy.wire.frontend import PORTAL, STATEMENT, Bind, Close, Describe, Execute, Parse, Sync
from rules.refusal import Refusal
from rules.sql.statement import Kind, Reading, Statement, split_around

Work = Coroutine[Any, Any, None]

_RESERVED: Final = RESERVED.encode()
_NOT_THEIRS: Final = (_RESERVED, b"<unnamed portal ")  # the second are PostgreSQL's own, for what runs inside others
_DESCRIBES_UNNAMED: Final = PORTAL + b"\0"  # the twin reads a message to its end before it looks for the portal, so
_EXECUTES_UNNAMED: Final = len(Execute(b"").encode())  # that it may have one which is malformed
_REFUSED: Final = b"_ng_refused"
_UNREAD: Final = b"_ng_unread"


class Extended:
    """The messages of one session from Parse to Sync. None of them comes here while the twin skips."""

    def __init__(self, parts: SessionContext) -> None:
        self._parts, self._relay, self._names = parts, parts.relay, parts.names
        self._has_executed = False  # since the last Sync

    def refuse(self, refusal: Refusal, name: bytes = _REFUSED, statement: Statement | None = None) -> None:
        """Let the twin fail, and the client read why. A Parse fails under its own name, which it may have to free."""
        report = self._parts.report(refusal, statement)
        if self._relay.skipping:  # a message of ours has failed: the twin would say nothing more
            self._relay.client.write(report)
            return
        edit = in_place_of_refusal(report)
        settle = None if name else self._names.prepare("", None)
        self._relay.send(Parse(name, REFUSED_SQL.encode()).encode(), Expected(Parse.kind, edit, then=settle))

    # Parse

    def parse(self, raw: bytes) -> Work | None:
        found = _two_texts(raw)
        if found is None:
            self._relay.forward(Parse.kind, raw)  # malformed: the twin says so
            return None
        name, text = found
        reading = self._parts.find_reading(text)
        if reading is None:
            return self._read_and_parse(raw, name, text)
        return self._parse(raw, name, reading)

    async def _read_and_parse(self, raw: bytes, name: bytes, text: bytes) -> None:
        try:
            reading = await self._parts.read(text)
        except TwinRefusal as error:
            self._relay.client.write(error.raw)
            return
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
            self.refuse(refusal.moved(reading.statements[0].start), name, reading.statements[0])
        elif not needs_look(reading.statements[0], self._parts.service, self._names):
            self._prepare(raw, name, None)
        elif name and self._names.are_full:
            self.refuse(TOO_MANY_PREPARED, name, reading.statements[0])
        elif (name and reading.statements[0].kind is Kind.EXECUTE) or not self._relay.knows_lexis:
            return self._parse_later(raw, name, reading.statements[0])
        else:
            self._prepare_looked(raw, name, reading.statements[0])
        return None

    async def _parse_later(self, raw: bytes, name: bytes, statement: Statement) -> None:
        """Parse late: the meaning of a name, and of literals, is known when all that may change it has run."""
        try:
            await self._relay.learn_lexis()
        except TwinRefusal as error:
            self._relay.client.write(error.raw)
            return
        if self._relay.skipping:
            return
        if name and statement.kind is Kind.EXECUTE and is_nested(self._text(name), statement, self._names):
            self.refuse(NESTED_EXECUTE, name, statement)
        else:
            self._prepare_looked(raw, name, statement)

    def _prepare_looked(self, raw: bytes, name: bytes, statement: Statement) -> None:
        self._prepare(raw, name, Prepared(statement, self._relay.lexis.literals, Parse.decode(raw).types))

    def _prepare(self, raw: bytes, name: bytes, prepared: Prepared | None) -> None:
        settle = self._names.prepare(self._text(name), prepared)
        self._relay.send(raw, Expected(Parse.kind, then=settle))
        if not name:
            self._relay.unnamed_parse = raw

    async def _parse_unreadable(self, raw: bytes, name: bytes) -> None:
        """The twin says what is wrong with a text that we cannot read. What it can read is refused, and never run."""
        parse = replace(Parse.decode(raw), statement=_UNREAD)
        await self._relay.quiet()
        if self._relay.skipping:
            return
        closes = [Close(STATEMENT, _UNREAD)]
        if not name:
            closes.append(Close(STATEMENT, b""))
            self._names.has_prepared("", None)
        try:
            await self._relay.ask(*closes, parse, *closes, sync=False)
        except TwinRefusal as error:
            self._relay.client.write(error.raw)
        else:
            self.refuse(UNREADABLE, name)

    # Bind

    def bind(self, raw: bytes) -> Work | None:
        found = _two_texts(raw)
        if found is None:
            self._relay.forward(Bind.kind, raw)
            return None
        portal, statement = found
        if portal.startswith(_NOT_THEIRS) or statement.startswith(_RESERVED):
            self.refuse(RESERVED_NAME)
            return None
        name = self._text(statement)
        prepared = self._names.find_prepared(name)
        if prepared is None and self._names.are_changing:
            return self._bind_later(raw)
        if prepared is None:
            self._forward_bind(raw, portal, None)
        elif prepared.statement.kind is Kind.VIEW and (refusal := self._view_refusal(prepared)):
            self.refuse(refusal, statement=prepared.statement)
        elif may_be_private(prepared.statement, self._parts.service, self._names):
            return self._bind_looked(raw, name, prepared)
        else:
            self._forward_bind(raw, portal, prepared)
        return None

    def _view_refusal(self, prepared: Prepared) -> Refusal | None:
        """A statement that is prepared once may be run often."""
        refusal = find_refusal(prepared.statement, self._parts.service, self._names)
        if refusal is None:
            self._names.makes_view(prepared.statement)
        return refusal

    async def _bind_later(self, raw: bytes) -> None:
        """Bind late: the meaning of a name is known when all that may change it has run."""
        await self._relay.quiet()
        if not self._relay.skipping and (work := self.bind(raw)) is not None:
            await work

    def _forward_bind(self, raw: bytes, name: bytes, prepared: Prepared | None) -> None:
        portal = Portal(effect=prepared.statement) if prepared is not None and prepared.is_as_written else None
        self._send_bind(raw, name, portal)

    def _send_bind(self, raw: bytes, name: bytes, portal: Portal | None) -> None:
        settle = self._names.bind(self._text(name), portal)
        self._relay.send(raw, Expected(Bind.kind, then=settle if name else self._relay.unnamed.binding(settle)))

    async def _bind_looked(self, raw: bytes, name: str, prepared: Prepared) -> None:
        await self._relay.quiet()
        if self._relay.skipping:
            return
        if self._names.find_prepared(name) is not prepared:
            await self._bind_later(raw)  # its Parse has failed
            return
        bind = Bind.decode(raw)
        private_request = self._asked(bind, prepared)
        if private_request is None or self._is_bound_to_fail(prepared.statement):
            self._forward_bind(raw, bind.portal, prepared)
            return
        try:
            await self._relay.learn_lexis()  # the encoding of values and labels may have been set in this pipeline
            if bind.portal and prepared.statement.names_prepared:  # a portal that exists is told before the charge
                await self._relay.ask(bind, Close(PORTAL, bind.portal), sync=False)
            answered = await answer_private(self._parts.private, private_request, sync=False)
            if answered is None:
                self._forward_bind(raw, bind.portal, prepared)
            else:
                self._bind_answered(bind, prepared.statement.kind, answered)
        except TwinRefusal as error:
            self._relay.client.write(error.raw)
        except Refusal as refusal:
            self.refuse(refusal, statement=prepared.statement)

    def _is_bound_to_fail(self, statement: Statement) -> bool:
        """Tell whether PostgreSQL refuses any such statement now; an Execute in the same pipeline may change it."""
        if self._has_executed:
            return False
        return self._relay.state == FAILED or (self._relay.state == IDLE and needs_transaction(statement))

    def _asked(self, bind: Bind, prepared: Prepared) -> PrivateRequest | None:
        """Return what a Bind asks for; None for EXECUTE of what needs no look."""
        statement = prepared.statement
        formats = bind.result_formats if statement.kind in (Kind.QUERY, Kind.EXECUTE) else ()
        if statement.names_prepared:
            private_request = request_of_execute(statement, self._names, self._relay.codec)
            return private_request and replace(private_request, result_formats=formats)
        around = split_around(statement)
        if statement.kind is Kind.QUERY:
            place = statement.start if prepared.is_as_written else None
            request = PrivateRequest(statement, around, place, bind.statement, bind=bind, result_formats=formats)
            return replace(request, literals=prepared.literals)
        place = None if around is None else statement.start + len(around.head)
        return PrivateRequest(statement, around, place, types=prepared.types, bind=bind)

    def _bind_answered(self, bind: Bind, kind: Kind, answered: Answered) -> None:
        """Bind the client's portal to the outer statement, so that all that follows is the twin's own business."""
        codec = self._relay.codec
        is_ready = answered.is_older or (kind is Kind.QUERY and answered.is_parsed)
        messages = [] if is_ready else self._outer(kind, answered)
        for message in messages:
            self._relay.send(message.encode(), Expected(message.kind, only_errors))
        notices = b"".join(notice_report(notice, codec) for notice in answered.notices)
        columns = in_formats(answered.columns, bind.result_formats) if kind in (Kind.QUERY, Kind.EXECUTE) else None
        self._send_bind(answered.bound(bind, kind, codec).encode(), bind.portal, Portal(columns, notices))
        self._relay.send(Close(STATEMENT, OUTER).encode(), Expected(Close.kind, swallow))

    def _outer(self, kind: Kind, answered: Answered) -> list[Message]:
        """The whole statement, where what was compared is not all of it or cannot take parameters."""
        if kind in (Kind.QUERY, Kind.DECLARE):
            text = answered.with_parameters()
            types = answered.parameters.types + (TEXT_ARRAY_OID,) * len(answered.arrays)
        else:
            text, types = answered.with_literals(self._relay.codec), ()
        return [Close(STATEMENT, OUTER), Parse(OUTER, encoded(text, self._relay.codec), types)]

    # Describe, Execute, Close, Sync

    def describe(self, raw: bytes) -> Work | None:
        name = raw[6:-1]
        if raw[5:] == _DESCRIBES_UNNAMED and not self._has_unnamed:
            return self._without_portal(self.describe, raw, Describe(PORTAL, NO_PORTAL))
        portal = self._names.find_portal(self._text(name)) if raw[5:6] == PORTAL else None
        if name.startswith(_NOT_THEIRS):
            self.refuse(RESERVED_NAME)
        elif portal is not None and portal.columns is not None:
            self._relay.send(raw, Expected(Describe.kind, described_as(portal.columns)))
        else:
            self._relay.forward(Describe.kind, raw)
        return None

    def execute(self, raw: bytes) -> Work | None:
        name = raw[5:].partition(b"\0")[0]
        if not name and len(raw) == _EXECUTES_UNNAMED and not self._has_unnamed:
            return self._without_portal(self.execute, raw, Execute(NO_PORTAL))
        portal = self._names.find_portal(self._text(name))
        self._has_executed = True
        if name.startswith(_NOT_THEIRS):
            self.refuse(RESERVED_NAME)
        elif portal is None:
            self._relay.forward(Execute.kind, raw)
        else:
            self._relay.send(raw, Expected(Execute.kind, executed(portal), ROWS, self._after(portal)))
        return None

    @property
    def _has_unnamed(self) -> bool:
        """Return whether an Execute of the unnamed portal meets one that a Bind has made, or is skipped."""
        return self._relay.unnamed.is_bound or self._relay.unnamed.is_awaited

    async def _without_portal(self, again: Callable[[bytes], Work | None], raw: bytes, instead: Message) -> None:
        """The twin says that there is no unnamed portal, unless a Bind turns out to have made it."""
        await self._relay.quiet()
        if self._relay.skipping:
            return
        if self._has_unnamed:
            again(raw)
        else:
            self._relay.send(instead.encode(), Expected(instead.kind, no_portal))

    def _after(self, portal: Portal) -> Settle | None:
        effect = portal.effect
        if effect is None:
            return None
        self._names.pending += 1

        def then(fate: Fate) -> None:
            self._names.pending -= 1
            if fate is Fate.DONE:
                effect_of(effect, self._names, self._relay.lexis.literals)

        return then

    def close(self, raw: bytes) -> None:
        name = raw[6:-1]
        if name.startswith(_NOT_THEIRS):
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
        """A name of the client; what its encoding cannot read stays as different as it was sent."""
        return name.decode(self._relay.codec, "surrogateescape")


def _two_texts(raw: bytes) -> tuple[bytes, bytes] | None:
    """The two texts that a Parse or a Bind begins with, without a copy of the rest; None where they do not end."""
    first = raw.find(b"\0", HEADER_SIZE)
    second = -1 if first < 0 else raw.find(b"\0", first + 1)
    return None if second < 0 else (raw[HEADER_SIZE:first], raw[first + 1 : second])
