"""What a server says before a client is known: requests for proof, and which protocol it speaks."""

from dataclasses import dataclass
from typing import ClassVar, Self

from proxy.wire import codec
from proxy.wire.codec import ProtocolViolation, Reader, frame


@dataclass(frozen=True, slots=True)
class _Request:
    """One of the messages of kind R, told apart by a number."""

    kind: ClassVar[bytes] = b"R"
    code: ClassVar[int]

    def encode(self) -> bytes:
        return frame(self.kind, codec.int32(self.code))

    @classmethod
    def decode(cls, raw: bytes) -> Self:
        body = _body(cls.code, raw)
        body.end()
        return cls()


@dataclass(frozen=True, slots=True)
class AuthenticationOk(_Request):
    code = 0


@dataclass(frozen=True, slots=True)
class AuthenticationCleartextPassword(_Request):
    code = 3


@dataclass(frozen=True, slots=True)
class AuthenticationMD5Password:
    salt: bytes
    kind: ClassVar[bytes] = b"R"
    code: ClassVar[int] = 5

    def encode(self) -> bytes:
        return frame(self.kind, codec.int32(self.code), self.salt)

    @classmethod
    def decode(cls, raw: bytes) -> Self:
        body = _body(cls.code, raw)
        message = cls(body.take(4))
        body.end()
        return message


@dataclass(frozen=True, slots=True)
class AuthenticationSASL:
    """The mechanisms that the server knows, the one it likes most first."""

    mechanisms: tuple[bytes, ...]
    kind: ClassVar[bytes] = b"R"
    code: ClassVar[int] = 10

    def encode(self) -> bytes:
        return frame(self.kind, codec.int32(self.code), *map(codec.text, self.mechanisms), b"\0")

    @classmethod
    def decode(cls, raw: bytes) -> Self:
        body = _body(cls.code, raw)
        mechanisms = []
        while name := body.text():
            mechanisms.append(name)
        body.end()
        return cls(tuple(mechanisms))


@dataclass(frozen=True, slots=True)
class _Words:
    """Words of the mechanism that was chosen."""

    data: bytes
    kind: ClassVar[bytes] = b"R"
    code: ClassVar[int]

    def encode(self) -> bytes:
        return frame(self.kind, codec.int32(self.code), self.data)

    @classmethod
    def decode(cls, raw: bytes) -> Self:
        return cls(_body(cls.code, raw).rest())


@dataclass(frozen=True, slots=True)
class AuthenticationSASLContinue(_Words):
    code = 11


@dataclass(frozen=True, slots=True)
class AuthenticationSASLFinal(_Words):
    code = 12


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

_REQUESTS: dict[int, type[Authentication]] = {
    request.code: request
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
    code = Reader(raw).int32()
    request = _REQUESTS.get(code)
    if request is None:
        raise ProtocolViolation("the server asks for a way to authenticate that we do not know")
    return request.decode(raw)


def _body(code: int, raw: bytes) -> Reader:
    body = Reader(raw)
    if body.int32() != code:
        raise ProtocolViolation("not the authentication message that was expected")
    return body
