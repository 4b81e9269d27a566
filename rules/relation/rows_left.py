"""How many rows of a unit a unique key leaves whose columns have few values: a proof, not a promise."""

from rules.relation import domain
from rules.relation.expression import Column
from rules.relation.nodes import Facts

MOST_ROWS = 1000  # that a key's values are worth counting for


def rows_left(facts: Facts) -> int | None:
    """How many rows of one unit a unique key leaves whose other columns have few values; None where none does."""
    assert facts.unit is not None
    columns = {column.id: column for column in facts.columns}
    sizes = (_size([columns[number] for number in key if number != facts.unit.column]) for key in facts.keys)
    return min((size for size in sizes if size is not None), default=None)


def _size(columns: list[Column]) -> int | None:
    """How many values the columns have together; a NULL is equal to none, so any number of rows may have it."""
    size = 1
    for column in columns:
        items = None if column.nullable else domain.items_of(column.domain, MOST_ROWS)
        if items is None:
            return None
        size *= max(1, len(items))
    return size if size <= MOST_ROWS else None
