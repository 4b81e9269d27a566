"""Visits of the web console: signed cookies, sessions that end, and tokens that forms must show.

A cookie holds a random number and its signature, and nothing else. What it stands for is kept here, so that a logout,
a password that is changed and a restart end it.
"""

import hmac
import secrets
from collections import OrderedDict
from dataclasses import dataclass
from typing import Final, Literal

from proxy.server.accounts import Account

Role = Literal["operator", "analyst"]

IDLE_SECONDS: Final = 30 * 60.0
LONGEST_SECONDS: Final = 12 * 3600.0
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
        if now - visit.seen > IDLE_SECONDS or now - visit.since > LONGEST_SECONDS:
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
