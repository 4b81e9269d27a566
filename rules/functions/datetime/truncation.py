"""Truncate moments to fields: date_trunc, and the starts of hours, weeks and years that lie between bounds."""

from datetime import date
from fractions import Fraction
from functools import lru_cache

from rules.functions.casts import cast_to
from rules.functions.datetime.moments import LIMIT, constant_field, constant_zone, moment
from rules.functions.function import EvalContext, Operands, function
from rules.refusal import NotSupported
from rules.values import domain, value
from rules.values.clocks import find_bins
from rules.values.domain import Domain, Range, Values
from rules.values.expression import Apply, Constant, Expression
from rules.values.types import TIMESTAMP, TIMESTAMPTZ
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
    field = constant_field("date_trunc", operands[0], setting)
    argument = moment(operands[1], setting)
    if field not in TRUNCATIONS:
        raise NotSupported(
            f"date_trunc('{field}', …) is not supported", hint=f"The supported fields are {', '.join(TRUNCATIONS)}."
        )
    if argument.type.kind == "date" or len(operands) == 3:
        # PostgreSQL converts a date to timestamp with time zone here.
        argument = argument if argument.type.kind == "timestamptz" else cast_to(argument, TIMESTAMPTZ, setting)
    if len(operands) == 3:
        return _truncated_in(constant_zone(operands[2], setting), field, argument)
    zone = setting.time_zone if argument.type.kind == "timestamptz" else None
    image = truncated(argument.domain, field, zone)
    result = TIMESTAMPTZ if zone else TIMESTAMP
    return Apply("date_trunc", f"date_trunc('{field}', {{0}})", (argument,), result, image, argument.nullable)


def _truncated_in(zone: Constant, field: str, expression: Expression) -> Expression:
    """date_trunc('day', x, 'Europe/Berlin')."""
    image = truncated(expression.domain, field, zone.text)
    sql = f"date_trunc('{field}', {{0}}, {{1}})"
    return Apply("date_trunc", sql, (expression, zone), TIMESTAMPTZ, image, expression.nullable)


def truncated(known: Domain, field: str, zone: str | None) -> Domain:
    """All starts of months (days, weeks …) from the one that holds the low bound to the high bound."""
    image = domain.range_of(known)
    if image.low is None or image.high is None:
        return domain.UNBOUNDED
    if zone is not None and (size := _SIZES.get(field, DAY)) < DAY:
        return bins(image, size, zone)
    first, last = (
        int(bound) if zone is None else value.to_local(int(bound), zone) for bound in (image.low, image.high)
    )
    if first is None or last is None:
        return domain.UNBOUNDED
    earliest = first - _put_back(image.low, zone)
    if not value.is_dated(earliest) or (field == "decade" and earliest < _YEAR_TEN):
        return domain.UNBOUNDED
    start, last = truncate(earliest, field), last + _put_back(image.high - DAY, zone)
    if zone is None:
        return _all_starts(start, last, field) or Range(None, image.high)
    starts = _starts(start, last, field)
    if starts is None:
        return Range(None, image.high)
    kept = [Fraction(instant) for start in starts if (instant := value.to_instant(start, zone)) is not None]
    return domain.values(kept) if len(kept) == len(starts) else domain.UNBOUNDED


@lru_cache(maxsize=256)
def _all_starts(start: int, last: int, field: str) -> Values | None:
    """The starts as a domain; None where they are too many."""
    starts = _starts(start, last, field)
    return None if starts is None else domain.values(map(Fraction, starts))


def bins(bounds: Range, size: int, zone: str) -> Domain:
    """The instants at which bins of some hours, minutes or seconds begin by a zone's clock, between bounds."""
    if bounds.low is None or bounds.high is None:
        return domain.UNBOUNDED
    bins = find_bins(int(bounds.low), int(bounds.high), size, zone, LIMIT)
    if bins is None:
        return Range(bounds.low - size, bounds.high)
    return domain.values(map(Fraction, bins))


def _put_back(instant: Fraction, zone: str | None) -> int:
    """Return how much earlier than at this instant a clock of the zone may show within a day from then."""
    if zone is None:
        return 0
    now, later = value.to_local(int(instant), zone), value.to_local(int(instant) + DAY, zone)
    return 0 if now is None or later is None else max(0, now + DAY - later)


def _starts(start: int, last: int, field: str) -> list[int] | None:
    starts = [start]
    while (following := following_start(starts[-1], field)) is not None and following <= last:
        starts.append(following)
        if len(starts) > LIMIT:
            return None
    return starts


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
