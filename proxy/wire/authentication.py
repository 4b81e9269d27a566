"""A server's words before a client is known: requests for proof, and the protocol that it speaks."""

from dataclasses import dataclass
from typing import ClassVar, Final, Self

from proxy.wire import codec
from proxy.wire.codec import REST, Message, Part, ProtocolViolation, Reader, frame, int32


def _names(body: Reader) -> tuple[bytes, ...]:
    names = []
    while name := body.text():
        names.append(name)
    return tuple(names)


_NAMES: Final[Part[tuple[bytes, ...]]] = Part(_names, lambda names: b"".join(map(codec.text, names)) + b"\0", 1)
_SALT: Final[Part[bytes]] = Part(lambda body: body.take(4), bytes, 4)


@dataclass(frozen=True, slots=True)
class AuthenticationOk(Message):
    kind, prefix = b"R", int32(0)


@dataclass(frozen=True, slots=True)
class AuthenticationCleartextPassword(Message):
    kind, prefix = b"R", int32(3)


@dataclass(frozen=True, slots=True)
class AuthenticationMD5Password(Message):
    kind, prefix, layout = b"R", int32(5), (_SALT,)
    salt: bytes


@dataclass(frozen=True, slots=True)
class AuthenticationSASL(Message):
    """The mechanisms that the server knows, the one it likes most first."""

    kind, prefix, layout = b"R", int32(10), (_NAMES,)
    mechanisms: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class AuthenticationSASLContinue(Message):
    """Words of the mechanism that was chosen."""

    kind, prefix, layout = b"R", int32(11), (REST,)
    data: bytes


@dataclass(frozen=True, slots=True)
class AuthenticationSASLFinal(Message):
    kind, prefix, layout = b"R", int32(12), (REST,)
    data: bytes


@dataclass(frozen=True, slots=True)
class NegotiateProtocolVersion:
    """The newest minor version that the server speaks, and the options of the client that it does not know."""

    minor: int
    options: tuple[bytes, ...] = ()
    kind: ClassVar[bytes] = b"v"

    def encode(self) -> bytes:
        version = codec.int32(3 << 16 | self.minor)
        return frame(self.kind, version, codec.int32(len(self.options)), *map(codec.text, self.options))

    @classmethod
    def decode(cls, raw: bytes) -> Self:
        body = Reader(raw)
        version, count = body.int32(), body.int32()
        if version >> 16 != 3 or not 0 <= count <= body.left:
            raise ProtocolViolation("invalid negotiation of the protocol version")
        message = cls(version & 0xFFFF, tuple([body.text() for _ in range(count)]))
        body.end()
        return message


Authentication = (
    AuthenticationOk
    | AuthenticationCleartextPassword
    | AuthenticationMD5Password
    | AuthenticationSASL
    | AuthenticationSASLContinue
    | AuthenticationSASLFinal
)

_REQUESTS: dict[bytes, type[Authentication]] = {
    request.prefix: request
    for request in (
        AuthenticationOk,
        AuthenticationCleartextPassword,
        AuthenticationMD5Password,
        AuthenticationSASL,
        AuthenticationSASLContinue,
        AuthenticationSASLFinal,
    )
}


def decode_authentication(raw: bytes) -> Authentication:
    """Any message of kind R that we can answer."""
    request = _REQUESTS.get(Reader(raw).take(4))
    if request is None:
        raise ProtocolViolation("the server requests an unsupported authentication method")
    return request.decode(raw)
