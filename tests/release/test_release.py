"""The release walks over its own list of groups: which rows came shows in no group, only in noised numbers."""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.mechanisms.noised_outputs import Chosen, Count, Text
from rules.mechanisms.release_plan import (
    Block,
    Choice,
    FromEnd,
    KeyColumn,
    LeastUnits,
    Measure,
    MostFrequent,
    PrivateGroups,
    PublicGroups,
    Quantile,
    Target,
)
from rules.release.keys import Group
from rules.release.release import Noised, columns, draw, known_groups, release, release_found
from tests.mechanisms.sent import sent
from tests.mechanisms.sources import ConstantNoise, NoNoise
from tests.support.written import NOTHING

TENTH = Decimal("0.1")
CITIES: tuple[Group, ...] = (("Berlin",), ("Lyon",), (None,))

PUBLIC = Block(
    canonical="orders by city",
    statement=NOTHING,
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
    return columns(block, release(block, groups, sent(rows), draws))


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
    shown = release_found(PRIVATE, FOUND, sent(rows), NoNoise(), group_size=1)
    threshold = 429  # K = 3, ε = 0.1, δ = 1e-6

    assert {group for (group,) in shown.groups} == {str(units) for units in range(threshold, 800)}


def test_what_decides_over_a_group_is_its_noised_number_of_units() -> None:
    shown = release_found(PRIVATE, FOUND, sent([("Lyon", 5, 1)]), ConstantNoise(428), group_size=1)

    assert columns(PRIVATE, shown) == (("Lyon",), ("433",), ("429",))


def test_a_group_in_which_nobody_is_counted_is_no_candidate_whatever_the_noise() -> None:
    """One unit may bring such rows in more groups than its K: their chances together would pass delta."""
    rows = [("Lyon", "5", "1"), *((f"only here {number}", "1", "0") for number in range(37))]
    shown = release_found(PRIVATE, FOUND, sent(rows), ConstantNoise(500), group_size=1)

    assert shown.groups == (("Lyon",),)


@given(order=st.permutations(range(500, 520)))
def test_groups_found_come_in_the_order_of_their_keys_not_of_the_rows(order: list[int]) -> None:
    block = replace(PRIVATE, keys=(KeyColumn("integer", "age", is_number=True),))
    rows = [*((str(2 * age), "9", "999") for age in order), (None, "9", "999")]
    shown = release_found(block, FOUND, sent(rows), NoNoise(), group_size=1)

    assert shown.groups == (*((str(age),) for age in range(1000, 1040, 2)), (None,))


@pytest.mark.parametrize(
    "row", [("Lyon", "secret", "1"), ("Lyon", "1"), ("Lyon", "1", "2", "3"), ("Lyon", "1_0", "1"), ("Lyon", "٣", "1")]
)
def test_rows_that_cannot_be_are_dropped_and_fail_nothing(row: Sequence[Text]) -> None:
    rows = [("Berlin", "7", "2"), row]

    assert answer(PUBLIC, rows) == answer(PUBLIC, rows[:1])
    assert release_found(PRIVATE, FOUND, sent(rows), ConstantNoise(500), group_size=1).groups == (("Berlin",),)


@given(
    keys=st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])), unique=True),
    is_number=st.booleans(),
)
def test_whatever_a_key_says_its_groups_come_in_an_order(keys: list[str], is_number: bool) -> None:
    block = replace(PRIVATE, keys=(KeyColumn("realm.tier", "tier", is_number),))
    rows = [(key, "9", "999") for key in keys]

    shown = release_found(block, FOUND, sent(rows), NoNoise(), group_size=1)
    again = release_found(block, FOUND, sent(rows[::-1]), NoNoise(), group_size=1)

    assert set(shown.groups) == {(key,) for key in keys}
    assert shown == again


@given(rows=rows_of_cities, least=st.integers(2, 9))
def test_a_group_of_fewer_units_than_the_rules_want_has_no_numbers(
    rows: list[tuple[Text, int, int]], least: int
) -> None:
    texts = [(city, str(count), str(units)) for city, count, units in rows]
    plain = answer(PUBLIC, texts)

    keys, *numbers = answer(replace(PUBLIC, least_units=LeastUnits((1,) * len(PUBLIC.outputs), least)), texts)

    assert keys == plain[0]
    for number, city in enumerate(keys):
        few = int(plain[2][number] or 0) < least
        assert [texts[number] for texts in numbers] == [None if few else texts[number] for texts in plain[1:]], city


def test_groups_found_in_the_data_pass_the_larger_of_threshold_and_least_units() -> None:
    rows = sent([("Berlin", "99", "1000"), ("Lyon", "99", "3000")])
    block = replace(PRIVATE, least_units=LeastUnits((1,), 2000))

    assert len(release_found(PRIVATE, FOUND, rows, NoNoise(), group_size=1).groups) == 2
    assert release_found(block, FOUND, rows, NoNoise(), group_size=1).groups == (("Lyon",),)


RISING: tuple[Target, ...] = (
    FromEnd(9), *(Quantile(Fraction(part, 100)) for part in (1, 50, 75)), FromEnd(9, largest=True),
)  # fmt: skip


@given(order=st.permutations(range(5)), cells=st.lists(st.tuples(*[st.integers(0, 9)] * 6), min_size=3, max_size=3))
def test_quantiles_of_one_answer_are_in_order(order: list[int], cells: list[tuple[int, ...]]) -> None:
    """Each of the numbers that were drawn is shown once, and the most frequent value has no place among them."""
    targets = (*(RISING[place] for place in order), MostFrequent())
    choices = tuple(Choice(f"choice {place}", 1, TENTH, NOTHING, 10, of) for place, of in enumerate(targets))
    texts = tuple(map(str, range(10)))
    outputs = tuple(Chosen(place, texts) for place in range(6))
    block = replace(PUBLIC, measures=choices, outputs=outputs, output_types=("integer",) * 6)

    _, *shown, mode = columns(block, Noised(CITIES, dict(enumerate(zip(*cells, strict=True)))))

    for group, (*drawn, most_frequent) in enumerate(cells):
        rising = [shown[order.index(rank)][group] for rank in range(5)]
        assert rising == list(map(str, sorted(drawn)))
        assert mode[group] == str(most_frequent)
