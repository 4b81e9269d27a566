"""The virtual relations as tools see them, and their rows as PostgreSQL reads them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rules.sql.system_views import VIRTUAL, SystemView, array_text, find_virtual, row_text
from tests.conftest import RealDatabase

texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=9)


@pytest.mark.parametrize("virtual", VIRTUAL.values(), ids=VIRTUAL.keys())
def test_every_word_of_theirs_is_shown_in_any_encoding(virtual: SystemView) -> None:
    for text in (virtual.comment, *(column.comment for column in virtual.columns)):
        assert text
        assert text.isascii()


def test_only_those_of_our_schema_are_ours() -> None:
    assert find_virtual("noisegate", "budget") is VIRTUAL["budget"]
    assert find_virtual("public", "budget") is None
    assert find_virtual("noisegate", "secret") is None


@settings(max_examples=60, deadline=None)
@given(cells=st.tuples(st.none() | texts, st.none() | texts), items=st.lists(texts, max_size=4))
def test_rows_and_arrays_are_read_as_they_were_meant(
    shop: RealDatabase, cells: tuple[str | None, str | None], items: list[str]
) -> None:
    with shop.connect() as connection:
        connection.execute("CREATE TEMP TABLE cells (a text, b text, c text[])")
        row = row_text((*cells, array_text(items)))

        read = connection.execute("SELECT a, b, c FROM unnest(ARRAY[%s]::text[]::cells[])", (row,)).fetchone()

    assert read == (*cells, items)
