"""Conditions that may only be looked at after others: PostgreSQL takes all conditions of a query in the order of their
costs, at the tables that they speak of, and before joins.

In (SELECT * FROM t WHERE n = 1 OR n = 2) AS x WHERE 10 / n > 1 nothing is divided by zero, since n is 1 or 2; but the
quotient is cheaper, so it is computed first, of rows whose n is 0 too. Where a condition computes with values that only
conditions below it keep from failing, those are put into a sub-select of their own, behind a fence: OFFSET 0.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from rules.relation.domain import Domain
from rules.relation.expression import Apply, Column, Expression, ids_in
from rules.relation.nodes import Join, Node, PerUnit, Project, SemiJoin, Union, Windowed, below

# What fails on no value whatever, and what looks at its argument before it does anything with it.
_SURE = frozenset(
    "= <> < <= > >= and or not in like ilike case coalesce nullif greatest least canonical listed within seen clamp "
    "short ~~ ~~* !~~ !~~* num_nulls num_nonnulls".split()
) | {
    *("not in", "is null", "is not null", "is true", "is not true", "is false", "is not false"),
    *("is distinct from", "is not distinct from", "not like", "not ilike"),
}


@dataclass(frozen=True, slots=True)
class _Origin:
    """Where a column was made: what was known of it there, and of what it was computed over which rows."""

    domain: Domain
    given: Expression | None = None
    rows: tuple[Node, ...] = ()


def must_wait(given: Expression, node: Node) -> bool:
    """Whether it computes with values that only the conditions inside of a relation keep from failing."""
    return _must_wait(given, node, set())


def computes_too_early(node: Node, used: frozenset[int]) -> bool:
    """Whether a relation computes with values that only one of its joins keeps from failing.

    Below an outer join PostgreSQL computes that at the one table it needs for it, before the joins inside.
    """
    columns = (column for column in node.facts.columns if column.id in used)
    return _has_join(node) and any(must_wait(column, node) for column in columns)


def _has_join(node: Node) -> bool:
    return isinstance(node, Join) or any(map(_has_join, below(node)))


def _must_wait(given: Expression, node: Node, seen: set[int]) -> bool:
    match given:
        case Column(id=number) if _has(node, number) and number not in seen:
            seen.add(number)
            return any(
                _must_wait(each.given, rows, seen)
                for each in _origins(number, node)
                if each.given is not None
                for rows in each.rows
            )
        case Apply(name=name, arguments=arguments):
            if name not in _SURE and any(_is_narrowed(number, node) for number in ids_in(given)):
                return True
            return any(_must_wait(each, node, seen) for each in arguments)
    return False


def _has(node: Node, number: int) -> bool:
    return any(column.id == number for column in node.facts.columns)


def _is_narrowed(number: int, node: Node) -> bool:
    """Whether conditions say more of a column than was known where it was made."""
    if not _has(node, number):
        return False
    known = node.facts.column(number).domain
    return any(each.domain != known for each in _origins(number, node))


def _origins(number: int, node: Node) -> Iterator[_Origin]:
    match node:
        case Project(source=source, computed=computed) if (given := dict(computed).get(number)) is not None:
            yield _Origin(node.facts.column(number).domain, given, (source,))
        case SemiJoin(source=source, other=other, condition=condition, mark=mark) if number == mark:
            yield _Origin(node.facts.column(number).domain, condition, (source, other))
        case Windowed(computed=computed) if number in dict(computed):
            yield _Origin(node.facts.column(number).domain)
        case PerUnit(source=source, keys=keys):
            yield from _of_group(number, node, source, dict(keys).get(number))
        case Union(branches=branches, numbers=numbers, sources=sources):
            place = numbers.index(number)
            for branch, taken in zip(branches, sources, strict=True):
                yield from _origins(taken[place], branch)
        case _:
            parts = [part for part in below(node) if _has(part, number)]
            for part in parts:
                yield from _origins(number, part)
            if not parts:
                yield _Origin(node.facts.column(number).domain)


def _of_group(number: int, node: PerUnit, source: Node, key: Expression | None) -> Iterator[_Origin]:
    """A key is what it was; a condition on it is one on the rows, as PostgreSQL sees it. An aggregate is made here."""
    match key:
        case Column(id=same):
            yield from _origins(same, source)
        case Apply():
            yield _Origin(node.facts.column(number).domain, key, (source,))
        case _ if _has(source, number):
            yield from _origins(number, source)
        case _:
            yield _Origin(node.facts.column(number).domain)
