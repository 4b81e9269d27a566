"""One block of a statement: what is known of its answer, what must be drawn anew, and both put together."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from proxy.execute.released_cells import (
    CellReading,
    Kept,
    Readings,
    Relatives,
    block_key,
    measure_key,
    measures_by_count,
)
from proxy.execute.rulebook import StatementContext
from rules.accounting.store import KeptRelease, Release
from rules.catalog import Table
from rules.kernel.bounded import Statement
from rules.kernel.special.blocks import BlockStatement
from rules.kernel.statement import Bounded, Tally
from rules.mechanisms.additive import mechanism_of, mechanisms_of, noise_of, noise_paid
from rules.mechanisms.cost import Mechanism, mechanism_of_ladder, mechanism_of_top
from rules.mechanisms.distribution import Distribution
from rules.mechanisms.release_plan import Block, Choice, GroupsFoundFirst, Ladder, Measure, PrivateGroups, Top
from rules.mechanisms.weighted_means import mean, of_cells
from rules.refusal import Mismatch
from rules.release.bound_ladder import report_name, report_statement
from rules.release.estimate import Reading, Relative, estimate
from rules.release.keys import Group
from rules.release.outputs import levels
from rules.release.release import Noised, known_groups
from rules.release.sensitivity import over, settled
from rules.replay import Kernel

NO_GROUPS = ((),)  # a bound is one for all groups


@dataclass(frozen=True, slots=True)
class Question:
    """One block, what is known of its answer already, and what must be drawn anew."""

    block: Block  # with ladders as long as its bounds are to be chosen
    key: str
    groups: tuple[Group, ...] | None  # None: they are to be found in the data
    known: Mapping[int, Kept] = field(default_factory=dict)
    known_bounds: Mapping[int, KeptRelease] = field(default_factory=dict)  # by ladder
    bounds: tuple[tuple[Ladder, int], ...] = ()  # of the block as it is answered
    chosen: tuple[Release, ...] = ()  # the list of groups and the bounds that were drawn for this question
    beside: Mapping[int, Kept] = field(default_factory=dict)  # what fresh draws are combined with
    cells: Readings = field(default_factory=dict)  # and what all are combined with: sums of other questions' cells
    relatives: Relatives = field(default_factory=Relatives)  # what they are made to agree with
    known_report: KeptRelease | None = None  # of what was cut
    reported: int | None = None  # the report that was drawn for this question
    known_list: KeptRelease | None = None  # by which the groups were found first
    known_top: KeptRelease | None = None  # which groups were chosen
    ranks: tuple[int, ...] | None = None  # the choice that was drawn for this question
    charge: int | None = None  # that has paid for what was drawn

    @property
    def fresh(self) -> tuple[int, ...]:
        """The measures to draw."""
        return tuple(index for index in range(len(self.block.measures)) if index not in self.known)

    @property
    def asks_report(self) -> bool:
        """Tell whether it is to be reported anew what was cut."""
        return self.block.report is not None and self.known_report is None

    @property
    def finder(self) -> Block | None:
        """Return what finds the groups before the rest can be asked; None where they are known."""
        return self.block.groups.finder if isinstance(self.block.groups, GroupsFoundFirst) else None

    @property
    def asks_top(self) -> bool:
        """Tell whether groups are to be chosen anew."""
        return self.block.top is not None and self.known_top is None

    @property
    def is_fresh(self) -> bool:
        """Tell whether anything is to be drawn."""
        return bool(self.fresh) or self.asks_report

    @property
    def charges(self) -> frozenset[int] | None:
        """Return the charges that drew all on which a release of others may rest: bounds and lists of groups.

        Equal bounds or lists of other charges would tell, by a price, what nobody paid for. None: it rests on nothing.
        """
        chosen = self._chosen
        return frozenset.intersection(*map(_charges, chosen)) if chosen else None

    @property
    def rests_on_unpaid(self) -> bool:
        """Tell whether bounds or groups are not paid: that own releases have equal ones is not known before."""
        return not all(kept.paid for chosen in self._chosen for kept in chosen)

    @property
    def _chosen(self) -> list[Kept]:
        """List the bounds and lists of groups that noise has chosen."""
        known = (*self.known_bounds.values(), self.known_list, self.known_top)
        chosen: list[Kept] = [(kept,) for kept in known if kept is not None]
        if isinstance(self.block.groups, PrivateGroups) and self.groups is not None:
            chosen.append(self.known[self.block.groups.measure])
        return chosen

    @property
    def may_be_cut(self) -> bool:
        """Tell whether a unit may have more rows than are counted."""
        return bool(self.bounds) or any(cut.what == "rows" for cut in self.block.cuts)

    @property
    def fresh_ladders(self) -> tuple[int, ...]:
        """The ladders to choose on."""
        return tuple(index for index in range(len(self.block.ladders)) if index not in self.known_bounds)

    def statements(self, kernel: Kernel) -> tuple[Bounded | Tally, ...]:
        """The statements that will run. Where bounds are to be chosen, the highest ones stand in for them."""
        statements: tuple[Bounded | Tally, ...] = tuple(
            kernel.bounded(statement) for statement in dict.fromkeys(self._asked())
        )
        if self.asks_report:
            statements = (kernel.tally(report_statement(self.block)), *statements)
        if self.fresh_ladders and self.block.tally:
            statements = (kernel.tally(self.block.tally), *statements)
        return statements if self.finder is None else (kernel.bounded(self.finder.statement), *statements)

    @property
    def statement(self) -> Statement:
        """The block's own statement. Of groups that were found before it leaves out none."""
        if self.groups is None or not isinstance(self.block.groups, PrivateGroups):
            return self.block.statement
        return replace(self.block.statement, is_list_known=True)

    def _asked(self) -> Iterator[Statement | BlockStatement]:
        """The block's own statement, unless all that is summed is known, and those of quantiles."""
        if self.groups is None or any(self._is_summed(index) for index in self.fresh):
            yield self.statement
        for index in self.fresh:
            if isinstance(choice := self.block.measures[index], Choice):
                yield choice.statement

    @property
    def mechanisms(self) -> tuple[Mechanism, ...]:
        """List what is drawn anew. A measure costs the same whatever bound is chosen for it."""
        ladders = tuple(mechanism_of_ladder(self.block.ladders[index]) for index in self.fresh_ladders)
        report = (Mechanism.pure(self.block.report),) if self.block.report and self.asks_report else ()
        top = (mechanism_of_top(self.block.top),) if self.block.top and self.asks_top else ()
        finder = () if self.finder is None else mechanisms_of(self.finder)
        return finder + (
            ladders + report + top + tuple(mechanism_of(self.block, index) for index in self.block.paying(self.fresh))
        )

    @property
    def kept(self) -> Kept:
        """List what is shown again, bounds and reports included."""
        others = (self.known_list, self.known_report, self.known_top)
        return (*self.known_bounds.values(), *(release for release in others if release is not None), *self.answered)

    @property
    def answered(self) -> Kept:
        """The measures that are shown again."""
        cells = (kept for cell in self.cells.values() for reading in cell for kept in reading.kept)
        return tuple(
            {
                release.id: release for release in (*(k for releases in self.known.values() for k in releases), *cells)
            }.values()
        )

    @property
    def shown_with(self) -> Kept:
        """All releases that the answer is made of."""
        return (*self.answered, *self.relatives.kept)

    @property
    def sources(self) -> tuple[int, ...]:
        """Of which releases it is made, and which are of which measure."""
        bounds = (number for index, kept in self.known_bounds.items() for number in (-1 - index, *_named([kept])))
        others = (kept for kept in (self.known_list, self.known_report) if kept is not None)
        return (
            *(number for kept in others for number in (0, *_named([kept]))),
            *bounds,
            *(n for index, releases in self.known.items() for n in (-1 - index, *_named(releases))),
            *(n for index, cells in self.cells.items() for n in (-1 - index, *_numbers(cells))),
            *self.relatives.sources,
        )

    @property
    def origins(self) -> frozenset[tuple[int, str, str]]:
        """Name the releases that its numbers are made of, by what drew them: alike when they serve again."""
        kept = (*self.answered, *chain.from_iterable(self.beside.values()))
        names = {(each.charge, each.release.block, each.release.measure) for each in kept}
        if self.charge is not None:
            names |= {(self.charge, self.key, measure_key(self.block.measures[index])) for index in self.fresh}
        return frozenset(names)

    @property
    def combined(self) -> int:
        """Of how many releases a measure is the mean, at most."""
        drawn = {index: 1 + len(self.beside.get(index, ())) for index in self.fresh if self._is_summed(index)}
        whole = drawn | {index: len(releases) for index, releases in self.known.items()}
        combined_numbers = (number + len(self.cells.get(index, ())) for index, number in whole.items())
        return max((number for number in combined_numbers if number > 1 or not self.fresh), default=0)

    @property
    def summed(self) -> int:
        """Of how many released cells a number is made, at most; 0 where it is shown as it was released."""
        places = (places for cell in self.cells.values() for reading in cell for places in reading.places)
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
            chosen=(
                *self.chosen,
                *(
                    Release(self.key, ladder_key(ladder), mechanism_of_ladder(ladder), NO_GROUPS, (bound,))
                    for ladder, bound in ((self.block.ladders[index], bound) for index, bound in chosen.items())
                ),
            ),
        )

    def over(self, groups: Sequence[Group], context: StatementContext) -> "Question":
        """The question over the list of groups that was found for it: of a known list all that is known may serve."""
        block = over(self.block, groups, context.rulebook.kernel, context.rulebook.policy.group_size)
        return replace(self, block=block, groups=known_groups(block))

    def _ladders_as_paid(self) -> Iterator[Ladder]:
        """The ladders with the ε of the choices that are known, which may be of another question."""
        for index, ladder in enumerate(self.block.ladders):
            kept = self.known_bounds.get(index)
            yield ladder if kept is None else replace(ladder, epsilon=kept.release.mechanism.strength)

    def with_others(self, fresh_kept: Sequence[Kept], charge: int) -> "Question":
        """The question with what the analyst has besides each of its releases, which a charge has paid for."""
        others = len(self.chosen) + (self.reported is not None) + (self.ranks is not None)
        fresh = zip(self.fresh, fresh_kept[others:], strict=True)
        beside = {index: kept for index, kept in fresh if self._is_summed(index)}
        return replace(self, beside=beside, charge=charge)

    def complete(self, drawn: Noised, *, group_size: int) -> Noised:
        """Put together what was drawn and what was known, with the law of the noise in it."""
        values, laws = dict[int, tuple[int, ...]](), dict[int, Distribution]()
        apart, nested = dict[int, tuple[Distribution, ...]](), dict[int, tuple[Sequence[int], ...]]()
        totals = dict[int, tuple[tuple[Distribution, ...], ...]]()
        coarser = [places for _, places in levels(drawn.groups, self.block.sets, keys=len(self.block.keys))]
        sharing = measures_by_count(self.cells)
        zone = "" if self.block.cells is None else self.block.cells.time_zone
        for index, measure in enumerate(self.block.measures):
            kept, cells = self.known.get(index) or self.beside.get(index, ()), self.cells.get(index, ())
            if isinstance(measure, Choice):
                values[index] = kept[0].release.values if kept else drawn.values[index]
                continue
            own = [
                (one.release.values, noise_paid(measure, one.release.mechanism, group_size=group_size)) for one in kept
            ]
            if index in drawn.values:
                own.append((drawn.values[index], noise_of(measure, group_size=group_size)))
            readings = [Reading(of_cells(*each)) for each in own]
            readings += [cell.reading(group_size, sharing[cell.count.kept.id] if cell.count else 1) for cell in cells]
            related: Sequence[Relative] = ()
            if self.block.cells is not None and all(cell.is_alike for cell in cells):  # else units are cut by more rows
                related = [relative.read(group_size) for relative in self.relatives.by_measure.get(index, ())]
            found = estimate(readings, related, self.relatives.asked, levels=coarser, zone=zone)
            values[index] = found.numbers
            of_any = found.laws or mean([of_cells((0,), noise) for _, noise in own])[1]  # where no group was found
            laws[index] = max(dict.fromkeys(of_any), key=lambda law: law.deviation)
            if found.nested:
                nested[index], totals[index] = found.nested, found.totals
            if found.nested or cells:
                apart[index] = found.laws
        return Noised(drawn.groups, values, laws, apart, nested, totals if coarser else {})

    def _is_summed(self, index: int) -> bool:
        return isinstance(self.block.measures[index], Measure)

    def releases(self, drawn: Noised) -> list[Release]:
        """Write down what was drawn, as the ledger keeps it: released cells only."""
        return [
            *self.chosen,
            *self._report(),
            *self._top(drawn),
            *(self._release(index, drawn) for index in self.fresh),
        ]

    def _report(self) -> Iterator[Release]:
        if self.reported is not None and self.block.report is not None:
            cost = Mechanism.pure(self.block.report)
            yield Release(self.key, report_name(self.block), cost, NO_GROUPS, (self.reported,))

    def _top(self, drawn: Noised) -> Iterator[Release]:
        if self.ranks is not None and self.block.top is not None:
            cost = mechanism_of_top(self.block.top)
            yield Release(self.key, top_key(self.block.top), cost, drawn.groups, self.ranks)

    def _release(self, index: int, drawn: Noised) -> Release:
        measure, cost = self.block.measures[index], mechanism_of(self.block, index)
        vector = measure.vector if isinstance(measure, Measure) else None
        return Release(self.key, measure_key(measure), cost, drawn.groups, drawn.values[index], vector)


def _numbers(cells: Sequence[CellReading]) -> Iterator[int]:
    return (number for cell in cells for number in _named(cell.kept))


def _named(kept: Iterable[KeptRelease]) -> Iterator[int]:
    """Name releases by their charges too: the number of one that the ledger has lost is given again."""
    return (number for each in kept for number in (each.id, each.charge))


def nothing_known(block: Block, key: str) -> Question:
    """A block to ask anew."""
    return Question(block, key, known_groups(block))


def tables_of(questions: Sequence[Question], context: StatementContext) -> tuple[Table, ...]:
    """The tables that are read, as they were when the statement was planned."""
    names = {name for question in questions for name in question.block.tables}
    known = {str(table.name): table for table in context.rulebook.catalog.tables}
    if not names <= known.keys():
        raise Mismatch("the plan reads a table that the catalog does not have")
    return tuple(known[name] for name in sorted(names))


def top_key(top: Top) -> str:
    """Name the choice of the largest groups, as the ledger keeps it."""
    return f"top {top.count} of {top.listed} by {top.name} within {top.sensitivity} of {top.factor} parts"


def ladder_key(ladder: Ladder) -> str:
    """Name the choice of a bound, as the ledger keeps it."""
    return f"bound of {ladder.name} up to {ladder.rungs[-1]}"


def _charges(kept: Sequence[KeptRelease]) -> frozenset[int]:
    """Of what is not paid, if anything is: that an own list is equal to it is not known before."""
    unpaid = [each for each in kept if not each.paid]
    return frozenset(each.charge for each in unpaid or kept)
