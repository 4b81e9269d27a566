"""A condition of hundreds of alternatives is planned in time: the work grows with its length, not with its cube."""

import sys
import threading
import time
from collections.abc import Callable

import pytest

from proxy.execute.worker import DEEPEST
from tests.planner.planned import Planner

_STACK_BYTES = 256 * 2**20  # a worker's main thread grows its own


@pytest.mark.extended
@pytest.mark.parametrize(
    "alternative",
    ["amount = {}", "(amount = {} AND customer_id = {})", "note = 'n{}'", "amount BETWEEN {} AND {}", "id <> {}"],
)
def test_work_grows_with_the_length_of_a_chain(planner: Planner, alternative: str) -> None:
    def seconds(count: int) -> float:
        condition = " OR ".join(alternative.replace("{}", str(number)) for number in range(count))
        start = time.thread_time()
        planner.plan(f"SELECT count(*) FROM orders WHERE {condition}")
        return time.thread_time() - start

    def measured() -> tuple[float, float]:
        return min(seconds(100) for _ in range(3)), seconds(400)

    short, long = _with_a_deep_stack(measured)

    assert long < 12 * short + 0.5, (short, long)  # four times as long: linear is 4, cubic 64


def _with_a_deep_stack(work: Callable[[], tuple[float, float]]) -> tuple[float, float]:
    """As a worker has it."""
    found: list[tuple[float, float]] = []
    depth, size = sys.getrecursionlimit(), threading.stack_size(_STACK_BYTES)
    sys.setrecursionlimit(DEEPEST)
    try:
        thread = threading.Thread(target=lambda: found.append(work()))
        thread.start()
        thread.join()
    finally:
        sys.setrecursionlimit(depth)
        threading.stack_size(size)
    return found[0]
