"""What serves a question that was paid stays, whatever is found of it when the rest of its statement is answered."""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from threading import get_ident

import pytest

from proxy.execute.find_released import Finder
from proxy.execute.question import Question
from proxy.execute.released_cells import Bounded, CellReading, KnownRelative, Relatives
from proxy.execute.rulebook import StatementContext
from rules.accounting.store import KeptRelease, Release
from rules.mechanisms.cells import WHOLE, ReleasedKey
from rules.mechanisms.cost import Mechanism
from rules.mechanisms.draw import Drawable
from rules.mechanisms.release_plan import PublicGroups
from rules.release.partitions import Partition
from rules.release.release import Noised
from tests.execute.desk import Desk
from tests.execute.plans import UNITS, block_of
from tests.support import shop as shop_data

CELL = ReleasedKey("city", is_complete=True, span=WHOLE)
GROUPS = (("Berlin",), ("Lyon",))
NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)


async def test_cells_that_are_not_found_again_serve_still(desk: Desk) -> None:
    """As after a minute in which they are not fresh any more, or newer ones have taken their place."""
    released = Release("block", "units", Mechanism.pure(Decimal(1)), GROUPS, (7, 9))
    kept = KeptRelease(1, NOON, released, paid=True, shared=True)
    cells = {0: (CellReading(Bounded(kept, UNITS), ((0,), (1,)), is_alike=True),)}
    question = Question(block_of(UNITS), "key", GROUPS, known={0: ()}, cells=cells)
    context = StatementContext("ada", "s", desk.service.rulebook, "UTC", 0.0)

    again = await Finder(desk.ledger, context, desk.now).with_others(question)

    assert again.complete(Noised(GROUPS, {}), group_size=1).values == {0: (7, 9)}


@pytest.mark.parametrize(("later", "numbers"), [(timedelta(hours=1), 1), (timedelta(days=20), 0)])
async def test_what_a_period_has_paid_for_is_not_shown_beside_an_answer_of_the_next(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, later: timedelta, numbers: int
) -> None:
    """A statement may wait for its turn while the budget renews; its relatives are charged to nobody."""
    desk.service = desk.open(
        shop_data.policy(rules=shop_data.RULES.replace("delta: 1e-6}", "delta: 1e-6, per: month}"))
    )
    released = Release("block", "units", Mechanism.pure(Decimal(1)), GROUPS, (7, 9))
    kept = KeptRelease(1, desk.now, released, paid=True, shared=True)
    partition = Partition((CELL,), {group: place for place, group in enumerate(GROUPS)}, is_whole=True, is_exact=True)
    relatives = Relatives(partition, {0: (KnownRelative(kept, UNITS, partition),)})
    question = Question(block_of(UNITS, groups=PublicGroups(GROUPS)), "key", GROUPS, relatives=relatives)
    before, genuine = desk.now, desk.noise.draw

    def waited(noise: Drawable, count: int) -> Sequence[int]:
        desk.now = before + later
        return genuine(noise, count)

    monkeypatch.setattr(desk.noise, "draw", waited)
    context = StatementContext("ada", "s", desk.service.rulebook, "UTC", asyncio.get_running_loop().time() + 20)
    async with AsyncExitStack() as place:
        receipt, drawn = await desk.service._asking.draw([question], context, place)
    [(answered, _)] = await desk.service._asking.settle(receipt, drawn, context, reuse=True, known_at=before)

    assert len(answered.relatives.kept) == numbers


async def test_many_numbers_are_put_together_without_holding_up_other_sessions(desk: Desk) -> None:
    """Nor those of which each is one fresh release and nothing else."""
    threads = set[int]()

    class Watched(dict[int, tuple[int, ...]]):
        def __getitem__(self, index: int) -> tuple[int, ...]:
            threads.add(get_ident())
            return super().__getitem__(index)

    groups = tuple((str(place),) for place in range(10_000))
    question = Question(block_of(UNITS, groups=PublicGroups(groups)), "key", groups)
    context = StatementContext("ada", "s", desk.service.rulebook, "UTC", 0.0)

    [(_, noised)] = await desk.service._asking._whole(
        [(question, Noised(groups, Watched({0: (7,) * len(groups)})))], context
    )  # fmt: skip

    assert noised.values == {0: (7,) * len(groups)}
    assert threads
    assert get_ident() not in threads


def test_where_no_group_was_found_the_noise_told_is_that_of_the_mean() -> None:
    """As by an answer whose error decides whether another one is bought."""
    asked = replace(UNITS, epsilon=Decimal("0.5"))
    two, one = (
        tuple(
            KeptRelease(place, NOON, Release("key", "units", Mechanism.pure(Decimal(each)), (), ()), True, True)
            for place, each in enumerate(epsilons)
        )
        for epsilons in (("0.3", "0.4"), ("0.5",))
    )  # fmt: skip

    mean, alone = (
        Question(block_of(asked), "key", (), known={0: kept}).complete(Noised((), {}), group_size=1)
        for kept in (two, one)
    )

    assert mean.values == alone.values == {0: ()}
    assert mean.laws[0].deviation == pytest.approx(alone.laws[0].deviation, rel=1e-3)
