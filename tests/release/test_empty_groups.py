"""Empty groups: which groups are shown follows from released numbers alone, and hardly ever from noise alone."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.mechanisms.additive import laws_of, noise_of
from rules.mechanisms.distribution import Distribution
from rules.mechanisms.noised_outputs import Average, CentredSum, Chosen, Count, Output, Sum
from rules.mechanisms.release_plan import Block, KeyColumn, LeastUnits, Measure, PrivateGroups, PublicGroups
from rules.policy.model import NoiseKind
from rules.release.empty_groups import MISSED, ShownGroups, Size, foreseen_sizes, numbers_tested, shown_groups
from rules.release.margins import Value
from rules.release.marks import Mark, mark_columns
from rules.release.release import Noised, columns
from tests.mechanisms.sources import SeededNoise
from tests.support.written import NOTHING

GROUPS = tuple((str(number),) for number in range(120))
ROWS, HALVES, UNITS = (
    Measure("rows", 1, Decimal("0.1")),
    Measure("halves", 100, Decimal("0.1")),
    Measure("units", 1, Decimal("0.1"), at_most_one=True),
)
COUNT = Count(0, shown_bare=True, adds_up=True)
SUM = Sum(1, Fraction(1), 0)
MEAN = Average(1, 0, Fraction(1), Fraction(0), Fraction(100), 2)
BLOCK = Block(
    "empty",
    NOTHING,
    (KeyColumn("text", "k"),),
    PublicGroups(GROUPS),
    (ROWS, HALVES, UNITS),
    (COUNT,),
    ("int8",),
    ("orders",),
    hides_empty=True,
)


def distance(scale: float, missed: Fraction) -> int:
    """The smallest t with P(|noise| > t) = 2α^(t+1)/(1+α) ≤ missed, by trying."""
    alpha, t = np.exp(-1 / scale), 0
    while 2 * alpha ** (t + 1) / (1 + alpha) > float(missed):
        t += 1
    return t


def asked(
    values: Mapping[int, Sequence[int]], *outputs: Output, block: Block = BLOCK, groups: Sequence[tuple[str, ...]] = ()
) -> ShownGroups:
    width = len(next(iter(values.values())))
    listed = tuple(groups or GROUPS[:width])
    own = replace(block, groups=PublicGroups(listed), outputs=outputs or block.outputs)
    whole = {measure: tuple(values.get(measure, (0,) * width)) for measure in range(3)}
    (shown,) = shown_groups([(own, Noised(listed, whole, laws_of(own, group_size=1)))])
    return shown


@given(st.lists(st.integers(-200, 200), min_size=2, max_size=40))
def test_a_group_is_shown_if_its_number_is_beyond_the_distance_that_noise_passes_with_a_share_of_a_twentieth(
    numbers: list[int],
) -> None:
    most = distance(10.0, Fraction(1, 20 * len(numbers)))

    assert asked({0: numbers}).kept == tuple(abs(number) > most for number in numbers)
    assert asked({0: numbers}).size == Size(Fraction(most + 1), "rows")


def test_every_tested_number_of_the_block_makes_the_distance_longer_and_equal_ones_count_once() -> None:
    two, four = distance(10.0, Fraction(1, 40)), distance(10.0, Fraction(1, 80))
    values = {0: (two + 1, four + 1), 1: (0, 0)}

    assert two < four
    assert asked(values, COUNT, MEAN).kept == (True, True)  # the mean goes by the count, which is tested already
    assert asked(values, COUNT, SUM).kept == (False, True)
    assert asked({0: (0, 0), 1: (5000, -5000)}, COUNT, SUM).kept == (True, True)


def test_a_sum_from_halves_is_tested_as_a_whole() -> None:
    whole = CentredSum(1, 0, Fraction(1), 100, 0)
    law = Distribution.of_laplace(1000.0).plus(Distribution.of_laplace(10.0).times(100))
    most = int(law.reach(MISSED / 2))

    values = {0: (0, -30), 1: (most - 1, most + 2 + 3000)}
    assert asked(values, whole).kept == (False, True)


@pytest.mark.extended
@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize("sets", [(), ((0,), ())], ids=["groups", "totals"])
@pytest.mark.parametrize("outputs", [(COUNT,), (COUNT, SUM, MEAN), (CentredSum(1, 0, Fraction(1), 100, 0), COUNT)])
def test_at_most_one_answer_in_twenty_about_nobody_shows_a_group(
    kind: NoiseKind, sets: tuple[tuple[int, ...], ...], outputs: tuple[Output, ...]
) -> None:
    noise, runs = SeededNoise(7), 1_000
    measures = tuple(replace(measure, noise=kind) for measure in (ROWS, HALVES, UNITS))
    block = replace(BLOCK, measures=measures, sets=sets, outputs=outputs)
    laws, false = laws_of(block, group_size=1), 0
    for _ in range(runs):
        draws = {
            place: noise.draw(noise_of(measure, group_size=1), len(GROUPS)) for place, measure in enumerate(measures)
        }
        (shown,) = shown_groups([(block, Noised(GROUPS, draws, laws))])
        false += any(shown.kept[: len(GROUPS)])

    assert false <= 0.05 * runs + 5.7 * np.sqrt(0.05 * 0.95 * runs)  # 1e-8


def test_blocks_over_the_same_tables_with_equal_lists_are_decided_together() -> None:
    """A ratio keeps the groups of its denominator, however small its numerator is."""
    some, every = replace(BLOCK, canonical="some"), replace(BLOCK, canonical="every")
    elsewhere, laws = replace(BLOCK, tables=("visits",)), laws_of(BLOCK, group_size=1)
    listed = GROUPS[:3]

    def noised(*numbers: int) -> Noised:
        return Noised(listed, {0: numbers, 1: (0,) * 3, 2: (0,) * 3}, laws)

    small, large, nothing = noised(5, 0, -3), noised(900, 0, 0), noised(0, 0, 0)
    kept = [each.kept for each in shown_groups([(some, small), (every, large), (elsewhere, nothing)])]

    assert kept == [(True, False, False), (True, False, False), (False, False, False)]
    alone, together = distance(10.0, Fraction(1, 60)), distance(10.0, Fraction(1, 120))
    assert shown_groups([(some, small)])[0].size == Size(Fraction(alone + 1), "rows")
    assert shown_groups([(some, small), (every, large)])[0].size == Size(Fraction(together + 1), "rows")


def test_totals_are_sums_of_all_cells_and_are_shown_where_a_part_is() -> None:
    block = replace(BLOCK, keys=(KeyColumn("text", "k"), KeyColumn("text", "l")), sets=((0, 1), (0,), ()), shown=(0,))
    groups = tuple((one, other) for one in "ab" for other in "xyz")
    noised = Noised(groups, {0: (500, 3, -4, 2, -7, 1), 1: (0,) * 6, 2: (0,) * 6}, laws_of(block, group_size=1))
    (shown,) = shown_groups([(block, noised)])

    every = list(zip(*columns(block, noised), strict=True))
    left = list(zip(*columns(block, noised, shown.kept), strict=True))
    assert [row[:3] for row in left] == [("a", "x", "1"), ("a", None, "2"), (None, None, "3")]
    assert [row[3] for row in left] == ["500", "499", "495"]
    assert set(left) <= set(every)


def test_the_total_of_all_rows_is_always_answered() -> None:
    block = replace(BLOCK, sets=((0,), ()))
    noised = Noised(GROUPS[:2], {0: (0, 0), 1: (0, 0), 2: (0, 0)}, laws_of(block, group_size=1))

    assert shown_groups([(block, noised)])[0].kept == (False, False, True)


def test_min_units_decides_first() -> None:
    block = replace(BLOCK, least_units=LeastUnits((2,), 20))

    shown = asked({0: (500, 500, 0), 2: (90, 3, 90)}, block=block)

    assert shown.kept == (True, False, False)
    assert shown.together is None  # a number of them might be about few


def test_what_is_not_additive_goes_by_the_rows_that_are_counted_for_it() -> None:
    block = replace(BLOCK, outputs=(Chosen(1, ("a", "b")),), counted=0)

    assert asked({0: (500, 3), 1: (0, 1)}, block=block).kept == (True, False)
    assert asked({0: (3, 3), 1: (0, 1)}, Chosen(1, ("a", "b"))).kept == (True, True)  # and without these all are shown


def test_groups_that_passed_a_threshold_and_blocks_that_hide_nothing_are_shown() -> None:
    noised = Noised(GROUPS[:2], {0: (0, 1), 1: (0, 0), 2: (0, 0)}, laws_of(BLOCK, group_size=1))
    found = replace(BLOCK, groups=PrivateGroups(2, Decimal("1e-9")), hides_empty=False)

    for block in (found, replace(BLOCK, hides_empty=False)):
        assert shown_groups([(block, noised)]) == (ShownGroups((True, True)),)
        assert not numbers_tested(block)


def test_the_hidden_groups_are_told_together_with_the_gaps_that_they_make() -> None:
    days = replace(BLOCK, keys=(KeyColumn("date", "k"),))
    shown = asked({0: (4, 900, 6, -3, 800, 2)}, block=days, groups=[(f"2025-01-0{day}",) for day in range(1, 7)])

    assert shown.kept == (False, True, False, False, True, False)
    assert (shown.hidden, shown.gaps) == (4, 2)
    assert shown.together is not None
    assert shown.together.number == 9
    assert abs(float(shown.together.margin) - Distribution.of_laplace(10.0).repeated(4).reach(Decimal("0.05"))) < 1
    assert asked({0: (4, 900, 6, 800)}).gaps == 0  # texts are no times


def test_the_size_is_known_beforehand() -> None:
    other = replace(BLOCK, outputs=(SUM,), tables=("visits",))
    units = replace(BLOCK, outputs=(Count(2),), tables=("people",))
    blocks = (BLOCK, other, units, replace(BLOCK, hides_empty=False))
    laws = [laws_of(block, group_size=1) for block in blocks]

    rows, total, counted, every = foreseen_sizes(blocks, laws)

    assert rows == Size(Fraction(distance(10.0, Fraction(1, 20 * 120)) + 1), "rows")
    assert counted == Size(Fraction(distance(10.0, Fraction(1, 20 * 120)) + 1), "units")
    assert total is not None and total.what == "" and total.number > 7_000
    assert every is None
    assert foreseen_sizes((BLOCK, BLOCK), laws[:2]) != (rows, rows)  # two numbers a group


def test_noise_of_other_laws_has_other_distances() -> None:
    """As where some cells are served from other answers, or are means of several releases."""
    laws = Distribution.of_laplace(10.0), Distribution.of_laplace(1000.0)
    block = replace(BLOCK, measures=(ROWS,))
    noised = Noised(GROUPS[:2], {0: (300, 300)}, {0: laws[1]}, apart={0: laws})

    assert shown_groups([(block, noised)])[0].kept == (True, False)


def test_marks_are_those_of_the_groups_that_are_left() -> None:
    noised = Noised(GROUPS[:3], {0: (0, 900, 80), 1: (0,) * 3, 2: (0,) * 3}, laws_of(BLOCK, group_size=1))
    kept = (False, True, True)

    assert mark_columns([Mark(0, Value(0), is_alone=True)], [(BLOCK, noised)], [kept]) == (("f", "f"),)
