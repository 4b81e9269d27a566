"""Pivots: measures of which a row is in at most one, because their conditions exclude each other, are one vector.

The kernel makes them disjoint, as the cases of one CASE, so what is inferred here decides what is worth it and no more:
conditions that do not exclude each other would leave rows out of the later measures.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from rules.aggregates.contributions import Contribution
from rules.algebra.disjoint import are_disjoint
from rules.kernel.measures import Case, Count, Sum, Values
from rules.values.expression import TRUE, Apply, Constant, Expression, all_of, conjuncts

Vector = tuple[Contribution, ...]


@dataclass(frozen=True, slots=True)
class Pivots:
    """For each vector of several measures the conditions of its cases, and which case each measure is."""

    conditions: tuple[tuple[Expression, ...], ...]
    cases: Mapping[Contribution, Case]


def pivots_of(vectors: Iterable[Vector]) -> Pivots:
    """The pivots of vectors: one for each that has several measures."""
    conditions: list[tuple[Expression, ...]] = []
    cases: dict[Contribution, Case] = {}
    for vector in vectors:
        if len(vector) == 1:
            continue
        supports = [_support(part) for part in vector]
        for number, part in enumerate(vector):
            cases[part] = Case(len(conditions), number)
        conditions.append(tuple(support for support in supports if support is not None))
    return Pivots(tuple(conditions), cases)


def vectors_of(parts: Sequence[Contribution], alone: Sequence[Contribution] = ()) -> tuple[Vector, ...]:
    """The parts by vectors, in their order; those that are to stay alone, and most others, are one each."""
    vectors: list[list[Contribution]] = []
    for part in parts:
        fitting = (vector for vector in vectors if vector[0] not in alone and _fits(part, vector))
        vector = None if part in alone else next(fitting, None)
        if vector is None:
            vectors.append([part])
        else:
            vector.append(part)
    return tuple(map(tuple, vectors))


def _fits(part: Contribution, vector: Sequence[Contribution]) -> bool:
    """A vector has counts or sums: what shares their ε is asked for together, and alone, at the same share."""
    wanted = _support(part)
    if wanted is None or isinstance(part, Sum) != isinstance(vector[0], Sum):
        return False
    supports = [_support(other) for other in vector]
    return all(other is not None and are_disjoint(wanted, other) for other in supports)


def _support(part: Contribution) -> Expression | None:
    """A condition without which a row adds nothing to a measure: NULL adds nothing, and zero nothing to a plain sum."""
    match part:
        case Count(condition=condition) if condition != TRUE:
            return all_of(tuple(_implied(condition)))
        case Values(summand=summand):
            return _tested(summand.expression, zero_adds_nothing=False)
        case Sum(summand=summand, centred=centred):
            has_zero = summand.lattice.low <= 0 <= summand.lattice.high
            return _tested(summand.expression, zero_adds_nothing=has_zero and not centred)
    return None


def _implied(condition: Expression) -> Iterator[Expression]:
    """The condition's parts, and what a CASE tests that has a value: count(CASE WHEN x THEN 1 END)."""
    for conjunct in conjuncts(condition):
        yield conjunct
        if isinstance(conjunct, Apply) and conjunct.name == "is not null":
            tested = _tested(conjunct.arguments[0], zero_adds_nothing=False)
            if tested is not None:
                yield from conjuncts(tested)


def _tested(expression: Expression, *, zero_adds_nothing: bool) -> Expression | None:
    """Return what a CASE tests that is NULL, or zero, in all other rows."""
    match expression:
        case Apply(sql="CASE WHEN {0} THEN {1} END", arguments=(tested, _)):
            return tested
        case Apply(sql="CASE WHEN {0} THEN {1} ELSE {2} END", arguments=(tested, _, Constant() as otherwise)):
            is_nothing = otherwise.text is None or (zero_adds_nothing and otherwise.value == Fraction(0))
            return tested if is_nothing else None
    return None
