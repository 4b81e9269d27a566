"""Functions of dates and times. Operands lie in the years 1 to 9999 or are NULL, so nothing overflows."""

from datetime import date
from fractions import Fraction

from rules.functions.casts import cast_to
from rules.functions.coerce import literal, typed
from rules.functions.datetime.arithmetic import LIMIT, mapped
from rules.functions.datetime.intervals import part_of_span
from rules.functions.facts import Operands, function
from rules.functions.guard import EvalContext, as_value, within, year_limits
from rules.refusal import NotSupported
from rules.values import domain, value
from rules.values.clocks import find_bins, find_shown
from rules.values.domain import Domain, Range
from rules.values.expression import Apply, Constant, Expression, Literal, Operand
from rules.values.time_zones import note_name
from rules.values.types import DATE, FLOAT8, NUMERIC, TEXT, TIMESTAMP, TIMESTAMPTZ, Type
from rules.values.value import DAY, Span

TRUNCATIONS = (
    "microseconds",
    "milliseconds",
    "second",
    "minute",
    "hour",
    "day",
    "week",
    "month",
    "quarter",
    "year",
    "decade",
    "century",
    "millennium",
)
# field -> what date_part can say of a moment in the years 1 to 9999, with its step
FIELDS: dict[str, tuple[int, int, Fraction]] = {
    "year": (1, 9999, Fraction(1)),
    "isoyear": (1, 10_000, Fraction(1)),
    "decade": (0, 1000, Fraction(1)),
    "century": (1, 100, Fraction(1)),
    "millennium": (1, 10, Fraction(1)),
    "quarter": (1, 4, Fraction(1)),
    "month": (1, 12, Fraction(1)),
    "week": (1, 53, Fraction(1)),
    "day": (1, 31, Fraction(1)),
    "doy": (1, 366, Fraction(1)),
    "dow": (0, 6, Fraction(1)),
    "isodow": (1, 7, Fraction(1)),
    "hour": (0, 23, Fraction(1)),
    "minute": (0, 59, Fraction(1)),
    "second": (0, 60, Fraction(1, 10**6)),
    "milliseconds": (0, 60_000, Fraction(1, 1000)),
    "microseconds": (0, 60_000_000, Fraction(1)),
    "epoch": (-62_135_596_800, 253_402_300_800, Fraction(1, 10**6)),
}
_CLOCK = frozenset(("hour", "minute", "second", "milliseconds", "microseconds"))  # that a date has not
_SPOKEN = {
    "years": "year", "months": "month", "days": "day", "hours": "hour", "minutes": "minute", "seconds": "second",
    "weeks": "week", "quarters": "quarter", "y": "year", "mon": "month", "mons": "month", "d": "day", "h": "hour",
    "m": "minute", "s": "second", "sec": "second", "min": "minute", "mins": "minute", "secs": "second",
    "decades": "decade", "centuries": "century", "millisecond": "milliseconds", "microsecond": "microseconds",
}  # fmt: skip


def moment(operand: Operand, setting: EvalContext, sql_type: Type = TIMESTAMPTZ) -> Expression:
    found = as_value(typed(operand, setting, sql_type), setting)
    if not found.type.is_time:
        raise NotSupported(f"the argument must be a date or timestamp, not {found.type.sql}")
    return _dated(found)


def _dated(expression: Expression) -> Expression:
    """What was computed may have left the calendar: the decade of the year 5 began in 1 BC."""
    first, last = year_limits(expression.type)
    if expression.type.kind != "timestamptz":  # whose first and last day have no text in every zone
        day = 1 if expression.type.kind == "date" else DAY
        first, last = first - day, last + 2 * day - 1
    if expression.sure.is_within(first, last):
        return expression
    return within(expression, first, last)


@function(
    "date_trunc",
    arguments=(2, 3),
    examples="""
    date_trunc('month', tz) | date_trunc('week', ts) | date_trunc('quarter', d) | date_trunc('decade', ts)
    date_trunc('day', tz) | date_trunc('hour', tz) | date_trunc('second', ts) | date_trunc('microseconds', ts)
    date_trunc('century', ts) | date_trunc('millennium', tz) | date_trunc('day', tz, 'America/New_York')
    date_trunc('month', ts, 'UTC')
    """,
)
def date_trunc(operands: Operands, setting: EvalContext) -> Expression:
    """date_trunc('month', x), whose values are counted out when x has bounds."""
    field = _field("date_trunc", operands[0], setting)
    given = moment(operands[1], setting)
    if field not in TRUNCATIONS:
        raise NotSupported(
            f"date_trunc('{field}', …) is not supported", hint=f"The supported fields are {', '.join(TRUNCATIONS)}."
        )
    if given.type.kind == "date" or len(operands) == 3:
        # PostgreSQL converts a date to timestamp with time zone here.
        given = given if given.type.kind == "timestamptz" else cast_to(given, TIMESTAMPTZ, setting)
    if len(operands) == 3:
        return _truncated_in(_zone(operands[2], setting), field, given)
    zone = setting.time_zone if given.type.kind == "timestamptz" else None
    image = truncated(given.domain, field, zone)
    result = TIMESTAMPTZ if zone else TIMESTAMP
    return Apply("date_trunc", f"date_trunc('{field}', {{0}})", (given,), result, image, given.nullable)


def _truncated_in(zone: Constant, field: str, expression: Expression) -> Expression:
    """date_trunc('day', x, 'Europe/Berlin')."""
    image = truncated(expression.domain, field, zone.text)
    sql = f"date_trunc('{field}', {{0}}, {{1}})"
    return Apply("date_trunc", sql, (expression, zone), TIMESTAMPTZ, image, expression.nullable)


def _field(name: str, operand: Operand, setting: EvalContext) -> str:
    found = operand.text if isinstance(operand, Literal) else typed(operand, setting, TEXT)
    text = found.text if isinstance(found, Constant) else found
    if not isinstance(text, str):
        raise NotSupported(f"{name} needs a constant field, as in {name}('month', …)")
    plain = text.strip().lower()
    return _SPOKEN.get(plain, plain)


def truncated(known: Domain, field: str, zone: str | None) -> Domain:
    """All starts of months (days, weeks …) from the one that holds the low bound to the high bound."""
    found = domain.range_of(known)
    if found.low is None or found.high is None:
        return domain.UNBOUNDED
    if zone is not None and (size := _SIZES.get(field, DAY)) < DAY:
        return bins(found, size, zone)
    first, last = (
        int(bound) if zone is None else value.to_local(int(bound), zone) for bound in (found.low, found.high)
    )
    if first is None or last is None:
        return domain.UNBOUNDED
    earliest = first - _put_back(found.low, zone)
    if not value.is_dated(earliest) or (field == "decade" and earliest < _YEAR_TEN):
        return domain.UNBOUNDED
    starts = _starts(truncate(earliest, field), last + _put_back(found.high - DAY, zone), field)
    if starts is None:
        return Range(None, found.high)
    instants = [start if zone is None else value.to_instant(start, zone) for start in starts]
    kept = [Fraction(instant) for instant in instants if instant is not None]
    if len(kept) < len(starts):
        return domain.UNBOUNDED
    return domain.values(kept)


def bins(bounds: Range, size: int, zone: str) -> Domain:
    """The instants at which bins of some hours, minutes or seconds begin by a zone's clock, between bounds."""
    if bounds.low is None or bounds.high is None:
        return domain.UNBOUNDED
    found = find_bins(int(bounds.low), int(bounds.high), size, zone, LIMIT)
    if found is None:
        return Range(bounds.low - size, bounds.high)
    return domain.values(map(Fraction, found))


def _put_back(instant: Fraction, zone: str | None) -> int:
    """How much earlier than at this instant a clock of the zone may show within a day from then."""
    if zone is None:
        return 0
    now, later = value.to_local(int(instant), zone), value.to_local(int(instant) + DAY, zone)
    return 0 if now is None or later is None else max(0, now + DAY - later)


def _starts(start: int, last: int, field: str) -> list[int] | None:
    found = [start]
    while (following := following_start(found[-1], field)) is not None and following <= last:
        found.append(following)
        if len(found) > LIMIT:
            return None
    return found


def truncate(local: int, field: str) -> int:
    """date_trunc of a local time."""
    size = _SIZES.get(field)
    if size is not None:
        return local - local % size
    day = value.day_at(local // DAY)
    match field:
        case "week":
            return (value.days_of(day) - day.weekday()) * DAY
        case "month":
            first = day.replace(day=1)
        case "quarter":
            first = day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1)
        case "year":
            first = day.replace(month=1, day=1)
        case _:
            first = day.replace(year=_first_year(day.year, field), month=1, day=1)
    return value.days_of(first) * DAY


def _first_year(year: int, field: str) -> int:
    """Decades begin with years that end in 0, centuries and millennia with those that end in 1."""
    if field == "decade":
        return year // 10 * 10
    size = 100 if field == "century" else 1000
    return (year - 1) // size * size + 1


_YEAR_TEN = value.days_of(date(10, 1, 1)) * DAY  # the decade before begins with the year 1 BC
_SIZES = {
    "microseconds": 1,
    "milliseconds": 1000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": DAY,
}
_STEPS = {
    "week": Span(days=7), "month": Span(months=1), "quarter": Span(months=3), "year": Span(months=12),
    "decade": Span(months=120), "century": Span(months=1200), "millennium": Span(months=12000),
}  # fmt: skip


def following_start(local: int, field: str) -> int | None:
    size = _SIZES.get(field)
    return local + size if size is not None else value.add_span(local, _STEPS[field])


@function(
    "extract",
    arguments=2,
    examples="""
    extract(year FROM d) | extract(epoch FROM tz) | extract(epoch FROM d) | extract(second FROM ts)
    extract(week FROM tz) | extract(isoyear FROM d) | extract(decade FROM ts) | extract(century FROM ts)
    extract(quarter FROM d) | extract(dow FROM tz) | extract(isodow FROM tz) | extract(doy FROM d)
    extract(hour FROM tz) | extract(minute FROM ts) | extract(epoch FROM iv) | extract(day FROM ts - ts_)
    extract(epoch FROM tz - tz_) | extract(year FROM age(ts, ts_)) | extract(month FROM age(tz, d))
    extract(year FROM age(d, '2000-01-01')) | extract(day FROM age(ts)) | extract(milliseconds FROM ts)
    extract(millennium FROM d) | extract(epoch FROM age(tz)) | extract(decade FROM age(ts, ts_))
    extract(century FROM age(ts, ts_)) | extract(second FROM age(ts, ts_))
    extract(epoch FROM interval '90 sec' * (i4 % 7)) | extract(hour FROM ts - tz)
    """,
)
def extract(operands: Operands, setting: EvalContext) -> Expression:
    """EXTRACT(field FROM x): numeric."""
    return _part(operands, setting, NUMERIC)


@function(
    "date_part",
    arguments=2,
    examples="""
    date_part('month', tz) | date_part('epoch', ts) | date_part('day', d) | date_part('microseconds', tz)
    """,
)
def date_part(operands: Operands, setting: EvalContext) -> Expression:
    """date_part('field', x): double precision."""
    return _part(operands, setting, FLOAT8)


def _part(operands: Operands, setting: EvalContext, result: Type) -> Expression:
    field = _field("extract", operands[0], setting)
    second = typed(operands[1], setting, TIMESTAMPTZ)
    if second.type.kind == "interval":
        return part_of_span(field, second, result)
    given = moment(second, setting)
    if field not in FIELDS or (given.type.kind == "date" and field in _CLOCK):
        raise NotSupported(
            f"extract({field} from {given.type.sql}) is not supported",
            hint=f"The supported fields are {', '.join(FIELDS)}.",
        )
    # What PostgreSQL 14 and later type as numeric was double precision before; the outer cast says which.
    sql = f"extract({field} from {{0}})::{result.sql}"
    image = _part_image(field, given, setting)
    return Apply("extract", sql, (given,), result, image, given.nullable)


def _part_image(field: str, expression: Expression, setting: EvalContext) -> Domain:
    low, high, step = FIELDS[field]
    whole = Range(Fraction(low), Fraction(high), step)
    zone = setting.time_zone if expression.type.kind == "timestamptz" else None
    found = domain.range_of(expression.domain)
    if field not in ("year", "epoch") or found.low is None or found.high is None:
        return whole
    if field == "epoch" and expression.type.kind == "date":
        return Range(found.low * 86_400, found.high * 86_400, Fraction(86_400))
    if field == "epoch":
        slack = Fraction(0) if setting.server_version >= 140000 else _INEXACT
        return Range(found.low / 10**6 - slack, found.high / 10**6 + slack, step)
    years = [_year(int(bound), expression.type, zone) for bound in (found.low, found.high)]
    if years[0] is None or years[1] is None:
        return whole
    return Range(Fraction(years[0]), Fraction(years[1]), step if years[1] - years[0] < _MOST_YEARS else None)


_MOST_YEARS = 1000  # that are listed: those of the whole calendar are nobody's bounds
_INEXACT = Fraction(1, 1000)  # seconds: before PostgreSQL 14 extract makes a double, of which 15 digits are kept


def _year(bound: int, sql_type: Type, zone: str | None) -> int | None:
    local = bound * DAY if sql_type.kind == "date" else bound if zone is None else value.to_local(bound, zone)
    return None if local is None or not value.is_dated(local) else value.day_at(local // DAY).year


@function(
    "timezone",
    arguments=2,
    examples="""
    tz AT TIME ZONE 'America/New_York' | ts AT TIME ZONE 'Europe/Berlin' | timezone('UTC', d)
    """,
)
def at_time_zone(operands: Operands, setting: EvalContext) -> Expression:
    """timezone('zone', x), spelled x AT TIME ZONE 'zone'; the zone is a constant that is known here and there."""
    zone = _zone(operands[0], setting)
    given = moment(operands[1], setting)
    if given.type.kind == "date":
        given = cast_to(given, TIMESTAMPTZ, setting)
    name = zone.text or "UTC"
    to_local = given.type.kind == "timestamptz"

    def change(item: Fraction) -> Fraction | None:
        found = value.to_local(int(item), name) if to_local else value.to_instant(int(item), name)
        return None if found is None else Fraction(found)

    moved = _shown(given.domain, name) if to_local else None
    moved = moved or mapped(given.domain, change, slack=lambda bound: value.unevenness(int(bound), name))
    result = TIMESTAMP if to_local else TIMESTAMPTZ
    return Apply("timezone", "timezone({1}, {0})", (given, zone), result, moved, given.nullable)


def _shown(known: Domain, zone: str) -> Domain | None:
    """What a zone's clock shows between two instants; None where it is not known for all of them."""
    match known:
        case Range(low=Fraction() as low, high=Fraction() as high):
            shown = find_shown(int(low), int(high), zone)
            return None if shown is None else Range(*map(Fraction, shown))
    return None


def _zone(operand: Operand, setting: EvalContext) -> Constant:
    zone = typed(operand, setting, TEXT)
    if not isinstance(zone, Constant) or zone.text is None or value.find_zone(zone.text) is None:
        hint = "Use a constant time zone name, as in AT TIME ZONE 'Europe/Berlin'."
        raise NotSupported("AT TIME ZONE over protected rows needs a constant time zone name", hint=hint)
    if setting.time_zones is not None and zone.text not in setting.time_zones:
        shown = f"the real database has no time zone '{zone.text[:60]}'"
        raise NotSupported(shown, hint="The view pg_timezone_names of the real database lists its time zones.")
    note_name(zone.text)
    return zone


def clock(name: str, setting: EvalContext) -> Expression:
    """now() and its kin: one value for the statement."""
    if setting.now is None:
        raise NotSupported(f"{name} has no value in this context")
    instant = setting.now.isoformat(sep=" ")
    found = literal(instant, TIMESTAMPTZ, setting)
    if name == "current_date":
        return cast_to(found, DATE, setting)
    return cast_to(found, TIMESTAMP, setting) if name == "localtimestamp" else found
