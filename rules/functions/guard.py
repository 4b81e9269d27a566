"""Columns as operands: clamped to their declared bounds, and never a value on which an operation could fail.

A column that is only compared is read as it is. One that an operation computes with passes through here first: what
comes out is NULL or a finite value of a known range. In a condition nothing is declared of columns. A guard is left out
only by what is sure of the operand, never by its domain: conditions that narrow a domain may be looked at later than
what they seem to guard.
"""

from fractions import Fraction
from functools import lru_cache
from math import ceil, floor

from rules.functions.function import EvalContext
from rules.refusal import NotSupported
from rules.values import domain, interval_arithmetic, value
from rules.values.domain import ONE, Range, Values
from rules.values.enforced import Sure, between, clamped
from rules.values.expression import Apply, Column, Constant, Expression
from rules.values.types import FLOAT8, NUMERIC, TEXT, Type, integer_range
from rules.values.value import DAY, FIRST_DAY, LAST_DAY

LONGEST_TEXT = 1 << 16  # octets: a longer one is NULL to functions, whose results could pass PostgreSQL's 1 GB
LARGEST_NUMERIC = Fraction(10) ** 300
LARGEST_FLOAT = Fraction(10) ** 150  # products of two stay finite, and products of two inverses do not underflow
MOST_DIGITS = 1000  # behind the point, that are computed with

_DOUBLE_DIGITS = 300  # before or behind the point that a double holds
_MULTIPLIED_DIGITS = 8000  # of a factor: PostgreSQL 13 has no product of more than 16,383
_LONG_POWER = 20  # of ten: from here on it is written with an exponent


def check_blanks(sql_type: Type) -> None:
    """Refuse to show a character without one length: of equal ones some have blanks at the end, row by row."""
    if sql_type.base == "bpchar" and sql_type.size is None:
        hint = "Cast it to text, each part of it: coalesce(x::text, 'none')."
        raise NotSupported("character without one length is not supported here over protected rows", hint=hint)


def padded(expression: Expression) -> Expression:
    """Pad a character(n) as LIKE, ~, concat and octet_length see it: with the spaces that make it n letters long."""
    if expression.type.base != "bpchar" or isinstance(expression, Constant):
        return expression
    check_blanks(expression.type)
    size, image = expression.type.size or 0, expression.domain
    if isinstance(image, Values):
        image = domain.values(item.ljust(size) for item in image.items if isinstance(item, str))
    return Apply("padded", f"rpad({{0}}, {size})", (expression,), TEXT, image, expression.nullable)


def as_value(expression: Expression, setting: EvalContext) -> Expression:
    """An operand of a computation."""
    if not isinstance(expression, Column):
        return _double(_finite_moment(expression))
    match expression.type.kind:
        case "integer" | "numeric" | "float":
            return _number(expression)
        case "date" | "timestamp" | "timestamptz":
            return _moment(expression)
        case "text":
            return short(as_passed(expression, setting))
        case _:
            return as_passed(expression, setting)


def read(call: Apply) -> Expression:
    """Guard what is read out of an array: like a column's, its numbers may be NaN or infinite, its moments too far."""
    if call.type.is_time:
        return within(call, *year_limits(call.type))
    return _double(finite(call)) if call.type.is_number else call


def _finite_moment(expression: Expression) -> Expression:
    """infinity is a date to compare with; what is computed with it fails, or is infinite too."""
    if isinstance(expression, Constant) and is_infinite(expression):
        raise NotSupported(f"{expression.type.sql} '{expression.text}' can only be used in comparisons")
    return expression


def is_infinite(constant: Constant) -> bool:
    """Return whether a moment is earlier or later than all others."""
    return constant.type.is_time and constant.text is not None and constant.value is None


def as_passed(expression: Expression, setting: EvalContext) -> Expression:
    """An operand that is handed on unchanged, as by CASE and COALESCE."""
    if not isinstance(expression, Column):
        return _finite_moment(expression)
    if expression.type.is_number or expression.type.is_time:
        return as_value(expression, setting)
    declared = expression.declared
    if not setting.as_key or not isinstance(declared, Values) or domain.is_within(expression.domain, declared):
        return expression
    return _listed(expression, declared)


def constant(number: Fraction, sql_type: Type) -> Constant:
    """A number, date or timestamp as a constant. A float is its nearest double, for real too."""
    if sql_type.kind == "float":
        sql_type, number = FLOAT8, Fraction(float(number))
    if sql_type.kind == "integer" and not _is_integer(number, sql_type):
        sql_type = NUMERIC
    text = _power_of_ten(number) if sql_type.kind == "numeric" else value.text_of(number, sql_type.plain(), "UTC")
    if text is None:
        raise NotSupported(
            f"values of type {sql_type.sql} could be out of the supported range",
            hint="Limit them first, as in least(greatest(x, 0), 100).",
        )
    return Constant(sql_type.plain(), text, number)


def _power_of_ten(number: Fraction) -> str | None:
    """The text of a numeric: 1e300 for what has three hundred zeros."""
    text = value.decimal_text(number)
    if text is None or len(text) <= _LONG_POWER or text.removeprefix("-").rstrip("0") != "1":
        return text
    return f"{text[: text.index('1')]}1e{text.count('0')}"


def _is_integer(number: Fraction, sql_type: Type) -> bool:
    first, last = integer_range(sql_type.base)
    return number.denominator == 1 and first <= number <= last


def clamp(expression: Expression, bounds: Range) -> Expression:
    """least(greatest(x, low), high), with NULL and NaN as NULL: PostgreSQL's own would make bounds of them."""
    (first, last), kind = _bounds(bounds, expression.type)
    low, high = _bound(first, kind), _bound(last, kind)
    seen = "{0} <> 'NaN'" if expression.type.kind in ("numeric", "float") else "{0} IS NOT NULL"
    sql = f"CASE WHEN {seen} THEN least(greatest({{0}}, {{1}}), {{2}}) END"
    image = domain.clamped(expression.domain, first, last)
    nullable = expression.nullable or expression.type.kind in ("numeric", "float")
    sure = clamped(expression.sure, first, last)
    digits = None if sure.digits is None else max(sure.digits, low.sure.digits or 0, high.sure.digits or 0)
    return Apply("clamp", sql, (expression, low, high), kind, image, nullable, Sure(sure.low, sure.high, digits))


def _bounds(bounds: Range, sql_type: Type) -> tuple[tuple[Fraction, Fraction], Type]:
    """Of a type with fixed digits the first and last of its values that lie between, so that the clamp has its type.

    Where there are none the bounds stay as they are, and the type is what PostgreSQL makes of both.
    """
    low, high = bounds.low, bounds.high
    assert low is not None and high is not None
    if sql_type.size is None:
        return (low, high), sql_type
    is_number = sql_type.kind == "numeric"
    step = Fraction(10) ** (-(sql_type.scale or 0) if is_number else max(6 - sql_type.size, 0))  # or of microseconds
    first, last = ceil(low / step) * step, floor(high / step) * step
    if is_number:
        largest = step * (10**sql_type.size - 1)
        first, last = max(first, -largest), min(last, largest)
    return ((first, last), sql_type) if first <= last else ((low, high), sql_type.plain())


def _bound(limit: Fraction, sql_type: Type) -> Constant:
    """A bound with as many digits as the values between them have, so that equal ones are written alike."""
    is_exact = sql_type.kind == "numeric" and sql_type.scale is not None
    text = value.decimal_text(limit, sql_type.scale) if is_exact else None
    return constant(limit, sql_type) if text is None else Constant(NUMERIC, text, limit)


def within(expression: Expression, low: Fraction, high: Fraction) -> Expression:
    """The value where it lies between, else NULL; NaN and infinities never do."""
    first, last = constant(low, expression.type), constant(high, expression.type)
    sql = "CASE WHEN {0} BETWEEN {1} AND {2} THEN {0} END"
    return _within(expression, sql, (first, last), Range(low, high))


def _within(expression: Expression, sql: str, bounds: tuple[Constant, Constant], limits: Range) -> Apply:
    """Tell by the domain whether something is left out: that costs a group of NULLs, or lacks one, and no more."""
    may_be_nan = expression.type.kind == "float" or (
        expression.type.kind == "numeric" and isinstance(expression, Column)
    )
    fits = not may_be_nan and domain.is_within(domain.range_of(expression.domain), limits)
    image = domain.intersect(expression.domain, limits)
    held = between(expression.sure, limits.low, limits.high)
    return Apply(
        "within", sql, (expression, *bounds), expression.type, image, expression.nullable or not fits, held, passes=True
    )


@lru_cache(maxsize=512)
def _number(column: Column) -> Expression:
    declared = domain.range_of(column.declared)
    if declared.is_bounded and not domain.is_within(column.domain, column.declared):
        return _double(clamp(column, declared))
    if column.type.kind == "integer":
        return column
    limit = LARGEST_NUMERIC if column.type.kind == "numeric" else LARGEST_FLOAT
    if not column.sure.is_within(-limit, limit):
        return _double(within(column, -limit, limit))
    sql = "CASE WHEN {0} <> 'NaN' THEN {0} END"
    return Apply("seen", sql, (column,), column.type, column.domain, nullable=True, held=column.sure, passes=True)


def _double(expression: Expression) -> Expression:
    """real is computed with as double precision, which holds all of its values."""
    if expression.type.base != "float4" or (isinstance(expression, Apply) and expression.name == "double"):
        return expression
    sql = "({0})::double precision"
    return Apply("double", sql, (expression,), expression.type, expression.domain, expression.nullable, expression.sure)


def _moment(column: Column) -> Expression:
    declared = domain.range_of(column.declared)
    first, last = year_limits(column.type)
    if not declared.is_bounded or domain.is_within(domain.range_of(column.domain), declared):
        return within(column, first, last)
    if column.type.kind == "timestamptz" and not domain.is_within(declared, Range(first, last)):
        seen, narrowed = within(column, first, last), domain.intersect(declared, Range(first, last))
        return clamp(seen, narrowed) if isinstance(narrowed, Range) and narrowed.is_bounded else seen
    made, day = clamp(column, declared), 1 if column.type.kind == "date" else DAY
    return made if made.sure.is_within(first - day, last + day) else within(made, first, last)


def year_limits(sql_type: Type) -> tuple[Fraction, Fraction]:
    """Years 1 to 9999, a day from either end so that no time zone leads out of them."""
    if sql_type.kind == "date":
        return Fraction(FIRST_DAY + 1), Fraction(LAST_DAY - 1)
    return Fraction((FIRST_DAY + 1) * DAY), Fraction((LAST_DAY - 1) * DAY)


def _short(column: Column) -> Expression:
    if column.type.base == "name" or (column.type.size is not None and column.type.size <= LONGEST_TEXT // 4):
        return column
    sql = f"CASE WHEN octet_length({{0}}) <= {LONGEST_TEXT} THEN {{0}} END"
    listed = column.domain.items if isinstance(column.domain, Values) else (None,)
    is_long = any(not isinstance(value, str) or len(value.encode()) > LONGEST_TEXT for value in listed)
    nullable = column.nullable or is_long
    return Apply("short", sql, (column,), column.type, column.domain, nullable, passes=True, is_short=True)


def short(expression: Expression) -> Expression:
    """A text that is not too long for any function: what CASE, COALESCE and || make of long ones is cut."""
    if isinstance(expression, Column):
        return _short(expression)
    if isinstance(expression, Constant) or expression.is_short:
        return expression
    sql = f'"left"({{0}}, {LONGEST_TEXT})'
    return Apply(
        "left", sql, (expression,), expression.type.plain(), expression.domain, expression.nullable, is_short=True
    )


def _listed(column: Column, declared: Values) -> Expression:
    items = tuple(Constant(column.type.plain(), value.text_of(item, column.type), item) for item in declared.items)
    holes = ", ".join(f"{{{place}}}" for place in range(1, len(items) + 1))
    test = f"{{0}} IN ({holes})" if items else "FALSE"  # none is left of a list whose values a condition excludes
    sql = f"CASE WHEN {test} THEN {{0}} END"
    kind = column.type
    return Apply(
        "listed", sql, (column, *items), kind, declared, nullable=True, strict=False, passes=True, is_short=True
    )


def as_double(expression: Expression) -> Expression:
    """A number where PostgreSQL converts to double precision: a numeric too large or too near zero would fail there."""
    if expression.type.kind != "numeric":
        return expression
    if isinstance(expression, Constant):
        number = expression.value
        if not isinstance(number, Fraction):
            return Constant(FLOAT8, None)
        if number and not 1 <= abs(number) * LARGEST_NUMERIC <= LARGEST_NUMERIC**2:
            raise NotSupported(f"the number {(expression.text or '')[:40]} is out of the range of double precision")
        return constant(number, FLOAT8)
    if isinstance(expression, Column) and _is_double_sized(expression.type):
        return to_double(expression, "double")
    sql = "({0})::double precision"
    small = finite(as_value(expression, EvalContext()))
    known = domain.range_of(small.domain)
    image = Range(known.low, known.high)
    if small.sure.digits is None or small.sure.digits > _DOUBLE_DIGITS:
        sql = "round({0}, 200)::double precision"
    return Apply("double", sql, (small,), FLOAT8, image, small.nullable, small.sure)


def to_double(number: Expression, name: str) -> Apply:
    """A number that no double is too small for."""
    sql = "({0})::double precision"
    return Apply(name, sql, (number,), FLOAT8, number.domain, number.nullable, number.sure)


def _is_double_sized(sql_type: Type) -> bool:
    """Return whether no value of numeric(p, s) is too large or too near zero, as some of numeric(400, 0) are."""
    if sql_type.size is None or sql_type.scale is None:
        return False
    return sql_type.size - sql_type.scale <= _DOUBLE_DIGITS and sql_type.scale <= _DOUBLE_DIGITS


def safe_factor(expression: Expression) -> Expression:
    """A double that may be multiplied and divided: tiny ones are 0, for PostgreSQL reports underflow as an error.

    Whole numbers are neither tiny nor too large, and the least bigint has no abs().
    """
    if expression.type.kind == "integer":
        return to_double(expression, "double")
    limit = LARGEST_FLOAT
    if (
        isinstance(expression, Constant)
        and expression.sure.is_within(-limit, limit)
        and not expression.sure.is_within(-ONE, ONE)
    ):
        return expression
    sql = "CASE WHEN abs({0}) <= 1e150 THEN CASE WHEN abs({0}) >= 1e-150 THEN {0} ELSE 0 END END"
    if expression.sure.is_within(-limit, limit):
        sql = "CASE WHEN abs({0}) < 1e-150 THEN 0 ELSE {0} END"
    image = domain.intersect(expression.domain, Range(-limit, limit))
    return Apply("safe factor", sql, (expression,), FLOAT8, image, held=Sure(-limit, limit))


def finite(expression: Expression) -> Expression:
    """A number small enough that the next operation cannot leave its type's range.

    What is computed is written once, for sums of sums would grow with every guard: a limit stands for all beyond it,
    NaN and NULL too, and is NULL in turn.
    """
    limit = LARGEST_FLOAT if expression.type.kind == "float" else LARGEST_NUMERIC
    if expression.type.kind == "integer" or expression.sure.is_within(-limit, limit):
        return expression
    bounds = constant(-limit, expression.type), constant(limit, expression.type)
    sql = "nullif(nullif(least(greatest({0}, {1}), {2}), {1}), {2})"
    return _within(expression, sql, bounds, Range(-limit, limit))


def few_digits(expression: Expression) -> Expression:
    """A numeric that may be multiplied: its product has no more digits than PostgreSQL stores."""
    digits = expression.sure.digits
    if expression.type.kind != "numeric" or (digits is not None and digits <= _MULTIPLIED_DIGITS):
        return expression
    sql = f"CASE WHEN scale({{0}}) > {MOST_DIGITS} THEN round({{0}}, {MOST_DIGITS}) ELSE {{0}} END"
    image = interval_arithmetic.rounded(domain.range_of(expression.domain), Fraction(1, 10**MOST_DIGITS))
    held = Sure(expression.sure.low, expression.sure.high, MOST_DIGITS)
    return Apply(
        "few digits", sql, (expression,), expression.type, Range(image.low, image.high), expression.nullable, held
    )
