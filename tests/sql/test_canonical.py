"""Spellings that the planner's parser does not know become ones that it does."""

import pytest

from rules.sql.grammar import deparse, parse
from rules.sql.tree import made_canonical


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("interval '90' day", "'90 day'::interval day"),
        ("interval '-3' month", "'-3 month'::interval month"),
        ("'2'::interval hour", "'2 hour'::interval hour"),
    ],
)
def test_a_number_of_one_unit_is_an_interval_like_any_other(written: str, canonical: str) -> None:
    shown = (deparse(made_canonical(parse(f"SELECT {text}")[0].tree)) for text in (written, canonical))

    assert len(set(shown)) == 1


@pytest.mark.parametrize(
    "written", ["interval '1 day 2 hours' day", "interval '1-2' year to month", "'1.5'::interval day"]
)
def test_an_interval_that_its_fields_would_cut_stays_as_it_is(written: str) -> None:
    one, other = (parse(f"SELECT {written}")[0].tree for _ in range(2))

    assert made_canonical(one) == other
