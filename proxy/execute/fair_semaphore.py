"""Places that analysts take in turn: nobody has all of them, and nobody's long queue stands before another's."""

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class FairSemaphore:
    """So many places in all, and fewer for one analyst, so that others need not wait until he is done."""

    def __init__(self, places: int, *, most: int) -> None:
        self._free, self._most = places, most
        self._taken: Counter[str] = Counter()
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()  # the next one's turn comes first

    @property
    def taken_now(self) -> int:
        """Places that are taken."""
        return self._taken.total()

    @property
    def waiting(self) -> int:
        """Those who wait for one."""
        return sum(not turn.done() for queue in self._waiting.values() for turn in queue)

    @asynccontextmanager
    async def taken(self, analyst: str) -> AsyncIterator[None]:
        """Wait for a place, and have it inside the block."""
        await self._take(analyst)
        try:
            yield
        finally:
            self._give_back(analyst)

    async def _take(self, analyst: str) -> None:
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(analyst, deque()).append(turn)
        self._call()
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():  # called at the very moment when he left
                self._give_back(analyst)
            raise

    def _give_back(self, analyst: str) -> None:
        self._free += 1
        self._taken[analyst] -= 1
        self._taken += Counter()  # forgets who has none
        self._call()

    def _call(self) -> None:
        """Give what is free to those who wait, one to each analyst before any has another."""
        for analyst in list(self._waiting) if self._free else ():
            queue = self._waiting[analyst]
            while queue and queue[0].cancelled():
                queue.popleft()
            if not queue:
                del self._waiting[analyst]
            elif self._taken[analyst] < self._most:
                self._free -= 1
                self._taken[analyst] += 1
                self._waiting.move_to_end(analyst)
                queue.popleft().set_result(None)
                self._call()
                return
