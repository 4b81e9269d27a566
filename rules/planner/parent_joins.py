"""Leave out joins that find exactly one row for each row: along a foreign key that holds now, of columns never NULL.

Orders joined with their customers are the same rows as orders alone, with more columns. So what was measured of the one
serves questions about the other. That is about truth alone: what runs has its joins as they were written.
"""

from collections.abc import Mapping

from rules.algebra.nodes import Join, Node, Scan
from rules.algebra.same_unit import always_finds
from rules.catalog import Catalog
from rules.frozen import frozen
from rules.kernel.expressions import quoted_name
from rules.kernel.render import qualified
from rules.values.expression import Apply, Column, conjuncts


@frozen
class WithoutParents:
    """Rows without the parents that were joined, and the names of their columns: by which columns they are found."""

    node: Node
    parents: tuple[tuple[Scan, tuple[int, ...]], ...]  # with the columns that refer to each, by those referred to

    def names(self, known: Mapping[int, str]) -> dict[int, str]:
        """The names of all columns, from those of the rows that are left."""
        named = dict(known)
        waiting = list(self.parents)
        while waiting:
            scan, columns = next(each for each in waiting if set(each[1]) <= named.keys())
            waiting.remove((scan, columns))
            way = ", ".join(named[column] for column in columns)
            named |= {number: f"({way} -> {qualified(scan.table)}).{quoted_name(name)}" for number, name in scan.names}
        return named


def without_parents(node: Node, catalog: Catalog) -> WithoutParents:
    """The rows that these are made of, each with its parents."""
    match node:
        case Join(kind="inner", left=left, right=right) if not (node.tied or node.facts.absent):
            one, two = without_parents(left, catalog), without_parents(right, catalog)
            for child, parent, side in ((one, two, left), (two, one, right)):
                columns = _referring(side, parent.node, node, catalog)
                if columns is not None and isinstance(parent.node, Scan):
                    return WithoutParents(child.node, (*child.parents, (parent.node, columns), *parent.parents))
    return WithoutParents(node, ())


def _referring(child: Node, parent: Node, join: Join, catalog: Catalog) -> tuple[int, ...] | None:
    """The columns of a child by which each of its rows has one parent; None where it may have none, or several."""
    table = catalog.find_table(parent.table) if isinstance(parent, Scan) else None
    if not isinstance(parent, Scan) or table is None or table.row_security or table.foreign:
        return None
    unit, names = parent.facts.unit, dict(parent.names)
    has_unit = unit is None or (unit.column is not None and not parent.facts.column(unit.column).nullable)
    conditions = tuple(conjuncts(join.condition))
    if not has_unit or not always_finds(child, parent, conditions, catalog):
        return None
    pairs = dict(pair for condition in conditions for pair in _pairs(condition, names))
    is_one = table.is_unique(pairs) and len(pairs) == len(conditions)
    return tuple(pairs[name] for name in sorted(pairs)) if is_one else None


def _pairs(condition: object, names: Mapping[int, str]) -> list[tuple[str, int]]:
    """The column of the parent that a condition compares, by its name, and that of the child."""
    match condition:
        case Apply(name="=", sql="({0} = {1})", arguments=(Column(id=one), Column(id=two))):
            return [(names[two], one)] if two in names else [(names[one], two)]
    return []
