"""A constant interval taken n times, and moments moved by it: how Superset writes bins of some minutes or seconds.

date_trunc('hour', x) + interval '5 minutes' * floor(extract(minute FROM x) / 5)
"""

from fractions import Fraction
from math import ceil, floor

from rules.frozen import frozen
from rules.functions.casts import cast_to
from rules.functions.coerce import typed
from rules.functions.function import EvalContext
from rules.functions.guard import as_double, as_value, constant, safe_factor, within, year_limits
from rules.refusal import NotSupported
from rules.values import domain, interval_arithmetic, value
from rules.values.clocks import find_bins
from rules.values.domain import Domain, Range
from rules.values.enforced import Sure
from rules.values.expression import Apply, Constant, Expression, Operand, null_of
from rules.values.types import FLOAT8, INTERVAL, TIMESTAMP, SpanForm, Type
from rules.values.value import DAY, Span

LISTED = 10_000  # bins that are counted out
_NAME = "spans"
_BINNED = {"hour": ("minute", 60_000_000), "minute": ("second", 1_000_000)}  # truncated to -> what of it is counted
_FAR = Fraction(4_000_000 * DAY)  # more than there is between the years 1 and 9999
_CLOCK = {"hour": 23, "minute": 59, "second": 60}
_NEAR = Fraction(400_000 * DAY)  # a thousand years
# What makes an interval -> what its fields can be: days of hours, and of an age months and years of days.
_LIMITS = {
    "-": {"epoch": 10**12, "day": 4_000_000, **_CLOCK},
    "age": {"epoch": 10**12, "year": 10_000, "decade": 1_000, "century": 100, "month": 11, "day": 31, **_CLOCK},
    "spans": {"epoch": 10**12},
}


def times(left: Operand, right: Operand, setting: EvalContext) -> Expression | None:
    """interval * n or n * interval; None when neither is an interval."""
    for span, count in ((left, right), (right, left)):
        if isinstance(span, Constant) and isinstance(span.value, Span):
            return _times(span, span.value, as_value(typed(count, setting, FLOAT8), setting))
    return None


def over(left: Operand, right: Operand, setting: EvalContext) -> Expression | None:
    """(x - y) / n of moments, by a constant that makes it no longer; None when it is no such interval.

    Other intervals may have months and days that are out of range once they are divided.
    """
    if not isinstance(left, Apply) or left.name != "-" or left.type.kind != "interval":
        return None
    divisor = as_value(typed(right, setting, FLOAT8), setting)
    number = divisor.value if isinstance(divisor, Constant) else None
    if not isinstance(number, Fraction) or not 1 <= abs(number) <= _FAR:
        hint = "Divide by a constant of at least 1, or divide the seconds: extract(epoch FROM x) / n."
        raise NotSupported(
            "division of an interval over protected rows needs a constant divisor of at least 1", hint=hint
        )
    image = interval_arithmetic.multiply(domain.range_of(left.domain), Range(1 / number, 1 / number))
    low, high = (None if bound is None else bound + way for bound, way in ((image.low, -1), (image.high, 1)))
    return Apply("over", "({0} / {1}::double precision)", (left, divisor), INTERVAL, Range(low, high), left.nullable)


def _times(span: Constant, value: Span, count: Expression) -> Expression:
    """The number is held within its bounds by the text: elsewhere they may be a condition's.

    One that has none, or wider ones, is NULL where it leads further than from the first year to the last.
    """
    most = Fraction(_FAR // max(abs(value.days) * DAY + abs(value.microseconds), 1))
    is_far = isinstance(count, Constant) and isinstance(count.value, Fraction) and abs(count.value) > most
    if not count.type.is_number or value.months or is_far:
        message = "multiplication of an interval over protected rows needs an interval without months and a number"
        hint = "Use an interval of days, hours, minutes or seconds, and a number of them within the years 1 to 9999."
        raise NotSupported(message, hint=hint)
    known = domain.range_of(domain.intersect(domain.range_of(count.domain), Range(-most, most)))
    assert known.low is not None and known.high is not None, "it is within a range that has both"
    held = count if count.sure.is_within(known.low, known.high) else within(count, known.low, known.high)
    factor = as_double(held)
    return Apply(_NAME, "({0} * {1}::double precision)", (span, factor), INTERVAL, domain.ANYTHING, factor.nullable)


def moved_by_times(expression: Expression, span: Expression, name: str, setting: EvalContext) -> Expression | None:
    """moment ± interval * n, inside of the years 1 to 9999; None for an interval of another kind."""
    if not isinstance(span, Apply) or span.name != _NAME:
        return None
    start = cast_to(expression, TIMESTAMP, setting) if expression.type.kind == "date" else expression
    first, last = year_limits(start.type)
    start = _inside(start, span, name)
    image = (
        _bins(start, span, name, setting)
        or _sums(start, span, name)
        or interval_arithmetic.add(domain.range_of(start.domain), _steps(span, name))
    )
    nullable = start.nullable or span.nullable
    held = Sure(first, last)
    return Apply("shift", f"({{0}} {name} {{1}})", (start, span), start.type.plain(), image, nullable, held)


def _inside(start: Expression, span: Apply, name: str) -> Expression:
    """The moment, or NULL where it could be moved out of the years 1 to 9999.

    By the bounds of the number, if they leave room for nearly all years; else by the number itself.
    """
    steps, (first, last) = _surely_by(span, name), year_limits(start.type)
    low, high = first + max(-steps.low, Fraction(0)), last - max(steps.high, Fraction(0))
    value, count = _parts(span)
    if start.sure.is_within(low, high):
        return start
    if max(low - first, last - high) <= _NEAR:
        return within(start, low, high)
    ways = (Fraction(value.days * DAY), _length(value))  # days come first, and the clock's part may lead back again
    seconds = (constant(limit / 1_000_000, FLOAT8) for limit in (first + 2 * DAY, last - 2 * DAY, *ways))
    moved = f"extract(epoch FROM {{0}})::float8 {name} {{1}} *"
    sql = f"CASE WHEN {moved} {{4}} BETWEEN {{2}} AND {{3}} AND {moved} {{5}} BETWEEN {{2}} AND {{3}} THEN {{0}} END"
    held = (within(start, first, last), safe_factor(count), *seconds)
    return Apply("within", sql, held, start.type, held[0].domain, held=Sure(first, last), passes=True)


@frozen
class _By:
    """The least and the most by which a moment is moved, in microseconds."""

    low: Fraction
    high: Fraction


def _surely_by(span: Apply, name: str) -> _By:
    """By what is sure of the number: days come first and the clock's part after them, which may lead back again."""
    value, count = _parts(span)
    low, high = count.sure.low, count.sure.high
    assert low is not None and high is not None, "the number is held"
    sign = 1 if name == "+" else -1
    ends = [way * bound * sign for way in (value.days * DAY, _length(value)) for bound in (low, high)]
    slack = 2 * DAY + max(map(abs, ends)) / 10**9
    return _By(min(ends) - slack, max(ends) + slack)


def _parts(span: Apply) -> tuple[Span, Expression]:
    constant, count = span.arguments
    assert isinstance(constant, Constant) and isinstance(constant.value, Span)
    return constant.value, count


def _length(value: Span) -> Fraction:
    return Fraction(value.days * DAY + value.microseconds)


def _steps(span: Apply, name: str) -> Range:
    """Return by how many microseconds it moves a moment; a day is some hours longer or shorter where clocks change."""
    value, count = _parts(span)
    counted = domain.range_of(count.domain)
    product = interval_arithmetic.multiply(counted, Range(_length(value), _length(value)))
    moved = product if name == "+" else interval_arithmetic.negate(product)
    reach = interval_arithmetic.absolute(moved).high or Fraction(0)
    slack = Fraction(DAY if value.days else 1 + reach / 10**14)  # numbers are rounded to doubles
    low, high = moved.low, moved.high
    return Range(None if low is None else low - slack, None if high is None else high + slack)


def _bins(start: Expression, span: Apply, name: str, setting: EvalContext) -> Domain | None:
    """All bins that the moment's own bounds reach, when truncation and number are of the same moment."""
    value, count = _parts(span)
    if isinstance(start, Apply) and start.name == "within":
        start = start.arguments[0]
    field = _truncated_to(start)
    if field not in _BINNED or name != "+" or value.days:
        return None
    part, unit = _BINNED[field]
    size, (moment,) = value.microseconds, start.arguments if isinstance(start, Apply) else ()
    if size <= 0 or (60 * unit) % size or not _is_counted(count, part, moment, Fraction(size, unit)):
        return None
    image = domain.range_of(moment.domain)
    if image.low is None or image.high is None:
        return None
    zone = setting.time_zone if start.type.kind == "timestamptz" else "UTC"
    starts = find_bins(int(image.low), int(image.high), size, zone, LISTED)
    return None if starts is None else domain.values(map(Fraction, starts))


def _truncated_to(start: Expression) -> str:
    """The field of date_trunc, in the session's zone if in any."""
    match start:
        case Apply(name="date_trunc", sql=sql, arguments=(_,)):
            return sql.split("'")[1]
    return ""


def _is_counted(count: Expression, part: str, moment: Expression, number: Fraction) -> bool:
    """floor(extract(part FROM moment) / each), as a double."""
    match _unguarded(count):
        case Apply(name="floor", arguments=(Apply(name="/", arguments=(counted, Constant(value=divisor))),)):
            counted = _unguarded(counted)
            return (
                isinstance(counted, Apply)
                and counted.sql.startswith(f"extract({part} from")
                and counted.arguments == (moment,)
                and divisor == number
            )
    return False


def _unguarded(expression: Expression) -> Expression:
    """Without guards and casts around it, which are for values that it does not have."""
    while isinstance(expression, Apply) and expression.name in ("double", "cast", "within"):
        expression = expression.arguments[0]
    return expression


def _sums(start: Expression, span: Apply, name: str) -> Domain | None:
    """Each moment of a short list moved by each number of one."""
    value, count = _parts(span)
    if value.days and start.type.kind == "timestamptz":
        return None
    starts, counts = (domain.items_of(argument.domain, LISTED) for argument in (start, count))
    if not starts or not counts or len(starts) * len(counts) > LISTED:
        return None
    length = _length(value) if name == "+" else -_length(value)
    moves = [number * length for number in counts if isinstance(number, Fraction)]
    if any(move.denominator != 1 for move in moves):
        return None
    return domain.values(moment + move for moment in starts if isinstance(moment, Fraction) for move in moves)


def part_of_span(field: str, expression: Expression, result: Type) -> Expression:
    """extract(field FROM x - y) and of age(x, y)."""
    if field == "epoch" and isinstance(expression, Apply) and expression.name in ("case", "coalesce"):
        return _of_branches(expression, result)
    limit = _LIMITS.get(expression.name, {}).get(field) if isinstance(expression, Apply) else None
    if field == "epoch" and limit is None and expression.type.kind == "interval":
        return _seconds(expression, result)
    if limit is None or not isinstance(expression, Apply):
        raise NotSupported(
            f"extract({field} from interval) is not supported", hint="Use extract(epoch FROM x) and divide it."
        )
    step = Fraction(1, 10**6) if field in ("epoch", "second") else Fraction(1)
    whole = Range(Fraction(-limit), Fraction(limit), step)
    image = _years(expression) or whole if (expression.name, field) == ("age", "year") else whole
    if field in _MICROSECONDS.get(expression.name, {}):
        image = _within(whole, expression, _MICROSECONDS[expression.name][field])
    return Apply(
        "extract", f"extract({field} from {{0}})::{result.sql}", (expression,), result, image, expression.nullable
    )


def results_of(chosen: Apply) -> tuple[int, ...]:
    """The places of what CASE and coalesce give; the others are conditions."""
    last = len(chosen.arguments) - 1
    return tuple(range(last + 1)) if chosen.name == "coalesce" else (*range(1, last, 2), last)


def _of_branches(chosen: Apply, result: Type) -> Expression:
    """The seconds of whichever interval is chosen: each branch has bounds of its own."""
    arguments = list(chosen.arguments)
    image: Domain = domain.values(())
    for place in results_of(chosen):
        arguments[place] = seconds_of(arguments[place], result)
        image = domain.union(image, arguments[place].domain)
    return Apply(chosen.name, chosen.sql, tuple(arguments), result, image, chosen.nullable, strict=False)


def seconds_of(branch: Expression, result: Type) -> Expression:
    match branch:
        case Constant(text=None):
            return null_of(result)
        case Constant(value=Span(months=0, days=days, microseconds=microseconds)):
            return constant(Fraction(days * DAY + microseconds, 1_000_000), result)
    return part_of_span("epoch", branch, result)


def shown_by(span: Expression) -> SpanForm:
    """Tell how PostgreSQL shows them: moments lie days apart, ages are months and days, others are kept."""
    if not isinstance(span, Apply):
        return ""
    if span.name in ("case", "coalesce"):
        forms = {shown_by(span.arguments[place]) for place in results_of(span)}
        return "months" if "months" in forms else "days" if "days" in forms else ""
    return "days" if span.name == "-" else "months" if span.name == "age" else ""


_MICROSECONDS = {"-": {"epoch": 1_000_000, "day": DAY}, "age": {"epoch": 1_000_000}}


def _within(whole: Range, span: Expression, unit: int) -> Range:
    """Bound a part of a span by the bounds of the span, in microseconds; parts are cut towards zero, or rounded."""
    image = domain.range_of(span.domain)
    low = whole.low if image.low is None else Fraction(floor(image.low / unit))
    high = whole.high if image.high is None else Fraction(ceil(image.high / unit))
    return Range(low, high, whole.step)


def _seconds(expression: Expression, result: Type) -> Expression:
    """Of a column, whose intervals may be endless: more seconds than there are in a calendar are NULL."""
    limit, step = _LIMITS["-"]["epoch"], Fraction(1, 10**6)
    part = "extract(epoch from {0})"
    sql = f"CASE WHEN {part} BETWEEN -{limit} AND {limit} THEN {part}::{result.sql} END"
    image = _within(Range(Fraction(-limit), Fraction(limit), step), expression, _MICROSECONDS["-"]["epoch"])
    return Apply("extract", sql, (expression,), result, image, nullable=True)


def _years(age: Apply) -> Range | None:
    """The whole years of an age whose moments have bounds; they are cut towards zero."""
    later, earlier = (domain.range_of(argument.domain) for argument in age.arguments)
    low, high = _between(later.low, earlier.high, -DAY), _between(later.high, earlier.low, DAY)
    if low is None or high is None:
        return None
    return Range(low - (1 if low > 0 else 0), high + (1 if high < 0 else 0), domain.ONE)


def _between(later: Fraction | None, earlier: Fraction | None, slack: int) -> Fraction | None:
    """By the calendar, with the room that clocks need which are told in a zone and put forward and back."""
    if later is None or earlier is None:
        return None
    first, last = int(earlier) - slack, int(later) + slack
    if not value.is_dated(first) or not value.is_dated(last):
        return None
    return Fraction(value.moment_at(last).year - value.moment_at(first).year)
