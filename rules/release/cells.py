"""Find the released cells that each group of a question is the sum of.

Sums of released numbers are post-processing, so nothing here touches privacy. It is about truth: a group is the sum of
all cells in it and of nothing else, or it is not served.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache, reduce

from rules.mechanisms.cells import WHOLE, CellKey, Cells, ReleasedCells, Span, Test, View
from rules.release.cell_labels import MIXED, Group, Label, TableReading, coarser, cut_of
from rules.values import value

Places = tuple[tuple[int, ...], ...]  # for each group of a question the places of its cells; none: it is not served

_OVERLAP = Fraction(2, 3)  # of the cells of two windows, and of their lengths nine tenths: see docs/performance.md
_LENGTHS = Fraction(9, 10)


def places_of(
    cells: Cells, view: View, released: ReleasedCells, groups: Sequence[Group], known: Sequence[Group]
) -> Places | None:
    """The cells of each group, by their place in the release; None where it has none of them."""
    tests = tests_of(cells.left_out(view), released)
    reading = TableReading(released, cells.time_zone)
    chosen = [reading.condition(table) for table in view.tables]
    readers = [_reader(key, released, reading) for key in cells.keys]
    if tests is None or None in chosen or None in readers or not _is_covered(cells, view, tests, released):
        return None
    wanted = {group: place for place, group in enumerate(groups)}
    places: list[list[int]] = [[] for _ in groups]
    passes = [(place, passing(test, cells.time_zone)) for place, some in tests.items() for test in some]
    for number, cell in enumerate(known):
        if not all(is_in(cell[place]) for place, is_in in passes):
            continue
        if (is_chosen := _all_of(told(cell) for told in chosen if told is not None)) is False:
            continue
        group = tuple(reader(cell) for reader in readers if reader is not None)
        if is_chosen is None or MIXED in group:
            return None  # a part of the cell is asked for
        if (place := wanted.get(group)) is not None:
            places[place].append(number)
    return tuple(map(tuple, places)) if any(places) else None


def _all_of(told: Iterable[bool | None]) -> bool | None:
    """Return whether all are true; None where that cannot be told."""
    known = set(told)
    return False if False in known else None if None in known else True


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


def tests_of(left_out: Sequence[Sequence[Test]], released: ReleasedCells) -> dict[int, list[Test]] | None:
    """Return what is left out of the relation as tests of the release's keys; None where one cannot tell it."""
    names = [key.name for key in released.keys]
    testses = dict[int, list[Test]]()
    for tests in left_out:
        known = next((test for test in tests if test.key in names), None)
        if known is None:
            return None
        testses.setdefault(names.index(known.key), []).append(known)
    return testses


def _is_covered(cells: Cells, view: View, tests: Mapping[int, Sequence[Test]], released: ReleasedCells) -> bool:
    """Return whether keys that are summed over have all values that rows of the question can have there."""
    shown = {key.name for key in cells.keys}
    tables = [*view.tables, *(key.table for key in cells.keys if key.table is not None)]
    axes = [axis for table in tables for axis in table.axes]

    def asked(place: int, name: str) -> Span:
        spans = (axis.span for axis in axes if any(way.key == name for way in axis.ways))
        return reduce(Span.met, spans, span_asked(tests.get(place, ())))

    return all(
        key.is_complete and asked(place, key.name).is_within(key.span)
        for place, key in enumerate(released.keys)
        if key.name not in shown
    )


def span_asked(tests: Iterable[Test]) -> Span:
    """Return what conditions on the values of a key leave of them."""
    span = WHOLE
    for test in tests:
        span = span if test.field else span.met(test.span)
    return span


def _reader(key: CellKey, released: ReleasedCells, reading: TableReading) -> Callable[[Group], Label] | None:
    """Return how a cell says which value of a key it is of."""
    names = [key.name for key in released.keys]
    if key.name in names:
        place = names.index(key.name)
        return lambda cell: cell[place]
    finer = next((finer for finer in key.finer if finer.name in names), None)
    if finer is None or key.clock is None:
        return None if key.table is None else reading.key(key.table)
    place, of, field, zone = names.index(finer.name), finer.type, key.clock.field, reading.zone
    return lambda cell: coarser(cell[place], of, key.type, field, zone)


def passing(test: Test, zone: str) -> Callable[[Label], bool]:
    """Return whether rows of a label of a key meet a condition."""

    def passes(label: Label) -> bool:
        held = None if label is None else value.find_value(label, test.type, zone)
        if test.field and isinstance(held, Fraction):
            held = cut_of(held, test.type, test.field, zone)
        return (label is None or held is not None) and test.span.holds(held)

    return lru_cache(maxsize=None)(passes)
