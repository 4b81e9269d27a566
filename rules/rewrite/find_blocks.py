"""The private blocks of a statement: what is answered with noise, wherever it stands."""

from rules.catalog import Catalog
from rules.policy.model import Policy
from rules.refusal import NotAllowed
from rules.relation.bind_query import Binder, Found
from rules.relation.bind_source import Ctes, Outer
from rules.relation.scope import ROW_HINT, World
from rules.relation.walk_syntax import first_table
from rules.rewrite.plan import Request
from rules.rewrite.site import BlockSite, GroupKey
from rules.sql.syntax import Query


def find_blocks(query: Query, world: World) -> tuple[BlockSite, ...]:
    """All blocks, in the order of their SELECTs. A statement that would give out protected rows is refused."""
    binder = Binder(world)
    found = binder.query(query, Ctes())
    if not isinstance(found, Outer) and found.node.facts.unit is not None:
        table = first_table(query)
        raise NotAllowed("the rows of a protected table are not given out", hint=ROW_HINT, about=table)
    return tuple(_site(block, binder) for _, block in sorted(binder.blocks.items()))


def world_of(request: Request, policy: Policy, catalog: Catalog) -> World:
    """What the names and functions of a request mean."""
    return World(
        policy=policy,
        catalog=catalog,
        search_path=request.search_path,
        parameter_types=request.parameter_types,
        parameters=request.parameters,
        time_zone=request.time_zone,
        styles=request.styles,
        now=request.now,
    )


def _site(block: Found, binder: Binder) -> BlockSite:
    keys = tuple(GroupKey(key.expression, key.item, key.element) for key in block.keys)
    return BlockSite(block.select.index, block.source, keys, block.is_distinct, block.sets, binder.fresh())
