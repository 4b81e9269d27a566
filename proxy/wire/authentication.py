"""Before a client is known: how it proves who it is, the requests for proof, and the protocol that the server speaks.

Every way to log in is an exchange: messages in, messages out, until the proof is there. `Conversation` knows no other
thing of it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, Protocol, Self

from proxy.wire import codec
from proxy.wire.codec import REST, Message, Part, ProtocolViolation, Reader, frame, int32
from proxy.wire.frontend import SASLInitialResponse, SASLResponse
from proxy.wire.scram import BadPassword, NotChecked, ScramServer, Verifier, offered

_SALT: Final[Part[bytes]] = Part(lambda body: body.take(4), bytes, 4)


class Exchange(Protocol):
    """One client's proof."""

    @property
    def is_proved(self) -> bool:
        """Return whether the client is who it says: AuthenticationOk is then the end of what was sent last."""

    def request(self) -> bytes:
        """The message that asks for the proof, or AuthenticationOk where nothing is left to be asked."""

    def answer(self, raw: bytes) -> bytes:
        """Reply to a message of the client's (kind p), or raise LoginRefused or ProtocolViolation."""


class ScramExchange:
    """A password by SCRAM-SHA-256. With a reason not to let anybody in, every proof is wrong."""

    def __init__(
        self,
        user: str,
        verifiers: Sequence[Verifier],
        end_point: bytes | None,
        barred_by: str = "",
        *,
        is_complete: bool = True,
    ) -> None:
        """`is_complete`: all verifiers that there are could be read, so that a proof that fits none is wrong."""
        self.is_proved = False
        self._user, self._verifiers, self._end_point = user, verifiers, end_point
        self._barred_by, self._is_complete = barred_by, is_complete
        self._scram: ScramServer | None = None

    def request(self) -> bytes:
        return AuthenticationSASL(offered(self._end_point)).encode()

    def answer(self, raw: bytes) -> bytes:
        if self._scram is None:
            return self._on_mechanism(SASLInitialResponse.decode(raw))
        try:
            final = self._scram.final(SASLResponse.decode(raw).data)
        except BadPassword:
            raise self._refusal() from None
        if self._barred_by:
            raise self._refusal()
        self.is_proved = True
        return AuthenticationSASLFinal(final).encode() + AuthenticationOk().encode()

    def _refusal(self) -> BadPassword:
        if self._is_complete:
            return BadPassword(self._user, self._barred_by)
        return NotChecked(self._user, self._barred_by)

    def _on_mechanism(self, choice: SASLInitialResponse) -> bytes:
        if choice.data is None:
            # RFC 4422 lets a client wait to be asked for its first words; no PostgreSQL client does.
            raise ProtocolViolation("the client's first SCRAM message is missing")
        self._scram = ScramServer(self._user, self._verifiers, choice.mechanism, self._end_point)
        return AuthenticationSASLContinue(self._scram.first(choice.data)).encode()


class ProvedByCertificate:
    """The handshake was the proof."""

    is_proved = True

    def request(self) -> bytes:
        return AuthenticationOk().encode()

    def answer(self, raw: bytes) -> bytes:
        raise ProtocolViolation("nothing was asked")


def _names(body: Reader) -> tuple[bytes, ...]:
    names = []
    while name := body.text():
        names.append(name)
    return tuple(names)


_NAMES: Final[Part[tuple[bytes, ...]]] = Part(_names, lambda names: b"".join(map(codec.text, names)) + b"\0", 1)


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
