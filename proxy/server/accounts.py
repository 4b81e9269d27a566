"""Accounts that may log in, and their proofs. Others are asked for a password too, and never have the right one.

A name that does not exist, one whose time is over, one from a wrong address and one without its certificate all look
like a wrong password: in words, in their salt, and in what is computed. The log alone has the reason.

Verifiers that a database keeps are asked for by the query of the rules file, as pgbouncer's auth_query does: all names
at once, whoever logs in, and kept for some seconds. So neither the time of a login nor the load on the database tells
who exists, and a stranger can make us ask no more than once in that time.
"""

import asyncio
import hashlib
import hmac
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Any, Final, Protocol

import psycopg
from psycopg import AsyncConnection, AsyncRawCursor
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from proxy.causes import cause_of
from proxy.execute.clock import Clock, system_clock
from proxy.log import warn
from proxy.wire.authentication import Exchange, ProvedByCertificate, ScramExchange
from proxy.wire.scram import SALT_BYTES, USUAL_ITERATIONS, Verifier

UNREADABLE: Final = "auth_query"
"""Why nobody is let in whose verifier the database keeps: it could not be asked."""

_RETRY_SECONDS: Final = 1.0  # after a failure


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

    def admits(self, host: str) -> bool:
        """Return whether this name may log in from there."""
        return self.networks is None or is_within(host, self.networks)

    def barred_by(self, attempt: Attempt, now: datetime) -> str:
        """Explain why a right password is not enough; empty if it is."""
        if not self.admits(attempt.host):
            return "address"
        if self.valid_until is not None and now >= self.valid_until:
            return "expired"
        if self.certificate is not None and self.certificate not in attempt.certificate_names:
            return "certificate"
        return ""


@dataclass(frozen=True, slots=True)
class Answers:
    """The verifiers of the last time that there were any, by name."""

    verifiers: Mapping[str, Verifier] = field(default_factory=dict)
    are_current: bool = True  # False: the database could not be asked just now, so nobody logs in by these


class AuthQuery:
    """One query, and what it returned last."""

    def __init__(
        self, query: str, dsn: str, names: Collection[str], *, fresh_seconds: float, timeout_seconds: float
    ) -> None:
        self._query = query
        self._dsn = make_conninfo(
            "", **conninfo_to_dict(dsn) | {"application_name": "noisegate", "client_encoding": "UTF8"}
        )
        self._names = sorted(names)
        self._fresh_seconds, self._timeout_seconds = fresh_seconds, timeout_seconds
        self._answers = Answers()
        self._reading: asyncio.Task[None] | None = None
        self._next = 0.0  # by the clock of the event loop

    async def answers(self) -> Answers:
        """All who wait share one look at the database; the log says why it could not be asked."""
        if asyncio.get_running_loop().time() >= self._next:
            if self._reading is None:
                self._reading = asyncio.get_running_loop().create_task(self._read())
            await asyncio.shield(self._reading)
        return self._answers

    async def _read(self) -> None:
        try:
            self._answers = await self._look()
        finally:
            seconds = self._fresh_seconds if self._answers.are_current else _RETRY_SECONDS
            self._next = asyncio.get_running_loop().time() + seconds
            self._reading = None

    async def _look(self) -> Answers:
        try:
            async with asyncio.timeout(self._timeout_seconds):
                rows = await self._ask()
        except (psycopg.Error, OSError, TimeoutError) as error:
            warn("auth_query_failed", kind=type(error).__name__, **cause_of(error).fields)
            return replace(self._answers, are_current=False)
        verifiers = {name: _verifier_of(name, answer) for name, answer in rows.items()}
        return Answers({name: verifier for name, verifier in verifiers.items() if verifier is not None})

    async def _ask(self) -> Mapping[str, list[tuple[Any, ...]]]:
        """One transaction that writes nothing, and ends with the connection."""
        milliseconds = max(1, int(self._timeout_seconds * 1000))
        async with await AsyncConnection.connect(self._dsn, cursor_factory=AsyncRawCursor) as connection:
            await connection.set_read_only(True)
            await connection.execute(f"SET LOCAL statement_timeout = {milliseconds}")
            async with connection.pipeline():
                cursors = {name: await connection.execute(self._query, [name]) for name in self._names}
            return {name: await cursor.fetchmany(2) for name, cursor in cursors.items()}


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
        answers = await self._answers()
        kept = self._kept(attempt.user, answers)
        if not account.verifiers and not answers.are_current:
            barred_by = barred_by or UNREADABLE
        made_up = self._make_up(attempt.user, answers)  # made for those who exist too: it takes the same time
        if kept:
            made_up = replace(made_up, iterations=kept[0].verifier.iterations, salt=kept[0].verifier.salt)
        valid = _valid(kept, now)
        barred_by = barred_by or ("expired" if kept and not valid else "")
        pair = (*(valid if not barred_by else ()), made_up, made_up)[:2]
        return ScramExchange(attempt.user, pair, attempt.end_point, barred_by, is_complete=answers.are_current)

    async def valid_verifiers(self, user: str) -> list[Verifier]:
        """Return what passwords are held against now; where a database cannot be asked, as it was told last."""
        account = self.accounts.get(user, Account())
        answers = Answers() if account.verifiers else await self._answers()
        return _valid(self._kept(user, answers), self.clock())

    async def _answers(self) -> Answers:
        return Answers() if self.auth_query is None else await self.auth_query.answers()

    def _kept(self, user: str, answers: Answers) -> tuple[DatedVerifier, ...]:
        kept = self.accounts.get(user, Account()).verifiers
        if not kept and user in answers.verifiers:
            return (DatedVerifier(answers.verifiers[user]),)
        return kept

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


def _valid(kept: Iterable[DatedVerifier], now: datetime) -> list[Verifier]:
    return [verifier.verifier for verifier in kept if verifier.until is None or now < verifier.until]


def is_within(host: str, networks: tuple[IPv4Network | IPv6Network, ...]) -> bool:
    """Return whether an address is in one of these. A unix socket has no address, and is in none."""
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return any((mapped or address) in network for network in networks)


def _verifier_of(name: str, rows: list[tuple[Any, ...]]) -> Verifier | None:
    """The verifier of the only row, which begins with the name; whatever else was returned is said in the log."""
    match rows:
        case [] | [(_, None, *_)]:
            return None
        case [(str(returned), str(text), *_)] if returned == name:
            try:
                return Verifier.parse(text)
            except ValueError:
                reason = "no_scram_verifier"  # md5, or a password in clear
        case [_, _, *_]:
            reason = "several_rows"
        case _:
            reason = "not_name_and_verifier"
    warn("auth_query_unusable", user=name, reason=reason)
    return None
