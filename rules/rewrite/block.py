"""One private block from its place in the query to what is run inside: SQL, measures, groups, outputs."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction

from rules.noise.allocate import share
from rules.noise.measures import (
    Bar,
    Block,
    Choice,
    Chosen,
    FromEnd,
    Groups,
    Ladder,
    Measure,
    MostFrequent,
    NoiseKind,
    Output,
    PrivateGroups,
    PublicGroups,
    Quantile,
    Target,
)
from rules.noise.quantile import place_for_extreme
from rules.noise.replicates import check_size
from rules.noise.threshold import find_threshold
from rules.refusal import NotAllowed, NotSupported, TooComplex, pointing_at
from rules.relation.bind_expression import Binding
from rules.relation.bind_source import names_leaf
from rules.relation.expression import Expression, ids_in
from rules.relation.joint import joints
from rules.relation.nodes import Facts, Node, scans_in
from rules.relation.public_values import demand_values
from rules.relation.scope import World
from rules.rewrite.bound_units import Bounding, histogram_sql, inner_sql, tally_sql
from rules.rewrite.choose_bounds import WEIGHT, Auto, Shares, find_ladders
from rules.rewrite.contributions import (
    Contribution,
    DistinctCount,
    DistinctSum,
    Pick,
    Recipe,
    UnitCount,
)
from rules.rewrite.hide_groups import Keyed, check_threshold, find_groups, with_keys
from rules.rewrite.names import Names
from rules.rewrite.plan import Request
from rules.rewrite.site import BlockSite
from rules.rewrite.split_aggregates import choose, split
from rules.rewrite.vectors import vectors_of
from rules.rewrite.weights import weights_of
from rules.sql import syntax as s

_MOST_CELLS = 1_000_000  # of the histograms of one answer
_DEFAULT_GROUPS = 3  # that one unit appears in, where the groups are found in the data


@dataclass(frozen=True, slots=True)
class Asked:
    """The different aggregates of a block, and which of them have error bars."""

    aggregates: tuple[s.Expression, ...]
    bars: tuple[Bar, ...] = ()


@dataclass(frozen=True, slots=True)
class Draft:
    """All of a block but its ε: what is asked, how it is bounded, and by which weights ε is to be shared."""

    site: BlockSite
    asked: Asked
    world: World
    keyed: Keyed
    public: PublicGroups | None  # None: the groups are found in the data
    recipes: tuple[Recipe, ...]
    parts: tuple[Contribution, ...]
    bounding: Bounding
    level: Decimal
    notices: tuple[str, ...]

    @property
    def canonical(self) -> str:
        """Equal blocks have equal ones."""
        return Names(self.keyed, self.world.time_zone).block(self.bounding) + _origins(self.world)

    @property
    def weights(self) -> tuple[Fraction, ...]:
        """What is paid for: the vectors, and then the ladders."""
        uses = [recipe.parts for recipe in self.recipes]
        if self.public is None:
            uses.append((UnitCount(),))  # the list of groups is made of it
        return weights_of(self.bounding.vectors, uses) + (WEIGHT,) * self.bounding.ladders

    def with_shares(self, epsilon: Decimal, delta: Decimal) -> Block:
        """The block, on so much of ε and δ."""
        epsilons = share(epsilon, self.weights) if self.parts else ()
        own, others = epsilons[: len(self.bounding.vectors)], epsilons[len(self.bounding.vectors) :]
        shares = Shares(others, min(own, default=epsilon), 1 if self.public is None else len(self.public.rows))
        names = Names(self.keyed, self.world.time_zone)
        ladders = find_ladders(self.bounding, self.recipes, shares, names.part)
        measures = tuple(self._measure(part, own, names) for part in self.parts)
        return self._block(measures, ladders, delta)

    def _measure(self, part: Contribution, epsilons: Sequence[Decimal], names: Names) -> Measure | Choice:
        sensitivity, bounds = self.bounding.sensitivity(part), self.bounding.bounds(part)
        number, vector = next((number, each) for number, each in enumerate(self.bounding.vectors) if part in each)
        name, epsilon = names.part(part), epsilons[number]
        if isinstance(part, Pick):
            sql = histogram_sql(self.keyed.source.node, self.keyed.keys, part, self.bounding)
            target = _target(part, sensitivity, epsilon)
            return Choice(name, sensitivity, epsilon, sql, len(part.candidates), target, bounds, part.end)
        shared = number if len(vector) > 1 else None
        decides = self.public is None and part == UnitCount()  # which groups are shown, by the tail of a Laplace law
        noise: NoiseKind = "laplace" if decides else self.world.policy.noise
        return Measure(name, sensitivity, epsilon, bounds, shared, noise, at_most_one=isinstance(part, UnitCount))

    def _block(self, measures: tuple[Measure | Choice, ...], ladders: tuple[Ladder, ...], delta: Decimal) -> Block:
        node, keys, bounding, public = self.keyed.source.node, self.keyed.keys, self.bounding, self.public
        outputs = tuple(recipe.output(tuple(map(self.parts.index, recipe.parts))) for recipe in self.recipes)
        groups: Groups = public if public is not None else PrivateGroups(self.parts.index(UnitCount()), delta)
        least = _least_shown(groups, measures, self.world.policy.group_size)
        return Block(
            canonical=self.canonical,
            sql=inner_sql(node, keys, self.parts, bounding),
            keys=self.keyed.columns,
            groups=groups,
            measures=measures,
            outputs=outputs,
            output_types=tuple(recipe.type.sql + "[]" * recipe.is_array for recipe in self.recipes),
            tables=_tables(node),
            explanation=_explanation(bounding, node.facts, groups, least),
            notices=self.notices
            + (() if least is None else (f"groups of fewer than about {least} units are left out",)),
            sets=self.site.sets,
            bars=_bars(self.asked.bars, outputs),
            level=self.level,
            ladders=ladders,
            tally=tally_sql(node, keys, bounding, [each.rungs for each in ladders]) if ladders else "",
        )


def draft_block(site: BlockSite, asked: Asked, request: Request, world: World) -> Draft:
    """The block of a site with these aggregates as its outputs."""
    keyed = with_keys(site.source, site.keys, world)
    facts = keyed.source.node.facts
    cap, notices = _cap(keyed.source.node, request, world)
    public = find_groups(keyed.keys, world.policy.groups_limit, world.time_zone, joints(keyed.source.node))
    if public is None:
        demand_values(keyed.source.node, keyed.keys, world, world.policy.groups_limit)
        check_threshold(keyed.keys, site.keys, request.delta)
    bounding = _bounding(facts, keyed.keys, cap, request, is_private=public is None)
    auto = Auto.of(keyed.source.node, request, world)
    recipes = choose(auto.with_own_bounds(_recipes(asked, request.confidence, keyed, world, bounding.rows)))
    parts = _parts(recipes, needs_units=public is None)
    if bounding.rows > 1 and any(isinstance(part, UnitCount) for part in parts):
        _check_identity(facts)
    bounding = auto.bounding(bounding, recipes, parts, facts)
    bounding = replace(bounding, vectors=vectors_of(parts, bounding.own))
    _check_choices(parts, public)
    check_size(asked.bars, 0 if public is None else len(public.rows), request.confidence)
    notices += _rolled_up(site, recipes, is_private=public is None) + _limited(bounding)
    return Draft(site, asked, world, keyed, public, recipes, parts, bounding, request.confidence, notices)


def _bars(asked: tuple[Bar, ...], outputs: tuple[Output, ...]) -> tuple[Bar, ...]:
    """The end of a choice's bar is found by the twin, which knows the distances of its type."""
    whole = (Bar(bar.output) if isinstance(outputs[bar.output], Chosen) else bar for bar in asked)
    return tuple(dict.fromkeys(whole))


def _target(part: Pick, sensitivity: int, epsilon: Decimal) -> Target:
    if part.fraction is not None:
        return Quantile(part.fraction)
    if part.largest is not None:
        return FromEnd(place_for_extreme(len(part.candidates), sensitivity, epsilon), part.largest)
    return MostFrequent()


def _check_choices(parts: tuple[Contribution, ...], public: PublicGroups | None) -> None:
    """Every group has a histogram of its own, and a draw for each of its candidates."""
    groups = 1 if public is None else len(public.rows)
    candidates = sum(len(part.candidates) for part in parts if isinstance(part, Pick))
    if groups * candidates > _MOST_CELLS:
        hint = "Group by less, or narrow the groups in WHERE."
        raise TooComplex(f"quantiles in {groups:,} groups are too many", hint=hint)


def _rolled_up(site: BlockSite, recipes: tuple[Recipe, ...], *, is_private: bool) -> tuple[str, ...]:
    """Sums and counts of rows add up; units do not, since one may be in several groups."""
    if not site.sets:
        return ()
    if any(
        isinstance(part, UnitCount | DistinctCount | DistinctSum | Pick) for recipe in recipes for part in recipe.parts
    ):
        hint = "Ask for each level in a query of its own."
        raise NotSupported("people counted in groups do not add up to people in all", hint=hint)
    return ("totals are sums over the groups that are shown",) if is_private else ()


def _limited(bounding: Bounding) -> tuple[str, ...]:
    """A unit in more groups than count is told of by the rules alone, whether there is one or not."""
    if not bounding.limits_groups:
        return ()
    return (f"at most {bounding.groups} groups of each unit are counted; SET noisegate.groups_per_unit says how many",)


def _cap(node: Node, request: Request, world: World) -> tuple[int, tuple[str, ...]]:
    """How many rows of a unit are counted: by the rules, lowered by the session, or as many as a key proves."""
    found = [each for each in (node.facts.rows.cap, request.rows_per_unit) if each is not None]
    if found:
        return min(found), ()
    if node.facts.rows.proved is not None:
        return node.facts.rows.proved, ()
    rules = [world.policy.find_table(scan.table) for scan in scans_in(node) if scan.facts.unit is not None]
    declared = [each.rows_per_unit for each in rules if each is not None and each.rows_per_unit is not None]
    if declared:
        notice = f"a join multiplies rows: at most {max(declared)} rows of each unit are counted"
        return max(declared), (notice,)
    hint = "Give rows_per_unit in the rules, or SET noisegate.rows_per_unit = 40."
    raise NotAllowed("nothing says how many rows of one unit are to be counted", hint=hint)


def _bounding(
    facts: Facts, keys: tuple[Expression, ...], cap: int, request: Request, *, is_private: bool
) -> Bounding:  # fmt: skip
    """The cheapest form that is sound. A declared number is never believed: only a proof leaves truncation out."""
    proved = facts.rows.proved
    rows = cap if proved is None else min(proved, cap)
    truncates = proved is None or proved > cap
    one_group = not keys or all(ids_in(key) <= facts.determined for key in keys)
    groups = 1 if one_group else rows
    if not one_group and (is_private or request.groups_per_unit is not None):
        groups = min(rows, request.groups_per_unit or _DEFAULT_GROUPS)
    limits_groups = groups < rows and not one_group
    if not truncates and not limits_groups:
        return Bounding("plain", rows, groups, limits_groups=False)
    _check_identity(facts)
    return Bounding("by unit" if one_group else "ranked", rows, groups, limits_groups=limits_groups)


def _check_identity(facts: Facts) -> None:
    if facts.unit is None or facts.unit.column is None:
        raise NotSupported(
            "rows without a primary key have no identity, so they cannot be told apart once they are multiplied"
        )


def _recipes(
    asked: Asked, level: Decimal, keyed: Keyed, world: World, rows: int
) -> tuple[Recipe, ...]:  # fmt: skip
    node = keyed.source.node
    leaf = names_leaf(keyed.source.scope, {column.id: column for column in node.facts.columns})
    binding = Binding(leaf, world, world.setting())
    barred = {bar.output for bar in asked.bars}
    together = rows * world.policy.group_size  # noise has to be drawn for so many rows of units that go together
    found = []
    for place, each in enumerate(asked.aggregates):
        if not isinstance(each, s.Call):
            raise NotSupported("this aggregate is not understood")
        with pointing_at(each.name):
            recipe = split(each, binding, node.facts, together)
            found.append(recipe.barred(level) if place in barred and recipe.barred else recipe)
    return tuple(found)


def _parts(recipes: tuple[Recipe, ...], *, needs_units: bool) -> tuple[Contribution, ...]:
    """Each different contribution once, in the order of the select list; a threshold looks at units too."""
    parts = dict.fromkeys(part for recipe in recipes for part in recipe.parts)
    if needs_units:
        parts.setdefault(UnitCount())
    return tuple(parts)


def _origins(world: World) -> str:
    """What was answered first. Without it, asking with a guessed constant would tell whether others were given it."""
    return "".join(f" after {released.origin}" for released in world.released if released.origin)


def _tables(node: Node) -> tuple[str, ...]:
    """All that is read, public tables and the way to the unit too: a key of any of them may be what proves."""
    names = [name for scan in scans_in(node) for name in (scan.table, *(hop.target for hop in scan.hops))]
    return tuple(dict.fromkeys(map(str, names)))


def _least_shown(groups: Groups, measures: tuple[Measure | Choice, ...], group_size: int) -> int | None:
    """From about how many units on a group is shown, where groups are found in the data."""
    if not isinstance(groups, PrivateGroups):
        return None
    units = measures[groups.measure]
    assert isinstance(units, Measure), "units are counted, never chosen"
    return find_threshold(units, groups.delta, group_size=group_size)


def _explanation(
    bounding: Bounding, facts: Facts, groups: Groups, least: int | None
) -> tuple[tuple[str, str], ...]:  # fmt: skip
    """What EXPLAIN says of a block besides its measures, from the rules and the query alone."""
    forms = {"plain": "proved by a unique key", "by unit": "scaled by unit", "ranked": "scaled by unit and group"}
    found = f"found in the data, by threshold: from {'at most ' * bool(bounding.is_chosen)}about {least} units on"
    listed = found if isinstance(groups, PrivateGroups) else str(len(groups.rows))
    return (
        ("unit", "" if facts.unit is None else facts.unit.kind),
        ("rows per unit", f"{'at most ' * bounding.is_chosen}{bounding.rows}, {forms[bounding.form]}"),
        ("groups per unit", str(bounding.groups)),
        ("groups", listed),
    )
