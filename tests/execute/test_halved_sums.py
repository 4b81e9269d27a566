"""Sums that are told by a centred sum and a count, of which several may have the same count."""

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from proxy.execute.question import Question
from proxy.execute.released_cells import Bounded, CellReading
from rules.accounting.store import KeptRelease, Release
from rules.mechanisms.additive import noise_of
from rules.mechanisms.cost import Mechanism
from rules.mechanisms.release_plan import Measure
from rules.release.release import Noised
from tests.execute.plans import IDS, block_of

GROUPS = (("Berlin",), ("Lyon",))
NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
HALF, ROWS = Measure("halves", 10, Decimal(1)), Measure("rows", 1, Decimal(1))


def kept(number: int, measure: Measure) -> Bounded:
    released = Release("block", measure.name, Mechanism.pure(measure.epsilon), GROUPS, (0, 0))
    return Bounded(KeptRelease(number, NOON, released, paid=True, shared=True), measure)


@pytest.mark.parametrize("middles", [(210,), (210, 210), (210, 30), (210, -90, 400)])
@pytest.mark.parametrize("signs", [(1, 1, 1), (1, -1, 1)])
def test_the_noise_of_sums_that_have_one_count_is_told_for_what_is_added_up_of_them(
    middles: tuple[int, ...], signs: tuple[int, ...]
) -> None:
    """Bars take the noise of two measures for independent; the count's draws are in both."""
    measures = tuple(replace(IDS, sensitivity=1000 + place) for place in range(len(middles)))
    rows = kept(1, ROWS)
    cells = {
        place: (CellReading(kept(2 + place, HALF), ((0,), (1,)), is_alike=True, count=rows, middle=middle),)
        for place, middle in enumerate(middles)
    }
    question = Question(block_of(*measures), "key", GROUPS, known=dict.fromkeys(cells, ()), cells=cells)

    laws = question.complete(Noised(GROUPS, {}), group_size=1).laws

    of_half, of_rows = (noise_of(measure, group_size=1).law.deviation ** 2 for measure in (HALF, ROWS))
    both = sum(sign * middle / 2 for sign, middle in zip(signs, middles, strict=False))
    true = len(middles) * of_half / 4 + both**2 * of_rows
    assert laws is not None
    assert sum(law.deviation**2 for law in laws.values()) >= true
    if len(middles) == 1:
        assert laws[0].deviation ** 2 == pytest.approx(true, rel=1e-3)
