"""Outer joins in which every row is sure of a partner, because a foreign key says so: they are inner joins.

Tools write LEFT JOIN wherever they follow a key. Read as an inner join it extends nothing with NULLs, so keys and
dependencies stay, and there is no group of rows without a partner.
"""

from rules.catalog import Catalog, ForeignKey, TableName
from rules.relation.expression import Apply, Column, Expression
from rules.relation.nodes import Node, Scan, scans_in


def always_finds(left: Node, right: Node, conditions: tuple[Expression, ...], catalog: Catalog) -> bool:
    """Whether each row on the left has a partner on the right: a foreign key, joined on nothing but itself."""
    if not isinstance(right, Scan) or right.drops_null_units:
        return False
    names = dict(right.names)
    pairs = [_pair(each, left, names) for each in conditions]
    known = {pair for pair in pairs if pair is not None}
    return len(known) == len(pairs) and any(
        _is(key, dict(scanned.names), known, right.table)
        for scanned in scans_in(left)
        if (table := catalog.find_table(scanned.table)) is not None
        for key in table.foreign_keys
    )


def _pair(condition: Expression, left: Node, names: dict[int, str]) -> tuple[int, str] | None:
    """Of x = y: a column of the left that is never NULL, by its number, and one of the right, by its name."""
    match condition:
        case Apply(name="=", arguments=(Column() as first, Column() as second)):
            here = {column.id for column in left.facts.columns if not column.nullable}
            for one, other in ((first, second), (second, first)):
                if one.id in here and other.id in names:
                    return one.id, names[other.id]
    return None


def _is(key: ForeignKey, names: dict[int, str], known: set[tuple[int, str]], target: TableName) -> bool:
    """Whether the pairs are those of this key, all columns of one table."""
    joined = {(names.get(number), other) for number, other in known}
    return key.proves and key.target == target and set(zip(key.columns, key.target_columns, strict=True)) == joined
