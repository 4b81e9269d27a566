"""Logging in at the web console: with the password of the analyst or operator, or by a gateway that is trusted.

A password is held against the same verifiers as at the proxy's own port, by the same exchange; wrong ones make the
next try wait, there as here.
"""

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from ipaddress import ip_network
from typing import Final

from scramp import ScramClient, ScramException

from proxy.console.web.visits import Role, Visit
from proxy.execute.clock import system_clock
from proxy.log import event, warn
from proxy.metrics import LOGINS, LOGINS_REFUSED
from proxy.server.accounts import Account, Accounts, Attempt, is_within
from proxy.server.server_context import ServerContext
from proxy.settings import WebSettings
from proxy.wire.authentication import AuthenticationSASLContinue
from proxy.wire.exchange import Exchange, ScramExchange
from proxy.wire.frontend import SASLInitialResponse, SASLResponse
from proxy.wire.scram import PLAIN, BadPassword
from proxy.wire.startup import LoginRefused

_MOST_AT_ONCE: Final = 4  # passwords that are held against verifiers, each some milliseconds of a processor
_MOST_WAITING: Final = 50
_MOST_OF_ONE_ADDRESS: Final = 10  # of these
_LONGEST: Final = 1000  # characters of a name or a password


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

    def find_trusted(self, name: str | None, peer: str) -> Visit | None:
        """Return who comes through the gateway, which has logged them in."""
        if not (self.settings.trusted_header and name) or not self.trusts(peer):
            return None
        visit = self._visit(name)
        if visit is not None:
            visit.by_gateway = True
        return visit

    def trusts(self, peer: str) -> bool:
        """Return whether this address is the gateway's."""
        return is_within(peer, tuple(map(ip_network, self.settings.trusted_from)))

    def is_current(self, visit: Visit) -> bool:
        """Return whether the visitor may still log in as at the time of the login."""
        account = self._account(visit.user)
        return account == visit.account and self._role(visit.user) == visit.role and not _is_over(account)

    async def _check(self, user: str, password: str, peer: str) -> None:
        if self._waiting.total() >= _MOST_WAITING or self._waiting[peer] >= _MOST_OF_ONE_ADDRESS:
            raise LoginRefused("53300", "too many logins at once; try again in a moment")
        self._waiting[peer] += 1
        try:
            await asyncio.sleep(self.context.failures.seconds(peer, user, _now()))
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

    def _account(self, user: str) -> Account | None:
        accounts = self.context.accounts
        assert isinstance(accounts, Accounts), "the accounts of the rules"
        return accounts.accounts.get(user)

    def _role(self, user: str) -> Role | None:
        if self._account(user) is None:
            return None
        return "operator" if user in self.context.operators else "analyst"


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
