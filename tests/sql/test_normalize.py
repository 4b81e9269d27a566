"""Whatever PostgreSQL's grammar reads, the planner's parser reads the same: names, strings and brackets of any kind."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rules.sql.grammar import Unreadable, deparse, parse
from rules.sql.lower import parse_expression, parse_query
from rules.sql.normalize.to_text import literal, quoted
from rules.sql.syntax import Constant, Item, Name, Query, Select

# No NUL, no surrogates: PostgreSQL has no such texts.
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
KEYWORDS = st.sampled_from(
    """final anti semi asof pivot qualify format top describe key comment range rows filter replace date time timestamp
    text name type value year month day hour index show cache uncache refresh merge kill pragma percent ordinality
    array map struct list object union select from where order limit offset values current_date interval case end
    true false null is in like ilike not and or between any all some exists cast extract trim overlay position
    substring coalesce nullif greatest least grouping row left right full inner cross natural lateral with recursive
    only tablesample fetch for on using as distinct unique window over partition by group having set connect prior
    sort cluster distribute match_recognize unpivot apply outer straight_join div rlike regexp glob if iff
    try_cast""".split()
)
NAMES = st.one_of(KEYWORDS, TEXTS.filter(lambda name: 0 < len(name.encode()) < 60 and name != "_ng"))
LITERALS = st.one_of(
    TEXTS.map(literal),
    st.integers(0, 10**30).map(str),
    st.decimals(0, 10**6, places=3).map(str),
    st.sampled_from((".5", "5.", "1e-9", "1.5E+3", "true", "false", "null", "E'a\\nb\\''", "U&'\\0061'", "$x$a'b$x$")),
    st.sampled_from(("date '2020-01-01'", "interval '1 day'", "timestamp with time zone 'now'", "'{1,2}'::int[]")),
)
BINARY = st.sampled_from(
    (
        *"+ - * / % ^ || = <> != < <= > >= ~ ~* !~ !~* <-> @> -> ->> && & | << and or like ilike".split(),
        *("not like", "is distinct from", "is not distinct from", "similar to", "at time zone"),
    )
)
PREFIX = st.sampled_from(("-", "+", "not", "@", "|/", "~"))
POSTFIX = st.sampled_from(
    ("is null", "is not null", "is true", "is not true", "is false", "is not false", "is unknown", "is not unknown")
)


def combined(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Expressions around expressions, each in brackets, so that the grammar reads them whatever they are."""
    some = st.lists(inner, min_size=1, max_size=3).map(", ".join)
    return st.one_of(
        st.builds("({1}) {0} ({2})".format, BINARY, inner, inner),
        st.builds("{} ({})".format, PREFIX, inner),
        st.builds("({}) {}".format, inner, POSTFIX),
        st.builds("({}) in ({})".format, inner, some),
        st.builds("({}) not in (select {})".format, inner, inner),
        st.builds("({}) between ({}) and ({})".format, inner, inner, inner),
        st.builds("case when {} then {} else {} end".format, inner, inner, inner),
        st.builds("case {} when {} then {} end".format, inner, inner, inner),
        st.builds("{}({})".format, NAMES.map(quoted), some),
        st.builds("{}.{}({})".format, NAMES.map(quoted), NAMES.map(quoted), some),
        st.builds("{}(distinct {} order by {} desc) filter (where {})".format, NAMES.map(quoted), inner, inner, inner),
        st.builds(
            "{}({}) over (partition by {} order by {} rows 1 preceding)".format, NAMES.map(quoted), inner, inner, inner
        ),
        st.builds("coalesce({})".format, some),
        st.builds("greatest({})".format, some),
        st.builds("nullif({}, {})".format, inner, inner),
        st.builds("extract(year from {})".format, inner),
        st.builds("substring({} from {} for {})".format, inner, inner, inner),
        st.builds("trim(leading {} from {})".format, inner, inner),
        st.builds("({})::numeric(10,2)".format, inner),
        st.builds("cast({} as timestamp(3) with time zone)".format, inner),
        st.builds("({})::{}.{}[]".format, inner, NAMES.map(quoted), NAMES.map(quoted)),
        st.builds("array[{}]".format, some),
        st.builds("row({})".format, some),
        st.builds("({}) = any ({})".format, inner, inner),
        st.builds("(select {} from {} as {} limit 1)".format, inner, NAMES.map(quoted), NAMES.map(quoted)),
        st.builds("exists (select {} where {})".format, inner, inner),
    )


COLUMNS = st.lists(NAMES.map(quoted), min_size=1, max_size=3).map(".".join)
EXPRESSIONS = st.recursive(
    st.one_of(COLUMNS, LITERALS, st.sampled_from(("$1", "$2,$1", "count(*)", "now()"))), combined
)


@pytest.mark.slow
@settings(max_examples=400, deadline=None)
@given(EXPRESSIONS)
def test_every_expression_is_read_alike(text: str) -> None:
    query = f"select {text} from t"
    try:
        parse(query)
    except Unreadable:  # no expression for PostgreSQL either: $2,$1 inside brackets
        return

    parse_query(query)  # a disagreement would be a refusal


@given(TEXTS)
def test_strings_are_what_they_were(value: str) -> None:
    assert parse_expression(literal(value)) == Constant("string", value)


@given(st.lists(NAMES, min_size=1, max_size=3))
def test_names_are_what_they_were(parts: list[str]) -> None:
    assert parse_expression(".".join(map(quoted, parts))) == Name(tuple(parts))


@given(NAMES)
def test_names_folded_by_postgresql_are_what_it_made_of_them(name: str) -> None:
    try:
        (piece,) = parse(f"select x as {name} from t")
    except (Unreadable, ValueError):
        return
    assert items(parse_query(deparse(piece.tree))) == items(parse_query(f"select x as {name} from t"))


def items(query: Query) -> tuple[Item, ...]:
    assert isinstance(query, Select)
    return query.items
