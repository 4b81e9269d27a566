"""Accounts that may log in, and their proofs. Others are asked for a password too, and never have the right one.

A name that does not exist, one whose time is over, one from a wrong address and one without its certificate all look
like a wrong password: in words, in their salt, and in what is computed. The log alone has the reason.
"""

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Final, Protocol

from proxy.execute.clock import Clock, system_clock
from proxy.server.auth_query import Answers, AuthQuery
from proxy.wire.exchange import Exchange, ProvedByCertificate, ScramExchange
from proxy.wire.scram import SALT_BYTES, USUAL_ITERATIONS, Verifier

UNREADABLE: Final = "auth_query"
"""Why nobody is let in whose verifier the database keeps: it could not be asked."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """A client that has said who it is."""

    user: str
    host: str
    end_point: bytes | None = None  # the hash of our certificate, where the connection has TLS
    certificate_names: frozenset[str] = frozenset()  # of a certificate that an authority of ours has signed


class Authenticator(Protocol):
    """Finds the exchange by which a client proves who it is. Another way to log in is another one of these."""

    async def exchange(self, attempt: Attempt) -> Exchange:
        """Never says that there is no such name: that is for the exchange to refuse, at its end."""


@dataclass(frozen=True, slots=True)
class DatedVerifier:
    """A verifier, and until when it is one."""

    verifier: Verifier
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Account:
    """One name, and what it takes to log in with it."""

    verifiers: tuple[DatedVerifier, ...] = ()  # at most two, with one salt
    needs_password: bool = True
    certificate: str | None = None
    valid_until: datetime | None = None
    networks: tuple[IPv4Network | IPv6Network, ...] | None = None

    def barred_by(self, attempt: Attempt, now: datetime) -> str:
        """Explain why a right password is not enough; empty if it is."""
        if self.networks is not None and not is_within(attempt.host, self.networks):
            return "address"
        if self.valid_until is not None and now >= self.valid_until:
            return "expired"
        if self.certificate is not None and self.certificate not in attempt.certificate_names:
            return "certificate"
        return ""


@dataclass(frozen=True)
class Accounts:
    """The accounts of the rules, with the verifiers of rules, file and auth_query; see Authenticator.

    A made-up verifier is the same each time (another salt at the next try would tell that nobody is there), and looks
    like that of one of the accounts. The secret is nobody's to guess, and the same for all processes of one proxy.
    """

    accounts: Mapping[str, Account]
    secret: bytes
    auth_query: AuthQuery | None = None
    clock: Clock = field(default=system_clock)

    async def exchange(self, attempt: Attempt) -> Exchange:
        now = self.clock()
        account = self.accounts.get(attempt.user, Account())
        barred_by = account.barred_by(attempt, now)
        if not account.needs_password and not barred_by:
            return ProvedByCertificate()
        answers = Answers() if self.auth_query is None else await self.auth_query.answers()
        kept = account.verifiers
        if not kept and attempt.user in answers.verifiers:
            kept = (DatedVerifier(answers.verifiers[attempt.user]),)
        if not account.verifiers and not answers.are_current:
            barred_by = barred_by or UNREADABLE
        made_up = self._make_up(attempt.user, answers)  # made for those who exist too: it takes the same time
        if kept:
            made_up = replace(made_up, iterations=kept[0].verifier.iterations, salt=kept[0].verifier.salt)
        valid = [verifier.verifier for verifier in kept if verifier.until is None or now < verifier.until]
        barred_by = barred_by or ("expired" if kept and not valid else "")
        pair = (*(valid if not barred_by else ()), made_up, made_up)[:2]
        return ScramExchange(attempt.user, pair, attempt.end_point, barred_by, is_complete=answers.are_current)

    def _make_up(self, user: str, answers: Answers) -> Verifier:
        salt = self._draw("salt", user)
        kept = {name: account.verifiers[0].verifier for name, account in self.accounts.items() if account.verifiers}
        known = [verifier for _, verifier in sorted({**answers.verifiers, **kept}.items())]
        like = known[int.from_bytes(salt[-8:], "big") % len(known)] if known else None
        size = len(like.salt) if like else 16
        iterations = like.iterations if like else USUAL_ITERATIONS
        return Verifier(iterations, salt[:size], self._draw("stored", user)[:32], self._draw("server", user)[:32])

    def _draw(self, purpose: str, user: str) -> bytes:
        key = hmac.digest(self.secret, f"{purpose} {user}".encode(), "sha256")
        return hashlib.shake_256(key).digest(max(SALT_BYTES) + 8)


def is_within(host: str, networks: tuple[IPv4Network | IPv6Network, ...]) -> bool:
    """Return whether an address is in one of these. A unix socket has no address, and is in none."""
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return any((mapped or address) in network for network in networks)
