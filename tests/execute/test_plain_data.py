"""Plain data are what was written, or no value at all: no byte of them makes anything but the declared types."""

import json
import pickle
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum, StrEnum
from fractions import Fraction
from typing import Any, Literal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import BaseModel

from proxy.plain_data import MOST_DEPTH, Codec, Form, Malformed, TooDeep
from tests.execute.typed import is_of


class Suit(StrEnum):
    HEARTS = "h"
    SPADES = "s"


class Rank(Enum):
    ACE = 1


@dataclass(frozen=True, slots=True)
class Leaf:
    text: str | None
    number: int
    flag: bool = False
    side: Literal[-1, 1] = 1


@dataclass(frozen=True, slots=True)
class Other:
    text: str | None
    number: int
    flag: bool
    side: Literal[-1, 1]


@dataclass(frozen=True, slots=True)
class Tree:
    children: "tuple[Tree | Leaf, ...]" = ()
    above: "Tree | None" = None
    known: frozenset[str] = frozenset()
    amounts: tuple[Decimal, Fraction] = (Decimal(0), Fraction(0))
    names: Mapping[str, int | str] = field(default_factory=dict)
    bound: int | Decimal | date | datetime | None = None
    suit: Suit | None = None
    rank: Rank = Rank.ACE
    raw: bytes = b""
    took: timedelta = timedelta(0)
    unseen: int = field(default=0, init=False, compare=False)


TREES: Codec[Tree | Leaf] = Codec(Tree | Leaf)

leaves = st.builds(
    Leaf, st.none() | st.text(), st.integers(-(2**80), 2**80), st.booleans(), st.sampled_from((-1, 1))
)  # fmt: skip
decimals = st.decimals(allow_nan=False, allow_infinity=False)
moments = st.datetimes(timezones=st.just(UTC)) | st.datetimes()
trees = st.recursive(
    st.builds(Tree),
    lambda inner: st.builds(
        Tree,
        children=st.lists(inner | leaves, max_size=3).map(tuple),
        above=st.none() | inner,
        known=st.frozensets(st.text()),
        amounts=st.tuples(decimals, st.fractions()),
        names=st.dictionaries(st.text(), st.integers() | st.text()),
        bound=st.none() | st.integers() | decimals | st.dates() | moments,
        suit=st.none() | st.sampled_from(Suit),
        raw=st.binary(),
        took=st.timedeltas(),
    ),
    max_leaves=5,
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(["Tree", "Leaf", "0", "1/2"]),
    lambda inner: st.lists(inner, max_size=10) | st.dictionaries(st.text(), inner, max_size=2),
)


@given(trees | leaves)
def test_what_is_written_is_read_as_it_was(value: Tree | Leaf) -> None:
    read = TREES.decode(TREES.encode(value))

    assert read == value
    assert is_of(Tree | Leaf, read)


@given(trees | leaves, st.data())
def test_a_byte_that_was_changed_is_seen_or_means_another_value_of_the_same_types(
    value: Tree | Leaf, data: st.DataObject
) -> None:
    written = bytearray(TREES.encode(value))
    for _ in range(data.draw(st.integers(1, 3))):
        written[data.draw(st.integers(0, len(written) - 1))] = data.draw(st.integers(0, 255))

    check_read_or_malformed(bytes(written))


@given(trees | leaves, json_values, st.data())
def test_a_part_that_was_exchanged_is_seen_or_means_another_value_of_the_same_types(
    value: Tree | Leaf, other: object, data: st.DataObject
) -> None:
    written = json.loads(TREES.encode(value))
    place = written
    while isinstance(place[number := data.draw(st.integers(0, len(place) - 1))], list) and place[number]:
        if data.draw(st.booleans()):
            break
        place = place[number]
    place[number] = other

    check_read_or_malformed(json.dumps(written).encode())


@given(st.binary() | json_values.map(lambda value: json.dumps(value).encode()))
def test_whatever_else_comes_is_malformed(data: bytes) -> None:
    check_read_or_malformed(data)


def check_read_or_malformed(data: bytes) -> None:
    try:
        read = TREES.decode(data)
    except Malformed:
        return
    assert is_of(Tree | Leaf, read)
    assert TREES.decode(TREES.encode(read)) == read


@pytest.mark.parametrize(
    "data",
    [
        b'["Leaf",["a",1,false,1,0]]',  # a field too many
        b'["Leaf",["a"]]',  # one too few
        b'["Leaf",["a",1,0,1]]',  # 0 is no bool
        b'["Leaf",["a",true,false,1]]',  # and true no int
        b'["Leaf",["a",1,false,2]]',
        b'["Leaf",["a",1.0,false,1]]',
        b'["Leaf",["a",NaN,false,1]]',
        b'["Leaf",["a",1e3,false,1]]',
        b'["Leaf",{"text":"a"}]',
        b'["Other",["a",1,false,1]]',  # a class, but none of the type's
        b'["Leaf",["a",1,false,1]] ["Leaf",["a",1,false,1]]',
        b'["Leaf",["a",' + b"9" * 5000 + b",false,1]]",
        b"[" * 100_000,
        b"\xff",
        b"",
        pickle.dumps(Leaf("a", 1)),
    ],
)
def test_what_is_nearly_right_is_malformed(data: bytes) -> None:
    with pytest.raises(Malformed):
        TREES.decode(data)


def test_defaults_at_the_end_are_left_out() -> None:
    assert TREES.encode(Leaf("a", 1)) == b'["Leaf",["a",1]]'
    assert TREES.encode(Leaf("a", 1, flag=True)) == b'["Leaf",["a",1,true]]'
    assert TREES.encode(Leaf("a", 1, side=-1)) == b'["Leaf",["a",1,false,-1]]'
    assert TREES.decode(b'["Leaf",["a",1]]') == TREES.decode(b'["Leaf",["a",1,false,1]]') == Leaf("a", 1)


def test_an_escaped_backslash_is_no_escape() -> None:
    assert TREES.decode(TREES.encode(Leaf(r"\udder \\u \x01" "\x01\\", 1))) == Leaf(r"\udder \\u \x01" "\x01\\", 1)


@pytest.mark.parametrize("text", ["NaN", "Infinity", "1e999999999", "0x10", "", "1" * 300_000, "sNaN"])
def test_a_number_is_finite_and_can_be_written_out(text: str) -> None:
    with pytest.raises(Malformed):
        Codec[Decimal](Decimal).decode(json.dumps(text, ensure_ascii=False).encode())


@pytest.mark.parametrize("text", ["1/0", "1/2/3", "/", "1e3/7"])
def test_a_fraction_is_one_of_whole_numbers(text: str) -> None:
    with pytest.raises(Malformed):
        Codec[Fraction](Fraction).decode(json.dumps(text).encode())


@pytest.mark.parametrize(
    ("hint", "data"),
    [
        (tuple[int, str], b'[1,"a","b"]'),
        (Suit, b'"x"'),
        (bytes, b'"YQ"'),
        (date, b'"2020-13-01"'),
        (timedelta, b'"1e3"'),
        (timedelta, b'"999999999999999999999999"'),
    ],
)
def test_each_type_is_held_to_its_form(hint: Any, data: bytes) -> None:
    with pytest.raises(Malformed):
        Codec[object](hint).decode(data)


def test_depth_has_an_end_in_both_directions() -> None:
    deep = Tree()
    for _ in range(MOST_DEPTH - 1):
        deep = Tree(above=deep)
    assert TREES.decode(TREES.encode(deep)) == deep

    with pytest.raises(TooDeep):
        TREES.decode(TREES.encode(Tree(above=deep)))
    with pytest.raises(TooDeep):
        TREES.decode(b"[" * 100_000 + b"]" * 100_000)


ROWS: Codec[tuple[tuple[str | None, ...], ...]] = Codec(tuple[tuple[str | None, ...], ...])


@given(st.lists(st.lists(st.none() | st.text() | st.just("\x7f"), max_size=3).map(tuple), max_size=5).map(tuple))
@example(())
@example(((), ()))
@example((("a", "b"), ("c", "")))
@example((("",),))
@example((("a\x7fb",), ("c",)))
@example((("a", "b"), ("c",)))
def test_rows_of_texts_are_what_they_were(rows: tuple[tuple[str | None, ...], ...]) -> None:
    assert ROWS.decode(ROWS.encode(rows)) == rows


@pytest.mark.parametrize(
    "data",
    [
        *("{}", "1", "[1]", '["ab"]', "[[1]]", "[[[]]]", "[[true]]", '[["a"], null]', '[["a", 1]]'),
        *('[0, ""]', '[-1, "a"]', '[2, "a"]', '[1000000000000, "a"]', '[true, "a"]', '[1, "a", "b"]', '["a", 1]'),
        *('[2, "a\x7fb\x7fc"]', "[1, null]", '[1.0, "a"]', '[1, ["a"]]'),
    ],
)
def test_what_is_no_row_of_texts_is_not_read(data: str) -> None:
    with pytest.raises(Malformed):
        ROWS.decode(data.encode())


@pytest.mark.parametrize("value", [Other("a", 1, False, 1), Leaf(1, 1), Leaf("a", True), Leaf("\ud800", 1), "a", None])  # type: ignore[arg-type]
def test_what_is_not_of_its_type_does_not_arrive(value: Any) -> None:
    with pytest.raises((Malformed, TypeError)):
        TREES.decode(TREES.encode(value))


@pytest.mark.parametrize("hint", [list[int], object, float, complex, type, Any, set[int], Exception])
def test_a_type_without_a_plain_form_has_no_codec(hint: Any) -> None:
    with pytest.raises(TypeError):
        Codec[object](hint)


class Rules(BaseModel, frozen=True, extra="forbid"):
    low: int | Decimal = 0
    high: int = 9


def test_a_model_comes_back_with_the_fields_that_were_given_and_checks_them() -> None:
    rules: Codec[Rules] = Codec(Rules)
    read = rules.decode(rules.encode(Rules(low=Decimal("1.50"))))

    assert (read, str(read.low), read.model_fields_set) == (Rules(low=Decimal("1.50")), "1.50", {"low"})
    for data in (b'[["high","9"]]', b'[["wide",1]]', b'["high"]', b'[["low",true]]'):
        with pytest.raises(Malformed):
            rules.decode(data)


@dataclass(frozen=True, slots=True)
class Told:
    words: str


def test_a_form_stands_for_a_class_and_what_is_below_it() -> None:
    def together(told: Told) -> Exception:
        if not told.words:
            raise ValueError
        return Exception(told.words)

    codec: Codec[Exception | Leaf] = Codec(
        Exception | Leaf, (Form(Exception, Told, lambda error: Told(str(error)), together),)
    )

    assert str(codec.decode(codec.encode(KeyError("a")))) == "'a'"
    with pytest.raises(Malformed):
        codec.decode(b'["Exception",[""]]')


@dataclass(frozen=True)
class Named:
    word: str
    size: int | None = None
    others: tuple[str, ...] = ()


NAMED: Codec[tuple[Named, ...]] = Codec(tuple[Named, ...], shared=(Named,))


@given(st.lists(st.builds(Named, st.text(max_size=3), st.none() | st.integers(0, 2), st.just(()) | st.just(("a",)))))
def test_values_that_are_shared_are_what_they_were(values: list[Named]) -> None:
    assert NAMED.decode(NAMED.encode(tuple(values))) == tuple(values)


def test_values_that_are_shared_are_made_once_and_are_of_their_types_every_time() -> None:
    one, other = NAMED.decode(b'[["a",1],["a",1]]')

    assert one is other
    assert NAMED.decode(b'[["a",1]]')[0] is one
    for data in (b'[["a",true]]', b'[["a",1,null]]', b'[["a","1"]]', b'[["a",1,[],1]]', b"[[]]", b"[[1]]", b'["a"]'):
        with pytest.raises(Malformed):
            NAMED.decode(data)
