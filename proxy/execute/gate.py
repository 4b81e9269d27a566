"""A gate before the real database: an operator closes it, waits until those inside are done, and opens it again."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from rules.refusal import Interrupted


class Gate:
    """Open at first."""

    def __init__(self) -> None:
        self._open, self._empty = asyncio.Event(), asyncio.Event()
        self._inside = 0
        self._open.set()
        self._empty.set()

    @property
    def is_closed(self) -> bool:
        return not self._open.is_set()

    def open(self) -> None:
        self._open.set()

    async def close(self) -> None:
        """Let nobody in any more, and wait until nobody is inside."""
        self._open.clear()
        await self._empty.wait()

    @asynccontextmanager
    async def passed(self, deadline: float) -> AsyncIterator[None]:
        """Be inside for the block; who waits until his deadline is refused."""
        try:
            async with asyncio.timeout_at(deadline):
                while self.is_closed:
                    await self._open.wait()
        except TimeoutError:
            raise Interrupted("canceling statement due to statement timeout") from None
        self._inside += 1
        self._empty.clear()
        try:
            yield
        finally:
            self._inside -= 1
            if not self._inside:
                self._empty.set()
