"""Quantiles, extremes and modes: their scores move no further than the rows, and the best is the right one."""

import tracemalloc
from collections import Counter
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.mechanisms.additive import mechanism_of
from rules.mechanisms.cost import Mechanism
from rules.mechanisms.draw import OpenDPNoise
from rules.mechanisms.exponential_choice import choose, place_for_extreme, score_candidates, step
from rules.mechanisms.noised_outputs import Chosen, Count
from rules.mechanisms.release_plan import (
    Block,
    Choice,
    End,
    FromEnd,
    KeyColumn,
    Measure,
    MostFrequent,
    PublicGroups,
    Quantile,
    Target,
)
from rules.release.release import Noised, columns, draw, release, release_choice
from tests.mechanisms.sent import sent
from tests.mechanisms.sources import NoNoise, Odds
from tests.support.written import NOTHING

histograms = st.lists(st.integers(0, 40), min_size=1, max_size=12)
targets: st.SearchStrategy[Target] = st.one_of(
    st.builds(Quantile, st.fractions(0, 1, max_denominator=20)),
    st.builds(FromEnd, st.integers(1, 60), st.booleans()),
    st.just(MostFrequent()),
)


@given(histogram=histograms, target=targets, data=st.data())
def test_one_row_more_moves_no_score_further_than_a_step(
    histogram: list[int], target: Target, data: st.DataObject
) -> None:
    place = data.draw(st.integers(0, len(histogram) - 1))
    more = [rows + (place == number) for number, rows in enumerate(histogram)]

    moves = [
        after - before
        for before, after in zip(score_candidates(target, histogram), score_candidates(target, more), strict=True)
    ]
    if isinstance(target, MostFrequent):  # monotone, and doubled for that
        assert set(moves) <= {0, 2}
    else:
        assert max(map(abs, moves)) <= step(target)


@given(values=st.lists(st.integers(0, 9), min_size=1, max_size=60), fraction=st.fractions(0, 1, max_denominator=20))
def test_the_best_candidates_for_a_quantile_hold_its_rank(values: list[int], fraction: Fraction) -> None:
    histogram = [values.count(number) for number in range(10)]
    scores = score_candidates(Quantile(fraction), histogram)

    for number, score in enumerate(scores):
        below, upto = sum(histogram[:number]), sum(histogram[: number + 1])
        assert (score == 0) == (below <= fraction * len(values) <= upto)


@given(values=st.lists(st.integers(0, 9), min_size=1, max_size=60), data=st.data())
def test_the_best_candidate_from_an_end_is_that_of_the_row_at_the_place(values: list[int], data: st.DataObject) -> None:
    place = data.draw(st.integers(1, len(values)))
    histogram = [values.count(number) for number in range(10)]

    for largest in (False, True):
        scores = score_candidates(FromEnd(place, largest), histogram)
        assert [number for number, score in enumerate(scores) if score == 0] == [
            sorted(values, reverse=largest)[place - 1]
        ]


def test_a_minimum_is_found_where_the_data_begin_not_anywhere_below() -> None:
    histogram = [0] * 100 + [50] * 400
    place = place_for_extreme(len(histogram), 1, Decimal("0.1"))
    choice = Choice("min", 1, Decimal("0.1"), NOTHING, len(histogram), FromEnd(place))
    chosen = [choose(choice, histogram, OpenDPNoise(), group_size=1) for _ in range(200)]

    assert sum(100 <= number <= 110 for number in chosen) >= 180


@pytest.mark.extended
@pytest.mark.parametrize("target", [Quantile(Fraction(1, 2)), MostFrequent(), FromEnd(3)])
def test_one_row_changes_no_choice_s_odds_by_more_than_epsilon(target: Target) -> None:
    count, choice = 8_000, Choice("c", 1, Decimal("0.7"), NOTHING, 3, target)
    odds = []
    for histogram in ([3, 2, 4], [3, 3, 4]):
        chosen = Counter(choose(choice, histogram, OpenDPNoise(), group_size=1) for _ in range(count))
        odds.append([chosen[number] / count for number in range(3)])

    for before, after in zip(*odds, strict=True):
        assert before <= after * 2.014 + 0.03
        assert after <= before * 2.014 + 0.03


CHOICE = Choice("median", 40, Decimal(1), NOTHING, 3, Quantile(Fraction(1, 2)))
BLOCK = Block(
    canonical="",
    statement=NOTHING,
    keys=(KeyColumn("text", "city"),),
    groups=PublicGroups((("Berlin",), ("Lyon",))),
    measures=(CHOICE, Measure("count", 40, Decimal(1))),
    outputs=(Chosen(0, ("low", "middle", "high")), Count(1)),
    output_types=("text", "bigint"),
    tables=(),
)


def test_a_candidate_is_chosen_in_every_group_of_the_list_from_its_own_statement() -> None:
    rows = [("Berlin", "1", "9"), ("Berlin", "2", "3"), ("Porto", "0", "9"), ("Berlin", "7", "99"), ("Lyon", "2", "1")]
    groups = (("Berlin",), ("Lyon",))
    source = NoNoise()
    draws = draw(BLOCK, (0, 1), 2, source, group_size=2)
    counted = release(BLOCK, groups, sent([("Lyon", 5)]), draws)
    chosen = release_choice(BLOCK, CHOICE, groups, sent(rows), source, group_size=2)

    noised = Noised(groups, {**counted.values, 0: chosen})
    assert columns(BLOCK, noised) == (("Berlin", "Lyon"), ("middle", "high"), ("0", "5"))
    assert source.asked == [(2, 80, Decimal(1)), (3, 80, Decimal(1)), (3, 80, Decimal(1))]


@pytest.mark.parametrize("target", [MostFrequent(), Quantile(Fraction(10**6 - 1, 10**6)), FromEnd(9)])
def test_no_histogram_has_scores_that_could_not_be_noised(target: Target) -> None:
    """Sums saturate at 2^62, and a failure would tell of them."""
    chosen = choose(replace(CHOICE, target=target), [0, 2**62, 2**64], OpenDPNoise(), group_size=1)
    assert chosen in range(3)


@pytest.mark.extended
def test_many_groups_of_many_candidates_take_no_more_room_than_their_rows() -> None:
    groups = tuple((f"city {number}",) for number in range(500))
    choice = replace(CHOICE, candidates=4096)
    rows = [("city 7", "4000", "9")]

    tracemalloc.start()
    release_choice(BLOCK, choice, groups, sent(rows), NoNoise(), group_size=1)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert most < 4 * 1024 * 1024


def test_a_choice_costs_a_quarter_of_a_draw_in_concentration() -> None:
    assert mechanism_of(BLOCK, 0) == Mechanism(Decimal(1), Decimal(0), Decimal("0.125"))
    assert mechanism_of(BLOCK, 1).rho == Decimal("0.5")


@pytest.mark.parametrize("row", [("Berlin", "1"), ("Berlin", "one", "9"), ("Berlin", "1", "9", "9"), ()])
def test_rows_of_a_histogram_that_cannot_be_are_dropped_and_fail_nothing(row: tuple[str, ...]) -> None:
    rows = [("Berlin", "2", "5"), row]

    assert release_choice(BLOCK, CHOICE, (("Berlin",),), sent(rows), NoNoise(), group_size=1) == (2,)


@pytest.mark.parametrize(("fraction", "level"), [(Fraction(1, 2), 0.95), (Fraction(1, 10), 0.9)])
def test_an_error_bar_of_a_quantile_holds_it_as_often_as_it_says(fraction: Fraction, level: float) -> None:
    """Over rows that lie evenly, by the bar's two ends and the choice between them: computed, not drawn."""
    histogram = [1] * 1_000
    true = int(fraction * 1_000)
    source = Odds()

    def odds(side: Literal[-1, 0, 1]) -> list[float]:
        end = End(side, Decimal(str(level))) if side else None
        choice = Choice("x", 1, Decimal("0.05"), NOTHING, len(histogram), Quantile(fraction), end=end)
        choose(choice, histogram, source, group_size=1)
        return source.odds

    low, centre, high = odds(-1), odds(0), odds(1)
    is_above = sum(low[true + 1 :]) * sum(centre[true + 1 :])
    is_below = sum(centre[:true]) * sum(high[:true])

    assert level - 0.01 < 1 - is_above - is_below < level + 0.01


@given(histograms, targets, st.integers(-100, 100), st.integers(0, 20))
def test_one_row_moves_the_scores_of_an_end_no_further_than_those_of_the_choice(
    histogram: list[int], target: Target, shift: int, place: int
) -> None:
    more = [rows + (number == place % len(histogram)) for number, rows in enumerate(histogram)]

    moved = zip(score_candidates(target, histogram, shift), score_candidates(target, more, shift), strict=True)

    furthest = 2 if isinstance(target, MostFrequent) else step(target)
    assert all(abs(before - after) <= furthest for before, after in moved)
