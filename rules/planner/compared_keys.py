"""Narrow the values of a key by the conditions that compare the very same expression.

In GROUP BY ordered_at::date under WHERE ordered_at::date >= '2025-12-01' no column is compared with a constant; the key
is. Without this every day of the column's bounds would be a group, most of them of nobody.
"""

from collections.abc import Iterator

from rules.algebra.narrow import is_told, narrowed
from rules.algebra.nodes import Filter, Gathered, Node, Project, SemiJoin, Windowed
from rules.frozen import replace
from rules.mechanisms.noised_outputs import Text
from rules.values.domain import Range, Values, contains
from rules.values.expression import Apply, Column, Constant, Expression, conjuncts
from rules.values.value import Value

_KEY = -1  # the number of no column


def narrowed_key(key: Expression, node: Node) -> Expression:
    """The key with the values that it can have in the rows of a relation."""
    if not isinstance(key, Apply):
        return key
    if any(column.domain == Values(()) and not column.nullable for column in node.facts.columns):
        return replace(key, domain=Values(()), nullable=False)  # there are no rows
    known, column = _unguarded(key), Column(_KEY, key.type, key.domain, nullable=key.nullable)
    for condition in _conditions(node):
        (column,) = narrowed((column,), _of_key(condition, known, column))
    return replace(key, domain=column.domain, nullable=column.nullable)


def is_compared(key: Expression, condition: Expression) -> bool:
    """Return whether all that a condition says is which values the key has."""
    return isinstance(key, Apply) and is_told(_of_key(condition, _unguarded(key), Column(_KEY, key.type, key.domain)))


def can_be(key: Expression, item: tuple[Value | None, Text]) -> bool:
    """Return whether the bounds of a key leave it a value: the twin lists keys without looking at conditions."""
    if not isinstance(key.domain, Range):
        return True
    return key.nullable if item[0] is None else contains(Range(key.domain.low, key.domain.high), item[0])


def _conditions(node: Node) -> Iterator[Expression]:
    """Conditions that all rows of a relation fulfil."""
    match node:
        case Filter(source=source, condition=condition):
            yield from conjuncts(condition)
            yield from _conditions(source)
        case Project(source=source) | SemiJoin(source=source) | Gathered(source=source) | Windowed(source=source):
            yield from _conditions(source)


def _of_key(condition: Expression, key: Expression, column: Column) -> Expression:
    """A condition with the column in place of the key."""
    if not isinstance(condition, Apply):
        return condition
    if isinstance(key, Apply) and _written(condition) == key.sql and _unguarded(condition) == key:
        return column
    return replace(condition, arguments=tuple(_of_key(argument, key, column) for argument in condition.arguments))


def _unguarded(expression: Expression) -> Expression:
    """An expression without what is known of its parts, and without their guards.

    A guard is left out where more is known of a column. It gives a value as it is where a condition is true, and in
    rows that have what is declared of the keys' columns.
    """
    match expression:
        case Column(id=number, type=kind):
            return Column(number, kind)
        case Apply(name=name, passes=passes, arguments=(inner, *_)) if passes or name == "clamp":
            return _unguarded(inner)
        case Apply(arguments=arguments, type=kind):
            return Apply("", _written(expression), tuple(map(_unguarded, arguments)), kind)
        case Constant():
            return expression


def _written(call: Apply) -> str:
    """The text of a call; lower and upper of a listed column name the locale in which its values were listed."""
    return call.name if call.name in ("lower", "upper") else call.sql
