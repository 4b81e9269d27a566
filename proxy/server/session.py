"""One client's session: its messages in their order, to the twin or to the path of private statements."""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, Final

from proxy.log import event
from proxy.server.errors import SHUTDOWN, error_response, fatal
from proxy.server.extended import Extended
from proxy.server.judge import FUNCTION_CALL
from proxy.server.parts import Parts
from proxy.server.ports import ClientPort
from proxy.server.relay import TwinLost
from proxy.server.simple import Simple
from proxy.wire.backend import IDLE
from proxy.wire.codec import ProtocolViolation
from proxy.wire.frontend import (
    Bind,
    Close,
    CopyData,
    CopyDone,
    CopyFail,
    Describe,
    Execute,
    Flush,
    FunctionCall,
    Parse,
    Query,
    Sync,
    Terminate,
)

MOST_WAITING_BYTES: Final = 64 * 1024  # of messages behind one that takes its time, before the client is held
_COPY: Final = frozenset({CopyData.kind, CopyDone.kind, CopyFail.kind})
_TWIN_AWAY: Final = ("57P01", "the connection to the twin was lost; connect again")
_OUT_OF_TIME: Final = ("57014", "terminating connection: a statement ran out of time and did not stop")

Work = Coroutine[Any, Any, None]


class Session:
    """Relays, and answers. Messages are handled at once while nothing has to be awaited."""

    def __init__(self, client: ClientPort, parts: Parts, on_closed: Callable[[], None]) -> None:
        self._on_closed = on_closed
        self._client, self._parts, self._relay = client, parts, parts.relay
        self._extended, self._simple = Extended(parts), Simple(parts)
        self._waiting: deque[tuple[bytes, bytes]] = deque()
        self._waiting_bytes = 0
        self._task: asyncio.Task[None] | None = None
        self._holds = 0  # reasons for which the client must send nothing more
        self._is_draining = self._is_leaving = False
        self._handlers: dict[bytes, Callable[[bytes], Work | None]] = {
            Query.kind: self._simple.query,
            Parse.kind: self._extended.parse,
            Bind.kind: self._extended.bind,
            Describe.kind: self._extended.describe,
            Execute.kind: self._extended.execute,
            Close.kind: self._extended.close,
            Flush.kind: self._flush,
            FunctionCall.kind: self._function_call,
        }

    # What the client's socket says.

    def frame(self, kind: bytes, raw: bytes) -> None:
        if self._task is None:
            if (work := self._handle(kind, raw)) is not None:
                self._task = asyncio.create_task(self._work(work, kind, raw))
            return
        self._waiting.append((kind, raw))
        self._waiting_bytes += len(raw)
        if self._waiting_bytes - len(raw) <= MOST_WAITING_BYTES < self._waiting_bytes:
            self.hold()

    def pause_writing(self) -> None:
        self._relay.link.pause_reading()

    def resume_writing(self) -> None:
        self._relay.link.resume_reading()

    async def check_settings(self) -> None:
        """Before anything else: refuse what the client has set at its startup, if it cannot be."""
        await self._parts.private.check_settings()

    def cancel(self) -> None:
        """Stop what runs now, inside or on the twin; nothing, if nothing runs: a late cancel must not hit the next."""
        if not self.cancel_inside() and self._relay.busy_since is not None:
            self._relay.link.cancel()

    def cancel_inside(self) -> bool:
        """Stop what runs outside the twin; False: nothing does."""
        return self._parts.private.cancel()

    @property
    def is_busy(self) -> bool:
        """Whether the twin owes anything."""
        return not self._relay.is_quiet

    def drain(self) -> None:
        self._is_draining = True
        self._end_if_idle()

    def closed(self) -> None:
        if self._task is not None:
            self._task.cancel()
        self._relay.link.close()
        self._on_closed()  # while it is still known whether the twin is busy

    # What the relay says.

    def hold(self) -> None:
        """The client must wait."""
        self._holds += 1
        if self._holds == 1:
            self._client.pause_reading()

    def go_on(self) -> None:
        self._holds -= 1
        if not self._holds:
            self._client.resume_reading()

    def ready(self) -> None:
        """A ReadyForQuery has come."""
        if self._is_draining:
            asyncio.get_running_loop().call_soon(self._end_if_idle)  # the client gets it first

    def twin_lost(self) -> None:
        self._client.close(b"" if self._is_leaving or self._relay.has_farewell else fatal(*_TWIN_AWAY))

    # What the watchdog says.

    def check_time(self, limit_seconds: float, grace_seconds: float) -> None:
        """Cancel what has run on the twin for too long; end the session if it does not stop."""
        if self._relay.busy_since is None:
            return
        seconds = asyncio.get_running_loop().time() - self._relay.busy_since
        if seconds > limit_seconds + grace_seconds:
            self._client.close(fatal(*_OUT_OF_TIME))
        elif seconds > limit_seconds:
            self._relay.link.cancel()

    def terminate(self) -> None:
        """End the session from outside, as pg_terminate_backend does."""
        self._client.close(fatal(*SHUTDOWN))

    def _end_if_idle(self) -> None:
        if self._task is None and self._relay.is_quiet and self._relay.state == IDLE:
            self._client.close(fatal(*SHUTDOWN))

    # Messages

    def _handle(self, kind: bytes, raw: bytes) -> Work | None:
        """Deal with one message, or return what is still to be awaited."""
        if kind == Sync.kind:
            self._extended.sync(raw)
        elif kind == Terminate.kind:
            self._is_leaving = True
            self._relay.link.write(raw)  # the twin ends the connection when all before it is answered
        elif kind in _COPY or self._relay.skipping:
            pass  # PostgreSQL ignores them too: there is never a COPY FROM, and after an error nothing counts but Sync
        elif (handler := self._handlers.get(kind)) is None:
            self._relay.link.write(raw)  # no message of the protocol: the twin says so, and ends the session
        else:
            return self._tried(handler, kind, raw)
        return None

    def _tried(self, handler: Callable[[bytes], Work | None], kind: bytes, raw: bytes) -> Work | None:
        try:
            return handler(raw)
        except ProtocolViolation:
            self._relay.forward(kind, raw)  # malformed: the twin says what is wrong
            return None

    def _flush(self, raw: bytes) -> None:
        self._relay.link.write(raw)

    def _function_call(self, _: bytes) -> Work:
        return self._refuse_function_call()

    async def _refuse_function_call(self) -> None:
        await self._relay.quiet()
        if not self._relay.skipping:
            await self._simple.refuse(FUNCTION_CALL)

    async def _work(self, work: Work, kind: bytes, raw: bytes) -> None:
        """Await what one message needs, then handle those that came meanwhile."""
        try:
            await self._awaited(work, kind, raw)
            while self._waiting:
                kind, raw = self._waiting.popleft()
                self._waiting_bytes -= len(raw)
                if self._waiting_bytes <= MOST_WAITING_BYTES < self._waiting_bytes + len(raw):
                    self.go_on()
                if (more := self._handle(kind, raw)) is not None:
                    await self._awaited(more, kind, raw)
        except TwinLost:
            event("twin_lost")  # the client has been told
        except Exception as error:  # noqa: BLE001 - the last resort: logged without its text, and the client is told
            self._client.close(error_response(error, "FATAL").encode())
        finally:
            self._task = None
        if self._is_draining:
            self._end_if_idle()

    async def _awaited(self, work: Work, kind: bytes, raw: bytes) -> None:
        try:
            await work
        except ProtocolViolation:
            self._relay.forward(kind, raw)
