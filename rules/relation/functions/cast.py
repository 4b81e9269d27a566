"""Explicit casts: those that no value can make fail, or NULL where it would."""

import math
from collections.abc import Callable
from fractions import Fraction

from rules.refusal import NotSupported
from rules.relation import domain, value
from rules.relation.domain import ANYTHING, Domain, Range, Values
from rules.relation.expression import Apply, Constant, Expression, Literal, Operand
from rules.relation.functions.coerce import literal
from rules.relation.functions.guard import Setting, as_double, as_passed, as_value, within
from rules.relation.functions.reading import find_in_document, find_read
from rules.relation.types import TIMESTAMP, WIDTHS, Type, find_type, integer_range
from rules.relation.value import DAY, round_half_away

_LONGEST_NAME = 64  # bytes, with the one that ends it
_HELD_DIGITS = 20  # of the bounds of what was a double
_LIMIT = 10_000  # values of a finite domain that are carried through a cast one by one


def cast(operand: Operand, written: str, setting: Setting) -> Expression:
    """`operand::written`."""
    target = find_type(written)
    if target is None:
        raise NotSupported(f"a cast to {written} is not supported over protected rows")
    return cast_to(operand, target, setting)


def cast_to(operand: Operand, target: Type, setting: Setting) -> Expression:
    if isinstance(operand, Literal):
        return _literal(operand.text, target, setting)
    if isinstance(operand, Constant) and operand.text is None:
        return Constant(target, None)
    if isinstance(operand, Constant) and operand.type.kind == "text" and target.kind not in ("text", "enum"):
        return literal(operand.text, target, setting)
    if operand.type == target or (operand.type.base == target.base and target.size is None and not target.name):
        return operand
    return _cast(as_value(operand, setting) if target.kind != "text" else as_passed(operand, setting), target, setting)


def _literal(text: str, target: Type, setting: Setting) -> Expression:
    found = literal(text, target, setting)
    if target.kind == "text" and target.size is not None:
        return Constant(target, _cut(text, target), _cut(text, target))
    return found


def _cast(given: Expression, target: Type, setting: Setting) -> Expression:
    match given.type.kind, target.kind:
        case (("integer" | "numeric" | "float"), ("integer" | "numeric" | "float")):
            return _number(given, target)
        case ("boolean", "integer") if target.base == "int4":
            return _apply(given, target, Values((Fraction(0), Fraction(1))))
        case (("date" | "timestamp" | "timestamptz"), ("date" | "timestamp" | "timestamptz")):
            return _moment(given, target, setting)
        case (("timestamp" | "timestamptz"), "time"):
            return _time_of_day(given, target, setting)
        case "other", _ if (found := find_in_document(given, target)) is not None:
            return cast_to(found, target, setting)
        case "text", _ if (read := find_read(given, target)) is not None:
            return cast_to(read, target, setting)
        case _, "text" if given.type.kind not in ("other", "interval", "unknown"):
            return _text(given, target, setting)
    message = f"a cast from {given.type.sql} to {target.sql} could fail on some rows, so it is not supported"
    raise NotSupported(message, hint="A column of the right type has to hold the value.")


def _apply(given: Expression, target: Type, image: Domain, *, nullable: bool | None = None) -> Apply:
    may_be_null = given.nullable if nullable is None else nullable
    return Apply("cast", f"({{0}})::{target.sql}", (given,), target, image, may_be_null)


def _number(given: Expression, target: Type) -> Expression:
    found = domain.range_of(given.domain)
    if target.kind == "integer":
        return _integer(given, target)
    if target.kind == "float":
        return _double(as_double(given), target)
    if target.scale is None:
        if given.type.kind == "float":
            return _held(given, target, _outward(found, 14))  # rounded to 15 digits
        return _apply(given, target, given.domain if found.step else Range(found.low, found.high))
    assert target.size is not None
    return _scaled(given, target, Fraction(10) ** -target.scale, target.size)


def _double(given: Expression, target: Type) -> Expression:
    """real holds less than double precision does, at both ends."""
    found = domain.range_of(given.domain)
    if target.base == "float8":
        return _apply(given, target, Range(found.low, found.high))
    if given.type.kind == "integer":
        return _apply(given, target, _outward(found, 6))
    limit = Fraction(10) ** 37
    sql = "(CASE WHEN abs({0}) <= 1e37 THEN CASE WHEN abs({0}) >= 1e-37 THEN {0} ELSE 0 END END)::real"
    image = domain.intersect(_outward(found, 6), Range(-limit, limit))
    return Apply("cast", sql, (given,), target, image, nullable=True)


def _outward(given: Range, digits: int) -> Range:
    """What a range becomes when its values are rounded to so many digits and one more."""
    slack = Fraction(1, 10**digits)
    low = None if given.low is None else given.low - abs(given.low) * slack
    return Range(low, None if given.high is None else given.high + abs(given.high) * slack)


def _scaled(given: Expression, target: Type, step: Fraction, precision: int) -> Expression:
    """numeric(p, s) fails above 10^(p-s): a value that would round up to it is NULL."""
    largest = step * (10**precision - 1)
    fitting = _kept(given, Range(-largest, largest))
    found = domain.range_of(fitting.domain)
    image = Range(_to_step(found.low, step), _to_step(found.high, step), step)
    if given.type.kind == "float":
        return _held(fitting, target, image)
    return _apply(fitting, target, image, nullable=fitting.nullable)


def _to_step(bound: Fraction | None, step: Fraction) -> Fraction | None:
    return None if bound is None else step * round_half_away(bound / step)


def _integer(given: Expression, target: Type) -> Expression:
    first, last = integer_range(target.base)
    if given.type.kind == "integer" and WIDTHS[given.type.base] <= WIDTHS[target.base]:
        return _apply(given, target, given.domain)
    limits = Range(Fraction(first), Fraction(last))
    fitting = _kept(given, limits)
    found = domain.range_of(fitting.domain)
    if given.type.kind == "float":  # a double rounds ties to even, a numeric away from zero
        near = _outward(found, 14)
        low, high = (None if bound is None else Fraction(round(bound)) for bound in (near.low, near.high))
        return _held(fitting, target, domain.range_of(domain.intersect(Range(low, high, domain.ONE), limits)))
    low, high = (_to_step(bound, domain.ONE) for bound in (found.low, found.high))
    image = given.domain if given.type.kind == "integer" else Range(low, high, domain.ONE)
    return _apply(fitting, target, image, nullable=fitting.nullable)


def _held(given: Expression, target: Type, found: Range) -> Expression:
    """A double as another number, held within what is known of it: where doubles are rounded, more than that can be.

    0.7 is less than seven tenths, and five times as much is 3.5, which is rounded up; (x + 1e16) - 1e16 is anything.
    """
    low = None if found.low is None else _outer(found.low, math.floor)
    high = None if found.high is None else _outer(found.high, math.ceil)
    sql = f"({{0}})::{target.sql}"
    sql = sql if low is None else f"greatest({sql}, '{value.decimal_text(low)}'::{target.sql})"
    sql = sql if high is None else f"least({sql}, '{value.decimal_text(high)}'::{target.sql})"
    held = f"CASE WHEN {{0}} IS NOT NULL THEN {sql} END"
    return Apply("cast", held, (given,), target, Range(low, high, found.step), given.nullable)


def _outer(bound: Fraction, move: Callable[[Fraction], int]) -> Fraction:
    """A bound of few digits that is not nearer."""
    scale = Fraction(10) ** (_HELD_DIGITS - len(str(int(abs(bound)))))
    return Fraction(move(bound * scale)) / scale


def _kept(given: Expression, limits: Range) -> Expression:
    """The value where it fits. What is known of a double is not exact, so it is always looked at."""
    assert limits.low is not None and limits.high is not None
    if given.type.kind == "float":
        inward = Fraction(999_999, 1_000_000)  # the double next to a limit may lie beyond it
        return within(given, limits.low * inward, limits.high * inward)
    if domain.is_within(domain.range_of(given.domain), limits):
        return given
    return within(given, limits.low, limits.high)


def _moment(given: Expression, target: Type, setting: Setting) -> Expression:
    pure = "timestamptz" not in (given.type.kind, target.kind)

    def image(item: Fraction) -> Fraction | None:
        if pure:
            local: int | None = int(item) * DAY if given.type.kind == "date" else int(item)
        elif given.type.kind == "timestamptz":
            local = value.to_local(int(item), setting.time_zone)
        else:
            naive = int(item) * DAY if given.type.kind == "date" else int(item)
            local = value.to_instant(naive, setting.time_zone)
        if local is None:
            return None
        return Fraction(local // DAY if target.kind == "date" else local)

    found = domain.range_of(given.domain)
    items = domain.items_of(given.domain, _LIMIT)
    moved = [image(item) for item in items if isinstance(item, Fraction)] if items is not None else []
    known = [each for each in moved if each is not None]
    if items is not None and len(known) == len(items):
        return _apply(given, target, domain.values(known))
    low, high = (None if bound is None else image(bound) for bound in (found.low, found.high))
    step = Fraction(1) if target.kind == "date" else None
    if found.low is None or found.high is None or low is None or high is None:
        return _apply(given, target, Range(None, None, step))
    if pure:
        return _apply(given, target, Range(low, high, step))
    scale = DAY if given.type.kind == "date" else 1
    before, after = (value.unevenness(int(bound) * scale, setting.time_zone) for bound in (found.low, found.high))
    if target.kind == "date":
        before, after = -(-before // DAY), -(-after // DAY)
    return _apply(given, target, Range(low - before, high + after, step))


def _time_of_day(given: Expression, target: Type, setting: Setting) -> Expression:
    """What the clock shows; of moments that are listed, as hours are, the times are listed too."""
    zone = setting.time_zone if given.type.kind == "timestamptz" else None
    items = [item for item in domain.items_of(given.domain, _LIMIT) or () if isinstance(item, Fraction)]
    local = [int(item) if zone is None else value.to_local(int(item), zone) for item in items]
    texts = [value.text_of(Fraction(each), TIMESTAMP) for each in local if each is not None]
    known = [text.partition(" ")[2] for text in texts if text is not None]
    return _apply(given, target, domain.values(known) if known and len(known) == len(items) else ANYTHING)


def _text(given: Expression, target: Type, setting: Setting) -> Expression:
    """Anything as text; varchar(n) cuts silently. The text of a timestamp with time zone is in the session's zone.

    A character(n) is its text without the blanks at the end, which PostgreSQL does not compare: 'a ' and 'a' are one.
    """
    if given.type.is_time and not setting.styles.date.startswith("ISO"):
        hint = "SET DateStyle = 'ISO', or write to_char(x, 'YYYY-MM-DD')."
        raise NotSupported("the text of a date over protected rows is that of DateStyle ISO", hint=hint)
    image: Domain = ANYTHING
    items = domain.items_of(given.domain, _LIMIT)
    if items is not None and given.type.kind != "float" and _prints_exactly(given):
        texts = [value.text_of(item, given.type, setting.time_zone) for item in items]
        known = [_cut(text, target) for text in texts if text is not None]
        image = domain.values(known) if len(known) == len(texts) and _are_whole(known, target) else ANYTHING
    if target.base != "bpchar":
        return _apply(given, target, image)
    sql = "rtrim(({0})::text, ' ')" if target.size is None else f"({{0}})::{target.sql}::text"
    return Apply("cast", sql, (given,), target, image, given.nullable)


def _cut(text: str, target: Type) -> str:
    """As varchar(n) and character(n) keep it. The blanks that fill up a character(n) are no part of it."""
    found = text if target.size is None else text[: target.size]
    return found.rstrip(" ") if target.base == "bpchar" else found


def _are_whole(texts: list[str], target: Type) -> bool:
    """Whether none is too long to be a name, which is cut by its bytes."""
    return target.base != "name" or all(len(text.encode()) < _LONGEST_NAME for text in texts)


def _prints_exactly(given: Expression) -> bool:
    """Whether the text of a value follows from the value: numeric keeps the zeros of each row."""
    is_part = isinstance(given, Apply) and given.name == "extract" and domain.range_of(given.domain).step == domain.ONE
    return given.type.kind != "numeric" or given.type.scale is not None or is_part
