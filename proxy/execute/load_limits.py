"""Limit the load of statements: they wait for a place, a thread or an open gate, and cost the database so much at most.

Nobody has all places, and nobody's long queue stands before another's. Work of more than a few milliseconds is done in
a thread beside the event loop, where it keeps no other session waiting.

How many inner statements one needs follows from the question alone. What the database's planner expects does not: it
knows statistics of the rows. So a refusal for it tells something for which nobody has paid, and an analyst is told so
only a few times a day.
"""

import asyncio
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Final, TypeVar
from weakref import WeakValueDictionary

from proxy.settings import LoadLimits
from rules.kernel.statement import Bounded, Tally
from rules.refusal import LONGER, NOTHING_CHARGED, Interrupted, TooComplex

Result = TypeVar("Result")

_MANY = 500  # numbers that take some milliseconds
_THREADS = 3  # more would but take the interpreter from the event loop

MOST_REFUSALS: Final = 20  # for what is expected, of one analyst in a day
_DAY_SECONDS: Final = 86_400.0
_CHEAPER: Final = "Use fewer joins, fewer aggregates or a narrower WHERE."


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
        await self.take(analyst)
        try:
            yield
        finally:
            self.give_back(analyst)

    async def take(self, analyst: str) -> None:
        """Wait for a place, and have it until it is given back."""
        if self._free and not self._waiting and self._taken[analyst] < self._most:
            self._have(analyst)
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(analyst, deque()).append(turn)
        self._call()
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():  # called at the very moment when he left
                self.give_back(analyst)
            raise

    def give_back(self, analyst: str) -> None:
        self._free += 1
        self._taken[analyst] -= 1
        if not self._taken[analyst]:
            del self._taken[analyst]
        self._call()

    def _have(self, analyst: str) -> None:
        self._free -= 1
        self._taken[analyst] += 1

    def _call(self) -> None:
        """Give what is free to those who wait, one to each analyst before any has another."""
        for analyst in list(self._waiting) if self._free else ():
            queue = self._waiting[analyst]
            while queue and queue[0].cancelled():
                queue.popleft()
            if not queue:
                del self._waiting[analyst]
            elif self._taken[analyst] < self._most:
                self._have(analyst)
                self._waiting.move_to_end(analyst)
                queue.popleft().set_result(None)
                self._call()
                return


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
        self._open, self._empty_or_open = asyncio.Event(), asyncio.Event()
        self._inside = 0
        self._open.set()

    @property
    def is_closed(self) -> bool:
        return not self._open.is_set()

    def open(self) -> None:
        self._open.set()
        self._empty_or_open.set()

    async def close(self) -> bool:
        """Let nobody in any more, and wait until nobody is inside; False where it was opened again before."""
        self._open.clear()
        self._empty_or_open.clear()
        if self._inside:
            await self._empty_or_open.wait()
        return self.is_closed

    @asynccontextmanager
    async def passed(self, deadline: float) -> AsyncIterator[None]:
        """Be inside for the block; who waits until his deadline is refused."""
        try:
            async with asyncio.timeout_at(deadline):
                while self.is_closed:
                    await self._open.wait()
        except TimeoutError:
            raise Interrupted(
                "canceling statement due to statement timeout", hint=f"{NOTHING_CHARGED} {LONGER}"
            ) from None
        self._inside += 1
        try:
            yield
        finally:
            self._inside -= 1
            if not self._inside:
                self._empty_or_open.set()


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
                raise Interrupted(
                    "canceling statement due to statement timeout", hint=f"{NOTHING_CHARGED} {LONGER}"
                ) from None
            yield


@dataclass(frozen=True, slots=True)
class CostLimits:
    """The limits, and whom they have stopped: by analyst the questions, and when each was refused first."""

    limits: LoadLimits
    _refused: defaultdict[str, OrderedDict[frozenset[str], float]] = field(
        default_factory=lambda: defaultdict(OrderedDict)
    )

    def check(self, analyst: str, statements: Sequence[Bounded | Tally], now: float) -> None:
        """Refuse what is too much, was too much, or comes after too much that was; nothing is asked for it."""
        if len(statements) > self.limits.statements:
            raise TooComplex(
                f"this needs {len(statements)} statements in the real database, and {self.limits.statements} are "
                "allowed in one",
                hint=f"{NOTHING_CHARGED} Split the statement into several.",
            )
        refused = self._refused[analyst]
        while refused and now - next(iter(refused.values())) > _DAY_SECONDS:
            refused.popitem(last=False)
        if _question_key(statements) in refused:
            raise _too_costly()
        if len(refused) >= MOST_REFUSALS:
            raise TooComplex(
                f"{MOST_REFUSALS} of your statements exceeded the cost limit within a day, and new ones are refused "
                "until the first of them is a day old",
                hint="Stored answers stay available.",
            )

    def refuse(self, analyst: str, statements: Sequence[Bounded | Tally], now: float) -> TooComplex:
        """The refusal of what the planner expects too much of, which is remembered."""
        self._refused[analyst][_question_key(statements)] = now
        return _too_costly()


def _question_key(statements: Sequence[Bounded | Tally]) -> frozenset[str]:
    return frozenset(statement.sql for statement in statements)


def _too_costly() -> TooComplex:
    return TooComplex("the estimated cost of the statement exceeds the limit", hint=f"{NOTHING_CHARGED} {_CHEAPER}")
