"""Keys are bytes until their groups are released: nothing that a row holds fails, and no two keys become one."""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.mechanisms.noised_outputs import Count, Text
from rules.mechanisms.release_plan import Block, Choice, KeyColumn, Measure, MostFrequent, PrivateGroups, PublicGroups
from rules.release.keys import Cell, Group, keys_of, read_label, shown_label
from rules.release.release import Noised, columns, draw, known_groups, release, release_choice, release_found
from tests.mechanisms.sent import sent
from tests.mechanisms.sources import ConstantNoise, NoNoise
from tests.support.written import NOTHING

TENTH = Decimal("0.1")
TEXT = KeyColumn("text", "city")
LISTED: tuple[Group, ...] = (("Łódź", "1"), ("Łódź", None), (None, "1"))
PUBLIC = Block(
    canonical="by city and year",
    statement=NOTHING,
    keys=(TEXT, KeyColumn("integer", "year", is_number=True)),
    groups=PublicGroups(LISTED, ((0, 10), (0, 11), (7, 10))),
    measures=(Measure("count", 40, TENTH), Measure("units", 3, TENTH)),
    outputs=(Count(0), Count(1)),
    output_types=("bigint", "bigint"),
    tables=("orders",),
)
FOUND = PrivateGroups(measure=1, delta=Decimal("1e-6"))
CODECS = ("utf-8", "iso8859-1", "cp1252", "euc_jp", "euc_kr", "gb2312", "johab", "euc_jis_2004", "koi8-r")

cells = (
    st.none() | st.binary(max_size=8).map(lambda cell: cell.replace(b"\0", b"")) | st.text(max_size=3).map(str.encode)
)


def counted(block: Block, rows: Sequence[Sequence[Cell]], codec: str = "utf-8") -> tuple[int, ...]:
    groups = known_groups(block)
    assert groups is not None
    draws = draw(block, (0,), len(groups), NoNoise(), group_size=1)
    return release(block, groups, rows, draws, codec=codec).values[0]


def found(rows: Sequence[Sequence[Cell]], *keys: KeyColumn, codec: str = "utf-8", noise: int = 500) -> Noised:
    block = replace(PUBLIC, keys=keys, groups=FOUND)
    return release_found(block, FOUND, rows, ConstantNoise(noise), group_size=1, codec=codec)


def test_rows_of_a_list_are_found_by_their_ordinals_and_called_as_we_call_them() -> None:
    rows = sent([(0, 11, 5, 1), (7, 10, 3, 1)])

    assert counted(PUBLIC, rows) == (0, 5, 3)
    groups = known_groups(PUBLIC) or ()
    noised = release(PUBLIC, groups, rows, {0: (0, 0, 0), 1: (0, 0, 0)})
    assert columns(PUBLIC, noised)[:2] == (("Łódź", "Łódź", None), ("1", None, "1"))


@pytest.mark.parametrize("key", [(1, 10), (0, 12), ("00", 10), ("+0", 10), ("Łódź", 1), (None, 10), ("", ""), (-7, 10)])
def test_rows_with_ordinals_that_are_not_listed_are_dropped(key: tuple[object, ...]) -> None:
    assert counted(PUBLIC, sent([(*key, 5, 1)])) == (0, 0, 0)


def test_one_ordinal_may_stand_for_several_keys() -> None:
    block = replace(PUBLIC, groups=PublicGroups(LISTED, ((3,), (1,), (2,))))

    assert counted(block, sent([(1, 9, 1), (3, 4, 1), (8, 7, 1), (1, 10, 5, 1)])) == (4, 9, 0)


def test_without_keys_the_only_group_may_have_an_ordinal_too() -> None:
    block = replace(PUBLIC, keys=(), groups=PublicGroups(((),), ((0,),)))

    assert counted(block, sent([(0, 9, 1)])) == (9,)
    assert counted(block, []) == (0,)


@pytest.mark.parametrize("ordinals", [((1,), (1,), (2,)), ((1,), (2,)), ((1,), (2,), (3, 4))])
def test_ordinals_are_those_of_one_group_each(ordinals: tuple[tuple[int, ...], ...]) -> None:
    with pytest.raises(ValueError, match="ordinals"):
        PublicGroups(LISTED, ordinals)


def test_a_choice_is_looked_up_by_ordinals_too() -> None:
    choice = Choice("mode", 40, Decimal(1), NOTHING, 3, MostFrequent())
    block = replace(PUBLIC, measures=(choice, PUBLIC.measures[1]))
    rows = sent([(0, 10, 2, 9), (7, 10, 1, 4), (0, 12, 0, 99), (0, 10, 3, 99), (0, 10, -1, 99)])

    assert release_choice(block, choice, LISTED, rows, NoNoise(), group_size=1) == (2, 0, 1)


@given(rows=st.lists(st.tuples(cells, cells, st.sampled_from([b"7", b"x", None]), st.just(b"1"))))
def test_whatever_rows_hold_a_listed_answer_has_the_same_groups(rows: list[tuple[Cell, ...]]) -> None:
    for block in (PUBLIC, replace(PUBLIC, groups=PublicGroups(LISTED))):
        assert len(counted(block, rows)) == len(LISTED)


@given(rows=st.lists(st.tuples(cells, cells, st.just(b"7"), st.just(b"1"))), codec=st.sampled_from(CODECS))
def test_whatever_rows_hold_groups_are_found_and_no_two_keys_become_one(
    rows: list[tuple[Cell, ...]], codec: str
) -> None:
    keys = {row[:2] for row in rows}

    shown = found(rows, TEXT, KeyColumn("integer", "year", is_number=True), codec=codec)

    assert len(shown.groups) == len(set(shown.groups)) == len(keys)
    assert found(rows[::-1], TEXT, KeyColumn("integer", "year", is_number=True), codec=codec) == shown
    block = replace(PUBLIC, groups=FOUND)
    assert set(keys_of(block, shown.groups, codec)) == keys  # and are looked up again as what they are
    assert all("\0" not in (label or "") for column in columns(block, shown)[:2] for label in column)


@given(cell=st.binary(max_size=8), codec=st.sampled_from(CODECS))
def test_a_label_is_its_text_or_else_its_bytes_after_backslashes(cell: bytes, codec: str) -> None:
    label = shown_label(read_label(cell, codec))

    try:
        is_text = cell.decode(codec).encode(codec) == cell
    except UnicodeError:
        is_text = False
    assert label == (cell.decode(codec) if is_text else cell.decode("ascii", "backslashreplace"))


def test_a_label_that_is_no_text_is_not_that_of_its_escape() -> None:
    rows = [(b"caf\xe9", b"5", b"1"), (rb"caf\xe9", b"6", b"1")]

    shown = found(rows, TEXT, codec="utf-8")

    assert shown_label(shown.groups[0][0]) == shown_label(shown.groups[1][0]) == r"caf\xe9"
    assert sorted(shown.values[0]) == [505, 506]
    block = replace(PUBLIC, keys=(TEXT,), groups=FOUND)
    again = release(block, shown.groups, rows, {0: (0, 0)}, codec="utf-8")
    assert [number + 500 for number in again.values[0]] == list(shown.values[0])


def test_labels_are_read_and_looked_up_in_the_encoding_of_the_database() -> None:
    rows = sent([("Málaga", 5, 1), ("Köln", 6, 1)], "iso8859-1")

    shown = found(rows, TEXT, codec="iso8859-1")

    assert shown.groups == (("Köln",), ("Málaga",))
    block = replace(PUBLIC, keys=(TEXT,), groups=PublicGroups((("Málaga",), ("Łódź",))))
    assert counted(block, rows, codec="iso8859-1") == (5, 0)
    assert counted(block, rows, codec="utf-8") == (0, 0)


def test_a_text_that_is_listed_twice_counts_once() -> None:
    """Were its rows counted in both places, one unit would move twice as much."""
    block = replace(PUBLIC, keys=(TEXT,), groups=PublicGroups((("Lyon",), ("Berlin",), ("Lyon",))))

    assert counted(block, sent([("Lyon", 5, 1)])) == (5, 0, 0)


def test_ordinals_of_listed_keys_stand_beside_keys_that_are_found() -> None:
    labels: tuple[Text, ...] = ("open", "paid", None)
    status, keys = KeyColumn("realm.status", "status", labels=labels), (KeyColumn("integer", "age", is_number=True),)
    rows = sent(
        [(2, 7, 1, 1), (1, 100, 2, 1), (1, 20, 3, 1), (0, 7, 4, 1), (3, 7, 5, 1), ("paid", 7, 6, 1), (None, 7, 7, 1)]
    )

    shown = found(rows, status, *keys)

    assert shown.groups == (("open", "7"), ("paid", "20"), ("paid", "100"), (None, "7"))
    assert [number - 500 for number in shown.values[0]] == [4, 3, 2, 1]
    block = replace(PUBLIC, keys=(status, *keys), groups=FOUND)
    again = release(block, (*shown.groups, ("sent", "7")), rows, {0: (0,) * 5})
    assert again.values[0] == (4, 3, 2, 1, 0)


def test_nothing_is_read_of_groups_that_do_not_pass() -> None:
    """Reading them could take longer, or fail."""

    class Unreadable(bytes):
        def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
            raise AssertionError("read before it was released")

    assert found([(Unreadable(b"only here"), b"9", b"1")], TEXT, noise=0).groups == ()
