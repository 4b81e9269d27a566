"""The context that all clients of one listener share, the keys that cancel their statements among it."""

import hmac
import ipaddress
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Self

from proxy.server.accounts import Authenticator, is_within
from proxy.server.admission import FailedLogins, PendingLogins, SessionSlots
from proxy.server.tls import Tls
from proxy.session.interfaces import OpenSession
from proxy.settings import ServerSettings
from proxy.wire.backend import BackendKeyData
from proxy.wire.conversation import Conversation
from proxy.wire.startup import LONG_KEYS_SINCE_MINOR, CancelRequest

_SHORT_BYTES: Final = 4  # all that protocol 3.0 has room for
_LONG_BYTES: Final = 32


@dataclass(frozen=True, slots=True)
class _Holder:
    secret: bytes
    cancel: Callable[[], None]


class CancelKeys:
    """Keys of clients, by which their statements may be cancelled."""

    def __init__(self) -> None:
        self._holders: dict[int, _Holder] = {}

    def __len__(self) -> int:
        return len(self._holders)

    def issue(self, process_id: int, minor: int, cancel: Callable[[], None]) -> BackendKeyData:
        """A new key, as long as the client's version of the protocol allows."""
        secret = secrets.token_bytes(_LONG_BYTES if minor >= LONG_KEYS_SINCE_MINOR else _SHORT_BYTES)
        self._holders[process_id] = _Holder(secret, cancel)
        return BackendKeyData(process_id, secret)

    def forget(self, key: BackendKeyData) -> None:
        """The client is gone. Its number may have been given to another already: that one stays."""
        holder = self._holders.get(key.process_id)
        if holder is not None and holder.secret is key.secret:
            del self._holders[key.process_id]

    def cancel(self, request: CancelRequest) -> bool:
        """Cancel if the key is right. Nothing that the client that shows the key can see depends on it."""
        holder = self._holders.get(request.process_id)
        if holder is None or not hmac.compare_digest(holder.secret, request.secret):
            return False
        holder.cancel()
        return True


CONSOLE: Final = "noisegate"  # the database of operators


@dataclass
class ServerContext:
    """The context that a client finds when it comes. Accounts and certificate may be replaced while clients run."""

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
        """Return how a client from this address has to begin."""
        return Conversation(has_tls=self.tls is not None, needs_tls=self._needs_tls(host), is_ready=self.is_ready)

    def is_gateway(self, host: str) -> bool:
        """Return whether a connection from this address is somebody else's, and says whose."""
        return is_within(host, self.settings.gateways)

    def has(self, database: str, user: str) -> bool:
        """Return whether a client may name it. Tools that look for a server's databases connect to "postgres"."""
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
    """Return whether no other machine can listen in between. A unix socket has no host."""
    if not host:
        return True
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback
