"""Statements that differ in their constants and names alone are read once, and mean what each of them says."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.refusal import NotSupported
from rules.sql import lower
from rules.sql.deparse import print_query
from rules.sql.grammar import Unreadable, parse
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


def test_a_statement_with_other_names_is_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    parse_query("with w as (select a as b from s.t where f(a) > 1) select b, g(c) n from w join u using (b) group by b")
    monkeypatch.setattr(lower, "parsed", pytest.fail)

    query = parse_query(
        'WITH "W" AS (SELECT x AS "select" FROM "q.r"."""$0" WHERE max(x) > 2) '
        'SELECT "select", "$1"(y) AS "m" FROM "W" JOIN v USING ("select") GROUP BY "select"'
    )

    assert print_query(query) == (
        'WITH "W" AS (SELECT 1 AS "_ng", "x" AS "select" FROM "q.r"."""$0" WHERE ("max"("x") > 2)) '
        'SELECT 0 AS "_ng", "select", "$1"("y") AS "m" FROM "W" INNER JOIN "v" USING ("select") GROUP BY "select"'
    )


@pytest.mark.parametrize("text", [f"select {expression} from t" for expression in EXPRESSIONS] + list(QUERIES))
def test_read_a_second_time_it_is_the_same(text: str) -> None:
    first, second = parse_query(text), parse_query(text)

    assert first == second


@given(TEXTS, TEXTS, NUMBERS, NUMBERS)
def test_any_constants_are_put_where_they_stood(one: str, other: str, number: str, more: str) -> None:
    text = f"select {number}, 'q', {literal(one)} from t where x like {literal(other)} or y in ({more}, 0) limit 7"

    query = parse_query(text)

    check_agreement(spelled(parse(text)[0].tree).tree, query)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


NAMES = st.one_of(
    st.sampled_from(
        ("$0", "$1", "()", "a()", "select", "_ng", "count", "CASE", "a.b", '"', "''", "ä", " ", "\\", "-- x")
    ),
    st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=6),
)
PLACES = (
    "select {0}, {1}.{0} as {2}, {1}.* from {3} as {1} ({0}, {2})",
    "select {0}({1}), {2}.{0}(distinct {1} order by {3}) filter (where {3} is null) from {2}.{1} as {0}",
    "with {0} ({1}) as (select {2} from {3}) select {1} from {0} join {3} using ({1}, {2})",
    "select {0} from (select {1} as {0} from {2}) as {3} ({0}) group by {0} having max({0}) > 1 order by {3}.{0}",
    "select sum({0}) over ({1} rows {2} preceding) from {3} window {1} as (partition by {0} order by {2})",
    "select {0} in (select {1} from {2}), exists (select 1 from {3} where {1} = {0}) from {2} cross join lateral "
    "(select {0} from {3}) as {1}",
    "select case {0} when {1} then {2} end, {0}::{3}, array[{0}, {1}], {2} union all select {3}, {2}, {1}, {0}",
)


@given(st.sampled_from(PLACES), st.lists(NAMES, min_size=4, max_size=4), st.lists(NAMES, min_size=4, max_size=4))
def test_any_names_are_put_where_they_stood(place: str, first: list[str], second: list[str]) -> None:
    for names in (first, second):
        text = place.format(*map(_quoted, names))
        try:
            (piece,) = parse(text)
            query = parse_query(text)
        except (Unreadable, NotSupported):
            continue

        check_agreement(spelled(piece.tree).tree, query)


@pytest.mark.parametrize(
    ("number", "value"),
    [
        *(
            (number, int(number, 0))
            for number in ("0x1F", "0XFFFF_FFFF_FFFF", "0b1", "0o7_7", "1_000", "1_000_000_000_000")
        ),
        *((number, Decimal(number.replace("_", ""))) for number in ("5.", ".5", "1e5", "1_0.2_5e1_0", "1_000.5")),
        *((f"0{base}1{'0' * 2000}", int(f"0{base}1{'0' * 2000}", 0)) for base in "xob"),
    ],
    ids=lambda cell: str(cell)[:20],
)
def test_numbers_in_their_odd_spellings_are_numbers(number: str, value: int | Decimal) -> None:
    expression = parse_expression(number)
    assert isinstance(expression, Constant)
    assert expression.kind == "number"
    assert Decimal(expression.text) == value


def test_what_is_no_constant_of_the_statement_is_not_mistaken_for_one() -> None:
    """Types, frames and numbers of SELECTs are spelled as constants too."""
    assert parse_expression("'0'::text") == Cast(Constant("string", "0"), "text")
    assert parse_expression('x::"0"') == Cast(parse_expression("x"), '"0"')
    assert parse_expression("1000000000000") == Constant("number", "1000000000000")
    assert parse_expression("1000000000001 + '1'") == Operator(
        "+", (Constant("number", "1000000000001"), Constant("string", "1"))
    )
    assert "ROWS" in print_query(parse_query("select sum(x) over (order by y rows 3 preceding) from t where z = '0'"))
