"""Following the real database costs it no more than a part of its time, whoever asks for it."""

import asyncio
from itertools import pairwise

import pytest

from proxy import app


async def test_what_tells_of_a_change_again_and_again_is_looked_at_now_and_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(app, "REST_SECONDS", 0.1)
    told, clock, looks = asyncio.Event(), asyncio.get_running_loop().time, list[tuple[float, float]]()

    async def look() -> None:
        began = clock()
        await asyncio.sleep(0.2 if len(looks) == 1 else 0)  # as a copy of public tables may take
        looks.append((began, clock()))
        told.set()  # as a statement does that was refused meanwhile

    following = asyncio.create_task(app.keep_looking(told, look, every_seconds=60))
    told.set()
    while len(looks) < 4:
        await asyncio.sleep(0.01)
    following.cancel()

    rests = [began - ended for (_, ended), (began, _) in pairwise(looks)]
    assert [rest > 0.09 for rest in rests] == [True] * 3
    assert rests[1] > 0.19
