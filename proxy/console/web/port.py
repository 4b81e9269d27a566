"""The port of the web console: uvicorn inside the proxy's own loop, with the proxy's certificate."""

import asyncio
import logging
import socket
import ssl
from pathlib import Path
from typing import Final

from starlette.types import ASGIApp
from uvicorn import Config, Server
from uvicorn.protocols.http.h11_impl import H11Protocol

from proxy.log import event

_MOST_AT_ONCE: Final = 64
_DRAIN_SECONDS: Final = 2
_MOST_SILENT: Final = 32  # connections that have asked nothing; of more the oldest has to go
_SILENT_SECONDS: Final = 10.0
_BACKLOG: Final = 64


class _Protocol(H11Protocol):
    """A connection that asks for nothing keeps nobody out."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.since = self.loop.time()
        silent = [
            connection
            for connection in self.connections
            if isinstance(connection, _Protocol) and connection.cycle is None
        ]
        if len(silent) > _MOST_SILENT:
            min(silent, key=lambda web_socket_protocol: web_socket_protocol.since).close_silent()
        self.loop.call_later(_SILENT_SECONDS, self.close_silent)

    def close_silent(self) -> None:
        if self.cycle is None:
            self.transport.abort()  # a farewell would be waited for


class WebPort:
    """Listens until it is stopped. Who signals the proxy signals us too, so uvicorn takes no signals of its own."""

    def __init__(self, host: str, port: int, app: ASGIApp, tls: ssl.SSLContext | None) -> None:
        self._host, self.port, self._tls = host, port, tls
        config = Config(
            app,
            lifespan="off",
            http=_Protocol,
            ws="none",
            log_config=None,
            log_level=logging.CRITICAL,  # its lines would quote requests
            access_log=False,
            server_header=False,
            proxy_headers=False,
            limit_concurrency=_MOST_AT_ONCE,
            backlog=_BACKLOG,
            timeout_graceful_shutdown=_DRAIN_SECONDS,
            ssl_context_factory=None if tls is None else lambda _config, _make: tls,
        )
        config.load()
        self._server = Server(config)
        self._server.lifespan = config.lifespan_class(config)
        self._ticking: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Listen; raises OSError."""
        family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
        listening = socket.create_server((self._host, self.port), family=family, backlog=_BACKLOG)
        self.port = int(listening.getsockname()[1])
        await self._server.startup(sockets=[listening])
        self._ticking = asyncio.create_task(self._server.main_loop())
        event("console_port", port=self.port)

    async def stop(self) -> None:
        """Let answers that are on their way end."""
        if self._ticking is not None:
            self._server.should_exit = True
            await self._ticking
            await self._server.shutdown()

    def renew(self, certificate: Path, private_key: Path) -> None:
        """Handshakes to come have the certificate as it is in these files now."""
        if self._tls is not None:
            self._tls.load_cert_chain(certificate, private_key)


def tls_context(certificate: Path, private_key: Path) -> ssl.SSLContext:
    """For browsers; the files are those that the proxy has read before."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    context.load_cert_chain(certificate, private_key)
    return context
