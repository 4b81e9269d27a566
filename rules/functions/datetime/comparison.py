"""Dates, timestamps and instants that meet in a comparison: the constant is told in the kind of the other side.

PostgreSQL compares them across kinds, so nothing changes in what is true; but then it is known what a condition says of
a column, and which groups there can be.
"""

from fractions import Fraction

from rules.functions.casts import cast_to
from rules.functions.guard import EvalContext, is_infinite
from rules.values import domain, value
from rules.values.expression import Constant, Expression
from rules.values.types import TIMESTAMP, Type

_KINDS = ("date", "timestamp", "timestamptz")  # from the coarser to the finer


def constant_beside(expression: Expression, other: Expression, setting: EvalContext) -> Expression:
    """A constant time as it is compared with another kind of time; anything else as it is."""
    if not (isinstance(expression, Constant) and expression.type.is_time and other.type.is_time) or is_infinite(
        expression
    ):
        return expression
    if _KINDS.index(expression.type.kind) < _KINDS.index(other.type.kind):
        return _refined(expression, other.type.plain(), setting)
    if expression.type.kind == "timestamptz" and other.type.kind != "timestamptz":
        return _local(expression, setting.time_zone)
    return expression


def _refined(constant: Constant, target: Type, setting: EvalContext) -> Expression:
    """Midnight of a date, or the instant that a local time means in the session's zone."""
    items = domain.items_of(cast_to(constant, target, setting).domain, 1)
    shown = value.text_of(items[0], target, setting.time_zone) if items else None
    return constant if not items or shown is None else Constant(target, shown, items[0])


def _local(constant: Constant, zone: str) -> Expression:
    """An instant as the zone's clock shows it, where that clock runs evenly for days before and after.

    Then later by the clock is later in time for all values, however far away.
    """
    if not isinstance(constant.value, Fraction):
        return constant
    at = int(constant.value)
    shown_at = value.to_local(at, zone)
    if shown_at is None or value.unevenness(at, zone):
        return constant
    local = Fraction(shown_at)
    shown = value.text_of(local, TIMESTAMP)
    return constant if shown is None else Constant(TIMESTAMP, shown, local)
