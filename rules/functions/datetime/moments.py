"""Moments as operands, moved by days and intervals, and their differences: never out of the years 1 to 9999."""

from collections.abc import Callable
from fractions import Fraction
from functools import partial

from rules.functions.casts import cast_to
from rules.functions.coerce import literal, typed
from rules.functions.datetime.intervals import moved_by_times
from rules.functions.function import EvalContext
from rules.functions.guard import as_value, within, year_limits
from rules.refusal import NotSupported
from rules.values import domain, enforced, interval_arithmetic, value
from rules.values.domain import Domain, Range
from rules.values.enforced import Sure
from rules.values.expression import Apply, Constant, Expression, Literal, Operand
from rules.values.time_zones import note_name
from rules.values.types import DATE, INT4, INTERVAL, TEXT, TIMESTAMP, TIMESTAMPTZ, Type
from rules.values.value import DAY, Span

LIMIT = 10_000  # values of a finite domain that are followed one by one
_Move = Callable[[Fraction], Fraction | None]

_SPOKEN = {
    "years": "year", "months": "month", "days": "day", "hours": "hour", "minutes": "minute", "seconds": "second",
    "weeks": "week", "quarters": "quarter", "y": "year", "mon": "month", "mons": "month", "d": "day", "h": "hour",
    "m": "minute", "s": "second", "sec": "second", "min": "minute", "mins": "minute", "secs": "second",
    "decades": "decade", "centuries": "century", "millisecond": "milliseconds", "microsecond": "microseconds",
}  # fmt: skip


def moment(operand: Operand, setting: EvalContext, sql_type: Type = TIMESTAMPTZ) -> Expression:
    argument = as_value(typed(operand, setting, sql_type), setting)
    if not argument.type.is_time:
        raise NotSupported(f"the argument must be a date or timestamp, not {argument.type.sql}")
    return _dated(argument)


def _dated(expression: Expression) -> Expression:
    """Return what was computed may have left the calendar: the decade of the year 5 began in 1 BC."""
    first, last = year_limits(expression.type)
    if expression.type.kind != "timestamptz":  # whose first and last day have no text in every zone
        day = 1 if expression.type.kind == "date" else DAY
        first, last = first - day, last + 2 * day - 1
    if expression.sure.is_within(first, last):
        return expression
    return within(expression, first, last)


def constant_field(name: str, operand: Operand, setting: EvalContext) -> str:
    field = operand.text if isinstance(operand, Literal) else typed(operand, setting, TEXT)
    text = field.text if isinstance(field, Constant) else field
    if not isinstance(text, str):
        raise NotSupported(f"{name} needs a constant field, as in {name}('month', …)")
    plain = text.strip().lower()
    return _SPOKEN.get(plain, plain)


def constant_zone(operand: Operand, setting: EvalContext) -> Constant:
    zone = typed(operand, setting, TEXT)
    hint = "Use a constant time zone name, as in AT TIME ZONE 'Europe/Berlin'."
    if not isinstance(zone, Constant) or zone.text is None:
        raise NotSupported("AT TIME ZONE over protected rows needs a constant time zone name", hint=hint)
    if value.find_zone(zone.text) is None:
        raise NotSupported(f'time zone "{zone.text[:60]}" is not known over protected rows', hint=hint)
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
    constant = literal(instant, TIMESTAMPTZ, setting)
    if name == "current_date":
        return cast_to(constant, DATE, setting)
    return cast_to(constant, TIMESTAMP, setting) if name == "localtimestamp" else constant


def shifted(name: str, left: Operand, right: Operand, setting: EvalContext) -> Expression | None:
    """date ± days, moment ± interval, difference of two moments; None when the operands are no times."""
    first, second = _pair(name, left, right, setting)
    if name == "+" and not first.type.is_time and second.type.is_time:
        first, second = second, first
    if not first.type.is_time:
        return None
    if second.type.kind == "interval":
        return _by_span(first, second, name, setting)
    if second.type.base in ("int2", "int4") and first.type.kind == "date":
        return _by_days(first, as_value(second, setting), name)
    if second.type.is_time and name == "-":
        return _difference(first, second, setting)
    raise NotSupported(f"the operator {first.type.sql} {name} {second.type.sql} is not supported")


def _pair(name: str, left: Operand, right: Operand, setting: EvalContext) -> tuple[Expression, Expression]:
    """x + '1 day' adds an interval, x - '2024-01-01' takes the difference: so PostgreSQL reads open literals."""
    first = typed(left, setting, _other_of(right))
    moved = name == "+" and first.type.is_time
    second = typed(right, setting, INTERVAL if moved else _other_of(first))
    return as_value(first, setting), as_value(second, setting)


def _other_of(operand: Operand) -> Type:
    """Return the type as which an open literal beside this operand is read."""
    if isinstance(operand, Literal):
        return INTERVAL
    return operand.type if operand.type.is_time else TIMESTAMPTZ if operand.type.kind == "interval" else operand.type


def _by_span(expression: Expression, span: Expression, name: str, setting: EvalContext) -> Expression:
    if (moved := moved_by_times(expression, span, name, setting)) is not None:
        return moved
    if not isinstance(span, Constant) or not isinstance(span.value, Span):
        raise NotSupported("an interval that is not constant is not supported over protected rows")
    kind = expression.type.kind
    result = TIMESTAMP if kind == "date" else expression.type.plain()
    move = span.value if name == "+" else span.value.negated()
    zone = setting.time_zone if kind == "timestamptz" else None
    inside = _inside(expression, move)
    shifted = _moved(inside.domain, move, zone, days=kind == "date")
    reach, scale = _reach(move), DAY if kind == "date" else 1
    low, high = (None if bound is None else bound * scale for bound in (inside.sure.low, inside.sure.high))
    held = Sure(None if low is None else low - reach, None if high is None else high + reach)
    return Apply("shift", f"({{0}} {name} {{1}})", (inside, span), result, shifted, inside.nullable, held)


def _reach(move: Span) -> Fraction:
    """Microseconds that it moves a moment at most, with room for a clock that is put forward or back."""
    days = abs(move.months) * 31 + abs(move.days) + abs(move.microseconds) // DAY + 2
    return Fraction(days * DAY)


def _inside(expression: Expression, move: Span) -> Expression:
    """So far from years 1 and 9999 that the sum is inside them too."""
    reach = _reach(move) / (DAY if expression.type.kind == "date" else 1)
    first, last = year_limits(expression.type)
    if expression.sure.is_within(first + reach, last - reach):
        return expression
    return within(expression, first + reach, last - reach)


def _moved(known: Domain, move: Span, zone: str | None, *, days: bool) -> Domain:
    """Move moments: months keep the time of day, so that the last days of a month change their order.

    A month after Jan 30 23:00 is Feb 29 23:00, and a month after Jan 31 01:00 is Feb 29 01:00. Days stay in order.
    """

    def shifted(item: Fraction, side: int = 0) -> Fraction | None:
        local = int(item) * DAY if days else int(item) if zone is None else value.to_local(int(item), zone)
        moved = None if local is None else value.add_span(local, Span(move.months, move.days))
        if moved is not None and side and move.months:
            moved -= moved % DAY
            moved += DAY - 1 if side > 0 and not days else 0
        instant = moved if moved is None or zone is None else value.to_instant(moved, zone)
        return None if instant is None else Fraction(instant + move.microseconds)

    def slack(bound: Fraction) -> int:
        ends = (bound, shifted(bound, -1), shifted(bound, 1))
        return 0 if zone is None else max(value.unevenness(int(end), zone) for end in ends if end is not None)

    return mapped(known, shifted, slack, partial(shifted, side=-1), partial(shifted, side=1))


def mapped(
    known: Domain, move: _Move, slack: Callable[[Fraction], int], first: _Move | None = None, last: _Move | None = None
) -> Domain:
    """The image of a finite domain one by one, of a range by its ends, and how far others may lie beyond these.

    The ends may move by rules of their own.
    """
    items = domain.items_of(known, LIMIT)
    if items is not None:
        moved = [move(item) for item in items if isinstance(item, Fraction)]
        if None not in moved:
            return domain.values(moment for moment in moved if moment is not None)
    image = domain.range_of(known)
    low = None if image.low is None or (end := (first or move)(image.low)) is None else end - slack(image.low)
    high = None if image.high is None or (end := (last or move)(image.high)) is None else end + slack(image.high)
    return Range(low, high)


def _by_days(expression: Expression, days: Expression, name: str) -> Expression:
    """The sum is looked at as a number first: a date that is no date any more is an error."""
    first, last = year_limits(DATE)
    furthest = last - first
    fitting = days if days.sure.is_within(-furthest, furthest) else within(days, -furthest, furthest)
    ranges = domain.range_of(expression.domain), domain.range_of(fitting.domain)
    moved = interval_arithmetic.add(ranges[0], ranges[1] if name == "+" else interval_arithmetic.negate(ranges[1]))
    image = Range(moved.low, moved.high, Fraction(1))
    held = enforced.plus(expression.sure, fitting.sure if name == "+" else enforced.negated(fitting.sure))
    if held.is_within(first, last):
        nullable = expression.nullable or fitting.nullable
        return Apply("shift", f"({{0}} {name} {{1}})", (expression, fitting), DATE, image, nullable, held)
    number = f"(({{0}} - '1970-01-01'::date) {name} {{1}})"
    sql = f"CASE WHEN {number} BETWEEN {int(first)} AND {int(last)} THEN ({{0}} {name} {{1}}) END"
    limits = Range(first, last)
    nullable = expression.nullable or fitting.nullable or not domain.is_within(image, limits)
    held = enforced.between(held, first, last)
    return Apply("shift", sql, (expression, fitting), DATE, domain.intersect(image, limits), nullable, held)


def _difference(first: Expression, second: Expression, setting: EvalContext) -> Expression:
    nullable = first.nullable or second.nullable
    if first.type.kind == second.type.kind == "date":
        ranges = domain.range_of(first.domain), domain.range_of(second.domain)
        image = interval_arithmetic.add(ranges[0], interval_arithmetic.negate(ranges[1]))
        days = Range(image.low, image.high, Fraction(1))
        return Apply("-", "({0} - {1})", (first, second), INT4, days, nullable, enforced.minus(first.sure, second.sure))
    target = TIMESTAMPTZ if "timestamptz" in (first.type.kind, second.type.kind) else TIMESTAMP
    both = tuple(
        argument if argument.type.kind == target.kind else cast_to(argument, target, setting)
        for argument in (first, second)
    )
    ranges = domain.range_of(both[0].domain), domain.range_of(both[1].domain)
    image = interval_arithmetic.add(ranges[0], interval_arithmetic.negate(ranges[1]))
    return Apply("-", "({0} - {1})", both, INTERVAL, Range(image.low, image.high), nullable)
