"""Find what need not be asked again: measures over equal blocks that were released with enough ε and are still fresh.

Several releases of a measure that are on the analyst's account serve together, as their mean by inverse variance, which
is computed from what he has. So do those that a statement adds to the account, unless it asks for a new one alone: what
is shown once is shown again until somebody buys more, or some of it is not fresh any more. Which releases these are
follows from the question and the ledger, never from a number.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from itertools import chain, count
from typing import Final

from proxy.execute.question import NO_GROUPS, Question, ladder_key, nothing_known, top_key
from proxy.execute.released_cells import (
    NOTHING,
    Kept,
    Known,
    Readings,
    alike,
    alone,
    block_key,
    cells_of,
    find_readings,
    measure_key,
    precision_of,
    views_of,
)
from proxy.execute.rulebook import StatementContext
from proxy.execute.synopses import lasting
from rules.accounting.store import KeptRelease, LedgerStore, Release, ReleaseQuery, ServableReleases, Viewer
from rules.mechanisms.additive import AdditiveNoise, laws_of, mechanism_of, noise_of, noise_paid
from rules.mechanisms.cost import UPWARD
from rules.mechanisms.release_plan import Block, Choice, Measure, PrivateGroups
from rules.release.bound_ladder import report_name
from rules.release.keys import Group
from rules.release.release import Noised

_AS_GOOD: Final = Decimal(4)  # a bound that was chosen for four times the noise is as good as one that is chosen now
_DEARER: Final = 2  # times what is asked for may be paid for an answer that others have paid for


@dataclass(frozen=True, slots=True)
class Finder:
    """Looks into the ledger for one analyst, at one moment."""

    ledger: LedgerStore
    context: StatementContext
    now: datetime

    @property
    def viewer(self) -> Viewer:
        """Whose account is looked at, and since when releases are fresh."""
        context = self.context
        since = fresh_since(context, self.now)
        return Viewer(context.analyst, context.rulebook.budgets, self.now, since, lasting(context.cubes))

    async def find_known(self, block: Block) -> Question:
        """A block with every release that may serve it: paid for already, or else the cheapest with the ε asked for.

        Groups found in the data are known only with the measure that found them; other measures must be over that list.
        """
        if block.plain is not None:
            plain = await self.find_known(block.plain)
            if not plain.mechanisms and all(kept.paid for kept in plain.kept):
                return plain
        context, question = self.context, nothing_known(block, block_key(block, self.context.rulebook))
        if question.finder is not None:
            listed = await self.find_known(question.finder)
            if listed.fresh or listed.groups is None:
                return question
            ((found, *_),) = listed.known.values()
            question = replace(question, known_list=found).over(listed.groups, context)
            block = question.block
        if block.ladders:
            question = await self._with_bounds(question)
            if question.fresh_ladders:
                return question
            question = question.settled({}, context)
        if block.report is not None:
            query = ReleaseQuery(question.key, report_name(question.block), block.report, NO_GROUPS, question.charges)
            (servable,) = await self._find_with(question, [query])
            question = replace(question, known_report=next(iter(one_of(servable, block.report)), None))
        return await self._with_measures(question)

    async def _with_bounds(self, question: Question) -> Question:
        ladders, viewer = question.block.ladders, self.viewer
        least = [UPWARD.divide(ladder.epsilon, _AS_GOOD) for ladder in ladders]
        names = map(ladder_key, ladders)
        queries = [ReleaseQuery(question.key, *each, NO_GROUPS) for each in zip(names, least, strict=True)]
        since = self.now - self.context.rulebook.policy.choice_for
        kept = await self.ledger.find_releases(queries, replace(viewer, since=since))
        bounds = {index: find_bound(each, least[index], ladders[index].epsilon) for index, each in enumerate(kept)}
        return replace(question, known_bounds={index: kept for index, kept in bounds.items() if kept is not None})

    async def _with_measures(self, question: Question) -> Question:
        block, groups = question.block, question.groups
        if block.top is not None:
            query = ReleaseQuery(question.key, top_key(block.top), block.top.epsilon, None, question.charges)
            (servable,) = await self._find_with(question, [query])
            top = next(iter(one_of(servable, block.top.epsilon)), None)
            if top is None or len(top.release.groups) != block.top.count:  # the noise of the numbers is for so many
                return question
            question, groups = replace(question, known_top=top), top.release.groups
        others = NOTHING if question.rests_on_unpaid else await self._find_cells(question, groups)
        cells = others.readings
        if isinstance(block.groups, PrivateGroups):
            listed = await self._serving(question, [block.groups.measure], groups, cells)
            if not listed:
                return question
            groups = listed[block.groups.measure][0].release.groups
            question = replace(question, known=listed, groups=groups)
        unknown = [index for index in range(len(block.measures)) if index not in question.known]
        served = await self._serving(question, unknown, groups, cells)
        known = _with_whole_vectors(block, {**question.known, **served})
        beside = {i: each for i, each in alike(cells).items() if not self.context.is_inner or known.get(i) == ()}
        question = replace(question, groups=groups, known=known, cells=beside, relatives=others.relatives)
        question = _from_one(question, cells)
        if not question.fresh or block.cells is None:
            return question
        return _cheaper(question, await self._find_cells(question, groups, of_others=True))

    async def _serving(
        self, question: Question, indexes: Sequence[int], groups: tuple[Group, ...] | None, cells: Readings
    ) -> dict[int, Kept]:
        """Find what serves some measures, with cells of other questions besides."""
        block, charges = question.block, question.charges
        queries = [_query(block, index, question.key, groups, charges) for index in indexes]
        servable = await self._find_with(question, queries)
        besides = {index: precision_of(alike(cells).get(index, ()), len(groups or ())) for index in indexes}
        serve = serving_inner if self.context.is_inner else serving
        served = {i: serve(block.measures[i], own, besides[i]) for i, own in zip(indexes, servable, strict=True)}
        return {index: kept for index, kept in served.items() if kept is not None}

    async def _find_with(self, question: Question, queries: Sequence[ReleaseQuery]) -> Sequence[ServableReleases]:
        """Find what serves with the bounds and groups of a question, where these tell the analyst nothing new."""
        servables = await self.ledger.find_releases(queries, self.viewer)
        if not question.rests_on_unpaid:
            return servables
        charges = question.charges or frozenset()
        return [
            replace(servable, own=tuple(kept for kept in servable.own if kept.charge in charges))
            for servable in servables
        ]

    async def _find_cells(
        self, question: Question, groups: Sequence[Group] | None, *, of_others: bool = False
    ) -> Known:
        """Find what other questions on the analyst's account, or on others', say of a block whose groups are known.

        Those of others have to be of one of the charges, if any are named: see `Question.charges`.
        """
        block, rulebook = question.block, self.context.rulebook
        if block.cells is None or groups is None:
            return NOTHING
        kept = await self.ledger.find_cells(tuple(views_of(block, rulebook)), self.viewer, of_others=of_others)
        if of_others:  # none of a cube, which is paid as a whole, by those whom it is for
            charges = question.charges
            kept = [each for each in kept if charges is None or each.charge in charges]
            kept = [each for each in kept if (cells := cells_of(each)) is not None and not cells.is_chosen]
        known = find_readings(block, groups, kept, rulebook, may_be_cut=question.may_be_cut)
        return replace(known, relatives=NOTHING.relatives) if self.context.is_inner else known

    async def with_others(self, question: Question) -> Question:
        """The question with what has been released for others meanwhile, as for those of the same statement.

        It is as it was where a part of what serves it is not found again: it has been paid, and may be all there is.
        """
        if self.context.is_inner or not all(each.is_alike for some in question.cells.values() for each in some):
            return question
        others = await self._find_cells(question, question.groups)
        cells = alike(others.readings)
        if not _releases(question.cells) <= _releases(cells):
            return question
        return replace(question, cells=cells, relatives=others.relatives)

    async def find_own(self, question: Question) -> Noised | None:
        """Find what is on the analyst's account of a block's measures, whatever ε it was bought with, with the noise of
        the answer that is asked for; None where a part of it is not. What only others have paid for tells nothing here.
        """
        block, size = question.block, self.context.rulebook.policy.group_size
        if question.fresh_ladders or not all(kept.paid for kept in question.known_bounds.values()):
            return None
        if not all(kept.paid for kept in question.kept):
            question = nothing_known(block, question.key)
        if question.groups is not None and not question.fresh:
            return question.complete(Noised(question.groups, {}), group_size=size)
        queries = [_query(block, index, question.key, question.groups) for index in range(len(block.measures))]
        owned = [servable.own for servable in await self.ledger.find_releases(queries, self.viewer)]
        lists = set.intersection(*({kept.release.groups for kept in own} for own in owned)) if owned else set()
        if not lists:
            return None
        groups = max(
            lists, key=lambda some: max(kept.id for own in owned for kept in own if kept.release.groups == some)
        )
        known = {index: tuple(kept for kept in own if kept.release.groups == groups) for index, own in enumerate(owned)}
        values = replace(question, known=known).complete(Noised(groups, {}), group_size=size).values
        return Noised(groups, values, laws_of(block, group_size=size))


def fresh_since(context: StatementContext, now: datetime) -> datetime:
    """From when on a release is fresh."""
    return now - context.rulebook.policy.fresh_for


def _query(
    block: Block, index: int, key: str, groups: tuple[Group, ...] | None, charges: frozenset[int] | None = None
) -> ReleaseQuery:
    measure, delta = block.measures[index], mechanism_of(block, index).delta
    return ReleaseQuery(key, measure_key(measure), measure.epsilon, groups, charges, delta)


def _with_whole_vectors(block: Block, known: Mapping[int, Kept]) -> Mapping[int, Kept]:
    """Leave out what others have paid for of a vector, where its one price is paid for another measure anyway.

    Or where it would cost more than twice that price, having been drawn a measure at a time.
    """
    vectors: dict[int, list[int]] = {}
    for index, measure in enumerate(block.measures):
        if isinstance(measure, Measure) and measure.vector is not None:
            vectors.setdefault(measure.vector, []).append(index)
    again = set[int]()
    for vector in vectors.values():
        unpaid = {index: first_sights(known.get(index, ())) for index in vector}
        price = sum((kept.release.mechanism.strength for kept in first_sights(chain(*unpaid.values()))), Decimal(0))
        if not known.keys() >= set(vector) or price > _DEARER * block.measures[vector[0]].epsilon:
            again |= {index for index, kept in unpaid.items() if kept}
    return {index: kept for index, kept in known.items() if index not in again}


def _cheaper(own: Question, paid: Known) -> Question:
    """The question with what others were charged for too, where it costs no more."""
    seen = _from_one(own, alike(paid.readings))
    return seen if all(price <= most for price, most in zip(_prices(seen), _prices(own), strict=True)) else own


def _prices(question: Question) -> tuple[Decimal, Decimal]:
    """Add up the ε and the δ that an analyst's account would be charged."""
    charged = [*(kept.release.mechanism for kept in first_sights(question.kept)), *question.mechanisms]
    return sum((each.strength for each in charged), Decimal(0)), sum((each.delta for each in charged), Decimal(0))


def _releases(cells: Readings) -> set[int]:
    return {kept.id for some in cells.values() for reading in some for kept in reading.kept}


def _from_one(question: Question, cells: Readings) -> Question:
    """The question with one release's cells alone, where nothing else would do and these are enough."""
    measures = [(index, each) for index, each in enumerate(question.block.measures) if isinstance(each, Measure)]
    if not question.fresh or len(measures) < len(question.block.measures):
        return question
    precisions = {index: precision_asked(measure) for index, measure in measures}
    of_one = alone(cells, precisions, len(question.groups or ()))
    return question if of_one is None else replace(question, known=dict.fromkeys(precisions, ()), cells=of_one)


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
    most = _DEARER * (epsilon if asked is None else asked) if other.shared else epsilon
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
    noises = (noise_paid(measure, release.release.mechanism, group_size=1) for release in kept)
    return sum(map(_precision_of, noises), Fraction(0))


def precision_asked(measure: Measure) -> Fraction:
    return _precision_of(noise_of(measure, group_size=1))


@lru_cache(maxsize=4096)
def _precision_of(noise: AdditiveNoise) -> Fraction:
    """Kept by numbers alone: a planner gives names, and those of one that was taken over may be of megabytes."""
    return noise.precision
