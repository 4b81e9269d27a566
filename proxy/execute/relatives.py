"""Releases that divide the rows of a question otherwise, so that parts and totals of one dashboard agree.

A chart by city and one by month have the same total, and a table by city and month has the sums of both. What is shown
of each is the least squares estimate over all that is on the analyst's account of the same rows, bounded alike. Which
releases these are follows from the question and the ledger alone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rules.accounting.store import KeptRelease
from rules.mechanisms.additive import NoisedMeasure, SummedCells, noise_paid
from rules.mechanisms.release_plan import Measure
from rules.release.least_squares import Agreed, Observation, agreed
from rules.release.partitions import Partition, common_atoms


@dataclass(frozen=True, slots=True)
class Relative:
    """A release that has numbers of the same rows, bounded as they are in the question."""

    kept: KeptRelease
    measure: Measure  # as it was bounded there
    partition: Partition


@dataclass(frozen=True, slots=True)
class Relatives:
    """All of them by measure, and the question's own groups; None where these leave out rows that cannot be told."""

    asked: Partition | None = None
    by_measure: Mapping[int, tuple[Relative, ...]] = field(default_factory=dict)

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
            for number in (-1 - index, *(r.kept.id for r in relatives))
        )

    def agreed(
        self,
        index: int,
        own: Sequence[NoisedMeasure],
        cells: Sequence[tuple[int, SummedCells]],
        levels: Sequence[Sequence[int]],
        *,
        zone: str,
        group_size: int,
    ) -> Agreed | None:
        """The numbers of a measure that agree with all other releases; None where there are none, or too many.

        `cells` are sums of cells with the numbers of their releases: what is a relative too is not counted twice.
        `levels` are the totals that are shown besides, by group the place of each.
        """
        relatives = self.by_measure.get(index, ())
        if self.asked is None or not relatives:
            return None
        partitions = [self.asked, *{id(relative.partition): relative.partition for relative in relatives}.values()]
        atoms = common_atoms(partitions, zone)
        own_places = atoms.places[0]
        if own_places is None:
            return None
        places = {id(part): known for part, known in zip(partitions, atoms.places, strict=True)}
        observations = [
            (relative, known) for relative in relatives if (known := places[id(relative.partition)]) is not None
        ]
        observations.sort(key=lambda pair: (pair[0].partition.order, pair[0].kept.id))
        used = {relative.kept.id for relative, _ in observations}
        observed = [Observation(own_places, measure.numbers, measure.noise) for measure in own]
        for related, known in observations:
            noise = noise_paid(related.measure, related.kept.release.mechanism, group_size=group_size)
            observed.append(Observation(known, related.kept.release.values, noise))
        for number, summed in cells:
            if number not in used:
                numbers = [total or 0 for total in summed.numbers]
                observed.append(Observation(own_places, numbers, summed.noise, summed.counts))
        if not observations or not observed:
            return None
        groups = len(self.asked.cells)
        return agreed(observed, own_places, groups, is_regular=atoms.is_regular, levels=levels)
