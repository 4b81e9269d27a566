"""Exchanges in which a client proves who it is: messages in, messages out, until the proof is there.

Every way to log in is an exchange; `Conversation` knows no other thing of it.
"""

from collections.abc import Sequence
from typing import Protocol

from proxy.wire.authentication import (
    AuthenticationOk,
    AuthenticationSASL,
    AuthenticationSASLContinue,
    AuthenticationSASLFinal,
)
from proxy.wire.codec import ProtocolViolation
from proxy.wire.frontend import SASLInitialResponse, SASLResponse
from proxy.wire.scram import BadPassword, NotChecked, ScramServer, Verifier, offered


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
