"""The first packets of a connection, before messages have kinds: who asks for what, in which version."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Final, Self

from proxy.wire import codec
from proxy.wire.codec import NoPacket, ProtocolViolation, Reader

MAX_STARTUP_BYTES: Final = 10_000  # PostgreSQL's own limit, MAX_STARTUP_PACKET_LENGTH
LATEST_MINOR: Final = 2
LONG_KEYS_SINCE_MINOR: Final = 2  # cancel keys of more than 4 bytes

_MAJOR: Final = 3
_OPTION_PREFIX: Final = "_pq_."
_FALSE: Final = frozenset({"0", "f", "false", "n", "no", "off"})


class LoginRefused(Exception):
    """A connection that ends before a session begins. The text quotes what the client sent, and nothing else.

    The reason is a word of ours for the log.
    """

    def __init__(self, sqlstate: str, message: str, *, hint: str = "", reason: str = "") -> None:
        super().__init__(sqlstate, message, hint)
        self.sqlstate, self.message, self.hint, self.reason = sqlstate, message, hint, reason

    def __str__(self) -> str:
        return self.message


@dataclass(frozen=True, slots=True)
class _BareRequest:
    """A request that is a number alone."""

    code: ClassVar[int]

    def encode(self) -> bytes:
        return _packet(codec.int32(self.code))

    @classmethod
    def read(cls, body: Reader) -> Self:
        if body.left:
            raise NoPacket("invalid length of encryption request")
        return cls()


@dataclass(frozen=True, slots=True)
class SSLRequest(_BareRequest):
    code = 1234 << 16 | 5679


@dataclass(frozen=True, slots=True)
class GSSENCRequest(_BareRequest):
    code = 1234 << 16 | 5680


@dataclass(frozen=True, slots=True)
class CancelRequest:
    """Stop the statement of another connection; its key is the permission."""

    process_id: int
    secret: bytes
    code: ClassVar[int] = 1234 << 16 | 5678

    def encode(self) -> bytes:
        return _packet(codec.int32(self.code), codec.int32(self.process_id), self.secret)

    @classmethod
    def read(cls, body: Reader) -> Self:
        if not 8 <= body.left <= 260:
            raise NoPacket("invalid length of cancel request")
        return cls(body.int32(), body.rest())


@dataclass(frozen=True, slots=True)
class StartupMessage:
    """A client's wish to log in as a user, to a database, with the settings of the session."""

    parameters: Mapping[str, str]  # all but those of the protocol itself
    minor: int = 0  # as the client asked
    protocol_options: Mapping[str, str] = field(default_factory=dict)  # named _pq_.*

    @property
    def user(self) -> str:
        return self.parameters["user"]

    @property
    def database(self) -> str:
        return self.parameters.get("database") or self.user

    @property
    def settings(self) -> dict[str, str]:
        """Return what is left for the session."""
        ours = {"user", "database", "replication"}
        return {name: value for name, value in self.parameters.items() if name not in ours}

    @property
    def agreed_minor(self) -> int:
        return min(self.minor, LATEST_MINOR)

    @property
    def needs_negotiation(self) -> bool:
        return self.minor > LATEST_MINOR or bool(self.protocol_options)

    def encode(self) -> bytes:
        pairs = [text for pair in {**self.parameters, **self.protocol_options}.items() for text in pair]
        strings = [codec.text(text.encode()) for text in pairs]
        return _packet(codec.int32(_MAJOR << 16 | self.minor), *strings, b"\0")

    @classmethod
    def read(cls, minor: int, body: Reader) -> Self:
        parameters = _pairs(body)
        options = {name: value for name, value in parameters.items() if name.startswith(_OPTION_PREFIX)}
        message = cls({name: value for name, value in parameters.items() if name not in options}, minor, options)
        if not message.parameters.get("user"):
            raise LoginRefused("28000", "no PostgreSQL user name specified in startup packet")
        if message.parameters.get("replication", "off").lower() not in _FALSE:
            raise LoginRefused("42501", "replication is not allowed through this proxy")
        return message


StartupPacket = SSLRequest | GSSENCRequest | CancelRequest | StartupMessage


def decode_startup(packet: bytes) -> StartupPacket:
    """Any first packet, without the length before it."""
    body = Reader(packet, start=0)
    code = body.uint32()
    match code:
        case SSLRequest.code:
            return SSLRequest.read(body)
        case GSSENCRequest.code:
            return GSSENCRequest.read(body)
        case CancelRequest.code:
            return CancelRequest.read(body)
    major, minor = code >> 16, code & 0xFFFF
    if major != _MAJOR:
        supported = f"server supports {_MAJOR}.0 to {_MAJOR}.{LATEST_MINOR}"
        raise LoginRefused("0A000", f"unsupported frontend protocol {major}.{minor}: {supported}")
    return StartupMessage.read(minor, body)


def _pairs(body: Reader) -> dict[str, str]:
    """Names and values up to an empty name. PostgreSQL takes the last of two equal names; we take none."""
    pairs: dict[str, str] = {}
    while name := _string(body):
        if name in pairs:
            raise ProtocolViolation("duplicate parameter in startup packet")
        pairs[name] = _string(body)
    body.end()
    return pairs


def _string(body: Reader) -> str:
    try:
        return body.text().decode()
    except UnicodeDecodeError as error:
        raise ProtocolViolation("the startup packet is not valid UTF-8") from error


def _packet(*parts: bytes) -> bytes:
    return codec.int32(4 + sum(map(len, parts))) + b"".join(parts)
