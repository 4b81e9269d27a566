"""The web console's port: uvicorn inside the proxy's own loop, with the proxy's certificate, and what it may see."""

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Final

from starlette.types import ASGIApp
from uvicorn import Config, Server

from proxy.console.commands import Console
from proxy.console.web.connections import Entrance
from proxy.console.web.login import Door
from proxy.console.web.pages import ProxyParts
from proxy.console.web.site import Site
from proxy.load_config import ConfigurationError, is_local
from proxy.log import event
from proxy.server.server_context import ServerContext
from proxy.session.recent_refusals import RECENT
from proxy.settings import Settings

_MOST_AT_ONCE: Final = 128  # connections, those that wait for a browser and those that wait for their login among them
_DRAIN_SECONDS: Final = 2
_BACKLOG: Final = 64


class WebConsole:
    """One for a proxy. Its pages say that the proxy starts up until there is a console."""

    def __init__(self, settings: Settings, context: ServerContext, find_console: Callable[[], Console | None]) -> None:
        """Raises ConfigurationError where passwords would cross a network in clear, or anybody could name himself."""
        web, server = settings.web, settings.server
        if web.trusted_header and not web.trusted_from:
            raise ConfigurationError("--console-trusted-header needs --console-trusted-from: who else could send it?")
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
