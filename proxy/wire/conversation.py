"""The conversation from the first byte of a connection to a login, as a machine: bytes in, events out.

It writes to no socket and reads no clock; whoever drives it starts TLS, finds the exchange by which a name is proved,
looks for connections to cancel and keeps the deadline. What ends a connection is raised: ProtocolViolation or
LoginRefused.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from proxy.wire.authentication import Exchange, NegotiateProtocolVersion
from proxy.wire.buffer import Frame, FrameBuffer
from proxy.wire.codec import NoPacket, ProtocolViolation
from proxy.wire.frontend import SASLResponse, Terminate
from proxy.wire.startup import (
    LATEST_MINOR,
    MAX_STARTUP_BYTES,
    CancelRequest,
    GSSENCRequest,
    LoginRefused,
    SSLRequest,
    StartupMessage,
    decode_startup,
)

ALPN: Final = "postgresql"  # what this protocol is called in a TLS handshake
MAX_LOGIN_BYTES: Final = 4096  # of one message of somebody unknown
_HANDSHAKE: Final = b"\x16"  # begins TLS; a packet in clear that begins so would be longer than any may be


@dataclass(frozen=True, slots=True)
class Send:
    data: bytes


@dataclass(frozen=True, slots=True)
class StartTls:
    """The client waits for the handshake, or has sent its beginning; call `secured` after it."""

    beginning: bytes = b""


@dataclass(frozen=True, slots=True)
class Cancel:
    """The whole purpose of this connection: close it, whatever comes of it."""

    request: CancelRequest


@dataclass(frozen=True, slots=True)
class Identified:
    """The client has said who it is; call `begin` with the exchange that proves it."""

    startup: StartupMessage


@dataclass(frozen=True, slots=True)
class LoggedIn:
    """The proof is right and AuthenticationOk sent; further frames are in the conversation's `buffer`."""

    startup: StartupMessage


@dataclass(frozen=True, slots=True)
class Left:
    """The client said goodbye."""


Event = Send | StartTls | Cancel | Identified | LoggedIn | Left


class _Stage(Enum):
    STARTUP = auto()
    HANDSHAKE = auto()
    IDENTIFIED = auto()
    PROOF = auto()
    WELCOME = auto()
    OVER = auto()


class Conversation:
    """One connection until its login."""

    def __init__(self, *, has_tls: bool, needs_tls: bool, is_ready: bool = True) -> None:
        self.buffer = FrameBuffer(MAX_LOGIN_BYTES)
        self._has_tls = has_tls
        self._needs_tls = needs_tls
        self._is_ready = is_ready
        self.end_point: bytes | None = None  # with it channel binding can be offered
        self._began_with_tls = False
        self._may_ask: set[type[SSLRequest | GSSENCRequest]] = {SSLRequest, GSSENCRequest}
        self._stage = _Stage.STARTUP
        self._startup: StartupMessage | None = None
        self._exchange: Exchange | None = None

    @property
    def user(self) -> str | None:
        """Return who the client says it is."""
        return None if self._startup is None else self._startup.user

    @property
    def has_begun(self) -> bool:
        """Return whether the client has said who it is."""
        return self._startup is not None

    def receive(self, data: bytes) -> Iterator[Event]:
        """Go as far as these bytes allow."""
        if self._is_untouched and self._has_tls and data.startswith(_HANDSHAKE):
            self._began_with_tls = True
            yield self._start_tls(data)
            return
        self.buffer.feed(data)
        while (event := self._next()) is not None:
            yield event

    def secured(self, end_point: bytes | None, protocol: str | None = None) -> None:
        """The handshake is done, and named a protocol. With the hash of our certificate we can offer channel binding.

        Who began with TLS has to name ours: a browser that somebody sends here does not.
        """
        if self._began_with_tls and protocol != ALPN:
            raise NoPacket(f"the TLS handshake did not name the protocol {ALPN} (ALPN)")
        self._stage = _Stage.STARTUP
        self._needs_tls = False
        self._may_ask.clear()
        self.end_point = end_point

    def begin(self, exchange: Exchange) -> Iterator[Event]:
        """Ask for the proof, and go on with what has arrived meanwhile."""
        assert self._startup is not None
        self._exchange = exchange
        self._stage = _Stage.WELCOME if exchange.is_proved else _Stage.PROOF
        yield Send(_negotiated(self._startup) + exchange.request())
        yield from self.receive(b"")

    @property
    def _is_untouched(self) -> bool:
        """Return whether nothing was said before."""
        return self._stage is _Stage.STARTUP and len(self._may_ask) == 2 and not self.buffer.pending

    def _next(self) -> Event | None:
        """Return what follows from the bytes that are there; None: more are needed."""
        match self._stage:
            case _Stage.STARTUP:
                packet = self.buffer.next_startup(MAX_STARTUP_BYTES)
                return None if packet is None else self._on_packet(packet)
            case _Stage.PROOF:
                frame = self.buffer.next_frame()
                return None if frame is None else self._on_frame(frame)
            case _Stage.WELCOME if self._startup is not None:
                self._stage = _Stage.OVER
                return LoggedIn(self._startup)
            case _Stage.HANDSHAKE if self.buffer.pending:
                raise ProtocolViolation("received unencrypted data after SSL request")
            case _:
                return None

    def _on_packet(self, packet: bytes) -> Event:
        match decode_startup(packet):
            case CancelRequest() as request:
                self._stage = _Stage.OVER
                return Cancel(request)
            case SSLRequest():
                return self._on_ssl_request()
            case GSSENCRequest():
                self._asked(GSSENCRequest)
                return Send(b"N")
            case StartupMessage() as startup:
                return self._on_startup(startup)

    def _on_ssl_request(self) -> Event:
        self._asked(SSLRequest)
        if not self._has_tls:
            return Send(b"N")
        if self.buffer.pending:
            # Bytes in clear must never be taken for the first bytes under TLS (CVE-2021-23214).
            raise ProtocolViolation("received unencrypted data after SSL request")
        return self._start_tls()

    def _start_tls(self, beginning: bytes = b"") -> StartTls:
        self._may_ask.clear()
        self._stage = _Stage.HANDSHAKE
        return StartTls(beginning)

    def _asked(self, request: type[SSLRequest | GSSENCRequest]) -> None:
        """Each of the two may be asked once."""
        if request not in self._may_ask:
            raise ProtocolViolation("duplicate encryption request")
        self._may_ask.discard(request)

    def _on_startup(self, startup: StartupMessage) -> Event:
        if self._needs_tls:
            raise LoginRefused(
                "28000",
                "connections from other machines require TLS",
                hint="Connect with sslmode=require, or better verify-full.",
            )
        if not self._is_ready:
            raise LoginRefused("57P03", "the proxy is starting up: the twin or the real database is not ready")
        self._startup = startup
        self._stage = _Stage.IDENTIFIED
        return Identified(startup)

    def _on_frame(self, frame: Frame) -> Event:
        match frame.kind:
            case SASLResponse.kind if self._exchange is not None:
                reply = self._exchange.answer(frame.raw)
                self._stage = _Stage.WELCOME if self._exchange.is_proved else _Stage.PROOF
                return Send(reply)
            case Terminate.kind:
                self._stage = _Stage.OVER
                return Left()
            case _:
                raise ProtocolViolation("expected SASL response")


def _negotiated(startup: StartupMessage) -> bytes:
    """Return what we do not speak of the protocol that the client asked for."""
    if not startup.needs_negotiation:
        return b""
    unknown = tuple(name.encode() for name in startup.protocol_options)
    return NegotiateProtocolVersion(min(startup.minor, LATEST_MINOR), unknown).encode()
