"""One form of an aggregate's argument and FILTER, however its condition is written.

`count(DISTINCT CASE WHEN c THEN x END)` is `count(DISTINCT x) FILTER (WHERE c)`: every aggregate leaves NULLs out, so a
CASE, NULLIF or cast that only chooses rows is the FILTER. A sum leaves zeros out too. Then equal questions have one
plan, a count of units is known as one, and measures whose conditions exclude each other are found.
"""

from fractions import Fraction

from rules.algebra.plain_conditions import plain_condition
from rules.frozen import frozen, replace
from rules.functions import comparison
from rules.functions.casts import cast_to
from rules.functions.conditional import case
from rules.functions.function import EvalContext
from rules.functions.guard import as_passed
from rules.values.expression import FALSE, TRUE, Apply, Constant, Expression, columns_in
from rules.values.types import INT4

_ZERO, _ONE = (Constant(INT4, str(number), number) for number in map(Fraction, (0, 1)))


@frozen
class Argument:
    """What an aggregate looks at in each row, and for which rows."""

    value: Expression
    tested: Expression


@frozen
class Truth:
    """A number that is `number` where a condition is true, and 0 elsewhere."""

    condition: Expression
    number: Fraction
    known: Expression = TRUE  # where it is there: c::int is NULL as c is
    as_number: Expression = _ONE  # 1 where the condition is true and 0 elsewhere, in one spelling


def argument_of(written: Expression, tested: Expression, setting: EvalContext, *, name: str) -> Argument:
    """The value without what chooses rows, of the type that was written where it is shown, and the whole condition."""
    value, conditions = written, [tested]
    while (found := _chosen(value, setting, is_sum=name == "sum")) is not None:
        value, condition = found
        conditions.append(condition)
    holding = plain_condition(comparison.both(*conditions, setting=setting))
    if len(conditions) == 1:
        return Argument(written, holding)
    value = _as_written(value, setting)
    is_alike = name == "count" or value.type.base == written.type.base
    return Argument(value if is_alike else cast_to(value, written.type.plain(), setting), holding)


def find_truth(value: Expression, setting: EvalContext) -> Truth | None:
    """A number that tells a condition, or the same number in every row."""
    match value:
        case Constant(value=Fraction() as amount) if amount > 0:
            return Truth(TRUE, amount)
        case Apply(name="cast", arguments=(tested,)) if tested.type.kind == "boolean" and value.type.is_number:
            known = comparison.is_null(tested, setting, negated=True) if tested.nullable else TRUE
            return replace(_truth(tested, Fraction(1), setting), known=known)
        case Apply(name="cast", arguments=(inner,)) if value.type.is_number and inner.type.is_number:
            found = find_truth(inner, setting)
            return found if found is not None and _is_small(found.number) and (value.type.scale or 0) >= 0 else None
        case Apply(name="case", arguments=(tested, Constant(value=Fraction() as amount), zero)) if _is_zero(zero):
            return _truth(tested, amount, setting) if amount > 0 else None
        case Apply(name="case", arguments=(tested, zero, Constant(value=Fraction() as amount))) if _is_zero(zero):
            return _truth(_untrue(tested, setting), amount, setting) if amount > 0 else None
    return None


def _is_small(number: Fraction) -> bool:
    """Tell whether every type of numbers has it."""
    return number.denominator == 1 and number < 2**15


def _truth(tested: Expression, number: Fraction, setting: EvalContext) -> Truth:
    condition = plain_condition(tested)
    return Truth(condition, number, as_number=case(((condition, _ONE),), _ZERO, setting))


def _chosen(value: Expression, setting: EvalContext, *, is_sum: bool) -> tuple[Expression, Expression] | None:
    """The only value that an expression can have, and where it has it; None where it chooses among several."""
    match value:
        case Apply(name="nullif", arguments=(Apply(name="=", arguments=(_, Constant(text=str()))) as tested, kept)):
            return kept, comparison.negation(tested, setting)  # which is NULL where the value is, and so left out
        case Apply(name="nullif", arguments=(tested, kept)):
            return kept, _untrue(tested, setting)
        case Apply(name="coalesce", arguments=(first, *rest)) if is_sum and all(map(_is_zero, rest)):
            return first, TRUE
        case Apply(name="case", arguments=arguments) if len(arguments) % 2:
            return _of_case(value, setting, is_sum=is_sum)
    return None


def _of_case(written: Apply, setting: EvalContext, *, is_sum: bool) -> tuple[Expression, Expression] | None:
    *paired, default = written.arguments
    branches = tuple(zip(paired[::2], paired[1::2], strict=True))
    results = dict.fromkeys((*(result for _, result in branches), default))
    kept = [result for result in results if not (_is_null(result) or (is_sum and _is_zero(result)))]
    if len(kept) == 1 and len(results) > 1:
        chosen: Expression = TRUE if default == kept[0] else FALSE
        for tested, result in reversed(branches):
            chosen = _either(tested, chosen, setting) if result == kept[0] else _after(tested, chosen, setting)
        return kept[0], chosen
    match branches:
        case ((tested, one), (Apply(name="not", arguments=(same,)), other)) if same == tested and _is_null(default):
            there = comparison.is_null(tested, setting, negated=True) if tested.nullable else TRUE
            return case(((tested, one),), other, setting), there
    return None


def _either(tested: Expression, otherwise: Expression, setting: EvalContext) -> Expression:
    if otherwise in (TRUE, FALSE):
        return TRUE if otherwise == TRUE else tested
    return comparison.either(tested, otherwise, setting=setting)


def _after(tested: Expression, otherwise: Expression, setting: EvalContext) -> Expression:
    """The rows that a branch leaves to those below it."""
    return otherwise if otherwise == FALSE else comparison.both(_untrue(tested, setting), otherwise, setting=setting)


def _untrue(tested: Expression, setting: EvalContext) -> Expression:
    if tested.nullable:
        return comparison.test("is not true", tested, setting)
    return comparison.negation(tested, setting)


def _is_null(expression: Expression) -> bool:
    return isinstance(expression, Constant) and expression.text is None


def _is_zero(expression: Expression) -> bool:
    return isinstance(expression, Constant) and expression.value == 0 and expression.type.is_number


def _as_written(value: Expression, setting: EvalContext) -> Expression:
    """A bare column, which CASE hands on as a value to compute with."""
    columns = tuple(columns_in(value))
    return columns[0] if columns and as_passed(columns[0], setting) == value else value
