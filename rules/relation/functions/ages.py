"""Spans between moments, bins of time, and moments made of numbers: age, date_bin, make_date, to_timestamp …"""

from fractions import Fraction

from rules.refusal import NotSupported
from rules.relation import domain
from rules.relation.domain import ANYTHING, Domain, Range
from rules.relation.expression import Apply, Constant, Expression, Operand
from rules.relation.functions.cast import cast_to
from rules.relation.functions.coerce import typed
from rules.relation.functions.guard import Setting, as_double, as_value, within, year_limits
from rules.relation.functions.shift import LIMIT
from rules.relation.functions.text import whole_constant
from rules.relation.functions.time import clock, moment
from rules.relation.types import BOOLEAN, DATE, FLOAT8, INT4, INTERVAL, TIMESTAMP, TIMESTAMPTZ
from rules.relation.value import DAY, Span

Operands = tuple[Operand, ...]
_MOST_UNITS = 1_000_000  # of a made interval


def age(operands: Operands, setting: Setting) -> Expression:
    """age(x, y), and age(x) from midnight of the current day; in years, months and days."""
    given = [moment(operand, setting) for operand in operands]
    target = TIMESTAMP if all(each.type.kind == "timestamp" for each in given) else TIMESTAMPTZ
    if len(given) == 1:
        given.insert(0, clock("current_date", setting))
    later, earlier = (each if each.type.kind == target.kind else cast_to(each, target, setting) for each in given)
    return Apply("age", "age({0}, {1})", (later, earlier), INTERVAL, ANYTHING, later.nullable or earlier.nullable)


def date_bin(operands: Operands, setting: Setting) -> Expression:
    """date_bin('15 minutes', x, origin) with a constant stride and origin, whose bins are counted out."""
    stride, given = typed(operands[0], setting, INTERVAL), moment(operands[1], setting)
    origin = typed(operands[2], setting, TIMESTAMPTZ if given.type.kind == "date" else given.type)
    kinds = (given.type.kind, origin.type.kind)
    target = TIMESTAMP if "timestamp" in kinds and "timestamptz" not in kinds else TIMESTAMPTZ
    given = given if given.type.kind == target.kind else cast_to(given, target, setting)
    if isinstance(origin, Constant) and origin.type.is_time and origin.type.kind != target.kind:
        origin = cast_to(origin, target, setting)
    size = _size(stride)
    start = domain.items_of(origin.domain, 1)
    if size is None or not start or not isinstance(start[0], Fraction) or origin.type.kind != given.type.kind:
        hint = "Write it as date_bin('15 minutes', x, timestamp '2024-01-01')."
        raise NotSupported("date_bin needs a constant stride without months and a constant origin", hint=hint)
    given = _with_room(given, size)
    found = _bins(domain.range_of(given.domain), size, start[0])
    arguments = (stride, given, origin)
    return Apply("date_bin", "date_bin({0}, {1}, {2})", arguments, given.type.plain(), found, given.nullable)


def _with_room(given: Expression, size: Fraction) -> Expression:
    """A moment whose bin begins in the year 1 or later: long ones before it, or before there is a calendar."""
    first, last = year_limits(given.type)
    room = Range(first - DAY + size, last)
    if size <= DAY or domain.is_within(domain.range_of(given.domain), room):
        return given
    return within(given, first - DAY + size, last)


def _size(stride: Expression) -> Fraction | None:
    if not isinstance(stride, Constant) or not isinstance(stride.value, Span) or stride.value.months:
        return None
    size = Fraction(stride.value.days * DAY + stride.value.microseconds)
    return size if size > 0 else None


def _bins(given: Range, size: Fraction, origin: Fraction) -> Domain:
    if given.low is None or given.high is None:
        return domain.UNBOUNDED
    first, last = (int((bound - origin) // size) for bound in (given.low, given.high))
    if last - first >= LIMIT:
        return Range(origin + first * size, given.high)
    return domain.values(origin + number * size for number in range(first, last + 1))


def make_date(operands: Operands, setting: Setting) -> Expression:
    """make_date(year, month, day); NULL where there is no such day, or none in the years 1 to 9999."""
    parts = tuple(as_value(typed(operand, setting, INT4), setting) for operand in operands)
    if any(each.type.kind != "integer" for each in parts):
        raise NotSupported("make_date needs three integers")
    year, month, day = (
        each if domain.is_within(each.domain, Range(low, high)) else within(each, low, high)
        for each, (low, high) in zip(parts, _CALENDAR, strict=True)
    )
    length = "make_date(({0})::integer, ({1})::integer, 1) + interval '1 month - 1 day'"
    sql = (
        f"CASE WHEN ({{2}}) <= extract(day FROM {length}) "
        "THEN make_date(({0})::integer, ({1})::integer, ({2})::integer) END"
    )
    first, last = year_limits(DATE)
    return Apply("make_date", sql, (year, month, day), DATE, Range(first - 1, last + 1, domain.ONE), nullable=True)


_CALENDAR = tuple((Fraction(1), Fraction(high)) for high in (9999, 12, 31))


def make_interval(operands: Operands, setting: Setting) -> Expression:
    """make_interval(days => 3): years, months, weeks, days, hours, minutes and seconds, all of them constants."""
    given = [whole_constant("make_interval", each, setting, least=-_MOST_UNITS, most=_MOST_UNITS) for each in operands]
    units = [int(each.text or 0) for each in given] + [0] * (7 - len(given))
    years, months, weeks, days, hours, minutes, seconds = units
    span = Span(years * 12 + months, weeks * 7 + days, ((hours * 60 + minutes) * 60 + seconds) * 1_000_000)
    if max(abs(span.months), abs(span.days), abs(span.microseconds) // DAY) > 4_000_000:
        raise NotSupported("this interval is longer than the years 1 to 9999")
    return Constant(INTERVAL, str(span), span)


def from_epoch(operands: Operands, setting: Setting) -> Expression:
    """to_timestamp(seconds since 1970)."""
    seconds = as_value(typed(operands[0], setting, FLOAT8), setting)
    given = as_double(seconds)
    if not given.type.is_number:
        raise NotSupported("to_timestamp needs a number here, or a constant text and its format")
    low, high = (bound / 1_000_000 for bound in year_limits(TIMESTAMPTZ))
    known = domain.range_of(given.domain) if seconds.type.kind == "float" else Range()  # looked at, for it is not exact
    low, high = max(low, known.low or low), min(high, known.high or high)
    inside = within(given, low, high)
    sql = "to_timestamp(({0})::double precision)"
    return Apply("to_timestamp", sql, (inside,), TIMESTAMPTZ, _moments(seconds, inside), inside.nullable)


def _moments(seconds: Expression, inside: Expression) -> Domain:
    """A double tells whole seconds exactly, and others nearly."""
    listed = [each for each in domain.items_of(seconds.domain, LIMIT) or () if isinstance(each, Fraction)]
    bounds = domain.range_of(inside.domain)
    if bounds.low is None or bounds.high is None:
        return domain.UNBOUNDED
    if listed and seconds.type.kind != "float" and all(each.denominator == 1 for each in listed):
        return domain.values(each * 1_000_000 for each in listed if bounds.low <= each <= bounds.high)
    return Range(bounds.low * 1_000_000 - _INEXACT, bounds.high * 1_000_000 + _INEXACT)


_INEXACT = 1000  # microseconds: a double tells them not exactly


def is_finite(operands: Operands, setting: Setting) -> Expression:
    given = typed(operands[0], setting, TIMESTAMPTZ)
    if not given.type.is_time:
        raise NotSupported(f"isfinite needs a date or timestamp, not {given.type.sql}")
    return Apply("isfinite", "isfinite({0})", (given,), BOOLEAN, domain.TRUTHS, given.nullable)
