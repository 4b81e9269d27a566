"""A constant interval taken n times, and moments moved by it: how Superset writes bins of some minutes or seconds.

date_trunc('hour', x) + interval '5 minutes' * floor(extract(minute FROM x) / 5)
"""

from fractions import Fraction

from rules.refusal import NotSupported
from rules.relation import domain, image
from rules.relation.clocks import find_bins
from rules.relation.domain import Domain, Range
from rules.relation.expression import Apply, Constant, Expression, Operand
from rules.relation.functions.cast import cast_to
from rules.relation.functions.coerce import typed
from rules.relation.functions.guard import Setting, as_double, as_value, within, year_limits
from rules.relation.types import FLOAT8, INTERVAL, TIMESTAMP
from rules.relation.value import DAY, Span

LISTED = 10_000  # bins that are counted out
_NAME = "spans"
_BINNED = {"hour": ("minute", 60_000_000), "minute": ("second", 1_000_000)}  # truncated to -> what of it is counted
_FAR = Fraction(4_000_000 * DAY)  # more than there is between the years 1 and 9999


def times(left: Operand, right: Operand, setting: Setting) -> Expression | None:
    """interval * n or n * interval; None when neither is an interval."""
    for span, count in ((left, right), (right, left)):
        if isinstance(span, Constant) and isinstance(span.value, Span):
            return _times(span, span.value, as_value(typed(count, setting, FLOAT8), setting))
    return None


def _times(span: Constant, value: Span, count: Expression) -> Expression:
    reach = image.absolute(domain.range_of(count.domain)).high
    if not count.type.is_number or value.months or reach is None or reach * abs(_length(value)) > _FAR:
        hint = "The interval has days, hours, minutes or seconds, and the number has bounds."
        raise NotSupported("this interval is not multiplied over protected rows", hint=hint)
    factor = as_double(count)
    if count.type.kind == "float":  # of which what is known is not exact
        known = domain.range_of(count.domain)
        assert known.low is not None and known.high is not None, "its reach is known"
        factor = within(factor, known.low, known.high)
    return Apply(_NAME, "({0} * {1}::double precision)", (span, factor), INTERVAL, domain.ANYTHING, factor.nullable)


def moved_by_times(given: Expression, span: Expression, name: str, setting: Setting) -> Expression | None:
    """moment ± interval * n, inside of the years 1 to 9999; None for an interval of another kind."""
    if not isinstance(span, Apply) or span.name != _NAME:
        return None
    start = cast_to(given, TIMESTAMP, setting) if given.type.kind == "date" else given
    steps = _steps(span, name)
    low, high = steps.low or Fraction(0), steps.high or Fraction(0)
    first, last = year_limits(start.type)
    room = Range(first + max(-low, Fraction(0)), last - max(high, Fraction(0)))
    if not domain.is_within(domain.range_of(start.domain), room):
        start = within(start, *(bound for bound in (room.low, room.high) if bound is not None))
    found = (
        _bins(start, span, name, setting) or _sums(start, span, name) or image.add(domain.range_of(start.domain), steps)
    )
    nullable = start.nullable or span.nullable
    return Apply("shift", f"({{0}} {name} {{1}})", (start, span), start.type.plain(), found, nullable)


def _parts(span: Apply) -> tuple[Span, Expression]:
    constant, count = span.arguments
    assert isinstance(constant, Constant) and isinstance(constant.value, Span)
    return constant.value, count


def _length(value: Span) -> Fraction:
    return Fraction(value.days * DAY + value.microseconds)


def _steps(span: Apply, name: str) -> Range:
    """How far it moves a moment, in microseconds; a day is up to some hours longer or shorter where clocks change."""
    value, count = _parts(span)
    counted = domain.range_of(count.domain)
    product = image.multiply(counted, Range(_length(value), _length(value)))
    moved = product if name == "+" else image.negate(product)
    reach = image.absolute(moved).high or Fraction(0)
    slack = Fraction(DAY if value.days else 1 + reach / 10**14)  # numbers are rounded to doubles
    low, high = moved.low, moved.high
    return Range(None if low is None else low - slack, None if high is None else high + slack)


def _bins(start: Expression, span: Apply, name: str, setting: Setting) -> Domain | None:
    """All bins that the moment's own bounds reach, when truncation and number are of the same moment."""
    value, count = _parts(span)
    field = _truncated_to(start)
    if field not in _BINNED or name != "+" or value.days:
        return None
    part, unit = _BINNED[field]
    size, (moment,) = value.microseconds, start.arguments if isinstance(start, Apply) else ()
    if size <= 0 or (60 * unit) % size or not _is_counted(count, part, moment, Fraction(size, unit)):
        return None
    found = domain.range_of(moment.domain)
    if found.low is None or found.high is None:
        return None
    zone = setting.time_zone if start.type.kind == "timestamptz" else "UTC"
    starts = find_bins(int(found.low), int(found.high), size, zone, LISTED)
    return None if starts is None else domain.values(map(Fraction, starts))


def _truncated_to(start: Expression) -> str:
    """The field of date_trunc, in the session's zone if in any."""
    match start:
        case Apply(name="date_trunc", sql=sql, arguments=(_,)):
            return sql.split("'")[1]
    return ""


def _is_counted(count: Expression, part: str, moment: Expression, each: Fraction) -> bool:
    """floor(extract(part FROM moment) / each), as a double."""
    while isinstance(count, Apply) and count.name in ("double", "cast", "within"):
        count = count.arguments[0]
    match count:
        case Apply(name="floor", arguments=(Apply(name="/", arguments=(counted, Constant(value=divisor))),)):
            while isinstance(counted, Apply) and counted.name in ("double", "cast"):
                counted = counted.arguments[0]
            return (
                isinstance(counted, Apply)
                and counted.sql.startswith(f"extract({part} from")
                and counted.arguments == (moment,)
                and divisor == each
            )
    return False


def _sums(start: Expression, span: Apply, name: str) -> Domain | None:
    """Each moment of a short list moved by each number of one."""
    value, count = _parts(span)
    if value.days and start.type.kind == "timestamptz":
        return None
    starts, counts = (domain.items_of(each.domain, LISTED) for each in (start, count))
    if not starts or not counts or len(starts) * len(counts) > LISTED:
        return None
    length = _length(value) if name == "+" else -_length(value)
    moves = [number * length for number in counts if isinstance(number, Fraction)]
    if any(move.denominator != 1 for move in moves):
        return None
    return domain.values(moment + move for moment in starts if isinstance(moment, Fraction) for move in moves)
