"""One private block from its place in the query to what is run inside: SQL, measures, groups, outputs."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import partial
from hashlib import sha256
from math import isqrt

from rules.aggregates.contributions import Contribution, Pick, Recipe, Selection, Typical
from rules.aggregates.estimates import notices_of_reports
from rules.aggregates.recipes import choose
from rules.algebra.joint_domains import joints
from rules.algebra.nodes import Facts, Join, Node, scans_in, tied_in
from rules.bind.scope import PlannerContext
from rules.bind.walk_syntax import is_estimate
from rules.kernel.keys import Key
from rules.kernel.measures import DistinctMeasure, Units
from rules.kernel.replay import Kernel
from rules.kernel.script import Script
from rules.mechanisms.block_need import BlockNeed
from rules.mechanisms.cells import Cells
from rules.mechanisms.noised_outputs import Chosen, Output
from rules.mechanisms.release_plan import (
    Bar,
    Block,
    Choice,
    Cut,
    FromEnd,
    Ladder,
    LeastUnits,
    Measure,
    MostFrequent,
    NoiseKind,
    PrivateGroups,
    PublicGroups,
    Quantile,
    Target,
)
from rules.mechanisms.split_budget import share
from rules.mechanisms.threshold import find_threshold
from rules.mechanisms.top_groups import Top, epsilons_of, is_better
from rules.planner.block_recipes import BlockAggregates, recipes_of
from rules.planner.bounding import Bounding, block_statement, histogram_statement, statement_of, tally_statement
from rules.planner.caps import bounding_of, find_cap, find_cuts, limited, weight_of_report
from rules.planner.cells import cells_of
from rules.planner.choose_bounds import Auto, Shares, find_ladders, vectors_bounded_by, weight_of_ladder
from rules.planner.disjoint_measures import vectors_of
from rules.planner.find_blocks import BlockSite
from rules.planner.list_groups import list_parts
from rules.planner.names import CanonicalNames
from rules.planner.other_groups import outside_of
from rules.planner.plan import Request
from rules.planner.select_partitions import Keyed, Listing, check_threshold, found_keys, listing_of, with_keys
from rules.planner.to_script import bare_key, to_script
from rules.planner.typical_words import with_typical_words
from rules.planner.weights import weights_of
from rules.refusal import TooComplex
from rules.release.estimates import placed
from rules.release.replicates import check_size
from rules.release.sensitivity import enforced
from rules.values.expression import ids_in

_MOST_CELLS = 1_000_000  # of the histograms of one answer


@dataclass(frozen=True, slots=True)
class Draft:
    """All of a block but its ε: what is asked, how it is bounded, and by which weights ε is to be shared."""

    site: BlockSite
    asked: BlockAggregates
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
    least: int | None  # units without which a group has no numbers
    is_in_one: bool  # whether each unit is in one group at most
    top: int | None = None  # so many groups are chosen, and no other is answered

    @property
    def groups(self) -> int | None:
        """How many groups are listed; None where they are found in the data."""
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
        """What is paid for: the vectors, then the ladders, and last the report of what was cut."""
        uses = [recipe.parts for recipe in self.recipes]
        if self.public is None or self.least is not None:
            uses.append((Units(),))  # the list of groups, or of those that have numbers, is made of it
        weights = weights_of(self.bounding.vectors, uses)
        bounded = (vectors_bounded_by(ladder, self.bounding) for ladder in range(self.bounding.ladders))
        ladders = tuple(
            weight_of_ladder(self.groups, min((weights[vector] for vector in each), default=Fraction(1)))
            for each in bounded
        )
        return weights + ladders + (weight_of_report(self.groups, weights),) * self.asks_cut

    def choosing(self, count: int | None) -> "Draft":
        """The draft of a block of which so many groups are shown, the largest. They are chosen where that is better."""
        if count is None or self.groups is None or self.site.sets or self.bounding.ladders or self.asks_cut:
            return self
        if len(self.parts) != 1 or not isinstance(self.parts[0], Units) or self.keyed.others:
            return self
        most = min(self.bounding.rows, self.bounding.groups, self.groups)
        return replace(self, top=count if is_better(count, self.groups, most, self.context.policy.noise) else None)

    def with_shares(self, epsilon: Decimal, delta: Decimal) -> Block:
        """The block, on so much of ε and δ."""
        plain = self._on(epsilon, delta)
        if self.top is None or self.groups is None:
            return plain
        chosen, rest = epsilons_of(epsilon)
        is_pure = self.context.policy.noise != "gaussian"
        top = Top(self.names.part(self.parts[0]), 1, chosen, self.top, self.groups, is_pure=is_pure)
        made = replace(self._on(rest, delta), cells=None, top=top, plain=plain)
        return enforced(made, self.kernel, self.context.policy.group_size)

    def _on(self, epsilon: Decimal, delta: Decimal) -> Block:
        epsilons = share(epsilon, self.weights) if self.parts else ()
        vectors, ladders = len(self.bounding.vectors), self.bounding.ladders
        own, others = epsilons[:vectors], epsilons[vectors : vectors + ladders]
        size, is_gaussian = self.context.policy.group_size, self.context.policy.noise == "gaussian"
        shares = Shares(own, others, self.groups, size, is_gaussian)
        steps = find_ladders(self.bounding, self.recipes, shares, self.names.part, is_declared=self.is_declared)
        measures = tuple(self._measure(part, own) for part in self.parts)
        block = replace(self._block(measures, steps, delta), report=epsilons[-1] if self.asks_cut else None)
        block = with_typical_words(enforced(block, self.kernel, size), size)
        return block if self.public is not None else _with_threshold(block, size)

    def _measure(self, part: Contribution, epsilons: Sequence[Decimal]) -> Measure | Choice:
        """A measure before the kernel has said how far one unit moves it."""
        number, vector = next((number, each) for number, each in enumerate(self.bounding.vectors) if part in each)
        name, epsilon, chosen_by = self.names.part(part), epsilons[number], self.bounding.chosen_by(part)
        if isinstance(part, Pick):
            statement = histogram_statement(self.rows, self.keys, part, self.bounding)
            return Choice(name, 1, epsilon, statement, len(part.candidates), _target(part), chosen_by, part.end)
        if isinstance(part, Typical):
            return self._typical(part, epsilon)
        shared = number if len(vector) > 1 else None
        decides = self.public is None and part == Units()  # which groups are shown, by the tail of a Laplace law
        noise: NoiseKind = "laplace" if decides else self.context.policy.noise
        return Measure(name, 1, epsilon, chosen_by, shared, noise, at_most_one=isinstance(part, Units))

    def _typical(self, part: Typical, epsilon: Decimal) -> Choice:
        """A choice among values of blocks, of as many as ε needs; equal questions are hashed alike."""
        middle = self.names.part(replace(part, end=None, level=None))
        salt = int.from_bytes(sha256(f"{self.canonical} {middle}".encode()).digest()[:8]) >> 1
        asked = partial(block_statement, self.rows, self.keys, part, self.bounding, salt=salt)
        replaced = self.kernel.bounded(asked(blocks=1)).measures[0].sensitivity.l1 // 2
        need = BlockNeed(epsilon, replaced * self.context.policy.group_size)
        blocks = need.blocks(part.blocks, part.level)
        end = None if part.end is None else replace(part.end, reach=need.reach(blocks, part.end.level))
        name = f"{self.names.part(part)} over {blocks} blocks of units"
        target = Quantile(Fraction(1, 2))
        return Choice(name, 1, epsilon, asked(blocks=blocks), len(part.candidates), target, end=end, blocks=blocks)

    def _block(self, measures: tuple[Measure | Choice, ...], ladders: tuple[Ladder, ...], delta: Decimal) -> Block:
        node, bounding, public = self.keyed.source.node, self.bounding, self.public
        made = (recipe.output(tuple(map(self.parts.index, recipe.parts))) for recipe in self.recipes)
        outputs = placed(tuple(made), len(measures))
        return Block(
            canonical=self.canonical,
            statement=statement_of(self.rows, self.keys, self.parts, bounding),
            keys=self.keyed.columns,
            groups=public if public is not None else PrivateGroups(self.parts.index(Units()), delta),
            measures=measures,
            outputs=outputs,
            output_types=tuple(recipe.type.sql + "[]" * recipe.is_array for recipe in self.recipes),
            tables=_tables(node),
            explanation=_explanation(bounding, node.facts, public, self.least),
            notices=self.notices,
            sets=self.site.sets,
            bars=_bars(self.asked.bars, outputs),
            level=self.level,
            cuts=self.cuts,
            outside=() if public is None else outside_of(public, self.keyed.others),
            least_units=None if self.least is None else LeastUnits(self.parts.index(Units()), self.least),
            cells=None if public is None else self._cells(),
            ladders=ladders,
            tally=tally_statement(self.rows, self.keys, bounding, [each.rungs for each in ladders])
            if ladders
            else None,
        )

    def _cells(self) -> Cells | None:
        after = _origins(self.context)
        found = self.keyed, self.names, self.bounding, self.parts, self.context
        return cells_of(*found, is_in_one=self.is_in_one, after=after)


def draft_block(
    site: BlockSite, asked: BlockAggregates, request: Request, context: PlannerContext, kernel: Kernel
) -> Draft:
    """The block of a site with these aggregates as its outputs."""
    keyed = with_keys(site.source, site.keys, context)
    node = keyed.source.node
    cap, notices = find_cap(node, request, context)
    listing = _listing(keyed, context)
    rows = to_script(node if listing is None else keyed.unlisted)
    relation = kernel.relation(rows)
    if listing is None:
        check_threshold(keyed.keys, site.keys, request.delta)
    bounding = bounding_of(node.facts, keyed.keys, cap, request, is_private=listing is None)
    is_single = relation.known.is_single
    bounding = replace(bounding, is_single=is_single, rows=1 if is_single else bounding.rows)
    auto = Auto.of(node, request, context, is_declared=cap.is_declared)
    found = recipes_of(asked, request.confidence, keyed, context, bounding.rows, site.source.node)
    recipes = choose(auto.with_own_bounds(found))
    least = context.policy.min_units if recipes else None
    parts = _parts(recipes, needs_units=listing is None or least is not None)
    public = None if listing is None else listing.groups
    groups = None if public is None else len(public.rows)
    bounding = auto.bounding(bounding, recipes, parts, node.facts, groups)
    bounding = replace(bounding, vectors=vectors_of(parts, bounding.own))
    _check_choices(parts, public)
    check_size(asked.bars, 0 if public is None else len(public.rows), request.confidence)
    notices += tuple(other.notice for other in keyed.others)
    notices += notices_of_reports(recipes, keyed.keys, site.source.node, context.policy, is_listed=listing is not None)
    wanted, is_private = _parts(recipes, needs_units=False), listing is None
    notices += _tied(node) + _rolled_up(site, is_private=is_private) + limited(bounding, wanted, is_private=is_private)
    keys, columns = found_keys(keyed, context.time_zone) if listing is None else (listing.keys, keyed.columns)
    bare = tuple(map(bare_key, keys))
    keyed = replace(keyed, columns=columns)
    names, level = CanonicalNames.of(keyed, relation, context.time_zone), request.confidence
    cuts = find_cuts(cap, bounding, parts, groups)
    is_cut = bounding.is_chosen or any(each.what == "rows" for each in cuts)
    drafted = keyed, rows, names, bare, public, recipes, parts, bounding, level, notices, cap.is_declared, cuts
    in_one = is_single or all(ids_in(key) <= node.facts.determined for key in keyed.keys)
    adds_up = not site.sets or (_adds_up(parts, in_one_group=in_one) and not any(map(is_estimate, asked.aggregates)))
    asks_cut = request.cut and is_cut
    return Draft(
        site, asked, context, kernel, *drafted, asks_cut=asks_cut, adds_up=adds_up, least=least, is_in_one=in_one
    )


def _listing(keyed: Keyed, context: PlannerContext) -> Listing | None:
    """The groups that are known without the data; None where they are found."""
    node = keyed.source.node
    parts = list_parts(keyed.keys, node, context)
    return None if parts is None else listing_of(keyed.keys, parts, context.policy.groups_limit, joints(node))


def _bars(asked: tuple[Bar, ...], outputs: tuple[Output, ...]) -> tuple[Bar, ...]:
    """The end of a choice's bar is found by the twin, which knows the distances of its type."""
    whole = (Bar(bar.output) if isinstance(outputs[bar.output], Chosen) else bar for bar in asked)
    return tuple(dict.fromkeys(whole))


def _target(part: Pick) -> Target:
    """The place of an extreme follows from the sensitivity, once that is known."""
    if part.fraction is not None:
        return Quantile(part.fraction)
    if part.largest is not None:
        return FromEnd(1, part.largest)
    return MostFrequent()


def _check_choices(parts: tuple[Contribution, ...], public: PublicGroups | None) -> None:
    """Every group has a histogram of its own, and a draw for each of its candidates."""
    groups = 1 if public is None else len(public.rows)
    candidates = sum(len(part.candidates) for part in parts if isinstance(part, Selection))
    if groups * candidates > _MOST_CELLS:
        hint = "Group by fewer columns, or limit the groups in WHERE."
        raise TooComplex(f"quantiles in {groups:,} groups exceed the limit", hint=hint)


def _rolled_up(site: BlockSite, *, is_private: bool) -> tuple[str, ...]:
    return ("totals are sums over the groups that are shown",) if site.sets and is_private else ()


def _adds_up(parts: Sequence[Contribution], *, in_one_group: bool) -> bool:
    """Sums and counts of rows add up; units do only where each is in one group, and what is chosen never does."""
    if any(isinstance(part, DistinctMeasure | Selection) for part in parts):
        return False
    return in_one_group or not any(isinstance(part, Units) for part in parts)


def _tied(node: Node) -> tuple[str, ...]:
    """Joins by a key of rows, to which the equality of units was added."""
    found = []
    for each in tied_in(node):
        sides = (each.left, each.right) if isinstance(each, Join) else (each.source, each.other)
        one, two = (next(str(scan.table) for scan in scans_in(side) if scan.facts.unit is not None) for side in sides)
        assert each.facts.unit is not None
        found.append(f"{one} and {two} are joined only where both belong to the same {each.facts.unit.kind}")
    return tuple(dict.fromkeys(found))


def _parts(recipes: tuple[Recipe, ...], *, needs_units: bool) -> tuple[Contribution, ...]:
    """Each different contribution once, in the order of the select list; a threshold looks at units too."""
    parts = dict.fromkeys(part for recipe in recipes for part in recipe.parts)
    if needs_units:
        parts.setdefault(Units())
    return tuple(parts)


def _origins(context: PlannerContext) -> str:
    """What was answered first. Without it, asking with a guessed constant would tell whether others were given it."""
    return "".join(f" after {released.origin}" for released in context.released if released.origin)


def _tables(node: Node) -> tuple[str, ...]:
    """All that is read, public tables and the way to the unit too: a key of any of them may be what proves."""
    names = [name for scan in scans_in(node) for name in (scan.table, *scan.way)]
    return tuple(dict.fromkeys(map(str, names)))


def _explanation(
    bounding: Bounding, facts: Facts, public: PublicGroups | None, least: int | None
) -> tuple[tuple[str, str], ...]:
    """What EXPLAIN says of a block besides its measures, from the rules and the query alone."""
    how = "proved by a unique key" if bounding.is_single else "scaled where a unit has more"
    return (
        ("unit", "" if facts.unit is None else facts.unit.kind),
        ("rows per unit", f"{'at most ' * bounding.is_chosen}{bounding.rows}, {how}"),
        ("groups per unit", str(bounding.groups)),
        *((("groups", str(len(public.rows))),) if public is not None else ()),
        *((("least units", f"{least}: groups of which noise tells fewer have no numbers"),) if least else ()),
    )


def _with_threshold(block: Block, group_size: int) -> Block:
    """From about how many units on a group is shown, where groups are found in the data."""
    assert isinstance(block.groups, PrivateGroups)
    units = block.measures[block.groups.measure]
    assert isinstance(units, Measure), "units are counted, never chosen"
    least = find_threshold(units, block.groups.delta, group_size=group_size)
    most = "at most " if block.ladders else ""
    if block.least_units is not None:
        least = max(least, block.least_units.units)
    found = ("groups", f"found in the data, by threshold: from {most}about {least} units on")
    notice = f"groups of fewer than about {least} units are left out"
    return replace(block, explanation=(*block.explanation, found), notices=(*block.notices, notice))
