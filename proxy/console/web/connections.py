"""Connections of browsers: how many there may be, and how long one may let us wait.

All that a stranger can have is a place in the doorway, from accept() on, before TLS too. Where it is full, somebody who
waits there has to go; so no number of connections takes the proxy's open files, or keeps a browser out.
"""

import asyncio
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import h11
from uvicorn import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from proxy.server.admission import PendingLogins

_MOST_WAITING: Final = 32
_WAITING_SECONDS: Final = 20.0  # for a handshake, a whole request, or an answer that is read
_MOST_HEAD_BYTES: Final = 32 * 1024
_FAREWELL_SECONDS: Final = 1.0  # for the answer to what is no request to leave; meanwhile nothing is read
_RETRY_SECONDS: Final = 1.0  # after an accept() that failed: there are no files left, or the client is gone


class Entrance:
    """The listening socket. Connections get the certificate that `tls` has when they come."""

    def __init__(
        self, listening: socket.socket, tls: ssl.SSLContext | None, config: Config, state: ServerState
    ) -> None:  # fmt: skip
        self._listening, self._tls, self._config, self._state = listening, tls, config, state
        self._doorway = PendingLogins(_MOST_WAITING)
        self._coming: set[asyncio.Task[None]] = set()
        listening.setblocking(False)
        self._accepting = asyncio.create_task(self._accept())

    async def close(self) -> None:
        """Take nobody in any more."""
        for task in (self._accepting, *self._coming):
            task.cancel()
        await asyncio.gather(self._accepting, *self._coming, return_exceptions=True)
        self._listening.close()

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, address = await loop.sock_accept(self._listening)
            except OSError:
                await asyncio.sleep(_RETRY_SECONDS)
                continue
            task = loop.create_task(self._admit(accepted, str(address[0])))
            self._coming.add(task)
            task.add_done_callback(self._coming.discard)

    async def _admit(self, accepted: socket.socket, host: str) -> None:
        """Wait for the handshake; whoever has it waits for a request from then on."""
        task, loop = asyncio.current_task(), asyncio.get_running_loop()

        def give_up() -> None:
            if task is not None:
                task.cancel()

        def browser() -> Browser:
            return Browser(self._doorway, lambda: self._doorway.leave(give_up), self._config, self._state)

        self._doorway.enter(give_up, host)
        seconds = None if self._tls is None else _WAITING_SECONDS
        try:
            with suppress(OSError):
                await loop.connect_accepted_socket(browser, accepted, ssl=self._tls, ssl_handshake_timeout=seconds)
        finally:
            self._doorway.leave(give_up)


class _Requests(h11.Connection):
    """HTTP/1.1 without bodies in chunks, which no browser sends: one byte of each would cost as much as a request."""

    def next_event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        event = super().next_event()
        if isinstance(event, h11.Request) and any(name == b"transfer-encoding" for name, _ in event.headers):
            raise h11.RemoteProtocolError("a body in chunks", error_status_hint=411)
        return event


class Browser(H11Protocol):
    """A connection. While it waits for the browser it stands in the doorway, and not for long."""

    def __init__(
        self, doorway: PendingLogins, on_arrival: Callable[[], None], config: Config, state: ServerState
    ) -> None:
        super().__init__(config, state, {})
        self.conn = _Requests(h11.SERVER, _MOST_HEAD_BYTES)
        self._doorway, self._on_arrival = doorway, on_arrival
        self._last_call: asyncio.TimerHandle | None = None  # while it waits

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._on_arrival()
        self._look()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._look()

    def send_400_response(self, msg: str) -> None:
        self.flow.pause_reading()
        super().send_400_response(msg)
        self.loop.call_later(_FAREWELL_SECONDS, self.abort)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._look()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._look()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._look()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._leave()

    def abort(self) -> None:
        self.transport.abort()  # a farewell would be waited for

    def _look(self) -> None:
        """Enter the doorway when a request, the rest of one or a reader is waited for; leave it when there is one."""
        cycle = self.cycle
        waits = cycle is None or cycle.response_complete or cycle.more_body or self.flow.write_paused
        if waits and self._last_call is None:
            self._last_call = self.loop.call_later(_WAITING_SECONDS, self.abort)
            host = "" if self.client is None else self.client[0]
            self._doorway.enter(self.abort, host)
        elif not waits:
            self._leave()

    def _leave(self) -> None:
        if self._last_call is not None:
            self._last_call.cancel()
            self._last_call = None
        self._doorway.leave(self.abort)
