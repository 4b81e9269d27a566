"""Who waits for a place, and whose turn it is."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.execute.load_limits import FairSemaphore
from tests.support.waiting import until

LONG = 60.0  # seconds


class Hall:
    """Places, and who has them."""

    def __init__(self, places: int, most: int) -> None:
        self.turns = FairSemaphore(places, most=most)
        self.inside: list[str] = []
        self.came: list[str] = []

    @asynccontextmanager
    async def visit(self, analyst: str) -> AsyncIterator[None]:
        async with self.turns.taken(analyst):
            self.inside.append(analyst)
            self.came.append(analyst)
            try:
                yield
            finally:
                self.inside.remove(analyst)

    def start(self, analyst: str, seconds: float) -> asyncio.Task[None]:
        async def stay() -> None:
            async with self.visit(analyst):
                await asyncio.sleep(seconds)

        return asyncio.create_task(stay())


async def test_one_analyst_never_has_all_places() -> None:
    hall = Hall(places=3, most=2)
    tasks = [hall.start("ada", LONG) for _ in range(10)]
    await until(lambda: len(hall.inside) > 1)
    await asyncio.sleep(0.01)  # a third would have come by now
    assert hall.inside == ["ada", "ada"]

    tasks.append(hall.start("bob", LONG))
    await until(lambda: "bob" in hall.inside)

    assert sorted(hall.inside) == ["ada", "ada", "bob"]
    for task in tasks:
        task.cancel()


async def test_a_long_queue_is_not_before_another_analysts() -> None:
    hall = Hall(places=1, most=1)
    tasks = [hall.start("ada", 0) for _ in range(20)]
    await asyncio.sleep(0)
    tasks += [hall.start("bob", 0), hall.start("bob", 0), hall.start("eve", 0)]

    await asyncio.gather(*tasks)

    assert hall.came.index("eve") < 6
    assert hall.came.index("bob") < 6
    assert hall.came.count("ada") == 20


@given(
    st.lists(st.tuples(st.sampled_from(["ada", "bob", "eve"]), st.booleans(), st.integers(0, 3)), max_size=30),
    st.integers(1, 4),
)
def test_who_leaves_while_waiting_takes_no_place_along(steps: list[tuple[str, bool, int]], places: int) -> None:
    async def play() -> None:
        hall = Hall(places, most=max(1, places - 1))
        tasks = []
        for analyst, leaves, pauses in steps:
            task = hall.start(analyst, 0)
            for _ in range(pauses):
                await asyncio.sleep(0)
            assert len(hall.inside) <= places
            if leaves:
                task.cancel()
            tasks.append(task)
        await asyncio.gather(*tasks, return_exceptions=True)
        async with asyncio.timeout(20):
            await asyncio.gather(*(hall.start(name, 0) for name in "abcdefgh" for _ in range(places)))

    asyncio.run(play())


async def test_a_visit_that_fails_gives_its_place_back() -> None:
    hall = Hall(places=1, most=1)
    with pytest.raises(ValueError, match="oops"):
        async with hall.visit("ada"):
            raise ValueError("oops")

    async with asyncio.timeout(20), hall.visit("bob"):
        assert hall.inside == ["bob"]
