"""One private statement from its text to its plan; each step hands on a new value.

text → PostgreSQL's tree → canonical text → syntax → blocks → inner statements and the outer statement around them
"""

from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction

from rules.catalog import Catalog, Table, TableName
from rules.noise.allocate import share
from rules.noise.measures import Bar, BarEnd, Block, PrivateGroups
from rules.policy.model import Policy
from rules.refusal import Mismatch, NotAllowed, NotSupported, Refusal, TooComplex
from rules.relation import value
from rules.relation.functions.coerce import Unread
from rules.relation.lookup import Correlated
from rules.relation.released import AnswerFirst, Inner, renumbered
from rules.relation.scope import ROW_HINT, World
from rules.rewrite.block import Asked, draft_block
from rules.rewrite.cut import Leaves, leaves_of
from rules.rewrite.decorrelate import decorrelate
from rules.rewrite.dependent_keys import write_dependent_keys
from rules.rewrite.error_bars import BARS, barred_aggregates, check_none_left
from rules.rewrite.explain import explained
from rules.rewrite.find_blocks import find_blocks, world_of
from rules.rewrite.first import statement_of
from rules.rewrite.outer import Place, outer_statement
from rules.rewrite.plan import First, Plan, Request, TemporaryView
from rules.rewrite.position import find_position
from rules.rewrite.preview import NOTICES, is_preview, preview
from rules.rewrite.probe import Columns, is_probe, without_rows
from rules.rewrite.push_bars import push_bars
from rules.rewrite.relations import tables_in
from rules.rewrite.site import BlockSite
from rules.rewrite.told import Told
from rules.rewrite.views import FindView, with_views
from rules.sql.canonical import canonical_tree, sources_as_queries
from rules.sql.grammar import Node, deparse_expression, items, kind, parse, strings, walk
from rules.sql.parse import expressions_from, query_from
from rules.sql.selects import numbered, query_of
from rules.sql.syntax import Expression

_MOST_CORRELATED = 20
_LONGEST_MOMENT = 100  # characters
CLOCKS = frozenset(("now", "transaction_timestamp", "statement_timestamp", "clock_timestamp"))


def plan(request: Request, policy: Policy, catalog: Catalog) -> Plan | First:
    """The plan of a statement that reads protected tables, or what must be answered first; raises a Refusal."""
    (piece,) = parse(request.text)
    name, explain = kind(piece.tree)
    query = explain.get("query")
    try:
        if name == "ExplainStmt" and isinstance(query, dict):
            shown = _plan_tree(canonical_tree(query), replace(request, explains=True), policy, catalog)
            if isinstance(shown, First):
                return shown
            return explained(shown, explain, policy.group_size, request.firsts)
        return _plan_tree(canonical_tree(piece.tree), request, policy, catalog)
    except Refusal as refusal:
        refusal.position = refusal.position or find_position(refusal, piece.tree, request.text)
        raise


def _plan_tree(written: Node, request: Request, policy: Policy, catalog: Catalog) -> Plan | First:
    world = world_of(request, policy, catalog)
    tables = _Tables(world)
    tree = with_views(written, _find_temporary(request.views, tables.find_view))
    query = query_of(tree)
    if query is None:
        raise NotAllowed(
            "COPY of a protected table would give out its rows", hint="COPY (SELECT count(*) …) TO STDOUT."
        )
    if is_probe(query):
        return _free_plan(without_rows(tree, tables.find_columns), request)
    if policy.previews != "refuse" and is_preview(query, tables.find_protected, world):
        shown = _free_plan(preview(tree, query, tables.find_protected, world), request)
        return replace(shown, notices=(NOTICES[policy.previews],))
    _check_locking(query)
    sources_as_queries(query)
    if not tables.are_read(tree):
        return _free_plan(tree, request)
    push_bars(query)
    write_dependent_keys(query, tables.find_any)
    rewritten: tuple[int, ...] = ()
    while len(rewritten) < _MOST_CORRELATED:
        known = renumbered(request.released, rewritten)
        try:
            return _plan(tree, query, request, _Tables(replace(world, released=known)))
        except AnswerFirst as missing:
            inner = replace(missing.inner, rewritten=len(rewritten))
            return First(inner, statement_of(query, inner), is_shown=request.explains)
        except Unread as missing:
            inner = Inner(use="reading", type=missing.type.sql, literals=_to_read(query, missing))
            return First(inner, statement_of(query, inner))
        except Correlated as found:
            decorrelate(query, found)
            rewritten = (*rewritten, found.select)
    raise TooComplex(f"more than {_MOST_CORRELATED} subqueries depend on the row around them")


def _find_temporary(views: tuple[TemporaryView, ...], find_view: FindView) -> FindView:
    """Temporary views hide tables of their names."""

    def find(schema: str | None, name: str) -> Table | None:
        for view in views:
            if view.name == name and schema in (None, "pg_temp", view.schema):
                return Table(TableName(view.schema, name), "view", (), definition=view.definition)
        return find_view(schema, name)

    return find


def _to_read(query: Node, missing: Unread) -> tuple[str, ...]:
    """The literals that are wanted, and all others of the statement that may be wanted next."""
    found = (kind(node)[1].get("sval") for node in walk(query) if kind(node)[0] == "A_Const")
    texts = (str(body.get("sval", "")) for body in found if isinstance(body, dict))
    others = (text for text in texts if value.find_value(text, missing.type) is None and len(text) <= _LONGEST_MOMENT)
    return tuple(dict.fromkeys((*missing.texts, *others)))


def _plan(tree: Node, query: Node, request: Request, tables: "_Tables") -> Plan:
    """Find the blocks of a readable query, plan each, and put the outer statement around them."""
    syntax = query_from(query)
    sites = find_blocks(syntax, tables.world)
    if not sites and tables.are_read(tree):
        raise NotAllowed("this would give out protected rows", hint=ROW_HINT)
    bodies = numbered(query)
    cuts = [_Cut.of(site, bodies[site.select_index]) for site in sites]
    blocks = _planned(cuts, request, tables)
    depends_on_time = any(map(_is_clock, walk(query)))  # before the blocks are cut out
    told = Told(request.search_path, len(request.parameter_types) + sum(map(_width, blocks)))
    spoken = _spoken(cuts, blocks) if request.explains else ()
    outer = outer_statement(tree, _places(cuts, blocks, query, request), told)
    _check_nothing_left(tree, tables)
    check_none_left(tree)
    delta = sum((block.groups.delta for block in blocks if isinstance(block.groups, PrivateGroups)), Decimal(0))
    return Plan(
        blocks=tuple(blocks),
        outer=outer,
        parameters=len(request.parameter_types),
        epsilon=sum((block.epsilon for block in blocks), Decimal(0)),
        delta=delta,
        notices=tuple(dict.fromkeys(notice for block in blocks for notice in block.notices)),
        depends_on_time=depends_on_time,
        told=told.names,
        spoken=spoken,
    )


@dataclass(slots=True)
class _Cut:
    """A block's SELECT in PostgreSQL's tree, its leaves, and its aggregates as the planner reads them."""

    site: BlockSite
    body: Node
    leaves: Leaves
    aggregates: tuple[Expression, ...]
    barred: frozenset[tuple[Expression, BarEnd | None]]  # those of them that stand in error bars
    block: int = 0  # which of the plan's blocks answers it
    outputs: tuple[int, ...] = ()  # which output of that block each aggregate is

    @classmethod
    def of(cls, site: BlockSite, body: Node) -> "_Cut":
        leaves = leaves_of(body, site)
        found = expressions_from(leaves.aggregates) if leaves.aggregates else ()
        barred = frozenset((found[bar.output], bar.end) for bar in barred_aggregates(body, leaves))
        return cls(site, body, leaves, found, barred)


def _planned(cuts: list[_Cut], request: Request, tables: "_Tables") -> list[Block]:
    """One block for all cuts over the same rows and keys, so that what is equal is answered and paid once.

    Each has the part of ε that its measures weigh: the same ones would have as much in one block.
    """
    drafts = [draft_block(cut.site, _together([cut]), request, tables.world) for cut in cuts]
    merged: dict[tuple[object, ...], list[int]] = {}
    for place, draft in enumerate(drafts):  # an outer join has the rows of an inner one, and more groups
        merged.setdefault((draft.canonical, draft.public, draft.site.sets), []).append(place)
    whole = []
    for number, places in enumerate(merged.values()):
        alike = [cuts[place] for place in places]
        asked = _together(alike)
        for cut in alike:
            cut.block, cut.outputs = number, tuple(map(asked.aggregates.index, cut.aggregates))
        draft = drafts[places[0]]
        whole.append(draft if len(alike) == 1 else draft_block(draft.site, asked, request, tables.world))
    shares = share(request.epsilon, [sum(draft.weights) or Fraction(1) for draft in whole]) if whole else ()
    delta = request.delta / max(1, len(whole))
    return [draft.with_shares(part, delta) for draft, part in zip(whole, shares, strict=True)]


def _together(cuts: list[_Cut]) -> Asked:
    """The distinct aggregates of all cuts that one block answers."""
    aggregates = tuple(dict.fromkeys(aggregate for cut in cuts for aggregate in cut.aggregates))
    barred = frozenset[tuple[Expression, BarEnd | None]]().union(*(cut.barred for cut in cuts))
    bars = (Bar(place, end) for place, each in enumerate(aggregates) for end in (None, *BARS) if (each, end) in barred)
    return Asked(aggregates, tuple(bars))


def _places(cuts: list[_Cut], blocks: list[Block], query: Node, request: Request) -> list[Place]:
    """Where each block's arrays stand in the outer statement: after the client's own parameters."""
    first = [len(request.parameter_types) + 1 + sum(map(_width, blocks[:number])) for number in range(len(blocks))]
    top = kind(query)[1]
    return [
        Place(cut.body, cut.leaves, blocks[cut.block], first[cut.block], f"_ng{number}", cut.outputs, cut.body is top)
        for number, cut in enumerate(cuts, start=1)
    ]


def _spoken(cuts: list[_Cut], blocks: list[Block]) -> tuple[tuple[str, ...], ...]:
    """What the analyst calls the outputs of each block."""
    spoken = [[""] * len(block.outputs) for block in blocks]
    for cut in cuts:
        for node, output in zip(cut.leaves.aggregates, cut.outputs, strict=True):
            spoken[cut.block][output] = deparse_expression(node)
    return tuple(map(tuple, spoken))


def _width(block: Block) -> int:
    """How many arrays a block's answer is."""
    return len(block.keys) + bool(block.sets) + len(block.outputs) + len(block.bars)


def _free_plan(tree: Node, request: Request) -> Plan:
    """A statement that reads no protected row: nothing is asked, nothing is paid."""
    parameters = len(request.parameter_types)
    told = Told(request.search_path, parameters)
    outer = outer_statement(tree, [], told)
    return Plan((), outer, parameters, Decimal(0), Decimal(0), told=told.names)


def _check_locking(query: Node) -> None:
    if any(items(node, "lockingClause") for node in walk(query)):
        message = "row locks over protected tables are not supported"
        raise NotSupported(message, hint="Leave out FOR UPDATE.", about="FOR")


def _check_nothing_left(tree: Node, tables: "_Tables") -> None:
    """No protected table may stay in what runs on the twin, whose protected tables are empty."""
    if tables.are_read(tree):
        raise Mismatch("a protected table would be left in the outer statement")


def _is_clock(node: Node) -> bool:
    name, body = kind(node)
    function = strings(body.get("funcname"))[-1] if name == "FuncCall" else ""
    return name == "SQLValueFunction" or function in CLOCKS or (function == "age" and len(items(body, "args")) == 1)


@dataclass(frozen=True, slots=True)
class _Tables:
    """Which tables names mean, as the session's search path resolves them."""

    world: World

    def find_protected(self, schema: str | None, name: str) -> Table | None:
        table = self._find(schema, name)
        return table if table is not None and self.world.policy.is_protected(table.name) else None

    def find_any(self, schema: str | None, name: str) -> Table | None:
        return self._find(schema, name)

    def find_view(self, schema: str | None, name: str) -> Table | None:
        """A view that is read as its definition."""
        table = self._find(schema, name)
        rules = None if table is None else self.world.policy.find_table(table.name)
        return table if rules is not None and rules.view else None

    def find_columns(self, schema: str | None, name: str) -> Columns | None:
        """The visible columns of a protected table; None for any other table."""
        table = self.find_protected(schema, name)
        if table is None:
            return None
        rules = self.world.policy.find_table(table.name)
        assert rules is not None
        hidden = {column for column, given in rules.columns.items() if given.hidden}
        return tuple((column.name, column.type.sql) for column in table.columns if column.name not in hidden)

    def are_read(self, tree: Node) -> bool:
        """Whether a statement reads a protected table."""
        return any(self.find_columns(schema, name) is not None for schema, name in tables_in(tree))

    def _find(self, schema: str | None, name: str) -> Table | None:
        for each in (schema,) if schema is not None else self.world.search_path:
            if (table := self.world.catalog.find_table(TableName(each, name))) and self.world.policy.find_table(
                table.name
            ):
                return table
        return None
