"""Aggregates as sums of integers: `avg(x), sum(x), count(*)` need three of them, and equal ones are one."""

from functools import partial

from rules.noise.measures import Average, CentredSum, Count, Sum
from rules.refusal import NotAllowed, NotSupported
from rules.relation.bind_expression import Binding
from rules.relation.expression import TRUE, Column, Expression
from rules.relation.functions.guard import as_value
from rules.relation.nodes import Facts
from rules.relation.types import FLOAT8, INT8, NUMERIC, Type
from rules.rewrite.choices import extreme, most_frequent, quantile
from rules.rewrite.clip_sums import Summand, clip
from rules.rewrite.contributions import (
    Contribution,
    DistinctCount,
    DistinctSum,
    Recipe,
    RowCount,
    RowSum,
    UnitCount,
    ValueCount,
    both_true,
    present,
    value_where,
    where,
)
from rules.rewrite.hide_groups import KEY_KINDS, canonical_key
from rules.rewrite.rows_as_texts import distinct_argument
from rules.rewrite.statistics import OF_ONE, OF_TWO, spread_of_one, spread_of_two
from rules.sql import syntax as s

_AVERAGE_DIGITS = 16  # as avg of integers prints them


def split(given: s.Call, binding: Binding, facts: Facts, rows: int) -> Recipe:
    """The recipe of one aggregate. `rows` is how many rows are counted at most of those who are protected together."""
    _check(given)
    tested = TRUE if given.filter is None else binding.condition(given.filter)
    if given.star:
        return _count(tested)
    if given.name in ("percentile_cont", "percentile_disc"):
        return quantile(given, tested, binding, rows)
    if given.name == "mode":
        return most_frequent(given, tested, binding)
    bind = binding.bind if (given.name, given.distinct) != ("count", True) else partial(distinct_argument, binding)
    arguments = tuple(map(bind, given.arguments))
    match given.name, arguments:
        case "count", (argument,) if given.distinct:
            return _distinct(argument, tested, facts)
        case "count", (argument,):
            return _count(both_true(present(argument, binding), tested))
        case "sum", (argument,):
            return (_distinct_sum if given.distinct else _sum)(argument, tested, binding, rows)
        case "avg", (argument,):
            return _average(argument, tested, binding, rows, distinct=given.distinct)
        case (("min" | "max"), (argument,)):
            return extreme(given.name, argument, tested, binding, rows)
        case name, (argument,) if name in OF_ONE and not given.distinct:
            return spread_of_one(name, argument, tested, binding, rows)
        case name, (first, second) if name in OF_TWO and not given.distinct:
            return spread_of_two(name, first, second, tested, binding, rows)
    raise _unknown(given)


_HINTS = {
    "array_agg": "Group by the values instead, or ask for their count.",
    "string_agg": "Group by the values instead, or ask for their count.",
    "bool_or": "Ask how many rows have it: count(*) FILTER (WHERE …).",
    "bool_and": "Ask how many rows lack it: count(*) FILTER (WHERE NOT …).",
    "every": "Ask how many rows lack it: count(*) FILTER (WHERE NOT …).",
}


_ANSWERED = "There are count, sum, avg, min, max, variance, stddev, covar_…, corr, regr_…, percentile_… and mode."


def _check(given: s.Call) -> None:
    if given.order_by and given.name not in _HINTS:
        raise NotSupported(f"ORDER BY inside {given.name} is not supported over protected rows")


def _unknown(given: s.Call) -> NotAllowed | NotSupported:
    hint = _HINTS.get(given.name, _ANSWERED)
    if given.name in _HINTS or given.name.startswith(("json", "xml", "range", "bit", "any_value")):
        hint = _HINTS.get(given.name, _HINTS["array_agg"])
        return NotAllowed(f'the aggregate "{given.name}" would give out values of single rows', hint=hint)
    distinct = "DISTINCT " if given.distinct else ""
    return NotSupported(f'the aggregate "{given.name}({distinct}…)" is not supported over protected rows', hint=hint)


def _count(condition: Expression) -> Recipe:
    return Recipe((RowCount(condition),), lambda numbers: Count(numbers[0]), INT8)


def _distinct(argument: Expression, tested: Expression, facts: Facts) -> Recipe:
    """Units are counted from the groups that are kept; of any other value a unit brings at most as many as its rows."""
    if is_unit(argument, facts):
        return Recipe((UnitCount(tested),), lambda numbers: Count(numbers[0]), INT8)
    if argument.type.kind not in KEY_KINDS:
        hint = "Cast it to a plain type, such as text or numeric."
        raise NotSupported(f"count(DISTINCT …) of {argument.type.sql} is not supported", hint=hint)
    part = DistinctCount(value_where(canonical_key(argument), tested))
    return Recipe((part,), lambda numbers: Count(numbers[0]), INT8)


def is_unit(argument: Expression, facts: Facts) -> bool:
    """Whether a column has one value for each unit and another for every other."""
    if not isinstance(argument, Column) or facts.unit is None:
        return False
    if argument.id == facts.unit.column:
        return True
    return argument.id in facts.determined and frozenset([argument.id]) in facts.determinants and not argument.nullable


def _sum(argument: Expression, tested: Expression, binding: Binding, rows: int) -> Recipe:
    summand = clip(as_value(argument, binding.setting), rows, "sum")
    lattice, result = summand.lattice, _sum_type(argument.type)
    part = RowSum(where(summand, tested), lattice.reach)
    middle = lattice.low + lattice.high
    centred = Recipe(
        _centred(argument, summand, tested, binding),
        lambda numbers: CentredSum(numbers[0], numbers[1], lattice.step, middle, lattice.digits),
        result,
    )
    better = None if middle == 0 else centred
    return Recipe((part,), lambda numbers: Sum(numbers[0], lattice.step, lattice.digits), result, centred=better)


def _distinct_sum(argument: Expression, tested: Expression, binding: Binding, rows: int) -> Recipe:
    """Of each unit at most as many values as rows of it count. Values are those of the lattice."""
    summand = clip(as_value(argument, binding.setting), rows, "sum")
    lattice = summand.lattice
    part = DistinctSum(where(summand, tested), lattice.reach)
    return Recipe((part,), lambda numbers: Sum(numbers[0], lattice.step, lattice.digits), _sum_type(argument.type))


def _centred(
    argument: Expression, summand: Summand, tested: Expression, binding: Binding
) -> tuple[Contribution, ...]:  # fmt: skip
    """Σ(2q − (low + high)), never further from zero than the range is wide, and the rows that have a value.

    A bare column that is not double precision is counted where it is not NULL, as count(x) counts it, so that both
    are one measure: a NaN among them stands in the middle of the bounds.
    """
    lattice = summand.lattice
    integer = where(summand, tested)
    total = RowSum(integer, lattice.width, lattice.low + lattice.high)
    if isinstance(argument, Column) and argument.type.kind != "float":
        return total, RowCount(both_true(present(argument, binding), tested))
    return total, RowCount() if not integer.nullable else ValueCount(integer)


def _sum_type(given: Type) -> Type:
    if given.kind == "float":
        return given.plain()
    return INT8 if given.base in ("int2", "int4") else NUMERIC


def _average(argument: Expression, tested: Expression, binding: Binding, rows: int, *, distinct: bool) -> Recipe:
    summand = clip(as_value(argument, binding.setting), rows, "avg")
    lattice = summand.lattice
    low, high = lattice.low * lattice.step, lattice.high * lattice.step
    result = FLOAT8 if argument.type.kind == "float" else NUMERIC
    digits = max(_AVERAGE_DIGITS, lattice.digits + 4)
    parts = _centred(argument, summand, tested, binding)
    if distinct:
        integer = where(summand, tested)
        parts = DistinctSum(integer, lattice.width, lattice.low + lattice.high), DistinctCount(integer)
    return Recipe(parts, lambda numbers: Average(numbers[0], numbers[1], lattice.step, low, high, digits), result)


def choose(recipes: tuple[Recipe, ...]) -> tuple[Recipe, ...]:
    """Sums from centred halves where their count is a measure anyway.

    Their noise is then that of (halves + middle · count) / 2, whose variance is (low² + high²) / 2 at equal ε, against
    max(low², high²) of a sum alone.
    """
    needed = {part for recipe in recipes if recipe.centred is None for part in recipe.parts}
    return tuple(
        recipe.centred if recipe.centred is not None and recipe.centred.parts[1] in needed else recipe
        for recipe in recipes
    )
