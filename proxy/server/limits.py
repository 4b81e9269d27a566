"""How many may be in the house: strangers at the door, sessions of one analyst, sessions in all."""

from collections import Counter
from collections.abc import Callable

from proxy.wire.startup import LoginRefused


class Seats:
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


class Doorway:
    """Connections before their login.

    They cost nothing to open, so whoever opens many must not keep the others out: when it is full the one that
    has stood there longest has to go. A login takes milliseconds, a stranger who says nothing stands there long.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._waiting: dict[Callable[[], None], None] = {}  # in the order in which they came

    def __len__(self) -> int:
        return len(self._waiting)

    def enter(self, turn_out: Callable[[], None]) -> None:
        if len(self._waiting) >= self._size:
            oldest = next(iter(self._waiting))
            self.leave(oldest)
            oldest()
        self._waiting[turn_out] = None

    def leave(self, turn_out: Callable[[], None]) -> None:
        """Logged in, or gone. May be said twice."""
        self._waiting.pop(turn_out, None)
