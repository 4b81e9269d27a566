"""Releases of other questions whose cells add up to the numbers of this one.

What is on the analyst's account was paid for, so sums and means of it cost nothing. What is on others' alone is charged
to his account when it is taken, and to the dataset's no more. Which releases are taken follows from what is asked and
from the ledger, never from a number.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from fractions import Fraction
from typing import Final

from proxy.execute.rulebook import Rulebook
from rules.accounting.store import KeptRelease
from rules.mechanisms.additive import AdditiveNoise, noise_paid
from rules.mechanisms.cells import Cells, ReleasedCells, View
from rules.mechanisms.release_plan import Block, Choice, Measure
from rules.mechanisms.weighted_means import HalvedNoise, SummedCells
from rules.release.cells import Places, are_alike, places_of
from rules.release.estimate import Reading, Relative
from rules.release.keys import Group
from rules.release.partitions import Partition, asked_partition, partition_within

Kept = tuple[KeptRelease, ...]

_DIGITS: Final = 64  # of a family, and of a block itself
_MOST: Final = 16  # releases in one mean, where units may be cut a little differently in each
_MEASURE: Final = re.compile(r"(?P<name>.*) within (?P<sensitivity>[0-9]+)(?: of (?P<factor>[0-9]+) parts)?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Bounded:
    """A release, and its measure as it was bounded there."""

    kept: KeptRelease
    measure: Measure

    def noise(self, group_size: int) -> AdditiveNoise:
        """The noise in each of its cells."""
        return noise_paid(self.measure, self.kept.release.mechanism, group_size=group_size)

    def sum(self, cells: Sequence[int]) -> int:
        """The sum of some cells."""
        values = self.kept.release.values
        return sum(values[cell] for cell in cells)


@dataclass(frozen=True, slots=True)
class KnownRelative:
    """A release that has numbers of the same rows, bounded as they are in the question."""

    kept: KeptRelease
    measure: Measure  # as it was bounded there
    partition: Partition

    def read(self, group_size: int) -> Relative:
        release = self.kept.release
        noise = noise_paid(self.measure, release.mechanism, group_size=group_size)
        return Relative(self.partition, release.values, noise, self.kept.id)


@dataclass(frozen=True, slots=True)
class Relatives:
    """All of them by measure, and the question's own groups; None where these leave out rows that cannot be told."""

    asked: Partition | None = None
    by_measure: Mapping[int, tuple[KnownRelative, ...]] = field(default_factory=dict)

    @property
    def kept(self) -> tuple[KeptRelease, ...]:
        """Their releases."""
        return tuple(
            {
                relative.kept.id: relative.kept for relatives in self.by_measure.values() for relative in relatives
            }.values()
        )

    @property
    def sources(self) -> tuple[int, ...]:
        """Return which release is of which measure."""
        return tuple(
            number
            for index, relatives in self.by_measure.items()
            for number in (-1 - index, *(n for r in relatives for n in (r.kept.id, r.kept.charge)))
        )


@dataclass(frozen=True, slots=True)
class CellReading:
    """A measure of each group as a sum of cells that one release has, or a centred sum and the count beside it."""

    first: Bounded
    places: Places
    is_alike: bool  # units are cut as in the question, or not at all
    count: Bounded | None = None  # where the first is a centred sum, and the measure is none
    middle: int = 0  # of the bounds, twice

    @property
    def kept(self) -> tuple[KeptRelease, ...]:
        """Of which releases it is made."""
        return (self.first.kept,) if self.count is None else (self.first.kept, self.count.kept)

    def noise(self, group_size: int, sharing: int = 1) -> AdditiveNoise | HalvedNoise:
        """The noise in each of its cells; `sharing` measures are told by the same count."""
        first = self.first.noise(group_size)
        return first if self.count is None else HalvedNoise(first, self.count.noise(group_size), self.middle, sharing)

    def reading(self, group_size: int, sharing: int = 1) -> Reading:
        """The sums."""
        noise = self.noise(group_size, sharing)
        numbers = tuple(self._sum(each, noise) if each else None for each in self.places)
        return Reading(SummedCells(numbers, tuple(map(len, self.places)), noise), self.first.kept.id)

    def _sum(self, cells: Sequence[int], noise: AdditiveNoise | HalvedNoise) -> int:
        found = self.first.sum(cells)
        return noise.sum(found, self.count.sum(cells)) if self.count and isinstance(noise, HalvedNoise) else found


Readings = Mapping[int, tuple[CellReading, ...]]  # by measure


@dataclass(frozen=True, slots=True)
class Known:
    """Hold what other questions on the account say of one: sums of their cells, and how else they divide its rows."""

    readings: Readings
    relatives: Relatives


NOTHING: Final = Known({}, Relatives())


def alike(readings: Readings) -> Readings:
    """Those that may be put together with others."""
    found = {index: tuple(each for each in some if each.is_alike) for index, some in readings.items()}
    return {index: some for index, some in found.items() if some}


def measures_by_count(readings: Readings) -> Mapping[int, int]:
    """Count the measures that are told by the same count, by its release."""
    by_measure = ({each.count.kept.id for each in some if each.count} for some in readings.values())
    return Counter(number for counts in by_measure for number in counts)


def alone(readings: Readings, asked: Mapping[int, Fraction], groups: int) -> Readings | None:
    """The most precise release that has all measures with the precision that is asked for, whatever its units are cut
    by: as a mean needs its sum and its count. Of equally precise ones it is the newest."""
    found: list[tuple[Fraction, Readings]] = []
    for source in dict.fromkeys(_source(each.first.kept) for some in readings.values() for each in some):
        own = {
            index: tuple(each for each in readings.get(index, ()) if _source(each.first.kept) == source)[:1]
            for index in asked
        }
        enough = min(precision_of(some, groups) / asked[index] for index, some in own.items())
        if enough >= 1:
            found.append((enough, own))
    return max(found, key=lambda each: each[0], default=(None, None))[1]


_Source = tuple[str, tuple[Group, ...], datetime]


def _source(kept: KeptRelease) -> _Source:
    return kept.release.block, kept.release.groups, kept.time


def block_key(block: Block, rulebook: Rulebook) -> str:
    """Equal keys mean equal numbers: the same tree under the same rules and schema.

    Before that stands what the groups are cells of, by which releases of other blocks are found.
    """
    whole = _digest(rulebook, block, block.canonical)
    text = None if block.cells is None else block.cells.text(is_chosen=block.top is not None)
    if block.cells is None or text is None:
        return whole
    return f"{_digest(rulebook, block, block.cells.family)} {text} {whole}"


def measure_key(measure: Measure | Choice) -> str:
    """The sensitivity belongs to it, in parts of one: a measure bounded or scaled otherwise is another one."""
    parts = f" of {measure.factor} parts" if measure.factor > 1 else ""
    return f"{measure.name} within {measure.sensitivity}{parts}"


def precision_of(readings: Sequence[CellReading], groups: int) -> Fraction:
    """Of the mean of these in the group that has the least."""
    single = [each.noise(1).precision for each in readings]
    kinds = set(zip(*(map(len, each.places) for each in readings), strict=True)) if readings else set()
    found = (sum(_parts(single, counts), Fraction(0)) for counts in kinds)
    return min(found, default=Fraction(0)) if groups else Fraction(0)


def _parts(single: Sequence[Fraction], counts: Sequence[int]) -> list[Fraction]:
    return [each / count for each, count in zip(single, counts, strict=True) if count]


def views_of(block: Block, rulebook: Rulebook) -> Mapping[str, View]:
    """The views of a block, by the names of the families that its cells may be released under."""
    return {} if block.cells is None else {_digest(rulebook, block, view.family): view for view in block.cells.views}


def find_readings(
    block: Block, groups: Sequence[Group], kept: Sequence[KeptRelease], rulebook: Rulebook, *, may_be_cut: bool
) -> Known:
    """Find what releases of other questions say of a block with a known list of groups."""
    assert block.cells is not None, "a block without cells is told by no other"
    views, key = views_of(block, rulebook), block_key(block, rulebook)
    return _Matching(block, key, block.cells, groups, views, may_be_cut).known(kept)


@dataclass(frozen=True, slots=True)
class _Matching:
    block: Block
    key: str
    cells: Cells
    groups: Sequence[Group]
    views: Mapping[str, View]
    may_be_cut: bool

    def known(self, kept: Sequence[KeptRelease]) -> Known:
        readings: dict[int, list[CellReading]] = {}
        relatives: dict[int, list[KnownRelative]] = {}
        asked = asked_partition(self.cells, self.groups) if self.block.top is None else None
        lists: dict[tuple[str, tuple[Group, ...]], list[KeptRelease]] = {}
        for each in kept:
            lists.setdefault((each.release.block, each.release.groups), []).append(each)
        for (block, groups), alike in lists.items():
            released = cells_of(alike[0])
            if released is None or any(len(group) != len(released.keys) for group in groups):
                continue  # a bound, or a report of what is cut, is one for all groups
            view = self.views[block[:_DIGITS]]
            places = self._places(view, released, groups)
            partition = None if asked is None else self._partition(view, released, groups, asked)
            for index, measure in self._measures(alike, released) if block != self.key else ():
                if places is not None:
                    readings.setdefault(index, []).append(CellReading(measure, *places))
                if partition is not None and (self.cells.is_in_one or not self.cells.units[index]):
                    relatives.setdefault(index, []).append(KnownRelative(measure.kept, measure.measure, partition))
            if places is not None:
                for index, centred, count, middle in self._halves(alike):
                    readings.setdefault(index, []).append(CellReading(centred, *places, count, middle))
        most = _MOST if self.may_be_cut else None
        summed = {
            index: tuple(sorted(each, key=lambda each: -each.first.kept.id)[:most]) for index, each in readings.items()
        }
        return Known(summed, Relatives(asked, {index: tuple(each) for index, each in relatives.items()}))

    def _places(
        self, view: View, released: ReleasedCells, groups: tuple[Group, ...]
    ) -> tuple[Places, bool] | None:  # fmt: skip
        """Of which cells of a release each group is the sum, and whether these are cut as the groups are."""
        places = places_of(self.cells, view, released, self.groups, groups)
        if places is None:
            return None
        return places, not self.may_be_cut or are_alike(places, len(groups), is_in_one=released.is_in_one)

    def _partition(
        self, view: View, released: ReleasedCells, groups: tuple[Group, ...], asked: Partition
    ) -> Partition | None:  # fmt: skip
        """Find how a release divides the rows; None where it cuts units by other rows too."""
        found = partition_within(self.cells, view, released, groups, asked)
        is_cut_alike = not self.may_be_cut or (released.is_in_one and self.cells.is_in_one)
        return found if found is not None and (is_cut_alike or found.is_exact) else None

    def _measures(
        self, kept: Sequence[KeptRelease], released: ReleasedCells
    ) -> Iterator[tuple[int, Bounded]]:  # fmt: skip
        """The releases of measures that are sums over cells, with these as they were bounded there."""
        cells = self.cells
        adding = [
            each or (units and released.is_in_one) for each, units in zip(cells.adds_up, cells.units, strict=True)
        ]
        for index, measure in enumerate(self.block.measures):
            if isinstance(measure, Measure) and adding[index]:
                yield from ((index, each) for each in _bounded(kept, measure.name, measure))

    def _halves(self, kept: Sequence[KeptRelease]) -> Iterator[tuple[int, Bounded, Bounded, int]]:
        """Sums that are released as a centred sum and the count beside it, by one statement."""
        for index, (measure, halves) in enumerate(zip(self.block.measures, self.cells.halves, strict=True)):
            if halves is not None and isinstance(measure, Measure):
                counts = {_source(each.kept): each for each in _bounded(kept, halves.count, measure)}
                for centred in _bounded(kept, halves.centred, measure):
                    if (count := counts.get(_source(centred.kept))) is not None:
                        yield index, centred, count, halves.middle


def cells_of(kept: KeptRelease) -> ReleasedCells | None:
    return ReleasedCells.read(kept.release.block[_DIGITS + 1 : -_DIGITS - 1])


def _bounded(kept: Iterable[KeptRelease], name: str, measure: Measure) -> Iterator[Bounded]:
    """Those of these releases that have this name, as they were bounded."""
    for each in kept:
        read = _MEASURE.fullmatch(each.release.measure)
        if read is not None and read["name"] == name:
            sensitivity, factor = int(read["sensitivity"]), int(read["factor"] or 1)
            yield Bounded(each, replace(measure, sensitivity=sensitivity, factor=factor, vector=None))


def _digest(rulebook: Rulebook, block: Block, text: str) -> str:
    return hashlib.sha256(f"{rulebook.meanings.of(block.tables, block.canonical)}\n{text}".encode()).hexdigest()
