"""Aggregates as sums of integers: `avg(x), sum(x), count(*)` need three of them, and equal ones are one."""

from fractions import Fraction
from functools import partial

from rules.aggregates.arguments import argument_of, find_truth
from rules.aggregates.contributions import (
    Contribution,
    Recipe,
    both_true,
    is_always_there,
    present,
    value_where,
    where,
)
from rules.aggregates.quantiles import extreme, most_frequent, quantile
from rules.aggregates.sums import LARGEST, OF_ONE, OF_TWO, clip, digits_of, spread_of_one, spread_of_two
from rules.aggregates.typical import distinct_argument, typical
from rules.algebra.nodes import Facts
from rules.algebra.unit_facts import is_share
from rules.bind.expression import Binding
from rules.bind.walk_syntax import is_typical
from rules.frozen import replace
from rules.functions.coerce import number
from rules.functions.comparison import compare
from rules.functions.datetime.intervals import seconds_of, shown_by
from rules.functions.guard import as_value
from rules.kernel import measures as k
from rules.kernel.summand import Lattice, Summand
from rules.mechanisms.noised_outputs import Average, CentredSum, Count, Sum
from rules.refusal import NotAllowed, NotSupported
from rules.sql import syntax as s
from rules.values import domain
from rules.values.domain import Values
from rules.values.expression import TRUE, Apply, Column, Expression
from rules.values.types import FLOAT8, INT8, INTERVAL, KEY_KINDS, NUMERIC, Type, hint_for

_LEAST_STEP = Fraction(1, 10**12)  # of a constant that is summed
_LONGEST_LIST = 1_000_000  # of different values
_AVERAGE_DIGITS = 16  # as avg of integers prints them


class ValuesCollected(NotAllowed):
    """An aggregate that would collect the values of single rows; the count of each value is answered."""


def split(call: s.Call, binding: Binding, facts: Facts, rows: int) -> Recipe:
    """The recipe of one aggregate. `rows` is how many rows are counted at most of those who are protected together."""
    if is_typical(call):
        return typical(call, binding)
    _check(call)
    tested = TRUE if call.filter is None else binding.condition(call.filter)
    if call.star:
        return _count(tested)
    if call.name in ("percentile_cont", "percentile_disc"):
        return quantile(call, tested, binding, rows)
    if call.name == "mode":
        return most_frequent(call, tested, binding)
    bind = binding.bind if (call.name, call.distinct) != ("count", True) else partial(distinct_argument, binding)
    arguments = tuple(map(bind, call.arguments))
    if len(arguments) == 1:
        argument = argument_of(arguments[0], tested, binding.setting, name=call.name)
        arguments, tested = (argument.value,), argument.tested
    if call.name in ("sum", "avg") and len(arguments) == 1 and arguments[0].type.kind == "interval":
        seconds = seconds_of(arguments[0], NUMERIC)
        recipe = _of_numbers(call, (seconds,), tested, binding, facts, rows)
        form = shown_by(arguments[0])
        centred, around_zero = (
            other and replace(other, type=INTERVAL, span=form) for other in (recipe.centred, recipe.around_zero)
        )
        return replace(recipe, type=INTERVAL, span=form, centred=centred, around_zero=around_zero)
    return _of_numbers(call, arguments, tested, binding, facts, rows)


def _of_numbers(
    call: s.Call, arguments: tuple[Expression, ...], tested: Expression, binding: Binding, facts: Facts, rows: int
) -> Recipe:
    """The recipe for arguments that are known; a number of seconds is read as an interval where one is shown."""
    match call.name, arguments:
        case "count", (argument,) if call.distinct:
            return _distinct(argument, tested, binding, facts)
        case "count", (argument,):
            return _count(both_true(present(argument, binding), tested))
        case "sum", (argument,):
            if call.distinct:
                return _distinct_sum(argument, tested, binding, rows)
            counted = _counted(argument, tested, binding)
            return _sum(argument, tested, binding, facts, rows) if counted is None else counted
        case "avg", (argument,):
            if call.distinct:
                return _distinct_average(argument, tested, binding, rows)
            if (truth := find_truth(argument, binding.setting)) is not None and truth.number == 1:
                recipe = _average(truth.as_number, both_true(tested, truth.known), binding, facts, rows)
                return replace(recipe, type=_average_type(argument))
            return _average(argument, tested, binding, facts, rows)
        case (("min" | "max"), (argument,)):
            return extreme(call.name, argument, tested, binding, rows)
        case name, (argument,) if name in OF_ONE and not call.distinct:
            return spread_of_one(name, argument, tested, binding, rows)
        case name, (first, second) if name in OF_TWO and not call.distinct:
            return spread_of_two(name, first, second, tested, binding, rows)
    raise _unknown(call)


def chosen_rows(call: s.Call, binding: Binding) -> Expression:
    """The rows that a number is about: those of FILTER with a value, and for a sum of CASE one that is not 0."""
    tested = TRUE if call.filter is None else binding.condition(call.filter)
    written = tuple(order_item.expression for order_item in call.within_group) or (() if call.star else call.arguments)
    for expression in written:
        if isinstance(expression, s.Operator) and expression.name == "row":
            continue
        argument = argument_of(binding.bind(expression), tested, binding.setting, name=call.name)
        tested = both_true(argument.tested, present(argument.value, binding))
        if call.name == "sum" and isinstance(argument.value, Apply) and argument.value.name == "case":
            tested = both_true(tested, compare("<>", argument.value, number("0"), binding.setting))
    return tested


_HINTS = {
    "array_agg": "Group by the values instead, or count them.",
    "string_agg": "Group by the values instead, or count them.",
    "bool_or": "Count the rows for which it is true: count(*) FILTER (WHERE …).",
    "bool_and": "Count the rows for which it is false: count(*) FILTER (WHERE NOT …).",
    "every": "Count the rows for which it is false: count(*) FILTER (WHERE NOT …).",
}


_ANSWERED = "Use count, sum, avg, min, max, variance, stddev, covar_…, corr, regr_…, percentile_… or mode."


def _check(call: s.Call) -> None:
    if call.order_by and call.name not in _HINTS:
        message = f"ORDER BY inside {call.name} is not supported over protected rows"
        raise NotSupported(message, hint=f"Leave it out: {call.name} is the same in any order.")


def _unknown(call: s.Call) -> NotAllowed | NotSupported:
    hint = _HINTS.get(call.name, _ANSWERED)
    if call.name in _HINTS or call.name.startswith(("json", "xml", "range", "bit", "any_value")):
        hint = _HINTS.get(call.name, _HINTS["array_agg"])
        return ValuesCollected(f'the aggregate "{call.name}" would reveal values of single rows', hint=hint)
    distinct = "DISTINCT " if call.distinct else ""
    return NotSupported(f'the aggregate "{call.name}({distinct}…)" is not supported over protected rows', hint=hint)


def _counted(argument: Expression, tested: Expression, binding: Binding) -> Recipe | None:
    """The sum of a number that is the same in every row in which it is not 0: so many times a count of rows."""
    truth = find_truth(argument, binding.setting)
    if truth is None or not _LEAST_STEP <= truth.number <= LARGEST:
        return None
    part = k.Count(both_true(tested, truth.condition))
    result, digits = _sum_type(argument.type), digits_of(Lattice(truth.number, 0, 1))
    most = _MOST.get(result.base)
    return Recipe((part,), lambda numbers: Sum(numbers[0], truth.number, digits, adds_up=True, most=most), result)


def _count(condition: Expression) -> Recipe:
    return Recipe((k.Count(condition),), lambda numbers: Count(numbers[0], adds_up=True), INT8)


def _distinct(argument: Expression, tested: Expression, binding: Binding, facts: Facts) -> Recipe:
    """Units are counted from the groups that are kept; of any other value a unit brings at most as many as its rows.

    The unit of the other side of an outer join is the unit too, where that side has a row.
    """
    if isinstance(argument, Column) and argument.id in facts.aliases and argument.nullable:
        tested = both_true(present(argument, binding), tested)
        return Recipe((k.Units(tested),), lambda numbers: Count(numbers[0]), INT8)
    if is_unit(argument, facts):
        return Recipe((k.Units(tested),), lambda numbers: Count(numbers[0]), INT8)
    if argument.type.kind not in KEY_KINDS:
        raise NotSupported(f"count(DISTINCT …) of {argument.type.sql} is not supported", hint=hint_for(argument.type))
    part, most = k.Distinct(value_where(argument, tested)), _most_values(argument)
    return Recipe((part,), lambda numbers: Count(numbers[0], most=most), INT8)


def _most_values(argument: Expression) -> int | None:
    """How many different values there can be: those of a complete list that conditions leave.

    With `other: true` the rules say that their list is none.
    """
    image = argument.domain
    if isinstance(argument, Column):
        if argument.type.kind in ("numeric", "float"):  # which have NaN
            return None
        is_complete = isinstance(argument.declared, Values) and not argument.other
        image = domain.intersect(image, argument.declared) if is_complete else image
    return domain.number_of_items(image, _LONGEST_LIST)


def is_unit(argument: Expression, facts: Facts) -> bool:
    """Tell whether a column has one value for each unit and another for every other."""
    if not isinstance(argument, Column) or facts.unit is None:
        return False
    if argument.id == facts.unit.column:
        return True
    return argument.id in facts.determined and frozenset([argument.id]) in facts.determinants and not argument.nullable


_FEW_ROWS = 4  # of a unit: below, a cap of its total saves little


def _is_shared(argument: Expression, facts: Facts, rows: int) -> bool:
    """Tell whether all rows of a unit add up to no more than one row may have, and it is worth to cap them by that.

    Sums of rows by order, say: however a unit's rows are shared out among orders, they are all that it has.
    """
    return rows >= _FEW_ROWS and is_share(argument, facts.shares)


def _total(argument: Expression, summand: Summand, facts: Facts, rows: int) -> int | None:
    """The most that a unit adds to a sum where it is shared out among its rows."""
    reach = max(abs(summand.lattice.low), abs(summand.lattice.high))
    return reach if reach and _is_shared(argument, facts, rows) else None


def _sum(argument: Expression, tested: Expression, binding: Binding, facts: Facts, rows: int) -> Recipe:
    summand = clip(as_value(argument, binding.setting), rows, "sum", is_centred=False)
    lattice, result, total = summand.lattice, _sum_type(argument.type), _total(argument, summand, facts, rows)
    part, positive, most = k.Sum(where(summand, tested), total=total), lattice.low >= 0, _MOST.get(result.base)
    middle = lattice.low + lattice.high if total is None else 0
    centred = Recipe(
        _centred(argument, summand, tested, binding, total),
        lambda numbers: CentredSum(numbers[0], numbers[1], lattice.step, middle, digits_of(lattice), positive, most),
        result,
    )
    better = None if middle == 0 and total is None else centred
    return Recipe(
        (part,),
        lambda numbers: Sum(numbers[0], lattice.step, digits_of(lattice), positive, most),
        result,
        centred=better,
    )


def _distinct_sum(argument: Expression, tested: Expression, binding: Binding, rows: int) -> Recipe:
    """Of each unit at most as many values as rows of it count. Values are those of the lattice."""
    summand = clip(as_value(argument, binding.setting), rows, "sum", is_centred=False)
    lattice, result = summand.lattice, _sum_type(argument.type)
    part, most = k.DistinctSum(where(summand, tested)), _MOST.get(result.base)
    return Recipe((part,), lambda numbers: Sum(numbers[0], lattice.step, digits_of(lattice), most=most), result)


def _centred(
    argument: Expression, summand: Summand, tested: Expression, binding: Binding, total: int | None = None
) -> tuple[Contribution, ...]:  # fmt: skip
    """Σ(2q − (low + high)), never further from zero than the range is wide, and the rows that have a value.

    Where a unit's total is capped the halves lie around zero, as the cap does. A bare column that is not double
    precision is counted where it is not NULL, as count(x) counts it, so that both are one measure: a NaN among them
    stands in the middle of the bounds.
    """
    tested_summand = where(summand if total is None else _around_zero(summand, total), tested)
    halves = k.Sum(tested_summand, centred=True, total=total and 2 * total)
    is_whole = argument.type.kind == "integer" and not argument.nullable
    if is_whole or (isinstance(argument, Column) and argument.type.kind != "float"):
        return halves, k.Count(both_true(present(argument, binding), tested))
    return halves, k.Count() if is_always_there(tested_summand) else k.Values(tested_summand)


def _around_zero(summand: Summand, reach: int) -> Summand:
    return replace(summand, lattice=replace(summand.lattice, low=-reach, high=reach))


# Half of what the type has, so that it has the difference of two as well; other types have more than any sum.
_MOST = {INT8.base: 2**62 - 1, "float4": 17 * 10**37}


def _sum_type(sql_type: Type) -> Type:
    if sql_type.kind == "float":
        return sql_type.plain()
    return INT8 if sql_type.base in ("int2", "int4") else NUMERIC


def _average(argument: Expression, tested: Expression, binding: Binding, facts: Facts, rows: int) -> Recipe:
    is_centred = not _is_shared(argument, facts, rows)  # or around zero
    summand = clip(as_value(argument, binding.setting), rows, "avg", is_centred=is_centred)
    total = _total(argument, summand, facts, rows)
    parts = _centred(argument, summand, tested, binding, total)
    if total is None:
        mean, lattice = _mean(argument, summand.lattice, parts), summand.lattice
        if not lattice.low < 0 < lattice.high:
            return mean
        symmetric = _around_zero(summand, max(-lattice.low, lattice.high))
        halves, least = _centred(argument, symmetric, tested, binding), lattice.low * lattice.step
        return replace(mean, around_zero=_mean(argument, symmetric.lattice, halves, least))
    least = summand.lattice.low * summand.lattice.step
    return _mean(argument, _around_zero(summand, total).lattice, parts, least)


def _distinct_average(argument: Expression, tested: Expression, binding: Binding, rows: int) -> Recipe:
    summand = clip(as_value(argument, binding.setting), rows, "avg")
    tested_summand = where(summand, tested)
    parts = k.DistinctSum(tested_summand, centred=True), k.DistinctValues(tested_summand)
    return _mean(argument, summand.lattice, parts)


def _mean(
    argument: Expression, lattice: Lattice, parts: tuple[Contribution, ...], least: Fraction | None = None
) -> Recipe:  # fmt: skip
    low, high = lattice.low * lattice.step, lattice.high * lattice.step
    digits = max(_AVERAGE_DIGITS, digits_of(lattice) + 4)
    return Recipe(
        parts,
        lambda numbers: Average(numbers[0], numbers[1], lattice.step, low, high, digits, least),
        _average_type(argument),
    )


def _average_type(argument: Expression) -> Type:
    return FLOAT8 if argument.type.kind == "float" else NUMERIC


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
