"""Moments moved by days and intervals, and the differences of moments: never out of the years 1 to 9999."""

from collections.abc import Callable
from fractions import Fraction

from rules.refusal import NotSupported
from rules.relation import domain, image, value
from rules.relation.domain import Domain, Range
from rules.relation.expression import Apply, Constant, Expression, Literal, Operand
from rules.relation.functions.cast import cast_to
from rules.relation.functions.coerce import typed
from rules.relation.functions.guard import Setting, as_value, within, year_limits
from rules.relation.functions.spans import moved_by_times
from rules.relation.types import DATE, INT4, INTERVAL, TIMESTAMP, TIMESTAMPTZ, Type
from rules.relation.value import DAY, Span

LIMIT = 10_000  # values of a finite domain that are followed one by one


def shifted(name: str, left: Operand, right: Operand, setting: Setting) -> Expression | None:
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


def _pair(name: str, left: Operand, right: Operand, setting: Setting) -> tuple[Expression, Expression]:
    """x + '1 day' adds an interval, x - '2024-01-01' takes the difference: so PostgreSQL reads open literals."""
    first = typed(left, setting, _other_of(right))
    moved = name == "+" and first.type.is_time
    second = typed(right, setting, INTERVAL if moved else _other_of(first))
    return as_value(first, setting), as_value(second, setting)


def _other_of(operand: Operand) -> Type:
    """What an open literal beside this operand is read as."""
    if isinstance(operand, Literal):
        return INTERVAL
    return operand.type if operand.type.is_time else TIMESTAMPTZ if operand.type.kind == "interval" else operand.type


def _by_span(given: Expression, span: Expression, name: str, setting: Setting) -> Expression:
    if (moved := moved_by_times(given, span, name, setting)) is not None:
        return moved
    if not isinstance(span, Constant) or not isinstance(span.value, Span):
        raise NotSupported("an interval that differs from row to row is not supported")
    kind = given.type.kind
    result = TIMESTAMP if kind == "date" else given.type.plain()
    move = span.value if name == "+" else span.value.negated()
    zone = setting.time_zone if kind == "timestamptz" else None
    inside = _inside(given, move)
    image = _moved(inside.domain, move, zone, days=kind == "date")
    return Apply("shift", f"({{0}} {name} {{1}})", (inside, span), result, image, inside.nullable)


def _inside(given: Expression, move: Span) -> Expression:
    """So far from years 1 and 9999 that the sum is inside them too."""
    reach = Fraction(abs(move.months) * 31 + abs(move.days) + abs(move.microseconds) // DAY + 2)
    if given.type.kind != "date":
        reach *= DAY
    first, last = year_limits(given.type)
    if domain.is_within(domain.range_of(given.domain), Range(first + reach, last - reach)):
        return given
    return within(given, first + reach, last - reach)


def _moved(given: Domain, move: Span, zone: str | None, *, days: bool) -> Domain:
    def image(item: Fraction) -> Fraction | None:
        local = int(item) * DAY if days else int(item) if zone is None else value.to_local(int(item), zone)
        moved = None if local is None else value.add_span(local, Span(move.months, move.days))
        instant = moved if moved is None or zone is None else value.to_instant(moved, zone)
        return None if instant is None else Fraction(instant + move.microseconds)

    def slack(bound: Fraction) -> int:
        ends = (bound, image(bound))
        return 0 if zone is None else max(value.unevenness(int(end), zone) for end in ends if end is not None)

    return mapped(given, image, slack)


def mapped(given: Domain, image: Callable[[Fraction], Fraction | None], slack: Callable[[Fraction], int]) -> Domain:
    """The image of a finite domain one by one, of a range by its ends, and how far others may lie beyond these."""
    items = domain.items_of(given, LIMIT)
    if items is not None:
        moved = [image(item) for item in items if isinstance(item, Fraction)]
        if None not in moved:
            return domain.values(each for each in moved if each is not None)
    found = domain.range_of(given)
    low = None if found.low is None or (end := image(found.low)) is None else end - slack(found.low)
    high = None if found.high is None or (end := image(found.high)) is None else end + slack(found.high)
    return Range(low, high)


def _by_days(given: Expression, days: Expression, name: str) -> Expression:
    first, last = year_limits(DATE)
    fitting = within(days, first - last, last - first) if not domain.is_within(
        domain.range_of(days.domain), Range(first - last, last - first)
    ) else days  # fmt: skip
    ranges = domain.range_of(given.domain), domain.range_of(fitting.domain)
    moved = image.add(ranges[0], ranges[1] if name == "+" else image.negate(ranges[1]))
    found = Range(moved.low, moved.high, Fraction(1))
    plain = Apply("shift", f"({{0}} {name} {{1}})", (given, fitting), DATE, found, given.nullable or fitting.nullable)
    return plain if domain.is_within(found, Range(first, last)) else within(plain, first, last)


def _difference(first: Expression, second: Expression, setting: Setting) -> Expression:
    nullable = first.nullable or second.nullable
    if first.type.kind == second.type.kind == "date":
        ranges = domain.range_of(first.domain), domain.range_of(second.domain)
        found = image.add(ranges[0], image.negate(ranges[1]))
        return Apply("-", "({0} - {1})", (first, second), INT4, Range(found.low, found.high, Fraction(1)), nullable)
    target = TIMESTAMPTZ if "timestamptz" in (first.type.kind, second.type.kind) else TIMESTAMP
    both = tuple(each if each.type.kind == target.kind else cast_to(each, target, setting) for each in (first, second))
    return Apply("-", "({0} - {1})", both, INTERVAL, domain.ANYTHING, nullable)
