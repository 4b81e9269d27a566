"""UNION ALL of rows of units, place by place under common types; and sets of rows that show their units."""

from collections.abc import Callable
from typing import Literal

from rules.algebra.nodes import Node
from rules.algebra.unit_facts import per_unit, projected, semi_joined, united
from rules.bind.scope import single
from rules.bind.state import BoundSource
from rules.frozen import replace
from rules.functions.casts import cast_to
from rules.functions.comparison import compare, distinct_from
from rules.functions.function import EvalContext
from rules.refusal import NotSupported
from rules.values import domain
from rules.values.expression import Column, Expression, all_of
from rules.values.types import Type, equality, find_common


def unite(left: BoundSource, right: BoundSource, setting: EvalContext, fresh: Callable[[], int]) -> BoundSource:
    """Both branches' rows. The unit is a column of the union, whether an analyst selects it or not."""
    names, others = left.scope.star(()), right.scope.star(())
    if len(names) != len(others):
        raise NotSupported("each UNION query must have the same number of columns")
    nodes = (left.node, right.node)
    taken: list[tuple[int, int]] = []
    columns: list[Column] = []
    for (name, first), (_, second) in zip(names, others, strict=True):
        nodes, numbers, column = _column(nodes, (first, second), name, setting, fresh)
        columns.append(column)
        taken.append(numbers)
    shown = tuple((name, column.id) for (name, _), column in zip(names, columns, strict=True))
    unit = _unit(nodes, fresh())
    if unit is not None and unit[1] in taken:
        place = taken.index(unit[1])
        unit = replace(columns[place], nullable=False), unit[1]
        columns[place] = unit[0]
    elif unit is not None:
        taken.append(unit[1])
        columns.append(unit[0])
    sources = (tuple(first for first, _ in taken), tuple(second for _, second in taken))
    node = united(nodes, sources, tuple(columns), None if unit is None else unit[0].id)
    return BoundSource(node, single(None, shown, bare=_bare(left, right)))


def _bare(left: BoundSource, right: BoundSource) -> list[bool]:
    return [any(either) for either in zip(left.scope.bare(()), right.scope.bare(()), strict=True)]


def shows_unit(source: BoundSource) -> bool:
    """Return whether one of the columns says whose row it is: then only rows of one unit are equal."""
    return any(number in source.node.facts.unit_columns for _, number in source.scope.star(()))


def set_of_rows(
    kind: Literal["union", "intersect", "except"],
    left: BoundSource,
    right: BoundSource,
    setting: EvalContext,
    fresh: Callable[[], int],
) -> BoundSource:
    """UNION, INTERSECT and EXCEPT of rows that show their units: each row once, and NULLs are equal."""
    if kind == "union":
        return _each_once(unite(left, right, setting, fresh))
    names, others = left.scope.star(()), right.scope.star(())
    if len(names) != len(others):
        raise NotSupported(f"each {kind.upper()} query must have the same number of columns")
    node, shown, tests = left.node, list[tuple[str, int]](), list[Expression]()
    for (name, first), (_, second) in zip(names, others, strict=True):
        column, other = node.facts.column(first), right.node.facts.column(second)
        common = find_common([column.type, other.type])
        if common is None:
            raise _unmatched(kind, column.type, other.type)
        may_be_null = column.nullable or other.nullable
        test = (
            distinct_from(column, other, setting, negated=True) if may_be_null else compare("=", column, other, setting)
        )
        tests.append(test)
        node, made = _as_common(node, column, common, setting, fresh)
        shown.append((name, made.id))
    joined = semi_joined(node, right.node, all_of(tuple(tests)), negated=kind == "except")
    return _each_once(BoundSource(joined, single(None, tuple(shown), bare=_bare(left, right))))


def _each_once(source: BoundSource) -> BoundSource:
    if not shows_unit(source):
        hint = "Select the unit column at the same position in each branch."
        raise NotSupported("a set operation without the unit column would compare rows of different units", hint=hint)
    keys = tuple((number, source.node.facts.column(number)) for _, number in source.scope.star(()))
    return BoundSource(per_unit(source.node, tuple(dict(keys).items()), ()), source.scope)


def _unit(nodes: tuple[Node, Node], number: int) -> tuple[Column, tuple[int, int]] | None:
    """The column of the union that says whose row it is."""
    first, second = (node.facts.unit for node in nodes)
    if first is None or second is None or first.column is None or second.column is None:
        return None
    one, two = nodes[0].facts.column(first.column), nodes[1].facts.column(second.column)
    if equality(one.type, two.type) != "same":
        raise NotSupported(f"unit columns of types {one.type.sql} and {two.type.sql} cannot be matched")
    common = find_common([one.type, two.type])
    assert common is not None
    return Column(number, common, nullable=False), (one.id, two.id)


def _column(
    nodes: tuple[Node, Node], pair: tuple[int, int], name: str, setting: EvalContext, fresh: Callable[[], int]
) -> tuple[tuple[Node, Node], tuple[int, int], Column]:
    first, second = (node.facts.column(number) for node, number in zip(nodes, pair, strict=True))
    common = find_common([first.type, second.type])
    if common is None:
        raise _unmatched("union", first.type, second.type)
    made = [
        _as_common(node, column, common, setting, fresh) for node, column in zip(nodes, (first, second), strict=True)
    ]
    (one, left), (two, right) = made
    image = domain.union(left.domain, right.domain)
    declared = domain.union(left.declared, right.declared)
    nullable, collated = left.nullable or right.nullable, left.collated or right.collated
    column = Column(
        *(fresh(), common, image, declared),
        nullable=nullable,
        name=name,
        other=first.other or second.other,
        collated=collated,
    )
    return (one, two), (left.id, right.id), column


def _unmatched(kind: str, first: Type, second: Type) -> NotSupported:
    """PostgreSQL gives a constant the type of the other branch; here it is a text, unless its type is written."""
    hint = f"Write one type in each branch, as in 'x'::{first.sql}, or in both column::text."
    return NotSupported(f"{kind.upper()} types {first.sql} and {second.sql} cannot be matched", hint=hint)


def _as_common(
    node: Node, column: Column, common: Type, setting: EvalContext, fresh: Callable[[], int]
) -> tuple[Node, Column]:
    """The column, cast where PostgreSQL would cast it, and could fail to."""
    if column.type.base == common.base:
        return node, column
    number = fresh()
    made = projected(node, ((number, cast_to(column, common, setting)),))
    return made, made.facts.column(number)
