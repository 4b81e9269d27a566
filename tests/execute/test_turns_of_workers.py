"""Whatever workers do, and whenever callers leave: each turn is given back, and each answer is of its own question."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.execute.pipe import BEGUN, LOADED, QUESTIONS, READ, Begin, Load, Read
from proxy.execute.worker_pool import PlannerPool
from proxy.execute.worker_process import Worker, WorkerDied
from proxy.plain_data import Malformed, TooDeep
from proxy.process_wall import NO_WALL
from rules.refusal import Refusal
from rules.sql.statement import Kind, Reading, Statement
from tests.policy.test_check import CATALOG, policy

ENDS = {"dies": WorkerDied, "hangs": TimeoutError, "lies": Malformed, "digs": TooDeep}
FATES = st.sampled_from(["answers", "answers", "answers", "answers of another", "dies at rest", "never starts", *ENDS])


class Puppet:
    """A worker in this process, whose fate is written: one for each start and each question."""

    def __init__(self, fates: list[str]) -> None:
        self._fates, self.is_alive, self._is_asked = fates, True, False

    @classmethod
    def started_by(cls, fates: list[str]) -> Callable[[], Any]:
        async def start() -> "Puppet":
            await asyncio.sleep(0)
            if fates and fates.pop() == "never starts":
                raise BlockingIOError
            return cls(fates)

        return start

    def ask(self, question: bytes, read: Callable[[bytes], Any], _seconds: float) -> asyncio.Future[Any]:
        assert not self._is_asked, "one question at a time"
        loop, self._is_asked = asyncio.get_running_loop(), True
        answered: asyncio.Future[Any] = loop.create_future()
        fate = self._fates.pop() if self._fates else "answers"
        loop.call_soon(loop.call_soon, self._end, answered, fate, QUESTIONS.decode(question), read)
        return answered

    def kill(self) -> None:
        self.is_alive = False

    async def gone(self) -> None:
        """At once."""

    def _end(self, answered: asyncio.Future[Any], fate: str, question: object, read: Callable[[bytes], Any]) -> None:
        self._is_asked = False
        self.is_alive = fate != "dies at rest"
        text = question.text if isinstance(question, Read) else ""
        said = reading_of("SELECT 'another'" if fate == "answers of another" else text)
        try:
            if fate in ENDS:
                raise ENDS[fate]
            match question:
                case Begin():
                    answered.set_result(read(BEGUN.encode(NO_WALL)))
                case Load():
                    answered.set_result(read(LOADED.encode(None)))
                case _:
                    answered.set_result(read(READ.encode(said)))
        except (WorkerDied, TimeoutError, Malformed) as error:
            answered.set_exception(error)


def reading_of(text: str) -> Reading:
    return Reading((Statement(Kind.QUERY, text, 0),))


STEPS = st.lists(
    st.tuples(st.sampled_from(["ada", "bob", "eve"]), st.sampled_from(["stays", "leaves", "rules"]), st.integers(0, 6)),
    max_size=25,
)


@given(STEPS, st.lists(FATES, max_size=30), st.integers(1, 3))
def test_each_turn_is_given_back_and_each_answer_is_of_its_own_question(
    steps: list[tuple[str, str, int]], fates: list[str], size: int
) -> None:
    async def ask(pool: PlannerPool, text: str, analyst: str) -> None:
        with suppress(Refusal):
            assert await pool.read(text, analyst) == reading_of(text)

    async def play() -> None:
        pool, tasks = PlannerPool(size, seconds=60), []
        for number, (analyst, does, pauses) in enumerate(steps):
            if does == "rules":
                await pool.load(policy(), CATALOG)
            tasks.append(asyncio.create_task(ask(pool, f"SELECT {number}", analyst)))
            for _ in range(pauses):
                await asyncio.sleep(0)
                assert size >= len(pool._idle) >= size - pool.busy
            if does == "leaves":
                tasks[number // 2].cancel()
        async with asyncio.timeout(5):
            ends = await asyncio.gather(*tasks, return_exceptions=True)
        for end in ends:
            assert end is None or isinstance(end, asyncio.CancelledError)
        for _ in range(50):  # which those that were left take to their end
            await asyncio.sleep(0)
        assert (pool.busy, pool.waiting, len(pool._idle)) == (0, 0, size)
        await pool.close()

    with pytest.MonkeyPatch.context() as patches:
        patches.setattr(Worker, "start", Puppet.started_by(fates))
        asyncio.run(play())
