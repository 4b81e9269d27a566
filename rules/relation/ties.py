"""The last word on the order of a unit's rows, so that a window over them says the same in every plan.

Rows that an ORDER BY leaves equal come in any order, and which one may change with the plan, which the rows of one unit
can tip for all others (soundness, finding 6). So order is decided further: by a unique key where one is known, else by
every column that the statement goes on to use. Rows equal in all of them are interchangeable.
"""

from rules.relation.expression import Column, Expression
from rules.relation.nodes import Facts, Windowed


def tie_breakers(node: Windowed, used: frozenset[int]) -> tuple[Column, ...]:
    """Columns of the source that no two rows share, or that tell apart all that is told apart later."""
    facts = node.source.facts
    unit = None if facts.unit is None else facts.unit.column
    key = _least_key(facts)
    wanted = used if key is None else key
    return tuple(column for column in facts.columns if column.id in wanted and column.id != unit)


def _least_key(facts: Facts) -> frozenset[int] | None:
    """NULLs are never equal to a key, so a key that can be NULL tells nothing."""
    nullable = {column.id for column in facts.columns if column.nullable}
    keys = sorted((len(key), sorted(key)) for key in facts.keys if not key & nullable)
    return frozenset(keys[0][1]) if keys else None


def identity_sql(column: Column, sql: str) -> str:
    """An order in which only identical values are equal: 5.0 and 5.000000, 0 and -0 are not."""
    match column.type.kind:
        case "numeric" if column.type.scale is not None:
            return sql
        case "numeric" | "float" | "interval" | "other":
            return f'({sql})::text COLLATE "C"'
        case _:
            return sql


def one_of_equals(given: Expression, sql: str) -> str:
    """One of the values that are equal to this one and not identical, whichever of them comes first."""
    match given.type.kind:
        case "numeric" if given.type.scale is None or not isinstance(given, Column):
            return f"trim_scale({sql})"
        case "float":
            return f"({sql} + 0.0){f'::{given.type.sql}' if isinstance(given, Column) else ''}"
        case _:
            return sql
