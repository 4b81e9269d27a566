"""Find the released cells that each group of a question is the sum of.

Sums of released numbers are post-processing, so nothing here touches privacy. It is about truth: a group is the sum of
all cells in it and of nothing else, or it is not served.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache

from rules.functions.datetime.truncation import truncate
from rules.mechanisms.cells import WHOLE, CellKey, Cells, Field, ReleasedCells, Span, Test, View
from rules.values import value
from rules.values.types import Type
from rules.values.value import DAY

Label = str | None
Group = tuple[Label, ...]
Places = tuple[tuple[int, ...], ...]  # for each group of a question the places of its cells; none: it is not served

_OVERLAP = Fraction(2, 3)  # of the cells of two windows, and of their lengths nine tenths: see docs/performance.md
_LENGTHS = Fraction(9, 10)


def places_of(
    cells: Cells, view: View, released: ReleasedCells, groups: Sequence[Group], known: Sequence[Group]
) -> Places | None:
    """The cells of each group, by their place in the release; None where it has none of them."""
    tests = tests_of(view, released)
    if tests is None or not _is_covered(cells, tests, released):
        return None
    readers = [_reader(key, released, cells.time_zone) for key in cells.keys]
    wanted = {group: place for place, group in enumerate(groups)}
    places: list[list[int]] = [[] for _ in groups]
    passes = [(place, passing(test, cells.time_zone)) for place, some in tests.items() for test in some]
    for number, cell in enumerate(known):
        if all(is_in(cell[place]) for place, is_in in passes):
            group = tuple(None if reader is None else reader(cell) for reader in readers)
            if None not in readers and (place := wanted.get(group)) is not None:
                places[place].append(number)
    return tuple(map(tuple, places)) if any(places) else None


def are_alike(places: Places, known: int, *, is_in_one: bool) -> bool:
    """Return whether units with too many rows are cut about as much in the release as they would be in the question.

    A unit that is in one cell only is cut the same. Otherwise it is scaled by all that the release held: windows of one
    length that overlap are cut nearly alike, and what is a small part of a release is cut more there than by itself.
    """
    used, served = sum(map(len, places)), sum(1 for place in places if place)
    if is_in_one or not served:
        return is_in_one
    length = Fraction(used * len(places), served)
    overlaps = used >= _OVERLAP * known and served >= _OVERLAP * len(places)
    return overlaps and length >= _LENGTHS * known and known >= _LENGTHS * length


def tests_of(view: View, released: ReleasedCells) -> dict[int, list[Test]] | None:
    """Return what is left out of the relation as tests of the release's keys; None where one cannot tell it."""
    names = [key.name for key in released.keys]
    testses = dict[int, list[Test]]()
    for tests in view.left_out:
        known = next((test for test in tests if test.key in names), None)
        if known is None:
            return None
        testses.setdefault(names.index(known.key), []).append(known)
    return testses


def _is_covered(cells: Cells, tests: Mapping[int, Sequence[Test]], released: ReleasedCells) -> bool:
    """Return whether keys that are summed over have all values that rows of the question can have there."""
    shown = {key.name for key in cells.keys}
    return all(
        key.is_complete and span_asked(tests.get(place, ())).is_within(key.span)
        for place, key in enumerate(released.keys)
        if key.name not in shown
    )


def span_asked(tests: Iterable[Test]) -> Span:
    """Return what conditions on the values of a key leave of them."""
    span = WHOLE
    for test in tests:
        span = span if test.field else span.met(test.span)
    return span


def _reader(key: CellKey, released: ReleasedCells, zone: str) -> Callable[[Group], Label] | None:
    """Return how a cell says which value of a key it is of."""
    names = [key.name for key in released.keys]
    if key.name in names:
        place = names.index(key.name)
        return lambda cell: cell[place]
    finer = next((finer for finer in key.finer if finer.name in names), None)
    if finer is None or key.clock is None:
        return None
    place, of, field = names.index(finer.name), finer.type, key.clock.field
    return lambda cell: coarser(cell[place], of, key.type, field, zone)


def passing(test: Test, zone: str) -> Callable[[Label], bool]:
    """Return whether rows of a label of a key meet a condition."""

    def passes(label: Label) -> bool:
        held = None if label is None else value.find_value(label, test.type, zone)
        if test.field and isinstance(held, Fraction):
            held = _cut(held, test.type, test.field, zone)
        return (label is None or held is not None) and test.span.holds(held)

    return lru_cache(maxsize=None)(passes)


@lru_cache(maxsize=65_536)
def coarser(label: Label, of: Type, to: Type, field: Field, zone: str) -> Label:
    """The label of the day, week, month … in which a finer one lies."""
    if label is None:
        return None
    instant = value.find_value(label, of, zone)
    cut = _cut(instant, of, field, zone) if isinstance(instant, Fraction) else None
    moved = cut if cut is None or field.startswith("of ") else value_of_local(int(cut), to, zone)
    return NOWHERE if moved is None else value.text_of(moved, to, zone)


def _cut(moment: Fraction, of: Type, field: Field, zone: str) -> Fraction | None:
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


NOWHERE = "\0"  # no label of a group


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
