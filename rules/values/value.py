"""Single values of the types that the planner computes with, and their canonical text.

Numbers are Fractions; a date is days and a timestamp microseconds since 1970-01-01 (with time zone: in UTC), so that
bounds of all of them are compared and moved by the same arithmetic.
"""

import re
from calendar import monthrange
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from struct import pack, unpack
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from rules.frozen import frozen
from rules.values.time_zones import note_use
from rules.values.types import Type, integer_range

Value = Fraction | str | bool

DAY = 86_400_000_000  # microseconds
_EPOCH = datetime(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)
_LONGEST_NUMBER = 4_000  # beyond, Python takes long, or refuses
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?")
_TIMESTAMP = re.compile(
    r"(\d{4}-\d{1,2}-\d{1,2})(?:[ T](\d{1,2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?))?\s*(Z|[+-]\d{2}(?::?\d{2})?)?"
)
_LARGEST_REAL = 34 * Fraction(10) ** 37
FIRST_DAY, LAST_DAY = -719_162, 2_932_896  # 0001-01-01 and 9999-12-31


@frozen
class Span:
    """A constant interval."""

    months: int = 0
    days: int = 0
    microseconds: int = 0

    def negated(self) -> "Span":
        return Span(-self.months, -self.days, -self.microseconds)

    @property
    def length(self) -> Fraction:
        """Microseconds as extract(epoch) counts them: 365.25 days a year, 30 days each month beyond."""
        years = abs(self.months) // 12 * (1 if self.months > 0 else -1)
        days = years * Fraction(1461, 4) + (self.months - 12 * years) * 30 + self.days
        return days * DAY + self.microseconds

    def __str__(self) -> str:
        """As every server reads it: before PostgreSQL 15 a field above 2^31, as of microseconds, was an error."""
        seconds, microseconds = divmod(abs(self.microseconds), 1_000_000)
        clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{microseconds:06}"
        return f"{self.months} months {self.days} days {'-' if self.microseconds < 0 else ''}{clock}"


def find_value(text: str, sql_type: Type, time_zone: str = "UTC") -> Value | None:
    """Return what a literal of this type means, or None when it is not one that we read."""
    match sql_type.kind:
        case "integer" | "numeric" | "float":
            return _number(text, sql_type)
        case "boolean":
            return _BOOLEANS.get(text.strip().lower())
        case "date" | "timestamp" | "timestamptz":
            return _moment(text, sql_type, time_zone)
        case "text":
            return text
        case "enum":
            return text if text in sql_type.labels else None
        case "time":
            return _time_of_day(text.strip())
        case "uuid":
            return text.strip().lower() if _UUID.fullmatch(text.strip()) else None
        case _:
            return None


_TIME_OF_DAY = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])(?::([0-5][0-9])(?:\.([0-9]{1,6}))?)?")


def _time_of_day(text: str) -> str | None:
    """In the one spelling that PostgreSQL prints; of two times the later one has the larger text."""
    match = _TIME_OF_DAY.fullmatch(text)
    if match is None:
        return "24:00:00" if text in ("24:00", "24:00:00") else None
    fraction = (match[4] or "").rstrip("0")
    return f"{match[1]}:{match[2]}:{match[3] or '00'}{f'.{fraction}' if fraction else ''}"


_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_BOOLEANS = {
    **dict.fromkeys(("t", "tr", "tru", "true", "y", "ye", "yes", "on", "1"), True),
    **dict.fromkeys(("f", "fa", "fal", "fals", "false", "n", "no", "of", "off", "0"), False),
}


def text_of(value: Value, sql_type: Type, time_zone: str = "UTC") -> str | None:
    """The value as PostgreSQL prints it in ISO style, or None when Python cannot tell."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    match sql_type.kind:
        case "date":
            return _date_text(_whole(value))
        case "timestamp":
            return _timestamp_text(_whole(value))
        case "timestamptz":
            return _zoned_text(_whole(value), time_zone)
        case "float":
            return repr(float(value)).removesuffix(".0")
        case _:
            return decimal_text(value, sql_type.scale)


def _whole(number: Fraction) -> int:
    """As int() has it, which takes four times as long for a fraction: lists of days have thousands."""
    return number.numerator if number.denominator == 1 else int(number)


def decimal_text(number: Fraction, scale: int | None = None) -> str | None:
    """A number without an exponent, with exactly `scale` digits after the point if given; None if it has no end.

    Example:
        >>> decimal_text(Fraction(5, 2)), decimal_text(Fraction(5), 2), decimal_text(Fraction(1, 3))
        ('2.5', '5.00', None)
    """
    numerator, denominator = abs(number.numerator), number.denominator
    digits = 0
    while 10**digits % denominator:
        digits += 1
        if digits > 400:
            return None
    places = digits if scale is None else max(scale, 0)
    if digits > places:
        return None
    text = str(numerator * 10**places // denominator).rjust(places + 1, "0")
    sign = "-" if number.numerator < 0 else ""
    return f"{sign}{text[:-places]}.{text[-places:]}" if places else f"{sign}{text}"


def days_of(day: date) -> int:
    return day.toordinal() - 719_163


def microseconds_of(moment: datetime) -> int:
    return (moment - _EPOCH) // _MICROSECOND


def day_at(days: int) -> date:
    return date.fromordinal(days + 719_163)


def moment_at(microseconds: int) -> datetime:
    return _EPOCH + timedelta(microseconds=microseconds)


def is_dated(microseconds: int) -> bool:
    """Return whether a local time lies in the years 1 to 9999, as all that Python computes with must."""
    return FIRST_DAY <= microseconds // DAY <= LAST_DAY


def to_local(microseconds: int, time_zone: str) -> int | None:
    """An instant as the clock on the wall shows it, or None where the zone is not known."""
    zone = find_zone(time_zone)
    if zone is None or not FIRST_DAY + 1 <= microseconds // DAY <= LAST_DAY - 1:
        return None
    note_use(time_zone, microseconds)
    moment = moment_at(microseconds).replace(tzinfo=UTC).astimezone(zone)
    return microseconds_of(moment.replace(tzinfo=None))


def to_instant(local: int, time_zone: str) -> int | None:
    """The instant at which the clock on the wall shows this; where it shows it twice or never, PostgreSQL's choice."""
    zone = find_zone(time_zone)
    if zone is None or not FIRST_DAY + 1 <= local // DAY <= LAST_DAY - 1:
        return None
    note_use(time_zone, local)
    naive = moment_at(local)
    early, late = (naive.replace(tzinfo=zone, fold=fold).utcoffset() or timedelta(0) for fold in (0, 1))
    # DetermineTimeZoneOffset: both ambiguous and missing times are read with the standard offset, which is fold=1
    # for the hour that comes twice and fold=0 for the hour that never comes.
    offset = late if early > late else early
    return local - offset // _MICROSECOND


def is_shown_once(local: int, time_zone: str) -> bool:
    """Return whether the clock on the wall shows this at one instant, not twice and not never."""
    zone = find_zone(time_zone)
    naive = moment_at(local)
    return zone is not None and len({naive.replace(tzinfo=zone, fold=fold).utcoffset() for fold in (0, 1)}) == 1


def unevenness(instant: int, time_zone: str) -> int:
    """Return how far clock and time run apart around an instant: 0 unless the clock changes within two days.

    What is earlier by the clock is earlier in time where this is 0, however much earlier: no clock is put forward or
    back by more than a day.
    """
    around = (instant - 2 * DAY, instant, instant + 2 * DAY)
    shown = [to_local(number, time_zone) for number in around]
    shifts = {None if local is None else local - number for local, number in zip(shown, around, strict=True)}
    return 0 if len(shifts) == 1 and None not in shifts else DAY


def find_zone(name: str) -> ZoneInfo | None:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


def add_span(local: int, span: Span) -> int | None:
    """Months first (the day of the month cut to the month's length), then days, then time; None past year 9999."""
    if not is_dated(local):
        return None
    moment = moment_at(local)
    months = moment.year * 12 + moment.month - 1 + span.months
    year, month = divmod(months, 12)
    if not 1 <= year <= 9999:
        return None
    day = min(moment.day, monthrange(year, month + 1)[1])
    moved = microseconds_of(moment.replace(year=year, month=month + 1, day=day))
    moved += span.days * DAY + span.microseconds
    return moved if is_dated(moved) else None


def _number(text: str, sql_type: Type) -> Fraction | None:
    if len(text) > _LONGEST_NUMBER or _NUMBER.fullmatch(text.strip()) is None:
        return None
    number = Fraction(text.strip())
    if sql_type.kind == "integer":
        first, last = integer_range(sql_type.base)
        return number if number.denominator == 1 and first <= number <= last else None
    if sql_type.base == "float4":
        return Fraction(*unpack("f", pack("f", float(number)))) if abs(number) < _LARGEST_REAL else None
    if sql_type.kind == "float":
        return Fraction(float(number)) if abs(number) < Fraction(10) ** 308 else None
    if sql_type.scale is not None:
        return (
            Fraction(Decimal(round_half_away(number * Fraction(10) ** sql_type.scale))) / Fraction(10) ** sql_type.scale
        )
    return number


def round_half_away(number: Fraction) -> int:
    """numeric's rounding: ties go away from zero."""
    whole = int(abs(number) + Fraction(1, 2))
    return -whole if number < 0 else whole


def _moment(text: str, sql_type: Type, time_zone: str) -> Fraction | None:
    match = _TIMESTAMP.fullmatch(text.strip())
    if match is None:
        return None
    try:
        day = days_of(date(*map(int, match[1].split("-"))))
        clock = _microseconds(match[2] or "00:00")
    except ValueError:
        return None
    local = day * DAY + clock
    if sql_type.kind == "date":
        return Fraction(day)
    if sql_type.kind == "timestamp":
        return Fraction(local)
    instant = local - _offset(match[3]) if match[3] else to_instant(local, time_zone)
    return None if instant is None else Fraction(instant)


def _microseconds(clock: str) -> int:
    hours, minutes, *seconds = clock.split(":")
    total = (int(hours) * 3600 + int(minutes) * 60) * 1_000_000 + int(
        Fraction(seconds[0] if seconds else 0) * 1_000_000
    )
    if int(minutes) > 59 or total > DAY or (seconds and Fraction(seconds[0]) >= 60):
        raise ValueError(clock)
    return total


def _offset(text: str) -> int:
    if text == "Z":
        return 0
    digits = text[1:].replace(":", "").ljust(4, "0")
    minutes = int(digits[:2]) * 60 + int(digits[2:])
    return (-minutes if text[0] == "-" else minutes) * 60_000_000


@lru_cache(maxsize=10_000)
def _date_text(days: int) -> str | None:
    return day_at(days).isoformat() if FIRST_DAY <= days <= LAST_DAY else None


@lru_cache(maxsize=10_000)
def _timestamp_text(local: int) -> str | None:
    day, clock = divmod(local, DAY)
    date_text = _date_text(day)
    if date_text is None:
        return None
    seconds, fraction = divmod(clock, 1_000_000)
    tail = f".{fraction:06}".rstrip("0") if fraction else ""
    return f"{date_text} {seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}{tail}"


def _zoned_text(instant: int, time_zone: str) -> str | None:
    local = to_local(instant, time_zone)
    text = None if local is None else _timestamp_text(local)
    if local is None or text is None:
        return None
    minutes, seconds = divmod(abs(local - instant) // 1_000_000, 60)
    if seconds:
        return None
    sign = "-" if local < instant else "+"
    return f"{text}{sign}{minutes // 60:02}" + (f":{minutes % 60:02}" if minutes % 60 else "")
