"""The estimate of a measure from all that was released of it: its numbers, and the law of the noise in each.

A release of the very question has each group as one cell, another one has it as a sum of cells, and a third divides the
same rows in another way: a chart by city and one by month have the same total. The estimate is the least squares one
over all of them. Where no release divides the rows in another way that is the mean of each group by inverse variance.
"""

from collections.abc import Sequence

from rules.frozen import frozen
from rules.mechanisms.additive import AdditiveNoise
from rules.mechanisms.weighted_means import SummedCells, mean
from rules.release.least_squares import Agreed, Level, Observation, agreed
from rules.release.partitions import Partition, common_atoms


@frozen
class Reading:
    """A release as it tells each group of the question."""

    cells: SummedCells
    release: int | None = None  # its number, where the cells are those of another question


@frozen
class Relative:
    """A release that divides the same rows into cells of its own."""

    partition: Partition
    numbers: Sequence[int]
    noise: AdditiveNoise
    release: int


def estimate(
    readings: Sequence[Reading],
    relatives: Sequence[Relative],
    asked: Partition | None,
    *,
    levels: Sequence[Level],
    zone: str,
) -> Agreed:
    """Estimate the numbers of all groups. `asked` is how the question divides the rows; None: that cannot be told.

    `levels` are the totals that are shown besides, by group the place of each.
    """
    found = _agreeing(readings, relatives, asked, levels, zone) if asked is not None and relatives else None
    return Agreed(*mean([reading.cells for reading in readings]), ()) if found is None else found


def _agreeing(
    readings: Sequence[Reading], relatives: Sequence[Relative], asked: Partition, levels: Sequence[Level], zone: str
) -> Agreed | None:
    """The numbers that agree with all relatives; None where there are none that can be told, or too many."""
    partitions = [asked, *{id(relative.partition): relative.partition for relative in relatives}.values()]
    atoms = common_atoms(partitions, zone)
    own_places = atoms.places[0]
    if own_places is None:
        return None
    places = {id(part): known for part, known in zip(partitions, atoms.places, strict=True)}
    related = [(relative, known) for relative in relatives if (known := places[id(relative.partition)]) is not None]
    related.sort(key=lambda pair: (pair[0].partition.order, pair[0].release))
    used = {relative.release for relative, _ in related}  # what is a relative too is not counted twice
    summed = [
        (reading.release is not None, Observation(own_places, _told(cells), cells.noise, cells.counts))
        for reading in readings
        if (cells := reading.cells) and reading.release not in used
    ]
    observed = [
        *(observation for is_sum, observation in summed if not is_sum),
        *(Observation(known, relative.numbers, relative.noise) for relative, known in related),
        *(observation for is_sum, observation in summed if is_sum),
    ]
    if not related:
        return None
    return agreed(observed, own_places, len(asked.cells), is_regular=atoms.is_regular, levels=levels)


def _told(cells: SummedCells) -> list[int]:
    return [number or 0 for number in cells.numbers]
