"""Spans between moments, bins of time, and moments made of numbers: age, date_bin, make_date, to_timestamp …"""

from fractions import Fraction

from rules.functions.casts import cast_to
from rules.functions.coerce import typed
from rules.functions.datetime.moments import LIMIT, clock, moment, shifted
from rules.functions.datetime.to_char import moment_by_format
from rules.functions.function import EvalContext, Operands, function
from rules.functions.guard import as_double, as_passed, as_value, within, year_limits
from rules.functions.text.strings import whole_constant
from rules.refusal import NotSupported
from rules.values import domain, interval_arithmetic
from rules.values.domain import Domain, Range
from rules.values.expression import Apply, Constant, Expression, Operand, condition, ids_in
from rules.values.types import BOOLEAN, DATE, FLOAT8, INT4, INTERVAL, TIMESTAMP, TIMESTAMPTZ, Type
from rules.values.value import DAY, Span

_MOST_UNITS = 1_000_000  # of a made interval


@function("age", arguments=(1, 2), examples="age(ts, ts_) | age(tz) | age(d, tz)")
def age(operands: Operands, setting: EvalContext) -> Expression:
    """age(x, y), and age(x) from midnight of the current day; in years, months and days."""
    arguments = [moment(operand, setting) for operand in operands]
    target = TIMESTAMP if all(argument.type.kind == "timestamp" for argument in arguments) else TIMESTAMPTZ
    if len(arguments) == 1:
        arguments.insert(0, clock("current_date", setting))
    later, earlier = (
        argument if argument.type.kind == target.kind else cast_to(argument, target, setting) for argument in arguments
    )
    nullable = later.nullable or earlier.nullable
    return Apply("age", "age({0}, {1})", (later, earlier), INTERVAL, _ages(later, earlier), nullable)


def _ages(later: Expression, earlier: Expression) -> Domain:
    """Compute how long ages are, as PostgreSQL counts them: a month as 30 days and a year as 365.25.

    Up to eleven months have at most seven days more than that, a year with its leap day one, and the calendar is short
    of a day in 128 years.
    """
    ranges = domain.range_of(later.domain), domain.range_of(earlier.domain)
    image = interval_arithmetic.add(ranges[0], interval_arithmetic.negate(ranges[1]))
    low, high = (None if end is None else end + sign * _slack(end) for sign, end in ((-1, image.low), (1, image.high)))
    return Range(low, high)


def _slack(span: Fraction) -> Fraction:
    return 10 * DAY + abs(span) / 40_000


@function(
    "date_bin",
    arguments=3,
    since=14,
    examples="""
    date_bin('15 minutes', tz, '2000-01-01') | date_bin('7 days', ts, timestamp '1999-12-31 12:00')
    date_bin('1 day', d, '2024-01-01') | date_bin('1 day 2 hours', ts, timestamptz '2024-01-01')
    date_bin('1 day', d, timestamp '2024-01-01')
    """,
)
def date_bin(operands: Operands, setting: EvalContext) -> Expression:
    """date_bin('15 minutes', x, origin) with a constant stride and origin, whose bins are counted out."""
    stride, argument = typed(operands[0], setting, INTERVAL), moment(operands[1], setting)
    origin = typed(operands[2], setting, TIMESTAMPTZ if argument.type.kind == "date" else argument.type)
    kinds = (argument.type.kind, origin.type.kind)
    target = TIMESTAMP if "timestamp" in kinds and "timestamptz" not in kinds else TIMESTAMPTZ
    argument = argument if argument.type.kind == target.kind else cast_to(argument, target, setting)
    if isinstance(origin, Constant) and origin.type.is_time and origin.type.kind != target.kind:
        origin = cast_to(origin, target, setting)
    size = _size(stride)
    start = domain.items_of(origin.domain, 1) if not ids_in(origin) else None
    if size is None or not start or not isinstance(start[0], Fraction) or origin.type.kind != argument.type.kind:
        hint = "Write it as date_bin('15 minutes', x, timestamp '2024-01-01')."
        raise NotSupported("date_bin needs a constant stride without months and a constant origin", hint=hint)
    argument = _with_room(argument, size)
    image = _bins(domain.range_of(argument.domain), size, start[0])
    arguments = (stride, argument, origin)
    return Apply("date_bin", "date_bin({0}, {1}, {2})", arguments, argument.type.plain(), image, argument.nullable)


def _with_room(expression: Expression, size: Fraction) -> Expression:
    """A moment whose bin begins in the year 1 or later: long ones before it, or before there is a calendar."""
    first, last = year_limits(expression.type)
    if size <= DAY or expression.sure.is_within(first - DAY + size, last):
        return expression
    return within(expression, first - DAY + size, last)


def _size(stride: Expression) -> Fraction | None:
    if not isinstance(stride, Constant) or not isinstance(stride.value, Span) or stride.value.months:
        return None
    size = Fraction(stride.value.days * DAY + stride.value.microseconds)
    return size if size > 0 else None


def _bins(bounds: Range, size: Fraction, origin: Fraction) -> Domain:
    if bounds.low is None or bounds.high is None:
        return domain.UNBOUNDED
    first, last = (int((bound - origin) // size) for bound in (bounds.low, bounds.high))
    if last - first >= LIMIT:
        return Range(origin + first * size, bounds.high)
    return domain.values(origin + number * size for number in range(first, last + 1))


@function("make_date", arguments=3, examples="make_date(i4, 2, 29) | make_date(2024, i2, i4)")
def make_date(operands: Operands, setting: EvalContext) -> Expression:
    """make_date(year, month, day); NULL where there is no such day, or none in the years 1 to 9999."""
    parts = tuple(as_value(typed(operand, setting, INT4), setting) for operand in operands)
    if any(part.type.kind != "integer" for part in parts):
        raise NotSupported("make_date needs three integers")
    year, month, day = (
        part if part.sure.is_within(low, high) else within(part, low, high)
        for part, (low, high) in zip(parts, _CALENDAR, strict=True)
    )
    length = "make_date(({0})::integer, ({1})::integer, 1) + '1 month -1 day'::interval"
    sql = (
        f"CASE WHEN ({{2}}) <= extract(day FROM {length}) "
        "THEN make_date(({0})::integer, ({1})::integer, ({2})::integer) END"
    )
    first, last = year_limits(DATE)
    return Apply("make_date", sql, (year, month, day), DATE, Range(first - 1, last + 1, domain.ONE), nullable=True)


_CALENDAR = tuple((Fraction(1), Fraction(high)) for high in (9999, 12, 31))


@function(
    "make_interval",
    arguments=(1, 7),
    examples="""
    tz + make_interval(days => 3, secs => 7) | d - make_interval(1, 2)
    """,
)
def make_interval(operands: Operands, setting: EvalContext) -> Expression:
    """make_interval(days => 3): years, months, weeks, days, hours, minutes and seconds, all of them constants."""
    constants = [
        whole_constant("make_interval", operand, setting, least=-_MOST_UNITS, most=_MOST_UNITS) for operand in operands
    ]
    units = [int(constant.text or 0) for constant in constants] + [0] * (7 - len(constants))
    years, months, weeks, days, hours, minutes, seconds = units
    span = Span(years * 12 + months, weeks * 7 + days, ((hours * 60 + minutes) * 60 + seconds) * 1_000_000)
    if max(abs(span.months), abs(span.days), abs(span.microseconds) // DAY) > 4_000_000:
        raise NotSupported("this interval is longer than the supported 9999 years")
    return Constant(INTERVAL, str(span), span)


@function(
    "to_timestamp",
    arguments=(1, 2),
    examples="""
    to_timestamp(f8) | to_timestamp(i8) | to_timestamp(n) | to_timestamp('2024-03-31 12', 'YYYY-MM-DD HH24')
    """,
)
def to_timestamp(operands: Operands, setting: EvalContext) -> Expression:
    """to_timestamp(1700000000) and to_timestamp('2024-01-31', 'YYYY-MM-DD')."""
    return from_epoch(operands, setting) if len(operands) == 1 else moment_by_format(operands, setting)


def from_epoch(operands: Operands, setting: EvalContext) -> Expression:
    """to_timestamp(seconds since 1970)."""
    seconds = as_value(typed(operands[0], setting, FLOAT8), setting)
    argument = as_double(seconds)
    if not argument.type.is_number:
        raise NotSupported("to_timestamp over protected rows needs a number, or a constant text and its format")
    low, high = (bound / 1_000_000 for bound in year_limits(TIMESTAMPTZ))
    known = (
        domain.range_of(argument.domain) if seconds.type.kind == "float" else Range()
    )  # looked at, for it is not exact
    low, high = max(low, known.low or low), min(high, known.high or high)
    inside = within(argument, low, high)
    sql = "to_timestamp(({0})::double precision)"
    return Apply("to_timestamp", sql, (inside,), TIMESTAMPTZ, _moments(seconds, inside), inside.nullable)


def _moments(seconds: Expression, inside: Expression) -> Domain:
    """A double tells whole seconds exactly, and others nearly."""
    listed = [item for item in domain.items_of(seconds.domain, LIMIT) or () if isinstance(item, Fraction)]
    bounds = domain.range_of(inside.domain)
    if bounds.low is None or bounds.high is None:
        return domain.UNBOUNDED
    if listed and seconds.type.kind != "float" and all(moment.denominator == 1 for moment in listed):
        return domain.values(moment * 1_000_000 for moment in listed if bounds.low <= moment <= bounds.high)
    return Range(bounds.low * 1_000_000 - _INEXACT, bounds.high * 1_000_000 + _INEXACT)


_INEXACT = 1000  # microseconds: a double tells them not exactly


@function("isfinite", arguments=1, examples="isfinite(d) | isfinite(tz)")
def is_finite(operands: Operands, setting: EvalContext) -> Expression:
    argument = typed(operands[0], setting, TIMESTAMPTZ)
    if not argument.type.is_time:
        raise NotSupported(f"isfinite needs a date or timestamp, not {argument.type.sql}")
    return Apply("isfinite", "isfinite({0})", (argument,), BOOLEAN, domain.TRUTHS, argument.nullable)


@function(
    "overlaps",
    arguments=4,
    examples="""
    (ts, ts_) OVERLAPS ('2024-01-01', interval '1 month') | (tz, interval '90 days') OVERLAPS (ts, d)
    """,
)
def overlaps(operands: Operands, setting: EvalContext) -> Expression:
    first, second = operands[:2], operands[2:]
    kind = TIMESTAMPTZ if any(_kind(operand) == "timestamptz" for operand in operands) else TIMESTAMP
    ends = (*_ends(first, kind, setting), *_ends(second, kind, setting))
    return condition("overlaps", "(({0}, {1}) OVERLAPS ({2}, {3}))", *ends, strict=False)


def _kind(operand: Operand) -> str:
    kind = getattr(operand, "type", None)
    return kind.kind if isinstance(kind, Type) else ""


def _ends(period: tuple[Operand, ...], kind: Type, setting: EvalContext) -> tuple[Expression, Expression]:
    start = _moment(period[0], kind, setting)
    if _kind(period[1]) == "interval":
        argument = shifted("+", start, period[1], setting)
        assert argument is not None, "a moment moves"
        return start, argument
    return start, _moment(period[1], kind, setting)


def _moment(operand: Operand, kind: Type, setting: EvalContext) -> Expression:
    argument = as_passed(typed(operand, setting, kind), setting)
    if not argument.type.is_time:
        raise NotSupported(f"OVERLAPS of {argument.type.sql} is not supported over protected rows")
    return argument if argument.type.kind == kind.kind else cast_to(argument, kind, setting)
