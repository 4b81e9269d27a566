"""Regular expressions that are admitted: PostgreSQL compiles every one of them, and none takes long on any text."""

import os
import time
from contextlib import suppress

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rules.functions.function import EvalContext
from rules.functions.text.patterns import shape_of, similar_to_escape
from rules.refusal import NotSupported
from rules.values.expression import Literal
from tests.conftest import RealDatabase

EXAMPLES = int(os.environ.get("NOISEGATE_EXAMPLES", "150"))
MOST_SECONDS = 5.0  # for all texts together, on a machine that does other things too
TEXTS = ("", "a" * 65_000, "ab" * 32_000, "a" * 30_000 + "b" * 30_000, "x1 -_" * 13_000, "\u4e16a" * 16_000)
SIGNS = (
    *"abA1-_ .^$|()[]{}*+?\\,:\u00e4\u4e16",
    *("(?:", "{2}", "{0,3}", "{100}", "{3,}", "[^", "[a-z]", "[[:alpha:]]", "\\d", "\\w", "\\s", "\\m", "\\y", "\\."),
    *("\\1", "(?=", "(?i)", "[[.a.]]", "***:", ".*", ".{50}", "(a|b)", "[a-\u024f]", "\\W", "(.+)", "\\Z", "(ab)+"),
    *("[", "]", "-", "[a-", "\\n", "\\-", "\\]", "[!-/"),
)

patterns = st.lists(st.sampled_from(SIGNS), min_size=1, max_size=25).map("".join)


@pytest.mark.extended
@settings(max_examples=EXAMPLES, deadline=None)
@given(pattern=patterns, others=patterns)
def test_an_admitted_pattern_is_compiled_and_runs_in_bounded_time(
    shop: RealDatabase, pattern: str, others: str
) -> None:
    for text in (pattern, others, f"{pattern}|{others}", f"({pattern}){others}"):
        with suppress(NotSupported):
            shape = shape_of(text)
            _run(shop, text, takes_out=shape.groups < 2 and not shape.repeats_group)


@pytest.mark.parametrize(
    "pattern",
    [
        "(a|b)*a(a|b){20}",
        "(?:(?:a+)b)+c",
        "(?:.{100}){2}",
        "(?i)" + "".join(map(chr, range(0x61, 0x7B))) + ".{100}",
        "|".join(f"{first}.*{second}" for first in "abcde" for second in "vwxyz"),
        "(a.*b)|c",
    ],
)
def test_patterns_that_are_slow_elsewhere_are_not(shop: RealDatabase, pattern: str) -> None:
    _run(shop, pattern, takes_out=shape_of(pattern).groups < 2 and not shape_of(pattern).repeats_group)


@pytest.mark.parametrize(
    "pattern",
    """( ) a** *a [a [z-a] a{3,2} a{256} (a)\\1 (?=a) (?!a) [[.a.]] [[:nix:]] \\ (a*)* (^a)+ ***=a (?x)a \\q a{,3} {2}
    [a-\\n] [!-/-z] (a{50}){50} ((((((((((((a))))))))))))""".split(),
)
def test_a_pattern_that_is_wrong_or_too_much_is_refused_when_planning(pattern: str) -> None:
    with pytest.raises(NotSupported, match="regular expression"):
        shape_of(pattern)


def test_similar_to_with_a_bracket_in_a_list_is_refused() -> None:
    """PostgreSQL 18 looks for its partner, and those before do not."""
    for pattern in ("[[a-z].", "[^[^a].", "a[b[]"):
        with pytest.raises(NotSupported, match="inside a bracket list"):
            similar_to_escape((Literal(pattern),), EvalContext())
    assert similar_to_escape((Literal("[[:alpha:]][a]"),), EvalContext())


def _run(shop: RealDatabase, pattern: str, *, takes_out: bool) -> None:
    """Both kinds of use, as the registry writes them."""
    out = "regexp_replace(left(t, 2000), %(p)s, '<\\1>', 'g'), substring(left(t, 2000), %(p)s)" if takes_out else "1"
    statement = f"SELECT t ~ %(p)s, t ~* %(p)s, {out} FROM unnest(%(t)s::text[]) AS t"
    begin = time.monotonic()
    with psycopg.connect(shop.dsn) as connection:
        connection.execute(statement, {"p": pattern, "t": list(TEXTS)})
    assert time.monotonic() - begin < MOST_SECONDS, pattern


@pytest.mark.parametrize("pattern", ['a\\"b', '%\\"_%\\"'])
def test_similar_to_takes_no_text_apart(pattern: str) -> None:
    """PostgreSQL reads an escaped double quote as the edge of a part, and not as a sign."""
    with pytest.raises(NotSupported, match="double quote"):
        similar_to_escape((Literal(pattern),), EvalContext())
