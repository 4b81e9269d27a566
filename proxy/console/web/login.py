"""Logging in at the web console: with the password of the analyst or operator, or by a gateway that is trusted.

A password is held against the same verifiers as at the proxy's own port, by the same exchange; wrong ones make the
next try wait, there as here.

Who is logged in has a visit. Its cookie holds a random number and its signature, and nothing else. What it stands for
is kept here, so that a logout, a password that is changed and a restart end it.
"""

import asyncio
import hmac
import secrets
from collections import Counter, OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from ipaddress import ip_network
from typing import Final, Literal

from scramp import ScramClient, ScramException

from proxy.execute.clock import system_clock
from proxy.log import event, warn
from proxy.metrics import LOGINS, LOGINS_REFUSED
from proxy.server.accounts import Account, Accounts, Attempt, is_within
from proxy.server.server_context import ServerContext
from proxy.settings import WebSettings
from proxy.wire.authentication import AuthenticationSASLContinue, Exchange, ScramExchange
from proxy.wire.frontend import SASLInitialResponse, SASLResponse
from proxy.wire.scram import PLAIN, BadPassword, Verifier
from proxy.wire.startup import LoginRefused

_MOST_AT_ONCE: Final = 4  # passwords that are held against verifiers, each some milliseconds of a processor
_MOST_WAITING: Final = 50
_MOST_OF_ONE_ADDRESS: Final = 10  # of these
_LONGEST: Final = 1000  # characters of a name or a password

Role = Literal["operator", "analyst"]

_IDLE_SECONDS: Final = 30 * 60.0
_LONGEST_SECONDS: Final = 12 * 3600.0
_MOST_OF_ONE: Final = 20  # visits of one user
_MOST_VISITS: Final = 1000  # the one that was idle longest has to go
_MOST_NOTES: Final = 1000


@dataclass(slots=True)
class Visit:
    """Somebody who is logged in."""

    user: str
    role: Role
    account: Account  # as it was at the login: another password ends the visit
    since: float
    seen: float
    by_gateway: bool = False  # who logged them in, and will again
    verifiers: Sequence[Verifier] = ()  # that held for the password, wherever they are kept


@dataclass
class Door:
    """Lets people in."""

    context: ServerContext
    settings: WebSettings
    _turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_MOST_AT_ONCE))
    _waiting: Counter[str] = field(default_factory=Counter)  # by address

    async def log_in(self, user: str, password: str, peer: str) -> Visit:
        """Raises LoginRefused, with the words for the page; the log has the reason."""
        try:
            if len(user) > _LONGEST or len(password) > _LONGEST or "\0" in user:
                raise BadPassword("")
            await self._check(user, password, peer)
            visit = self._visit(user)
            if visit is None:  # taken out of the rules meanwhile
                raise BadPassword(user)
            visit.verifiers = await self._accounts.valid_verifiers(user)
        except LoginRefused as refused:
            if isinstance(refused, BadPassword):
                self.context.failures.note(peer, user, _now())
            LOGINS_REFUSED.labels(refused.sqlstate).inc()
            reason = {"reason": refused.reason} if refused.reason else {}
            warn(
                "login_refused", user=user, peer=peer, kind=type(refused).__name__, sqlstate=refused.sqlstate, **reason
            )
            raise
        LOGINS.inc()
        event("console_login", user=user, peer=peer)
        return visit

    def find_trusted(self, names: Sequence[str], peer: str) -> Visit | None:
        """Return who comes through the gateway, which has logged them in: from its address, as far as we can tell.

        Of two names one is the browser's own word, that the gateway should have taken out.
        """
        if len(names) != 1 or not names[0] or not self.trusts(peer):
            return None
        visit = self._visit(names[0])
        if visit is None or not visit.account.admits(peer):
            return None
        visit.by_gateway = True
        return visit

    def trusts(self, peer: str) -> bool:
        """Return whether this address is the gateway's."""
        return is_within(peer, tuple(map(ip_network, self.settings.trusted_from)))

    async def is_current(self, visit: Visit, peer: str) -> bool:
        """Return whether the visitor may still log in as at the time of the login, and from here."""
        account = self._account(visit.user)
        if account is None or account != visit.account or self._role(visit.user) != visit.role:
            return False
        if account.barred_by(Attempt(visit.user, peer), system_clock()):
            return False
        valid = await self._accounts.valid_verifiers(visit.user)
        return all(verifier in valid for verifier in visit.verifiers)

    async def _check(self, user: str, password: str, peer: str) -> None:
        seconds = self.context.failures.seconds(peer, user, _now())
        is_full = seconds and self._waiting.total() >= _MOST_WAITING  # who was not wrong before takes milliseconds
        if is_full or self._waiting[peer] >= _MOST_OF_ONE_ADDRESS:
            raise LoginRefused("53300", "too many logins at once; try again in a moment")
        self._waiting[peer] += 1
        try:
            await asyncio.sleep(seconds)
            exchange = await self.context.accounts.exchange(Attempt(user, peer))
            async with self._turns:
                await asyncio.to_thread(_prove, exchange, user, password)
        finally:
            self._waiting[peer] -= 1
            self._waiting = +self._waiting  # without the addresses that wait no more

    def _visit(self, user: str) -> Visit | None:
        account, role = self._account(user), self._role(user)
        if account is None or role is None or _is_over(account):
            return None
        return Visit(user, role, account, _now(), _now())

    @property
    def _accounts(self) -> Accounts:
        accounts = self.context.accounts
        assert isinstance(accounts, Accounts), "the accounts of the rules"
        return accounts

    def _account(self, user: str) -> Account | None:
        return self._accounts.accounts.get(user)

    def _role(self, user: str) -> Role | None:
        if self._account(user) is None:
            return None
        return "operator" if user in self.context.operators else "analyst"


class Visits:
    """All who are logged in. Moments are on the event loop's clock."""

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)
        self._visits: OrderedDict[str, Visit] = OrderedDict()
        self._notes: OrderedDict[str, str] = OrderedDict()

    def new_cookie(self) -> str:
        """A number that nobody has, and its signature."""
        number = secrets.token_urlsafe(24)
        return f"{number}.{self._sign('cookie', number)}"

    def number_of(self, cookie: str) -> str | None:
        """The number of a cookie of ours."""
        number, _, signature = cookie.partition(".")
        return number if hmac.compare_digest(signature.encode(), self._sign("cookie", number).encode()) else None

    def token(self, number: str) -> str:
        """Return what each form of this browser has to show: a page of another site does not know it."""
        return self._sign("form", number)

    def is_token(self, number: str, token: str) -> bool:
        return hmac.compare_digest(token.encode(), self.token(number).encode())

    def begin(self, visit: Visit) -> str:
        """A new cookie for who has just logged in: the one before the login is worth nothing."""
        cookie = self.new_cookie()
        own = [number for number, old_visit in self._visits.items() if old_visit.user == visit.user]
        for number in own[: len(own) + 1 - _MOST_OF_ONE]:
            self.end(number)  # so that nobody logs others out by many logins
        self._visits[cookie.partition(".")[0]] = visit
        while len(self._visits) > _MOST_VISITS:
            self._visits.popitem(last=False)
        return cookie

    def find(self, number: str, now: float) -> Visit | None:
        """The visit, unless it is over."""
        visit = self._visits.get(number)
        if visit is None:
            return None
        if now - visit.seen > _IDLE_SECONDS or now - visit.since > _LONGEST_SECONDS:
            self.end(number)
            return None
        visit.seen = now
        self._visits.move_to_end(number)
        return visit

    def end(self, number: str) -> None:
        self._visits.pop(number, None)
        self._notes.pop(number, None)

    def note(self, number: str, text: str) -> None:
        """Keep a line for the next page of this browser."""
        self._notes[number] = text
        while len(self._notes) > _MOST_NOTES:
            self._notes.popitem(last=False)

    def take_note(self, number: str) -> str:
        return self._notes.pop(number, "")

    def _sign(self, purpose: str, number: str) -> str:
        return hmac.digest(self._key, f"{purpose} {number}".encode(), "sha256").hex()


def _is_over(account: Account | None) -> bool:
    return account is None or (account.valid_until is not None and system_clock() >= account.valid_until)


def _prove(exchange: Exchange, user: str, password: str) -> None:
    """Be the client of the exchange; raises LoginRefused."""
    if not isinstance(exchange, ScramExchange):  # a certificate alone: browsers show none here
        raise BadPassword(user, "certificate")
    try:
        client = ScramClient([PLAIN.decode()], "*", password)
    except ScramException:
        raise BadPassword(user) from None
    first = SASLInitialResponse(PLAIN, client.get_client_first().encode())
    words = AuthenticationSASLContinue.decode(exchange.answer(first.encode())).data
    client.set_server_first(words.decode())
    exchange.answer(SASLResponse(client.get_client_final().encode()).encode())
    if not exchange.is_proved:
        raise BadPassword(user)


def _now() -> float:
    return asyncio.get_running_loop().time()
