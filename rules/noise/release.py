"""From exact rows to noised columns: walks the known list of groups and looks the rows up.

A group of the list that has no row counts zero, a row whose group is not on the list is dropped: so which rows the
database returned shows in nothing but the numbers, and these are noised.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation

from rules.noise.additive import noise_of
from rules.noise.law import Law
from rules.noise.measures import Block, Choice, KeyColumn, Measure, PrivateGroups, PublicGroups, Text
from rules.noise.mechanism import Noise, add
from rules.noise.outputs import show
from rules.noise.quantile import choose
from rules.noise.replicates import replicate_columns
from rules.noise.roll_up import roll_up
from rules.noise.threshold import find_threshold

Group = tuple[Text, ...]
Row = Sequence[Text]
Draws = Mapping[int, Sequence[int]]  # measure -> one draw for each group of the list


class MalformedRows(Exception):
    """The inner statement returned what it cannot have returned. Says nothing more: the text may be data."""


@dataclass(frozen=True, slots=True)
class Noised:
    """The noised integers of a block: its groups, and by measure one number for each of them."""

    groups: tuple[Group, ...]
    values: Mapping[int, tuple[int, ...]]
    laws: Mapping[int, Law] = field(default_factory=dict)  # of the noise in each measure; what has none is exact


def draw(block: Block, measures: Iterable[int], groups: int, noise: Noise, *, group_size: int) -> Draws:
    """Noise for these measures over a list of groups whose length is known before the database is asked.

    A choice cannot be drawn beforehand, so it is left out.
    """
    plain = summed(block)
    return {index: _draw(block, index, groups, noise, group_size) for index in measures if index in plain}


def release(block: Block, groups: Sequence[Group], rows: Iterable[Row], draws: Draws) -> Noised:
    """Noise the measures that were drawn for, over a known list of groups: public, or released before."""
    return Noised(tuple(groups), _noise(block, _tally(block, rows, set(groups)), groups, draws))


def release_found(block: Block, found: PrivateGroups, rows: Iterable[Row], noise: Noise, *, group_size: int) -> Noised:
    """Noise all measures over the groups found in the rows, and keep those that reach the threshold.

    A row without a counted unit makes no group: of these one unit may bring more than the threshold was made for (rows
    of different values are in all groups of a unit, its units in K of them).

    The other measures are drawn for the groups that are shown only: the time it takes tells no more than they do.
    """
    exact, place = _tally(block, rows, None), summed(block).index(found.measure)
    candidates = sorted((group for group, numbers in exact.items() if numbers[place] > 0), key=_order(block.keys))
    units_measure = _plain(block, found.measure)
    threshold = find_threshold(units_measure, found.delta, group_size=group_size, at_least=found.at_least)
    drawn = _draw(block, found.measure, len(candidates), noise, group_size)
    units = dict(zip(candidates, _noise(block, exact, candidates, {found.measure: drawn})[found.measure], strict=True))
    shown = tuple(group for group in candidates if units[group] >= threshold)
    others = [index for index in summed(block) if index != found.measure]
    draws = draw(block, others, len(shown), noise, group_size=group_size)
    values = _noise(block, exact, shown, draws)
    return Noised(shown, {**values, found.measure: tuple(units[group] for group in shown)})


def release_choice(
    block: Block, choice: Choice, groups: Sequence[Group], rows: Iterable[Row], noise: Noise, *, group_size: int
) -> tuple[int, ...]:
    """Choose a candidate in every group of a known list, from the rows of the choice's own statement."""
    found: dict[Group, Counter[int]] = {group: Counter() for group in groups}  # most groups have few candidates
    for row in rows:
        group, (candidate, count) = tuple(row[: len(block.keys)]), _numbers(row[len(block.keys) :], 2)
        if group in found and 0 <= candidate < choice.candidates:
            found[group][candidate] += count
    histograms = ([found[group][candidate] for candidate in range(choice.candidates)] for group in groups)
    return tuple(choose(choice, histogram, noise, group_size=group_size) for histogram in histograms)


def summed(block: Block) -> tuple[int, ...]:
    """The measures that are columns of the block's inner statement, in their order."""
    return tuple(index for index, measure in enumerate(block.measures) if isinstance(measure, Measure))


def columns(block: Block, noised: Noised) -> tuple[tuple[Text, ...], ...]:
    """The block's columns for the outer statement: its keys, then its outputs, one text for each group.

    With grouping sets, their number (from 1) stands between keys and outputs. Last come the replicates of outputs that
    have error bars.
    """
    ones = (1,) * len(noised.groups)  # how many cells a group's numbers are sums of is one more sum
    cells = list(zip(*(noised.values[index] for index in range(len(block.measures))), ones, strict=True))
    groups, width = noised.groups, len(block.keys)
    if block.sets:
        groups, cells = roll_up(groups, cells, block.sets, keys=width, measures=len(block.measures) + 1)
    keys = tuple(tuple(group[place] for group in groups) for place in range(width + bool(block.sets)))
    outputs = tuple(tuple(show(output, cell) for cell in cells) for output in block.outputs)
    counts = [cell[-1] for cell in cells]
    return keys + outputs + replicate_columns(block, [cell[:-1] for cell in cells], counts, noised.laws)


def known_groups(block: Block) -> tuple[Group, ...] | None:
    """The groups that the query and the rules alone tell, or None where they are found in the data."""
    match block.groups:
        case PublicGroups(rows=rows):
            return rows
        case PrivateGroups():
            return None


def _draw(block: Block, index: int, groups: int, noise: Noise, group_size: int) -> tuple[int, ...]:
    return noise_of(_plain(block, index), group_size=group_size).draw(noise, groups)


def _plain(block: Block, index: int) -> Measure:
    measure = block.measures[index]
    if not isinstance(measure, Measure):
        raise TypeError(f"measure {index} is chosen, not summed")
    return measure


def _noise(
    block: Block, exact: Mapping[Group, Sequence[int]], groups: Sequence[Group], draws: Draws
) -> dict[int, tuple[int, ...]]:
    """Exact number plus draw, group by group; a group without rows counts zero."""
    places, nothing = summed(block), (0,) * len(block.measures)
    noised = {}
    for index, drawn in draws.items():
        place = places.index(index)
        numbers = (exact.get(group, nothing)[place] for group in groups)
        noised[index] = tuple(add(number, each) for number, each in zip(numbers, drawn, strict=True))
    return noised


def _tally(block: Block, rows: Iterable[Row], wanted: set[Group] | None) -> dict[Group, tuple[int, ...]]:
    """The rows by group. Rows of one group are added: that moves no vector further than they do apart."""
    expected = len(summed(block))
    exact: dict[Group, tuple[int, ...]] = {}
    for row in rows:
        group = tuple(row[: len(block.keys)])
        if wanted is None or group in wanted:
            numbers = _numbers(row[len(block.keys) :], expected)
            before = exact.get(group)
            exact[group] = numbers if before is None else tuple(map(int.__add__, before, numbers))
    return exact


def _numbers(cells: Row, expected: int) -> tuple[int, ...]:
    try:
        numbers = tuple(0 if cell is None else int(cell) for cell in cells)
    except ValueError:
        raise MalformedRows from None
    if len(numbers) != expected:
        raise MalformedRows
    return numbers


_NUMERIC = ("smallint", "integer", "bigint", "numeric", "real", "double precision")


def _order(keys: Sequence[KeyColumn]) -> Callable[[Group], tuple[tuple[bool, Decimal, str], ...]]:
    """The order of groups by their keys alone, numbers as numbers and NULL last, whatever order the rows came in."""
    numeric = tuple(key.type.startswith(_NUMERIC) for key in keys)
    return lambda group: tuple(map(_place, group, numeric))


def _place(text: Text, is_number: bool) -> tuple[bool, Decimal, str]:
    if text is None:
        return True, Decimal(0), ""
    if not is_number:
        return False, Decimal(0), text
    try:
        number = Decimal(text)
    except InvalidOperation:
        raise MalformedRows from None
    return False, Decimal("Infinity") if number.is_nan() else number, ""
