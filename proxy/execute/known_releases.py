"""Find the releases that serve a measure: by precision, by who has paid, and made to agree with others of equal rows.

A chart by city and one by month have the same total, and a table by city and month has the sums of both. What is shown
of each is the least squares estimate over all that is on the analyst's account of the same rows, bounded alike. Which
releases these are follows from the question and the ledger alone.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from itertools import count
from typing import Final

from rules.accounting.store import KeptRelease, Release, ServableReleases
from rules.mechanisms.additive import AdditiveNoise, noise_of, noise_paid
from rules.mechanisms.cost import Mechanism
from rules.mechanisms.release_plan import Choice, Measure
from rules.mechanisms.weighted_means import NoisedMeasure, SummedCells
from rules.release.keys import Group
from rules.release.least_squares import Agreed, Observation, agreed
from rules.release.partitions import Partition, common_atoms

Kept = tuple[KeptRelease, ...]
DEARER: Final = 2  # times what is asked for may be paid for an answer that others have paid for


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
            for number in (-1 - index, *(n for r in relatives for n in (r.kept.id, r.kept.charge)))
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
        return agreed(observed, own_places, len(self.asked.cells), is_regular=atoms.is_regular, levels=levels)


def serving(measure: Measure | Choice, servable_releases: ServableReleases, beside: Fraction) -> Kept | None:
    """Return what serves a measure at no cost, or at that of one release of others'; None where it must be drawn.

    Whatever is on the analyst's account then is put together, and with sums of cells, which have this precision
    besides. What others paid for is not, before it is.
    """
    if isinstance(measure, Choice):
        return one_of(servable_releases, measure.epsilon) or None
    fraction, other = precision_asked(measure), _worth_its_price(servable_releases.other, measure.epsilon)
    own = max(_by_groups(servable_releases.own), key=lambda kept: _precision(measure, kept), default=())
    if _precision(measure, own) + beside >= fraction:
        return own
    if other is None or _precision(measure, (other,)) < fraction:
        return None
    return (other, *(release for release in servable_releases.own if release.release.groups == other.release.groups))


def serving_inner(measure: Measure | Choice, servable_releases: ServableReleases, beside: Fraction) -> Kept | None:
    """Return what serves a measure that another statement needs: its releases, or else sums of cells alone.

    An answer that grew more precise with what is bought beside it would make another question of that statement.
    """
    own = serving(measure, servable_releases, Fraction(0))
    if own is None and isinstance(measure, Measure) and beside >= precision_asked(measure):
        return ()
    return own


def one_of(servable_releases: ServableReleases, epsilon: Decimal) -> Kept:
    """A choice cannot be averaged: of what the analyst has the least that is enough, or else what others have."""
    strengths = {release: release.release.mechanism.strength for release in servable_releases.own}
    enough = (release for release in servable_releases.own if strengths[release] >= epsilon)
    best = min(
        enough,
        key=lambda kept_release: (strengths[kept_release], -kept_release.id),
        default=_worth_its_price(servable_releases.other, epsilon),
    )
    return () if best is None else (best,)


def find_bound(servable_releases: ServableReleases, epsilon: Decimal, asked: Decimal) -> KeptRelease | None:
    """The surest bound that the analyst has, with which the best answers were made, or else what others have.

    An ε is enough that is less than the one with which it would be chosen now (`asked`).
    """
    enough = (release for release in servable_releases.own if release.release.mechanism.strength >= epsilon)
    best = max(
        enough, key=lambda kept_release: (kept_release.release.mechanism.strength, kept_release.id), default=None
    )
    return _worth_its_price(servable_releases.other, epsilon, asked) if best is None else best


def _worth_its_price(other: KeptRelease | None, epsilon: Decimal, asked: Decimal | None = None) -> KeptRelease | None:
    """One of an earlier period costs the dataset too, so it is not taken where it is dearer than what is enough.

    Another costs the dataset nothing and is more precise; but who asks at a small ε means to pay little.
    """
    if other is None:
        return None
    most = DEARER * (epsilon if asked is None else asked) if other.shared else epsilon
    return other if other.release.mechanism.strength <= most else None


def first_sights(kept_releases: Iterable[KeptRelease]) -> list[KeptRelease]:
    """Those of these releases for which an account pays that has some of them: of one vector the first, if none is.

    Whatever else of a vector it has is not known here; `proxy.ledger.sights` knows.
    """
    kept = {each.id: each for each in kept_releases}.values()
    paid = {each.vector or (each.id,) for each in kept if each.paid}
    first: dict[tuple[int, ...], KeptRelease] = {}
    for each in kept:
        if not each.paid:
            first.setdefault(each.vector or (each.id,), each)
    return [each for vector, each in first.items() if vector not in paid]


def with_own_vectors(drawn: Iterable[Sequence[Release]]) -> list[list[Release]]:
    """What was drawn for several questions, with vectors that are no other question's.

    Two of them may have one key, by which the ledger keeps what they are of, and each was paid for by itself.
    """
    numbers = defaultdict[tuple[int, int], int](count().__next__)
    return [
        [each if each.vector is None else replace(each, vector=numbers[place, each.vector]) for each in releases]
        for place, releases in enumerate(drawn)
    ]


def _by_groups(kept: Kept) -> Iterable[Kept]:
    """Releases over different groups are not combined. Of equally good lists the newest comes first."""
    lists: dict[tuple[Group, ...], list[KeptRelease]] = {}
    for each in sorted(kept, key=lambda each: -each.id):
        lists.setdefault(each.release.groups, []).append(each)
    return map(tuple, lists.values())


def _precision(measure: Measure, kept: Kept) -> Fraction:
    """Of the mean of these releases."""
    return sum((_precision_paid(measure, release.release.mechanism) for release in kept), Fraction(0))


def precision_asked(measure: Measure) -> Fraction:
    return _precision_of(noise_of(measure, group_size=1))


def _precision_paid(measure: Measure, mechanism: Mechanism) -> Fraction:
    return _precision_of(noise_paid(measure, mechanism, group_size=1))


@lru_cache(maxsize=4096)
def _precision_of(noise: AdditiveNoise) -> Fraction:
    """Kept by numbers alone: a planner gives names, and those of one that was taken over may be of megabytes."""
    return noise.precision
