"""The private blocks of a statement, and what stands above each in its SELECT.

A block is what is answered with noise, wherever it stands; above it are keys and aggregates, and ORDER BY … LIMIT over
its groups.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from rules.algebra.nodes import Node as AlgebraNode
from rules.algebra.nodes import scans_in
from rules.bind.query import bind_query
from rules.bind.scope import ROW_HINT, PlannerContext, RowsSelected, Scope
from rules.bind.state import BindState, BoundSource, Ctes, FoundBlock, Outer
from rules.bind.walk_syntax import first_table, unnumbered
from rules.catalog import Catalog
from rules.frozen import frozen, replace
from rules.planner.plan import Request
from rules.policy.model import Policy
from rules.sql.lower import expression_from
from rules.sql.normalize import spelled_expression
from rules.sql.normalize.nodes import AGGREGATES, ESTIMATE, JSON_AGGREGATES, TYPICAL
from rules.sql.selects import column_name, group_columns, target_value
from rules.sql.syntax import Expression, Query
from rules.sql.tree import PLACES, TREES, Json, Node, holders, items, kind, strings, text_of


@frozen
class GroupKey:
    """One grouping expression, and where its text stands."""

    expression: Expression
    item: int | None = None  # the select item that GROUP BY names by number or alias (or SELECT DISTINCT lists)
    element: int | None = None  # otherwise: which element of GROUP BY it is


@frozen
class BlockSite:
    """One SELECT that aggregates protected rows over all units."""

    select_index: int
    source: BoundSource  # its FROM and WHERE, and the names in them
    keys: tuple[GroupKey, ...]
    is_distinct: bool = False  # SELECT DISTINCT without GROUP BY: its items are its keys
    sets: tuple[tuple[int, ...], ...] = ()  # GROUPING SETS: the keys of each; () without
    columns: int = 0  # numbers of columns up to here are taken
    domains: tuple[tuple[int, str], ...] = ()  # columns of a domain, and its name

    @property
    def levels(self) -> tuple["BlockSite", ...]:
        """Each grouping set by itself."""
        return tuple(replace(self, keys=tuple(self.keys[key] for key in level), sets=()) for level in self.sets)


# The clauses that are computed after grouping.
ABOVE = ("distinctClause", "targetList", "havingClause", "windowClause", "sortClause", "limitCount", "limitOffset")
SUBQUERIES: Final = frozenset(("SubLink", "JsonArrayQueryConstructor"))  # the expressions that have queries in them
_COMPUTED_OF_ALL: Final = ("havingClause", "distinctClause", "windowClause", "valuesLists", "lockingClause")


@dataclass(slots=True)
class Leaves:
    """The distinct keys and aggregates of a block, as nodes of PostgreSQL's tree."""

    keys: list[Json]
    scope: Scope  # what names mean
    aggregates: list[Json] = field(default_factory=list)
    _numbers: dict[str, int] = field(default_factory=dict)  # of the aggregates, by their one spelling
    _found: dict[int, tuple[Json, int | None]] = field(default_factory=dict)  # by the nodes that were looked for
    _key_kinds: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        self._key_kinds = frozenset(kind(key)[0] for key in self.keys)

    def find_key(self, node: Json) -> int | None:
        if kind(node)[0] not in self._key_kinds:
            return None
        return next((number for number, key in enumerate(self.keys) if _is_key(node, key, self.scope)), None)

    def find_aggregate(self, node: Json) -> int | None:
        known, number = self._found.get(id(node), (None, None))
        if known is not node:
            number = self._numbers.get(text_of(spelled_expression(node)))
            self._found[id(node)] = node, number  # which keeps the node, and with it its identity
        return number

    def note_aggregate(self, node: Json) -> None:
        """Take one more, unless it is known."""
        number = self._numbers.setdefault(text_of(spelled_expression(node)), len(self.aggregates))
        self._found[id(node)] = node, number
        if number == len(self.aggregates):
            self.aggregates.append(node)


def find_blocks(query: Query, context: PlannerContext, *, has_subqueries: bool = True) -> tuple[BlockSite, ...]:
    """All blocks, in the order of their SELECTs. A statement that would give out protected rows is refused.

    Where no expression has a subquery none is looked for.
    """
    state = BindState(context, bind_query, has_subqueries)
    bound = state.query(query, Ctes())
    if not isinstance(bound, Outer) and bound.node.facts.unit is not None:
        table = first_table(query)
        raise RowsSelected("rows of a protected table cannot be returned", hint=ROW_HINT, about=table)
    return tuple(_site(block, state) for _, block in sorted(state.blocks.items()))


def context_of(request: Request, policy: Policy, catalog: Catalog) -> PlannerContext:
    """Return what the names and functions of a request mean."""
    return PlannerContext(
        policy=policy,
        catalog=catalog,
        search_path=request.search_path,
        parameter_types=request.parameter_types,
        parameters=request.parameters,
        time_zone=request.time_zone,
        styles=request.styles,
        parsed_under=request.parsed_under,
        now=request.now,
        other=request.other,
        closed=frozenset(request.closed),
    )


def _site(block: FoundBlock, state: BindState) -> BlockSite:
    keys = tuple(GroupKey(key.expression, key.item, key.element) for key in block.keys)
    domains = tuple(domains_of(block.source.node, state.context.catalog))
    return BlockSite(block.select.index, block.source, keys, block.is_distinct, block.sets, state.fresh(), domains)


def domains_of(node: AlgebraNode, catalog: Catalog) -> Iterator[tuple[int, str]]:
    """Yield the columns of types that are not PostgreSQL's own, with these types as SQL writes them."""
    for scan in scans_in(node):
        table = catalog.find_table(scan.table)
        columns = () if table is None else table.columns
        others = {column.name: column.type.sql for column in columns if column.type.schema != "pg_catalog"}
        if others:
            yield from ((number, others[name]) for number, name in scan.names if name in others)


def leaves_of(body: Node, site: BlockSite) -> Leaves:
    """Collect the leaves of one block from the clauses above it."""
    keys = [_key_node(body, key, in_sets=bool(site.sets)) for key in site.keys]
    leaves = Leaves(keys, site.source.scope)

    def note(node: Json) -> Json:
        leaves.note_aggregate(node)
        return node

    for clause in ABOVE:
        replace_leaves(body.get(clause), leaves, lambda number: leaves.keys[number], note)
    return leaves


def replace_leaves(
    node: Json,
    leaves: Leaves,
    on_key: Callable[[int], Json],
    on_aggregate: Callable[[Json], Json],
    on_call: Callable[[Json], Json] = lambda node: None,
) -> Json:
    """A copy of an expression with its leaves replaced, and with calls of which `on_call` makes something else.

    Subqueries are left to their own blocks, but for keys that they name by their table. GROUPING is a call.
    """
    if isinstance(node, list):
        return [replace_leaves(child, leaves, on_key, on_aggregate, on_call) for child in node]
    if not isinstance(node, dict):
        return node
    if len(node) == 1:
        if ("FuncCall" in node or "GroupingFunc" in node) and (made := on_call(node)) is not None:
            return made
        if is_aggregate(node):
            return on_aggregate(node)
        if (number := leaves.find_key(node)) is not None:
            return on_key(number)
        if "ColumnRef" in node or "A_Const" in node:
            return node
        if "SelectStmt" in node:
            return _in_subquery(node, leaves, on_key)
    return {
        name: replace_leaves(child, leaves, on_key, on_aggregate, on_call) if isinstance(child, TREES) else child
        for name, child in node.items()
    }


def _in_subquery(node: Json, leaves: Leaves, on_key: Callable[[int], Json], own: frozenset[str] = frozenset()) -> Json:
    """A name with its table in front means the block's own column, unless a subquery has a table of that name."""
    match node:
        case list():
            return [_in_subquery(child, leaves, on_key, own) for child in node]
        case dict():
            fields = strings(kind(node)[1].get("fields"))
            if len(fields) > 1 and fields[-2] not in own and (number := leaves.find_key(node)) is not None:
                return on_key(number)
            own = own.union(_names_in(items(node, "fromClause")))
            return {name: _in_subquery(child, leaves, on_key, own) for name, child in node.items()}
    return node


def _names_in(sources: Sequence[Json]) -> Iterator[str]:
    """What the items of a FROM are called."""
    for source in sources:
        body = kind(source)[1]
        yield from _names_in([body[side] for side in ("larg", "rarg") if side in body])
        match body:
            case {"alias": {"aliasname": name}} | {"relname": name}:
                yield str(name)


def is_aggregate(node: Json) -> bool:
    """An aggregate that is not a window function. What is in the registry or not is said later, by name."""
    name, body = kind(node)
    if name in JSON_AGGREGATES:
        return not kind({name: body.get("constructor")})[1].get("over")
    if name != "FuncCall" or body.get("over"):
        return False
    function = strings(body.get("funcname"))[-1]
    if function in AGGREGATES or _is_ours(node):
        return True
    return bool(body.get("agg_within_group") or body.get("agg_star") or body.get("agg_distinct"))


def _is_ours(node: Json) -> bool:
    """noisegate.typical, around aggregates that are its own, and noisegate.estimate."""
    *schema, name = strings(kind(node)[1].get("funcname"))
    return name in (TYPICAL, ESTIMATE) and schema in ([], ["noisegate"])


def _is_key(node: Json, key: Json, scope: Scope) -> bool:
    """Equal expressions; a column may be written with or without its table.

    A constant is no leaf: it stays what it is wherever it stands, be it a LIMIT or the number of a column.
    """
    name, body = kind(node)
    key_name, key_body = kind(key)
    if key_name in ("A_Const", "ParamRef"):
        return False
    if name == key_name == "ColumnRef":
        return _same_column(strings(body.get("fields")), strings(key_body.get("fields")), scope)
    if name != key_name or not name:
        return False
    return _alike(node, key, scope)


def _alike(left: Json, right: Json, scope: Scope) -> bool:
    match left, right:
        case dict(), dict():
            if kind(left)[0] == kind(right)[0] == "ColumnRef":
                return _is_key(left, right, scope)
            names = (left.keys() | right.keys()) - PLACES
            return all(_alike(left.get(name), right.get(name), scope) for name in names)
        case list(), list():
            return len(left) == len(right) and all(_alike(*pair, scope) for pair in zip(left, right, strict=True))
    return left == right


def _same_column(left: tuple[str, ...], right: tuple[str, ...], scope: Scope) -> bool:
    """PostgreSQL has refused ambiguous names before this; two different qualifiers are two columns.

    What USING merged is the column of one side, or of neither.
    """
    shorter, longer = sorted((left, right), key=len)
    if longer[len(longer) - len(shorter) :] != shorter:
        return False
    merged = [number for name, number in scope.merged if (name,) == shorter != longer]
    return not merged or scope.find(longer) in merged


def _key_node(body: Node, key: GroupKey, *, in_sets: bool) -> Json:
    """The node of a key, as it stands in the select list or in GROUP BY."""
    if key.item is not None:
        return target_value(body, key.item)
    columns = group_columns(body)
    if in_sets:
        wanted = unnumbered(key.expression)
        return next(node for node in columns if unnumbered(expression_from(node)) == wanted)
    assert key.element is not None, "a key comes from a select item or from an element of GROUP BY"
    return columns[key.element]


def find_top(body: Node) -> int | None:
    """Return how many groups are shown of all, or skipped; None where something else is asked of the others."""
    count, offset = _constant(body.get("limitCount")), _constant(body.get("limitOffset"))
    if not count or body.get("limitOption") != "LIMIT_OPTION_COUNT" or (offset is None and "limitOffset" in body):
        return None
    if any(body.get(clause) for clause in _COMPUTED_OF_ALL):
        return None
    above = [body.get(clause) for clause in ("targetList", "sortClause")]
    if holders(above, "SubLink") or holders(above, "over"):
        return None
    orders = items(body, "sortClause")
    return count + (offset or 0) if orders and _is_descending_count(orders[0], body) else None


def _constant(node: Json) -> int | None:
    value = kind(node)[1].get("ival") if kind(node)[0] == "A_Const" else None
    constant = value.get("ival") if isinstance(value, dict) else None
    return constant if isinstance(constant, int) and constant > 0 else None


def _is_descending_count(order: Json, body: Node) -> bool:
    """By an aggregate itself, or by the name or the place of one among the columns."""
    sort = kind(order)[1]
    if sort.get("sortby_dir") != "SORTBY_DESC":
        return False
    node, targets = sort.get("node"), items(body, "targetList")
    if (place := _constant(node)) is not None:
        return place <= len(targets) and is_aggregate(kind(targets[place - 1])[1].get("val"))
    match kind(node):
        case "ColumnRef", reference if len(name := strings(reference.get("fields"))) == 1:
            named = [kind(target)[1] for target in targets]
            nodes = [node.get("val") for node in named if (node.get("name") or column_name(node.get("val"))) == name[0]]
            return len(nodes) == 1 and is_aggregate(nodes[0])
    return is_aggregate(node)
