"""Limits of admission: connections before login, sessions of one analyst, sessions in all."""

from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from proxy.wire.startup import LoginRefused

_FREE_TRIES: Final = 3  # wrong passwords for one account
_FREE_TRIES_OF_HOST: Final = 20  # for any: many analysts may come from one address
_FIRST_SECONDS: Final = 0.25
_MOST_SECONDS: Final = 5.0
_FORGOTTEN_SECONDS: Final = 300.0
_MOST_FAILURES: Final = 10_000  # that are remembered


class SessionSlots:
    """Sessions that are running."""

    def __init__(self, *, in_all: int, per_analyst: int) -> None:
        self._in_all = in_all
        self._per_analyst = per_analyst
        self._taken: Counter[str] = Counter()

    def __len__(self) -> int:
        return self._taken.total()

    def take(self, user: str) -> None:
        """Count one more session of this analyst, or refuse it as PostgreSQL does."""
        if len(self) >= self._in_all:
            raise LoginRefused("53300", "sorry, too many clients already")
        if self._taken[user] >= self._per_analyst:
            raise LoginRefused("53300", f'too many connections for role "{user}"')
        self._taken[user] += 1

    def leave(self, user: str) -> None:
        self._taken[user] -= 1
        self._taken += Counter()  # forgets who has none


@dataclass(slots=True, eq=False)
class _Waiting:
    host: str
    has_sent: Callable[[], bool]
    has_spoken: bool = False


class PendingLogins:
    """Connections before their login.

    They cost nothing to open, so whoever opens many must not keep the others out. When it is full one has to go, of
    those from the address that has most of them: the one that has stood there longest without a word, or else longest.
    An address that has as many as it may have loses its own. A login speaks at once and takes milliseconds; where its
    first bytes wait to be read, since many have come in one turn of the loop, it is not without a word.
    """

    def __init__(self, size: int, *, per_host: int | None = None) -> None:
        self._size, self._per_host = size, size if per_host is None else per_host
        self._waiting: dict[Callable[[], None], _Waiting] = {}  # in the order in which they came
        self._silent: dict[str, dict[Callable[[], None], None]] = {}  # by address, in that order too
        self._by_host: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._waiting)

    def enter(self, turn_out: Callable[[], None], host: str = "", has_sent: Callable[[], bool] = lambda: False) -> None:
        """Take one more in; `has_sent` says whether bytes of it wait to be read."""
        if self._by_host[host] >= self._per_host:
            self._turn_out(host)
        elif len(self._waiting) >= self._size:
            ((crowd, _),) = self._by_host.most_common(1)
            self._turn_out(crowd)
        self._waiting[turn_out] = _Waiting(host, has_sent)
        self._silent.setdefault(host, {})[turn_out] = None
        self._by_host[host] += 1

    def spoke(self, turn_out: Callable[[], None]) -> None:
        """Its first bytes have come. May be said twice."""
        waiting = self._waiting.get(turn_out)
        if waiting is not None and not waiting.has_spoken:
            waiting.has_spoken = True
            self._no_longer_silent(waiting.host, turn_out)

    def leave(self, turn_out: Callable[[], None]) -> None:
        """Logged in, or gone. May be said twice."""
        waiting = self._waiting.pop(turn_out, None)
        if waiting is None:
            return
        if not waiting.has_spoken:
            self._no_longer_silent(waiting.host, turn_out)
        self._by_host[waiting.host] -= 1
        if not self._by_host[waiting.host]:
            del self._by_host[waiting.host]

    def _turn_out(self, host: str) -> None:
        """Of those from this address, the one that has to go first."""
        going = self._find_silent(host)
        if going is None:
            going = next(turn_out for turn_out, waiting in self._waiting.items() if waiting.host == host)
        self.leave(going)
        going()

    def _find_silent(self, host: str) -> Callable[[], None] | None:
        for turn_out in tuple(self._silent.get(host, ())):
            if not self._waiting[turn_out].has_sent():
                return turn_out
            self.spoke(turn_out)
        return None

    def _no_longer_silent(self, host: str, turn_out: Callable[[], None]) -> None:
        del self._silent[host][turn_out]
        if not self._silent[host]:
            del self._silent[host]


class FailedLogins:
    """Wrong passwords: who tries another one waits before it is looked at, and longer each time.

    Counted are an account as tried from one address, and an address whatever the account; never an account alone,
    which a stranger could keep its owner from.
    """

    def __init__(self) -> None:
        self._counts: OrderedDict[tuple[str, str], tuple[int, float]] = OrderedDict()

    def note(self, host: str, user: str, now: float) -> None:
        """A password was wrong."""
        for key in ((host, user), (host, "")):
            self._counts[key] = self._count(key, now) + 1, now
            self._counts.move_to_end(key)
        while len(self._counts) > _MOST_FAILURES:
            self._counts.popitem(last=False)

    def seconds(self, host: str, user: str, now: float) -> float:
        """Return how long the next one has to wait."""
        beyond = max(self._count((host, user), now) - _FREE_TRIES, self._count((host, ""), now) - _FREE_TRIES_OF_HOST)
        return 0.0 if beyond < 0 else min(_MOST_SECONDS, _FIRST_SECONDS * 2.0 ** min(beyond, 10))

    def _count(self, key: tuple[str, str], now: float) -> int:
        count, last = self._counts.get(key, (0, now))
        return count if now - last < _FORGOTTEN_SECONDS else 0
