"""Making the web console: its port, its certificate, and what it may see of the proxy."""

from collections.abc import Callable

from proxy.console.commands import Console
from proxy.console.web.login import Door
from proxy.console.web.pages import ProxyParts
from proxy.console.web.port import WebPort, tls_context
from proxy.console.web.site import Site
from proxy.load_config import ConfigurationError, is_local
from proxy.server.server_context import ServerContext
from proxy.session.recent_refusals import RECENT
from proxy.settings import Settings


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
            tls = tls_context(server.certificate, server.private_key)
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
