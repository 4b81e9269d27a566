"""The simple protocol: a Query is forwarded as it came, unless a statement in it needs a look.

What PostgreSQL does with a string of several statements is kept. Inside a transaction they run one by one; outside,
they are one implicit transaction and stay one Query, with private statements answered beforehand.
"""

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from typing import Any, Final

from proxy.session.classify import (
    LEXIS_CHANGED,
    NAMES,
    PERIOD_ENDED,
    READS,
    UNREADABLE,
    are_plain,
    effect_of,
    find_refusal,
    may_be_private,
    may_touch,
    names_view,
    needs_transaction,
)
from proxy.session.errors import REFUSED_SQL, notice_report, nowhere
from proxy.session.multi_statement import RewrittenString, Statementwise
from proxy.session.private_request import Answered, PrivateRequest, request_of_execute
from proxy.session.replies import ROWS, Expected, TwinRefusal, encoded, swallow
from proxy.session.session_context import SessionContext, is_lexical
from proxy.wire.backend import FAILED, IDLE, ErrorResponse, ReadyForQuery, RowDescription
from proxy.wire.frontend import PORTAL, STATEMENT, Bind, Close, Execute, Parse, Query
from rules.refusal import NotSupported, Refusal
from rules.sql.statement import Kind, Reading, Statement, split_around

Work = Coroutine[Any, Any, None]

_CLOSE_UNNAMED: Final = Close(STATEMENT, b"").encode()
_UNREAD: Final = b"_ng_unread"
_EARLY: Final = b"_ng_early"  # stays until the next one: it is closed with the session
_SEVERAL: Final = "cannot insert multiple commands into a prepared statement"

_VIEW_BEFORE: Final = NotSupported(
    "a temporary view was changed earlier in the same query string",
    hint="Send CREATE VIEW and DROP VIEW in separate query strings.",
)


class Simple:
    """The Query messages of one session. None of them comes here while the twin skips."""

    def __init__(self, parts: SessionContext) -> None:
        self._parts, self._relay, self._names = parts, parts.relay, parts.names

    def query(self, raw: bytes) -> Work | None:
        reading = self._parts.find_reading(raw[5:-1])
        if reading is None:
            return self._read_and_query(raw)
        if not self._names.are_changing and are_plain(reading, self._parts.service, self._names):
            settle = self._names.prepare("", None)  # a Query ends the unnamed statement
            self._relay.send(raw, Expected(Query.kind, then=settle))
            return None
        return self._query(raw, reading)

    async def _read_and_query(self, raw: bytes) -> None:
        await self._relay.quiet()  # the encoding that the text is in is known when all earlier replies are
        if self._relay.skipping:
            return
        try:
            reading = await self._parts.read(raw[5:-1])
        except TwinRefusal as error:
            self._relay.client.write(error.raw)
        except Refusal as refusal:
            await self.refuse(refusal)
        else:
            await self._query(raw, reading)

    async def refuse(self, refusal: Refusal, statement: Statement | None = None, *, ends_string: bool = True) -> bool:
        """Let the twin fail, and the client read why."""
        replies = self._replies(nowhere, ends_string=ends_string)
        replies.refusals[0] = self._parts.report(refusal, statement)
        return await self._send(REFUSED_SQL.encode(), replies)

    async def _query(self, raw: bytes, reading: Reading) -> None:
        await self._relay.quiet()
        if self._relay.skipping:
            return
        if are_plain(reading, self._parts.service, self._names):
            self._names.has_prepared("", None)
            self._relay.forward(Query.kind, raw)
            return
        self._relay.send(_CLOSE_UNNAMED, Expected(Close.kind, swallow))  # as a Query does, even one that is no SQL
        if reading.unreadable:
            await self._unreadable(raw[5:-1])
            return
        text = raw[5:-1].decode(self._relay.codec)
        rest, goes_on = list(reading.statements), True
        lexis = self._relay.lexis
        while rest and goes_on:
            if self._relay.lexis != lexis and is_lexical(text[rest[0].start :].encode()):
                await self.refuse(
                    LEXIS_CHANGED, rest[0]
                )  # the twin would read the rest by other settings than it was read by
                return
            if self._parts.private.holds_unpaid:  # a string of many statements runs for as long as it likes
                await self.refuse(PERIOD_ENDED, rest[0])
                return
            count = _together(rest) if self._relay.state == IDLE else 1
            block, rest = rest[:count], rest[count:]
            if count > 1:
                goes_on = await self._block(block, text, ends_string=not rest)
            else:
                goes_on = await self._one(block[0], ends_string=not rest)

    # One statement, in a Query of its own

    async def _one(self, statement: Statement, *, ends_string: bool) -> bool:
        """Run one statement; False: it failed, and nothing after it may run."""
        if refusal := find_refusal(statement, self._parts.service, self._names):
            return await self.refuse(refusal.moved(statement.start), statement, ends_string=ends_string)
        private_request = self._asked(statement)
        is_too_early = self._relay.state == IDLE and needs_transaction(statement)
        if private_request is None or is_too_early or self._relay.state == FAILED:
            return await self._forward(statement, ends_string=ends_string)
        try:
            answered = await self._parts.private.answer(private_request, sync=True)
            if answered is None:
                return await self._forward(statement, ends_string=ends_string)
            replies = self._replies(nowhere, ends_string=ends_string)
            text = self._outer(answered, statement, 0, replies)
            return await self._send(encoded(text, self._relay.codec), replies)
        except TwinRefusal as error:
            self._relay.client.write(error.raw + ReadyForQuery(self._relay.state).encode())
            return False
        except Refusal as refusal:
            return await self.refuse(refusal, statement, ends_string=ends_string)

    def _asked(self, statement: Statement) -> PrivateRequest | None:
        """Return what a statement asks for; None where the twin may have it."""
        if not may_be_private(statement, self._parts.service, self._names):
            return None
        if statement.names_prepared:
            return request_of_execute(statement, self._names, self._relay.codec)
        around = split_around(statement)
        return PrivateRequest(statement, around, None if around is None else statement.start + len(around.head))

    async def _forward(self, statement: Statement, *, ends_string: bool) -> bool:
        replies = self._replies(lambda position: position + statement.start, ends_string=ends_string)
        self._note_effect(statement, 0, replies)
        self._names.makes_view(statement)
        return await self._send(encoded(statement.text, self._relay.codec), replies)

    def _outer(self, answered: Answered, statement: Statement, number: int, replies: Statementwise) -> str:
        """Return what runs in place of a private statement, as the number-th of its Query."""
        if statement.kind in (Kind.QUERY, Kind.EXECUTE):
            replies.columns[number] = RowDescription(answered.columns)
        replies.notices[number] = b"".join(notice_report(notice, self._relay.codec) for notice in answered.notices)
        return answered.with_literals(self._relay.codec)

    def _note_effect(self, statement: Statement, number: int, replies: Statementwise) -> None:
        if statement.kind in NAMES:
            replies.effects[number] = lambda: effect_of(statement, self._names)

    # Several statements outside a transaction: one implicit transaction, in one Query

    async def _block(self, statements: Sequence[Statement], text: str, *, ends_string: bool) -> bool:
        rewritten = RewrittenString()
        replies = self._replies(rewritten.place, ends_string=ends_string)
        at = statements[0].start
        has_set = has_view = False
        early: dict[str, Statement] = {}
        for number, statement in enumerate(statements):
            rewritten.keep(text[at : statement.start], at)
            if has_view and statement.kind in READS and names_view(statement, self._names):
                refusal = _VIEW_BEFORE.moved(statement.start)
                replies.refusals[number] = self._parts.report(refusal, statement)
                rewritten.put(REFUSED_SQL)
                break
            instead = await self._instead(statement, number, replies, early, has_set=has_set)
            if instead is None:
                rewritten.keep(statement.text, statement.start)
            else:
                rewritten.put(instead)
            if number in replies.refusals:
                break  # it fails there: what follows never runs
            at = statement.start + len(statement.text)
            has_view = has_view or statement.kind is Kind.VIEW
            has_set = has_set or bool(statement.settings) or statement.kind is Kind.DISCARD
        return await self._send(encoded(rewritten.text, self._relay.codec), replies)

    async def _instead(
        self, statement: Statement, number: int, replies: Statementwise, early: dict[str, Statement], *, has_set: bool
    ) -> str | None:
        """Return what stands in the string instead of a statement; None: the statement itself.

        `early` has what the string prepares before the twin knows of it.
        """
        try:
            if refusal := find_refusal(statement, self._parts.service, self._names):
                raise refusal.moved(statement.start)
            private_request = self._asked(statement) or await self._asked_early(statement, early)
            if private_request is not None and has_set:
                await self._check_public(private_request)
            elif (
                private_request is not None
                and (answered := await self._parts.private.answer(private_request, sync=True)) is not None
            ):
                text = self._outer(answered, statement, number, replies)
                encoded(text, self._relay.codec)
                return text
        except TwinRefusal as error:
            replies.refusals[number] = error.raw
            return REFUSED_SQL
        except Refusal as refusal:
            replies.refusals[number] = self._parts.report(refusal, statement)
            return REFUSED_SQL
        self._note_effect(statement, number, replies)
        self._names.makes_view(statement)
        self._note_early(statement, early)
        return None

    def _note_early(self, statement: Statement, early: dict[str, Statement]) -> None:
        """PREPARE and DEALLOCATE in the same string; a name that is taken makes PREPARE fail."""
        name = statement.name or ""
        if statement.kind is Kind.PREPARE and self._names.find_prepared(name) is None:
            early[name] = statement
        elif statement.kind is Kind.DEALLOCATE:
            for dropped in [name] if name else list(early):
                early.pop(dropped, None)

    async def _asked_early(self, statement: Statement, early: dict[str, Statement]) -> PrivateRequest | None:
        """Return what EXECUTE asks for whose PREPARE stands in the same string: it is prepared under a name of ours."""
        prepared = early.get(statement.name or "") if statement.kind is Kind.EXECUTE else None
        if prepared is None or not may_touch(prepared, self._parts.service, self._names):
            return None
        types = f" ({', '.join(prepared.parameter_types)})" if prepared.parameter_types else ""
        text = encoded(f"PREPARE {_EARLY.decode()}{types} AS {prepared.query}", self._relay.codec)
        ends = Close(PORTAL, _UNREAD), Close(STATEMENT, _UNREAD)
        try:
            await self._relay.ask(
                Close(STATEMENT, _EARLY),
                Parse(_UNREAD, text),
                Bind(_UNREAD, _UNREAD),
                Execute(_UNREAD),
                *ends,
                sync=True,
            )
        except TwinRefusal:
            return None  # PREPARE fails, and what follows never runs
        inside = replace(prepared, kind=Kind.QUERY, text=prepared.query, start=0, name=None, query="")
        return PrivateRequest(inside, split_around(inside), None, _EARLY, arguments=statement.arguments)

    async def _check_public(self, private_request: PrivateRequest) -> None:
        """Refuse a private statement after a SET: the setting is not in force yet when it would be planned."""
        try:
            await self._parts.private.answer(replace(private_request, around=None), sync=True)
        except Refusal:
            raise NotSupported(
                "a setting was changed earlier in the same query string",
                hint="Send SET in a separate query string.",
            ) from None

    # A text that we cannot read

    async def _unreadable(self, text: bytes) -> None:
        """The twin says what is wrong with it. What it can read is refused, and never run."""
        close = Close(STATEMENT, _UNREAD)
        try:
            await self._relay.ask(close, Parse(_UNREAD, text), close, sync=True)
        except TwinRefusal as error:
            if ErrorResponse.decode(error.raw).fields.get("M") != _SEVERAL:
                self._relay.client.write(error.raw + ReadyForQuery(self._relay.state).encode())
                return
        await self.refuse(UNREADABLE)

    def _replies(self, place: Callable[[int], int | None], *, ends_string: bool) -> Statementwise:
        return Statementwise(self._relay.guarded, place, ends_string)

    async def _send(self, text: bytes, replies: Statementwise) -> bool:
        self._names.has_prepared("", None)
        self._relay.send(Query(text).encode(), Expected(Query.kind, replies, ROWS))
        await self._relay.quiet()
        return not replies.has_failed


def _together(statements: Sequence[Statement]) -> int:
    """Return how many statements run as one implicit transaction: up to a BEGIN, which takes them in."""
    for number, statement in enumerate(statements, 1):
        if statement.transaction == "begin":
            return number
    return len(statements)
