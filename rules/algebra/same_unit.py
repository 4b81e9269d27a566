"""Prove that rows that meet under a condition are of the same unit, and that each row finds one."""

from rules.algebra.nodes import Facts, Node, Scan, scans_in
from rules.catalog import Catalog, ForeignKey, TableName
from rules.refusal import NotAllowed
from rules.values.expression import Apply, Column, Expression, all_of, condition, conjuncts
from rules.values.types import equality

CROSS_UNIT_HINT = "Join protected tables on their unit columns, or on the foreign key that the rules file names."
COUNT_HINT = "Compare a count instead: (SELECT count(*) … WHERE a = outer.a) > 0, whose result includes noise."

_SAID_OF_ALL = frozenset(("id", "key", "code", "name", "number"))  # names of keys that say not of what


def equalities(links: tuple[Expression, ...], one: Facts, two: Facts) -> list[tuple[int, int]]:
    """Pairs of a left and a right column that a conjunct makes equal, in an equality that unique keys share."""
    left, right = ({column.id for column in facts.columns} for facts in (one, two))
    pairs = []
    for link in links:
        match link:
            case Apply(name="=", arguments=(Column() as first, Column() as second)):
                if not _are_alike(first, second):
                    continue
                if first.id in left and second.id in right:
                    pairs.append((first.id, second.id))
                elif first.id in right and second.id in left:
                    pairs.append((second.id, first.id))
    return pairs


def _are_alike(first: Column, second: Column) -> bool:
    return equality(first.type, second.type) == "same"


def check_linked(equal: list[tuple[int, int]], one: Facts, two: Facts) -> None:
    """Two protected rows may meet only if they are surely of the same unit."""
    assert one.unit is not None and two.unit is not None
    if one.unit.kind != two.unit.kind:
        message = f"rows of {one.unit.kind} and rows of {two.unit.kind} belong to different units"
        raise NotAllowed(message, hint=CROSS_UNIT_HINT)
    if not _are_linked(equal, one, two):
        raise NotAllowed("protected tables must be joined on their unit columns", hint=CROSS_UNIT_HINT)


def tied(
    holding: Expression, links: tuple[Expression, ...], one: Facts, two: Facts
) -> tuple[Expression, tuple[Expression, ...], bool]:
    """The condition of two protected relations, its links, and whether the equality of their units was added to it.

    It is added where a key of rows is compared that is no unit itself, as of a rental and its payment: rows that
    meet so are of one unit where the data are in order. Where it is a unit's (who referred whom) another one is meant.
    """
    equal = equalities(links, one, two)
    own = one.unit is not None and two.unit is not None and one.unit.kind == two.unit.kind
    if own and not _are_linked(equal, one, two) and _is_by_row_key(equal, one, two):
        units = _unit_column(one), _unit_column(two)
        if units[0] is not None and units[1] is not None and equality(units[0].type, units[1].type) == "same":
            added = condition("=", "({0} = {1})", units[0], units[1])
            return all_of((*conjuncts(holding), added)), (*links, added), True
    check_linked(equal, one, two)
    return holding, links, False


def _unit_column(facts: Facts) -> Column | None:
    return None if facts.unit is None or facts.unit.column is None else facts.column(facts.unit.column)


def _is_by_row_key(equal: list[tuple[int, int]], one: Facts, two: Facts) -> bool:
    """Tell whether a foreign key, or a column of its name, is compared with a key of rows that is no unit itself."""
    for left, right in equal:
        for key, facts, other, others in ((left, one, right, two), (right, two, left, one)):
            for anchor in (
                anchor for anchor in facts.anchors if anchor.column == key and key not in facts.unit_columns
            ):
                place = (anchor.target, anchor.target_column)
                refers = any(
                    refer.column == other and (refer.target, refer.target_column) == place for refer in others.refers
                )
                if refers or (
                    anchor.target_column not in _SAID_OF_ALL and others.column(other).name == anchor.target_column
                ):
                    return True
    return False


def are_linked(one: Node, two: Node, holding: Expression) -> bool:
    """Return whether rows that meet under a condition are surely of the same unit."""
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


def always_finds(left: Node, right: Node, conditions: tuple[Expression, ...], catalog: Catalog) -> bool:
    """Return whether each row on the left has a partner on the right: a foreign key, joined on nothing but itself."""
    if not isinstance(right, Scan) or right.drops_null_units:
        return False
    names = dict(right.names)
    pairs = [_pair(condition, left, names) for condition in conditions]
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
        case Apply(name="=", arguments=(Column() as first, Column() as second)) if _are_alike(first, second):
            here = {column.id for column in left.facts.columns if not column.nullable}
            for one, other in ((first, second), (second, first)):
                if one.id in here and other.id in names:
                    return one.id, names[other.id]
    return None


def _is(key: ForeignKey, names: dict[int, str], known: set[tuple[int, str]], target: TableName) -> bool:
    """Return whether the pairs are those of this key, all columns of one table."""
    joined = {(names.get(number), other) for number, other in known}
    return key.proves and key.target == target and set(zip(key.columns, key.target_columns, strict=True)) == joined
