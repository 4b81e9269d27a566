"""One column of each type, with its worst values: what every admitted expression has to bear."""

from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction

from rules.bind.declared_columns import type_domain
from rules.kernel.expressions import quoted_text
from rules.sql import syntax as s
from rules.sql.lower import parse_expression
from rules.values.domain import ANYTHING, ONE, Domain, Range, Values, values
from rules.values.expression import Column
from rules.values.types import Type
from rules.values.value import find_value

MOOD = Type("enum", name='"public"."mood"', labels=("glad", "sad", "calm"))

Cells = tuple[str, ...]

_INTEGERS: Cells = ("0", "1", "-1", "7", "-30")
_FLOATS: Cells = ("0", "-0", "1", "-1", "0.5", "2.5", "-7.25", "NaN", "Infinity", "-Infinity", "1e-30", "1e30")
_NUMBERS: Cells = ("0", "0.00", "1", "-1", "2.5", "-7.250", "1e-300", "1e300", "NaN", "Infinity", "-Infinity")
_DAYS: Cells = (
    *("2024-02-29", "1970-01-01", "1582-10-10", "0001-01-01", "9999-12-31", "infinity", "-infinity"),
    *("2024-01-31", "2023-02-28", "9999-12-29", "0001-01-03"),
)
_MOMENTS: Cells = (
    *("2024-03-31 02:30:00.000001", "2023-12-31 23:59:59.999999", "1970-01-01", "1850-06-01 12:00", "infinity"),
    *("0001-01-01", "0001-01-01 BC", "9999-12-31 23:59:59.999999", "294276-12-31 23:59:59", "-infinity"),
    *("2024-01-30 23:00", "2024-01-31 01:00", "2024-10-27 02:30", "2024-02-29 12:00"),
)
_TEXTS: Cells = (
    *("", " ", "a", "Berlin", "O'Hara", "50%", "a\\", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab", "2024-02-30", "2024-02-29"),
    *(
        "1" * 120,
        "2023-02-29",
        "0000-01-01",
        "1900-02-29 12:00",
        "2000-02-29T23:59:59.999999",
        "TRUE",
        " 7",
        "1e5",
        "-.5",
    ),
    *("\u00e4\u00df\u4e16\U0001f600", "e\u0301", "\n\t", "-12.50", "1e400", "99999999999999999999", "NaN", "{}", "(x)"),
)

# name -> type and the values that are there besides NULL
COLUMNS: dict[str, tuple[Type, Cells]] = {
    "i2": (Type("int2"), (*_INTEGERS, "32767", "-32768")),
    "i4": (Type("int4"), (*_INTEGERS, "2147483647", "-2147483648", "3000000", "-719163")),
    "i8": (Type("int8"), (*_INTEGERS, "3000000", "9223372036854775807", "-9223372036854775808", "4611686018427387904")),
    "n": (Type("numeric"), (*_NUMBERS, "1e-16383", "1e131071", "99999.99999")),
    "n2": (Type("numeric", size=8, scale=2), ("0", "1.25", "-0.01", "999999.99", "-999999.99", "NaN")),
    "f4": (Type("float4"), (*_FLOATS, "3.4e38", "-3.4e38", "1e-45")),
    "f8": (Type("float8"), (*_FLOATS, "1.7e308", "-1.7e308", "5e-324", "1e150", "9007199254740993")),
    "d": (Type("date"), (*_DAYS, "4713-01-01 BC", "5874897-12-31", "0044-03-15 BC")),
    "ts": (Type("timestamp"), (*_MOMENTS, "4713-01-01 BC")),
    "tz": (Type("timestamptz"), (*_MOMENTS, "4713-01-02 BC", "2024-10-27 02:30:00+02", "2024-10-27 02:30:00+01")),
    "t": (Type("text"), _TEXTS),
    "vc": (Type("varchar", size=12), ("", "  b ", "Lyon", "2024-01-31", "12", "\u4e16" * 12)),
    "b": (Type("bool"), ("true", "false")),
    "m": (MOOD, MOOD.labels),
    "j": (
        Type("other", name="jsonb"),
        (
            "{}",
            "[]",
            "null",
            '"a"',
            '{"a": {"b": [1, "x"]}, "n": 1e400}',
            '[{"a": null}]',
            '{"a": "12", "b": "2024-02-30"}',
        ),
    ),
    "ta": (Type("other", name="text[]"), ("{}", "{a}", "{a,NULL,b}", "{{a,b},{c,d}}", "[5:6]={a,b}", '{"", Berlin}')),
    "ia": (
        Type("other", name="integer[]"),
        ("{}", "{1}", "{1,NULL,7}", "{{7},{2147483647}}", "[-1:0]={1,-2147483648}"),
    ),
    "tm": (Type("time"), ("00:00", "24:00", "23:59:59.999999", "12:30:15.5", "18:00")),
    "iv": (
        Type("interval"),
        ("0", "1 day", "-1 month", "100 hours 0.000001 sec", "178000000 years", "-2147483647 days", "infinity"),
    ),
    # Others of these kinds: digits beyond doubles, padding, other precisions.
    "nw": (Type("numeric", size=400, scale=0), ("0", "1", "-7", "1e399", "-1e399", "1e308", "NaN")),
    "nd": (Type("numeric", size=1000, scale=998), ("0", "1", "-7.25", "1e-998", "-1e-400", "99", "NaN")),
    "nn": (Type("numeric", size=1, scale=0), ("0", "1", "-9", "9", "NaN")),
    "c": (Type("bpchar", size=4), ("", " ", "a", "1", "\u4e16" * 4, "50%", "a\\")),
    "na": (Type("name"), ("", "a", "Berlin", "2024-02-30", "7", "x" * 63)),
    "te": (Type("text"), ("", "aB")),
    "t0": (Type("timestamp", size=0), (*_MOMENTS, "4713-01-01 BC")),
    "z3": (Type("timestamptz", size=3), (*_MOMENTS, "4713-01-02 BC")),
    "u": (Type("uuid"), ("00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff")),
}
# Values that no guard looks at twice: there an expression means what PostgreSQL says.
TAME: dict[str, Cells] = {
    **dict.fromkeys(("i2", "i4", "i8"), ("0", "1", "-3", "7", "100")),
    **dict.fromkeys(("n", "n2"), ("0", "1.25", "-0.01", "99.50", "7")),
    **dict.fromkeys(("f4", "f8"), ("0", "0.5", "-7.25", "100", "3")),
    "d": ("2024-02-29", "1969-12-31", "2001-01-01", "2023-06-15"),
    "ts": ("2024-03-31 02:30:00", "1969-12-31 23:59:59.5", "2001-01-01", "2024-10-27 02:30:00"),
    "tz": ("2024-03-31 01:00:00+00", "2024-10-27 00:30:00+00", "2024-10-27 01:30:00+00", "1999-12-31 23:59:59.25+00"),
    "t": (
        *_TEXTS[:9],
        "2024-02-29",
        "-12",
        "abABab",
        "12.50",
        ".5",
        "2024-02-29 12:00",
        "oN",
        "0",
        "7.",
        "\u00e4\u00df",
    ),
    "vc": ("", "  b ", "Lyon", "2024-01-31", "12"),
    "ta": ("{}", "{a}", "{a,NULL,b}", '{"", Berlin}'),
    "ia": ("{}", "{1}", "{1,NULL,7}"),
    "iv": ("0", "1 day 02:00", "-1 month", "-00:00:01.5"),
    "j": ("{}", "[]", '{"a": {"b": [1, "x"]}, "n": -12.5}', '[{"a": null}]', '{"a": "12", "b": "2024-02-29"}'),
}
# A second column of the same type stands beside the first: i4 and i4_.
PAIRED = {**COLUMNS, **{f"{name}_": given for name, given in COLUMNS.items()}}
_VERY_LONG = "ab" * 40_000


def column(name: str, *, nullable: bool, declared: int | None = None) -> Column:
    """The column as a table would have it, with one of some rules for it or without."""
    given, _ = PAIRED[name]
    ranges = _DECLARED.get(name.rstrip("_"), ()) if declared is not None else ()
    known = _domain(ranges[(declared or 0) % len(ranges)], given) if ranges else ANYTHING
    return Column(list(PAIRED).index(name), given, type_domain(given), known, nullable=nullable, name=name)


def believed(name: str, place: int) -> Column:
    """The column with something that is not true of it: that it is never NULL, and one of these domains."""
    given, _ = PAIRED[name]
    return replace(column(name, nullable=False), domain=_lies(given)[place % MOST_LIES])


MOST_LIES = 5
_NOTHING = Values(())


def _lies(given: Type) -> tuple[Domain, ...]:
    """What conditions and CHECKs might say of a type's columns, were they what keeps the rows out."""
    if given.is_number:
        one, few = Fraction(1), Range(Fraction(1), Fraction(3), ONE)
        return _NOTHING, values([one]), few, Range(Fraction(-10), Fraction(-2), ONE), values([Fraction(0)])
    if given.is_time:
        days = ("2024-01-31", "2023-03-25", "2024-02-29", "9999-12-29", "0001-01-03")
        found = [value for day in days if isinstance(value := find_value(day, given), Fraction)]
        return _NOTHING, values(found[:1]), Range(found[1], found[2]), values(found[3:4]), Range(found[4], found[4])
    texts = given.labels if given.kind == "enum" else ("a", "7", "2024-02-29", "")
    if given.kind not in ("text", "enum"):
        return (_NOTHING,) * MOST_LIES
    return _NOTHING, Values(texts[:1]), Values(texts[1:2]), values(texts[2:3]), values(texts)


def constant(name: str, place: int) -> s.Expression:
    """A constant of the column's type, or of another of its kind."""
    given, _ = PAIRED[name]
    known = _CONSTANTS.get(given.kind, ())
    return parse_expression(known[place % len(known)] if known else f"NULL::{given.sql}")


MOST_CONSTANTS = 7
_OF_NUMBERS = ("0", "-1", "2147483647", "(-2147483648)", "32767::smallint", "9223372036854775807", "1e299")
_OF_DOUBLES = (
    "'8e307'::float8",
    "'-1e308'::float8",
    "'5e-324'::float8",
    "'3.4e38'::real",
    "1e-290",
    "0",
    "'1e-45'::real",
)
_OF_MOMENTS = (
    *("timestamp '2024-01-30 23:00'", "date '9999-12-31'", "date '0001-01-01'", "timestamptz '2024-03-31 01:30+00'"),
    *("timestamp '9999-12-31 23:59:59.999999'", "timestamptz '0001-01-02 00:00+00'", "date '2024-02-29'"),
)
_CONSTANTS = {
    "integer": _OF_NUMBERS,
    "numeric": (*_OF_NUMBERS[:1], "1e-290", "-1e299", *_OF_DOUBLES[:2], "99.995", "9007199254740993"),
    "float": _OF_DOUBLES,
    **dict.fromkeys(("date", "timestamp", "timestamptz"), _OF_MOMENTS),
    "text": ("''", "'a'", "'-12.50'", "'2024-02-30'", "'1e400'", "'a '::char(3)", "'x'::varchar(1)"),
    "boolean": ("true", "false", "NULL"),
    "enum": ("'sad'",),
    "time": ("time '24:00'", "time '00:00'"),
}


# What rules might say of a column: its least and its greatest value, or all of them.
MOST_DECLARED = 4
_DECLARED: dict[str, tuple[Cells, ...]] = {
    "i2": (("-3", "40"), ("0", "32767"), ("7", "7")),
    **dict.fromkeys(("i4", "i8"), (("-3", "40"), ("0", "2147483647"), ("-719163", "3000000"), ("7", "7"))),
    **dict.fromkeys(("n", "n2"), (("-0.5", "99.5"), ("-999999.99", "999999.99"), ("0.25", "0.25"))),
    "f4": (("-1.5", "150"), ("-3e38", "3e38"), ("0", "1e-30")),
    "f8": (("-1.5", "150"), ("-1e300", "1e300"), ("0", "1e-200")),
    "d": (
        *(("2023-12-30", "2024-03-02"), ("2024-01-29", "2024-02-29"), ("0001-01-01", "0001-03-01")),
        ("9999-11-30", "9999-12-31"),
    ),
    "ts": (
        *(("2024-03-30 12:00", "2024-04-02 23:59:59.999999"), ("2024-01-30 22:00", "2024-01-31 02:00")),
        *(("0001-01-01", "0001-01-31 12:00"), ("9999-12-30", "9999-12-31 23:59:59.999999")),
    ),
    "tz": (
        *(("2024-03-30 12:00+00", "2024-04-02 21:59:59.999999+00"), ("2024-01-30 22:00+00", "2024-01-31 02:00+00")),
        *(("2024-10-26 22:00+00", "2024-10-27 03:00+00"), ("2024-03-31 00:30+00", "2024-03-31 01:30+00")),
    ),
    "t": (("", "a", "Berlin", "O'Hara"), ("2024-02-29",)),
    "vc": (("Lyon", "12"),),
    **dict.fromkeys(("nw", "nn"), (("-3", "40"),)),
    "nd": (("-0.5", "0.5"),),
    "c": (("a", "50%"),),
    "na": (("a", "Berlin"),),
    "t0": (("2024-03-30 12:00", "2024-04-02 23:59:59"),),
}


def _domain(cells: Cells, given: Type) -> Domain:
    found = [value for cell in cells if (value := find_value(cell, given)) is not None]
    low, high = found[0], found[-1]
    if isinstance(low, Fraction) and isinstance(high, Fraction):
        return Range(low, high, type_range.step if isinstance(type_range := type_domain(given), Range) else None)
    return values(found)


def rows(names: Iterable[str], *, nullable: bool, server_version: int) -> str:
    """FROM …: every combination of the worst values of some columns that this server has."""
    return _crossed(_values(name, values_of(name, server_version), nullable=nullable) for name in names)


def tame_rows(names: Iterable[str]) -> str:
    """FROM …: every combination of values that are usual, and NULL."""
    return _crossed(_values(name, TAME.get(name.rstrip("_"), PAIRED[name][1]), nullable=True) for name in names)


def _crossed(sources: Iterable[str]) -> str:
    return " CROSS JOIN ".join(sources) or "(SELECT) AS nothing"


def values_of(name: str, server_version: int) -> Cells:
    """The worst values of a column that this server has."""
    given, cells = PAIRED[name]
    if given.base == "numeric" and server_version < 140000:
        cells = tuple(cell for cell in cells if "Infinity" not in cell)
    if given.base == "interval" and server_version < 170000:
        cells = tuple(cell for cell in cells if cell != "infinity")
    return (*cells, _VERY_LONG) if given.base == "text" else cells


def _values(name: str, cells: Cells, *, nullable: bool) -> str:
    given, _ = PAIRED[name]
    shown = [*map(quoted_text, cells), *(["NULL"] if nullable else [])]
    cast = f"{given.sql}::text" if given.base in ("bpchar", "name") else given.sql  # as a relation reads them
    return f"(SELECT v::{cast} AS {name} FROM unnest(ARRAY[{', '.join(shown)}]) AS v) AS of_{name}"
