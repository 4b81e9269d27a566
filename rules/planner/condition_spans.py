"""Read conditions that say exactly which values a column, or a number of its clock, has: they choose whole cells."""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Final

from rules.algebra.nodes import Filter, Node
from rules.mechanisms.cells import WHOLE, Span
from rules.values import domain
from rules.values.expression import MIRRORED, Apply, Column, Constant, Expression, conjuncts, ids_in
from rules.values.value import Value

LONGEST_LIST: Final = 20  # values
_OTHER_THAN: Final = ("({0} <> {1})", "({0} NOT IN (")
_NUMBERS: Final = ("integer", "numeric")
_COMPARED: Final = ("date", "timestamp", "timestamptz", *_NUMBERS)


def outermost_conditions(node: Node) -> list[Expression]:
    """Find the conditions that stand outermost."""
    expressions = list[Expression]()
    while isinstance(node, Filter):
        expressions += conjuncts(node.condition)
        node = node.source
    return expressions


def spans_of(conditions: Sequence[Expression]) -> tuple[dict[Expression, Span], list[Expression]]:
    """Return what simple conditions leave, by column or number of its clock, and all other conditions."""
    spans, rest = dict[Expression, Span](), list[Expression]()
    for condition in conditions:
        if (said := _values_where_true(condition)) is None:
            rest.append(condition)
        else:
            tested, span = said
            same = next((known for known in spans if _is_same(known, tested)), tested)
            spans[same] = spans.get(same, WHOLE).met(span)
    return spans, rest


def _is_same(one: Expression, other: Expression) -> bool:
    """Columns are known by their numbers: what is said of them differs along the way."""
    return one.id == other.id if isinstance(one, Column) and isinstance(other, Column) else one == other


def _values_where_true(condition: Expression) -> tuple[Expression, Span] | None:
    """A column, or a number of its clock, and exactly the values for which a condition on it is true."""
    match condition:
        case Column(type=of) if of.kind == "boolean":
            return condition, Span((True,), null=False)
        case Apply(name="not", arguments=(Column(type=of) as column,)) if of.kind == "boolean":
            return column, Span((False,), null=False)
        case Apply(name="is null", arguments=(Column() as column,)):
            return column, Span((), null=True)
        case Apply(name="is not null", arguments=(Column() as column,)):
            return column, Span(null=False)
        case Apply(name=name, sql=sql, arguments=(column, Constant() as constant)) if name in MIRRORED:
            return _compared(column, name, constant) if sql == f"({{0}} {name} {{1}})" else None
        case Apply(name=name, sql=sql, arguments=(Constant() as constant, column)) if name in MIRRORED:
            return _compared(column, MIRRORED[name], constant) if sql == f"({{0}} {name} {{1}})" else None
        case Apply(name="in", sql=sql, arguments=(column, *items)) if sql.startswith("({0} IN ("):
            listed = _values(column, items)
            return None if listed is None else (column, Span(listed, null=False))
        case Apply(name="<>" | "not in", sql=sql, arguments=(Column() as column, *items)) if sql.startswith(
            _OTHER_THAN
        ):
            left_out, every = _values(column, items), domain.items_of(column.domain, LONGEST_LIST)
            if left_out is None or every is None:
                return None
            return column, Span(tuple(sorted(set(every).difference(left_out), key=str)), null=False)
    return None


def _values(column: Expression, items: Sequence[Expression]) -> tuple[Value, ...] | None:
    """Constants that a column is compared with, in order; None where one of them is no plain value of it."""
    listed = [_value(column, item) for item in items if isinstance(item, Constant)]
    known = {value for value in listed if value is not None}
    if len(listed) < len(items) or None in listed or len(known) > LONGEST_LIST:
        return None
    return tuple(sorted(known, key=str))


def _is_simple(tested: Expression) -> bool:
    """A column, or a number of the clock of one."""
    match tested:
        case Column() | Apply(name="extract"):
            return len(ids_in(tested)) == 1
        case Apply(name="cast", arguments=(Apply(name="extract") as inner,)):
            return len(ids_in(inner)) == 1
    return False


def _compared(column: Expression, name: str, constant: Constant) -> tuple[Expression, Span] | None:
    item = _value(column, constant)
    if item is None:
        return None
    if name == "=":
        return column, Span((item,), null=False)
    if not isinstance(item, Fraction) or column.type.kind not in _COMPARED:
        return None
    if column.type.kind != "numeric":  # whole numbers: of days, or of microseconds
        edge = Fraction(math.floor(item) + 1) if name in ("<=", ">") else Fraction(math.ceil(item))
        item, name = edge, "<" if name in ("<", "<=") else ">="
    if name in ("<", "<="):
        return column, Span(high=item, below=name == "<", null=False)
    return column, Span(low=item, above=name == ">", null=False)


def _value(column: Expression, constant: Constant) -> Value | None:
    """A constant that is a value of the column's own kind, of which equal ones are equal here too."""
    if not _is_simple(column):
        return None
    kinds, item = {column.type.kind, constant.type.kind}, constant.value
    if column.type.base == "bpchar" or constant.type.base == "bpchar" or not isinstance(item, Fraction | str | bool):
        return None
    is_alike = len(kinds) == 1 or kinds == set(_NUMBERS)
    return item if is_alike and column.type.kind in (*_COMPARED, "text", "enum", "boolean") else None
