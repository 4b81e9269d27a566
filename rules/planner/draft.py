"""A private block before its ε is known: what is asked, how it is bounded, which share of ε each measure gets.

An output's relative error is s/ε for each measure that it is made of, whatever s is, so what k outputs are made of adds
k·s/ε to the sum of all errors. With Σε given the sum is least where ε is proportional to √k (Cauchy and Schwarz).
Weights are whole, 1 for up to three outputs, 2 for up to eight: within a twelfth of the least, and what is asked for as
a part of an answer of a few outputs is mostly asked for at the same share by itself, so that it need not be paid again.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import partial
from hashlib import sha256
from math import isqrt

from rules.aggregates.contributions import Contribution, Pick, Recipe, Typical
from rules.algebra.nodes import Facts, Node, scans_in
from rules.bind.scope import PlannerContext
from rules.frozen import frozen, replace
from rules.kernel.bounded import Statement
from rules.kernel.keys import Key
from rules.kernel.measures import Count, Units
from rules.kernel.script import Script
from rules.mechanisms.cells import Cells
from rules.mechanisms.cost import price, share
from rules.mechanisms.exponential_choice import BlockNeed, epsilons_of, is_better
from rules.mechanisms.noised_outputs import Chosen, Output
from rules.mechanisms.release_plan import (
    Bar,
    Block,
    Choice,
    Cut,
    FromEnd,
    Groups,
    GroupsFoundFirst,
    Ladder,
    LeastUnits,
    Measure,
    MostFrequent,
    PrivateGroups,
    PublicGroups,
    Quantile,
    Target,
    Top,
)
from rules.mechanisms.threshold import find_threshold
from rules.planner.bound_contributions import (
    Bounding,
    block_statement,
    histogram_statement,
    statement_of,
    tally_statement,
    weight_of_report,
)
from rules.planner.cells import cells_of
from rules.planner.choose_bounds import Shares, find_ladders, vectors_bounded_by, weight_of_ladder
from rules.planner.disjoint_measures import Vector
from rules.planner.find_blocks import BlockSite
from rules.planner.names import CanonicalNames
from rules.planner.other_groups import outside_of
from rules.planner.select_partitions import Keyed
from rules.policy.model import NoiseKind
from rules.release.estimates import placed
from rules.release.sensitivity import enforced
from rules.replay import Kernel
from rules.sql import syntax as s

_COUNTED = Fraction(1, 10)  # of ε, for rows that are counted only to tell which groups are empty


@frozen
class BlockAggregates:
    """The different aggregates of a block, and which of them have error bars."""

    aggregates: tuple[s.Expression, ...]
    bars: tuple[Bar, ...] = ()


@frozen
class Draft:
    """All of a block but its ε: what is asked, how it is bounded, and by which weights ε is to be shared."""

    site: BlockSite
    aggregates: BlockAggregates
    context: PlannerContext
    kernel: Kernel
    keyed: Keyed
    rows: Script
    names: CanonicalNames
    keys: tuple[Key, ...]
    public: PublicGroups | None  # None: the groups are found in the data
    recipes: tuple[Recipe, ...]
    parts: tuple[Contribution, ...]
    bounding: Bounding
    level: Decimal
    notices: tuple[str, ...]
    is_declared: bool  # whether somebody has said how many rows of a unit count
    cuts: tuple[Cut, ...]  # what may be cut
    asks_cut: bool  # whether a lower bound of it is bought
    adds_up: bool  # whether totals of grouping sets are sums over the groups of all keys
    about: tuple[Units, ...]  # by recipe: who are counted for min_units of the rules; empty: nobody is
    is_in_one: bool  # whether each unit is in one group at most
    finds_first: bool = False  # whether units count in all groups, which are found before
    remarks: tuple[str, ...] = ()  # on the statement's own words, which EXPLAIN repeats
    hides_empty: bool = False  # whether listed groups are left out whose numbers could be noise alone
    counted: Count | Units | None = None  # the rows or units by which this is decided, where no aggregate can say it
    top: int | None = None  # so many groups are chosen, and no other is answered

    @property
    def least(self) -> int | None:
        """Units without which a number is not shown."""
        return self.context.policy.min_units if self.about else None

    @property
    def groups(self) -> int | None:
        """Return how many groups are listed; None where they are found in the data."""
        return None if self.public is None else len(self.public.rows)

    @property
    def spread(self) -> Fraction:
        """About the root of the sensitivity, where units are all that is counted; 1 elsewhere.

        Noise of levels adds up to the least where their ε is in proportion to it.
        """
        if not all(isinstance(part, Units) for part in self.parts):
            return Fraction(1)
        most = min(self.bounding.rows, self.bounding.groups, self.groups or self.bounding.groups)
        return Fraction(isqrt(most * 10_000), 100)

    @property
    def canonical(self) -> str:
        """Equal blocks have equal ones."""
        return self.names.block(self.bounding) + _origins(self.context)

    @property
    def weights(self) -> tuple[Fraction, ...]:
        """Return what is paid for: the vectors, ladders, the list of groups, and last the report of what was cut."""
        uses = [recipe.parts for recipe in self.recipes]
        listing = () if self.public is not None or self.finds_first else (Units(),)
        uses += [
            (mechanism,) for mechanism in dict.fromkeys((*listing, *self.about))
        ]  # which groups, and numbers, are shown
        weights = self._with_counted(weights_of(self.bounding.vectors, uses))
        bounded = (vectors_bounded_by(ladder, self.bounding) for ladder in range(self.bounding.ladders))
        ladders = tuple(
            weight_of_ladder(self.groups, min((weights[vector] for vector in indices), default=Fraction(1)))
            for indices in bounded
        )
        finder = (Fraction(1),) * self.finds_first
        return weights + ladders + finder + (weight_of_report(self.groups, weights),) * self.asks_cut

    def _with_counted(self, weights: tuple[Fraction, ...]) -> tuple[Fraction, ...]:
        """The weights of vectors, with a tenth of all for a count that is not shown, unless it is all that is asked."""
        if self.counted is None or not self.recipes:
            return weights
        place = next(number for number, vector in enumerate(self.bounding.vectors) if self.counted in vector)
        own = (sum(weights) - weights[place]) * _COUNTED / (1 - _COUNTED)
        return (*weights[:place], own, *weights[place + 1 :])

    def choosing(self, shown: Callable[[], int | None]) -> "Draft":
        """The draft of a block of which so many groups are shown, the largest. They are chosen where that is better."""
        if (
            self.groups is None
            or self.counted
            or self.site.sets
            or self.bounding.ladders
            or self.asks_cut
            or self.keyed.others
        ):
            return self
        if len(self.parts) != 1 or not isinstance(self.parts[0], Units) or (count := shown()) is None:
            return self
        most = min(self.bounding.rows, self.bounding.groups, self.groups)
        return replace(self, top=count if is_better(count, self.groups, most, self.context.policy.noise) else None)

    def with_shares(self, epsilon: Decimal, weights: Sequence[Fraction], delta: Decimal) -> Block:
        """The block, on so much of ε, which its own weights share out, and of δ."""
        plain = self._on(epsilon, weights, delta)
        if self.top is None or self.groups is None:
            return plain
        chosen, rest = epsilons_of(epsilon)
        top = Top(
            *(self.names.part(self.parts[0]), 1, chosen, self.top, self.groups), is_pure=self.context.policy.is_pure
        )
        made = replace(self._on(rest, weights, delta), cells=None, top=top, plain=plain)
        return enforced(made, self.kernel, self.context.policy.group_size)

    def _on(self, epsilon: Decimal, weights: Sequence[Fraction], delta: Decimal) -> Block:
        epsilons = share(epsilon, weights) if self.parts else ()
        vectors, ladders = len(self.bounding.vectors), self.bounding.ladders
        own, others = epsilons[:vectors], epsilons[vectors : vectors + ladders]
        size = self.context.policy.group_size
        shares = Shares(own, others, self.groups, size, is_pure=self.context.policy.is_pure)
        steps = find_ladders(self.bounding, self.recipes, shares, self.names.part, is_declared=self.is_declared)
        measures = tuple(self._measure(part, own) for part in self.parts)
        finder = self._finder(epsilons[vectors + ladders], delta) if self.finds_first else None
        block = replace(self._block(measures, steps, delta, finder), report=epsilons[-1] if self.asks_cut else None)
        block = _with_typical_words(enforced(block, self.kernel, size), size)
        return block if self.public is not None else _with_threshold(block, size)

    def _finder(self, epsilon: Decimal, delta: Decimal) -> Block:
        """The block that finds the groups: a count of units, each in one of its groups."""
        bounding = replace(self.bounding, groups=1, limits_groups=True, is_chosen=False, chooses_groups=False, own=())
        statement = Statement(self.rows, self.keys, (Units(),), bounding.rows, groups_per_unit=1)
        return Block(
            canonical=self.names.block(bounding) + _origins(self.context),
            statement=statement,
            keys=self.keyed.columns,
            groups=PrivateGroups(0, delta),
            measures=(Measure(self.names.part(Units()), 1, epsilon, at_most_one=True),),
            outputs=(),
            output_types=(),
            tables=_tables(self.keyed.source.node),
            level=self.level,
            least_units=None if self.least is None else LeastUnits((), self.least),
        )

    def _measure(self, part: Contribution, epsilons: Sequence[Decimal]) -> Measure | Choice:
        """A measure before the kernel has said how far one unit moves it."""
        number, vector = next((number, vector) for number, vector in enumerate(self.bounding.vectors) if part in vector)
        name, epsilon, chosen_by = self.names.part(part), epsilons[number], self.bounding.chosen_by(part)
        if isinstance(part, Pick):
            statement = histogram_statement(self.rows, self.keys, part, self.bounding)
            return Choice(name, 1, epsilon, statement, len(part.candidates), _target(part), chosen_by, part.end)
        if isinstance(part, Typical):
            return self._typical(part, epsilon)
        shared = number if len(vector) > 1 else None
        decides = (
            self.public is None and not self.finds_first and part == Units()
        )  # which groups are shown, by the tail of a Laplace law
        noise: NoiseKind = "laplace" if decides else self.context.policy.noise
        return Measure(name, 1, epsilon, chosen_by, shared, noise, at_most_one=isinstance(part, Units))

    def _typical(self, part: Typical, epsilon: Decimal) -> Choice:
        """A choice among values of blocks, of as many as ε needs; equal questions are hashed alike."""
        middle = self.names.part(replace(part, end=None, level=None))
        salt = int.from_bytes(sha256(f"{self.canonical} {middle}".encode()).digest()[:8]) >> 1
        statement_with = partial(block_statement, self.rows, self.keys, part, self.bounding, salt=salt)
        replaced = self.kernel.numbers(statement_with(blocks=1)).measures[0].sensitivity.l1 // 2
        need = BlockNeed(epsilon, replaced * self.context.policy.group_size)
        blocks = need.blocks(part.blocks, part.level)
        end = None if part.end is None else replace(part.end, reach=need.reach(blocks, part.end.level))
        name = f"{self.names.part(part)} over {blocks} blocks of units"
        target = Quantile(Fraction(1, 2))
        return Choice(
            name, 1, epsilon, statement_with(blocks=blocks), len(part.candidates), target, end=end, blocks=blocks
        )

    def _block(
        self, measures: tuple[Measure | Choice, ...], ladders: tuple[Ladder, ...], delta: Decimal, finder: Block | None
    ) -> Block:
        node, bounding, public, least = self.keyed.source.node, self.bounding, self.public, self.least
        made = (recipe.output(tuple(map(self.parts.index, recipe.parts))) for recipe in self.recipes)
        outputs = placed(tuple(made), len(measures))
        if public is not None:
            groups: Groups = public
        else:
            groups = PrivateGroups(self.parts.index(Units()), delta) if finder is None else GroupsFoundFirst(finder)
        return Block(
            canonical=self.canonical,
            statement=replace(
                statement_of(self.rows, self.keys, self.parts, bounding), finds_groups=not self.finds_first
            ),
            keys=self.keyed.columns,
            groups=groups,
            measures=measures,
            outputs=outputs,
            output_types=tuple(recipe.type.sql + "[]" * recipe.is_array for recipe in self.recipes),
            spans=tuple(recipe.span for recipe in self.recipes),
            tables=_tables(node),
            explanation=(
                *_explanation(bounding, node.facts, public, least),
                *(("note", words) for words in self.remarks),
            ),
            notices=(*self.remarks, *self.notices),
            sets=self.site.sets,
            bars=_bars(self.aggregates.bars, outputs),
            level=self.level,
            cuts=self.cuts,
            outside=() if public is None else outside_of(public, self.keyed.others),
            hides_empty=self.hides_empty,
            counted=None if self.counted is None else self.parts.index(self.counted),
            least_units=None if least is None else LeastUnits(tuple(map(self.parts.index, self.about)), least),
            cells=None if public is None else self._cells(),
            ladders=ladders,
            tally=tally_statement(self.rows, self.keys, bounding, [ladder.rungs for ladder in ladders])
            if ladders
            else None,
        )

    def _cells(self) -> Cells | None:
        after = _origins(self.context)
        centred = {recipe.parts[0]: recipe.centred.parts for recipe in self.recipes if recipe.centred is not None}
        cells = self.keyed, self.names, self.bounding, self.parts, centred, self.context
        return cells_of(*cells, is_in_one=self.is_in_one, after=after)


def _bars(pushed: tuple[Bar, ...], outputs: tuple[Output, ...]) -> tuple[Bar, ...]:
    """The end of a choice's bar is found by the twin, which knows the distances of its type."""
    whole = (Bar(bar.output) if isinstance(outputs[bar.output], Chosen) else bar for bar in pushed)
    return tuple(dict.fromkeys(whole))


def _target(part: Pick) -> Target:
    """The place of an extreme follows from the sensitivity, once that is known."""
    if part.fraction is not None:
        return Quantile(part.fraction)
    if part.largest is not None:
        return FromEnd(1, part.largest)
    return MostFrequent()


def _origins(context: PlannerContext) -> str:
    """Name what was answered first. Without it, a guessed constant would tell whether others were given it."""
    return "".join(f" after {released.origin}" for released in context.released if released.origin)


def _tables(node: Node) -> tuple[str, ...]:
    """All that is read, public tables and the way to the unit too: a key of any of them may be what proves."""
    names = [name for scan in scans_in(node) for name in (scan.table, *scan.way)]
    return tuple(dict.fromkeys(map(str, names)))


def _explanation(
    bounding: Bounding, facts: Facts, public: PublicGroups | None, least: int | None
) -> tuple[tuple[str, str], ...]:
    """Return what EXPLAIN says of a block besides its measures, from the rules and the query alone."""
    how = "proved by a unique key" if bounding.is_single else "scaled where a unit has more"
    return (
        ("unit", "" if facts.unit is None else facts.unit.kind),
        ("rows per unit", f"{'at most ' * bounding.is_chosen}{bounding.rows}, {how}"),
        ("groups per unit", str(bounding.groups)),
        *((("groups", str(len(public.rows))),) if public is not None else ()),
        *((("least units", f"{least}: numbers about fewer, by noised counts, are not shown"),) if least else ()),
    )


def _with_threshold(block: Block, group_size: int) -> Block:
    """From about how many units on a group is shown, where groups are found in the data."""
    finder = block.groups.finder if isinstance(block.groups, GroupsFoundFirst) else block
    assert isinstance(finder.groups, PrivateGroups)
    units = finder.measures[finder.groups.measure]
    assert isinstance(units, Measure), "units are counted, never chosen"
    least = find_threshold(units, finder.groups.delta, group_size=group_size)
    most = "at most " if finder is block and block.ladders else ""
    if block.least_units is not None:
        least = max(least, block.least_units.units)
    line = ("groups", f"found in the data, by threshold: from {most}about {least:,} units on")
    return replace(block, explanation=(*block.explanation, line))


def weights_of(vectors: Iterable[Vector], uses: Sequence[Sequence[Contribution]]) -> tuple[Fraction, ...]:
    """A weight for each vector; `uses` are what each thing that is shown is made of.

    The count below a mean weighs as much as its centred sum. Where the mean lies at an end of its bounds both move it
    by as much, so that equal shares are best; the further it lies inside the less the count does, but where it lies is
    not known, and for a mean that may lie anywhere equal shares are within 5% of the best. Other aggregates over the
    same rows use the count more often than not, and that weighs more.
    """
    used = [frozenset(use) for use in uses]  # sets keep the hashes of what is in them, and those are dear
    counts = (sum(not use.isdisjoint(vector) for use in used) for vector in map(frozenset, vectors))
    return tuple(Fraction(isqrt(max(1, count))) for count in counts)


def _with_typical_words(block: Block, group_size: int) -> Block:
    """The block, with a notice for each typical value in it and what EXPLAIN says of it."""
    notices, facts = list(block.notices), list(block.explanation)
    for measure in block.measures:
        if isinstance(measure, Choice) and measure.blocks is not None and measure.end is None:
            notices += _typical_notices(measure, measure.blocks, group_size)
            facts += _typical_facts(measure.blocks)
    if block.measures and all(isinstance(measure, Choice) and measure.blocks is not None for measure in block.measures):
        facts = [(name, how) for name, how in facts if name != "rows per unit"]
    return replace(block, notices=tuple(dict.fromkeys(notices)), explanation=tuple(dict.fromkeys(facts)))


def _typical_notices(choice: Choice, blocks: int, group_size: int) -> Iterator[str]:
    """Yield how it is biased, and whether there are so few blocks that noise decides."""
    biased = "statistics that are biased in small samples are biased here"
    half = f"; compare with blocks => {blocks // 2}" if blocks > 1 else ""
    yield f"typical value of {blocks:,} blocks of units: {biased}{half}"
    needed = BlockNeed(choice.epsilon, choice.sensitivity // 2 * group_size).fewest
    if blocks < needed:
        yield (
            f"{blocks:,} blocks are too few at epsilon {price(choice.epsilon)}: the answer would be near random; "
            f"{needed:,} or more are needed"
        )


def _typical_facts(blocks: int) -> Iterator[tuple[str, str]]:
    yield "blocks of units", f"{blocks:,}, by a hash of the unit; no row of a unit is cut"
    yield (
        "good for",
        "ratios, percentiles, correlations and slopes; not skewness, maxima, shares of the top, totals",
    )
    yield "bias", f"that of a sample of 1/{blocks:,} of the units"
