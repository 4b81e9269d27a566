"""What all clients of one listener share."""

import ipaddress
from dataclasses import dataclass
from typing import Final, Self

from proxy.server.accounts import Authenticator
from proxy.server.admission import FailedLogins, PendingLogins, SessionSlots
from proxy.server.cancel_keys import CancelKeys
from proxy.server.tls import Tls
from proxy.session.interfaces import OpenSession
from proxy.settings import ServerSettings
from proxy.wire.conversation import Conversation

CONSOLE: Final = "noisegate"  # the database of operators


@dataclass
class ServerContext:
    """What a client finds when it comes. Accounts and certificate may be replaced while clients run."""

    settings: ServerSettings
    database: str  # the only one that there is
    accounts: Authenticator
    tls: Tls | None
    open_session: OpenSession
    keys: CancelKeys
    doorway: PendingLogins
    seats: SessionSlots
    failures: FailedLogins
    operators: frozenset[str] = frozenset()  # who come for the console, and for nothing else
    is_ready: bool = True  # before that nobody is asked for a password

    @classmethod
    def build(
        cls,
        settings: ServerSettings,
        *,
        database: str,
        accounts: Authenticator,
        tls: Tls | None,
        open_session: OpenSession,
    ) -> Self:
        doorway = PendingLogins(settings.max_logins, per_host=settings.max_logins_per_address)
        seats = SessionSlots(in_all=settings.max_connections, per_analyst=settings.max_connections_per_analyst)
        return cls(settings, database, accounts, tls, open_session, CancelKeys(), doorway, seats, FailedLogins())

    def conversation(self, host: str) -> Conversation:
        """How a client from this address has to begin."""
        return Conversation(has_tls=self.tls is not None, needs_tls=self._needs_tls(host), is_ready=self.is_ready)

    def has(self, database: str, user: str) -> bool:
        """Whether a client may name it. Tools that look for a server's databases connect to "postgres"."""
        if user in self.operators:
            return database == CONSOLE
        return database in (self.database, "postgres")

    def _needs_tls(self, host: str) -> bool:
        match self.settings.plaintext_from:
            case "anywhere":
                return False
            case "loopback":
                return not is_loopback(host)
            case "nowhere":
                return True


def is_loopback(host: str) -> bool:
    """Whether no other machine can listen in between. A unix socket has no host."""
    if not host:
        return True
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback
