"""Moments as texts and texts as moments: what a constant pattern makes of moments with bounds, and what it reads."""

import re
from calendar import month_abbr, month_name
from collections.abc import Callable
from datetime import datetime
from fractions import Fraction

from rules.functions.casts import cast_to
from rules.functions.coerce import literal, typed, unreadable
from rules.functions.datetime.moments import moment
from rules.functions.datetime.truncation import truncated
from rules.functions.function import EvalContext, Operands, function
from rules.refusal import NotSupported
from rules.values import domain, value
from rules.values.domain import ANYTHING, Domain
from rules.values.expression import Apply, Constant, Expression, Literal, Operand
from rules.values.types import DATE, TEXT, TIMESTAMP, TIMESTAMPTZ, Type
from rules.values.value import find_value

_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
# pattern -> how fine it is, and its text; longer patterns are looked for first
_PARTS: dict[str, tuple[str, Callable[[datetime], str]]] = {
    "YYYY": ("month", lambda at: f"{at.year:04}"),
    "YY": ("month", lambda at: f"{at.year % 100:02}"),
    "Q": ("month", lambda at: f"{(at.month + 2) // 3}"),
    "MM": ("month", lambda at: f"{at.month:02}"),
    "FMMM": ("month", lambda at: f"{at.month}"),
    "Mon": ("month", lambda at: month_abbr[at.month]),
    "Month": ("month", lambda at: f"{month_name[at.month]:9}"),
    "FMMonth": ("month", lambda at: month_name[at.month]),
    "IYYY": ("day", lambda at: f"{at.isocalendar().year:04}"),
    "IW": ("day", lambda at: f"{at.isocalendar().week:02}"),
    "DDD": ("day", lambda at: f"{at.timetuple().tm_yday:03}"),
    "DD": ("day", lambda at: f"{at.day:02}"),
    "FMDD": ("day", lambda at: f"{at.day}"),
    "ID": ("day", lambda at: f"{at.isoweekday()}"),
    "D": ("day", lambda at: f"{at.isoweekday() % 7 + 1}"),
    "Dy": ("day", lambda at: _DAYS[at.weekday()][:3]),
    "Day": ("day", lambda at: f"{_DAYS[at.weekday()]:9}"),
    "FMDay": ("day", lambda at: _DAYS[at.weekday()]),
    "HH24": ("hour", lambda at: f"{at.hour:02}"),
    "MI": ("minute", lambda at: f"{at.minute:02}"),
}
_FINER = ("month", "day", "hour", "minute")
_WORDS = "|".join(sorted(_PARTS, key=len, reverse=True))
_PART = re.compile(rf'(?!IDDD)(?P<part>{_WORDS})|"(?P<quoted>[^"\\]*)"|(?P<plain>[^A-Za-z0-9"\\])')
_FIELD = re.compile(r'YYYY|MM|DD|HH24|MI|SS|MS|US|"[^"\\]*"|[^A-Za-z0-9"\\]', re.IGNORECASE)
_DIGITS = {"YYYY": 4, "MM": 2, "DD": 2, "HH24": 2, "MI": 2, "SS": 2, "MS": 3, "US": 6}
_EXAMPLE = "to_timestamp('2025-01-31 13:45:00', 'YYYY-MM-DD HH24:MI:SS')"


@function(
    "to_char",
    arguments=2,
    examples="""
    to_char(ts, 'YYYY-MM-DD HH24:MI:SS.US') | to_char(tz, 'IYYY-IW')
    to_char(d, 'FMDay, DDth FMMonth Y,YYY BC') | to_char(tz, 'TMDay TZ OF') | to_char(d, 'J Q RM CC "text"')
    """,
)
def to_char(operands: Operands, setting: EvalContext) -> Expression:
    """to_char(moment, 'pattern') with a constant pattern."""
    written = typed(operands[0], setting, TIMESTAMPTZ)
    if written.type.is_number:
        hint = "Apply it to an aggregate, as in to_char(sum(x), '9G999'), or cast the number to text."
        raise NotSupported("to_char of a number is not supported over protected rows", hint=hint)
    argument = moment(written, setting)
    pattern = typed(operands[1], setting, TEXT)
    if not isinstance(pattern, Constant) or pattern.text is None or len(pattern.text) > 100:
        raise NotSupported("to_char needs a constant pattern of at most 100 characters")
    if argument.type.kind == "date":
        argument = cast_to(argument, TIMESTAMP, setting)
    image, nullable = _texts(argument, pattern.text, setting), argument.nullable or not pattern.text
    return Apply("to_char", "to_char({0}, {1})", (argument, pattern), TEXT, image, nullable)


def _texts(expression: Expression, pattern: str, setting: EvalContext) -> Domain:
    """The text of every month, day, hour or minute that the moment's bounds reach."""
    read = _read(pattern)
    if read is None:
        return ANYTHING
    field, text = read
    zone = setting.time_zone if expression.type.kind == "timestamptz" else None
    starts = truncated(expression.domain, field, zone)
    items = starts.items if isinstance(starts, domain.Values) else None
    if isinstance(expression.domain, domain.Values):  # of quarters no other days
        items = expression.domain.items
    if items is None:
        return ANYTHING
    local = [
        int(item) if zone is None else value.to_local(int(item), zone) for item in items if isinstance(item, Fraction)
    ]
    return domain.values(text(value.moment_at(instant)) for instant in local if instant is not None)


def _read(pattern: str) -> tuple[str, Callable[[datetime], str]] | None:
    """Return how fine a pattern is, and what it makes of a moment; None for one with parts that are not followed."""
    matches, at = list[re.Match[str]](), 0
    while at < len(pattern):
        part = _PART.match(pattern, at)
        if part is None:
            return None
        matches.append(part)
        at = part.end()
    finest = max((_FINER.index(_PARTS[match["part"]][0]) for match in matches if match["part"]), default=0)
    return _FINER[finest], lambda moment_: "".join(_shown(match, moment_) for match in matches)


def _shown(part: re.Match[str], at: datetime) -> str:
    if part["part"]:
        return _PARTS[part["part"]][1](at)
    return part["quoted"] if part["quoted"] is not None else part["plain"]


def moment_by_format(operands: Operands, setting: EvalContext) -> Expression:
    """to_timestamp(text, format): a moment of the session's time zone."""
    fields = _fields(operands)
    clock = f"{fields.get('HH24', '00')}:{fields.get('MI', '00')}:{fields.get('SS', '00')}"
    fraction = fields.get("US") or fields.get("MS") or "0"
    return _known(f"{_day(fields)} {clock}.{fraction}", TIMESTAMPTZ, setting)


@function("to_date", arguments=2, examples="to_date('20240229', 'YYYYMMDD')")
def to_date(operands: Operands, setting: EvalContext) -> Expression:
    """to_date(text, format)."""
    return _known(_day(_fields(operands)), DATE, setting)


def _known(text: str, sql_type: Type, setting: EvalContext) -> Constant:
    if find_value(text, sql_type, setting.time_zone) is None:
        raise unreadable(text, sql_type)
    return literal(text, sql_type, setting.of_execution())


def _day(fields: dict[str, str]) -> str:
    return f"{fields['YYYY']}-{fields.get('MM', '01')}-{fields.get('DD', '01')}"


def _fields(operands: tuple[Operand, ...]) -> dict[str, str]:
    """The digits of each field. PostgreSQL forgives much where text and format differ; here they have to agree."""
    constant, pattern = map(_constant, operands)
    parts = _FIELD.findall(pattern)
    names = [part.upper() for part in parts if part.upper() in _DIGITS]
    if "".join(parts) != pattern or "YYYY" not in names or len(set(names)) < len(names):
        raise NotSupported(
            f"the format '{pattern[:60]}' is not supported over protected rows", hint=f"Write it as {_EXAMPLE}."
        )
    read = re.fullmatch("".join(map(_read_part, parts)), constant)
    if read is None:
        shown = f"'{constant[:60]}' does not match the format '{pattern[:60]}'"
        raise NotSupported(shown, hint=f"Write it as {_EXAMPLE}.")
    return dict(zip(names, read.groups(), strict=True))


def _read_part(part: str) -> str:
    digits = _DIGITS.get(part.upper())
    return re.escape(part.strip('"')) if digits is None else f"([0-9]{{{digits}}})"


def _constant(operand: Operand) -> str:
    text = operand.text if isinstance(operand, Literal | Constant) else None
    if text is None:
        hint = f"Cast a column of ISO dates, as in x::date, or write a constant: {_EXAMPLE}."
        raise NotSupported("parsing by a format over protected rows needs constant arguments", hint=hint)
    return text
