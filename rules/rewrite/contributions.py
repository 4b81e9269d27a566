"""What one row adds to a measure, and how an aggregate is made of measures.

A contribution is what one row adds; `bound_units` bounds what all rows of a unit add. A recipe says which contributions
an aggregate needs and what is shown of their noised sums.
"""

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from rules.noise.measures import End, Output, Text
from rules.relation.bind_expression import Binding
from rules.relation.expression import TRUE, Apply, Expression, all_of
from rules.relation.functions.comparison import is_null
from rules.relation.types import Type
from rules.rewrite.clip_sums import Summand


@dataclass(frozen=True, slots=True)
class RowCount:
    """One for every row for which the condition is true."""

    condition: Expression = TRUE


@dataclass(frozen=True, slots=True)
class ValueCount:
    """One for every row whose integer is not NULL."""

    integer: Expression


@dataclass(frozen=True, slots=True)
class RowSum:
    """An integer q for every row, or 2q − centre; what is added is at most `reach` from zero, and NULL adds nothing."""

    integer: Expression
    reach: int
    centre: int | None = None


@dataclass(frozen=True, slots=True)
class UnitCount:
    """One for every unit that has a row for which the condition is true."""

    condition: Expression = TRUE


@dataclass(frozen=True, slots=True)
class DistinctCount:
    """One for every value that some unit's counted rows have: of each unit at most m values, over all groups."""

    value: Expression


@dataclass(frozen=True, slots=True)
class DistinctSum:
    """An integer q, or 2q − centre, for every different q that some unit's counted rows have, as values are counted."""

    integer: Expression
    reach: int
    centre: int | None = None


@dataclass(frozen=True, slots=True)
class Pick:
    """One of a list of candidates, chosen by how many rows lie where: each row's candidate by its number, from 0."""

    candidate: Expression  # NULL for rows that have none
    candidates: tuple[Text, ...]
    fraction: Fraction | None = None  # the candidate that this share of the rows lies below
    largest: bool | None = None  # or the largest, or the smallest; neither: the most frequent one
    end: End | None = None  # or an end of the error bar around any of these


Contribution = RowCount | ValueCount | RowSum | UnitCount | DistinctCount | DistinctSum | Pick


@dataclass(frozen=True, slots=True)
class Recipe:
    """The measures of an aggregate, and its output once they have numbers."""

    parts: tuple[Contribution, ...]
    output: Callable[[tuple[int, ...]], Output]
    type: Type
    is_array: bool = False  # of the type
    barred: "Callable[[Decimal], Recipe] | None" = None  # with what error bars of a level need; None: nothing more
    centred: "Recipe | None" = None  # a better one where its count, the second part, is asked for anyway


def where(given: Summand, tested: Expression) -> Expression:
    """The integer where the FILTER is true."""
    return value_where(given.integer, tested)


def value_where(given: Expression, tested: Expression) -> Expression:
    """Any value where the FILTER is true."""
    if tested == TRUE:
        return given
    return Apply("case", "CASE WHEN {0} THEN {1} END", (tested, given), given.type, given.domain)


def both_true(first: Expression, second: Expression) -> Expression:
    return all_of(tuple(each for each in (first, second) if each != TRUE))


def present(argument: Expression, binding: Binding) -> Expression:
    """The condition that a value is there."""
    return is_null(argument, binding.setting, negated=True) if argument.nullable else TRUE
