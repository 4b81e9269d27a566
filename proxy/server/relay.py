"""What is sent to the twin and what comes back: replies find the message that they answer, and go to the client.

Runs of replies that need no look are passed on in one piece. Messages of our own stand in the same queue; the client
sees nothing of them.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

from proxy.server.encodings import find_codec
from proxy.server.ports import ClientPort
from proxy.server.replies import ENDS, PASSED, Expected, Fate, swallow
from proxy.server.reports import guarded, is_fatal
from proxy.twin.link import Greeting, Link
from proxy.wire.backend import (
    CopyBothResponse,
    CopyInResponse,
    ErrorResponse,
    NoticeResponse,
    NotificationResponse,
    ParameterStatus,
    ReadyForQuery,
)
from proxy.wire.buffer import Frame, FrameBuffer
from proxy.wire.frontend import Bind, Close, CopyFail, Describe, Execute, Flush, Parse, Query, Sync

Message = Parse | Bind | Describe | Execute | Close

_SYNC: Final = Sync().encode()
_FLUSH: Final = Flush().encode()
_NOTHING_TO_COPY: Final = CopyFail(b"COPY FROM is not supported").encode()
_ENDS_BY_READY: Final = frozenset({Query.kind, Sync.kind})
_COPY_IN: Final = frozenset({CopyInResponse.kind, CopyBothResponse.kind})


class TwinError(Exception):
    """The twin refused a message of our own; `raw` is its ErrorResponse, and the client's if it is the cause."""

    def __init__(self, raw: bytes) -> None:
        super().__init__(ErrorResponse.decode(raw).sqlstate)
        self.raw = raw


class TwinLost(Exception):
    """The connection to the twin is gone."""


class Owner(Protocol):
    """The session, as its relay sees it."""

    def hold(self) -> None:
        """The twin takes in no more for now."""

    def go_on(self) -> None: ...

    def ready(self) -> None:
        """A ReadyForQuery has come."""

    def twin_lost(self) -> None: ...


class Relay:
    """The twin's side of one session. It is the receiver of its link."""

    def __init__(self, link: Link, client: ClientPort, greeting: Greeting) -> None:
        self.link, self.client = link, client
        self.owner: Owner | None = None
        self.state = b"I"  # of the transaction, as the last ReadyForQuery said
        self.skipping = False  # after an error, up to the client's next Sync
        self.has_farewell = False  # the twin has said why it ends the session
        self.codec = "utf-8"  # of the client's encoding
        self.has_odd_strings = False  # standard_conforming_strings is off: a backslash escapes in every string
        self.busy_since: float | None = None  # since when the twin has run what it runs now
        self.batch_since: float | None = None  # when the first message after the last ReadyForQuery was sent
        self._expected: deque[Expected] = deque()
        self._quiet: asyncio.Future[None] | None = None
        self._loop = asyncio.get_running_loop()
        self._is_lost = False
        for report in greeting.reports:
            self._note_status(report)

    @property
    def is_quiet(self) -> bool:
        """Whether the twin owes nothing."""
        return not self._expected

    def send(self, raw: bytes, expected: Expected) -> None:
        """One message, and what is to be done with its replies."""
        if not self._expected:
            self.busy_since = self._loop.time()
            if self.batch_since is None:
                self.batch_since = self.busy_since
        self._expected.append(expected)
        self.link.write(raw)

    def forward(self, kind: bytes, raw: bytes) -> None:
        """A message of the client as it came."""
        self.send(raw, Expected(kind))

    def sync(self, raw: bytes = _SYNC, expected: Expected | None = None) -> None:
        """A Sync: of the client, or ours between its statements."""
        self.skipping = False
        self.send(raw, expected or Expected(Sync.kind))

    def flush(self) -> None:
        """Ask for the replies that the twin still holds back."""
        self.link.write(_FLUSH)

    async def quiet(self) -> None:
        """Wait until the twin owes nothing."""
        while self._expected:
            self.flush()
            if self._quiet is None:
                self._quiet = self._loop.create_future()
            await self._quiet
        self._check_alive()

    async def ask(self, *messages: Message, sync: bool) -> list[list[Frame]]:
        """Send messages of our own and return the replies of each; raises TwinError.

        Without `sync` they are part of the client's pipeline: their failure makes the twin skip to its next Sync.
        """
        self._check_alive()
        told = _Told(self._loop)
        for message in messages:
            self.send(message.encode(), Expected(message.kind, told.listen()))
        if sync:
            self.sync(expected=Expected(Sync.kind, swallow, then=told.end))
        else:
            self._expected[-1].then = told.end
            self.flush()
        await told.ended
        self._check_alive()
        if told.error is not None:
            raise TwinError(told.error)
        return told.replies

    def _check_alive(self) -> None:
        if self._is_lost:
            raise TwinLost

    # What the link says: Receiver.

    def received(self, buffer: FrameBuffer) -> None:
        passed: list[bytes] = []
        while True:
            first = self._expected[0] if self._expected else None
            run = b"" if first is None else buffer.next_run(first.passes if first.edit else PASSED[first.kind])
            if run:
                passed.append(run)
            elif (frame := buffer.next_frame()) is not None:
                passed.append(self._heard(frame, first))
            else:
                break
        if passed:
            self.client.write(b"".join(passed))

    def hold(self) -> None:
        if self.owner is not None:
            self.owner.hold()

    def go_on(self) -> None:
        if self.owner is not None:
            self.owner.go_on()

    def lost(self) -> None:
        self._is_lost = True
        while self._expected:
            self._end(Fate.SKIPPED)
        if self.owner is not None:
            self.owner.twin_lost()

    def _heard(self, frame: Frame, first: Expected | None) -> bytes:
        """One reply; returns what the client gets of it."""
        match frame.kind:
            case ParameterStatus.kind:
                self._note_status(frame.raw)
                return frame.raw
            case NotificationResponse.kind:
                return b""  # LISTEN is accepted, and nobody can notify
            case kind if kind in _COPY_IN:
                self.link.write(_NOTHING_TO_COPY)
                return b""
            case ErrorResponse.kind if first is None or is_fatal(frame.raw):
                self.has_farewell = True
                return frame.raw
            case ErrorResponse.kind if first is not None:
                return self._failed(frame, first)
        if first is None:
            return frame.raw
        said = frame.raw if first.edit is None else first.edit(frame)
        if frame.kind in ENDS[first.kind]:
            self._ended(frame)
        return said

    def _note_status(self, raw: bytes) -> None:
        """Follow what the reading of the client's texts depends on."""
        if raw[:1] != ParameterStatus.kind:
            return
        status = ParameterStatus.decode(raw)
        if status.name == "client_encoding":
            self.codec = find_codec(status.value) or "ascii"
        elif status.name == "standard_conforming_strings":
            self.has_odd_strings = status.value == "off"

    def _ended(self, frame: Frame) -> None:
        is_ready = frame.kind == ReadyForQuery.kind
        if is_ready:
            self.state = frame.raw[5:6]
        self._end(Fate.DONE)
        if is_ready:
            self.batch_since = self.busy_since
            if self.owner is not None:
                self.owner.ready()

    def _failed(self, frame: Frame, first: Expected) -> bytes:
        """PostgreSQL skips what follows in a pipeline, and so do the replies that we expect."""
        said = guarded(frame.raw, self.codec) if first.edit is None else first.edit(frame)
        if first.kind in _ENDS_BY_READY:
            return said
        self._end(Fate.FAILED)
        while self._expected and self._expected[0].kind != Sync.kind:
            self._end(Fate.SKIPPED)
        self.skipping = not self._expected
        return said

    def _end(self, fate: Fate) -> None:
        ended = self._expected.popleft()
        self.busy_since = self._loop.time() if self._expected else None
        if ended.then is not None:
            ended.then(fate)
        if not self._expected and self._quiet is not None:
            self._quiet.set_result(None)
            self._quiet = None


class _Told:
    """Collects the replies to messages of our own."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.replies: list[list[Frame]] = []
        self.error: bytes | None = None
        self.ended: asyncio.Future[None] = loop.create_future()

    def listen(self) -> Callable[[Frame], bytes]:
        replies: list[Frame] = []
        self.replies.append(replies)

        def edit(frame: Frame) -> bytes:
            if frame.kind == ErrorResponse.kind:
                self.error = frame.raw
            elif frame.kind != NoticeResponse.kind:
                replies.append(frame)
            return b""

        return edit

    def end(self, _: Fate) -> None:
        if not self.ended.done():
            self.ended.set_result(None)
