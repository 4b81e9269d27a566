"""Cells of moments: the day, week, month … that a finer one lies in, by the clock on the wall."""

from fractions import Fraction
from functools import lru_cache
from typing import Final

from rules.functions.datetime.truncation import truncate
from rules.mechanisms.cells import Field
from rules.values import value
from rules.values.types import Type
from rules.values.value import DAY

Label = str | None
NOWHERE: Final = "\0"  # no label of a group


@lru_cache(maxsize=65_536)
def coarser(label: Label, of: Type, to: Type, field: Field, zone: str) -> Label:
    """The label of the day, week, month … in which a finer one lies."""
    if label is None:
        return None
    instant = value.find_value(label, of, zone)
    cut = cut_of(instant, of, field, zone) if isinstance(instant, Fraction) else None
    moved = cut if cut is None or field.startswith("of ") else value_of_local(int(cut), to, zone)
    return NOWHERE if moved is None else value.text_of(moved, to, zone)


def cut_of(moment: Fraction, of: Type, field: Field, zone: str) -> Fraction | None:
    """The local time at which the day, week … of a moment begins, or a number of its clock."""
    local = local_time(moment, of, zone)
    if local is None:
        return None
    day = value.day_at(local // DAY)
    match field:
        case "of year":
            return Fraction(day.year)
        case "of quarter":
            return Fraction((day.month + 2) // 3)
        case "of month":
            return Fraction(day.month)
        case "of isodow":
            return Fraction(day.isoweekday())
        case "of dow":
            return Fraction(day.isoweekday() % 7)
    return Fraction(truncate(local, field))


def local_time(moment: Fraction, of: Type, zone: str) -> int | None:
    """A date or timestamp as the clock on the wall shows it."""
    if moment.denominator != 1:
        return None
    match of.kind:
        case "date":
            return int(moment) * DAY
        case "timestamptz":
            return value.to_local(int(moment), zone)
        case "timestamp":
            return int(moment)
    return None


def value_of_local(local: int, to: Type, zone: str) -> Fraction | None:
    """A local time as a value of this type: of a date the day on which it is."""
    match to.kind:
        case "date":
            return Fraction(local // DAY)
        case "timestamptz":
            instant = value.to_instant(local, zone)
            return None if instant is None else Fraction(instant)
        case "timestamp":
            return Fraction(local)
    return None
