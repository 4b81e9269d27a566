"""Where a private block stands in the analyst's query, and what `find_blocks` knows of it."""

from dataclasses import dataclass

from rules.relation.bind_source import Relation
from rules.sql.syntax import Expression


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
    source: Relation  # its FROM and WHERE, and the names in them
    keys: tuple[GroupKey, ...]
    is_distinct: bool = False  # SELECT DISTINCT without GROUP BY: its items are its keys
    sets: tuple[tuple[int, ...], ...] = ()  # GROUPING SETS: the keys of each; () without
    columns: int = 0  # numbers of columns up to here are taken
