"""The labels of released cells in other terms: the day, week, month … that a finer one lies in, and what a table says.

A table says whether a condition is true in all of a cell, or in none, and which label a key has there. A cell may hold
many values of a column, as a month has days. Where they do not agree nothing is said of the cell.
"""

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import cache, lru_cache
from itertools import product
from typing import Final

from rules.frozen import frozen
from rules.functions.datetime.truncation import truncate
from rules.mechanisms.cells import Axis, Field, ReleasedCells, Table, Way
from rules.values import value
from rules.values.types import DATE, Type
from rules.values.value import DAY

Label = str | None
Group = tuple[Label, ...]

NOWHERE: Final = "\0"  # no label of a group
MIXED: Final = "\0\0"  # no label of a group, and not nowhere
_OUTSIDE: Final = "\0"  # a value that no row of the question has


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


@frozen
class TableReading:
    """Reads tables by the keys that a release has."""

    released: ReleasedCells
    zone: str

    def condition(self, table: Table) -> Callable[[Group], bool | None] | None:
        """Return how a cell says whether its rows meet a condition: all, none, or None for some; None: it does not."""
        places, heldes = self._axes(table)
        if None in places:
            return None
        true = {values for values, _ in table.rows}

        @cache
        def is_true(labels: Group) -> bool | None:
            combinations = _combinations(labels, heldes)
            if combinations is None:
                return None
            found = {values in true for values in combinations}
            return None if len(found) > 1 else True in found

        return lambda cell: is_true(tuple(cell[place] for place in places if place is not None))

    def key(self, table: Table) -> Callable[[Group], Label] | None:
        """Return how a cell says which label a key has in its rows: MIXED where they have several."""
        places, heldes = self._axes(table)
        if None in places:
            return None
        labels_of = dict(table.rows)

        @cache
        def label(labels: Group) -> Label:
            combinations = _combinations(labels, heldes)
            if combinations is None:
                return MIXED
            inside = [values for values in combinations if _OUTSIDE not in values]
            found = {labels_of.get(values, MIXED) for values in inside}
            return NOWHERE if not found else found.pop() if len(found) == 1 else MIXED

        return lambda cell: label(tuple(cell[place] for place in places if place is not None))

    def _axes(self, table: Table) -> tuple[list[int | None], list["_Held"]]:
        """By axis the place of the key that tells it, and which of its values a label of that key stands for."""
        names = [key.name for key in self.released.keys]
        ways = [next((way for way in axis.ways if way.key in names), None) for axis in table.axes]
        places = [None if way is None else names.index(way.key) for way in ways]
        heldes = [_held(axis, way, self.zone) for axis, way in zip(table.axes, ways, strict=True) if way is not None]
        return places, heldes


_Held = Callable[[Label], tuple[Label, ...] | None]


def _combinations(labels: Group, heldes: Sequence[_Held]) -> list[Group] | None:
    """The combinations of values that a cell may have; None where it may have others than the table."""
    held = [of(label) for of, label in zip(heldes, labels, strict=True)]
    known = [values for values in held if values is not None]
    return list(product(*known)) if len(known) == len(held) else None


def _held(axis: Axis, way: Way, zone: str) -> _Held:
    """Return which values of an axis a label stands for; None where it may have others."""
    field = way.field

    def outside(label: Label) -> tuple[Label, ...] | None:
        return (_OUTSIDE,) if axis.is_exact or label is None else None  # where there may be NULL it is listed

    if field is None:
        listed = frozenset(axis.labels)
        return lambda label: (label,) if label in listed else outside(label)
    days: dict[Label, list[Label]] = {}
    for day in axis.labels:
        days.setdefault(coarser(day, DATE, way.type, field, zone), []).append(day)
    for edge in _edges(axis.labels):
        if (known := days.get(coarser(edge, DATE, way.type, field, zone))) is not None:
            known.append(_OUTSIDE)  # a cell that has more days than the table

    def held(label: Label) -> tuple[Label, ...] | None:
        known = days.get(label)
        if known is None:
            return outside(label)
        return None if _OUTSIDE in known and not axis.is_exact else tuple(known)

    return held


def _edges(days: Sequence[Label]) -> Iterator[Label]:
    """The days before the first and after the last."""
    numbers = [value.find_value(day, DATE) for day in days if day is not None]
    known = [number for number in numbers if not isinstance(number, str | bool) and number is not None]
    for edge in (min(known) - 1, max(known) + 1) if known else ():
        yield value.text_of(edge, DATE)
