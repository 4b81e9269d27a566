"""Statements that differ in their constants alone are read once, and mean what each of them says."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.refusal import NotSupported
from rules.sql import lower
from rules.sql.deparse import print_query
from rules.sql.grammar import parse
from rules.sql.lower import check_agreement, parse_expression, parse_query
from rules.sql.normalize import spelled
from rules.sql.normalize.to_text import literal
from rules.sql.syntax import Cast, Constant, Operator
from tests.sql.test_agree import EXPRESSIONS, QUERIES

TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8)
NUMBERS = st.one_of(
    st.integers(-(2**70), 2**70).map(str),
    st.decimals(allow_nan=False, allow_infinity=False, places=3).map(lambda number: format(number, "f")),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
)


def test_a_statement_with_other_constants_is_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    parse_query("select count(*) from t where a = 1 and b in ('x', 'y') limit 3")
    monkeypatch.setattr(lower, "parsed", pytest.fail)

    query = parse_query("SELECT count(*) FROM t WHERE a = 20.5 AND b IN ('z', 'it''s') LIMIT 4")

    assert print_query(query).endswith("""WHERE (("a" = 20.5) and ("b" IN ('z', 'it''s'))) LIMIT 4""")


@pytest.mark.parametrize("text", [f"select {expression} from t" for expression in EXPRESSIONS] + list(QUERIES))
def test_read_a_second_time_it_is_the_same(text: str) -> None:
    first, second = parse_query(text), parse_query(text)

    assert first == second


@given(TEXTS, TEXTS, NUMBERS, NUMBERS)
def test_any_constants_are_put_where_they_stood(one: str, other: str, number: str, more: str) -> None:
    text = f"select {number}, 'q', {literal(one)} from t where x like {literal(other)} or y in ({more}, 0) limit 7"

    query = parse_query(text)

    check_agreement(spelled(parse(text)[0].tree).tree, query)


@pytest.mark.parametrize("number", ["0x1F", "1_000", "0xFFFFFFFFFFFF", "1_000_000_000_000", "0b1", "5.", ".5", "1e5"])
def test_numbers_in_their_odd_spellings_are_numbers_or_refused(number: str) -> None:
    try:
        expression = parse_expression(number)
    except NotSupported:
        return
    assert isinstance(expression, Constant)
    assert expression.kind == "number"
    assert float(expression.text) == float(eval(number))


def test_what_is_no_constant_of_the_statement_is_not_mistaken_for_one() -> None:
    """Types, frames and numbers of SELECTs are spelled as constants too."""
    assert parse_expression("'0'::text") == Cast(Constant("string", "0"), "text")
    assert parse_expression('x::"0"') == Cast(parse_expression("x"), '"0"')
    assert parse_expression("1000000000000") == Constant("number", "1000000000000")
    assert parse_expression("1000000000001 + '1'") == Operator(
        "+", (Constant("number", "1000000000001"), Constant("string", "1"))
    )
    assert "ROWS" in print_query(parse_query("select sum(x) over (order by y rows 3 preceding) from t where z = '0'"))
