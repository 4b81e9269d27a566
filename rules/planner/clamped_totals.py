"""Find the counts and sums of a unit's rows, below an aggregate, that an answer takes as clamped.

They are clamped to what as many rows as the rules count can make, so of a unit with more rows something is cut though
it has one row of totals. A unit whose total is beyond that is in no group where the total is a key. In conditions, and
in keys with bounds of their own, totals are read as they are.
"""

from collections.abc import Iterable, Iterator, Sequence

from rules.aggregates.contributions import Contribution, Pick, Typical
from rules.algebra.nodes import Filter, Gathered, Join, Node, PerUnit, Project, SemiJoin, below
from rules.kernel.keys import Bins
from rules.kernel.measures import Products, Sum
from rules.kernel.special.blocks import BlockAggregate, BlockMoment, BlockPlace
from rules.kernel.summand import Summand
from rules.planner.select_partitions import Keyed
from rules.values.expression import Apply, Column, Expression, ids_in

_Numbers = frozenset[int]


def caps_of_totals(keyed: Keyed, parts: Sequence[Contribution]) -> tuple[int, ...]:
    """The caps of rows by which totals are clamped that measures, keys or conditions take so."""
    others = {other.place for other in keyed.others}  # these groups hold what is beyond
    keys = (key for place, key in enumerate(keyed.keys) if place not in others)
    shown = (*keys, *(summand.expression for part in parts for summand in _summands(part)))
    clamped = _union((keyed.enforced, *map(_handed_on, shown)))
    return tuple(dict.fromkeys(_caps(keyed.source.node, clamped, frozenset())))


def _summands(part: Contribution) -> tuple[Summand, ...]:
    match part:
        case Sum(summand=summand) | Pick(candidate=Bins(summand=summand)):
            return (summand,)
        case Products(first=one, second=other):
            return (one, other)
        case Typical(value=value):
            return tuple(summand for aggregate in value.aggregates for summand in _summands_of_block(aggregate))
    return ()


def _summands_of_block(aggregate: BlockAggregate) -> tuple[Summand, ...]:
    match aggregate:
        case BlockMoment(summands=summands):
            return summands
        case BlockPlace(summand=summand):
            return (summand,)
    return ()


def _caps(node: Node, clamped: _Numbers, tested: _Numbers) -> Iterator[int]:
    match node:
        case Project(computed=computed):
            used = [expression for number, expression in computed if number in clamped]
            compared = [expression for number, expression in computed if number in tested]
            clamped = _union((clamped, *map(_handed_on, used), *map(_computed_with, compared)))
            tested = _union((tested, *map(ids_in, compared)))
        case Filter(condition=condition) | Join(condition=condition) | SemiJoin(condition=condition):
            clamped, tested = clamped | _computed_with(condition), tested | ids_in(condition)
        case PerUnit(source=source) | Gathered(other=source):
            rows = source.facts.rows
            is_total = any(
                "count(" in of.sql or "sum(" in of.sql for number, of in node.aggregates if number in clamped
            )
            if is_total and rows.cap is not None and (rows.proved is None or rows.proved > rows.cap):
                yield rows.cap
    for part in below(node):
        yield from _caps(part, clamped, tested)


def _handed_on(expression: Expression) -> _Numbers:
    """The columns that an expression is, where a FILTER is true, or is computed with."""
    match expression:
        case Column(id=number):
            return frozenset([number])
        case Apply(sql="CASE WHEN {0} THEN {1} END", arguments=(tested, value)):
            return _computed_with(tested) | _handed_on(value)
    return _computed_with(expression)


def _computed_with(expression: Expression) -> _Numbers:
    """The columns that are clamped in an expression: one that is only compared is bare."""
    match expression:
        case Apply(name="clamp", arguments=(Column(id=number), *_)):
            return frozenset([number])
        case Apply(arguments=arguments):
            return _union(map(_computed_with, arguments))
    return frozenset()


def _union(numbers: Iterable[_Numbers]) -> _Numbers:
    return frozenset[int]().union(*numbers)
