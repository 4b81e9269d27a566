"""What need not be asked again: measures over equal blocks that were released with enough ε and are still fresh.

Several releases of a measure that are on the analyst's account serve together, as their mean by inverse variance, which
is computed from what he has. So do those that a statement adds to the account, unless it asks for a new one alone: what
is shown once is shown again until somebody buys more, or some of it is not fresh any more.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal

from proxy.execute.released_cells import Readings, alike, alone, block_key, find_readings, measure_key, precision_of
from proxy.execute.serving import Kept, find_bound, one_of, precision_asked, serving
from proxy.execute.statement_context import StatementContext
from rules.accounting.store import KeptRelease, LedgerStore, Release, ReleaseQuery, ServableReleases
from rules.kernel.replay import BlockStatement, Kernel, Statement
from rules.kernel.statement import Bounded, Tally
from rules.mechanisms.additive import NoisedMeasure, combined, combined_by_group, laws_of, noise_of, noise_paid
from rules.mechanisms.cost import UPWARD, Mechanism, mechanism_of, mechanism_of_ladder, mechanism_of_top
from rules.mechanisms.distribution import Distribution
from rules.mechanisms.release_plan import Block, Choice, Ladder, Measure, PrivateGroups
from rules.mechanisms.top_groups import Top
from rules.release.cut_report import report_name, report_statement
from rules.release.keys import Group
from rules.release.release import Noised, known_groups
from rules.release.sensitivity import settled

_NO_GROUPS = ((),)  # a bound is one for all groups
_AS_GOOD = Decimal(4)  # a bound that was chosen for four times the noise is as good as one that is chosen now


@dataclass(frozen=True, slots=True)
class Question:
    """One block, what is known of its answer already, and what must be drawn anew."""

    block: Block  # with ladders as long as its bounds are to be chosen
    key: str
    groups: tuple[Group, ...] | None  # None: they are to be found in the data
    known: Mapping[int, Kept] = field(default_factory=dict)
    known_bounds: Mapping[int, KeptRelease] = field(default_factory=dict)  # by ladder
    bounds: tuple[tuple[Ladder, int], ...] = ()  # of the block as it is answered
    chosen: tuple[Release, ...] = ()  # the bounds that were drawn for this question
    beside: Mapping[int, Kept] = field(default_factory=dict)  # what fresh draws are combined with
    cells: Readings = field(default_factory=dict)  # and what all are combined with: sums of other questions' cells
    known_report: KeptRelease | None = None  # of what was cut
    reported: int | None = None  # the report that was drawn for this question
    known_top: KeptRelease | None = None  # which groups were chosen
    ranks: tuple[int, ...] | None = None  # the choice that was drawn for this question

    @property
    def fresh(self) -> tuple[int, ...]:
        """The measures to draw."""
        return tuple(index for index in range(len(self.block.measures)) if index not in self.known)

    @property
    def asks_report(self) -> bool:
        """Whether it is to be reported anew what was cut."""
        return self.block.report is not None and self.known_report is None

    @property
    def asks_top(self) -> bool:
        """Whether groups are to be chosen anew."""
        return self.block.top is not None and self.known_top is None

    @property
    def is_fresh(self) -> bool:
        """Whether anything is to be drawn."""
        return bool(self.fresh) or self.asks_report

    @property
    def fresh_ladders(self) -> tuple[int, ...]:
        """The ladders to choose on."""
        return tuple(index for index in range(len(self.block.ladders)) if index not in self.known_bounds)

    def statements(self, kernel: Kernel) -> tuple[Bounded | Tally, ...]:
        """The statements that will run. Where bounds are to be chosen, the highest ones stand in for them."""
        asked: tuple[Bounded | Tally, ...] = tuple(kernel.bounded(each) for each in dict.fromkeys(self._asked()))
        if self.asks_report:
            asked = (kernel.tally(report_statement(self.block)), *asked)
        return (kernel.tally(self.block.tally), *asked) if self.fresh_ladders and self.block.tally else asked

    def _asked(self) -> Iterator[Statement | BlockStatement]:
        """The block's own statement, unless all that is summed is known, and those of quantiles."""
        if self.groups is None or any(self._is_summed(index) for index in self.fresh):
            yield self.block.statement
        for index in self.fresh:
            if isinstance(choice := self.block.measures[index], Choice):
                yield choice.statement

    @property
    def mechanisms(self) -> tuple[Mechanism, ...]:
        """What is drawn anew. A measure costs the same whatever bound is chosen for it."""
        ladders = tuple(mechanism_of_ladder(self.block.ladders[index]) for index in self.fresh_ladders)
        report = (Mechanism.pure(self.block.report),) if self.block.report and self.asks_report else ()
        top = (mechanism_of_top(self.block.top),) if self.block.top and self.asks_top else ()
        return (
            ladders + report + top + tuple(mechanism_of(self.block, index) for index in self.block.paying(self.fresh))
        )

    @property
    def kept(self) -> Kept:
        """What is shown again, bounds and reports included."""
        others = (each for each in (self.known_report, self.known_top) if each is not None)
        return (*self.known_bounds.values(), *others, *self.answered)

    @property
    def answered(self) -> Kept:
        """The measures that are shown again."""
        cells = (each.kept for found in self.cells.values() for each in found)
        return tuple(
            {each.id: each for each in (*(k for found in self.known.values() for k in found), *cells)}.values()
        )

    @property
    def sources(self) -> tuple[int, ...]:
        """Of which releases it is made, and which are of which measure."""
        bounds = (number for index, kept in self.known_bounds.items() for number in (-1 - index, kept.id))
        report = () if self.known_report is None else (0, self.known_report.id)
        return (
            *report,
            *bounds,
            *(n for index, found in self.known.items() for n in (-1 - index, *(k.id for k in found))),
            *(n for index, cells in self.cells.items() for n in (-1 - index, *(each.kept.id for each in cells))),
        )

    @property
    def combined(self) -> int:
        """Of how many releases a measure is the mean, at most."""
        drawn = {index: 1 + len(self.beside.get(index, ())) for index in self.fresh if self._is_summed(index)}
        whole = drawn | {index: len(found) for index, found in self.known.items()}
        found = (number + len(self.cells.get(index, ())) for index, number in whole.items())
        return max((number for number in found if number > 1 or not self.fresh), default=0)

    @property
    def summed(self) -> int:
        """Of how many released cells a number is made, at most; 0 where it is shown as it was released."""
        places = (places for found in self.cells.values() for each in found for places in each.places)
        return max(map(len, places), default=0)

    def settled(self, chosen: Mapping[int, int], context: StatementContext) -> "Question":
        """The question with bounds on all its ladders: those that are known, and those that were chosen now."""
        before = {index: kept.release.values[0] for index, kept in self.known_bounds.items()}
        bounds = tuple({**before, **chosen}[index] for index in range(len(self.block.ladders)))
        block = settled(self.block, bounds, context.rulebook.kernel, context.rulebook.policy.group_size)
        return replace(
            self,
            block=block,
            key=block_key(block, context.rulebook),
            bounds=tuple(zip(self._ladders_as_paid(), bounds, strict=True)),
            chosen=tuple(self._choice(self.block.ladders[index], bound) for index, bound in chosen.items()),
        )

    def _ladders_as_paid(self) -> Iterator[Ladder]:
        """The ladders with the ε of the choices that are known, which may be of another question."""
        for index, ladder in enumerate(self.block.ladders):
            kept = self.known_bounds.get(index)
            yield ladder if kept is None else replace(ladder, epsilon=kept.release.mechanism.strength)

    def _choice(self, ladder: Ladder, bound: int) -> Release:
        return Release(self.key, _ladder_key(ladder), mechanism_of_ladder(ladder), _NO_GROUPS, (bound,))

    def with_others(self, found: Sequence[Kept]) -> "Question":
        """The question with what the analyst has besides each of its releases."""
        others = len(self.chosen) + (self.reported is not None) + (self.ranks is not None)
        fresh = zip(self.fresh, found[others:], strict=True)
        return replace(self, beside={index: kept for index, kept in fresh if self._is_summed(index)})

    def complete(self, drawn: Noised, *, group_size: int) -> Noised:
        """What was drawn and what was known, put together, with the law of the noise in it."""
        values, laws = dict[int, tuple[int, ...]](), dict[int, Distribution]()
        apart = dict[int, tuple[Distribution, ...]]()
        for index, measure in enumerate(self.block.measures):
            kept = self.known.get(index) or self.beside.get(index, ())
            if isinstance(measure, Choice):
                values[index] = kept[0].release.values if kept else drawn.values[index]
                continue
            readings = [_reading(each.release, measure, group_size) for each in kept]
            if index in drawn.values:
                readings.append(NoisedMeasure(drawn.values[index], noise_of(measure, group_size=group_size)))
            if cells := [each.summed(group_size) for each in self.cells.get(index, ())]:
                values[index], apart[index] = combined_by_group(readings, cells, len(drawn.groups))
                laws[index] = max(apart[index], key=lambda law: law.deviation)
            else:
                values[index], laws[index] = combined(readings)
        return Noised(drawn.groups, values, laws, apart)

    def _is_summed(self, index: int) -> bool:
        return isinstance(self.block.measures[index], Measure)

    def releases(self, drawn: Noised) -> list[Release]:
        """What was drawn, as the ledger keeps it: released cells only."""
        return [
            *self.chosen,
            *self._report(),
            *self._top(drawn),
            *(self._release(index, drawn) for index in self.fresh),
        ]

    def _report(self) -> Iterator[Release]:
        if self.reported is not None and self.block.report is not None:
            cost = Mechanism.pure(self.block.report)
            yield Release(self.key, report_name(self.block), cost, _NO_GROUPS, (self.reported,))

    def _top(self, drawn: Noised) -> Iterator[Release]:
        if self.ranks is not None and self.block.top is not None:
            cost = mechanism_of_top(self.block.top)
            yield Release(self.key, _top_key(self.block.top), cost, drawn.groups, self.ranks)

    def _release(self, index: int, drawn: Noised) -> Release:
        name, cost = measure_key(self.block.measures[index]), mechanism_of(self.block, index)
        return Release(self.key, name, cost, drawn.groups, drawn.values[index])


def nothing_known(block: Block, key: str) -> Question:
    """A block to ask anew."""
    return Question(block, key, known_groups(block))


async def find_known(block: Block, key: str, ledger: LedgerStore, context: StatementContext, now: datetime) -> Question:
    """A block with every release that may serve it: paid for already, or else the cheapest with the ε asked for.

    Groups found in the data are known only with the measure that found them; other measures must be over that list.
    """
    if block.plain is not None:
        plain = await find_known(block.plain, block_key(block.plain, context.rulebook), ledger, context, now)
        if not plain.mechanisms and all(kept.paid for kept in plain.kept):
            return plain
    question = nothing_known(block, key)
    if block.ladders:
        least = [UPWARD.divide(ladder.epsilon, _AS_GOOD) for ladder in block.ladders]
        names = map(_ladder_key, block.ladders)
        wanted = [ReleaseQuery(key, name, epsilon, _NO_GROUPS) for name, epsilon in zip(names, least, strict=True)]
        kept = await _find(wanted, ledger, context, now, since=now - context.rulebook.policy.choice_for)
        bounds = {index: find_bound(each, least[index]) for index, each in enumerate(kept)}
        question = replace(question, known_bounds={index: kept for index, kept in bounds.items() if kept is not None})
        if question.fresh_ladders:
            return question
        question = question.settled({}, context)
    if block.report is not None:
        (found,) = await _find(
            [ReleaseQuery(question.key, report_name(question.block), block.report, _NO_GROUPS)], ledger, context, now
        )
        question = replace(question, known_report=next(iter(one_of(found, block.report)), None))
    return await _find_measures(question, ledger, context, now)


async def _find_measures(question: Question, ledger: LedgerStore, context: StatementContext, now: datetime) -> Question:
    block, groups = question.block, question.groups
    if block.top is not None:
        asked = ReleaseQuery(question.key, _top_key(block.top), block.top.epsilon, None)
        (found,) = await _find([asked], ledger, context, now)
        top = next(iter(one_of(found, block.top.epsilon)), None)
        if top is None:
            return question
        question, groups = replace(question, known_top=top), top.release.groups
    known = dict[int, Kept]()
    may_be_cut = bool(question.bounds) or any(cut.what == "rows" for cut in block.cuts)
    cells = await find_readings(block, groups, ledger, context, now, may_be_cut=may_be_cut)

    async def find(indexes: Sequence[int]) -> dict[int, Kept]:
        wanted = [_wanted(block.measures[index], question.key, groups) for index in indexes]
        found = await _find(wanted, ledger, context, now)
        besides = {index: precision_of(alike(cells).get(index, ()), len(groups or ())) for index in indexes}
        pairs = zip(indexes, found, strict=True)
        served = {index: serving(block.measures[index], each, besides[index]) for index, each in pairs}
        return {index: kept for index, kept in served.items() if kept is not None}

    if isinstance(block.groups, PrivateGroups):
        known = await find([block.groups.measure])
        if not known:
            return question
        groups = known[block.groups.measure][0].release.groups
    others = [index for index in range(len(block.measures)) if index not in known]
    known = {**known, **await find(others)}
    return _from_one(replace(question, groups=groups, known=known, cells=alike(cells)), cells)


def _from_one(question: Question, cells: Readings) -> Question:
    """The question with one release's cells alone, where nothing else would do and these are enough."""
    measures = [(index, each) for index, each in enumerate(question.block.measures) if isinstance(each, Measure)]
    if not question.fresh or len(measures) < len(question.block.measures):
        return question
    asked = {index: precision_asked(each) for index, each in measures}
    found = alone(cells, asked, len(question.groups or ()))
    return question if found is None else replace(question, known=dict.fromkeys(asked, ()), cells=found)


async def find_own(question: Question, ledger: LedgerStore, context: StatementContext, now: datetime) -> Noised | None:
    """What is on the analyst's account of a block's measures, whatever ε it was bought with, with the noise of the
    answer that is asked for; None where a part of it is not.
    """
    block, size = question.block, context.rulebook.policy.group_size
    if question.fresh_ladders:
        return None
    if question.groups is not None and not question.fresh:
        return question.complete(Noised(question.groups, {}), group_size=size)
    wanted = [_wanted(each, question.key, question.groups) for each in block.measures]
    found = [each.own for each in await _find(wanted, ledger, context, now)]
    lists = set.intersection(*({kept.release.groups for kept in own} for own in found)) if found else set()
    if not lists:
        return None
    groups = max(lists, key=lambda each: max(kept.id for own in found for kept in own if kept.release.groups == each))
    own = {index: tuple(kept for kept in each if kept.release.groups == groups) for index, each in enumerate(found)}
    values = replace(question, known=own).complete(Noised(groups, {}), group_size=size).values
    return Noised(groups, values, laws_of(block, group_size=size))


async def _find(
    wanted: Sequence[ReleaseQuery],
    ledger: LedgerStore,
    context: StatementContext,
    now: datetime,
    *,
    since: datetime | None = None,
) -> Sequence[ServableReleases]:
    return await ledger.find_releases(
        wanted,
        analyst=context.analyst,
        budgets=context.rulebook.budgets,
        now=now,
        since=fresh_since(context, now) if since is None else since,
    )


def fresh_since(context: StatementContext, now: datetime) -> datetime:
    """From when on a release is fresh."""
    return now - context.rulebook.policy.fresh_for


def _reading(release: Release, measure: Measure, group_size: int) -> NoisedMeasure:
    return NoisedMeasure(release.values, noise_paid(measure, release.mechanism, group_size=group_size))


def _wanted(measure: Measure | Choice, key: str, groups: tuple[Group, ...] | None) -> ReleaseQuery:
    return ReleaseQuery(key, measure_key(measure), measure.epsilon, groups)


def _top_key(top: Top) -> str:
    return f"top {top.count} of {top.listed} by {top.name} within {top.sensitivity} of {top.factor} parts"


def _ladder_key(ladder: Ladder) -> str:
    return f"bound of {ladder.name} up to {ladder.rungs[-1]}"
