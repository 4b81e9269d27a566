"""Answers on a grid of time, so that how long one took tells less (`pad_to` in the rules).

The grid doubles: p, 2p, 4p, … up to the last point that the statement's limit leaves room for. A time-out comes at that
last point. So of T seconds in steps of p an analyst can tell apart log₂(T/p) + 2 outcomes, whatever he has made slow.
With "full" there is one point, the limit itself, and so an answer or a time-out. A part of a statement that is
answered before the rest of it has a grid of its own, and with "full" half of the time that is left.
"""

import asyncio
from collections.abc import Callable, Coroutine
from datetime import timedelta
from math import floor, log2
from typing import Any, Final, Literal, TypeVar

from rules.refusal import LONGER, NOTHING_CHARGED, BadSetting, Interrupted

Result = TypeVar("Result")
Padding = timedelta | Literal["full"] | None

_left_alone: Final[set[asyncio.Task[Any]]] = set()  # what goes on after its analyst has been told


async def on_grid(
    padding: Padding, deadline: float, is_first: bool, begin: Callable[[float], Coroutine[Any, Any, Result]]
) -> Result:
    """Begin some work with a deadline, and tell how it ended at a point of the grid.

    Who cancels is told at once, whether or not it was done: it ends behind him.
    """
    if not padding:
        return await begin(deadline)
    clock = asyncio.get_running_loop().time
    start = clock()
    if padding == "full" and is_first:
        deadline = (start + deadline) / 2
    last = start + _last_point(padding, deadline - start)
    task = asyncio.ensure_future(begin(last))
    try:
        await asyncio.wait({task}, timeout=last - start)
        if task.done():
            await asyncio.sleep(start + _next_point(padding, clock() - start, last - start) - clock())
            return task.result()
    except asyncio.CancelledError:
        task.cancel()
        _leave_alone(task)
        raise
    _leave_alone(task)  # its own deadline is now, and it notes that itself
    raise Interrupted("canceling statement due to statement timeout", hint=f"The charge is not refunded. {LONGER}")


def _last_point(padding: timedelta | Literal["full"], limit: float) -> float:
    if isinstance(padding, str):
        return limit
    step = padding.total_seconds()
    if limit < step:
        raise BadSetting(
            f"statement_timeout must exceed {step:g} s, the time to which answers are padded",
            hint=f"{NOTHING_CHARGED} Set statement_timeout to more, or to 0.",
        )
    return step * 2.0 ** floor(log2(limit / step))


def _next_point(padding: timedelta | Literal["full"], seconds: float, last: float) -> float:
    if isinstance(padding, str):
        return last
    point = padding.total_seconds()
    while point < seconds:
        point *= 2
    return min(point, last)


def _leave_alone(task: asyncio.Task[Any]) -> None:
    """Keep it until it ends, and take note of how, so that nobody else is told."""
    _left_alone.add(task)
    task.add_done_callback(_forget)


def _forget(task: asyncio.Task[Any]) -> None:
    _left_alone.discard(task)
    if not task.cancelled():
        task.exception()
