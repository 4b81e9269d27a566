"""Contributions of one row to a measure, and recipes of aggregates made of measures.

Measures are the kernel's, which bounds what all rows of a unit add. A recipe says which of them an aggregate needs and
what is shown of their noised sums.
"""

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from itertools import chain

from rules.bind.expression import Binding
from rules.frozen import frozen, replace
from rules.functions.comparison import is_null
from rules.kernel.keys import Bins, Listed
from rules.kernel.measures import Count, Distinct, DistinctSum, DistinctValues, Measure, Products, Sum, Units, Values
from rules.kernel.special.blocks import BlockAggregate, BlockDistinct, BlockMoment, BlockPlace, BlockRows, BlockValue
from rules.kernel.summand import Summand
from rules.mechanisms.noised_outputs import Output, Text
from rules.mechanisms.release_plan import End
from rules.values.expression import TRUE, Apply, Constant, Expression, all_of, condition, is_true
from rules.values.types import SpanForm, Type


@frozen
class Pick:
    """One of a list of candidates, chosen by how many rows lie where: each row's candidate by its number, from 0."""

    candidate: Bins | Listed
    candidates: tuple[Text, ...]
    fraction: Fraction | None = None  # the candidate that this share of the rows lies below
    largest: bool | None = None  # or the largest, or the smallest; neither: the most frequent one
    end: End | None = None  # or an end of the error bar around any of these


@frozen
class Typical:
    """One of a list of candidates, chosen by how many blocks of units say a value below and above it."""

    value: BlockValue
    candidates: tuple[Text, ...]
    blocks: int | None = None  # None: as many as ε needs
    level: Decimal | None = None  # of the error bar around it, if there is one
    end: End | None = None  # or an end of that bar


Selection = Pick | Typical
Contribution = Measure | Selection


def expressions_of(part: Contribution) -> tuple[Expression, ...]:
    """Return what is computed of each row for a contribution: its condition, its summands or its candidate."""
    match part:
        case Count(condition=condition) | Units(condition=condition):
            return (condition,)
        case (
            Values(summand=summand)
            | Sum(summand=summand)
            | DistinctValues(summand=summand)
            | DistinctSum(summand=summand)
        ):
            return (summand.expression,)
        case Products(first=first, second=second):
            return first.expression, second.expression
        case Distinct(expression=expression):
            return (expression,)
        case Pick(candidate=candidate):
            return candidate.expressions if isinstance(candidate, Listed) else (candidate.summand.expression,)
        case Typical(value=value):
            return tuple(chain.from_iterable(map(_in_block, value.aggregates)))


def _in_block(aggregate: BlockAggregate) -> tuple[Expression, ...]:
    match aggregate:
        case BlockRows(condition=condition):
            return (condition,)
        case BlockDistinct(expression=expression):
            return (expression,)
        case BlockMoment(summands=summands):
            return tuple(summand.expression for summand in summands)
        case BlockPlace(summand=summand):
            return (summand.expression,)


@frozen
class Recipe:
    """The measures of an aggregate, and its output once they have numbers."""

    parts: tuple[Contribution, ...]
    output: Callable[[tuple[int, ...]], Output]
    type: Type
    is_array: bool = False  # of the type
    span: SpanForm = ""  # of an interval
    barred: "Callable[[Decimal], Recipe] | None" = None  # with what error bars of a level need; None: nothing more
    centred: "Recipe | None" = None  # a better one where its count, the second part, is asked for anyway
    around_zero: "Recipe | None" = None  # a mean whose sum lies around zero, so that a unit's total can be bounded


def where(summand: Summand, tested: Expression) -> Summand:
    """The summand where the FILTER is true."""
    return replace(summand, expression=value_where(summand.expression, tested))


def value_where(expression: Expression, tested: Expression) -> Expression:
    """Any value where the FILTER is true."""
    if is_true(tested):
        return expression
    return Apply(
        "case", "CASE WHEN {0} THEN {1} END", (tested, expression), expression.type, expression.domain, strict=False
    )


def both_true(first: Expression, second: Expression) -> Expression:
    return all_of(tuple(expression for expression in (first, second) if not is_true(expression)))


def present(argument: Expression, binding: Binding) -> Expression:
    """The condition that a value is there. A row of NULLs is one, and IS NULL all the same."""
    if argument.nullable and argument.type.kind == "other":
        return condition("is a value", "({0} IS DISTINCT FROM NULL)", argument, nullable=False, strict=False)
    return is_null(argument, binding.setting, negated=True) if argument.nullable else TRUE


def is_always_there(summand: Summand) -> bool:
    """Return whether every row has an integer: NULL and NaN have none."""
    expression = summand.expression
    return not expression.nullable and (expression.type.kind == "integer" or isinstance(expression, Constant))
