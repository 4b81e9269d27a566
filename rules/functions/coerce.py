"""Literals and parameters become typed constants; operands that meet become comparable.

Python reads what means the same in every session. Dates, times and intervals have many more spellings, whose meaning
depends on the session's styles and clock ('1/2/2023', 'today'): these are read by PostgreSQL itself, on the twin.
"""

import re
from fractions import Fraction

from rules.frozen import replace
from rules.functions.function import EvalContext, Needed, UnreadLiterals
from rules.functions.guard import MOST_DIGITS
from rules.functions.text.text_casts import shown_digits
from rules.refusal import NotSupported
from rules.values import domain, value
from rules.values.expression import Apply, Constant, Expression, Literal, Operand, has_column, null_of
from rules.values.types import INT4, INT8, INTERVAL, NUMERIC, TEXT, Type, find_common, integer_range
from rules.values.value import Span

_EXAMPLES = {
    "date": "'2024-01-31'",
    "timestamp": "'2024-01-31 13:45:00'",
    "timestamptz": "'2024-01-31 13:45:00+01'",
    "interval": "'1 month 2 days 03:00:00'",
    "boolean": "true",
    "time": "'13:45:00'",
    "uuid": "'00000000-0000-0000-0000-000000000000'",
}
_UNITS: dict[str, Span] = {
    "year": Span(months=12),
    "month": Span(months=1),
    "mon": Span(months=1),
    "week": Span(days=7),
    "day": Span(days=1),
    "hour": Span(microseconds=3_600_000_000),
    "minute": Span(microseconds=60_000_000),
    "min": Span(microseconds=60_000_000),
    "second": Span(microseconds=1_000_000),
    "sec": Span(microseconds=1_000_000),
    "millisecond": Span(microseconds=1_000),
    "microsecond": Span(microseconds=1),
}
_PART = re.compile(r"([+-]?\d+(?:\.\d+)?)\s*([a-z]+)|([+-]?)(\d{1,3}):(\d{2})(?::(\d{2}(?:\.\d{1,6})?))?")


_LONGEST_EXPONENT, _MOST_DIGITS = 6, 4_000  # of a number that is computed with: beyond, Python takes long


def number(text: str) -> Constant:
    """A bare number of the text, typed as PostgreSQL types it."""
    digits, _, exponent = text.lower().partition("e")
    if len(exponent) > _LONGEST_EXPONENT or len(digits) + abs(int(exponent or 0)) > _MOST_DIGITS:
        raise _out_of_range(text)
    if text.removeprefix("-").isdigit():
        whole = int(text)
        for sql_type in (INT4, INT8):
            first, last = integer_range(sql_type.base)
            if first <= whole <= last:
                return Constant(sql_type, str(whole), Fraction(whole))
    number = Fraction(text)
    shown = value.decimal_text(number, _digits_of(text))
    if shown is None or abs(number) > Fraction(10) ** 300:
        raise _out_of_range(text)
    return Constant(NUMERIC, text if "e" not in text.lower() else shown, number)


def _digits_of(text: str) -> int:
    """How many digits PostgreSQL keeps behind the point of a number that is written like this, zeros too, or enough."""
    digits, _, exponent = text.strip().lower().partition("e")
    return min(max(len(digits.partition(".")[2]) - int(exponent or 0), 0), MOST_DIGITS)


def _out_of_range(text: str) -> NotSupported:
    return NotSupported(f"the number {text[:40]} is out of the supported range")


def literal(text: str | None, sql_type: Type, setting: EvalContext) -> Constant:
    """A string literal or a parameter's text, read as a value of this type."""
    if text is None:
        return null_of(sql_type.plain())
    if sql_type.kind == "interval":
        return _interval(text, setting)
    if sql_type.kind == "text":
        plain = _checked(text.rstrip(" ") if sql_type.base == "bpchar" else text)
        return Constant(TEXT, plain, plain)
    if sql_type.is_time:
        return _moment(text, sql_type, setting)
    zone = setting.literals.time_zone
    found_value = value.find_value(text, sql_type, zone)
    kind = sql_type.plain()
    if kind.kind == "numeric" and found_value is not None:
        kind = replace(kind, scale=_digits_of(text) if sql_type.scale is None else sql_type.scale)
    shown = None if found_value is None else value.text_of(found_value, kind, zone)
    if found_value is None or shown is None:
        raise unreadable(text, sql_type)
    return Constant(sql_type if sql_type.kind == "enum" else sql_type.plain(), shown, found_value)


def literals(texts: tuple[str | None, ...], sql_type: Type, setting: EvalContext) -> tuple[Constant, ...]:
    """Several texts of one type; what PostgreSQL must read of them is asked for at once."""
    constants, unread = list[Constant](), list[str]()
    for text in texts:
        try:
            constants.append(literal(text, sql_type, setting))
        except Needed as needed:
            assert isinstance(needed.what, UnreadLiterals), "a literal needs nothing else"
            unread += needed.what.texts
    if unread:
        raise Needed(UnreadLiterals(tuple(unread), sql_type))
    return tuple(constants)


def _moment(text: str, sql_type: Type, setting: EvalContext) -> Constant:
    """A date or timestamp; of what is later or earlier than all others no more is known than that."""
    is_rounded, zone = sql_type.size is not None and "." in text, setting.literals.time_zone
    instant = None if is_rounded else value.find_value(text, sql_type, zone)
    if instant is None:
        text = _read(text, sql_type, setting)
        if text in ("infinity", "-infinity"):
            return Constant(sql_type.plain(), text)
        instant = value.find_value(text, sql_type, zone)
    zones = (zone, "UTC")  # long ago clocks were apart by seconds too, which is not told
    texts = () if instant is None else (value.text_of(instant, sql_type.plain(), zone) for zone in zones)
    shown = next((part for part in texts if part is not None), None)
    if shown is None:
        raise NotSupported(f"{sql_type.sql} '{text[:60]}' is outside the supported years 1 to 9999")
    return Constant(sql_type.plain(), shown, instant)


def _interval(text: str, setting: EvalContext) -> Constant:
    """In the SQL standard's style one sign may stand for all that follows."""
    is_plain = setting.literals.interval_style != "sql_standard" or "-" not in text
    span = find_span(text) if is_plain else None
    if span is None:
        text = _read(text, INTERVAL, setting)
        span = find_span(text)
    if span is None:
        raise unreadable(text, INTERVAL)
    if max(abs(span.months), abs(span.days), abs(span.microseconds) // value.DAY) > 4_000_000:
        raise NotSupported(f"the interval '{text[:60]}' is longer than the supported 9999 years")
    return Constant(INTERVAL, str(span), span)


def _read(text: str, sql_type: Type, setting: EvalContext) -> str:
    """Return what PostgreSQL has read; demand that before it was asked."""
    for reading in setting.readings:
        if (reading.type, reading.literal) == (sql_type.sql, text):
            if reading.text is None:
                raise unreadable(text, sql_type)
            return reading.text
    raise Needed(UnreadLiterals((text,), sql_type))


def unreadable(text: str, sql_type: Type) -> NotSupported:
    example = _EXAMPLES.get(sql_type.kind)
    hint = f"Write it as {example}." if example else ""
    if sql_type.is_number and text.strip().lower().lstrip("+-") in ("nan", "inf", "infinity"):
        hint = "Choose the finite numbers by a comparison instead: x < 1e9 leaves out NaN and infinity."
    return NotSupported(f"'{text[:60]}' is not a supported literal of type {sql_type.sql}", hint=hint)


def find_span(text: str) -> Span | None:
    """An interval in PostgreSQL's own style, '1 year 2 days 03:00:00'; None of other spellings."""
    months, days, microseconds, rest = 0, 0, 0, text.strip().lower()
    backwards = rest.endswith(" ago")
    for match in _PART.finditer(rest.removesuffix(" ago")):
        part = _one_part(match)
        if part is None:
            return None
        months, days = months + part.months, days + part.days
        microseconds += part.microseconds
    if not rest or _PART.sub("", rest.removesuffix(" ago")).strip():
        return None
    total = Span(months, days, microseconds)
    return total.negated() if backwards else total


def _one_part(match: re.Match[str]) -> Span | None:
    if match[2] is None:
        seconds = Fraction(match[6] or 0) + int(match[4]) * 3600 + int(match[5]) * 60
        return Span(microseconds=int(seconds * 1_000_000) * (-1 if match[3] == "-" else 1))
    unit = _UNITS.get(match[2]) or _UNITS.get(match[2].removesuffix("s"))
    amount = Fraction(match[1])
    if unit is None or (amount.denominator != 1 and not unit.microseconds):
        return None
    return Span(
        int(amount * unit.months), int(amount * unit.days), int(amount * unit.microseconds)
    )  # fmt: skip


def _checked(text: str) -> str:
    if "\x00" in text:
        raise NotSupported("a text value cannot contain the character with code 0")
    return text


def typed(operand: Operand, setting: EvalContext, sql_type: Type = TEXT) -> Expression:
    """An operand that is no open literal any more. Beside a numeric(6,2) '0.005' is not rounded, without a cast."""
    return literal(operand.text, sql_type.plain(), setting) if isinstance(operand, Literal) else operand


def unified(operands: tuple[Operand, ...], setting: EvalContext, what: str) -> tuple[tuple[Expression, ...], Type]:
    """Operands that meet in one place (a comparison, CASE, COALESCE …), and their common type."""
    known = [operand.type for operand in operands if not isinstance(operand, Literal) and not is_open(operand)]
    common = find_common(known)
    if common is None or common.kind in ("other", "unknown"):
        types = " and ".join(dict.fromkeys(sql_type.sql for sql_type in known))
        is_json = any(sql_type.sql in ("json", "jsonb") for sql_type in known)
        hint = "Compare a text of the document: document->>'key' = 'value'." if is_json else ""
        raise NotSupported(f"{what} of {types} is not supported over protected rows", hint=hint)
    bare = next((sql_type for sql_type in known if sql_type.kind == common.kind), common)
    return tuple(typed(null_of(common) if is_open(operand) else operand, setting, bare) for operand in operands), common


def is_open(operand: Operand) -> bool:
    """NULL without a cast takes the type of what it meets."""
    return isinstance(operand, Constant) and operand.type.kind == "unknown"


def folded(operand: Operand, setting: EvalContext) -> Operand:
    """date_trunc('month', timestamp '2025-01-15') as timestamp '2025-01-01'; what reads a column as it is."""
    if (
        not isinstance(operand, Apply)
        or operand.nullable
        or operand.type.kind in ("float", "other")
        or has_column(operand)
    ):
        return operand
    items, kind = domain.items_of(operand.domain, 1), operand.type
    if kind.kind == "numeric" and kind.scale is None:
        kind = replace(kind, scale=shown_digits(operand))
    shown = value.text_of(items[0], kind, setting.time_zone) if items else None
    return operand if not items or shown is None else Constant(operand.type, shown, items[0])
