"""Conditions on the day, week, month, quarter or year of a moment, as conditions on the moment itself.

extract(year FROM ordered_at) = 2025 is ordered_at >= '2025-01-01' AND ordered_at < '2026-01-01'. So written, it leaves
the groups of that year alone, finds what the same range was answered, and can use an index.
"""

import re
from datetime import date
from fractions import Fraction
from typing import Final

from rules.frozen import frozen
from rules.functions.datetime.truncation import following_start, truncate
from rules.functions.function import EvalContext
from rules.values import value
from rules.values.expression import MIRRORED, Apply, Column, Constant, Expression, all_of, condition
from rules.values.value import DAY

_YEAR: Final = re.compile(r"extract\(year from \{0\}\)::(?:numeric|double precision)")
_TRUNCATED: Final = re.compile(r"date_trunc\('(?P<field>day|week|month|quarter|year)', \{0\}\)")
_CASTS: Final = ("date", "timestamp", "timestamptz", "integer", "numeric")


@frozen
class _Period:
    """Which period of a moment an expression tells: by its first instant, or by the number of a year."""

    column: Column
    field: str
    by_number: bool = False


def on_moment(name: str, left: Expression, right: Expression, setting: EvalContext) -> Expression | None:
    """The comparison of a period with a constant; None where it is none, or not the same for every moment."""
    if isinstance(left, Constant):
        left, name, right = right, MIRRORED.get(name, ""), left
    if name not in MIRRORED or not isinstance(right, Constant) or not isinstance(right.value, Fraction):
        return None
    period = _find_period(left)
    local = None if period is None else _local(right, right.value, setting.time_zone, by_number=period.by_number)
    if period is None or local is None or not value.is_dated(local):
        return None
    start = truncate(local, period.field)
    following = following_start(start, period.field)
    if following is None or (start != local and name == "="):
        return None
    has_zone = "timestamptz" in (period.column.type.kind, right.type.kind)
    if has_zone and not all(value.is_shown_once(edge, setting.time_zone) for edge in (start, following)):
        return None  # a day that begins twice, or at one
    first = start if start == local else following  # that is not before the constant
    edges = {"=": (start, following), ">=": (first, None), ">": (following, None), "<": (None, first)}
    low, high = edges.get(name, (None, following))
    column = period.column
    bounds = [(sign, edge) for sign, edge in ((">=", low), ("<", high)) if edge is not None]
    constants = [(sign, _constant(edge, column, setting.time_zone)) for sign, edge in bounds]
    tests = [condition(sign, f"({{0}} {sign} {{1}})", column, edge) for sign, edge in constants if edge is not None]
    return all_of(tuple(tests)) if len(tests) == len(bounds) else None


def tells_year(expression: Expression) -> bool:
    """Return whether an expression is the number of a moment's year."""
    period = _find_period(expression)
    return period is not None and period.by_number


def _find_period(expression: Expression) -> _Period | None:
    match _unguarded(expression):
        case Apply(name="extract", sql=sql, arguments=(moment,)) if _YEAR.fullmatch(sql):
            return _of_moment(moment, "year", by_number=True)
        case Apply(name="date_trunc", sql=sql, arguments=(moment,)) if found := _TRUNCATED.fullmatch(sql):
            return _of_moment(moment, found["field"])
        case Apply(name="trunc" | "floor", arguments=(number,)):
            period = _find_period(number)
            return period if period is not None and period.by_number else None
        case Apply(name="cast", type=kind, arguments=(inner,)) if kind.kind in _CASTS and kind.size is None:
            period = _find_period(inner)
            if period is None:
                return _of_moment(inner, "day") if kind.kind == "date" else None
            return period if kind.is_number == period.by_number else None
    return None


def _of_moment(moment: Expression, field: str, *, by_number: bool = False) -> _Period | None:
    """Casts between kinds of times leave a moment on its day: none of them rounds."""
    inner = _unguarded(moment)
    while isinstance(inner, Apply) and inner.name == "cast" and inner.type.is_time and inner.type.size is None:
        inner = _unguarded(inner.arguments[0])
    return _Period(inner, field, by_number) if isinstance(inner, Column) and inner.type.is_time else None


def _unguarded(expression: Expression) -> Expression:
    """What a guard passes on: it leaves out moments beyond the years of which a condition here can be true."""
    while isinstance(expression, Apply) and expression.passes:
        expression = expression.arguments[0]
    return expression


def _local(constant: Constant, number: Fraction, zone: str, *, by_number: bool) -> int | None:
    """The constant by the clock of the session's zone."""
    if by_number:
        is_year = constant.type.is_number and number.denominator == 1 and 1 < number < date.max.year
        return value.days_of(date(int(number), 1, 1)) * DAY if is_year else None
    match constant.type.kind:
        case "date":
            return int(number) * DAY
        case "timestamp":
            return int(number)
        case "timestamptz":
            return value.to_local(int(number), zone)
    return None


def _constant(local: int, column: Column, zone: str) -> Constant | None:
    """When the clock of the zone shows this, as the column has it."""
    kind, moment = column.type.plain(), local
    if kind.kind == "date":
        moment = local // DAY
    elif kind.kind == "timestamptz":
        instant = value.to_instant(local, zone)
        if instant is None:
            return None
        moment = instant
    text = value.text_of(Fraction(moment), kind, zone)
    return None if text is None else Constant(kind, text, Fraction(moment))
