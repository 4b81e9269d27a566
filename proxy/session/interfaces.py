"""Interfaces of a session: to the socket of its client, and to the relay."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from rules.refusal import Refusal


@dataclass(frozen=True, slots=True)
class Login:
    """A client that has proved who it is."""

    user: str
    database: str
    parameters: Mapping[str, str]  # of the startup message, besides user, database, replication and _pq_.*
    peer: str  # address of the client, for logs
    backend_key: Callable[[int], bytes]
    """The encoded BackendKeyData to write in place of the twin's, given the twin backend's process id.

    The number stays the twin's, so that what pg_backend_pid and pg_stat_activity say is what
    pg_cancel_backend takes. The secret is the proxy's own. Call it once.
    """


class ClientPort(Protocol):
    """The client as a session sees it."""

    def write(self, data: bytes) -> None:
        """Send whole messages. Never blocks; `Session.pause_writing` tells when the client reads too slowly."""

    def pause_reading(self) -> None:
        """Hand over no more frames until `resume_reading`: none, even of those that have arrived."""

    def resume_reading(self) -> None: ...

    def close(self, farewell: bytes = b"") -> None:
        """Send a last message, then end the connection. `Session.closed` is called once it has ended."""


class Session(Protocol):
    """The session as its client's socket sees it. All calls are made on the event loop and return at once."""

    def frame(self, kind: bytes, raw: bytes) -> None:
        """One whole message of the client: of any kind, in order, header included."""

    def admits(self, kind: bytes, size: int) -> bool:
        """A message of more than 64 KiB begins. False: it was refused, and is not to be handed over."""

    @property
    def is_inside_message(self) -> bool:
        """Return whether the last bytes for the client were a part of a message: no farewell may follow them."""

    def pause_writing(self) -> None:
        """The client reads too slowly: stop reading from the twin until `resume_writing`."""

    def resume_writing(self) -> None: ...

    def cancel(self) -> None:
        """The client asks, with its key, to stop what runs now."""

    def drain(self) -> None:
        """The proxy shuts down: end the client (57P01) as soon as no statement runs and no transaction is open."""

    def closed(self) -> None:
        """The connection is gone, whoever ended it. Called once, and last."""


OpenSession = Callable[[Login, ClientPort], Awaitable[Session]]
"""Connects the twin and writes its ParameterStatus messages, `backend_key`, and its ReadyForQuery.

AuthenticationOk has been written before. A Refusal that it raises is sent as FATAL; frames come once it has returned.
"""


class RelayOwner(Protocol):
    """The session, as its relay sees it."""

    def hold(self) -> None:
        """The twin takes in no more for now."""

    def go_on(self) -> None: ...

    def ready(self) -> None:
        """A ReadyForQuery has come."""

    def twin_lost(self) -> None: ...

    def denied(self, refusal: Refusal) -> None:
        """The twin has refused what is protected, and the client is told so in our words."""
