"""A text in a form that docs/sql.md lists is read as PostgreSQL reads it, and no text in such a form is an error."""

import random
import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.functions.casts import cast
from rules.functions.function import EvalContext
from rules.functions.text.text_casts import PATTERNS
from rules.kernel.expressions import expression_sql
from rules.values.expression import Column
from rules.values.types import TEXT
from tests.properties.planning import Lab, thorough

TARGETS = {
    "date": "date",
    "timestamp": "timestamp",
    "integer": "integer",
    "numeric": "numeric",
    "double precision": "float",
    "boolean": "boolean",
    "uuid": "uuid",
}
BLANKS = ("", "", " ", "\t", " \n", "\v\f\r ")
DAYS = ("%Y-%m-%d", "%Y/%m/%d", "%Y%m%d", "{0.year:04}-{0.month}-{0.day}", "{0.year:04}/{0.month}/{0.day}", "%y%m%d")
CLOCKS = ("", " %H:%M", " %H:%M:%S", "T%H:%M:%S.%f", "  {0.hour}:%M", " 24:00", "T%H:%M:60", " %H:%M:%S.123456789")
ZONES = ("", "Z", "+00", "+5", "-0330", " +05:30", "+00:53:28")
NUMBERS = ("{}", "{:f}", "{:e}", "{:.3f}", "+{}", "0{}", "{:E}")
TRUTHS = [word[:length] for word in ("true", "false", "yes", "no") for length in range(1, len(word) + 1)]
TRUTHS += ["on", "of", "off", "0", "1"]
moments = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30)) | st.datetimes(
    datetime(1970, 1, 1), datetime(2069, 1, 1)
)


@st.composite
def dates(draw: st.DrawFn) -> str:
    """A date in one of the forms, with a time and a zone or without."""
    moment = draw(moments)
    form = draw(st.sampled_from(DAYS))
    if form == "%y%m%d" and not 1970 <= moment.year < 2070:
        form = "%Y%m%d"
    clock = draw(st.sampled_from(CLOCKS))
    form += clock + (draw(st.sampled_from(ZONES)) if clock else "")
    return moment.strftime(form.format(moment).replace("%Y", f"{moment.year:04}"))


@st.composite
def numbers(draw: st.DrawFn) -> str:
    number = draw(st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**12), max_value=10**12))
    return draw(st.sampled_from(NUMBERS)).format(
        abs(number) if draw(st.booleans()) else Decimal(round(number)).copy_abs()
    )


@st.composite
def uuids(draw: st.DrawFn) -> str:
    digits = draw(st.uuids()).hex
    text = "".join(digits[at : at + 4] + draw(st.sampled_from(("", "-"))) for at in range(0, 28, 4)) + digits[28:]
    text = draw(st.sampled_from((text, text.upper(), str(UUID(digits)))))
    return draw(st.sampled_from(("{}", "{{{}}}"))).format(text)


FORMS = {
    "date": dates(),
    "timestamp": dates(),
    "integer": st.integers(-(2**31), 2**31 - 1).map(str) | st.integers(0, 9).map("+{:05}".format),
    "numeric": numbers(),
    "float": numbers(),
    "boolean": st.sampled_from(TRUTHS).flatmap(lambda word: st.sampled_from((word, word.upper(), word.title()))),
    "uuid": uuids(),
}


def read(lab: Lab, target: str, texts: Sequence[str], wanted: str) -> list[tuple[object, ...]]:
    made = cast(Column(1, TEXT), target, EvalContext("Europe/Berlin"))
    ours = expression_sql(made, {1: "t"})
    with lab.connection.transaction(force_rollback=True):
        return lab.connection.execute(
            f"SELECT t, ({ours})::text, {wanted} FROM unnest(%s::text[]) AS s (t)", [list(texts)]
        ).fetchall()


@thorough
@pytest.mark.parametrize("target", TARGETS)
@given(data=st.data())
def test_a_text_in_a_listed_form_is_what_postgresql_reads(lab: Lab, target: str, data: st.DataObject) -> None:
    form = FORMS[TARGETS[target]]
    blanks = st.just("") if target == "uuid" else st.sampled_from(BLANKS)
    texts = data.draw(st.lists(st.builds("{}{}{}".format, blanks, form, blanks), min_size=10, max_size=30))

    for text, ours, theirs in read(lab, target, texts, f"(t::{target})::text"):
        assert ours is not None and ours == theirs, f"{text!r}: {ours}, not {theirs}"


@thorough
@pytest.mark.parametrize("target", TARGETS)
@given(data=st.data())
def test_a_text_that_its_pattern_admits_is_no_error(lab: Lab, target: str, data: st.DataObject) -> None:
    """Drawn from the pattern itself: the ends of months, of leap years and of exponents."""
    pattern = re.compile(PATTERNS[TARGETS[target]].replace("$", r"\Z"), re.ASCII)
    texts = data.draw(st.lists(st.from_regex(pattern, fullmatch=True), min_size=10, max_size=30))

    read(lab, target, texts, "NULL")


@pytest.mark.parametrize(
    ("target", "text"),
    [
        *(
            ("date", text)
            for text in (
                "Jan 1 2021",
                "1 Jan 2021",
                "01.02.2021",
                "1/2/2021",
                "epoch",
                "infinity",
                "2021-02-29",
                "20210229",
                "210229",
                "9000229",
            )
        ),
        *(("timestamp", text) for text in ("2021-01-01 25:00", "2021-01-01 10:00 PM", "2021-01-01\u00a0", "J2451187")),
        *(("numeric", text) for text in ("NaN", "Infinity", "1_000", "0x1F", "1e400", ".", "e5", "1\u2003")),
        ("boolean", "o"),
        ("uuid", " 00000000-0000-0000-0000-000000000000"),
        ("uuid", "{00000000-0000-0000-0000-000000000000"),
    ],
)
def test_a_text_in_another_form_is_null(lab: Lab, target: str, text: str) -> None:
    assert read(lab, target, [text], "NULL")[0][1] is None


@pytest.mark.extended
def test_every_day_of_the_years_with_all_kinds_of_leap_years_is_read(lab: Lab) -> None:
    """With six to eight digits, and with slashes."""
    days = [
        datetime(first, 1, 1) + timedelta(number)
        for first, last in ((99, 402), (1896, 2105))
        for number in range((datetime(last, 1, 1) - datetime(first, 1, 1)).days)
    ]
    texts = (
        [f"{day.year:04}{day:%m%d}" for day in days]
        + [f"{day.year}{day:%m%d}" for day in days if day.year > 99]
        + [f"{day:%y%m%d}" for day in days if 1970 <= day.year < 2070]
    )
    texts += [f"{day.year:04}/{day.month}/{day.day}" for day in days]

    rows = read(lab, "date", random.Random(1).sample(texts, len(texts)), "(t::date)::text")

    assert not [row for row in rows if row[1] != row[2]]
