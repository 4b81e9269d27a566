"""One private statement from its text to its plan; each step hands on a new value.

text → PostgreSQL's tree → canonical text → syntax → blocks → inner statements and the outer statement around them
"""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import partial
from itertools import chain

from rules.bind.correlated_subquery import Correlated, known_or_needed
from rules.bind.inner_answers import InnerQuery, renumbered
from rules.catalog import Catalog
from rules.frozen import frozen, replace
from rules.functions.function import UnreadLiterals
from rules.kernel.ground import Ground
from rules.mechanisms.cost import share
from rules.mechanisms.release_plan import Bar, BarEnd, Block
from rules.planner.advise import advised, find_position, with_outer_columns, with_unit_columns
from rules.planner.arrays import Arrays, Place
from rules.planner.block import check_encoding, draft_block
from rules.planner.budget_request import request_plan
from rules.planner.draft import BlockAggregates, Draft
from rules.planner.enclosing_queries import find_shown, shown_selects
from rules.planner.error_bars import BARS, barred_aggregates
from rules.planner.explain import explained
from rules.planner.find_blocks import SUBQUERIES, BlockSite, Leaves, context_of, find_blocks, leaves_of
from rules.planner.inner_queries import decorrelate, literals_to_read, statement_of
from rules.planner.no_groups import without_empty_blocks
from rules.planner.outer import SystemViewHoles, check_outer, check_parameters, check_without_blocks, outer_statement
from rules.planner.passes.without_data import NOTICES, previews
from rules.planner.plan import CLOCK_WORDS, NeedsInner, Plan, Request, reads_clock, telling_zones
from rules.planner.public_query import find_public_query
from rules.planner.results import AnsweredSelect, Marked, bare_items, bare_outputs, marks_of, results_of, unmarked
from rules.planner.rewrite import rewrite
from rules.planner.tables import Tables, tables_of
from rules.policy.model import Policy
from rules.refusal import NotAllowed, NotSupported, Refusal, TooComplex
from rules.release.margins import Result
from rules.release.marks import Mark
from rules.replay import Kernel
from rules.sql.grammar import deparse_expression, fingerprint, parse, parse_taken, shape
from rules.sql.lower import Lowered, expressions_from, lowered
from rules.sql.selects import query_of
from rules.sql.statement import MOST_SHAPE
from rules.sql.syntax import Expression
from rules.sql.system_views import REQUEST
from rules.sql.tree import Index, Node, kind, make_canonical

_MOST_CORRELATED = 20


@telling_zones
def plan(request: Request, policy: Policy, catalog: Catalog, kernel: Kernel | None = None) -> Plan | NeedsInner:
    """The plan of a statement that reads protected tables, or what must be answered first; raises a Refusal.

    The kernel is that of the same policy and catalog, if one is kept.
    """
    kernel = kernel or Kernel(Ground(policy, catalog))
    if request.previews not in (None, policy.previews):
        policy = policy.model_copy(update={"previews": request.previews})
    (piece,) = parse_taken(request.text)  # its tree is changed from here on
    make_canonical(piece.index)
    name, explain = kind(piece.tree)
    query = explain.get("query")
    try:
        if name == "ExplainStmt" and isinstance(query, dict):
            shown = _plan_tree(Index(query), replace(request, explains=True), policy, catalog, kernel)
            if isinstance(shown, NeedsInner):
                return shown
            return explained(shown, explain, policy.group_size, request.firsts, kernel)
        made = _plan_tree(piece.index, request, policy, catalog, kernel)
        return made if isinstance(made, NeedsInner) else _named(made, request, is_query=name == "SelectStmt")
    except Refusal as refusal:
        (written,) = parse(request.text)
        refusal = with_outer_columns(refusal, written.tree, request.text)
        refusal = with_unit_columns(refusal, written.tree, policy, Tables(context_of(request, policy, catalog)).find)
        is_planned = _Planned(request, policy, catalog, kernel).is_planned
        refusal = advised(refusal, written.tree, policy.unit, is_planned)
        refusal.position = refusal.position or find_position(refusal, written.tree, request.text)
        raise refusal from None


@frozen
class _Planned:
    """Tells whether a statement of a hint is answered, in the session that asked."""

    request: Request
    policy: Policy
    catalog: Catalog
    kernel: Kernel

    def is_planned(self, text: str) -> bool:
        request = replace(self.request, text=text, released=(), firsts=())
        index = parse(text)[0].index
        make_canonical(index)
        try:
            _plan_tree(index, request, self.policy, self.catalog, self.kernel)
        except Refusal:
            return False
        return True


def _named(plan: Plan, request: Request, *, is_query: bool) -> Plan:
    """The plan with the name and the shape by which an operator finds the statement again."""
    written = request.shape or shape(request.text) if plan.blocks and is_query else ""
    return replace(plan, fingerprint=request.fingerprint or fingerprint(request.text), shape=written[:MOST_SHAPE])


def _plan_tree(written: Index, request: Request, policy: Policy, catalog: Catalog, kernel: Kernel) -> Plan | NeedsInner:
    if REQUEST in written.words and (wanted := request_plan(written.tree, request, policy)) is not None:
        return wanted
    tables = Tables(context_of(request, policy, catalog), request.views, request.preview_rows)
    if query_of(written.tree) is None:
        message = "COPY of a protected table would return its rows"
        raise NotAllowed(message, hint="Use COPY (SELECT count(*) …) TO STDOUT.", about="COPY")
    made = rewrite(written, tables)
    check_parameters(made.index, len(request.parameter_types))
    if not tables.have_protected(tables_of(made.index)):
        notices = (NOTICES[policy.previews],) if previews in made.by else ()
        return replace(_free_plan(made.index.tree, request), notices=notices)
    if made.index.holders("lockingClause"):
        message = "row locks over protected tables are not supported"
        raise NotSupported(message, hint="Remove FOR UPDATE.", about="FOR")
    return _plan_bound(made.index, request, tables, kernel)


def _plan_bound(written: Index, request: Request, tables: Tables, kernel: Kernel) -> Plan | NeedsInner:
    """Plan what can be bound, or say what must be known first. What depends on the row around it is rewritten."""
    tree, rewritten = written.tree, tuple[int, ...]()
    query = query_of(tree)
    assert query is not None
    ctes = frozenset(str(body.get("ctename")) for body in written.bodies("CommonTableExpr"))
    while len(rewritten) < _MOST_CORRELATED:
        known = renumbered(request.released, rewritten)
        is_known = not ctes and known == tables.context.released
        context = tables.context if is_known else replace(tables.context, released=known, ctes=ctes)
        syntax = lowered(query)
        match _plan(tree, query, syntax, request, replace(tables, context=context), kernel, written.words):
            case Plan() as made:
                return made
            case InnerQuery() as needed:
                inner = replace(needed, rewritten=len(rewritten))
                text = statement_of(query, syntax.selects, inner)
                public = find_public_query(inner, text, request, tables)
                depends_on_time = bool(inner.sql) and _depends_on_time(query, written.words)
                return NeedsInner(inner, text, request.explains, public, depends_on_time)
            case UnreadLiterals() as unread:
                inner = InnerQuery(use="reading", type=unread.type.sql, literals=literals_to_read(query, unread))
                return NeedsInner(inner, statement_of(query, syntax.selects, inner))
            case Correlated() as correlated:
                decorrelate(tree, syntax.selects[correlated.select], correlated.links)
                rewritten = (*rewritten, correlated.select)
    raise TooComplex(f"more than {_MOST_CORRELATED} correlated subqueries are not supported")


def _depends_on_time(query: Node, words: AbstractSet[str]) -> bool:
    return not words.isdisjoint(CLOCK_WORDS) and reads_clock(query)


@known_or_needed
def _plan(
    tree: Node, query: Node, syntax: Lowered, request: Request, tables: Tables, kernel: Kernel, words: AbstractSet[str]
) -> Plan:
    """Find the blocks of a readable query, plan each, and put the outer statement around them."""
    sites = find_blocks(syntax.query, tables.context, has_subqueries=not words.isdisjoint(SUBQUERIES))
    if not sites:
        check_without_blocks(tree, tables)
    has_bars = not words.isdisjoint(BARS)
    cuts = [_Cut.of(site, syntax.selects[site.select_index], has_bars=has_bars) for site in sites]
    blocks = _planned(cuts, query, request, tables, kernel)
    depends_on_time = _depends_on_time(query, words)  # before the blocks are cut out
    spoken = _spoken(cuts, blocks) if request.explains else ()
    top, shown = kind(query)[1], list(shown_selects(query))
    for cut in cuts:
        cut.is_shown = any(cut.body is body for body in shown)
    resultses = [tuple(chain.from_iterable(map(results_of, _selects(cut)))) for cut in cuts]
    results = tuple(dict.fromkeys(chain.from_iterable(resultses)))
    blocks = [_showing(block, bare_outputs(results, number, block)) for number, block in enumerate(blocks)]
    marks = marks_of(results, top, request) if any(cut.body is top for cut in cuts) else {}
    places = _places(cuts, blocks, query, request, marks, resultses)
    columns = sum(map(_width, blocks)) + len(marks)
    system_view_holes = SystemViewHoles(request.search_path, len(request.parameter_types) + columns)
    outer = outer_statement(tree, places, system_view_holes, words)
    check_outer(tree, tables, words)
    delta = sum((block.delta for block in blocks), Decimal(0))
    made = Plan(
        blocks=tuple(blocks),
        outer=outer,
        parameters=len(request.parameter_types),
        epsilon=sum((block.epsilon for block in blocks), Decimal(0)),
        delta=delta,
        notices=tuple(dict.fromkeys(notice for block in blocks for notice in block.notices)) + unmarked(marks, request),
        depends_on_time=depends_on_time,
        system_views=system_view_holes.names,
        spoken=spoken,
        results=results,
        marks=tuple(marks.values()),
        is_inner=request.is_inner,
    )
    return without_empty_blocks(made, columns)


@dataclass(slots=True)
class _Cut:
    """A block's SELECT in PostgreSQL's tree, its leaves, and its aggregates as the planner reads them."""

    site: BlockSite
    body: Node
    leaves: Leaves
    aggregates: tuple[Expression, ...]
    barred: frozenset[tuple[Expression, BarEnd | None]]  # those of them that stand in error bars
    blocks: tuple[int, ...] = ()  # which of the plan's blocks answer it: one, or one for each grouping set
    outputs: tuple[int, ...] = ()  # which output of these blocks each aggregate is
    is_shown: bool = False  # its select list is what the client sees

    @classmethod
    def of(cls, site: BlockSite, body: Node, *, has_bars: bool) -> "_Cut":
        leaves = leaves_of(body, site)
        expressions = expressions_from(leaves.aggregates) if leaves.aggregates else ()
        bars = barred_aggregates(body, leaves) if has_bars else ()
        barred = frozenset((expressions[bar.output], bar.end) for bar in bars)
        return cls(site, body, leaves, expressions, barred)


def _planned(cuts: list[_Cut], query: Node, request: Request, tables: Tables, kernel: Kernel) -> list[Block]:
    """One block for all cuts over the same rows and keys, so that what is equal is answered and paid once.

    Each has the part of ε that its measures weigh: the same ones would have as much in one block.
    """
    drafts = [draft_block(cut.site, _together([cut]), request, tables.context, kernel) for cut in cuts]
    merged: dict[tuple[object, ...], list[int]] = {}
    for place, draft in enumerate(drafts):  # an outer join has the rows of an inner one, and more groups
        alone = () if draft.adds_up else (place,)
        merged.setdefault((draft.canonical, draft.public, draft.site.sets, alone), []).append(place)
    whole: list[Draft] = []
    for places in merged.values():
        alike = [cuts[place] for place in places]
        block_aggregates = _together(alike)
        planned = _of_levels(drafts[places[0]], block_aggregates, request, tables, kernel, is_alone=len(alike) == 1)
        if len(alike) == len(planned) == 1:
            planned = [planned[0].choosing(partial(find_shown, query, alike[0].body))]
        for cut in alike:
            cut.blocks = tuple(len(whole) + number for number in range(len(planned)))
            cut.outputs = tuple(map(block_aggregates.aggregates.index, cut.aggregates))
        whole += planned
    weights = [draft.weights for draft in whole]
    wholes = [(sum(each) or Fraction(1)) * draft.spread for each, draft in zip(weights, whole, strict=True)]
    shares = share(request.epsilon, wholes) if whole else ()
    delta, shared = request.delta / max(1, len(whole)), zip(whole, shares, weights, strict=True)
    blocks = [draft.with_shares(part, own, delta) for draft, part, own in shared]
    for block in blocks:
        check_encoding(block, tables.context.catalog.encoding, kernel)
    return blocks


def _of_levels(
    draft: Draft, aggregates: BlockAggregates, request: Request, tables: Tables, kernel: Kernel, *, is_alone: bool
) -> list[Draft]:
    """One draft, or one for each grouping set where what is asked does not add up."""
    if draft.adds_up:
        return [draft if is_alone else draft_block(draft.site, aggregates, request, tables.context, kernel)]
    return [draft_block(level, aggregates, request, tables.context, kernel) for level in draft.site.levels]


def _together(cuts: list[_Cut]) -> BlockAggregates:
    """The distinct aggregates of all cuts that one block answers."""
    aggregates = tuple(dict.fromkeys(aggregate for cut in cuts for aggregate in cut.aggregates))
    barred = frozenset[tuple[Expression, BarEnd | None]]().union(*(cut.barred for cut in cuts))
    if not barred:
        return BlockAggregates(aggregates, ())
    bars = (
        Bar(place, end)
        for place, aggregate in enumerate(aggregates)
        for end in (None, *BARS)
        if (aggregate, end) in barred
    )
    return BlockAggregates(aggregates, tuple(bars))


def _selects(cut: _Cut) -> list[AnsweredSelect]:
    """A cut as each of its blocks answers it."""
    return [AnsweredSelect(cut.body, cut.leaves, block, cut.outputs, cut.is_shown) for block in cut.blocks]


def _places(
    cuts: list[_Cut],
    blocks: list[Block],
    query: Node,
    request: Request,
    marks: Mapping[int, Mark],
    results: list[tuple[Result, ...]],
) -> list[Place]:
    """Return where each block's arrays stand in the outer statement: after the client's own parameters."""
    first = [len(request.parameter_types) + 1 + sum(map(_width, blocks[:number])) for number in range(len(blocks))]
    top, last = kind(query)[1], len(request.parameter_types) + sum(map(_width, blocks))
    arrays = [Arrays(block, number) for block, number in zip(blocks, first, strict=True)]
    marked = Marked({item: last + number for number, item in enumerate(marks, start=1)})
    return [
        Place(
            *(
                cut.body,
                cut.leaves,
                tuple(arrays[block] for block in cut.blocks),
                cut.site,
                f"_ng{number}",
                cut.outputs,
            ),
            *(bare_items(of), marked if cut.body is top and marks else None),
        )
        for number, (cut, of) in enumerate(zip(cuts, results, strict=True), start=1)
    ]


def _showing(block: Block, shown: tuple[int, ...]) -> Block:
    """The block with columns for outputs that are shown as they are, whichever way it is answered."""
    plain = None if block.plain is None else replace(block.plain, shown=shown)
    return replace(block, shown=shown, plain=plain)


def _spoken(cuts: list[_Cut], blocks: list[Block]) -> tuple[tuple[str, ...], ...]:
    """Return what the analyst calls the outputs of each block."""
    spoken = [[""] * len(block.outputs) for block in blocks]
    for cut in cuts:
        for node, output in zip(cut.leaves.aggregates, cut.outputs, strict=True):
            for block in cut.blocks:
                spoken[block][output] = deparse_expression(node)
    return tuple(map(tuple, spoken))


def _width(block: Block) -> int:
    """Return how many arrays a block's answer is."""
    return len(block.keys) + bool(block.sets) + len(block.outputs) + len(block.bars) + len(block.shown)


def _free_plan(tree: Node, request: Request) -> Plan:
    """A statement that reads no protected row: nothing is asked, nothing is paid."""
    parameters = len(request.parameter_types)
    system_view_holes = SystemViewHoles(request.search_path, parameters)
    outer = outer_statement(tree, [], system_view_holes)
    return Plan((), outer, parameters, Decimal(0), Decimal(0), system_views=system_view_holes.names)
