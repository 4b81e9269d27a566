"""Pivots: measures of which a row is in at most one, because their conditions exclude each other, are one vector.

The kernel makes them disjoint, as the cases of one CASE, so what is inferred here decides what is worth it and no more:
conditions that do not exclude each other would leave rows out of the later measures. The proof knows little and is sure
of it: comparisons with constants of the expression's own kind, in which = has its plain meaning. An expression has one
value in a row; if two conditions want it at different places, or one wants it NULL and the other not, then no row meets
both.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction

from rules.aggregates.contributions import Contribution
from rules.frozen import frozen
from rules.kernel.measures import Case, Count, Sum, Values
from rules.values.expression import MIRRORED, Apply, Constant, Expression, conjuncts, is_true
from rules.values.value import Value

Vector = tuple[Contribution, ...]


@frozen
class Pivots:
    """For each vector of several measures the conditions of its cases, and which case each measure is."""

    conditions: tuple[tuple[Expression, ...], ...]
    cases: Mapping[Contribution, Case]


_ORDERED = ("integer", "numeric", "date", "timestamp", "timestamptz")
_PLAIN = (*_ORDERED, "boolean", "text", "enum")  # text whose collation has other equalities is of kind "other"
_BLURRED = {"bpchar", "name"}  # trailing blanks do not count, long names are cut


@frozen
class _Place:
    """The place that a condition gives an expression: one of some values, or between two bounds; or NULL."""

    items: frozenset[Value] | None = None
    low: Fraction | None = None
    high: Fraction | None = None
    is_low_open: bool = False
    is_high_open: bool = False
    is_null: bool = False


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
    return all(other is not None and _are_disjoint(wanted, other) for other in supports)


def _support(part: Contribution) -> Expression | None:
    """A condition without which a row adds nothing to a measure; of CASE and the like it is the FILTER already."""
    match part:
        case Count(condition=condition) if not is_true(condition):
            return condition
        case Values(summand=summand) | Sum(summand=summand):
            return _tested(summand.expression)
    return None


def _tested(expression: Expression) -> Expression | None:
    """Return what a summand's FILTER tests, without which it is NULL."""
    match expression:
        case Apply(sql="CASE WHEN {0} THEN {1} END", arguments=(tested, _)):
            return tested
    return None


def _are_disjoint(one: Expression, other: Expression) -> bool:
    """Return whether no row can meet both conditions."""
    places = list(_places(other))
    return any(
        about == another and _apart(place, elsewhere) for about, place in _places(one) for another, elsewhere in places
    )


def _places(condition: Expression) -> Iterator[tuple[Expression, _Place]]:
    """Yield what a condition that is true says of expressions."""
    for conjunct in conjuncts(condition):
        match conjunct:
            case Apply(name="is null", arguments=(about,)):
                yield about, _Place(is_null=True)
            case Apply(name="is not null", arguments=(about,)):
                yield about, _Place()
            case Apply(name="not", arguments=(about,)) if about.type.kind == "boolean":
                yield about, _Place(frozenset((False,)))
            case Apply(name="in", arguments=(about, *items)) if (values := _values(about, items)) is not None:
                yield about, _Place(values)
            case Apply(name=name, arguments=(about, Constant() as constant)) if name in MIRRORED:
                yield from _compared(about, name, constant)
            case Apply(name=name, arguments=(Constant() as constant, about)) if name in MIRRORED:
                yield from _compared(about, MIRRORED[name], constant)
        if conjunct.type.kind == "boolean":
            yield conjunct, _Place(frozenset((True,)))


def _compared(about: Expression, name: str, constant: Constant) -> Iterator[tuple[Expression, _Place]]:
    value = _value(about, constant)
    if value is None:
        return
    if name == "=":
        yield about, _Place(frozenset((value,)))
    elif isinstance(value, Fraction) and about.type.kind in _ORDERED:
        is_open = name in ("<", ">")
        below = name in ("<", "<=")
        yield about, _Place(high=value, is_high_open=is_open) if below else _Place(low=value, is_low_open=is_open)


def _values(about: Expression, items: list[Expression]) -> frozenset[Value] | None:
    """The values of a list; a NULL among them makes nothing true."""
    constants = [item for item in items if isinstance(item, Constant)]
    known = [_value(about, constant) for constant in constants if constant.text is not None]
    if len(constants) < len(items) or None in known:
        return None
    return frozenset(value for value in known if value is not None)


def _value(about: Expression, constant: Constant) -> Value | None:
    """A constant of the expression's own kind: other kinds have other scales, and doubles are vague."""
    numbers = ("integer", "numeric")
    alike = about.type.kind == constant.type.kind or (about.type.kind in numbers and constant.type.kind in numbers)
    if not alike or about.type.kind not in _PLAIN or {about.type.base, constant.type.base} & _BLURRED:
        return None
    return constant.value if isinstance(constant.value, Fraction | str | bool) else None


def _apart(one: _Place, other: _Place) -> bool:
    """Return whether no value lies at both places. What is compared is not NULL, and NaN is above all numbers."""
    if one.is_null or other.is_null:
        return one.is_null != other.is_null
    if one.items is not None and other.items is not None:
        return not one.items & other.items
    if one.items is not None:
        return all(_lies_outside(item, other) for item in one.items)
    if other.items is not None:
        return all(_lies_outside(item, one) for item in other.items)
    return _ends_before(one, other) or _ends_before(other, one)


def _lies_outside(item: Value, place: _Place) -> bool:
    if not isinstance(item, Fraction):
        return False
    point = _Place(low=item, high=item)
    return _ends_before(point, place) or _ends_before(place, point)


def _ends_before(one: _Place, other: _Place) -> bool:
    if one.high is None or other.low is None:
        return False
    return one.high < other.low or (one.high == other.low and (one.is_high_open or other.is_low_open))
