"""Totals of ROLLUP, CUBE and GROUPING SETS from the noised cells of the finest groups: they cost nothing more.

Every level adds up to the level above, which separate draws would not do. A level's noise is that of all its cells.
"""

from collections.abc import Iterator

from rules.mechanisms.draw import add
from rules.mechanisms.noised_outputs import Text

Group = tuple[Text, ...]
Cell = tuple[int, ...]


def roll_up(
    groups: tuple[Group, ...], cells: list[Cell], sets: tuple[tuple[int, ...], ...], *, keys: int, measures: int
) -> tuple[tuple[Group, ...], list[Cell]]:
    """The groups of every set, each followed by the set's number from 1, and their cells.

    Example:
        >>> roll_up((("a",), ("b",)), [(3,), (4,)], ((0,), ()), keys=1, measures=1)
        ((('a', '1'), ('b', '1'), (None, '2')), [(3,), (4,), (7,)])
    """
    rolled_up: list[Group] = []
    totals: list[Cell] = []
    for number, (names, places) in enumerate(levels(groups, sets, keys=keys), start=1):
        level = [(0,) * measures] * len(names)
        for place, cell in zip(places, cells, strict=True):
            level[place] = tuple(map(add, level[place], cell))
        rolled_up += [(*name, str(number)) for name in names]
        totals += level
    return tuple(rolled_up), totals


def levels(
    groups: tuple[Group, ...], sets: tuple[tuple[int, ...], ...], *, keys: int
) -> Iterator[tuple[tuple[Group, ...], tuple[int, ...]]]:
    """Yield for every set its groups, and by finest group the place of that which it adds to."""
    for kept in sets:
        level: dict[Group, int] = {} if kept else {(None,) * keys: 0}  # () has a row even over nothing
        names = (tuple(text if place in kept else None for place, text in enumerate(group)) for group in groups)
        places = tuple(level.setdefault(name, len(level)) for name in names)
        yield tuple(level), places
