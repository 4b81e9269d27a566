"""The release walks over its own list of groups: which rows came shows in no group, only in noised numbers."""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.noise.measures import Block, Count, KeyColumn, Measure, PrivateGroups, PublicGroups, Text
from rules.noise.release import Group, MalformedRows, columns, draw, known_groups, release, release_found
from tests.noise.sources import ConstantNoise, NoNoise

TENTH = Decimal("0.1")
CITIES: tuple[Group, ...] = (("Berlin",), ("Lyon",), (None,))

PUBLIC = Block(
    canonical="orders by city",
    sql="",
    keys=(KeyColumn("text", "city"),),
    groups=PublicGroups(CITIES),
    measures=(Measure("count", 40, TENTH), Measure("units", 3, TENTH)),
    outputs=(Count(0), Count(1)),
    output_types=("bigint", "bigint"),
    tables=("orders",),
)
FOUND = PrivateGroups(measure=1, delta=Decimal("1e-6"))
PRIVATE = replace(PUBLIC, groups=FOUND)


def answer(block: Block, rows: Sequence[Sequence[Text]]) -> tuple[tuple[Text, ...], ...]:
    groups = known_groups(block)
    assert groups is not None
    draws = draw(block, (0, 1), len(groups), NoNoise(), group_size=1)
    return columns(block, release(block, groups, rows, draws))


rows_of_cities = st.lists(
    st.tuples(st.sampled_from(["Berlin", "Lyon", None, "Porto", "lyon "]), st.integers(0, 99), st.integers(0, 9)),
    unique_by=lambda row: row[0],
)


@given(rows=rows_of_cities)
def test_the_groups_of_a_public_list_are_all_answered_and_no_others(rows: list[tuple[Text, int, int]]) -> None:
    keys, *_ = answer(PUBLIC, [(city, str(count), str(units)) for city, count, units in rows])

    assert keys == ("Berlin", "Lyon", None)


def test_an_absent_group_counts_zero_and_a_null_number_too() -> None:
    assert answer(PUBLIC, [("Lyon", "7", None)]) == (("Berlin", "Lyon", None), ("0", "7", "0"), ("0", "0", "0"))


def test_rows_of_one_group_are_added() -> None:
    assert answer(PUBLIC, [("Lyon", "7", "1"), ("Lyon", "5", "2")])[1] == ("0", "12", "0")


def test_without_keys_there_is_one_group_whatever_the_rows() -> None:
    block = replace(PUBLIC, keys=(), groups=PublicGroups(((),)))

    assert answer(block, []) == (("0",), ("0",))
    assert answer(block, [("3", "2")]) == (("3",), ("2",))


def test_noise_is_drawn_for_the_list_before_any_row_is_known_and_scales_with_the_group_size() -> None:
    source = NoNoise()
    draw(PUBLIC, (0, 1), len(CITIES), source, group_size=4)

    assert source.asked == [(3, 160, TENTH), (3, 12, TENTH)]


def test_a_group_found_in_the_data_is_shown_from_its_threshold_on() -> None:
    rows = [(str(units), "1000", str(units)) for units in range(800)]
    shown = release_found(PRIVATE, FOUND, rows, NoNoise(), group_size=1)
    threshold = 429  # K = 3, ε = 0.1, δ = 1e-6

    assert {group for (group,) in shown.groups} == {str(units) for units in range(threshold, 800)}


def test_what_decides_over_a_group_is_its_noised_number_of_units() -> None:
    shown = release_found(PRIVATE, FOUND, [("Lyon", "5", "1")], ConstantNoise(428), group_size=1)

    assert columns(PRIVATE, shown) == (("Lyon",), ("433",), ("429",))


def test_a_group_in_which_nobody_is_counted_is_no_candidate_whatever_the_noise() -> None:
    """One unit may bring such rows in more groups than its K: their chances together would pass delta."""
    rows = [("Lyon", "5", "1"), *((f"only here {number}", "1", "0") for number in range(37))]
    shown = release_found(PRIVATE, FOUND, rows, ConstantNoise(500), group_size=1)

    assert shown.groups == (("Lyon",),)


@given(order=st.permutations(range(500, 520)))
def test_groups_found_come_in_the_order_of_their_keys_not_of_the_rows(order: list[int]) -> None:
    block = replace(PRIVATE, keys=(KeyColumn("integer", "age"),))
    rows = [*((str(2 * age), "9", "999") for age in order), (None, "9", "999")]
    shown = release_found(block, FOUND, rows, NoNoise(), group_size=1)

    assert shown.groups == (*((str(age),) for age in range(1000, 1040, 2)), (None,))


@pytest.mark.parametrize("row", [("Lyon", "secret", "1"), ("Lyon", "1"), ("Lyon", "1", "2", "3")])
def test_rows_that_cannot_be_are_refused_without_quoting_them(row: Sequence[Text]) -> None:
    with pytest.raises(MalformedRows) as caught:
        answer(PUBLIC, [row])

    assert str(caught.value) == ""
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
