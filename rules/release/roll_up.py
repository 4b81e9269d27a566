"""Totals of ROLLUP, CUBE and GROUPING SETS from the noised cells of the finest groups: they cost nothing more.

Every level adds up to the level above, which separate draws would not do. A level's noise is that of all its cells.
"""

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
    nothing = (0,) * measures
    rolled_up: list[Group] = []
    totals: list[Cell] = []
    for number, places in enumerate(sets, start=1):
        level: dict[Group, Cell] = {} if places else {(None,) * keys: nothing}  # () has a row even over nothing
        for group, cell in zip(groups, cells, strict=True):
            name = tuple(text if place in places else None for place, text in enumerate(group))
            level[name] = tuple(map(add, level.get(name, nothing), cell))
        rolled_up += [(*name, str(number)) for name in level]
        totals += level.values()
    return tuple(rolled_up), totals
