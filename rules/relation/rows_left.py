"""How many rows of a unit a unique key leaves whose columns have few values: a proof, not a promise."""

from rules.relation import domain
from rules.relation.domain import Values
from rules.relation.expression import Column
from rules.relation.nodes import Facts

MOST_ROWS = 1000  # that a key's values are worth counting for


def rows_left(facts: Facts) -> int | None:
    """How many rows of one unit a unique key leaves whose other columns have few values; None where none does.

    Columns that the unit determines have one value there.
    """
    columns = {column.id: column for column in facts.columns}
    keys = ([columns[number] for number in key] for key in facts.keys)
    sizes = (_size(key, facts.determined) for key in keys)
    return min((size for size in sizes if size is not None), default=None)


def _size(columns: list[Column], alone: frozenset[int] = frozenset()) -> int | None:
    """How many values the columns have together; a NULL is equal to none, so any number of rows may have it."""
    size = 1
    for column in columns:
        items = domain.items_of(column.domain, MOST_ROWS) if column.id not in alone else (True,)
        if items is None or column.nullable:
            return None
        size *= max(1, len(items) + (column.id not in alone and _may_be_nan(column)))
    return size if size <= MOST_ROWS else None


def _may_be_nan(column: Column) -> bool:
    """NaN has any precision and passes x >= 9; only a list of values leaves it out."""
    return column.type.kind == "numeric" and not isinstance(column.domain, Values)


def keys_left(facts: Facts) -> frozenset[frozenset[int]]:
    """The keys without the columns that have but one value: where rn = 1 is left, {unit, rn} is {unit}."""
    alone = frozenset(column.id for column in facts.columns if _size([column]) == 1)
    return frozenset(key - alone for key in facts.keys if key & alone and key - alone)
