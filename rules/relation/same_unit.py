"""Whether rows that meet under a condition are surely of the same unit: by an equality of units, or along a step."""

from rules.refusal import NotAllowed
from rules.relation.expression import Apply, Column, Expression, conjuncts
from rules.relation.nodes import Facts, Node
from rules.relation.types import have_one_equality

CROSS_UNIT_HINT = "Join protected tables on their units, or through the foreign key that the rules file names."


def equalities(links: tuple[Expression, ...], one: Facts, two: Facts) -> list[tuple[int, int]]:
    """Pairs of a left and a right column that a conjunct makes equal, in an equality that unique keys share."""
    left, right = ({column.id for column in facts.columns} for facts in (one, two))
    found = []
    for link in links:
        match link:
            case Apply(name="=", arguments=(Column() as first, Column() as second)):
                if not have_one_equality(first.type, second.type):
                    continue
                if first.id in left and second.id in right:
                    found.append((first.id, second.id))
                elif first.id in right and second.id in left:
                    found.append((second.id, first.id))
    return found


def check_linked(equal: list[tuple[int, int]], one: Facts, two: Facts) -> None:
    """Two protected rows may meet only if they are surely of the same unit."""
    assert one.unit is not None and two.unit is not None
    if one.unit.kind != two.unit.kind:
        message = f"rows of {one.unit.kind} and rows of {two.unit.kind} belong to different units"
        raise NotAllowed(message, hint=CROSS_UNIT_HINT)
    if not _are_linked(equal, one, two):
        raise NotAllowed("protected tables are joined here without joining their units", hint=CROSS_UNIT_HINT)


def are_linked(one: Node, two: Node, holding: Expression) -> bool:
    """Whether rows that meet under a condition are surely of the same unit."""
    return _are_linked(equalities(tuple(conjuncts(holding)), one.facts, two.facts), one.facts, two.facts)


def _are_linked(equal: list[tuple[int, int]], one: Facts, two: Facts) -> bool:
    if any(left in one.unit_columns and right in two.unit_columns for left, right in equal):
        return True
    for first, second in ((one.steps, two.anchors), (one.anchors, two.steps), (one.steps, two.steps)):
        for left in first:
            for right in second:
                is_same = (left.target, left.target_column) == (right.target, right.target_column)
                if is_same and (left.column, right.column) in equal:
                    return True
    return False
