"""The simple protocol: a Query is forwarded as it came, unless a statement in it needs a look.

The statements of a string run one by one, as in PostgreSQL: what follows an error is neither run nor charged.
"""

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final

from proxy.session.answer_private import answer_private
from proxy.session.classify import (
    LEXIS_CHANGED,
    NAMES,
    PERIOD_ENDED,
    UNREADABLE,
    are_plain,
    effect_of,
    find_refusal,
    may_be_private,
    needs_transaction,
)
from proxy.session.errors import REFUSED_SQL, notice_report, nowhere
from proxy.session.multi_statement import ImplicitTransaction, StatementReplies
from proxy.session.private_request import OUTER, Answered, PrivateRequest, request_of_execute
from proxy.session.private_session import CANCELLED
from proxy.session.replies import ROWS, Expected, TwinRefusal, encoded, swallow
from proxy.session.session_context import SessionContext, is_lexical
from proxy.wire.backend import FAILED, IDLE, ErrorResponse, NoticeResponse, ReadyForQuery, RowDescription
from proxy.wire.frontend import STATEMENT, Close, Parse, Query
from rules.refusal import Refusal
from rules.sql.statement import Kind, Reading, Statement, split_around

Work = Coroutine[Any, Any, None]

_CLOSE_UNNAMED: Final = Close(STATEMENT, b"").encode()
_UNREAD: Final = b"_ng_unread"
_SEVERAL: Final = "cannot insert multiple commands into a prepared statement"


class Simple:
    """The Query messages of one session. None of them comes here while the twin skips."""

    def __init__(self, parts: SessionContext) -> None:
        self._parts, self._relay, self._names = parts, parts.relay, parts.names
        self._transaction = ImplicitTransaction(parts.relay)

    def query(self, raw: bytes) -> Work | None:
        if raw.find(b"\0", 5) != len(raw) - 1:
            self._relay.forward(Query.kind, raw)  # malformed: the twin says so
            return None
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
        replies.refusal = self._parts.report(refusal, statement)
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
        self._names.has_prepared("", None)
        if reading.unreadable:
            await self._unreadable(raw[5:-1])
            return
        text = raw[5:-1].decode(self._relay.codec)
        goes_on = await self._string(reading.statements, text)
        await self._transaction.leave(has_failed=not goes_on)

    async def _string(self, statements: Sequence[Statement], text: str) -> bool:
        """Run statements in their order; False: one failed, and nothing after it has run."""
        lexis = self._relay.lexis
        for number, statement in enumerate(statements, 1):
            if len(statements) > 1 and not await self._transaction.enter(statement):
                return False
            if not self._relay.lexis.cuts_as(lexis) and is_lexical(text[statement.start :].encode()):
                # the twin would read the rest by other settings than it was read by
                return await self.refuse(LEXIS_CHANGED, statement)
            if self._parts.private.holds_unpaid:  # a string of many statements runs for as long as it likes
                return await self.refuse(PERIOD_ENDED, statement)
            if self._parts.private.is_cancelled:  # between two statements, when nothing ran
                return await self.refuse(CANCELLED, statement)
            if not await self._one(statement, ends_string=number == len(statements)):
                return False
        return True

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
            answered = await answer_private(self._parts.private, private_request, sync=True)
            if answered is None:
                return await self._forward(statement, ends_string=ends_string)
            replies = self._replies(nowhere, ends_string=ends_string)
            text = self._outer(answered, statement, replies)
            has_run = await self._send(encoded(text, self._relay.codec), replies)
            if answered.is_older:
                await self._relay.ask(Close(STATEMENT, OUTER), sync=True)
            return has_run
        except TwinRefusal as error:
            return self._failed(error.raw)
        except Refusal as refusal:
            if self._relay.state == FAILED:  # by a message of ours, so the twin would say no more than that
                return self._failed(self._parts.report(refusal, statement))
            return await self.refuse(refusal, statement, ends_string=ends_string)

    def _failed(self, report: bytes) -> bool:
        """A message of ours has failed on the twin in place of the statement; the client gets this to read."""
        is_ready = not self._transaction.is_open
        self._relay.client.write(report + (ReadyForQuery(self._relay.state).encode() if is_ready else b""))
        return False

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
        if statement.kind in NAMES:
            replies.effect = lambda: effect_of(statement, self._names, self._relay.lexis.literals)
        elif statement.transaction == "begin":
            replies.effect = self._transaction.hand_over
        self._names.makes_view(statement)
        return await self._send(encoded(statement.text, self._relay.codec), replies)

    def _outer(self, answered: Answered, statement: Statement, replies: StatementReplies) -> str:
        """Return what runs in place of a private statement."""
        if statement.kind in (Kind.QUERY, Kind.EXECUTE):
            replies.columns = RowDescription(answered.columns)
        replies.notices = b"".join(notice_report(notice, self._relay.codec) for notice in answered.notices)
        return answered.with_literals(self._relay.codec)

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

    def _replies(self, place: Callable[[int], int | None], *, ends_string: bool) -> StatementReplies:
        return StatementReplies(self._transaction, self._relay.guarded, place, ends_string)

    async def _send(self, text: bytes, replies: StatementReplies) -> bool:
        self._names.has_prepared("", None)
        passes = ROWS - {NoticeResponse.kind} if self._transaction.is_open else ROWS
        self._relay.send(Query(text).encode(), Expected(Query.kind, replies, passes))
        await self._relay.quiet()
        return not replies.has_failed
