"""Columns as texts of PostgreSQL, without keeping the event loop to themselves."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from proxy.session.literals import text_array, text_arrays

VALUES = st.lists(st.none() | st.text(st.characters(codec="utf-8", exclude_characters="\0")), max_size=500)


@given(st.lists(VALUES, max_size=3))
def test_columns_are_arrays_whatever_their_length(columns: list[list[str | None]]) -> None:
    assert list(asyncio.run(text_arrays(columns))) == list(map(text_array, columns))


async def test_others_have_their_turn_while_a_long_column_is_written() -> None:
    turns = 0
    writing = asyncio.create_task(text_arrays([["value"] * 10_000] * 2))
    while not writing.done():
        turns += 1
        await asyncio.sleep(0)

    assert turns > 50
