"""The server's side of SCRAM-SHA-256 and SCRAM-SHA-256-PLUS (RFC 5802, 7677), for the verifiers that PostgreSQL stores.

`scramp` has the cryptography. Here is what PostgreSQL's clients need besides: the name inside SCRAM is ignored
(libpq leaves it empty), and a user who does not exist gets as far as a wrong password does.
"""

import hashlib
import hmac
import re
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Self

from scramp import ScramException, ScramMechanism

from proxy.wire.codec import ProtocolViolation
from proxy.wire.startup import LoginRefused

PLAIN: Final = b"SCRAM-SHA-256"
PLUS: Final = b"SCRAM-SHA-256-PLUS"

_VERIFIER: Final = re.compile(r"SCRAM-SHA-256\$(\d{1,9}):([A-Za-z0-9+/=]+)\$([A-Za-z0-9+/=]+):([A-Za-z0-9+/=]+)")
_ITERATIONS: Final = 4096  # PostgreSQL's default
_MOST_ITERATIONS: Final = 10_000_000
_SALT_BYTES: Final = range(12, 257)
_KEY_BYTES: Final = 32


class BadPassword(LoginRefused):
    """A wrong password, or nobody of that name: the same to the client."""

    def __init__(self, user: str) -> None:
        super().__init__("28P01", f'password authentication failed for user "{user}"')


@dataclass(frozen=True, slots=True)
class Verifier:
    """What lets us check a password without knowing it."""

    iterations: int
    salt: bytes
    stored_key: bytes
    server_key: bytes

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read what PostgreSQL keeps in pg_authid.rolpassword, or raise ValueError."""
        match = _VERIFIER.fullmatch(text)
        if match is None:
            raise ValueError("not a SCRAM-SHA-256 verifier")
        verifier = cls(int(match[1]), *(b64decode(part, validate=True) for part in match.groups()[1:]))
        if not _ITERATIONS <= verifier.iterations <= _MOST_ITERATIONS:
            raise ValueError(f"a SCRAM-SHA-256 verifier has {_ITERATIONS} to {_MOST_ITERATIONS} iterations")
        if len(verifier.salt) not in _SALT_BYTES:
            raise ValueError("the salt of a SCRAM-SHA-256 verifier has 12 to 256 bytes")
        if {len(verifier.stored_key), len(verifier.server_key)} != {_KEY_BYTES}:
            raise ValueError("the keys of a SCRAM-SHA-256 verifier have 32 bytes")
        return verifier

    @classmethod
    def of_password(cls, password: str, salt: bytes, iterations: int = _ITERATIONS) -> Self:
        """Make one; the salt is 16 random bytes. Raises ValueError for a password that SASLprep does not allow."""
        try:
            info = ScramMechanism(PLAIN.decode()).make_auth_info(password, iteration_count=iterations, salt=salt)
        except ScramException as error:
            raise ValueError("this password holds characters that SASLprep (RFC 4013) does not allow") from error
        made_salt, stored_key, server_key, made_iterations = info
        return cls(made_iterations, made_salt, stored_key, server_key)

    def __str__(self) -> str:
        salt, stored, server = (b64encode(part).decode() for part in (self.salt, self.stored_key, self.server_key))
        return f"SCRAM-SHA-256${self.iterations}:{salt}${stored}:{server}"


@dataclass(frozen=True, slots=True)
class Accounts:
    """The verifier of every analyst, and a made-up one for everybody else.

    The made-up one is the same each time (another salt at the next try would tell that nobody is there), and looks
    like that of one of the analysts. The secret is nobody's to guess, and the same for all processes of one proxy.
    """

    verifiers: Mapping[str, Verifier]
    secret: bytes

    def verifier_of(self, user: str) -> Verifier:
        made_up = self._make_up(user)  # made for those who exist too: it takes the same time
        return self.verifiers.get(user, made_up)

    def _make_up(self, user: str) -> Verifier:
        salt = self._draw("salt", user)
        known = sorted(self.verifiers)
        like = self.verifiers[known[int.from_bytes(salt[-8:], "big") % len(known)]] if known else None
        size = len(like.salt) if like else 16
        iterations = like.iterations if like else _ITERATIONS
        return Verifier(iterations, salt[:size], self._draw("stored", user)[:32], self._draw("server", user)[:32])

    def _draw(self, purpose: str, user: str) -> bytes:
        key = hmac.digest(self.secret, f"{purpose} {user}".encode(), "sha256")
        return hashlib.shake_256(key).digest(max(_SALT_BYTES) + 8)


class ScramServer:
    """One exchange: the client's first words, ours, its proof, ours."""

    def __init__(self, user: str, verifier: Verifier, mechanism: bytes, end_point: bytes | None) -> None:
        """`end_point` is the hash of our certificate (tls-server-end-point, RFC 5929), if PLUS was offered."""
        if mechanism not in offered(end_point):
            raise ProtocolViolation("client selected an invalid SASL authentication mechanism")
        binding = None if end_point is None else ("tls-server-end-point", end_point)
        secrets = (verifier.salt, verifier.stored_key, verifier.server_key, verifier.iterations)
        self._user = user
        self._mechanism = mechanism
        self._server = ScramMechanism(mechanism.decode()).make_server(lambda _: secrets, channel_binding=binding)

    def first(self, data: bytes) -> bytes:
        """Answer the client's first words with salt, iterations and nonce."""
        header, bare = _split_header(_text(data))
        if header.startswith("p=") and self._mechanism != PLUS:
            raise ProtocolViolation("malformed SCRAM message")  # scramp would change the mechanism for it
        try:
            self._server.set_client_first(header + _with_a_name(bare))
            self._server.client_first_bare = bare  # what both sides sign is what was sent
            return str(self._server.get_server_first()).encode()
        except ScramException as error:
            raise self._refusal(error) from None

    def final(self, data: bytes) -> bytes:
        """Check the client's proof and answer with ours, or raise BadPassword."""
        try:
            self._server.set_client_final(_text(data))
            return str(self._server.get_server_final()).encode()
        except ScramException as error:
            raise self._refusal(error) from None

    def _refusal(self, error: ScramException) -> LoginRefused | ProtocolViolation:
        match error.server_error.value if error.server_error else "":
            case "invalid-proof":
                return BadPassword(self._user)
            case "server-does-support-channel-binding":
                # The client was told of no PLUS although we offered it: somebody sits in between.
                return LoginRefused("28000", "SCRAM channel binding negotiation error")
            case "channel-bindings-dont-match" | "unsupported-channel-binding-type":
                return LoginRefused("28000", "SCRAM channel binding check failed")
            case _:
                return ProtocolViolation("malformed SCRAM message")


def offered(end_point: bytes | None) -> tuple[bytes, ...]:
    return (PLAIN,) if end_point is None else (PLUS, PLAIN)


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise ProtocolViolation("malformed SCRAM message") from error


def _split_header(message: str) -> tuple[str, str]:
    """The gs2 header (flag and authorization identity, each with its comma), and the rest, which is signed."""
    flag, _, rest = message.partition(",")
    identity, comma, bare = rest.partition(",")
    if not comma or identity:
        raise ProtocolViolation("malformed SCRAM message")
    return f"{flag},,", bare


def _with_a_name(bare: str) -> str:
    """The user is the one of the startup message. scramp wants a name here that is not empty: it gets one."""
    name, comma, rest = bare.partition(",")
    if not comma or not name.startswith("n="):
        raise ProtocolViolation("malformed SCRAM message")
    return f"n=*,{rest}"
