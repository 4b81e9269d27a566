"""What all clients of one listener share."""

import ipaddress
from dataclasses import dataclass
from typing import Self

from proxy.server.cancel import CancelKeys
from proxy.server.limits import Doorway, Seats
from proxy.server.ports import OpenSession
from proxy.server.tls import Tls
from proxy.settings import ServerSettings
from proxy.wire.conversation import Conversation
from proxy.wire.scram import Accounts


@dataclass
class House:
    """What a client finds when it comes. Accounts and certificate may be replaced while clients run."""

    settings: ServerSettings
    database: str  # the only one that there is
    accounts: Accounts
    tls: Tls | None
    open_session: OpenSession
    keys: CancelKeys
    doorway: Doorway
    seats: Seats

    @classmethod
    def build(
        cls, settings: ServerSettings, *, database: str, accounts: Accounts, tls: Tls | None, open_session: OpenSession
    ) -> Self:
        doorway = Doorway(settings.max_logins)
        seats = Seats(in_all=settings.max_connections, per_analyst=settings.max_connections_per_analyst)
        return cls(settings, database, accounts, tls, open_session, CancelKeys(), doorway, seats)

    def conversation(self, host: str) -> Conversation:
        """How a client from this address has to begin."""
        return Conversation(self.accounts, has_tls=self.tls is not None, needs_tls=self._needs_tls(host))

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
