"""The web console's port: uvicorn inside the proxy's own loop, with the proxy's certificate, and what it may see.

All that a stranger can have is a place in the doorway, from accept() on, before TLS too. Where it is full, somebody who
waits there has to go; so no number of connections takes the proxy's open files, or keeps a browser out.
"""

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

import h11
from starlette.types import ASGIApp
from uvicorn import Config, Server
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from proxy.console.commands import Console
from proxy.console.web.login import Door
from proxy.console.web.pages import ProxyParts
from proxy.console.web.site import Site
from proxy.load_config import ConfigurationError, is_local
from proxy.log import event
from proxy.server.admission import PendingLogins
from proxy.server.server_context import ServerContext
from proxy.session.recent_refusals import RECENT
from proxy.settings import Settings

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
        """Wait for the handshake, then for a request."""
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


_MOST_AT_ONCE: Final = 128  # connections, those that wait for a browser and those that wait for their login among them
_DRAIN_SECONDS: Final = 2
_BACKLOG: Final = 64


class WebConsole:
    """One for a proxy. Its pages say that the proxy starts up until there is a console."""

    def __init__(self, settings: Settings, context: ServerContext, find_console: Callable[[], Console | None]) -> None:
        """Raises ConfigurationError where passwords would cross a network in clear, or anybody could name himself."""
        web, server = settings.web, settings.server
        if web.trusted_header and not web.trusted_from:
            raise ConfigurationError("--console-trusted-header needs --console-trusted-from: any client could send it")
        if web.trusted_from and not web.trusted_header:
            raise ConfigurationError("--console-trusted-from needs --console-trusted-header")
        self._certificate = (server.certificate, server.private_key)
        tls = None
        if server.certificate is not None and server.private_key is not None:
            tls = _tls_context(server.certificate, server.private_key)
        elif not is_local(web.host):
            raise ConfigurationError(
                f"browsers of other machines need TLS on {web.host}: give --tls-certificate and --tls-key"
            )
        self._settings, self._find_console = settings, find_console
        site = Site(Door(context, web), self._house, has_tls=tls is not None)
        self.port = WebPort(web.host, web.port or 0, site.app, tls)

    def renew_certificate(self) -> None:
        """After the proxy has read its own again."""
        certificate, private_key = self._certificate
        if certificate is not None and private_key is not None:
            self.port.renew(certificate, private_key)

    def _house(self) -> ProxyParts | None:
        console = self._find_console()
        if console is None:
            return None
        settings = self._settings
        return ProxyParts(console, settings.rules, settings.web, console.vitals.service.recent, RECENT)


class WebPort:
    """Listens until it is stopped. Who signals the proxy signals us too, so uvicorn takes no signals of its own."""

    def __init__(self, host: str, port: int, app: ASGIApp, tls: ssl.SSLContext | None) -> None:
        self._host, self.port, self._tls = host, port, tls
        config = Config(
            app,
            lifespan="off",
            http="h11",
            ws="none",
            log_config=None,
            log_level=logging.CRITICAL,  # its lines would quote requests
            access_log=False,
            server_header=False,
            proxy_headers=False,
            limit_concurrency=_MOST_AT_ONCE,
            timeout_graceful_shutdown=_DRAIN_SECONDS,
        )
        config.load()
        self._server = Server(config)
        self._server.lifespan = config.lifespan_class(config)
        self._entrance: Entrance | None = None
        self._ticking: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Listen; raises OSError."""
        family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
        listening = socket.create_server((self._host, self.port), family=family, backlog=_BACKLOG)
        self.port = int(listening.getsockname()[1])
        await self._server.startup(sockets=[])  # it does all but listen
        self._entrance = Entrance(listening, self._tls, self._server.config, self._server.server_state)
        self._ticking = asyncio.create_task(self._server.main_loop())
        event("console_port", port=self.port)

    async def stop(self) -> None:
        """Let answers that are on their way end."""
        if self._entrance is not None and self._ticking is not None:
            await self._entrance.close()
            self._server.should_exit = True
            await self._ticking
            await self._server.shutdown()

    def renew(self, certificate: Path, private_key: Path) -> None:
        """Handshakes to come have the certificate as it is in these files now."""
        if self._tls is not None:
            self._tls.load_cert_chain(certificate, private_key)


def _tls_context(certificate: Path, private_key: Path) -> ssl.SSLContext:
    """For browsers; the files are those that the proxy has read before."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    context.load_cert_chain(certificate, private_key)
    return context
