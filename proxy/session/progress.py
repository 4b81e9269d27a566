"""NOTICEs that a statement still runs (`noisegate.progress`), at times that follow from its beginning alone.

They come until the statement is answered or refused, with `pad_to` until the point of its grid, and say the same
whatever goes on inside: the statement as it was written, and for how long it has run. So what a client has heard at its
end is a function of how long the statement took, which the client sees by its own clock. Nothing is said of what waits,
of which inner statement runs, or how far it is: that would tell when a part ended, which no clock of a client sees.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from proxy.session.errors import notice_report
from proxy.session.relay import Relay

_MOST_SHOWN: Final = 60  # characters of a statement


@contextmanager
def progress_shown(relay: Relay, statement: str, *, every: int, since: float, ends: float) -> Iterator[None]:
    """Say so after each `every` seconds. `since` and `ends` are on the event loop's clock."""
    ticks = _Ticks(relay, statement, every, since, ends)
    try:
        yield
    finally:
        ticks.stop()


class _Ticks:
    def __init__(self, relay: Relay, statement: str, every: int, since: float, ends: float) -> None:
        self._relay, self._statement, self._every, self._since, self._ends = relay, statement, every, since, ends
        self._loop = asyncio.get_running_loop()
        self._seconds = 0
        self._wait()

    def stop(self) -> None:
        self._next.cancel()

    def _wait(self) -> None:
        """Wait for the next multiple; those that have passed meanwhile are left out."""
        passed = int((self._loop.time() - self._since) / self._every) * self._every
        self._seconds = max(passed, self._seconds) + self._every
        self._next = self._loop.call_at(self._since + self._seconds, self._tell)

    def _tell(self) -> None:
        times = f"{self._seconds} s ({round(self._ends - self._since)} s at most)"
        said = f"still running after {times}: {_shortened(self._statement)}"
        self._relay.tell(notice_report(said, self._relay.codec))
        self._wait()


def _shortened(statement: str) -> str:
    """Return a statement in one line."""
    line = " ".join(statement[: 10 * _MOST_SHOWN].split())
    return line if len(line) <= _MOST_SHOWN else f"{line[: _MOST_SHOWN - 1]}…"
