"""The passes over PostgreSQL's tree, in their order. Each gives a new tree, or the same one where it has nothing to do.

`decorrelate` is not among them: which subqueries depend on the row around them is known once names are bound.
"""

from collections.abc import Callable, Mapping
from typing import Final

from rules.frozen import frozen
from rules.planner.error_bars import BARS
from rules.planner.passes.count_matched import count_matched
from rules.planner.passes.expand_dependent_keys import expand_dependent_keys
from rules.planner.passes.inline_sources import inline_functions, inline_views, wrap_sources
from rules.planner.passes.push_error_bars import push_error_bars
from rules.planner.passes.read_public_apart import read_public_apart
from rules.planner.passes.select_from_values import select_from_values
from rules.planner.passes.without_data import empty_queries, previews
from rules.planner.tables import Tables, tables_of
from rules.sql.tree import Index, Node

Pass = Callable[[Index, Tables], Node]

PASSES: Final[tuple[Pass, ...]] = (
    inline_views,
    inline_functions,
    empty_queries,
    previews,
    count_matched,
    read_public_apart,
    wrap_sources,
    select_from_values,
    push_error_bars,
    expand_dependent_keys,
)

# The words of which a tree must have one for a pass to have anything to do.
NEEDED: Final[Mapping[Pass, frozenset[str]]] = {
    inline_functions: frozenset(("FuncCall",)),
    count_matched: frozenset(("SubLink",)),
    read_public_apart: frozenset(("FuncCall", "@@")),
    wrap_sources: frozenset(("RangeFunction", "valuesLists")),
    select_from_values: frozenset(("valuesLists",)),
    push_error_bars: frozenset(BARS),
    expand_dependent_keys: frozenset(("groupClause",)),
}


@frozen
class Rewritten:
    """A tree with what it holds, and the passes that changed it."""

    index: Index
    by: tuple[Pass, ...] = ()


def rewrite(index: Index, tables: Tables) -> Rewritten:
    """Apply the passes to a tree, until no protected table is left to read."""
    made = Rewritten(index)
    for pass_ in PASSES:
        if pass_ in NEEDED and NEEDED[pass_].isdisjoint(made.index.words):
            continue
        following = pass_(made.index, tables)
        if following is not made.index.tree:
            made = Rewritten(Index(following), (*made.by, pass_))
            if not tables.have_protected(tables_of(made.index)):
                break
    return made
