"""Empty groups: leave out the listed groups whose numbers could be noise alone, decided from what was released.

PostgreSQL's GROUP BY has no row for a group without rows; a list of groups has one for each label. A group is shown if
one of its released counts or sums is farther from 0 than noise alone brings it. With N tested numbers each has a
distance that its own noise passes with probability 0.05/N (two-sided; Bonferroni, so numbers may be correlated), and at
most one answer in twenty shows a group without rows. Averages and statistics go by their count. Nothing is charged: the
decision is computed from released numbers, and the hidden cells are kept for totals, reuse and least squares.

Blocks of one statement over the same tables with equal lists are decided together, so that a ratio does not lose its
denominator's group because its numerator is small.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from math import floor
from typing import Final

from rules.frozen import frozen, replace
from rules.mechanisms.distribution import Distribution
from rules.mechanisms.noised_outputs import (
    Average,
    CentredSum,
    Chosen,
    ChosenList,
    Count,
    Estimate,
    Output,
    Statistic,
    Sum,
)
from rules.mechanisms.release_plan import Block, Measure, PublicGroups
from rules.release.keys import Group
from rules.release.marks import Reach
from rules.release.outputs import lattice_number, lattice_step, levels
from rules.release.release import Noised, outputs_of_few, shown_cells
from rules.release.replicates import Laws, places_by_laws

MISSED: Final = Decimal("0.05")  # of answers about empty groups alone show one
_TIMES: Final = ("date", "timestamp")

Tests = Mapping[Output, frozenset[int]]  # numbers that are tested, each with the outputs that it stands for


@frozen
class Size:
    """The smallest number that shows a group, and in words what it counts."""

    number: Fraction
    what: str


@frozen
class Together:
    """One number of all hidden groups together, and how far noise may have moved it."""

    what: str
    number: Fraction
    margin: Fraction


@frozen
class ShownGroups:
    """Which groups of a block are in the answer, in the order of `shown_cells`."""

    kept: tuple[bool, ...]
    size: Size | None = None  # that a group needs; None: every group is shown
    together: Together | None = None  # of the hidden ones; None where the rules show no number about few units
    gaps: int = 0  # hidden groups between shown ones, in order of time

    @property
    def hidden(self) -> int:
        return self.kept.count(False)


def shown_groups(answered: Sequence[tuple[Block, Noised]]) -> tuple[ShownGroups, ...]:
    """Decide for all blocks of a statement which of their groups are shown."""
    cells = [shown_cells(*pair) for pair in answered]
    shown: list[ShownGroups] = [ShownGroups((True,) * len(groups)) for groups, _, _ in cells]
    for places in _alike([(block, noised.groups) for block, noised in answered]):
        blocks = [answered[place][0] for place in places]
        groups = cells[places[0]][0]
        missed = _missed(blocks, [_is_tested(blocks[0], group) for group in groups].count(True))
        passed = [_passed(block, *cells[place][1:], missed) for block, place in zip(blocks, places, strict=True)]
        kept = _with_totals(blocks[0], groups, [any(each) for each in zip(*passed, strict=True)])
        for block, place in zip(blocks, places, strict=True):
            shown[place] = ShownGroups(
                kept,
                _size(block, cells[place][2], missed),
                None if block.least_units is not None else _together(block, *cells[place], kept),
                _gaps(block, groups, kept),
            )
    return tuple(shown)


def foreseen_sizes(blocks: Sequence[Block], laws: Sequence[Mapping[int, Distribution]]) -> tuple[Size | None, ...]:
    """The size that a group of each block needs, from the plan alone; None: all groups are shown."""
    sizes: list[Size | None] = [None] * len(blocks)
    lists = [block.groups.rows if isinstance(block.groups, PublicGroups) else () for block in blocks]
    for places in _alike(list(zip(blocks, lists, strict=True))):
        first = blocks[places[0]]
        missed = _missed([blocks[place] for place in places], _tested_rows(first, lists[places[0]]))
        for place in places:
            own: Laws = tuple(laws[place].get(number) for number in range(blocks[place].numbers))
            sizes[place] = _size(blocks[place], [own], missed)
    return tuple(sizes)


def numbers_tested(block: Block) -> Tests:
    """The numbers by which a group is shown, each once. No number: all groups are shown."""
    if not block.hides_empty:
        return {}
    if block.counted is not None:
        of = block.measures[block.counted]
        adds_up = not (isinstance(of, Measure) and of.at_most_one)
        return {Count(block.counted, adds_up=adds_up): frozenset(range(len(block.outputs)))}
    tests: dict[Output, frozenset[int]] = {}
    for place, output in enumerate(block.outputs):
        if (test := _test_of(output)) is not None:
            tests[test] = tests.get(test, frozenset()) | {place}
    return tests


def _test_of(output: Output) -> Output | None:
    match output:
        case Count(measure=measure, adds_up=adds_up):
            return Count(measure, adds_up=adds_up)
        case Average(count=count) | Statistic(count=count):
            return Count(count, adds_up=True)
        case Sum() | CentredSum():
            return replace(output, digits=0, adds_up=False, most=None)
        case Estimate():
            return output
        case Chosen() | ChosenList():
            return None


def _alike(lists: Sequence[tuple[Block, Sequence[Group]]]) -> Iterator[list[int]]:
    """The places of blocks that are decided together."""
    together: dict[tuple[object, ...], list[int]] = {}
    for place, (block, groups) in enumerate(lists):
        if numbers_tested(block):
            together.setdefault((frozenset(block.tables), tuple(groups), block.sets), []).append(place)
    yield from together.values()


def _missed(blocks: Iterable[Block], rows: int) -> Decimal:
    """The probability with which the noise of each tested number may pass its distance."""
    return MISSED / max(1, rows * sum(len(numbers_tested(block)) for block in blocks))


def _tested_rows(block: Block, groups: Sequence[Group]) -> int:
    if block.top is not None:
        return block.top.count
    if not block.sets:
        return len(groups)
    rolled_up = zip(block.sets, levels(tuple(groups), block.sets, keys=len(block.keys)), strict=True)
    return sum(len(names) for kept, (names, _) in rolled_up if kept)


def _is_tested(block: Block, group: Group) -> bool:
    """Whether PostgreSQL may lack the group: the total of all rows is always there."""
    return not block.sets or bool(_set_of(block, group))


def _set_of(block: Block, group: Group) -> tuple[int, ...]:
    """The keys of the grouping set that a row is of."""
    return block.sets[int(group[-1] or 1) - 1]


def _passed(block: Block, cells: Sequence[Sequence[int]], laws: Sequence[Laws], missed: Decimal) -> list[bool]:
    """For each group whether one of its numbers, unless it is about few units, is beyond its distance."""
    tests, passed = numbers_tested(block), [False] * len(cells)
    for own, places in places_by_laws(laws).items():
        reach = Reach(own, missed)
        for place in places:
            few = outputs_of_few(block, cells[place])
            passed[place] = any(
                not (of and few >= of) and not reach.is_within(test, cells[place]) for test, of in tests.items()
            )
    return passed


def _with_totals(block: Block, groups: Sequence[Group], passed: Sequence[bool]) -> tuple[bool, ...]:
    """With grouping sets a total is shown where a part of it is, and the total of all rows always."""
    if not block.sets:
        return tuple(passed)
    parts: dict[tuple[int, ...], set[Group]] = {
        own: {
            tuple(group[key] for key in own)
            for group, is_shown in zip(groups, passed, strict=True)
            if is_shown and set(_set_of(block, group)) >= set(own)
        }
        for own in block.sets
    }
    return tuple(
        not (own := _set_of(block, group)) or is_shown or tuple(group[key] for key in own) in parts[own]
        for group, is_shown in zip(groups, passed, strict=True)
    )


def _size(block: Block, laws: Sequence[Laws], missed: Decimal) -> Size | None:
    """The size by the test that says most of rows: a count of rows, or another count, or a sum."""
    test = min(numbers_tested(block), key=_rank)
    if isinstance(test, Count | Sum | CentredSum):
        distance = max(Reach(own, missed).distance(test) for own in places_by_laws(laws))
        return Size((floor(distance) + 1) * lattice_step(test), what_is_tested(block, test))
    return None


def _rank(test: Output) -> int:
    match test:
        case Count(adds_up=True):
            return 0
        case Count():
            return 1
    return 2


def what_is_tested(block: Block, test: Output) -> str:
    """In words what a tested number counts; "" where it is a sum."""
    match test:
        case Count(adds_up=True):
            return "rows"
        case Count(measure=measure) if isinstance(of := block.measures[measure], Measure) and of.at_most_one:
            return "units"
        case Count():
            return "values"
    return ""


def _together(
    block: Block, groups: Sequence[Group], cells: Sequence[Sequence[int]], laws: Sequence[Laws], kept: Sequence[bool]
) -> Together | None:
    """The number of all hidden groups that size is told by; of grouping sets those of the first."""
    hidden = [
        place
        for place, is_shown in enumerate(kept)
        if not is_shown and (not block.sets or _set_of(block, groups[place]) == block.sets[0])
    ]
    test = min(numbers_tested(block), key=_rank)
    if not hidden or not isinstance(test, Count | Sum | CentredSum):
        return None
    law = Distribution()
    for own, places in places_by_laws([laws[place] for place in hidden]).items():
        law = law.plus(Reach(own, MISSED).law(test).repeated(len(places)))
    number, margin = sum(lattice_number(test, cells[place]) for place in hidden), law.reach(1 - block.level)
    return Together(what_is_tested(block, test), number * lattice_step(test), Fraction(margin) * lattice_step(test))


def _gaps(block: Block, groups: Sequence[Group], kept: Sequence[bool]) -> int:
    """Count hidden groups that lie between shown ones of the same series, where one key is a time."""
    times = [place for place, key in enumerate(block.keys) if key.type.startswith(_TIMES)]
    if len(times) != 1 or block.sets:
        return 0
    series: dict[Group, list[tuple[str, bool]]] = {}
    for group, is_shown in zip(groups, kept, strict=True):
        if (moment := group[times[0]]) is not None:
            rest = (*group[: times[0]], *group[times[0] + 1 :])
            series.setdefault(rest, []).append((moment, is_shown))
    return sum(map(_between, series.values()))


def _between(moments: list[tuple[str, bool]]) -> int:
    shown = [is_shown for _, is_shown in moments]
    if True not in shown:
        return 0
    first, last = shown.index(True), len(shown) - shown[::-1].index(True)
    return shown[first:last].count(False)
