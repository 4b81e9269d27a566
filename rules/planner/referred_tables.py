"""Public tables that protected columns refer to by a foreign key: they list the values of these columns."""

from collections.abc import Iterator

from rules.algebra.nodes import Scan
from rules.bind.scope import PlannerContext
from rules.bind.table import scan
from rules.values.types import equality_of_key


def referred(
    scanned: Scan, origins: frozenset[int], context: PlannerContext, fresh: Iterator[int]
) -> tuple[Scan, int] | None:
    """The public table that one of these columns refers to, and the column there."""
    table = context.catalog.find_table(scanned.table)
    names = {name for number, name in scanned.names if number in origins and name}
    for key in () if table is None else table.foreign_keys:
        rules, target = context.policy.find_table(key.target), context.catalog.find_table(key.target)
        is_told = key.proves and len(key.columns) == 1 and key.columns[0] in names
        is_told = is_told and table is not None and equality_of_key(key, table, context.catalog) == "same"
        if is_told and rules and target and rules.public:
            made, columns = scan(target, rules, context.policy, context.catalog, lambda: next(fresh))
            other = dict(columns).get(key.target_columns[0])
            return None if other is None else (made, other)
    return None
