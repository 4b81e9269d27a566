"""Columns as operands: clamped to their declared bounds, and never a value on which an operation could fail.

A column that is only compared is read as it is. One that an operation computes with passes through here first: what
comes out is NULL or a finite value of a known range.
"""

from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction

from rules.refusal import NotSupported
from rules.relation import domain, value
from rules.relation.domain import Range, Values
from rules.relation.expression import Apply, Column, Constant, Expression
from rules.relation.types import FLOAT8, NUMERIC, TEXT, Type, integer_range
from rules.relation.value import DAY, FIRST_DAY, LAST_DAY

LONGEST_TEXT = 1 << 16  # octets: a longer one is NULL to functions, whose results could pass PostgreSQL's 1 GB
LARGEST_NUMERIC = Fraction(10) ** 300
LARGEST_FLOAT = Fraction(10) ** 150  # products of two stay finite, and products of two inverses do not underflow

_DOUBLE_DIGITS = 300  # before or behind the point that a double holds


def padded(given: Expression) -> Expression:
    """What LIKE, ~ and octet_length see of a character(n): the text with the spaces that make it n letters long."""
    if given.type.base != "bpchar" or isinstance(given, Constant):
        return given
    if given.type.size is None:
        raise NotSupported("a pattern over a character(n) of no known length sees its padding", hint="Cast it to text.")
    return Apply("padded", f"rpad({{0}}, {given.type.size})", (given,), TEXT, domain.ANYTHING, given.nullable)


@dataclass(frozen=True, slots=True)
class Styles:
    """How the session writes and reads what it does not write and read everywhere alike."""

    date: str = "ISO"  # German, SQL or Postgres, or ISO, with the order of day and month
    interval: str = "postgres"


PLAIN = Styles()


@dataclass(frozen=True, slots=True)
class Reading:
    """What PostgreSQL itself reads in a literal, in canonical text; None where it reads nothing."""

    type: str
    literal: str
    text: str | None


@dataclass(frozen=True, slots=True)
class Setting:
    """What an expression depends on besides its columns. In a key, declared values are enforced on texts too."""

    time_zone: str = "UTC"
    now: datetime | None = None
    as_key: bool = False
    styles: Styles = PLAIN
    readings: tuple[Reading, ...] = ()
    server_version: int = 180000  # of the real database: what runs there has to be known there
    time_zones: frozenset[str] | None = None  # that are known there


def as_value(given: Expression, setting: Setting) -> Expression:
    """An operand of a computation."""
    if not isinstance(given, Column):
        return _double(_finite_moment(given))
    match given.type.kind:
        case "integer" | "numeric" | "float":
            return _number(given)
        case "date" | "timestamp" | "timestamptz":
            return _moment(given)
        case "text":
            return _short(as_passed(given, setting))
        case _:
            return as_passed(given, setting)


def _finite_moment(given: Expression) -> Expression:
    """infinity is a date to compare with; what is computed with it fails, or is infinite too."""
    if isinstance(given, Constant) and is_infinite(given):
        raise NotSupported(f"{given.type.sql} '{given.text}' can only be compared here")
    return given


def is_infinite(given: Constant) -> bool:
    """Whether a moment is earlier or later than all others."""
    return given.type.is_time and given.text is not None and given.value is None


def as_passed(given: Expression, setting: Setting) -> Expression:
    """An operand that is handed on unchanged, as by CASE and COALESCE."""
    if not isinstance(given, Column):
        return _finite_moment(given)
    if given.type.is_number or given.type.is_time:
        return as_value(given, setting)
    declared = given.declared
    if not setting.as_key or not isinstance(declared, Values) or domain.is_within(given.domain, declared):
        return given
    return _listed(given, declared)


def constant(number: Fraction, given: Type) -> Constant:
    """A number, date or timestamp as a constant. A float is its nearest double, for real too."""
    if given.kind == "float":
        given, number = FLOAT8, Fraction(float(number))
    if given.kind == "integer" and not _is_integer(number, given):
        given = NUMERIC
    text = value.text_of(number, given.plain(), "UTC")
    if text is None:
        raise NotSupported(
            f"values of type {given.sql} could lie beyond what is planned here", hint="Narrow them first."
        )
    return Constant(given.plain(), text, number)


def _is_integer(number: Fraction, given: Type) -> bool:
    first, last = integer_range(given.base)
    return number.denominator == 1 and first <= number <= last


def clamp(given: Expression, bounds: Range) -> Expression:
    """least(greatest(x, low), high), with NULL and NaN as NULL: PostgreSQL's own would make bounds of them."""
    assert bounds.low is not None and bounds.high is not None
    (low, high), kind = _bounds(bounds.low, bounds.high, given.type)
    seen = "{0} <> 'NaN'" if given.type.kind in ("numeric", "float") else "{0} IS NOT NULL"
    sql = f"CASE WHEN {seen} THEN least(greatest({{0}}, {{1}}), {{2}}) END"
    image = domain.clamped(given.domain, bounds.low, bounds.high)
    nullable = given.nullable or given.type.kind in ("numeric", "float")
    return Apply("clamp", sql, (given, low, high), kind, image, nullable)


def _bounds(low: Fraction, high: Fraction, given: Type) -> tuple[tuple[Constant, Constant], Type]:
    """Bounds with as many digits as the values between them have, so that equal ones are written alike, if they can."""
    first, last = constant(low, given), constant(high, given)
    if given.kind != "numeric" or given.scale is None:
        return (first, last), given.plain()
    texts = value.decimal_text(low, given.scale), value.decimal_text(high, given.scale)
    if texts[0] is None or texts[1] is None:
        return (first, last), given.plain()
    return (Constant(NUMERIC, texts[0], low), Constant(NUMERIC, texts[1], high)), given


def within(given: Expression, low: Fraction, high: Fraction) -> Expression:
    """The value where it lies between, else NULL; NaN and infinities never do."""
    first, last = constant(low, given.type), constant(high, given.type)
    image = domain.intersect(given.domain, Range(low, high))
    return Apply(
        "within", "CASE WHEN {0} BETWEEN {1} AND {2} THEN {0} END", (given, first, last), given.type, image
    )  # fmt: skip


def _number(given: Column) -> Expression:
    if domain.range_of(given.declared).is_bounded and not domain.is_within(given.domain, given.declared):
        return _double(clamp(given, domain.range_of(given.declared)))
    if given.type.kind == "integer":
        return given
    limit = LARGEST_NUMERIC if given.type.kind == "numeric" else LARGEST_FLOAT
    found = domain.range_of(given.domain)
    if not domain.is_within(found, Range(-limit, limit)):
        return _double(within(given, -limit, limit))
    seen = "CASE WHEN {0} <> 'NaN' THEN {0} END"
    return _double(Apply("seen", seen, (given,), given.type, given.domain, nullable=True))


def _double(given: Expression) -> Expression:
    """real is computed with as double precision, which holds all of its values."""
    if given.type.base != "float4" or (isinstance(given, Apply) and given.name == "double"):
        return given
    return Apply("double", "{0}::double precision", (given,), given.type, given.domain, given.nullable)


def _moment(given: Column) -> Expression:
    found = domain.range_of(given.domain)
    declared = domain.range_of(given.declared)
    if declared.is_bounded and not domain.is_within(found, declared):
        return clamp(given, declared)
    first, last = year_limits(given.type)
    return given if domain.is_within(found, Range(first, last)) else within(given, first, last)


def year_limits(given: Type) -> tuple[Fraction, Fraction]:
    """Years 1 to 9999, a day from either end so that no time zone leads out of them."""
    if given.kind == "date":
        return Fraction(FIRST_DAY + 1), Fraction(LAST_DAY - 1)
    return Fraction((FIRST_DAY + 1) * DAY), Fraction((LAST_DAY - 1) * DAY)


def _short(given: Expression) -> Expression:
    size = given.type.size
    if (size is not None and size <= LONGEST_TEXT // 4) or isinstance(given.domain, Values):
        return given
    sql = f"CASE WHEN octet_length({{0}}) <= {LONGEST_TEXT} THEN {{0}} END"
    return Apply("short", sql, (given,), given.type, given.domain, nullable=True)


# What these make is no longer than their first argument, which is short.
_SHORTENING = frozenset(("short", "left", "right", "substring", "btrim", "ltrim", "rtrim"))


def short(given: Expression) -> Expression:
    """A text that is not too long for any function: what CASE, COALESCE and || make of long ones is cut."""
    if isinstance(given, Column):
        return _short(given)
    if isinstance(given, Constant) or isinstance(given.domain, Values) or given.name in _SHORTENING:
        return given
    return Apply("left", f'"left"({{0}}, {LONGEST_TEXT})', (given,), given.type.plain(), given.domain, given.nullable)


def _listed(given: Column, declared: Values) -> Expression:
    items = tuple(Constant(given.type.plain(), value.text_of(item, given.type), item) for item in declared.items)
    holes = ", ".join(f"{{{place}}}" for place in range(1, len(items) + 1))
    test = f"{{0}} IN ({holes})" if items else "FALSE"  # none is left of a list whose values a condition excludes
    sql = f"CASE WHEN {test} THEN {{0}} END"
    return Apply("listed", sql, (given, *items), given.type, declared, nullable=True)


def as_double(given: Expression) -> Expression:
    """A number where PostgreSQL converts to double precision: a numeric too large or too near zero would fail there."""
    if given.type.kind != "numeric" or isinstance(given, Constant):
        return given
    if isinstance(given, Column) and _is_double_sized(given.type):
        return Apply("double", "({0})::double precision", (given,), FLOAT8, given.domain, given.nullable)
    small = finite(as_value(given, Setting()))
    found = domain.range_of(small.domain)
    image = Range(found.low, found.high)
    return Apply("double", "round({0}, 200)::double precision", (small,), FLOAT8, image, small.nullable)


def _is_double_sized(given: Type) -> bool:
    """Whether no value of numeric(p, s) is too large or too near zero, as some of numeric(400, 0) are."""
    if given.size is None or given.scale is None:
        return False
    return given.size - given.scale <= _DOUBLE_DIGITS and given.scale <= _DOUBLE_DIGITS


def safe_factor(given: Expression) -> Expression:
    """A double that may be multiplied and divided: tiny ones are 0, for PostgreSQL reports underflow as an error.

    Whole numbers are neither tiny nor too large, and the least bigint has no abs().
    """
    if given.type.kind == "integer":
        return Apply("double", "({0})::double precision", (given,), FLOAT8, given.domain, given.nullable)
    sql = "CASE WHEN abs({0}) <= 1e150 THEN CASE WHEN abs({0}) >= 1e-150 THEN {0} ELSE 0 END END"
    limit = Range(-LARGEST_FLOAT, LARGEST_FLOAT)
    return Apply("safe factor", sql, (given,), FLOAT8, domain.intersect(given.domain, limit), nullable=True)


def finite(given: Expression) -> Expression:
    """A number small enough that the next operation cannot leave its type's range."""
    limit = LARGEST_FLOAT if given.type.kind == "float" else LARGEST_NUMERIC
    if domain.is_within(domain.range_of(given.domain), Range(-limit, limit)) and given.type.kind != "float":
        return given
    return within(given, -limit, limit) if given.type.kind in ("float", "numeric") else given
