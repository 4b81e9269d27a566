"""The server's side of SCRAM-SHA-256 and SCRAM-SHA-256-PLUS (RFC 5802, 7677), for the verifiers that PostgreSQL stores.

`scramp` has the cryptography. Here is what PostgreSQL's clients need besides: the name inside SCRAM is ignored
(libpq leaves it empty), and two passwords are valid at once while one is being changed.
"""

import re
import secrets
from base64 import b64decode, b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Self

from scramp import ScramException, ScramMechanism
from scramp.core import ScramServer as ScramServerOfLibrary

from proxy.wire.codec import ProtocolViolation
from proxy.wire.startup import LoginRefused

PLAIN: Final = b"SCRAM-SHA-256"
PLUS: Final = b"SCRAM-SHA-256-PLUS"

_VERIFIER: Final = re.compile(r"SCRAM-SHA-256\$(\d{1,9}):([A-Za-z0-9+/=]+)\$([A-Za-z0-9+/=]+):([A-Za-z0-9+/=]+)")
USUAL_ITERATIONS: Final = 4096  # PostgreSQL's default
_MOST_ITERATIONS: Final = 10_000_000
SALT_BYTES: Final = range(12, 257)
_KEY_BYTES: Final = 32


class BadPassword(LoginRefused):
    """A wrong password, or nobody of that name: the same to the client. The log has the reason."""

    def __init__(self, user: str, reason: str = "") -> None:
        super().__init__("28P01", f'password authentication failed for user "{user}"', reason=reason)


class NotChecked(BadPassword):
    """The same while some verifiers cannot be read: to all names alike, so that it tells nothing of any."""

    def __init__(self, user: str, reason: str = "") -> None:
        super().__init__(user, reason)
        self.sqlstate, self.message = "57P03", "the password cannot be checked at the moment"
        self.hint = "Try again later, or ask the operator of this server, whose log says why."


@dataclass(frozen=True, slots=True)
class Verifier:
    """A verifier: it lets us check a password without knowing it."""

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
        if not USUAL_ITERATIONS <= verifier.iterations <= _MOST_ITERATIONS:
            raise ValueError(f"a SCRAM-SHA-256 verifier has {USUAL_ITERATIONS} to {_MOST_ITERATIONS} iterations")
        if len(verifier.salt) not in SALT_BYTES:
            raise ValueError("the salt of a SCRAM-SHA-256 verifier has 12 to 256 bytes")
        if {len(verifier.stored_key), len(verifier.server_key)} != {_KEY_BYTES}:
            raise ValueError("the keys of a SCRAM-SHA-256 verifier have 32 bytes")
        return verifier

    @classmethod
    def of_password(cls, password: str, salt: bytes, iterations: int = USUAL_ITERATIONS) -> Self:
        """Make one; the salt is 16 random bytes. Raises ValueError for a password that SASLprep does not allow."""
        try:
            info = ScramMechanism(PLAIN.decode()).make_auth_info(password, iteration_count=iterations, salt=salt)
        except ScramException as error:
            raise ValueError("the password has characters that SASLprep (RFC 4013) does not allow") from error
        made_salt, stored_key, server_key, made_iterations = info
        return cls(made_iterations, made_salt, stored_key, server_key)

    def __str__(self) -> str:
        salt, stored, server = (b64encode(part).decode() for part in (self.salt, self.stored_key, self.server_key))
        return f"SCRAM-SHA-256${self.iterations}:{salt}${stored}:{server}"


class ScramServer:
    """One exchange: the client's first words, ours, its proof, ours.

    The verifiers share salt and iterations, so that the proof of each password answers the same words. All are checked
    whatever the first says: the time does not tell how many there are that could be right.
    """

    def __init__(self, user: str, verifiers: Sequence[Verifier], mechanism: bytes, end_point: bytes | None) -> None:
        """`end_point` is the hash of our certificate (tls-server-end-point, RFC 5929), if PLUS was offered."""
        if mechanism not in offered(end_point):
            raise ProtocolViolation("client selected an invalid SASL authentication mechanism")
        binding = None if end_point is None else ("tls-server-end-point", end_point)
        nonce = secrets.token_urlsafe(24)
        self._user = user
        self._mechanism = mechanism
        self._servers = [
            ScramMechanism(mechanism.decode()).make_server(_known(verifier), channel_binding=binding, s_nonce=nonce)
            for verifier in verifiers
        ]

    def first(self, data: bytes) -> bytes:
        """Answer the client's first words with salt, iterations and nonce."""
        header, bare = _split_header(_text(data))
        if header.startswith("p=") and self._mechanism != PLUS:
            raise ProtocolViolation("malformed SCRAM message")  # scramp would change the mechanism for it
        try:
            for server in self._servers:
                # The user is the one of the startup message. scramp wants a name here that is not empty: it gets one.
                name, comma, rest = bare.partition(",")
                if not comma or not name.startswith("n="):
                    raise ProtocolViolation("malformed SCRAM message")
                server.set_client_first(header + f"n=*,{rest}")
                server.client_first_bare = bare  # what both sides sign is what was sent
            words = [str(server.get_server_first()).encode() for server in self._servers]
            return words[0]  # the same of all: one nonce, one salt
        except ScramException as error:
            raise self._refusal(error) from None

    def final(self, data: bytes) -> bytes:
        """Check the client's proof and answer with ours, or raise BadPassword."""
        text = _text(data)
        results = [_check_proof(server, text) for server in self._servers]
        refused = [result for result in results if isinstance(result, ScramException)]
        if len(refused) == len(results):
            raise self._refusal(refused[0])
        return next(result for result in results if isinstance(result, bytes))

    def _refusal(self, error: ScramException) -> LoginRefused | ProtocolViolation:
        match error.server_error.value if error.server_error else "":
            case "invalid-proof":
                return BadPassword(self._user)
            case "server-does-support-channel-binding":
                # The client saw no PLUS although we offered it: somebody sits in between.
                return LoginRefused("28000", "SCRAM channel binding negotiation error")
            case "channel-bindings-dont-match" | "unsupported-channel-binding-type":
                return LoginRefused("28000", "SCRAM channel binding check failed")
            case _:
                return ProtocolViolation("malformed SCRAM message")


def _known(verifier: Verifier) -> Callable[[str], tuple[bytes, bytes, bytes, int]]:
    return lambda _: (verifier.salt, verifier.stored_key, verifier.server_key, verifier.iterations)


def _check_proof(server: ScramServerOfLibrary, text: str) -> bytes | ScramException:
    try:
        server.set_client_final(text)
        return str(server.get_server_final()).encode()
    except ScramException as error:
        return error


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
