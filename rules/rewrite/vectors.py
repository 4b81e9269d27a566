"""Pivots: measures of which a row is in at most one, because their conditions exclude each other, are one vector.

A unit's rows are then shared out among them: of counts and of sums alike, what a unit adds to each, in parts of that
measure's own sensitivity, is at most 1 over all of them together. So they pay one ε, as the groups of one measure do.
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction

from rules.relation.disjoint import are_disjoint
from rules.relation.domain import Range
from rules.relation.expression import TRUE, Apply, Constant, Expression, all_of, conjuncts
from rules.rewrite.contributions import Contribution, RowCount, RowSum, ValueCount

Vector = tuple[Contribution, ...]


def vectors_of(parts: Sequence[Contribution], alone: Sequence[Contribution] = ()) -> tuple[Vector, ...]:
    """The parts by vectors, in their order; those that are to stay alone, and most others, are one each."""
    found: list[list[Contribution]] = []
    for part in parts:
        together = () if part in alone else (each for each in found if each[0] not in alone and _fits(part, each))
        vector = next(iter(together), None)
        if vector is None:
            found.append([part])
        else:
            vector.append(part)
    return tuple(map(tuple, found))


def _fits(part: Contribution, vector: Sequence[Contribution]) -> bool:
    """Counts are rounded so that they add up (`shares`), sums are not: a vector has one kind of them."""
    wanted = _support(part)
    if wanted is None or isinstance(part, RowSum) != isinstance(vector[0], RowSum):
        return False
    supports = [_support(other) for other in vector]
    return all(other is not None and are_disjoint(wanted, other) for other in supports)


def _support(part: Contribution) -> Expression | None:
    """A condition without which a row adds nothing to a measure."""
    match part:
        case RowCount(condition=condition) if condition != TRUE:
            return all_of(tuple(_implied(condition)))
        case ValueCount(integer=integer):
            return _tested(integer, zero_adds_nothing=False)
        case RowSum(integer=integer, centre=centre):
            return _tested(integer, zero_adds_nothing=centre is None)
    return None


def _implied(condition: Expression) -> Iterator[Expression]:
    """The condition's parts, and what a CASE tests that has a value: count(CASE WHEN x THEN 1 END)."""
    for each in conjuncts(condition):
        yield each
        if isinstance(each, Apply) and each.name == "is not null":
            tested = _tested(each.arguments[0], zero_adds_nothing=False)
            if tested is not None:
                yield from conjuncts(tested)


def _tested(given: Expression, *, zero_adds_nothing: bool) -> Expression | None:
    """What a CASE tests that is NULL, or zero, in all other rows; on a lattice NULL stays NULL, and zero what it is."""
    match given:
        case Apply(sql="CASE WHEN {0} THEN {1} END", arguments=(tested, _)):
            return tested
        case Apply(sql="CASE WHEN {0} THEN {1} ELSE {2} END", arguments=(tested, _, Constant() as otherwise)):
            is_nothing = otherwise.text is None or (zero_adds_nothing and otherwise.value == Fraction(0))
            return tested if is_nothing else None
        case Apply(name="lattice", arguments=(inner, *_), domain=Range(low=Fraction() as low, high=Fraction() as high)):
            return _tested(inner, zero_adds_nothing=zero_adds_nothing and low <= 0 <= high)
    return None
