"""Columns whose values go together: of rows that were released before, every combination is known.

A list of groups made from each column by itself would hold pairs that no row can have. It would be sound, and full of
groups of nobody.
"""

from collections.abc import Iterator

from rules.algebra.nodes import Filter, Gathered, Join, KnownRows, Node, Project, SemiJoin, Windowed
from rules.frozen import frozen, replace
from rules.values.expression import Apply, Column, Constant, Expression, conjuncts
from rules.values.types import equality
from rules.values.value import Span, Value

_PLAIN = frozenset(("boolean", "integer", "date", "text", "enum"))  # one value is one text
Cells = tuple[Value | Span | None, ...]


@frozen
class Joint:
    """Columns, and all rows that they can form."""

    columns: tuple[int, ...]
    rows: frozenset[Cells]


def joints(node: Node) -> tuple[Joint, ...]:
    """The combinations that hold for the rows of a relation."""
    match node:
        case KnownRows(rows=rows, facts=facts):
            if any(cell.text is not None and cell.value is None for row in rows for cell in row):
                return ()  # infinity is no value that the planner knows
            cells = frozenset(tuple(cell.value for cell in row) for row in rows)
            return (Joint(tuple(column.id for column in facts.columns), cells),)
        case Filter(source=source, condition=condition):
            return _equated((*joints(source), *_written(condition)), condition)
        case Project(source=source) | SemiJoin(source=source) | Gathered(source=source) | Windowed(source=source):
            return joints(source)
        case Join():
            return _joined(node)
    return ()


def _written(holding: Expression) -> Iterator[Joint]:
    """(a, b) IN ((1, 2), (3, 4)), which is a = 1 AND b = 2 OR …: what all alternatives say."""
    for conjunct in conjuncts(holding):
        if isinstance(conjunct, Apply) and conjunct.name == "or":
            alternatives = [dict(filter(None, map(_constant, conjuncts(part)))) for part in _alternatives(conjunct)]
            columns = tuple(sorted(set(alternatives[0]).intersection(*alternatives)))
            if columns:
                yield Joint(columns, frozenset(tuple(row[column] for column in columns) for row in alternatives))


def is_of_rows(condition: Expression) -> bool:
    """Return whether a condition lists rows of the same columns, and says nothing else."""
    rows = [list(map(_constant, conjuncts(part))) for part in _alternatives(condition)]
    return len({frozenset(cell and cell[0] for cell in row) for row in rows}) == 1 and all(map(all, rows))


def _alternatives(expression: Expression) -> Iterator[Expression]:
    if isinstance(expression, Apply) and expression.name == "or":
        for argument in expression.arguments:
            yield from _alternatives(argument)
    else:
        yield expression


def _constant(expression: Expression) -> tuple[int, Value | Span | None] | None:
    """A column, and the one value that it equals."""
    match expression:
        case Apply(name="=", arguments=(Column() as column, Constant() as constant)):
            pass
        case Apply(name="=", arguments=(Constant() as constant, Column() as column)):
            pass
        case _:
            return None
    is_plain = column.type.kind in _PLAIN and column.type.base != "bpchar" and column.type.kind == constant.type.kind
    return (column.id, constant.value) if is_plain and constant.value is not None else None


def _joined(node: Join) -> tuple[Joint, ...]:
    """An outer join adds the row of NULLs to the side that it extends."""
    left, right = joints(node.left), joints(node.right)
    if node.kind in ("right", "full"):
        left = tuple(map(_extended, left))
    if node.kind in ("left", "full"):
        right = tuple(map(_extended, right))
    return _equated((*left, *right), node.condition) if node.kind == "inner" else (*left, *right)


def _extended(joint: Joint) -> Joint:
    return replace(joint, rows=joint.rows | {(None,) * len(joint.columns)})


def _equated(known: tuple[Joint, ...], holding: Expression) -> tuple[Joint, ...]:
    """A column that equals one of the known ones goes with the others too."""
    for conjunct in conjuncts(holding):
        match conjunct:
            case Apply(name="=", arguments=(Column() as one, Column() as two)) if (
                one.type.kind == two.type.kind and equality(one.type, two.type) == "same"
            ):
                known = tuple(_with(_with(joint, one.id, two.id), two.id, one.id) for joint in known)
    return known


def _with(joint: Joint, column: int, other: int) -> Joint:
    if column not in joint.columns or other in joint.columns:
        return joint
    place = joint.columns.index(column)
    rows = frozenset((*row, row[place]) for row in joint.rows if row[place] is not None)
    return Joint((*joint.columns, other), rows)
