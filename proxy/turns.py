"""Turns: a connection that has sent much is handled in parts, and between two parts others come.

One turn runs in each round of the event loop, however many connections wait for theirs: a message of somebody who waits
for none is read in the next round.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final
from weakref import WeakKeyDictionary

_MOST_MESSAGES: Final = 500
_MOST_BYTES: Final = 64 * 1024


class Turn:
    """The work that one connection may do before others get their turn."""

    __slots__ = ("_bytes", "_messages")

    def __init__(self) -> None:
        self._messages, self._bytes = _MOST_MESSAGES, _MOST_BYTES

    @property
    def is_over(self) -> bool:
        return self._messages <= 0 or self._bytes <= 0

    def took(self, size: int) -> None:
        """Count one more message, or some that are passed on without a look."""
        self._messages -= 1
        self._bytes -= size


class Turns:
    """The connections of one event loop whose turn is over before all is handled."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: deque[Callable[[], None]] = deque()
        self._next_turn: asyncio.Handle | None = None

    def wait(self, go_on: Callable[[], None]) -> None:
        """Call `go_on` once, when those that wait already have had their turns."""
        self._waiting.append(go_on)
        if self._next_turn is None:
            self._next_turn = self._loop.call_soon(self._go_on)

    def _go_on(self) -> None:
        try:
            self._waiting.popleft()()
        finally:
            self._next_turn = self._loop.call_soon(self._go_on) if self._waiting else None


_OF_LOOPS: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, Turns]] = WeakKeyDictionary()


def wait_for_turn(go_on: Callable[[], None]) -> None:
    """Call `go_on` at this connection's next turn."""
    loop = asyncio.get_running_loop()
    _OF_LOOPS.setdefault(loop, Turns(loop)).wait(go_on)
