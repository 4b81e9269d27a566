"""Dates, timestamps and instants that meet in a comparison: the constant is told in the kind of the other side.

PostgreSQL compares them across kinds, so nothing changes in what is true; but then it is known what a condition says of
a column, and which groups there can be.
"""

from fractions import Fraction

from rules.relation import domain, value
from rules.relation.expression import Constant, Expression
from rules.relation.functions.cast import cast_to
from rules.relation.functions.guard import Setting, is_infinite
from rules.relation.types import TIMESTAMP, Type

_KINDS = ("date", "timestamp", "timestamptz")  # from the coarser to the finer


def constant_beside(given: Expression, other: Expression, setting: Setting) -> Expression:
    """A constant time as it is compared with another kind of time; anything else as it is."""
    if not (isinstance(given, Constant) and given.type.is_time and other.type.is_time) or is_infinite(given):
        return given
    if _KINDS.index(given.type.kind) < _KINDS.index(other.type.kind):
        return _refined(given, other.type.plain(), setting)
    if given.type.kind == "timestamptz" and other.type.kind != "timestamptz":
        return _local(given, setting.time_zone)
    return given


def _refined(given: Constant, target: Type, setting: Setting) -> Expression:
    """Midnight of a date, or the instant that a local time means in the session's zone."""
    items = domain.items_of(cast_to(given, target, setting).domain, 1)
    shown = value.text_of(items[0], target, setting.time_zone) if items else None
    return given if not items or shown is None else Constant(target, shown, items[0])


def _local(given: Constant, zone: str) -> Expression:
    """An instant as the zone's clock shows it, where that clock runs evenly for days before and after.

    Then later by the clock is later in time for all values, however far away.
    """
    if not isinstance(given.value, Fraction):
        return given
    at = int(given.value)
    shown_at = value.to_local(at, zone)
    if shown_at is None or value.unevenness(at, zone):
        return given
    local = Fraction(shown_at)
    shown = value.text_of(local, TIMESTAMP)
    return given if shown is None else Constant(TIMESTAMP, shown, local)
