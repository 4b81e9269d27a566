"""The count before the parsers: linear, and never fooled by quotes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.refusal import TooComplex
from rules.sql.limits import DEEPEST_NESTING, MOST_TOKENS, _count_nested, _openings, check_size, check_text


@pytest.mark.parametrize(
    "text",
    [
        "SELECT " + "+".join(["1"] * 30_000),
        "SELECT " + "(" * 65 + "1" + ")" * 65,
        "SELECT " + "ARRAY[" * 65,
        "SELECT " + "CASE WHEN " * 65,
        "SELECT '" + "x" * 70_000 + "'",
        "SELECT $a$ ( $a$" + "(" * 65,
        "/* ( /* ( */ */" + "(" * 65,
        "E'\\'" + "'" + "(" * 65,
    ],
    ids=lambda text: text[:16],
)
def test_what_could_kill_a_parser_is_refused(text: str) -> None:
    with pytest.raises(TooComplex):
        check_size(text)


@pytest.mark.parametrize("text", ["SELECT '" + "x" * 70_000 + "'", "SELECT " + "(" * 65 + "1" + ")" * 65])
def test_what_is_only_read_is_short_and_flat_too(text: str) -> None:
    with pytest.raises(TooComplex):
        check_text(text)


def test_comments_nest_as_deeply_as_brackets() -> None:
    check_text("SELECT 1" + " /*" * 64 + " */" * 64)
    with pytest.raises(TooComplex, match="comments nested more than 64 levels deep"):
        check_text("SELECT 1" + " /*" * 65 + " */" * 65)


def test_words_are_counted_where_a_statement_is_planned() -> None:
    text = f"SELECT count(*) FROM t WHERE n IN ({', '.join(['1'] * MOST_TOKENS)})"

    check_text(text)
    with pytest.raises(TooComplex, match="a statement over protected tables has at most 4,000 words and signs"):
        check_size(text)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT '" + "(" * 1000 + "'",
        'SELECT "' + "(" * 1000 + '"',
        "SELECT $a$" + "(" * 1000 + "$a$",
        "SELECT 1 -- " + "(" * 1000,
        "/*" + "(" * 1000 + "*/ SELECT 1",
        "SELECT " + ", ".join(f"(a{number})" for number in range(900)),
        "SELECT " + " ".join(["CASE WHEN a THEN b END,"] * 300) + " 1",
    ],
    ids=lambda text: text[:16],
)
def test_ordinary_texts_pass(text: str) -> None:
    check_size(text)


@given(st.text(alphabet="'\"$a/*-()[]E\\\n end", max_size=300))
def test_any_text_is_counted_to_its_end(text: str) -> None:
    try:
        check_size(text)
    except TooComplex:
        assert any(bracket in text for bracket in "([")


@given(
    st.lists(st.sampled_from(["(", "[", "/*", "*/", "CASE ", " end", "'", '"', "$a$", "--", "\n", "x"]), max_size=300)
)
def test_a_text_that_is_not_read_sign_by_sign_would_pass(signs: list[str]) -> None:
    text = "".join(signs)

    if len(text) <= MOST_TOKENS and _openings(text) <= DEEPEST_NESTING:
        assert _count_nested(text) <= len(text)
