"""to_char of a moment: which texts a constant pattern can make of moments that have bounds."""

import re
from calendar import month_abbr, month_name
from collections.abc import Callable
from datetime import datetime
from fractions import Fraction

from rules.refusal import NotSupported
from rules.relation import domain, value
from rules.relation.domain import ANYTHING, Domain
from rules.relation.expression import Apply, Constant, Expression, Operand
from rules.relation.functions.cast import cast_to
from rules.relation.functions.coerce import typed
from rules.relation.functions.guard import Setting
from rules.relation.functions.time import moment, truncated
from rules.relation.types import TEXT, TIMESTAMP

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


def to_char(operands: tuple[Operand, ...], setting: Setting) -> Expression:
    """to_char(moment, 'pattern') with a constant pattern."""
    given = moment(operands[0], setting)
    pattern = typed(operands[1], setting, TEXT)
    if not isinstance(pattern, Constant) or pattern.text is None or len(pattern.text) > 100:
        raise NotSupported("to_char needs a constant pattern of at most 100 characters")
    if given.type.kind == "date":
        given = cast_to(given, TIMESTAMP, setting)
    image, nullable = _texts(given, pattern.text, setting), given.nullable or not pattern.text
    return Apply("to_char", "to_char({0}, {1})", (given, pattern), TEXT, image, nullable)


def _texts(given: Expression, pattern: str, setting: Setting) -> Domain:
    """The text of every month, day, hour or minute that the moment's bounds reach."""
    read = _read(pattern)
    if read is None:
        return ANYTHING
    field, text = read
    zone = setting.time_zone if given.type.kind == "timestamptz" else None
    starts = truncated(given.domain, field, zone)
    items = starts.items if isinstance(starts, domain.Values) else None
    if items is None:
        return ANYTHING
    local = [_local(item, zone) for item in items if isinstance(item, Fraction)]
    return domain.values(text(value.moment_at(each)) for each in local if each is not None)


def _local(instant: Fraction, zone: str | None) -> int | None:
    return int(instant) if zone is None else value.to_local(int(instant), zone)


def _read(pattern: str) -> tuple[str, Callable[[datetime], str]] | None:
    """How fine a pattern is, and what it makes of a moment; None for one with parts that are not followed."""
    found, at = list[re.Match[str]](), 0
    while at < len(pattern):
        part = _PART.match(pattern, at)
        if part is None:
            return None
        found.append(part)
        at = part.end()
    finest = max((_FINER.index(_PARTS[each["part"]][0]) for each in found if each["part"]), default=0)
    return _FINER[finest], lambda moment_: "".join(_shown(each, moment_) for each in found)


def _shown(part: re.Match[str], at: datetime) -> str:
    if part["part"]:
        return _PARTS[part["part"]][1](at)
    return part["quoted"] if part["quoted"] is not None else part["plain"]
