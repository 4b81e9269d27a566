"""Bound the work that joins with public rows make of one protected row, wherever in a statement they stand.

The kernel cuts the rows of a unit only at the end. Before that the database makes them, which takes time for a unit
that is there and none for one that is not: the more rows are made of one, the better tells a statement's time of it.
The numbers are of public rows alone, counted by the twin, so a refusal tells nothing.
"""

from math import prod

from rules.algebra.cover import cover_of
from rules.algebra.nodes import Filter, Gathered, Join, Node, PerUnit, Project, Scan, SemiJoin, Union, Windowed, below
from rules.bind.scope import PlannerContext
from rules.planner.fan_out import most_partners, size_of
from rules.refusal import TooComplex
from rules.values.expression import Expression

MOST_PUBLIC_ROWS = 100_000  # that one row may meet: as many as a public table has in the twin, if nobody allows more


def check_fan_out(node: Node, context: PlannerContext) -> None:
    """Refuse a relation that makes too many rows of one.

    Raises Needed where the twin has to be asked.
    """
    _rows_of_one(node, cover_of(node).conditions, context)


def _rows_of_one(node: Node, conditions: tuple[Expression, ...], context: PlannerContext) -> int:
    """At most so many rows are made of one protected row: a product over all joins with public rows."""
    match node:
        case Filter(source=source) | Project(source=source) | Windowed(source=source):
            return _rows_of_one(source, conditions, context)
        case PerUnit(source=source):
            return _rows_of_one(source, cover_of(source).conditions, context)
        case Join(left=left, right=right):
            sides = ((left, right), (right, left))
            return _checked(prod(_factor(side, other, conditions, context) for side, other in sides))
        case SemiJoin(source=source, other=other) | Gathered(source=source, other=other):
            rows = _rows_of_one(source, conditions, context)
            _checked(rows * _rows_to_search(source, other, node.condition, context))
            return rows
        case Union(branches=branches):
            parts = [branch for branch in branches if branch.facts.unit is not None]
            return _checked(sum(_rows_of_one(part, cover_of(part).conditions, context) for part in parts))
    return 1


def _factor(side: Node, other: Node, conditions: tuple[Expression, ...], context: PlannerContext) -> int:
    if side.facts.unit is not None:
        return _rows_of_one(side, conditions, context)
    if other.facts.unit is None:
        return 1  # public rows alone: their number is counted where a protected row meets them
    partners = most_partners(side, other, conditions, context)
    return size_of(side, context) if partners is None else partners


def _rows_to_search(source: Node, other: Node, condition: Expression, context: PlannerContext) -> int:
    """Return what is looked through for one row. One public table alone multiplies nothing."""
    if other.facts.unit is not None:
        return _rows_of_one(other, cover_of(other).conditions, context)
    return _factor(other, source, (condition,), context) if _is_joined(other) else 1


def _is_joined(node: Node) -> bool:
    return not isinstance(node, Scan) and (isinstance(node, Join) or any(map(_is_joined, below(node))))


def _checked(rows: int) -> int:
    if rows > MOST_PUBLIC_ROWS:
        raise TooComplex(
            f"one protected row would meet {rows:,} rows of public tables, and {MOST_PUBLIC_ROWS:,} are allowed",
            hint="Join public tables by columns that are equal, or by fewer rows of them.",
        )
    return rows
