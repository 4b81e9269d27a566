"""Relay messages to the twin and replies to the client: each reply finds the message that it answers.

Runs of replies that need no look are passed on in one piece. Messages of our own stand in the same queue; the client
sees nothing of them.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from proxy.metrics import RELAYED
from proxy.session.classify import LexicalSettings
from proxy.session.errors import TwinChanges, fatal, find_denial, is_cancelled, is_fatal, refusal_report, tells_of_crash
from proxy.session.interfaces import ClientPort, RelayOwner
from proxy.session.prepared_statements import UnnamedPortal
from proxy.session.replies import ENDS, PASSED, Expected, Fate, Message, Replies, TwinLost, TwinRefusal, swallow
from proxy.turns import Turn
from proxy.twin.link import Greeting, Link
from proxy.wire.backend import (
    CopyBothResponse,
    CopyInResponse,
    DataRow,
    ErrorResponse,
    NoticeResponse,
    NotificationResponse,
    ParameterStatus,
    ReadyForQuery,
)
from proxy.wire.buffer import Frame, FrameBuffer
from proxy.wire.codec import ProtocolViolation
from proxy.wire.frontend import PORTAL, STATEMENT, Bind, Close, CopyFail, Execute, Flush, Parse, Query, Sync
from rules.refusal import Interrupted

_SYNC: Final = Sync().encode()
_FLUSH: Final = Flush().encode()
_NOTHING_TO_COPY: Final = CopyFail(b"COPY FROM is not supported").encode()
_ENDS_BY_READY: Final = frozenset({Query.kind, Sync.kind})
_COPY_IN: Final = frozenset({CopyInResponse.kind, CopyBothResponse.kind})
_NONE: Final[frozenset[bytes]] = frozenset()
_MOST_EXPECTED: Final = 4_000  # messages that the twin owes replies to, before the client is held
_TOO_LARGE: Final = ("54000", "terminating connection: a message of the twin exceeds the size limit")
_LEXIS: Final = b"_ng_lexis"
_LEXIS_SQL: Final = (
    b"SELECT n.name, pg_catalog.current_setting(n.name) FROM pg_catalog.unnest(ARRAY['client_encoding', "
    b"'standard_conforming_strings', 'TimeZone', 'DateStyle', 'IntervalStyle']) AS n(name)"
)
_ROLES: Final = b"_ng_roles"
_ROLES_SQL: Final = b"SELECT EXISTS (SELECT FROM pg_catalog.pg_db_role_setting AS s WHERE s.setrole <> 0)"


class Relay:
    """The twin's side of one session. It is the receiver of its link."""

    def __init__(
        self,
        link: Link,
        client: ClientPort,
        greeting: Greeting,
        changes: TwinChanges,
        *,
        closed_tables: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        self.link, self.client, self.changes, self._closed_tables = link, client, changes, closed_tables
        self.owner: RelayOwner | None = None
        self.state = b"I"  # of the transaction, as the last ReadyForQuery said
        self.skipping = False  # after an error, up to the client's next Sync
        self.is_private = False  # something since the last ReadyForQuery was answered by the proxy
        self.has_farewell = False  # the twin has said why it ends the session
        self.last_words = b""  # of a twin that crashes, which the client gets if its session ends with it
        self.unnamed_parse = b""  # of the unnamed statement, as it was sent to the twin
        self.has_hidden_state = False  # something was run that may have left what no catalog of the twin lists
        self.lexis = LexicalSettings()
        self._reported = self.lexis  # as of the last ReadyForQuery, which the twin's reports stand before
        self._may_have_set = False  # something has run since then, and may have changed settings unreported
        self.is_inside_message = False  # the client has been given a part of one
        self.paused_since: float | None = None  # since when the client reads nothing
        self.busy_since: float | None = None  # since when the twin has run what it runs now
        self.quiet_since = asyncio.get_running_loop().time()  # since when it owes nothing, if it does not
        self.batch_since: float | None = None  # when the first message after the last ReadyForQuery was sent
        self.unnamed = UnnamedPortal()
        self._expected: deque[Expected] = deque()
        self._is_full = False
        self._overdue: Interrupted | None = None  # why we have asked the twin to cancel what it runs
        self._unasked: Frame | None = None  # an error that no message has caused yet
        self._quiet: asyncio.Future[None] | None = None
        self._loop = asyncio.get_running_loop()
        self._is_lost = self.was_busy = False
        for report in greeting.reports:
            self._note_status(report)

    @property
    def codec(self) -> str:
        """Of the client's encoding."""
        return self.lexis.codec

    @property
    def is_quiet(self) -> bool:
        """Return whether the twin owes nothing."""
        return not self._expected

    @property
    def knows_lexis(self) -> bool:
        """Return whether `lexis` is what the next text will be read by."""
        return self.is_quiet and not self._may_have_set

    def send(self, raw: bytes, expected: Expected) -> None:
        """One message, and what is to be done with its replies."""
        if not self._expected:
            self.busy_since, self._overdue = self._loop.time(), None
            if self.batch_since is None:
                self.batch_since = self.busy_since
            if self.state == b"I":
                self.changes.begin()
        self._expected.append(expected)
        if expected.kind == Query.kind:
            self.unnamed.queried()
            self.unnamed_parse = b""
        elif expected.kind == Sync.kind:
            self.unnamed.synced()
        self._may_have_set = self._may_have_set or expected.kind == Execute.kind
        self.link.write(raw)
        if len(self._expected) > _MOST_EXPECTED and not self._is_full:
            self._is_full = True
            self.hold()
            if expected.kind not in _ENDS_BY_READY:
                self.flush()  # the twin would wait for a Sync with its last replies, and the client cannot send one
        if self._unasked is not None:
            self._loop.call_soon(self._fail_next)  # when all is sent that PostgreSQL skips with it

    def forward(self, kind: bytes, raw: bytes) -> None:
        """A message of the client as it came."""
        self.send(raw, Expected(kind))

    def sync(self, raw: bytes = _SYNC, expected: Expected | None = None) -> None:
        """A Sync: of the client, or ours between its statements."""
        self.skipping = False
        self.send(raw, expected or Expected(Sync.kind))

    def tell(self, notice: bytes) -> None:
        """Say what a client can do without: between two messages of the twin, and if it does not read too slowly."""
        if self.paused_since is None and not self.is_inside_message:
            self.client.write(notice)

    def end_overdue(self, reason: Interrupted) -> None:
        """Cancel what the twin runs, for a reason of ours that the client gets to read."""
        self._overdue = reason
        self.link.cancel()

    def flush(self) -> None:
        """Ask for the replies that the twin still holds back."""
        self.link.write(_FLUSH)

    async def quiet(self) -> None:
        """Wait until the twin owes nothing. A Flush that comes after ReadyForQuery would end its idle time-outs."""
        while self._expected:
            if self._expected[-1].kind not in _ENDS_BY_READY:
                self.flush()
            if self._quiet is None:
                self._quiet = self._loop.create_future()
            await self._quiet
        self._check_alive()

    async def learn_lexis(self) -> None:
        """Wait until `lexis` is what the next text will be read by; raises TwinRefusal where it cannot be asked.

        The twin reports settings just before ReadyForQuery. Inside a pipeline they are asked.
        """
        await self.quiet()
        if not self._may_have_set or self.skipping:
            return
        runs = Bind(_LEXIS, _LEXIS), Execute(_LEXIS), Close(PORTAL, _LEXIS), Close(STATEMENT, _LEXIS)
        replies = await self.ask(Close(STATEMENT, _LEXIS), Parse(_LEXIS, _LEXIS_SQL), *runs, sync=False)
        for frame in replies[3][:-1]:  # the last is CommandComplete
            name, value = DataRow.decode(frame.raw).values
            self.lexis = self.lexis.noting((name or b"").decode(), (value or b"").decode("utf-8", "surrogateescape"))
        self._may_have_set = False

    async def ask(self, *messages: Message, sync: bool) -> list[list[Frame]]:
        """Send messages of our own and return the replies of each; raises TwinRefusal.

        Without `sync` they are part of the client's pipeline: their failure makes the twin skip to its next Sync.
        """
        self._check_alive()
        replies = Replies(self._loop)
        for message in messages:
            self.send(message.encode(), Expected(message.kind, replies.listen()))
        if sync:
            self.sync(expected=Expected(Sync.kind, swallow, then=replies.end))
        else:
            self._expected[-1].then = replies.end
            self.flush()
        await replies.ended
        self._check_alive()
        if replies.error is not None:
            raise TwinRefusal(replies.error)
        return replies.replies

    async def has_own_settings(self) -> bool:
        """Ask first of all whether the session may have begun with settings that an analyst has left for it."""
        ends = Close(PORTAL, _ROLES), Close(STATEMENT, _ROLES)
        try:
            replies = await self.ask(Parse(_ROLES, _ROLES_SQL), Bind(_ROLES, _ROLES), Execute(_ROLES), *ends, sync=True)
        except TwinRefusal:  # by a time-out, say
            return True
        return DataRow.decode(replies[2][0].raw).values[0] != b"f"

    def adopt(self, link: Link, greeting: Greeting) -> None:
        """Go on with a fresh connection in the place of one that was lost while nothing was going on."""
        self.link, link.receiver = link, self
        self.state, self.skipping, self.is_private, self.is_inside_message = b"I", False, False, False
        self.last_words, self._is_lost, self._may_have_set, self._unasked = b"", False, False, None
        self.lexis = self._reported = LexicalSettings()
        self.unnamed = UnnamedPortal()
        for report in greeting.reports:
            self._note_status(report)
        if self.paused_since is not None:
            link.pause_reading()

    def _check_alive(self) -> None:
        if self._is_lost:
            raise TwinLost

    # What the link says: Receiver.

    def received(self, buffer: FrameBuffer) -> bool:
        turn = Turn()
        try:
            passed = list(self._passed(buffer, turn))
        except ProtocolViolation:
            self.client.close(fatal(*_TOO_LARGE))
            self.link.abort()
            return False
        self.is_inside_message = buffer.is_inside
        if passed:
            self.client.write(b"".join(passed))
        return turn.is_over

    def hold(self) -> None:
        if self.owner is not None:
            self.owner.hold()

    def go_on(self) -> None:
        if self.owner is not None:
            self.owner.go_on()

    def lost(self) -> None:
        self._is_lost, self.was_busy = True, not self.is_quiet
        while self._expected:
            self._end(Fate.SKIPPED)
        if self.owner is not None:
            self.owner.twin_lost()

    def _passed(self, buffer: FrameBuffer, turn: Turn) -> Iterator[bytes]:
        """Yield what the client gets of the bytes that are here, until the turn is over."""
        while not turn.is_over:
            first = self._expected[0] if self._expected else None
            passes = _NONE if first is None else first.passes if first.edit else PASSED[first.kind]
            run = buffer.next_run(passes) if passes or buffer.is_inside else b""
            if run:
                turn.took(len(run))
                yield run
            elif (frame := buffer.next_frame()) is not None:
                turn.took(len(frame.raw))
                yield self._heard(frame, first)
            else:
                return

    def pause_reading(self) -> None:
        """The client reads too slowly: what the twin waits for meanwhile is no time of its own."""
        self.paused_since = self._loop.time()
        self.link.pause_reading()

    def resume_reading(self) -> None:
        if self.paused_since is not None and self.busy_since is not None:
            self.busy_since += self._loop.time() - max(self.paused_since, self.busy_since)
        self.paused_since = None
        self.link.resume_reading()

    def _heard(self, frame: Frame, first: Expected | None) -> bytes:
        """One reply; returns what the client gets of it."""
        match frame.kind:
            case ParameterStatus.kind:
                self._note_status(frame.raw)
                return frame.raw
            case NoticeResponse.kind | ErrorResponse.kind if first is None and tells_of_crash(frame.raw):
                self.last_words = frame.raw if frame.kind == NoticeResponse.kind else b""  # an error is said by us
                return b""
            case NotificationResponse.kind:
                return b""  # LISTEN is accepted, and nobody can notify
            case kind if kind in _COPY_IN:
                self.link.write(_NOTHING_TO_COPY)
                return b""
            case ErrorResponse.kind if is_fatal(frame.raw):
                self.has_farewell = True
                return frame.raw
            case ErrorResponse.kind if first is None:  # a time-out that PostgreSQL has noticed at a Flush
                self._unasked = frame
                return b""
            case ErrorResponse.kind if first is not None:
                return self._failed(self._reworded(frame), first)
        if first is None:
            return frame.raw
        said = frame.raw if first.edit is None else first.edit(frame)
        if frame.kind in ENDS[first.kind]:
            self._ended(frame)
        return said

    def _note_status(self, raw: bytes) -> None:
        """Follow what the reading of the client's texts depends on."""
        if raw[:1] == ParameterStatus.kind:
            status = ParameterStatus.decode(raw)
            self.lexis = self._reported = self._reported.noting(status.name, status.value)

    def _ended(self, frame: Frame) -> None:
        is_ready = frame.kind == ReadyForQuery.kind
        if is_ready:
            self.state = frame.raw[5:6]
            self._note_time(self._expected[0])
        self._end(Fate.DONE)
        if is_ready:
            self.lexis = self._reported  # a value that is again what it was is not reported
            self._may_have_set = bool(self._expected)
            self.batch_since = self.busy_since
            if self.owner is not None:
                self.owner.ready()

    def _note_time(self, ended: Expected) -> None:
        """A batch of the client's own is done; what the twin was asked by us in between is a part of a private one."""
        if ended.edit is not swallow:
            if not self.is_private and self.batch_since is not None:
                RELAYED.observe(self._loop.time() - self.batch_since)
            self.is_private = False

    def _failed(self, frame: Frame, first: Expected) -> bytes:
        """PostgreSQL skips what follows in a pipeline, and so do the replies that we expect."""
        said = self.guarded(frame.raw) if first.edit is None else first.edit(frame)
        if first.kind in _ENDS_BY_READY:
            return said
        self._end(Fate.FAILED)
        while self._expected and self._expected[0].kind != Sync.kind:
            self._end(Fate.SKIPPED)
        self.skipping = not self._expected
        return said

    def _fail_next(self) -> None:
        frame, self._unasked = self._unasked, None
        if frame is not None and self._expected:
            self.client.write(self._failed(frame, self._expected[0]))

    def _reworded(self, frame: Frame) -> Frame:
        if self._overdue is None or not is_cancelled(frame.raw):
            return self.changes.reworded(frame)
        return Frame(frame.kind, refusal_report(self._overdue, self.codec))

    def guarded(self, raw: bytes) -> bytes:
        """An error of the twin, in our words where it is about what is protected."""
        refusal = find_denial(raw, self._closed_tables())
        if refusal is None:
            return raw
        if self.owner is not None:
            self.owner.denied(refusal)
        return refusal_report(refusal, self.codec)

    def _end(self, fate: Fate) -> None:
        ended = self._expected.popleft()
        if self._is_full and len(self._expected) <= _MOST_EXPECTED // 2:
            self._is_full = False
            self.go_on()
        self.quiet_since = self._loop.time()
        self.busy_since = self.quiet_since if self._expected else None
        if ended.then is not None:
            ended.then(fate)
        if not self._expected and self._quiet is not None:
            if not self._quiet.done():  # whoever waited may have been cancelled, when the client left
                self._quiet.set_result(None)
            self._quiet = None
