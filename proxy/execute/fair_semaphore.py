"""Let statements wait: for a place that analysts take in turn, a thread, an open gate, an equal statement.

Nobody has all places, and nobody's long queue stands before another's. Work of more than a few milliseconds is done in
a thread beside the event loop, where it keeps no other session waiting.
"""

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TypeVar
from weakref import WeakValueDictionary

from rules.refusal import Interrupted


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


Result = TypeVar("Result")

_MANY = 500  # numbers that take some milliseconds
_THREADS = 3  # more would but take the interpreter from the event loop


class ComputePool:
    """A few threads, which analysts have in turn."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(max_workers=_THREADS, thread_name_prefix="beside")
        self._turns = FairSemaphore(_THREADS, most=_THREADS - 1)

    async def run(self, analyst: str, numbers: int, work: Callable[[], Result]) -> Result:
        """Do a small piece of work here, a large one in a thread. `numbers` says how many it has to do with."""
        if numbers < _MANY:
            return work()
        async with self._turns.taken(analyst):
            return await asyncio.get_running_loop().run_in_executor(self._threads, work)


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


class OneAtATime:
    """Lets equal blocks wait for each other: the second finds what the first one has released."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def taken(self, keys: Iterable[str], deadline: float) -> AsyncIterator[None]:
        """Be the only one with each of these keys; who waits until his deadline is refused."""
        async with AsyncExitStack() as stack:
            try:
                async with asyncio.timeout_at(deadline):
                    for key in sorted(set(keys)):  # in one order for all, so that nobody waits in a circle
                        await stack.enter_async_context(self._locks.setdefault(key, asyncio.Lock()))
            except TimeoutError:
                raise Interrupted("canceling statement due to statement timeout") from None
            yield
