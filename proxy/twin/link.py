"""One raw connection to the twin, as the analyst's own role: bytes out, whole frames in."""

import asyncio
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol, cast

from proxy.turns import wait_for_turn
from proxy.wire.backend import BackendKeyData, ErrorResponse, ReadyForQuery
from proxy.wire.buffer import FrameBuffer
from proxy.wire.frontend import Terminate
from proxy.wire.startup import CancelRequest, StartupMessage

MOST_ROW_BYTES: Final = 1 << 31  # more than PostgreSQL sends; rows are passed on as they come
MOST_FRAME_BYTES: Final = 16 * 1024 * 1024  # of what is looked at as a whole, unless another limit is set
CANCEL_SECONDS: Final = 5  # most that a twin may take for a cancel request before its client goes on
UNSENT_BYTES: Final = 256 * 1024  # so much may wait for a busy twin before the client is held
AUTHENTICATION: Final = b"R"


class StartupRefused(Exception):
    """The twin does not let the session begin; `raw` is its own ErrorResponse."""

    def __init__(self, raw: bytes) -> None:
        self.raw, self.sqlstate = raw, ErrorResponse.decode(raw).sqlstate
        super().__init__(self.sqlstate)


@dataclass(frozen=True, slots=True)
class Greeting:
    """The twin's greeting of a new session, between AuthenticationOk and the first statement."""

    reports: tuple[bytes, ...]  # ParameterStatus and NoticeResponse frames, as they came
    key: BackendKeyData
    ready: bytes


class Receiver(Protocol):
    """The reader of what the twin says, once the session has begun."""

    def received(self, buffer: FrameBuffer) -> bool:
        """More bytes are in the buffer: take the frames that are whole. True: the turn is over before that is done."""

    def hold(self) -> None:
        """The twin takes in no more for now."""

    def go_on(self) -> None: ...

    def lost(self) -> None:
        """The connection is closed, by either side."""


class Link(asyncio.Protocol):
    """The connection. Frames go to `receiver` from the moment on that it is set."""

    def __init__(self, socket: Path, loop: asyncio.AbstractEventLoop, most_frame_bytes: int = MOST_FRAME_BYTES) -> None:
        self.receiver: Receiver | None = None
        self.key = BackendKeyData(0, bytes(4))
        self._socket = socket
        self._loop = loop
        self._buffer = FrameBuffer(most_frame_bytes, most_run_bytes=MOST_ROW_BYTES)
        self._transport: asyncio.Transport | None = None
        self._unsent: list[bytes] = []
        self._unsent_bytes = 0
        self._reports: list[bytes] = []
        self._greeting: asyncio.Future[Greeting] = loop.create_future()
        self._cancelling: asyncio.Task[None] | None = None
        self._is_paused = self._waits_for_turn = False

    def write(self, data: bytes) -> None:
        """Send with all else that is written in this turn of the loop: one system call wakes the twin once.

        A turn may read megabytes of a client, so that much is sent at once: only then does the transport say hold.
        """
        if not self._unsent:
            self._loop.call_soon(self._send)
        self._unsent.append(data)
        self._unsent_bytes += len(data)
        if self._unsent_bytes > UNSENT_BYTES:
            self._send()

    def pause_reading(self) -> None:
        """Hand over nothing more until `resume_reading`: not what has arrived either."""
        self._is_paused = True
        if self._transport is not None:
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        self._is_paused = False
        if not self._waits_for_turn:
            self._take_turn()

    def cancel(self) -> None:
        """Ask the twin to stop what this connection runs, and hold the client until it has done so.

        PostgreSQL may signal a backend twice for one request: the second must not stop the client's next statement.
        """
        if self.receiver is not None and (self._cancelling is None or self._cancelling.done()):
            self.receiver.hold()
            self._cancelling = self._loop.create_task(self._cancel(self.receiver))

    def abort(self) -> None:
        """End the connection at once: what the twin still says is not wanted."""
        if self._transport is not None:
            self._transport.abort()

    def close(self) -> None:
        if self._transport is not None:
            self.write(Terminate().encode())
            self._send()
            self._transport.close()

    async def greet(self, parameters: Mapping[str, str]) -> Greeting:
        """Begin the session; raises StartupRefused."""
        self.write(StartupMessage(parameters).encode())
        return await self._greeting

    def _send(self) -> None:
        data = b"".join(self._unsent)
        self._unsent.clear()
        self._unsent_bytes = 0
        if self._transport is not None and data:
            self._transport.write(data)

    async def _cancel(self, receiver: Receiver) -> None:
        try:
            async with asyncio.timeout(CANCEL_SECONDS):
                reader, writer = await asyncio.open_unix_connection(str(self._socket))
                with closing(writer):
                    writer.write(CancelRequest(self.key.process_id, self.key.secret).encode())
                    await reader.read()  # PostgreSQL closes the connection once it has signalled
        except (OSError, TimeoutError):
            return  # a twin that is gone runs nothing; one that hangs is asked again when the time is over
        finally:
            receiver.go_on()

    # Calls from the event loop: asyncio.Protocol.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's transports do not say what they are
        self._transport.set_write_buffer_limits(high=UNSENT_BYTES)

    def data_received(self, data: bytes) -> None:
        self._buffer.feed(data)
        if self.receiver is None:
            if not self._greeting.done():
                self._listen()
        elif not self._is_paused and not self._waits_for_turn:
            self._hand_over(self.receiver)

    def pause_writing(self) -> None:
        if self.receiver is not None:
            self.receiver.hold()

    def resume_writing(self) -> None:
        if self.receiver is not None:
            self.receiver.go_on()

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        if not self._greeting.done():
            self._greeting.set_exception(ConnectionResetError("the twin ended the connection"))
        if self.receiver is not None:
            while not self._is_paused and self.receiver.received(self._buffer):
                pass  # its last words, which nothing follows
            self.receiver.lost()
        self._buffer.clear()

    def _hand_over(self, receiver: Receiver) -> None:
        if receiver.received(self._buffer) and self._transport is not None:
            self._waits_for_turn = True
            self._transport.pause_reading()
            wait_for_turn(self._take_turn)

    def _take_turn(self) -> None:
        self._waits_for_turn = False
        if self._is_paused or self._transport is None:
            return
        if self.receiver is not None:
            self._hand_over(self.receiver)
        if not self._is_paused and not self._waits_for_turn:
            self._transport.resume_reading()

    def _listen(self) -> None:
        """Take in the greeting, frame by frame."""
        for frame in self._buffer.frames():
            match frame.kind:
                case ErrorResponse.kind:
                    self._greeting.set_exception(StartupRefused(frame.raw))
                    return
                case BackendKeyData.kind:
                    self.key = BackendKeyData.decode(frame.raw)
                case ReadyForQuery.kind:
                    self._greeting.set_result(Greeting(tuple(self._reports), self.key, frame.raw))
                    return
                case kind if kind != AUTHENTICATION:  # trust: the socket's directory is the proxy's alone
                    self._reports.append(frame.raw)


async def connect(
    socket: Path,
    *,
    user: str,
    database: str,
    parameters: Mapping[str, str],
    timeout_seconds: float,
    most_frame_bytes: int = MOST_FRAME_BYTES,
) -> tuple[Link, Greeting]:
    """A session on the twin, with the settings that the client asked for at its startup."""
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(timeout_seconds):
        _, link = await loop.create_unix_connection(lambda: Link(socket, loop, most_frame_bytes), str(socket))
        try:
            greeting = await link.greet({"user": user, "database": database, **parameters})
        except BaseException:
            link.close()
            raise
    return link, greeting
