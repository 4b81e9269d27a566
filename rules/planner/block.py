"""Draft one private block from its place in the query: its rows, groups, recipes of aggregates, bounds and notices."""

import re
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from itertools import chain

from rules.aggregates.contributions import Contribution, Recipe, Selection, Typical, expressions_of
from rules.aggregates.estimates import estimate, notices_of_reports
from rules.aggregates.recipes import choose, chosen_rows, split
from rules.algebra.joint_domains import joints
from rules.algebra.nodes import Filter, Join, Node, Project, Scan, expressions_in, scans_in, tied_in
from rules.bind.expression import Binding
from rules.bind.from_clause import names_leaf
from rules.bind.scope import PlannerContext
from rules.bind.table import demand_bounds
from rules.bind.walk_syntax import is_estimate, is_typical
from rules.catalog import DatabaseLocale, find_codec, find_missing
from rules.frozen import replace
from rules.functions.text.text_casts import texts_read
from rules.kernel.measures import Count, DistinctMeasure, Sum, Units
from rules.mechanisms.release_plan import (
    Block,
    Choice,
    PublicGroups,
)
from rules.planner.bound_contributions import Bounding, bounding_of, find_cap, find_cuts, limited
from rules.planner.choose_bounds import Auto
from rules.planner.disjoint_measures import vectors_of
from rules.planner.draft import BlockAggregates, Draft
from rules.planner.fan_out import check_fan_out
from rules.planner.find_blocks import BlockSite, domains_of
from rules.planner.list_groups import list_parts
from rules.planner.names import CanonicalNames
from rules.planner.plan import Request
from rules.planner.select_partitions import Keyed, Listing, found_keys, listing_of, with_keys
from rules.planner.to_script import bare_key, to_script
from rules.planner.tried_conditions import is_followed
from rules.planner.unlisted_values import unlisted_values
from rules.planner.wide_differences import wide_differences
from rules.refusal import NotAllowed, NotSupported, TooComplex, pointing_at
from rules.release.replicates import check_size
from rules.replay import Kernel
from rules.sql import syntax as s
from rules.values import domain
from rules.values.expression import TRUE, Expression, conjuncts, ids_in

_LITERAL = re.compile(r"'((?:[^']|'')*)'")


def recipes_of(
    aggregates: BlockAggregates, level: Decimal, keyed: Keyed, context: PlannerContext, rows: int, written: Node
) -> tuple[Recipe, ...]:  # fmt: skip
    node = keyed.source.node
    leaf = names_leaf(keyed.source.scope, {column.id: column for column in node.facts.columns})
    binding = Binding(leaf, context, context.setting)
    barred = {bar.output for bar in aggregates.bars}
    together = rows * context.policy.group_size  # noise has to be drawn for so many rows of units that go together
    demand_bounds(node, lambda: _summed(aggregates, binding), context)
    recipes = []
    for place, aggregate in enumerate(aggregates.aggregates):
        if not isinstance(aggregate, s.Call):
            raise NotSupported("this aggregate is not supported")
        with pointing_at(aggregate.name):
            if is_estimate(aggregate):
                recipes.append(estimate(aggregate, binding, written, keyed.keys))
                continue
            _check_items(aggregate, keyed, context)
            recipe = split(aggregate, binding, node.facts, together)
            recipes.append(recipe.barred(level) if place in barred and recipe.barred else recipe)
    return tuple(recipes)


def _check_items(call: s.Call, keyed: Keyed, context: PlannerContext) -> None:
    """Refuse an array of a domain's values: the twin would look at the CHECK of the domain after the charge."""
    match call:
        case s.Call(name="percentile_disc", arguments=(s.Array(),), within_group=(s.OrderItem(s.Name(parts=parts)),)):
            number, node = keyed.source.scope.find(parts), keyed.source.node
            domains = {} if keyed.source.scope.is_bare(parts) else dict(domains_of(node, context.catalog))
            if number is not None and number in domains:
                hint = f"Cast it: ORDER BY {parts[-1]}::{node.facts.column(number).type.plain().sql}."
                raise NotSupported(
                    f"percentile_disc with an array, of values of {domains[number]}, is not supported", hint=hint
                )


def _who_are_counted(aggregates: BlockAggregates, keyed: Keyed, context: PlannerContext) -> tuple[Units, ...]:
    """For each aggregate the units that its number is about: those with a row that FILTER, or CASE, chooses."""
    leaf = names_leaf(keyed.source.scope, {column.id: column for column in keyed.source.node.facts.columns})
    binding = Binding(leaf, context, context.setting)
    calls = (aggregate for aggregate in aggregates.aggregates if isinstance(aggregate, s.Call))
    return tuple(Units(TRUE if is_estimate(call) or is_typical(call) else chosen_rows(call, binding)) for call in calls)


def _summed(aggregates: BlockAggregates, binding: Binding) -> Iterator[Expression]:
    """Find what aggregates look into, other than whether it is there; the arguments of a quantile are its fractions."""
    for aggregate in aggregates.aggregates:
        if isinstance(aggregate, s.Call) and aggregate.name != "count" and not is_typical(aggregate):
            with pointing_at(aggregate.name):
                ordered = tuple(order.expression for order in aggregate.within_group)
                yield from map(binding.bind, ordered or aggregate.arguments)


_MOST_CELLS = 1_000_000  # of the histograms of one answer


def draft_block(
    site: BlockSite, aggregates: BlockAggregates, request: Request, context: PlannerContext, kernel: Kernel
) -> Draft:
    """The block of a site with these aggregates as its outputs."""
    keyed = with_keys(site.source, site.keys, context)
    node = keyed.source.node
    check_fan_out(node, context)
    cap, notices = find_cap(node, request, context)
    listing = _listing(keyed, request, context)
    counted = node if listing is None else keyed.unlisted
    rows = to_script(counted)
    relation = kernel.relation(rows)
    is_single = relation.known.is_single
    rows_counted = 1 if is_single else bounding_of(node.facts, keyed.keys, cap, request, is_private=False).rows
    auto = Auto.of(node, request, context, rows_counted, is_declared=cap.is_declared)
    block_recipes = recipes_of(aggregates, request.confidence, keyed, context, rows_counted, site.source.node)
    recipes = choose(auto.with_own_bounds(block_recipes))
    finds_first = listing is None and not is_single and _finds_first(recipes, keyed, request)
    is_private = listing is None and not finds_first  # so that a threshold decides in the block itself
    bounding = bounding_of(node.facts, keyed.keys, cap, request, is_private=is_private)
    bounding = replace(bounding, is_single=is_single, rows=rows_counted)
    about = () if context.policy.min_units is None else _who_are_counted(aggregates, keyed, context)
    public = None if listing is None else listing.groups
    groups = None if public is None else len(public.rows)
    hides_empty = _hides_empty(site, public, request)
    beside = _presence(site, keyed, recipes, context.catalog.locale, is_single=is_single) if hides_empty else ()
    parts = tuple(dict.fromkeys((*_parts(recipes, needs_units=is_private), *about, *beside)))
    bounding = auto.bounding(bounding, recipes, parts, node.facts, groups, finds_first=finds_first)
    capped = tuple(part for part in parts if isinstance(part, Sum) and part.total is not None)
    bounding = replace(bounding, vectors=vectors_of(parts, (*bounding.own, *capped)))
    _check_choices(parts, public)
    check_size(aggregates.bars, 0 if public is None else len(public.rows), request.confidence)
    notices += _notices(site, keyed, recipes, bounding, context, is_private=is_private)
    if public is not None and site.keys and not parts:
        public = _without_null(public) if hides_empty else public
        notices += ("every value that is listed is shown: no row was counted, and some may have none",)
    keys, columns = found_keys(keyed, context.time_zone) if listing is None else (listing.keys, keyed.columns)
    keyed = replace(keyed, columns=columns)
    names = CanonicalNames.of(keyed, relation, counted, context.time_zone, kernel, context.catalog)
    cuts = find_cuts(keyed, cap, bounding, parts, groups)
    drafted = keyed, rows, names, tuple(map(bare_key, keys)), public, recipes, parts, bounding, request.confidence
    in_one = is_single or all(ids_in(key) <= node.facts.determined for key in keyed.keys)
    adds_up = not site.sets or _adds_up(parts, aggregates, in_one_group=in_one)
    asks_cut = request.cut and not is_single and (bounding.is_chosen or any(cut.what == "rows" for cut in cuts))
    return Draft(
        site, aggregates, context, kernel, *drafted, notices, cap.is_declared, cuts, asks_cut=asks_cut, adds_up=adds_up,
        about=about, is_in_one=in_one, finds_first=finds_first,
        remarks=_remarks(site.source.node, keyed, recipes, request),
        hides_empty=hides_empty and bool(recipes or beside), counted=next(iter(beside), None),
    )  # fmt: skip


def _finds_first(recipes: Sequence[Recipe], keyed: Keyed, request: Request) -> bool:
    """Whether groups are found before units are counted in them, as they may be in several.

    Not where the session says in how many they count, nor where units are divided into blocks.
    """
    facts = keyed.source.node.facts
    is_in_one = all(ids_in(key) <= facts.determined for key in keyed.keys)
    if request.groups_per_unit is not None or is_in_one or facts.unit is None or facts.unit.column is None:
        return False
    parts = [part for recipe in recipes for part in recipe.parts]
    return any(isinstance(part, Units) for part in parts) and not any(isinstance(part, Typical) for part in parts)


def _remarks(node: Node, keyed: Keyed, recipes: Sequence[Recipe], request: Request) -> tuple[str, ...]:
    """Say which constants are near listed values, which texts count as NULL, and which differences need a clamp."""
    parts = tuple(chain.from_iterable(recipe.parts for recipe in recipes))
    computed = (*expressions_in(node), *keyed.keys, *chain.from_iterable(map(expressions_of, parts)))
    return unlisted_values(node, computed, request) + unread_texts(computed) + wide_differences(parts)


def _notices(
    site: BlockSite,
    keyed: Keyed,
    recipes: tuple[Recipe, ...],
    bounding: Bounding,
    context: PlannerContext,
    *,
    is_private: bool,
) -> tuple[str, ...]:
    """Say what the answer leaves out or adds: undeclared values, reports, rows of other units, totals, limits."""
    notices = tuple(other.notice for other in keyed.others)
    notices += notices_of_reports(recipes, keyed.keys, site.source.node, context.policy, is_listed=not is_private)
    notices += _tied(keyed.source.node) + _rolled_up(site, is_private=is_private)
    return notices + limited(bounding, _parts(recipes, needs_units=False), is_private=is_private)


def _listing(keyed: Keyed, request: Request, context: PlannerContext) -> Listing | None:
    """The groups that are known without the data; None where they are found."""
    node = keyed.source.node
    parts = list_parts(keyed.keys, node, context)
    listing = None if parts is None else listing_of(keyed.keys, parts, context.policy.groups_limit, joints(node))
    if listing is None:
        _check_threshold(keyed.keys, request.delta, may_have=context.policy.statement_delta())
    return listing


def _check_threshold(keys: tuple[Expression, ...], delta: Decimal, *, may_have: Decimal) -> None:
    """Without δ nothing found in the data may be shown. The session may have chosen so."""
    if delta > 0:
        return
    places = [place for place, key in enumerate(keys, start=1) if domain.number_of_items(key.domain, 100_000) is None]
    which = f" (key {', '.join(map(str, places))})" if places else ""
    message = f"the groups of this query{which} are not declared, or too many to be listed, and delta is 0"
    narrow, declare = "Limit the column in WHERE, group by larger steps", "ask your DBA to declare its values or bounds"
    if may_have > 0:
        hint = f"{narrow}, RESET noisegate.delta to have groups found in the data, or {declare}."
    else:
        hint = f"{narrow}, or {declare}, or a delta, in the rules file."
    raise NotAllowed(message, hint=hint, about="GROUP")


def _hides_empty(site: BlockSite, public: PublicGroups | None, request: Request) -> bool:
    """Whether PostgreSQL may lack some of the listed groups: an outer join has one for each of its public rows."""
    if request.empty_groups == "show" or public is None or not site.keys:
        return False
    return len(public.rows) > 1 and not site.source.node.facts.absent


def _presence(
    site: BlockSite, keyed: Keyed, recipes: tuple[Recipe, ...], locale: DatabaseLocale, *, is_single: bool
) -> tuple[Count | Units, ...]:  # fmt: skip
    """Return what is counted to tell which groups are empty, where no aggregate says it.

    SELECT DISTINCT of a whole table is its list. Elsewhere units are counted: one with many rows is in few groups.
    """
    if recipes:
        return () if _are_summed(recipes) else (Count(),)
    if _is_whole_table(site.source.node, keyed.keys, locale):
        return ()
    unit = keyed.source.node.facts.unit
    return (Count(),) if is_single or unit is None or unit.column is None else (Units(),)


def _is_whole_table(node: Node, keys: tuple[Expression, ...], locale: DatabaseLocale) -> bool:
    """Whether only conditions on the keys leave out rows of a table, which their list follows."""
    match node:
        case Filter(source=source, condition=condition) if ids_in(condition) <= ids_in(*keys):
            is_listed = all(is_followed(part, keys, locale) for part in conjuncts(condition))
            return is_listed and _is_whole_table(source, keys, locale)
        case Project(source=source):
            return _is_whole_table(source, keys, locale)
    return isinstance(node, Scan)


def _without_null(listed: PublicGroups) -> PublicGroups:
    """The groups of values: nobody has listed NULL, and whether a row has it was not counted."""
    kept = [place for place, group in enumerate(listed.rows) if None not in group]
    if not kept:
        return listed
    ordinals = listed.ordinals and tuple(listed.ordinals[place] for place in kept)
    return PublicGroups(tuple(listed.rows[place] for place in kept), ordinals)


def _are_summed(recipes: tuple[Recipe, ...]) -> bool:
    """Whether any aggregate is made of counts or sums, which tell whether a group has rows."""
    return any(not isinstance(part, Selection) for recipe in recipes for part in recipe.parts)


def _check_choices(parts: tuple[Contribution, ...], public: PublicGroups | None) -> None:
    """Every group has a histogram of its own, and a draw for each of its candidates."""
    groups = 1 if public is None else len(public.rows)
    candidates = sum(len(part.candidates) for part in parts if isinstance(part, Selection))
    if groups * candidates > _MOST_CELLS:
        hint = "Group by fewer columns, or limit the groups in WHERE."
        raise TooComplex(f"quantiles in {groups:,} groups exceed the limit", hint=hint)


def unread_texts(computed: Iterable[Expression]) -> tuple[str, ...]:
    """Say that a text of a form that is not read counts as NULL: PostgreSQL reads some of them."""
    types = sorted({target.sql for target in chain.from_iterable(map(texts_read, computed))})
    forms = "2021-01-31, 2021/01/31 and 20210131 (with or without a time)"
    return tuple(f"texts that are cast to {target} count as NULL in other forms than {forms}" for target in types)


def _rolled_up(site: BlockSite, *, is_private: bool) -> tuple[str, ...]:
    return ("totals are sums over the groups that are shown",) if site.sets and is_private else ()


def _adds_up(parts: Sequence[Contribution], aggregates: BlockAggregates, *, in_one_group: bool) -> bool:
    """Sums and counts of rows add up; units do only where each is in one group, and what is chosen never does."""
    if any(isinstance(part, DistinctMeasure | Selection) for part in parts):
        return False
    if any(map(is_estimate, aggregates.aggregates)):
        return False
    return in_one_group or not any(isinstance(part, Units) for part in parts)


def _tied(node: Node) -> tuple[str, ...]:
    """Joins by a key of rows, to which the equality of units was added."""
    ties = []
    for join in tied_in(node):
        sides = (join.left, join.right) if isinstance(join, Join) else (join.source, join.other)
        one, two = (next(str(scan.table) for scan in scans_in(side) if scan.facts.unit is not None) for side in sides)
        assert join.facts.unit is not None
        ties.append(f"{one} and {two} are joined only where both belong to the same {join.facts.unit.kind}")
    return tuple(dict.fromkeys(ties))


def _parts(recipes: tuple[Recipe, ...], *, needs_units: bool) -> tuple[Contribution, ...]:
    """Each different contribution once, in the order of the select list; a threshold looks at units too."""
    parts = dict.fromkeys(part for recipe in recipes for part in recipe.parts)
    if needs_units:
        parts.setdefault(Units())
    return tuple(parts)


def check_encoding(block: Block, encoding: str, kernel: Kernel) -> None:
    """Refuse a block whose statements cannot be written there: what could not be sent would fail after the charge."""
    codec = find_codec(encoding) or "ascii"
    if codec == "utf-8":
        return  # which has all characters
    for sql in _statements(block, kernel):
        missing = find_missing(sql, codec)
        if missing is not None:
            unencodable = next((text for text in _literals(sql) if missing in text), missing)
            hint = (
                "No row can contain it. Remove it from the statement, or ask your DBA to remove it from the rules file."
            )
            message = f"'{unencodable}' has no equivalent in {encoding}, the encoding of the real database"
            raise NotSupported(message, hint=hint, about=unencodable)


def _statements(block: Block, kernel: Kernel) -> Iterator[str]:
    yield kernel.bounded(block.statement).sql
    if block.tally is not None:
        yield kernel.tally(block.tally).sql
    for measure in block.measures:
        if isinstance(measure, Choice):
            yield kernel.bounded(measure.statement).sql


def _literals(sql: str) -> Iterator[str]:
    return (match[1].replace("''", "'") for match in _LITERAL.finditer(sql))
