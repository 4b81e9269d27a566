"""Bins become values of their column's type, within the bin, and keys that fit together."""

from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rules.synthesis.model import Between, Column, FittedTable, KeyPart, Label, Lost, Parent, Table
from rules.synthesis.values import keys_of, lines, lost_rows, rows_of, shown_columns, values_of
from rules.values.types import DATE, FLOAT8, INT4, TIMESTAMP, TIMESTAMPTZ, Type
from rules.values.value import find_value
from tests.properties.planning import thorough

KINDS = (
    (INT4, Fraction(1), 1),
    (Type("numeric", 10, 2), Fraction(1, 100), 1),
    (FLOAT8, Fraction(1, 1024), 1),
    (DATE, Fraction(1), 1),
    (TIMESTAMP, Fraction(1), 1_000_000),
    (TIMESTAMPTZ, Fraction(1), 1_000_000),
)


@thorough
@given(
    kind=st.sampled_from(KINDS),
    low=st.integers(-300_000, 300_000),
    width=st.integers(0, 5_000_000),
    seed=st.integers(0, 99),
)
def test_a_value_lies_within_its_bin_and_postgresql_reads_it(
    kind: tuple[Type, Fraction, int], low: int, width: int, seed: int
) -> None:
    of, step, every = kind
    high = low + (min(width, 100_000) if of == DATE else width)
    given_bin = Between(low, high, step, of, every)

    for text in values_of((given_bin,), np.zeros(20, dtype=np.int64), np.random.default_rng(seed)):
        assert text is not None
        value = find_value(text, of)
        assert isinstance(value, Fraction)
        assert low * step <= value <= high * step


def test_labels_nulls_and_rows_that_cannot_be_shown() -> None:
    bins = (Label("x"), Label(None), Lost())
    table = Table("t", (Column("c", bins, "c"), Column("d", bins)), ())
    rows = np.array([[0, 2], [1, 0], [2, 0]])

    assert values_of(bins, rows[:, 0], np.random.default_rng(1)) == ["x", None, None]
    assert lost_rows(table, rows).tolist() == [2]


def test_keys_are_made_up_and_fit_together() -> None:
    parent = Parent(0, (), None, 9, "order_id")
    table = Table("items", (), (), parent, (KeyPart("order_id", "parent"), KeyPart("line", "place")))
    fitted = FittedTable(np.zeros((5, 0), dtype=np.int64), np.array([1, 0, 1, 1, 0]))

    found = keys_of(table, fitted, ["o-1", "o-2"], np.random.default_rng(1))

    assert found == {"order_id": ["o-2", "o-1", "o-2", "o-2", "o-1"], "line": ["1", "1", "2", "3", "2"]}
    assert shown_columns(table) == ("order_id", "line")
    assert rows_of(table, fitted, ["o-1", "o-2"], np.random.default_rng(1))[1] == found["line"]


def test_uuids_and_texts_are_keys_too() -> None:
    fitted = FittedTable(np.zeros((3, 0), dtype=np.int64))
    for kind in ("uuid", "text", "number"):
        table = Table("t", (), (), None, (KeyPart("id", kind),))
        keys = keys_of(table, fitted, None, np.random.default_rng(1))["id"]
        assert len(set(keys)) == 3
        assert keys == keys_of(table, fitted, None, np.random.default_rng(1))["id"]


@given(st.lists(st.one_of(st.none(), st.text())))
def test_lines_of_copy_hold_every_text(column: list[str | None]) -> None:
    told = lines([column]).decode()

    assert told.count("\n") == len(column)
    for text, line in zip(column, told.split("\n"), strict=False):
        back = line.replace("\\\\", "\0").replace("\\t", "\t").replace("\\n", "\n").replace("\\r", "\r")
        assert (line == "\\N") if text is None else (back.replace("\0", "\\") == text or "\0" in text)
