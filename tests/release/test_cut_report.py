"""What a report says of the rows that were cut: a bound from below, right as often as it says."""

import math
from dataclasses import replace
from decimal import Decimal

import pytest

from rules.kernel.bounded import PARTS
from rules.mechanisms.additive import noise_of
from rules.mechanisms.release_plan import Measure
from rules.release.bound_ladder import certainty, least_cut
from tests.release.test_replicates import BLOCK

EPSILON = Decimal("0.2")
LAW = noise_of(Measure("", PARTS, EPSILON), group_size=1).law


@pytest.mark.parametrize("level", ["0.8", "0.95", "0.999"])
def test_a_bound_is_right_as_often_as_it_says(level: str) -> None:
    """It is too high where the noise is above the margin, which half of what lies beyond the level is."""
    block, margin = replace(BLOCK, level=Decimal(level)), LAW.margin(Decimal(level))
    cap = block.statement.rows_per_unit

    for height in (0, 10 * PARTS):
        most = height * cap // PARTS
        assert least_cut(block, height + margin, EPSILON, group_size=1) == most
        assert least_cut(block, height + margin + PARTS, EPSILON, group_size=1) == most + cap
        assert least_cut(block, height + margin - 1, EPSILON, group_size=1) < max(1, most)
    ratio = math.exp(-float(EPSILON) / PARTS)  # of the chances of neighbouring numbers, in discrete Laplace noise
    assert ratio ** (margin + 1) / (1 + ratio) <= 1 - certainty(block) < ratio ** (margin - 2) / (1 + ratio)
