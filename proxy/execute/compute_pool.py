"""Work of more than a few milliseconds is done beside the event loop, where it keeps nobody else's session waiting."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from proxy.execute.fair_semaphore import FairSemaphore

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
