"""Find what need not be asked again: measures over equal blocks that were released with enough ε and are still fresh.

Several releases of a measure that are on the analyst's account serve together, as their mean by inverse variance, which
is computed from what he has. So do those that a statement adds to the account, unless it asks for a new one alone: what
is shown once is shown again until somebody buys more, or some of it is not fresh any more.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from functools import partial
from itertools import chain

from proxy.execute.known_releases import (
    DEARER,
    Kept,
    find_bound,
    first_sights,
    one_of,
    precision_asked,
    serving,
    serving_inner,
)
from proxy.execute.question import NO_GROUPS, Question, ladder_key, nothing_known, top_key
from proxy.execute.released_cells import (
    NOTHING,
    Known,
    Readings,
    alike,
    alone,
    block_key,
    find_readings,
    measure_key,
    precision_of,
)
from proxy.execute.rulebook import StatementContext
from proxy.execute.synopses import lasting
from rules.accounting.store import LedgerStore, ReleaseQuery, ServableReleases
from rules.mechanisms.additive import laws_of, mechanism_of
from rules.mechanisms.cost import UPWARD
from rules.mechanisms.release_plan import Block, Measure, PrivateGroups
from rules.release.bound_ladder import report_name
from rules.release.keys import Group
from rules.release.release import Noised

_AS_GOOD = Decimal(4)  # a bound that was chosen for four times the noise is as good as one that is chosen now


async def find_known(block: Block, key: str, ledger: LedgerStore, context: StatementContext, now: datetime) -> Question:
    """A block with every release that may serve it: paid for already, or else the cheapest with the ε asked for.

    Groups found in the data are known only with the measure that found them; other measures must be over that list.
    """
    if block.plain is not None:
        plain = await find_known(block.plain, block_key(block.plain, context.rulebook), ledger, context, now)
        if not plain.mechanisms and all(kept.paid for kept in plain.kept):
            return plain
    question = nothing_known(block, key)
    if question.finder is not None:
        finder = question.finder
        listed = await find_known(finder, block_key(finder, context.rulebook), ledger, context, now)
        if listed.fresh or listed.groups is None:
            return question
        ((found, *_),) = listed.known.values()
        question = replace(question, known_list=found).over(listed.groups, context)
        block = question.block
    if block.ladders:
        least = [UPWARD.divide(ladder.epsilon, _AS_GOOD) for ladder in block.ladders]
        names = map(ladder_key, block.ladders)
        queries = [ReleaseQuery(key, name, epsilon, NO_GROUPS) for name, epsilon in zip(names, least, strict=True)]
        kept = await _find(queries, ledger, context, now, since=now - context.rulebook.policy.choice_for)
        bounds = {
            index: find_bound(each, least[index], block.ladders[index].epsilon) for index, each in enumerate(kept)
        }
        question = replace(question, known_bounds={index: kept for index, kept in bounds.items() if kept is not None})
        if question.fresh_ladders:
            return question
        question = question.settled({}, context)
    if block.report is not None:
        query = ReleaseQuery(question.key, report_name(question.block), block.report, NO_GROUPS, question.charges)
        (servable,) = await _find_with(question, [query], ledger, context, now)
        question = replace(question, known_report=next(iter(one_of(servable, block.report)), None))
    return await _find_measures(question, ledger, context, now)


async def _find_measures(question: Question, ledger: LedgerStore, context: StatementContext, now: datetime) -> Question:
    block, groups = question.block, question.groups
    if block.top is not None:
        query = ReleaseQuery(question.key, top_key(block.top), block.top.epsilon, None, question.charges)
        (servable,) = await _find_with(question, [query], ledger, context, now)
        top = next(iter(one_of(servable, block.top.epsilon)), None)
        if top is None or len(top.release.groups) != block.top.count:  # the noise of the numbers is for so many groups
            return question
        question, groups = replace(question, known_top=top), top.release.groups
    of_block = partial(find_readings, block, ledger=ledger, context=context, now=now, may_be_cut=question.may_be_cut)
    others = NOTHING if question.rests_on_unpaid else await of_block(groups)
    cells = others.readings

    async def find(indexes: Sequence[int], charges: frozenset[int] | None) -> dict[int, Kept]:
        queries = [_query(block, index, question.key, groups, charges) for index in indexes]
        servable = await _find_with(question, queries, ledger, context, now)
        besides = {index: precision_of(alike(cells).get(index, ()), len(groups or ())) for index in indexes}
        serve = serving_inner if context.is_inner else serving
        served = {i: serve(block.measures[i], own, besides[i]) for i, own in zip(indexes, servable, strict=True)}
        return {index: kept for index, kept in served.items() if kept is not None}

    if isinstance(block.groups, PrivateGroups):
        listed = await find([block.groups.measure], question.charges)
        if not listed:
            return question
        groups = listed[block.groups.measure][0].release.groups
        question = replace(question, known=listed, groups=groups)
    unknown = [index for index in range(len(block.measures)) if index not in question.known]
    known = _with_whole_vectors(block, {**question.known, **await find(unknown, question.charges)})
    beside = {i: each for i, each in alike(cells).items() if not context.is_inner or known.get(i) == ()}
    served = replace(question, groups=groups, known=known, cells=beside, relatives=others.relatives)
    served = _from_one(served, cells)
    if not served.fresh or block.cells is None:
        return served
    return _cheaper(served, await of_block(groups, of_others=True, charges=question.charges))


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
        if not known.keys() >= set(vector) or price > DEARER * block.measures[vector[0]].epsilon:
            again |= {index for index, kept in unpaid.items() if kept}
    return {index: kept for index, kept in known.items() if index not in again}


def _cheaper(own: Question, paid: Known) -> Question:
    """The question with what others were charged for too, where it costs no more."""
    seen = _from_one(own, alike(paid.readings))
    is_as_cheap = all(price <= most for price, most in zip(_prices(seen), _prices(own), strict=True))
    return seen if is_as_cheap else own


def _prices(question: Question) -> tuple[Decimal, Decimal]:
    """Add up the ε and the δ that an analyst's account would be charged."""
    charged = [*(kept.release.mechanism for kept in first_sights(question.kept)), *question.mechanisms]
    return sum((each.strength for each in charged), Decimal(0)), sum((each.delta for each in charged), Decimal(0))


async def with_others(question: Question, ledger: LedgerStore, context: StatementContext, now: datetime) -> Question:
    """The question with what has been released for others meanwhile, as for those of the same statement.

    It is as it was where a part of what serves it is not found again: it has been paid, and may be all that there is.
    """
    if context.is_inner or not all(reading.is_alike for some in question.cells.values() for reading in some):
        return question
    others = await find_readings(
        question.block, question.groups, ledger, context, now, may_be_cut=question.may_be_cut
    )  # fmt: skip
    cells = alike(others.readings)
    if not _releases(question.cells) <= _releases(cells):
        return question
    return replace(question, cells=cells, relatives=others.relatives)


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


async def find_own(question: Question, ledger: LedgerStore, context: StatementContext, now: datetime) -> Noised | None:
    """Find what is on the analyst's account of a block's measures, whatever ε it was bought with, with the noise of the
    answer that is asked for; None where a part of it is not. What only others have paid for tells nothing here.
    """
    block, size = question.block, context.rulebook.policy.group_size
    if question.fresh_ladders or not all(kept.paid for kept in question.known_bounds.values()):
        return None
    if not all(kept.paid for kept in question.kept):
        question = nothing_known(block, question.key)
    if question.groups is not None and not question.fresh:
        return question.complete(Noised(question.groups, {}), group_size=size)
    queries = [_query(block, index, question.key, question.groups) for index in range(len(block.measures))]
    owned = [servable.own for servable in await _find(queries, ledger, context, now)]
    lists = set.intersection(*({kept.release.groups for kept in own} for own in owned)) if owned else set()
    if not lists:
        return None
    groups = max(lists, key=lambda some: max(kept.id for own in owned for kept in own if kept.release.groups == some))
    known = {index: tuple(kept for kept in own if kept.release.groups == groups) for index, own in enumerate(owned)}
    values = replace(question, known=known).complete(Noised(groups, {}), group_size=size).values
    return Noised(groups, values, laws_of(block, group_size=size))


async def _find_with(
    question: Question, queries: Sequence[ReleaseQuery], ledger: LedgerStore, context: StatementContext, now: datetime
) -> Sequence[ServableReleases]:
    """Find what serves with the bounds and groups of a question, of what these tell the analyst nothing new about."""
    servables = await _find(queries, ledger, context, now)
    if not question.rests_on_unpaid:
        return servables
    charges = question.charges or frozenset()
    return [
        replace(servable, own=tuple(kept for kept in servable.own if kept.charge in charges)) for servable in servables
    ]


async def _find(
    queries: Sequence[ReleaseQuery],
    ledger: LedgerStore,
    context: StatementContext,
    now: datetime,
    *,
    since: datetime | None = None,
) -> Sequence[ServableReleases]:
    return await ledger.find_releases(
        queries,
        analyst=context.analyst,
        budgets=context.rulebook.budgets,
        now=now,
        since=fresh_since(context, now) if since is None else since,
        lasting=lasting(context.cubes),
    )


def fresh_since(context: StatementContext, now: datetime) -> datetime:
    """From when on a release is fresh."""
    return now - context.rulebook.policy.fresh_for


def _query(
    block: Block, index: int, key: str, groups: tuple[Group, ...] | None, charges: frozenset[int] | None = None
) -> ReleaseQuery:
    measure, delta = block.measures[index], mechanism_of(block, index).delta
    return ReleaseQuery(key, measure_key(measure), measure.epsilon, groups, charges, delta)
