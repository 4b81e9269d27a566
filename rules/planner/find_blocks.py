"""The private blocks of a statement: what is answered with noise, wherever it stands."""

from dataclasses import dataclass, replace

from rules.bind.query import bind_query
from rules.bind.scope import ROW_HINT, PlannerContext, RowsSelected
from rules.bind.state import BindState, BoundSource, Ctes, FoundBlock, Outer
from rules.bind.walk_syntax import first_table
from rules.catalog import Catalog
from rules.planner.plan import Request
from rules.policy.model import Policy
from rules.sql.syntax import Expression, Query


@dataclass(frozen=True, slots=True)
class GroupKey:
    """One grouping expression, and where its text stands."""

    expression: Expression
    item: int | None = None  # the select item that GROUP BY names by number or alias (or SELECT DISTINCT lists)
    element: int | None = None  # otherwise: which element of GROUP BY it is


@dataclass(frozen=True, slots=True)
class BlockSite:
    """One SELECT that aggregates protected rows over all units."""

    select_index: int
    source: BoundSource  # its FROM and WHERE, and the names in them
    keys: tuple[GroupKey, ...]
    is_distinct: bool = False  # SELECT DISTINCT without GROUP BY: its items are its keys
    sets: tuple[tuple[int, ...], ...] = ()  # GROUPING SETS: the keys of each; () without
    columns: int = 0  # numbers of columns up to here are taken

    @property
    def levels(self) -> tuple["BlockSite", ...]:
        """Each grouping set by itself."""
        return tuple(replace(self, keys=tuple(self.keys[key] for key in level), sets=()) for level in self.sets)


def find_blocks(query: Query, context: PlannerContext) -> tuple[BlockSite, ...]:
    """All blocks, in the order of their SELECTs. A statement that would give out protected rows is refused."""
    state = BindState(context, bind_query)
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
        now=request.now,
        other=request.other,
        closed=frozenset(request.closed),
    )


def _site(block: FoundBlock, state: BindState) -> BlockSite:
    keys = tuple(GroupKey(key.expression, key.item, key.element) for key in block.keys)
    return BlockSite(block.select.index, block.source, keys, block.is_distinct, block.sets, state.fresh())
