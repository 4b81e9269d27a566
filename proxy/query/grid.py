"""Answers on a grid of time, so that how long one took tells less (`pad_to` in the rules)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta


@asynccontextmanager
async def on_grid(step: timedelta | None) -> AsyncIterator[None]:
    """Leave, by whichever way, a whole number of steps after entering."""
    clock = asyncio.get_running_loop().time
    start = clock()
    try:
        yield
    finally:
        if step:
            await asyncio.sleep((start - clock()) % step.total_seconds())
