"""Take connections in: first the login, then whole frames to the session, with backpressure in both directions.

When the proxy is told to stop, connections are given time to end.
"""

import asyncio
import os
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import Final, cast

from proxy.log import event
from proxy.server.login import LoginHandler
from proxy.server.server_context import ServerContext
from proxy.session.errors import SHUTDOWN, error_response, fatal
from proxy.session.interfaces import Session
from proxy.turns import Turn, wait_for_turn
from proxy.wire.buffer import LARGE

_UNREAD_BYTES: Final = 64 * 1024  # so much is still read of a client that has to wait: only a reader sees it leave
_UNSENT_BYTES: Final = 256 * 1024  # so much may wait for a slow reader before the session hears of it
_FAREWELL_SECONDS: Final = 5  # for a client to take its last message

_BACKLOG: Final = 512
_GOODBYE_SECONDS: Final = 1  # for the last messages to leave


class Client(asyncio.Protocol):
    """From accept() to the end of the connection."""

    def __init__(self, context: ServerContext, on_gone: Callable[["Client"], None]) -> None:
        self._context = context
        self._on_gone = on_gone
        self._transport: asyncio.Transport | None = None
        self._reception: LoginHandler | None = None
        self._session: Session | None = None
        self._is_closing = False
        self._is_paused = False  # by the session
        self._waits_for_turn = self._is_handing_over = False
        self._admitted = 0  # bytes of a large message whose beginning is here
        self._cannot_write = False
        self._last_call: asyncio.TimerHandle | None = None

    # What a session may do: ClientPort.

    def write(self, data: bytes) -> None:
        if self._transport is not None and not self._is_closing:
            self._transport.write(data)

    def pause_reading(self) -> None:
        self._is_paused = True

    def resume_reading(self) -> None:
        self._is_paused = False
        self._hand_over()
        if not self._is_waiting and self._transport is not None and not self._is_closing:
            self._transport.resume_reading()

    def close(self, farewell: bytes = b"") -> None:
        if self._is_closing:
            return
        self._is_closing = True
        if self._transport is None:
            return  # it has come and is not here yet: connection_made sends it away
        is_between = self._session is None or not self._session.is_inside_message
        if is_between and not self._transport.is_closing():  # who left during a handshake is gone before we hear of it
            self._transport.write(farewell)
        self._transport.close()
        self._last_call = asyncio.get_running_loop().call_later(_FAREWELL_SECONDS, self.abort)

    # What a login may do besides: Guest.

    def has_sent(self) -> bool:
        raw = None if self._transport is None else self._transport.get_extra_info("socket")
        if raw is None or raw.fileno() < 0:
            return False
        with socket.socket(fileno=os.dup(raw.fileno())) as own, suppress(OSError):
            # Nothing yet raises BlockingIOError; a closed connection gives b"", as if it had been silent.
            return bool(own.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT))
        return False

    def hold(self) -> None:
        if self._transport is not None and not self._is_closing:
            self._transport.pause_reading()

    async def start_tls(self, context: ssl.SSLContext, beginning: bytes) -> tuple[str | None, bytes | None]:
        if self._transport is None or self._is_closing:
            raise ConnectionResetError
        seconds = self._context.settings.login_timeout_seconds
        loop = asyncio.get_running_loop()
        try:
            secure, _ = await asyncio.gather(
                loop.start_tls(self._transport, self, context, server_side=True, ssl_handshake_timeout=seconds),
                _give(beginning, self._transport),
            )
            if secure is None or self._is_closing:
                raise ConnectionResetError
        except OSError as error:
            self.abort()
            self.connection_lost(error)  # the loop tells nobody when a handshake fails, or when it is broken off
            raise
        self._adopt(secure)
        tls = cast(ssl.SSLObject, secure.get_extra_info("ssl_object"))
        return tls.selected_alpn_protocol(), tls.getpeercert(binary_form=True)

    def begin(self, session: Session) -> None:
        if self._transport is None:
            self._tidy_up()
            session.closed()
            return
        self._session = session
        if self._cannot_write:
            session.pause_writing()
        if not self._is_paused:
            self.resume_reading()

    def cancel(self) -> None:
        if self._session is not None:
            self._session.cancel()

    def abort(self) -> None:
        """End the connection at once, whatever is unsent."""
        self._is_closing = True
        if self._transport is not None:
            self._transport.abort()

    # What the listener may do.

    def drain(self) -> None:
        """The proxy shuts down: a session may finish what it runs, a login may not."""
        if self._session is None:
            self.close(fatal(*SHUTDOWN))
        else:
            self._session.drain()

    # What the event loop says: asyncio.Protocol.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._adopt(cast(asyncio.Transport, transport))  # uvloop's transports do not say what they are
        peer = transport.get_extra_info("peername")
        if peer is None and transport.get_extra_info("socket").family != socket.AF_UNIX:
            self.abort()  # it was reset before it got here, as checks of load balancers are: nobody knows whose it was
            return
        self._reception = LoginHandler(self._context, self, str(peer[0]) if isinstance(peer, tuple) else "")
        if self._is_closing:
            self.abort()

    def data_received(self, data: bytes) -> None:
        if self._is_closing or self._reception is None:
            return
        if self._session is None:
            self._reception.receive(data)
        else:
            self._reception.buffer.feed(data)
            self._hand_over()
        if self._reception.buffer.pending > _UNREAD_BYTES and (self._is_waiting or self._session is None):
            self.hold()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._transport is None:
            return
        self._transport = None
        self._is_closing = True
        self._tidy_up()
        if self._session is not None:
            self._session.closed()
        self._on_gone(self)

    def pause_writing(self) -> None:
        self._cannot_write = True
        if self._session is not None:
            self._session.pause_writing()

    def resume_writing(self) -> None:
        self._cannot_write = False
        if self._session is not None:
            self._session.resume_writing()

    def _tidy_up(self) -> None:
        if self._last_call is not None:
            self._last_call.cancel()
        if self._reception is not None:
            self._reception.leave()

    def _adopt(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        transport.set_write_buffer_limits(high=_UNSENT_BYTES)

    @property
    def _is_waiting(self) -> bool:
        """Return whether nothing is handed over for now, so that what arrives has to stay in the buffer."""
        return self._is_paused or self._waits_for_turn

    def _hand_over(self) -> None:
        """Give the session its frames until it pauses, its turn is over, or none is whole."""
        if self._is_handing_over or self._session is None or self._reception is None:
            return
        self._is_handing_over = True
        turn = Turn()
        try:
            while not self._is_waiting and not self._is_closing:
                if turn.is_over:
                    self._waits_for_turn = True
                    wait_for_turn(self._take_turn)
                    break
                frame = self._reception.buffer.next_frame()
                kind, size = self._reception.buffer.begun if frame is None else (frame.kind, len(frame.raw))
                if size > LARGE and size != self._admitted:
                    if not self._session.admits(kind, size):
                        if frame is None:
                            self._reception.buffer.skip(size)
                        continue
                    self._admitted = size
                if frame is None:
                    break
                self._admitted = 0
                turn.took(size)
                self._session.frame(kind, frame.raw)
        except Exception as error:  # noqa: BLE001 - a violation, or as a last resort whatever else comes
            response = error_response(error, "FATAL")
            event("client_failed", sqlstate=response.sqlstate)
            self.close(response.encode())
        finally:
            self._is_handing_over = False

    def _take_turn(self) -> None:
        self._waits_for_turn = False
        if not self._is_paused:
            self.resume_reading()


class Listener:
    """One listening socket and its clients."""

    def __init__(self, context: ServerContext) -> None:
        self.context = context
        self._server: asyncio.Server | None = None
        self._clients: set[Client] = set()
        self._is_stopping = False
        self._is_empty = asyncio.Event()
        self._is_empty.set()
        self.port = context.settings.port  # or, once it listens, the free one that it was given

    def __len__(self) -> int:
        """Connections, logged in or not."""
        return len(self._clients)

    @property
    def is_stopping(self) -> bool:
        """Return whether nobody is taken in any more."""
        return self._is_stopping

    async def start(self) -> None:
        settings = self.context.settings
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._welcome, settings.host, settings.port, backlog=_BACKLOG)
        for listening in self._server.sockets:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)  # whom we accept inherits it
        self.port = int(self._server.sockets[0].getsockname()[1])
        event("listening", port=self.port)

    async def stop(self) -> None:
        """Take nobody in any more, let sessions finish what they run, then end those that are left."""
        self._is_stopping = True
        if self._server is not None:
            self._server.close()
        for client in tuple(self._clients):
            client.drain()
        await self._until_empty(self.context.settings.drain_timeout_seconds)
        for client in tuple(self._clients):
            client.close(fatal(*SHUTDOWN))
        await self._until_empty(_GOODBYE_SECONDS)
        for client in tuple(self._clients):
            client.abort()
        event("stopped", aborted=len(self._clients))

    def _welcome(self) -> Client:
        client = Client(self.context, self._farewell)
        self._clients.add(client)
        self._is_empty.clear()
        if self._is_stopping:  # it was in the loop's hands already
            client.drain()
        return client

    def _farewell(self, client: Client) -> None:
        self._clients.discard(client)
        if not self._clients:
            self._is_empty.set()

    async def _until_empty(self, seconds: float) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._is_empty.wait(), seconds)


async def _give(beginning: bytes, transport: asyncio.Transport) -> None:
    """Let TLS read what was read before it: who begins with the handshake is not known before its first byte is here.

    It is run just after TLS has taken the transport over and has asked the loop to let it begin and to read on. What is
    asked of the loop now happens right after these two, and before the socket is read again.
    """
    if beginning:
        asyncio.get_running_loop().call_soon(_feed, cast(asyncio.BufferedProtocol, transport.get_protocol()), beginning)


def _feed(reader: asyncio.BufferedProtocol, data: bytes) -> None:
    while data:
        room = memoryview(reader.get_buffer(len(data)))
        size = min(len(room), len(data))
        room[:size] = data[:size]
        reader.buffer_updated(size)
        data = data[size:]
