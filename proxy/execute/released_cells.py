"""Releases of other questions whose cells add up to the numbers of this one: all are on the analyst's own account.

What is on the account was paid for, so sums and means of it cost nothing. Which releases are taken follows from what
is asked and from the ledger, never from a number.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from fractions import Fraction
from typing import Final

from proxy.execute.rulebook import Rulebook
from proxy.execute.statement_context import StatementContext
from rules.accounting.store import KeptRelease, LedgerStore
from rules.mechanisms.additive import AdditiveNoise, SummedCells, noise_paid
from rules.mechanisms.cells import ReleasedCells, View
from rules.mechanisms.release_plan import Block, Choice, Measure
from rules.release.cells import Places, are_alike, places_of
from rules.release.keys import Group

_DIGITS: Final = 64  # of a family, and of a block itself
_MOST: Final = 16  # releases in one mean, where units may be cut a little differently in each
_MEASURE: Final = re.compile(r"(?P<name>.*) within (?P<sensitivity>[0-9]+)(?: of (?P<factor>[0-9]+) parts)?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class CellReading:
    """A measure of each group as a sum of cells that one release has."""

    kept: KeptRelease
    measure: Measure  # as it was bounded there
    places: Places
    is_alike: bool  # units are cut as in the question, or not at all

    def noise(self, group_size: int) -> AdditiveNoise:
        """The noise in each of its cells."""
        return noise_paid(self.measure, self.kept.release.mechanism, group_size=group_size)

    def summed(self, group_size: int) -> SummedCells:
        """The sums."""
        values = self.kept.release.values
        numbers = tuple(sum(values[cell] for cell in each) if each else None for each in self.places)
        return SummedCells(numbers, tuple(map(len, self.places)), self.noise(group_size))


Readings = Mapping[int, tuple[CellReading, ...]]  # by measure


def alike(readings: Readings) -> Readings:
    """Those that may be put together with others."""
    found = {index: tuple(each for each in some if each.is_alike) for index, some in readings.items()}
    return {index: some for index, some in found.items() if some}


def alone(readings: Readings, asked: Mapping[int, Fraction], groups: int) -> Readings | None:
    """One release that has all measures with the precision that is asked for, whatever its units are cut by: as a mean
    needs its sum and its count. The newest comes first."""
    for source in dict.fromkeys(_source(each) for some in readings.values() for each in some):
        found = {
            index: tuple(each for each in readings.get(index, ()) if _source(each) == source)[:1] for index in asked
        }
        if all(some and precision_of(some, groups) >= asked[index] for index, some in found.items()):
            return found
    return None


def _source(reading: CellReading) -> tuple[str, tuple[Group, ...], datetime]:
    return reading.kept.release.block, reading.kept.release.groups, reading.kept.time


def block_key(block: Block, rulebook: Rulebook) -> str:
    """Equal keys mean equal numbers: the same tree under the same rules and schema.

    Before that stands what the groups are cells of, by which releases of other blocks are found.
    """
    whole = _digest(rulebook, block.canonical)
    text = None if block.cells is None else block.cells.text
    return whole if block.cells is None or text is None else f"{_digest(rulebook, block.cells.family)} {text} {whole}"


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


async def find_readings(
    block: Block,
    groups: Sequence[Group] | None,
    ledger: LedgerStore,
    context: StatementContext,
    now: datetime,
    *,
    may_be_cut: bool,
) -> Readings:
    """What other questions on the analyst's account say of a block with a known list of groups."""
    if block.cells is None or groups is None:
        return {}
    rulebook = context.rulebook
    views = {_digest(rulebook, view.family): view for view in block.cells.views}
    since = now - rulebook.policy.fresh_for
    kept = await ledger.find_cells(
        tuple(views), analyst=context.analyst, budgets=rulebook.budgets, now=now, since=since
    )  # fmt: skip
    own = block_key(block, rulebook)
    others = [each for each in kept if each.release.block != own]
    return _Matching(block, groups, views, may_be_cut).readings(others)


@dataclass(frozen=True, slots=True)
class _Matching:
    block: Block
    groups: Sequence[Group]
    views: Mapping[str, View]
    may_be_cut: bool

    def readings(self, kept: Sequence[KeptRelease]) -> Readings:
        known: dict[tuple[str, tuple[Group, ...]], tuple[ReleasedCells, Places, bool] | None] = {}
        found: dict[int, list[CellReading]] = {}
        for each in kept:
            release = each.release
            alike = release.block, release.groups
            if alike not in known:
                known[alike] = self._cells(*alike)
            cells, read = known[alike], _MEASURE.fullmatch(release.measure)
            if cells is not None and read is not None:
                for index, measure in self._measures(read["name"], cells[0]):
                    bounded = replace(
                        measure, sensitivity=int(read["sensitivity"]), factor=int(read["factor"] or 1), vector=None
                    )
                    found.setdefault(index, []).append(CellReading(each, bounded, *cells[1:]))
        return {index: tuple(each[:_MOST] if self.may_be_cut else each) for index, each in found.items()}

    def _cells(self, block: str, groups: tuple[Group, ...]) -> tuple[ReleasedCells, Places, bool] | None:
        """Of which cells of a release each group is the sum, and whether these are cut as the groups are."""
        assert self.block.cells is not None
        released = ReleasedCells.read(block[_DIGITS + 1 : -_DIGITS - 1])
        if released is None or any(len(group) != len(released.keys) for group in groups):
            return None  # a bound, or a report of what is cut, is one for all groups
        places = places_of(self.block.cells, self.views[block[:_DIGITS]], released, self.groups, groups)
        if places is None:
            return None
        is_alike = not self.may_be_cut or are_alike(places, len(groups), is_in_one=released.is_in_one)
        return released, places, is_alike

    def _measures(self, name: str, released: ReleasedCells) -> list[tuple[int, Measure]]:
        """The measures of this name that are sums over cells."""
        assert self.block.cells is not None
        cells = self.block.cells
        adding = [
            each or (units and released.is_in_one) for each, units in zip(cells.adds_up, cells.units, strict=True)
        ]
        return [
            (index, measure)
            for index, measure in enumerate(self.block.measures)
            if isinstance(measure, Measure) and adding[index] and measure.name == name
        ]


def _digest(rulebook: Rulebook, text: str) -> str:
    return hashlib.sha256(f"{rulebook.fingerprint}\n{text}".encode()).hexdigest()
