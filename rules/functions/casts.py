"""Explicit casts: those that no value can make fail, or NULL where it would."""

import math
from collections.abc import Callable
from fractions import Fraction

from rules.frozen import replace
from rules.functions.coerce import literal
from rules.functions.function import EvalContext, Needed, Operands, function
from rules.functions.guard import LONGEST_TEXT, as_double, as_passed, as_value, within
from rules.functions.text.text_casts import LONGEST_NAME, MOST_ITEMS, as_text, cut_to, find_in_document, find_read
from rules.refusal import NotSupported
from rules.values import domain, value
from rules.values.domain import ANYTHING, Domain, Range, Values
from rules.values.enforced import UNSURE, Sure, of_type
from rules.values.expression import Apply, Constant, Expression, Literal, Operand
from rules.values.types import DATE, FLOAT4, FLOAT8, TIMESTAMP, WIDTHS, Type, find_type, integer_range
from rules.values.value import DAY, round_half_away

_HELD_DIGITS = 20  # of the bounds of what was a double
_SECOND = 1_000_000  # microseconds
_FURTHEST_ZONE = 8 * DAY  # from UTC: PostgreSQL reads no zone that is a week away


def cast(operand: Operand, written: str, setting: EvalContext) -> Expression:
    """`operand::written`."""
    target = find_type(written)
    if target is None:
        hint = "Cast to a type such as text or numeric, or cast the aggregated result."
        raise NotSupported(f"a cast to {written} is not supported over protected rows", hint=hint)
    return cast_to(operand, target, setting)


def cast_to(operand: Operand, target: Type, setting: EvalContext) -> Expression:
    if isinstance(operand, Literal):
        _check_target(target, setting)
        constant = literal(operand.text, target, setting)
        if target.base == "name" and len(operand.text.encode()) >= LONGEST_NAME:
            raise NotSupported(f"'{operand.text[:60]}' is longer than a name", hint="Cast it to text.")
        if target.kind == "text":
            return Constant(target, cut_to(operand.text, target), cut_to(operand.text, target))
        return replace(constant, type=target) if target.size is not None else constant
    if isinstance(operand, Constant) and operand.text is None:
        return Constant(target, None)
    if isinstance(operand, Constant) and operand.type.kind == "text" and target.kind not in ("text", "enum"):
        # A text that is cast: its styles are those of the execution, which the twin is asked for where they are all.
        try:
            return literal(operand.text, target, setting.of_execution())
        except Needed:
            if setting.parsed_under is None:
                raise
        words = f"a text cast to {target.sql} in a statement that was prepared under other settings is not supported"
        raise NotSupported(words, hint="Prepare the statement again, after SET.")
    _check_target(target, setting)
    if operand.type == target or (operand.type.base == target.base and target.size is None and not target.name):
        return replace(operand, type=target) if isinstance(operand, Constant) else operand
    return _cast(as_value(operand, setting) if target.kind != "text" else as_passed(operand, setting), target, setting)


def _check_target(target: Type, setting: EvalContext) -> None:
    """Refuse types that the real database does not have, and those whose values are all too long."""
    if target.base == "bpchar" and (target.size or 0) > LONGEST_TEXT:
        raise NotSupported(f"a cast to {target.sql} is not supported over protected rows", hint="Cast it to text.")
    is_usual = target.size is None or 0 <= (target.scale or 0) <= target.size
    if target.base == "numeric" and not is_usual and setting.server_version < 150000:
        raise NotSupported(f"{target.sql} needs PostgreSQL 15 or newer, and the real database is older")


def _cast(expression: Expression, target: Type, setting: EvalContext) -> Expression:
    match expression.type.kind, target.kind:
        case (("integer" | "numeric" | "float"), ("integer" | "numeric" | "float")):
            return _number(expression, target)
        case ("boolean", "integer") if target.base == "int4":
            return _apply(expression, target, Values((Fraction(0), Fraction(1))))
        case (("date" | "timestamp" | "timestamptz"), ("date" | "timestamp" | "timestamptz")):
            return _moment(expression, target, setting)
        case (("timestamp" | "timestamptz"), "time"):
            return _time_of_day(expression, target, setting)
        case "other", _ if (in_document := find_in_document(expression, target)) is not None:
            return cast_to(in_document, target, setting)
        case "text", _ if (read := find_read(expression, target)) is not None:
            return cast_to(read, target, setting)
        case _, "text" if expression.type.kind not in ("other", "interval", "unknown"):
            return as_text(expression, target, setting)
    message = f"a cast from {expression.type.sql} to {target.sql} could fail on some rows, so it is not supported"
    hint = "Ask your DBA to store the value in a column of that type."
    if expression.type.kind == "unknown":
        hint = f"Write the type of NULL, as in NULL::{target.sql}."
    raise NotSupported(message, hint=hint)


def _apply(
    expression: Expression, target: Type, image: Domain, *, nullable: bool | None = None, held: Sure = UNSURE
) -> Apply:  # fmt: skip
    may_be_null = expression.nullable if nullable is None else nullable
    return Apply("cast", f"({{0}})::{target.sql}", (expression,), target, image, may_be_null, held)


def _number(expression: Expression, target: Type) -> Expression:
    image = domain.range_of(expression.domain)
    if target.kind == "integer":
        return _integer(expression, target)
    if target.kind == "float":
        return _double(as_double(expression), target)
    if target.scale is None:
        if expression.type.kind == "float":
            return _held(expression, target, _outward(image, 14))  # rounded to 15 digits
        return _apply(
            expression, target, expression.domain if image.step else Range(image.low, image.high), held=expression.sure
        )
    assert target.size is not None
    return _scaled(expression, target, Fraction(10) ** -target.scale, target.size)


def _double(expression: Expression, target: Type) -> Expression:
    """real holds less than double precision does, at both ends."""
    image = domain.range_of(expression.domain)
    if target.base == "float8":
        return _apply(
            expression, target, Range(image.low, image.high), held=Sure(expression.sure.low, expression.sure.high)
        )
    return real(expression)


def real(expression: Expression, *, is_tiny: bool = True) -> Expression:
    """A double or integer as a real: NULL beyond the largest, zero below the least, if anything can lie there."""
    if expression.type.kind == "integer":
        return _apply(expression, FLOAT4, _outward(domain.range_of(expression.domain), 6))
    sql = "({0} * CASE WHEN abs({0}) > 3.4e38 THEN NULL WHEN abs({0}) >= 1e-45 THEN 1 ELSE 0 END)::real"
    if not is_tiny:
        sql = "nullif(nullif(least(greatest({0}, -3.4e38), 3.4e38), -3.4e38), 3.4e38)::real"
    limit = Fraction(10) ** 39
    image = domain.intersect(_outward(domain.range_of(expression.domain), 6), Range(-limit, limit))
    return Apply("cast", sql, (expression,), FLOAT4, image, nullable=True)


def _outward(bounds: Range, digits: int) -> Range:
    """Return what a range becomes when its values are rounded to so many digits and one more."""
    slack = Fraction(1, 10**digits)
    low = None if bounds.low is None else bounds.low - abs(bounds.low) * slack
    return Range(low, None if bounds.high is None else bounds.high + abs(bounds.high) * slack)


def _scaled(expression: Expression, target: Type, step: Fraction, precision: int) -> Expression:
    """numeric(p, s) fails above 10^(p-s): a value that would round up to it is NULL."""
    largest = step * (10**precision - 1)
    fitting = _fitting(expression, Range(-largest, largest))
    scaled = domain.range_of(fitting.domain)
    image = Range(_to_step(scaled.low, step), _to_step(scaled.high, step), step)
    if expression.type.kind == "float":
        return _held(fitting, target, image)
    return _apply(fitting, target, image, nullable=fitting.nullable, held=of_type(target))


def _to_step(bound: Fraction | None, step: Fraction) -> Fraction | None:
    return None if bound is None else step * round_half_away(bound / step)


def _integer(expression: Expression, target: Type) -> Expression:
    first, last = integer_range(target.base)
    if expression.type.kind == "integer" and WIDTHS[expression.type.base] <= WIDTHS[target.base]:
        return _apply(expression, target, expression.domain, held=expression.sure)
    limits = Range(Fraction(first), Fraction(last))
    fitting = _fitting(expression, limits)
    rounded = domain.range_of(fitting.domain)
    if expression.type.kind == "float":  # a double rounds ties to even, a numeric away from zero
        near = _outward(rounded, 14)
        low, high = (None if bound is None else Fraction(round(bound)) for bound in (near.low, near.high))
        return _held(fitting, target, domain.range_of(domain.intersect(Range(low, high, domain.ONE), limits)))
    low, high = (_to_step(bound, domain.ONE) for bound in (rounded.low, rounded.high))
    image = fitting.domain if expression.type.kind == "integer" else Range(low, high, domain.ONE)
    low, high = (_to_step(bound, domain.ONE) for bound in (fitting.sure.low, fitting.sure.high))
    return _apply(fitting, target, image, nullable=fitting.nullable, held=Sure(low, high, 0))


def _held(expression: Expression, target: Type, image: Range) -> Expression:
    """A double as another number, held within what is known of it: where doubles are rounded, more than that can be.

    0.7 is less than seven tenths, and five times as much is 3.5, which is rounded up; (x + 1e16) - 1e16 is anything.
    """
    low = None if image.low is None else _outer(image.low, math.floor)
    high = None if image.high is None else _outer(image.high, math.ceil)
    sql = f"({{0}})::{target.sql}"
    sql = sql if low is None else f"greatest({sql}, '{value.decimal_text(low)}'::{target.sql})"
    sql = sql if high is None else f"least({sql}, '{value.decimal_text(high)}'::{target.sql})"
    text = f"CASE WHEN {{0}} IS NOT NULL THEN {sql} END"
    held = Sure(low, high) if low is None or high is None or low <= high else UNSURE
    return Apply("cast", text, (expression,), target, Range(low, high, image.step), expression.nullable, held)


def _outer(bound: Fraction, move: Callable[[Fraction], int]) -> Fraction:
    """A bound of few digits that is not nearer."""
    scale = Fraction(10) ** (_HELD_DIGITS - len(str(int(abs(bound)))))
    return Fraction(move(bound * scale)) / scale


def _fitting(expression: Expression, limits: Range) -> Expression:
    """The value where it fits, looked at unless it surely does. A double is nowhere exact, so it always is."""
    assert limits.low is not None and limits.high is not None
    if expression.type.kind == "float":
        inward = Fraction(999_999, 1_000_000)  # the double next to a limit may lie beyond it
        return within(expression, limits.low * inward, limits.high * inward)
    if expression.sure.is_within(limits.low, limits.high):
        return expression
    return within(expression, limits.low, limits.high)


def _moment(expression: Expression, target: Type, setting: EvalContext) -> Expression:
    pure = "timestamptz" not in (expression.type.kind, target.kind)

    def image(item: Fraction) -> Fraction | None:
        if pure:
            local: int | None = int(item) * DAY if expression.type.kind == "date" else int(item)
        elif expression.type.kind == "timestamptz":
            local = value.to_local(int(item), setting.time_zone)
        else:
            naive = int(item) * DAY if expression.type.kind == "date" else int(item)
            local = value.to_instant(naive, setting.time_zone)
        if local is None:
            return None
        return Fraction(local // DAY if target.kind == "date" else local)

    held = _surely_moved(expression, target, is_pure=pure)
    days = domain.range_of(expression.domain)
    items = domain.items_of(expression.domain, MOST_ITEMS) if target.size is None else None
    moved = [image(item) for item in items if isinstance(item, Fraction)] if items is not None else []
    known = [moment for moment in moved if moment is not None]
    if items is not None and len(known) == len(items):
        return _apply(expression, target, domain.values(known), held=held)
    low, high = (None if bound is None else image(bound) for bound in (days.low, days.high))
    step = Fraction(1) if target.kind == "date" else None
    if days.low is None or days.high is None or low is None or high is None:
        return _apply(expression, target, Range(None, None, step), held=held)
    rounded = 0 if target.size is None else _SECOND
    if pure:
        return _apply(expression, target, Range(low - rounded, high + rounded, step), held=held)
    scale = DAY if expression.type.kind == "date" else 1
    before, after = (value.unevenness(int(bound) * scale, setting.time_zone) for bound in (days.low, days.high))
    if target.kind == "date":
        before, after = -(-before // DAY), -(-after // DAY)
    return _apply(expression, target, Range(low - before - rounded, high + after + rounded, step), held=held)


def _surely_moved(expression: Expression, target: Type, *, is_pure: bool) -> Sure:
    """A time zone moves a moment by less than some days, and rounding by less than a second."""
    scale, slack = DAY if expression.type.kind == "date" else 1, _SECOND if is_pure else _FURTHEST_ZONE
    unit = DAY if target.kind == "date" else 1
    low, high = expression.sure.low, expression.sure.high
    return Sure(
        None if low is None else Fraction(math.floor((low * scale - slack) / unit)),
        None if high is None else Fraction(math.ceil((high * scale + slack) / unit)),
    )


def _time_of_day(expression: Expression, target: Type, setting: EvalContext) -> Expression:
    """Return what the clock shows; of moments that are listed, as hours are, the times are listed too."""
    zone = setting.time_zone if expression.type.kind == "timestamptz" else None
    items = [item for item in domain.items_of(expression.domain, MOST_ITEMS) or () if isinstance(item, Fraction)]
    local = [int(item) if zone is None else value.to_local(int(item), zone) for item in items]
    texts = [value.text_of(Fraction(second), TIMESTAMP) for second in local if second is not None]
    known = [text.partition(" ")[2] for text in texts if text is not None]
    return _apply(expression, target, domain.values(known) if known and len(known) == len(items) else ANYTHING)


@function("date", arguments=1, examples="date(tz) | date(ts)")
def to_date(operands: Operands, setting: EvalContext) -> Expression:
    return cast_to(operands[0], DATE, setting)


@function("float8", arguments=1, examples="float8(n) | float8(i8)")
def to_double(operands: Operands, setting: EvalContext) -> Expression:
    return cast_to(operands[0], FLOAT8, setting)
