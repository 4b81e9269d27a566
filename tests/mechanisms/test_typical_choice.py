"""The median of blocks: what one unit replaces is one value, and all that can be seen of it is at most ε."""

import math
from collections.abc import Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import combinations_with_replacement

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.mechanisms.exponential_choice import BlockNeed, choose, score_candidates
from rules.mechanisms.release_plan import Choice, End, Quantile
from rules.refusal import NotSupported
from tests.mechanisms.sources import Odds
from tests.support.written import NOTHING

HALF = Quantile(Fraction(1, 2))


def odds(histogram: Sequence[int], epsilon: str, *, sensitivity: int, end: End | None = None) -> list[float]:
    source = Odds()
    choice = Choice("m", sensitivity, Decimal(epsilon), NOTHING, len(histogram), HALF, end=end, blocks=41)
    choose(choice, histogram, source, group_size=1)
    return source.odds


def loss(one: Sequence[int], other: Sequence[int], epsilon: str, *, sensitivity: int, end: End | None = None) -> float:
    """The privacy loss of what is chosen: from the law itself."""
    here, there = (odds(numbers, epsilon, sensitivity=sensitivity, end=end) for numbers in (one, other))
    return max(abs(math.log(a / b)) for a, b in zip(here, there, strict=True))


def replaced(histogram: Sequence[int]) -> Iterator[list[int]]:
    """Every histogram with another value in place of one, one value less, and one more."""
    cells = range(len(histogram))
    for less in (None, *(cell for cell in cells if histogram[cell])):
        for more in (None, *cells):
            yield [rows - (cell == less) + (cell == more) for cell, rows in enumerate(histogram)]


@pytest.mark.parametrize("end", [None, End(-1, Decimal("0.95"), reach=2), End(1, Decimal("0.95"), reach=3)])
def test_over_five_cells_no_replaced_value_is_seen_by_more_than_epsilon(end: End | None) -> None:
    """All histograms of up to four blocks, and all that one unit can make of them."""
    worst = 0.0
    for blocks in range(5):
        for values in combinations_with_replacement(range(5), blocks):
            histogram = [values.count(cell) for cell in range(5)]
            losses = (loss(histogram, other, "1.3", sensitivity=2, end=end) for other in replaced(histogram))
            worst = max(worst, *losses)
    assert 0.5 < worst <= 1.3 + 1e-9


def test_the_sensitivity_of_a_quantile_of_rows_would_lose_more() -> None:
    """Between two clusters of 41 blocks a value that jumps moves some scores up by two, and others down by two."""
    here = {0: 41, 5: 1, 999: 40}
    there = {0: 40, 5: 1, 999: 41}
    one, other = ([rows.get(cell, 0) for cell in range(1000)] for rows in (here, there))

    assert 0.9 < loss(one, other, "1", sensitivity=2) <= 1 + 1e-9
    assert loss(one, other, "1", sensitivity=1) > 1.9


@given(
    histogram=st.lists(st.integers(0, 30), min_size=1, max_size=9),
    fraction=st.fractions(0, 1, max_denominator=20),
    shift=st.integers(-40, 40),
)
def test_a_replaced_value_moves_a_score_by_one_at_every_rank(
    histogram: list[int], fraction: Fraction, shift: int
) -> None:
    """In parts of a rank's denominator, which are counted: by so many of them."""
    target = Quantile(fraction)
    before = score_candidates(target, histogram, shift)
    for other in replaced(histogram):
        after = score_candidates(target, other, shift)
        assert all(abs(one - two) <= fraction.denominator for one, two in zip(before, after, strict=True))


def test_as_many_blocks_as_epsilon_needs() -> None:
    assert BlockNeed(Decimal("0.1"), 1).blocks(None, None) == 554
    assert BlockNeed(Decimal(1), 1).blocks(None, None) == 56
    assert BlockNeed(Decimal(10), 1).blocks(None, None) == 25
    assert BlockNeed(Decimal(1), 4).blocks(None, None) == 222
    assert BlockNeed(Decimal("0.001"), 1).blocks(None, None) == 4096
    assert BlockNeed(Decimal(1), 1).blocks(100, None) == 100


@pytest.mark.extended
@given(st.decimals("0.05", "3", places=2), st.integers(1, 3))
def test_with_so_many_blocks_noise_chooses_nothing_that_no_block_is_near(epsilon: Decimal, times: int) -> None:
    need = BlockNeed(epsilon, times)
    blocks = need.fewest
    law = odds([0] * 500 + [blocks] + [0] * 523, str(epsilon), sensitivity=2 * times)

    assert 1 - law[500] < 0.001


@given(st.decimals("0.1", "3", places=2), st.sampled_from(("0.9", "0.95", "0.99")))
def test_the_ends_of_a_bar_lie_at_the_quartiles_or_it_is_refused(epsilon: Decimal, level: str) -> None:
    need = BlockNeed(epsilon, 1)
    blocks = need.blocks(None, Decimal(level))
    if blocks < 4096:
        assert need.reach(blocks, Decimal(level)) <= blocks / 4 + 1
    with pytest.raises(NotSupported) as refused:
        need.reach(4, Decimal(level))
    if "blocks =>" in refused.value.hint:
        told = int(refused.value.hint.rpartition("=> ")[2].rstrip("."))
        assert 2 * need.reach(told, Decimal(level)) < told


@pytest.mark.extended
@pytest.mark.parametrize("epsilon", ["0.3", "1"])
def test_bars_hold_the_median_of_what_the_blocks_are_drawn_from(epsilon: str) -> None:
    """Blocks' values spread evenly over 400 cells: the law of both ends, over many draws of the blocks."""
    need, level = BlockNeed(Decimal(epsilon), 1), Decimal("0.95")
    blocks = need.blocks(None, level)
    reach = need.reach(blocks, level)
    held = []
    for draw in range(20):
        shifted = [round(300 + 400 * ((place * 0.6180339887 + draw * 0.37) % 1)) for place in range(blocks)]
        histogram = [shifted.count(cell) for cell in range(1001)]
        low, high = (odds(histogram, epsilon, sensitivity=2, end=End(side, level, reach)) for side in (-1, 1))
        held.append(sum(low[:501]) * sum(high[500:]))
    assert min(held) > 0.95
