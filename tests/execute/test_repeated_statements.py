"""What is remembered of statements takes no more room than there is."""

from dataclasses import replace

from tests.execute.desk import Desk
from tests.execute.plans import UNITS, block_of, plan_of

LARGE = 20 * 1024 * 1024


async def test_a_free_answer_takes_the_room_of_its_plan_too(desk: Desk) -> None:
    await desk.ask(block_of(UNITS))
    plans = [replace(plan_of(block_of(UNITS)), size=LARGE) for _ in range(2)]

    for plan in plans:
        await desk.service.answer(plan, analyst="ada", session="s", timeout_seconds=20)
        assert desk.service.find_answer(plan, analyst="ada", session="s") is not None

    assert desk.service.find_answer(plans[0], analyst="ada", session="s") is None
    assert (await desk.spent())[0] == UNITS.epsilon
