"""Divide the rows of one question by the cells of several releases: into atoms, of which each cell is a union.

Two charts of one dashboard divide the same rows, one by city and one by month, or by month and by day. The atoms are
the natural join of their lists of groups, where a day also tells its month. It is about truth, not about privacy:
releases that do not divide just the rows that are asked for are left out.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from math import prod
from typing import Final

import numpy as np

from rules.frozen import frozen
from rules.mechanisms.cells import WHOLE, Cells, Clock, ReleasedCells, ReleasedKey, Span, View
from rules.release.cell_labels import Group, Label, coarser
from rules.release.cells import passing, tests_of

Places = np.ndarray[tuple[int], np.dtype[np.int64]]  # by atom the cell that it is in; -1: in none

MOST_ATOMS: Final = 10_000


@frozen
class Partition:
    """The cells of a release that lie within the rows that are asked for, by the labels of their keys."""

    keys: tuple[ReleasedKey, ...]
    cells: Mapping[Group, int]  # with their places in the release
    is_whole: bool  # each row that is asked for is in one of them
    is_exact: bool  # and the release had no others

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(key.name for key in self.keys)

    @property
    def order(self) -> tuple[int, tuple[str, ...], list[str]]:
        """The same for every question, so that all of them see the same atoms."""
        return len(self.cells), self.names, sorted(map(repr, self.cells))


def asked_partition(cells: Cells, groups: Sequence[Group]) -> Partition | None:
    """The groups of the question itself; None where rows within what is asked for may be in none of them."""
    text = cells.text()
    own = None if text is None else ReleasedCells.read(text)
    if own is None or not all(key.is_complete for key in own.keys):
        return None
    return Partition(own.keys, {group: place for place, group in enumerate(groups)}, is_whole=True, is_exact=True)


def partition_within(
    cells: Cells, view: View, released: ReleasedCells, known: Sequence[Group], partition: Partition
) -> Partition | None:
    """The cells of a release that are within what is asked for; None where that cannot be told, or there are none."""
    if view.tables:
        return None  # such a condition leaves no span of a key
    tests = tests_of(cells.left_out(view), released)
    rows = _spans(cells)
    listed = {key.name: place for place, key in enumerate(partition.keys) if not _spans_all(key, rows)}
    names = [key.name for key in released.keys]
    if tests is None or not set(listed) <= set(names):
        return None  # a key leaves out rows by itself, and the release cannot tell these
    shown = {name: {group[place] for group in partition.cells} for name, place in listed.items()}
    tested = [(place, passing(test, cells.time_zone)) for place, some in tests.items() for test in some]
    tested += [(place, shown[name].__contains__) for place, name in enumerate(names) if name in shown]
    places = {
        group: place for place, group in enumerate(known) if all(is_in(group[number]) for number, is_in in tested)
    }
    rows |= {key.name: rows.get(key.name, WHOLE).met(key.span) for key in partition.keys if key.name in listed}
    is_whole = all(key.is_complete and _spans_all(key, rows) for key in released.keys)
    return Partition(released.keys, places, is_whole, is_whole and len(places) == len(known)) if places else None


def _spans(cells: Cells) -> dict[str, Span]:
    """By key what the question's conditions leave of it."""
    spans: dict[str, Span] = {}
    for tests in cells.left_out(cells.views[-1]):
        for test in tests:
            if test.field is None:
                spans[test.key] = spans.get(test.key, WHOLE).met(test.span)
    return spans


def _spans_all(key: ReleasedKey, rows: Mapping[str, Span]) -> bool:
    return rows.get(key.name, WHOLE).is_within(key.span)


@frozen
class Atoms:
    """The atoms that partitions have in common."""

    places: tuple[Places | None, ...]  # by partition the cells of the atoms; None: it does not fit with those before it
    is_regular: bool  # they are all combinations of what each column has


def common_atoms(parts: Sequence[Partition], zone: str, *, most: int = MOST_ATOMS) -> Atoms:
    """Divide rows as finely as all partitions do together, as far as they fit."""
    clocks = {key.name: key.clock for part in parts for key in part.keys if key.clock is not None}
    joined, taken = _Joined((), [()]), set[int]()
    for number in sorted((n for n, part in enumerate(parts) if part.is_whole), key=lambda n: parts[n].order):
        wider = joined.with_cells(*_extended(parts[number], clocks, zone), most)
        if wider is not None and all(wider.has_all(parts[part]) for part in (*taken, number)):
            joined = wider
            taken.add(number)
    fitting = (n for n, part in enumerate(parts) if not part.is_whole and set(part.names) <= set(joined.names))
    taken.update(fitting)
    places = tuple(joined.places(part) if number in taken else None for number, part in enumerate(parts))
    return Atoms(places, joined.is_regular(clocks))


@frozen
class _Joined:
    """A natural join: rows of labels by the names of keys."""

    names: tuple[str, ...]
    rows: list[tuple[Label, ...]]

    def with_cells(self, names: Sequence[str], cells: Sequence[Group], most: int) -> "_Joined | None":
        """The join with more cells; None where it is too long."""
        shared = [name for name in names if name in self.names]
        new = [place for place, name in enumerate(names) if name not in self.names]
        alike: dict[Group, list[Group]] = {}
        for cell, key in zip(cells, _picked(cells, [names.index(name) for name in shared]), strict=True):
            alike.setdefault(key, []).append(tuple(cell[place] for place in new))
        groups: list[Group] = []
        for row, key in zip(self.rows, _picked(self.rows, [self.names.index(name) for name in shared]), strict=True):
            groups += [(*row, *more) for more in alike.get(key, ())]
            if len(groups) > most:
                return None
        return _Joined((*self.names, *(names[place] for place in new)), groups)

    def labels(self, part: Partition) -> Iterable[Group]:
        return _picked(self.rows, [self.names.index(name) for name in part.names])

    def has_all(self, part: Partition) -> bool:
        """Return whether each cell is a union of atoms, and each atom in a cell."""
        return set(self.labels(part)) == part.cells.keys()

    def is_regular(self, clocks: Mapping[str, Clock]) -> bool:
        """Return whether the keys of different columns are told independently of each other."""
        columns: dict[str, list[int]] = {}
        for place, name in enumerate(self.names):
            columns.setdefault(clocks[name].column if name in clocks else name, []).append(place)
        return prod(len(set(_picked(self.rows, places))) for places in columns.values()) == len(self.rows)

    def places(self, part: Partition) -> Places:
        return np.array([part.cells.get(labels, -1) for labels in self.labels(part)], dtype=np.int64)


def _picked(rows: Sequence[Group], places: Sequence[int]) -> Iterable[Group]:
    return (tuple(row[place] for place in places) for row in rows)


def _extended(part: Partition, clocks: Mapping[str, Clock], zone: str) -> tuple[tuple[str, ...], list[Group]]:
    """The cells of a partition with the labels of all coarser keys that theirs tell."""
    names, own = list(part.names), list(part.cells)
    columns = [[cell[place] for cell in own] for place in range(len(names))]
    for name, clock in clocks.items():
        known = next((n for n, key in enumerate(part.keys) if key.clock is not None and key.clock.tells(clock)), None)
        if name in names or known is None or (told := part.keys[known].clock) is None:
            continue
        cut = partial(coarser, of=told.type, to=clock.type, field=clock.field, zone=zone)
        columns.append([cut(label) for label in columns[known]])
        names.append(name)
    return tuple(names), list(zip(*columns, strict=True)) if names else [()] * len(own)
