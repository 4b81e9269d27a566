"""Frames of windows over one unit's rows: which rows around a row are looked at, and that no offset fails on any row.

An offset is a constant, so that it is wrong for all rows or for none. RANGE adds it to what the rows are ordered by:
numbers are compared as numeric or double precision, which do not overflow there, and moments lie so far inside the
years 1 to 9999 that the sum is a moment too; others are NULL, as they are in all arithmetic of moments.
"""

import re
from dataclasses import dataclass
from fractions import Fraction

from rules.algebra.nodes import Order
from rules.bind.expression import Binding
from rules.functions.coerce import typed
from rules.functions.guard import within, year_limits
from rules.refusal import NotSupported
from rules.sql import syntax as s
from rules.values.expression import Apply, Constant, Expression
from rules.values.types import FLOAT8, INTERVAL, NUMERIC, Type
from rules.values.value import DAY, Span, decimal_text

_EDGE = r"UNBOUNDED PRECEDING|UNBOUNDED FOLLOWING|CURRENT ROW|\$ PRECEDING|\$ FOLLOWING"
_FRAME = re.compile(rf"(ROWS|RANGE|GROUPS) BETWEEN ({_EDGE}) AND ({_EDGE})(?: EXCLUDE (CURRENT ROW|GROUP|TIES))?")
_MOST_ROWS = 999_999_999
_NEAREST = Fraction(1, 10**300)  # and the inverse of the furthest: what is a double for certain
_FURTHEST = Span(12 * 2_000)  # of an offset: the years 1 to 9999 have room for it on both sides


@dataclass(frozen=True, slots=True)
class Frame:
    """Its text as the inner statement has it, and its parts: $ is an offset."""

    text: str = ""
    mode: str = "RANGE"
    start: str = "UNBOUNDED PRECEDING"
    end: str = "CURRENT ROW"
    without: str = ""  # what EXCLUDE leaves out

    @property
    def is_whole(self) -> bool:
        return (self.start, self.end) == ("UNBOUNDED PRECEDING", "UNBOUNDED FOLLOWING") and not self.without

    @property
    def is_never_empty(self) -> bool:
        """Tell whether every row's frame has the row itself: one that lies before or behind it is empty at an end."""
        return not (self.start.endswith("FOLLOWING") or self.end.endswith("PRECEDING") or self.without)

    @property
    def has_offset(self) -> bool:
        return "$" in self.start + self.end


def frame_of(over: s.Window, order: tuple[Order, ...], binding: Binding) -> tuple[Frame, tuple[Order, ...]]:
    """The frame, and the order in which its offsets can be added to every row's value."""
    if not over.frame:
        return Frame(), order
    match = _FRAME.fullmatch(over.frame)
    if match is None:
        raise NotSupported(f'the window frame "{over.frame}" is not supported over protected rows')
    frame = Frame("", match[1], match[2], match[3], match[4] or "")
    _check(frame, order)
    if frame.mode != "RANGE" or not frame.has_offset:
        offsets = tuple(_rows(offset, binding) for offset in over.offsets)
    else:
        offsets, order = _distances(over.offsets, order[0], binding)
    parts = over.frame.split("$")
    text = "".join(f"{part}{offset}" for part, offset in zip(parts, (*offsets, ""), strict=True))
    return Frame(text, *match.groups("")), order


def _check(frame: Frame, order: tuple[Order, ...]) -> None:
    if frame.mode == "ROWS" and frame.without in ("GROUP", "TIES"):
        message = f"EXCLUDE {frame.without} in a ROWS frame depends on the order of rows with equal ORDER BY values"
        raise NotSupported(message, hint="Use GROUPS or RANGE instead of ROWS, or EXCLUDE CURRENT ROW.")
    if frame.mode == "GROUPS" and not order:
        raise NotSupported("a GROUPS frame needs ORDER BY with a column", hint="Use ROWS instead of GROUPS.")
    if frame.mode == "RANGE" and frame.has_offset and len(order) != 1:
        hint = "Use ROWS instead of RANGE, or order by one column."
        raise NotSupported("a RANGE frame with an offset needs ORDER BY with exactly one column", hint=hint)


def _rows(expression: s.Expression, binding: Binding) -> str:
    constant = _constant(expression, NUMERIC, binding)
    if not isinstance(constant, Fraction) or constant.denominator != 1 or not 0 <= constant <= _MOST_ROWS:
        raise NotSupported("the offset of a window frame over protected rows must be a constant integer of at least 0")
    return str(constant)


def _constant(expression: s.Expression, kind: Type, binding: Binding) -> object:
    bound = typed(binding.operand(expression), binding.setting, kind)
    return bound.value if isinstance(bound, Constant) and bound.text is not None else None


def _distances(
    expressions: tuple[s.Expression, ...], order: Order, binding: Binding
) -> tuple[tuple[str, ...], tuple[Order, ...]]:
    key = order.expression
    if key.type.is_number:
        exact = FLOAT8 if key.type.kind == "float" else NUMERIC
        made: Expression = Apply("exact", f"({{0}})::{exact.sql}", (key,), exact, key.domain, key.nullable)
        offsets = tuple(_number(expression, exact, binding) for expression in expressions)
    elif key.type.kind in ("date", "timestamp", "timestamptz"):
        spans = tuple(_span(expression, binding) for expression in expressions)
        made = _inside(key, max(map(_reach, spans)))
        offsets = tuple(f"'{span}'::{INTERVAL.sql}" for span in spans)
    else:
        hint = "Order by a number, date or timestamp, or use ROWS instead of RANGE."
        raise NotSupported(f"a RANGE frame with an offset is not supported for type {key.type.sql}", hint=hint)
    return offsets, (Order(made, order.descending, order.nulls_first),)


def _number(expression: s.Expression, kind: Type, binding: Binding) -> str:
    constant = _constant(expression, NUMERIC, binding)
    is_offset = isinstance(constant, Fraction) and (constant == 0 or _NEAREST <= constant <= 1 / _NEAREST)
    text = decimal_text(constant) if isinstance(constant, Fraction) and is_offset else None
    if text is None:
        raise NotSupported("the offset of a window frame over protected rows must be a constant number of at least 0")
    return f"'{text}'::{kind.sql}"


def _span(expression: s.Expression, binding: Binding) -> Span:
    constant = _constant(expression, INTERVAL, binding)
    if not isinstance(constant, Span) or min(constant.months, constant.days, constant.microseconds) < 0:
        raise NotSupported("the offset of a window frame over protected rows must be a constant interval of at least 0")
    if _reach(constant) > _reach(_FURTHEST):
        raise NotSupported("the offset of a window frame over protected rows must be a constant of at most 2000 years")
    return constant


def _reach(span: Span) -> Fraction:
    """Days that it moves a moment at most."""
    return Fraction(span.months * 31 + span.days + span.microseconds // DAY + 2)


def _inside(key: Expression, days: Fraction) -> Expression:
    first, last = year_limits(key.type)
    reach = days * (1 if key.type.kind == "date" else DAY)
    return within(key, first + reach, last - reach)
