"""From exact rows to noised columns: walks the known list of groups and looks the rows up.

A group of the list that has no row counts zero, a row whose group is not on the list is dropped: so which rows the
database returned shows in nothing but the numbers, and these are noised.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from fractions import Fraction
from itertools import chain, compress

from rules.frozen import frozen, replace
from rules.kernel.bounded import Statement
from rules.mechanisms.additive import noise_of
from rules.mechanisms.distribution import Distribution
from rules.mechanisms.draw import Noise, add, in_whole
from rules.mechanisms.exponential_choice import choose
from rules.mechanisms.noised_outputs import CentredSum, Count, Sum, Text
from rules.mechanisms.release_plan import (
    Block,
    Choice,
    FromEnd,
    GroupsFoundFirst,
    Measure,
    MostFrequent,
    PrivateGroups,
    PublicGroups,
    Quantile,
    Target,
    Top,
)
from rules.mechanisms.threshold import find_threshold
from rules.release.estimates import laws_of_chance, values_of_chance
from rules.release.keys import Cell, Group, Key, group_of, in_bytes, in_order, is_known, keys_of, shown_label
from rules.release.outputs import lattice_number, norm_sub_within, roll_up, show, show_number
from rules.release.replicates import Laws, known_laws, places_by_laws, replicate_columns

Row = Sequence[Cell]  # key cells, then one integer for each measure
Draws = Mapping[int, Sequence[int]]  # measure -> one draw for each group of the list
UTF8 = "utf-8"
_INTEGER = re.compile(rb"-?[0-9]{1,19}")


@frozen
class Noised:
    """The noised integers of a block: its groups, and by measure one number for each of them."""

    groups: tuple[Group, ...]
    values: Mapping[int, tuple[int, ...]]
    laws: Mapping[int, Distribution] = field(
        default_factory=dict
    )  # of the noise in each measure, the widest where groups differ; what has none is exact
    apart: Mapping[int, tuple[Distribution, ...]] = field(default_factory=dict)  # by group, where they differ
    nested: Mapping[int, tuple[Sequence[int], ...]] = field(
        default_factory=dict
    )  # coarser groups within which they add up to other answers (`release.least_squares`)
    totals: Mapping[int, tuple[tuple[Distribution, ...], ...]] = field(
        default_factory=dict
    )  # the laws of their sums for every grouping set, where groups do not err by themselves


def draw(block: Block, measures: Iterable[int], groups: int, noise: Noise, *, group_size: int) -> Draws:
    """Noise for these measures over a list of groups whose length is known before the database is asked.

    A choice cannot be drawn beforehand, so it is left out.
    """
    plain = summed(block)
    return {index: _draw(block, index, groups, noise, group_size) for index in measures if index in plain}


def release(block: Block, groups: Sequence[Group], rows: Iterable[Row], draws: Draws, *, codec: str = UTF8) -> Noised:
    """Noise the measures that were drawn for, over a known list of groups: public, or released before."""
    keys = keys_of(block, groups, codec)
    return Noised(tuple(groups), _noise(block, _tally(block, rows, frozenset(keys).__contains__), keys, draws))


def release_found(
    block: Block, groups: PrivateGroups, rows: Iterable[Row], noise: Noise, *, group_size: int, codec: str = UTF8
) -> Noised:
    """Noise all measures over the groups found in the rows, and keep those that reach the threshold.

    A row without a counted unit makes no group: of these one unit may bring more than the threshold was made for (rows
    of different values are in all groups of a unit, its units in K of them).

    Keys stay bytes until they have passed. The other measures are drawn for the groups that are shown only: the time
    it takes tells no more than they do.
    """
    exact, shown, listed = _find(block, groups, rows, noise, group_size, codec)
    others = [index for index in summed(block) if index != groups.measure]
    draws = draw(block, others, len(shown), noise, group_size=group_size)
    return replace(listed, values={**_noise(block, exact, shown, draws), **listed.values})


def release_list(
    block: Block, groups: PrivateGroups, rows: Iterable[Row], noise: Noise, *, group_size: int, codec: str = UTF8
) -> Noised:
    """The same with the measure of units alone, by which groups are found: of others the bounds are chosen yet."""
    _, _, listed = _find(block, groups, rows, noise, group_size, codec)
    return listed


def _find(
    block: Block, groups_found: PrivateGroups, rows: Iterable[Row], noise: Noise, group_size: int, codec: str
) -> tuple[Mapping[Key, Sequence[int]], list[Key], Noised]:
    """The rows by key, and the keys and groups that reach the threshold, with their noised units."""
    exact, place = _tally(block, rows, is_known(block)), summed(block).index(groups_found.measure)
    candidates = sorted((key for key, numbers in exact.items() if numbers[place] > 0), key=in_bytes)
    units_measure = plain_measure(block, groups_found.measure)
    threshold = find_threshold(units_measure, groups_found.delta, group_size=group_size)
    threshold = max(threshold, 0 if block.least_units is None else block.least_units.units)
    drawn = _draw(block, groups_found.measure, len(candidates), noise, group_size)
    units = dict(
        zip(
            candidates,
            _noise(block, exact, candidates, {groups_found.measure: drawn})[groups_found.measure],
            strict=True,
        )
    )
    passed = [(key, group_of(block, key, codec)) for key in candidates if units[key] >= threshold]
    passed.sort(key=lambda pair: in_order(block, *pair))
    shown = [key for key, _ in passed]
    groups = tuple(group for _, group in passed)
    return exact, shown, Noised(groups, {groups_found.measure: tuple(units[key] for key in shown)})


def release_top(
    block: Block, top: Top, rows: Iterable[Row], noise: Noise, *, group_size: int, codec: str = UTF8
) -> tuple[Noised, tuple[int, ...]]:
    """Choose groups of the list by the block's only measure, and noise it for these alone.

    Beside the numbers come the ranks that the choice has given them.
    """
    assert isinstance(block.groups, PublicGroups)
    keys = keys_of(block, block.groups.rows, codec)
    exact, (index,) = _tally(block, rows, frozenset(keys).__contains__), summed(block)
    scores = [0 if key is None else exact.get(key, (0,))[0] for key in keys]
    ranks = {place: rank for rank, place in enumerate(noise.choose_top(scores, top, group_size=group_size))}
    places = sorted(ranks)
    draws = draw(block, (index,), len(places), noise, group_size=group_size)
    values = _noise(block, exact, [keys[place] for place in places], draws)
    groups = tuple(block.groups.rows[place] for place in places)
    return Noised(groups, values), tuple(ranks[place] for place in places)


def release_choice(
    block: Block,
    choice: Choice,
    groups: Sequence[Group],
    rows: Iterable[Row],
    noise: Noise,
    *,
    group_size: int,
    codec: str = UTF8,
) -> tuple[int, ...]:
    """Choose a candidate in every group of a known list, from the rows of the choice's own statement."""
    keys = keys_of(block, groups, codec)
    counters = {key: Counter[int]() for key in keys}  # most groups have few candidates
    for row in rows:
        key, numbers = _read(row, block.key_cells, 2)
        if key in counters and numbers is not None and 0 <= numbers[0] < choice.candidates:
            counters[key][numbers[0]] += numbers[1]
    histograms = ([counters[key][candidate] for candidate in range(choice.candidates)] for key in keys)
    return tuple(choose(choice, histogram, noise, group_size=group_size) for histogram in histograms)


def summed(block: Block) -> tuple[int, ...]:
    """The measures that are columns of the block's inner statement, in their order."""
    return tuple(index for index, measure in enumerate(block.measures) if isinstance(measure, Measure))


def columns(block: Block, noised: Noised, kept: Sequence[bool] | None = None) -> tuple[tuple[Text, ...], ...]:
    """The block's columns for the outer statement: its keys, then its outputs, one text for each group that is kept.

    With grouping sets, their number (from 1) stands between keys and outputs. Then come the replicates of outputs that
    have error bars, and last the outputs that are shown as they are, not below zero. Where the rules want more units
    than a number is about, by their noised count, it is NULL.
    """
    groups, cells, laws = shown_cells(block, noised)
    kept = (True,) * len(groups) if kept is None else kept
    groups, cells, laws = tuple(compress(groups, kept)), list(compress(cells, kept)), list(compress(laws, kept))
    width = len(block.keys) + bool(block.sets)
    keys = tuple(tuple(shown_label(group[place]) for group in groups) for place in range(width))
    outputs = tuple(tuple(show(output, cell) for cell in cells) for output in block.outputs)
    shown = tuple(tuple(compress(_not_below_zero(block, noised, output), kept)) for output in block.shown)
    numbers = outputs + replicate_columns(block, cells, laws) + shown
    if block.least_units is None:
        return keys + numbers
    of = (*range(len(block.outputs)), *(bar.output for bar in block.bars), *block.shown)
    small = [outputs_of_few(block, cell) for cell in cells]
    return keys + tuple(
        tuple(None if output in few else text for text, few in zip(column, small, strict=True))
        for output, column in zip(of, numbers, strict=True)
    )


def is_about_few(block: Block, cell: Sequence[int], outputs: Iterable[int]) -> bool:
    """Tell whether what is computed of these outputs is not shown."""
    return not outputs_of_few(block, cell).isdisjoint(outputs)


def outputs_of_few(block: Block, cell: Sequence[int]) -> frozenset[int]:
    """The outputs of a group that the rules want not shown, by what was released."""
    least = block.least_units
    if least is None:
        return frozenset()
    return frozenset(output for output, measure in enumerate(least.measures) if cell[measure] < least.units)


def _not_below_zero(block: Block, noised: Noised, output: int) -> tuple[Text, ...]:
    """Parts of a whole still add up: they are cut together, before they are summed. Of others each is cut alone."""
    of = block.outputs[output]
    assert isinstance(of, Count | Sum | CentredSum), "only counts and sums are cut"
    if not of.adds_up:
        _, cells, _ = shown_cells(block, noised)
        return tuple(show_number(of, max(0, lattice_number(of, cell))) for cell in cells)
    values = values_of_chance(block, noised.groups, noised.values)
    finest = zip(*(values[index] for index in range(block.numbers)), strict=True)
    numbers = [lattice_number(of, cell) for cell in finest]
    parts: list[tuple[int, ...]] = [(total,) for total in norm_sub_within(numbers, _nested(noised, of))]
    if block.sets:
        _, parts = roll_up(noised.groups, parts, block.sets, keys=len(block.keys), measures=1)
    return tuple(show_number(of, number) for (number,) in parts)


def _nested(noised: Noised, output: Count | Sum | CentredSum) -> Sequence[Sequence[int]]:
    """The coarser groups within which all measures of an output add up."""
    measures = (output.halves, output.count) if isinstance(output, CentredSum) else (output.measure,)
    first, *others = (noised.nested.get(measure, ()) for measure in measures)
    return first if all(other == first for other in others) else ()


def shown_cells(block: Block, noised: Noised) -> tuple[tuple[Group, ...], list[Sequence[int]], list[Laws]]:
    """The groups that are shown, the numbers of each, and the laws of their noise: of a total that of all its cells."""
    laws, numbers = _laws_by_group(block, noised), block.numbers
    values = values_of_chance(block, noised.groups, _in_rank_order(block, noised.values))
    groups, columns = noised.groups, [values[index] for index in range(numbers)]
    if not block.sets:
        return groups, list(zip(*columns, strict=True)) if columns else [()] * len(groups), laws
    kinds = tuple(places_by_laws(laws))
    counts = [tuple(int(law is kind or law == kind) for law in laws) for kind in kinds]  # of cells, is one more sum
    cells = list(zip(*columns, *counts, strict=True))
    groups, cells = roll_up(groups, cells, block.sets, keys=len(block.keys), measures=numbers + len(kinds))
    summed_laws = {cell_key: _sum_of(kinds, cell_key, numbers) for cell_key in {cell[numbers:] for cell in cells}}
    apart = [summed_laws[cell[numbers:]] for cell in cells]
    return groups, [cell[:numbers] for cell in cells], _together(apart, noised.totals)


def _in_rank_order(block: Block, values: Mapping[int, tuple[int, ...]]) -> Mapping[int, tuple[int, ...]]:
    """The choices among the same rows in the order of their ranks: no quartile is shown above the median.

    To sort what was drawn moves none of them further from its rank than the farthest was.
    """
    ranked: dict[Statement, list[tuple[Fraction, int]]] = {}
    for index, choice in enumerate(block.measures):
        if not isinstance(choice, Choice) or choice.end is not None or not isinstance(choice.statement, Statement):
            continue
        if (rank := _rank_of(choice.target)) is not None:
            ranked.setdefault(choice.statement, []).append((rank, index))
    moved = dict(values)
    for alike in ranked.values():
        places = [index for _, index in sorted(alike)]
        cells = (sorted(cell) for cell in zip(*(values[place] for place in places), strict=True))
        moved.update(zip(places, zip(*cells, strict=True), strict=False))
    return moved


def _rank_of(target: Target) -> Fraction | None:
    """The part of the rows below a choice; the most frequent value has none."""
    match target:
        case Quantile(fraction=fraction):
            return fraction
        case FromEnd(largest=largest):
            return Fraction(2 if largest else -1)  # beyond all quantiles
        case MostFrequent():
            return None


def _together(apart: list[Laws], totals: Mapping[int, tuple[tuple[Distribution, ...], ...]]) -> list[Laws]:
    """The laws of totals, of which some are known as a whole: by measure, set by set."""
    if not totals:
        return apart
    whole = {measure: tuple(chain.from_iterable(levels)) for measure, levels in totals.items()}
    return [
        tuple(whole[measure][place] if measure in whole else law for measure, law in enumerate(laws))
        for place, laws in enumerate(apart)
    ]


def _laws_by_group(block: Block, noised: Noised) -> list[Laws]:
    """The laws of each group's measures, before they are added up."""
    measures, groups = range(len(block.measures)), len(noised.groups)
    if not noised.apart:
        return [_with_chance(block, tuple(noised.laws.get(index) for index in measures))] * groups
    columns = (noised.apart.get(index) or (noised.laws.get(index),) * groups for index in measures)
    return [_with_chance(block, laws) for laws in zip(*columns, strict=True)]


def _with_chance(block: Block, laws: Laws) -> Laws:
    """The laws of a group's measures, and of what its estimates have beside them."""
    if block.numbers == len(block.measures):
        return laws
    known = laws_of_chance(block, known_laws(laws))
    return tuple(known.get(place) for place in range(block.numbers))


def _sum_of(kinds: Sequence[Laws], counts: Sequence[int], numbers: int) -> Laws:
    """The laws of sums of so many cells of each kind; a sum of none has no noise."""
    laws: list[Distribution | None] = [None] * numbers
    for kind, count in zip(kinds, counts, strict=True):
        for index, law in enumerate(kind):
            if law is not None and count:
                before, more = laws[index], law.repeated(count)
                laws[index] = more if before is None else before.plus(more)
    return tuple(laws)


def known_groups(block: Block) -> tuple[Group, ...] | None:
    """The groups that the query and the rules alone tell, or None where they are found or chosen."""
    match block.groups:
        case PublicGroups(rows=rows):
            return rows if block.top is None else None
        case PrivateGroups() | GroupsFoundFirst():
            return None


def _draw(block: Block, index: int, groups: int, noise: Noise, group_size: int) -> tuple[int, ...]:
    return noise.draw(noise_of(plain_measure(block, index), group_size=group_size), groups)


def plain_measure(block: Block, index: int) -> Measure:
    """A measure that is a column of the inner statement."""
    measure = block.measures[index]
    if not isinstance(measure, Measure):
        raise TypeError(f"measure {index} is chosen, not summed")
    return measure


def _noise(
    block: Block, exact: Mapping[Key, Sequence[int]], keys: Sequence[Key | None], draws: Draws
) -> dict[int, tuple[int, ...]]:
    """Exact integer plus draw, group by group, in whole numbers; a group without rows counts zero."""
    places, nothing = summed(block), (0,) * len(block.measures)
    integers = [nothing if key is None else exact.get(key, nothing) for key in keys]
    noised = {}
    for index, drawn in draws.items():
        place, factor = places.index(index), plain_measure(block, index).factor
        pairs = zip(integers, drawn, strict=True)
        noised[index] = tuple(in_whole(add(numbers[place], scale), factor) for numbers, scale in pairs)
    return noised


def _tally(block: Block, rows: Iterable[Row], is_wanted: Callable[[Key], bool]) -> dict[Key, tuple[int, ...]]:
    """The rows by key. Rows of one key are added: that moves no vector further than they do apart."""
    width, expected = block.key_cells, len(summed(block))
    exact: dict[Key, tuple[int, ...]] = {}
    for row in rows:
        key, numbers = _read(row, width, expected)
        if numbers is not None and is_wanted(key):
            before = exact.get(key)
            exact[key] = numbers if before is None else tuple(map(int.__add__, before, numbers))
    return exact


def _read(row: Row, width: int, expected: int) -> tuple[Key, tuple[int, ...] | None]:
    """The key of a row and its integers, which are None where they are not what was asked for: such a row is dropped.

    Whether a row can be read must not decide over the statement, since a failure that a row causes tells of it.
    """
    numbers = tuple(0 if cell is None else find_integer(cell) for cell in row[width:])
    whole = tuple(number for number in numbers if number is not None)
    return tuple(row[:width]), whole if len(whole) == len(numbers) == expected else None


def find_integer(cell: bytes) -> int | None:
    """An int8 as PostgreSQL writes it."""
    return int(cell) if _INTEGER.fullmatch(cell) else None
