"""Find the known release that serves a measure: by its precision, and by who has paid for it."""

from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

from rules.accounting.store import KeptRelease, ServableReleases
from rules.mechanisms.additive import noise_of, noise_paid
from rules.mechanisms.cost import Mechanism
from rules.mechanisms.release_plan import Choice, Measure
from rules.release.keys import Group

Kept = tuple[KeptRelease, ...]


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


def find_bound(servable_releases: ServableReleases, epsilon: Decimal) -> KeptRelease | None:
    """The surest bound that the analyst has, with which the best answers were made, or else what others have."""
    enough = (release for release in servable_releases.own if release.release.mechanism.strength >= epsilon)
    best = max(
        enough, key=lambda kept_release: (kept_release.release.mechanism.strength, kept_release.id), default=None
    )
    return _worth_its_price(servable_releases.other, epsilon) if best is None else best


def _worth_its_price(other: KeptRelease | None, epsilon: Decimal) -> KeptRelease | None:
    """One of an earlier period costs the dataset too, so it is not taken where it is dearer than what is asked."""
    if other is None or other.shared or other.release.mechanism.strength <= epsilon:
        return other
    return None


def _by_groups(kept: Kept) -> Iterable[Kept]:
    """Releases over different groups are not combined. Of equally good lists the newest comes first."""
    lists: dict[tuple[Group, ...], list[KeptRelease]] = {}
    for each in sorted(kept, key=lambda each: -each.id):
        lists.setdefault(each.release.groups, []).append(each)
    return map(tuple, lists.values())


def _precision(measure: Measure, kept: Kept) -> Fraction:
    """Of the mean of these releases."""
    return sum((_precision_paid(measure, release.release.mechanism) for release in kept), Fraction(0))


@lru_cache(maxsize=4096)
def precision_asked(measure: Measure) -> Fraction:
    return noise_of(measure, group_size=1).precision


@lru_cache(maxsize=4096)
def _precision_paid(measure: Measure, mechanism: Mechanism) -> Fraction:
    return noise_paid(measure, mechanism, group_size=1).precision
