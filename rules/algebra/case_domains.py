"""Domains of CASE, branch by branch: a column has there only the values for which the branch's test is true.

After a LEFT JOIN a partner's column that is not NULL says that the join's condition was met: in
CASE WHEN best.city IS NOT NULL THEN city ELSE 'Others' END over … LEFT JOIN best ON best.city = city, a city is one of
the best. Without this every city would be a group, most of them of nobody.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from rules.algebra.narrow import met, narrowed, never_null
from rules.algebra.nodes import Facts, Filter, Gathered, Join, Node, Project, SemiJoin, Windowed
from rules.values import domain
from rules.values.domain import Domain, Values
from rules.values.expression import Apply, Column, Expression, columns_in, conjuncts

# What gives its first argument, or NULL.


@dataclass(frozen=True, slots=True)
class Implied:
    """An implication: where one of these columns is not NULL, that column equals one that has these values."""

    partners: frozenset[int]
    column: int
    values: Values


def refined(expression: Expression, source: Node) -> Expression:
    """An expression over the rows of a relation, a CASE in it with no more values than its branches can give."""
    if not isinstance(expression, Apply):
        return expression
    if expression.name == "case":
        return _refined_case(expression, tuple(implied(source)))
    return expression


def implied(node: Node) -> Iterator[Implied]:
    """Yield what partners found by outer joins say of the rows that found them."""
    match node:
        case (
            Filter(source=source)
            | Project(source=source)
            | SemiJoin(source=source)
            | Gathered(source=source)
            | Windowed(source=source)
        ):
            yield from implied(source)
        case Join(kind=kind, left=left, right=right, condition=condition):
            yield from implied(left)
            yield from implied(right)
            if kind == "left":
                yield from _of_partners(left.facts, right.facts, condition)
            if kind == "right":
                yield from _of_partners(right.facts, left.facts, condition)


def _of_partners(kept: Facts, facts: Facts, condition: Expression) -> Iterator[Implied]:
    own = {column.id: column for column in kept.columns}
    partners = {column.id: column for column in facts.columns}
    for conjunct in conjuncts(condition):
        match conjunct:
            case Apply(name="=", arguments=(Column(id=one), Column(id=two))):
                for first, second in ((one, two), (two, one)):
                    if first in own and second in partners and _have_one_scale(own[first], partners[second]):
                        values = partners[second].domain
                        if isinstance(values, Values):
                            yield Implied(frozenset(partners), first, values)


def _have_one_scale(one: Column, two: Column) -> bool:
    """Return whether equal values are one value to the planner."""
    return one.type.kind == two.type.kind != "float" and "bpchar" not in (one.type.base, two.type.base)


def _refined_case(call: Apply, known: tuple[Implied, ...]) -> Apply:
    *branches, default = call.arguments
    refined: Domain = default.domain
    nullable = default.nullable
    for test, result in zip(branches[::2], branches[1::2], strict=True):
        columns = _columns_where(test, result, known)
        refined = domain.union(refined, _values(result, columns))
        nullable = nullable or _may_be_null(result, columns)
    return replace(call, domain=domain.intersect(call.domain, refined), nullable=call.nullable and nullable)


def _columns_where(test: Expression, result: Expression, known: tuple[Implied, ...]) -> dict[int, Column]:
    """The columns of a branch's result in the rows that it is taken for."""
    columns = {column.id: column for column in columns_in(result)}
    present = {number for conjunct in conjuncts(test) for number in never_null(conjunct)}
    for implied in known:
        if implied.column in columns and present & implied.partners:
            column = columns[implied.column]
            columns[implied.column] = replace(column, domain=met(column, implied.values), nullable=False)
    return {column.id: column for column in narrowed(tuple(columns.values()), test)}


def _values(result: Expression, columns: dict[int, Column]) -> Domain:
    match result:
        case Column(id=number, type=sql_type):
            held = columns[number].domain
            return held if isinstance(held, Values) or sql_type.kind not in ("numeric", "float") else result.domain
        case Apply(passes=True, arguments=(Column() as first, *_)):
            held = _values(first, columns)
            return domain.intersect(held, result.domain) if isinstance(held, Values) else result.domain
    return result.domain


def _may_be_null(result: Expression, columns: dict[int, Column]) -> bool:
    match result:
        case Column(id=number):
            return columns[number].nullable
        case Apply(name="listed", arguments=(Column(id=number), *_)):
            column = columns[number]
            is_listed = isinstance(column.domain, Values) and domain.is_within(column.domain, result.domain)
            return column.nullable or not is_listed
    return result.nullable
