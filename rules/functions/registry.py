"""Names to functions: the one list of what may stand over protected rows. What is not on it is refused by name."""

from rules.frozen import replace
from rules.functions import arrays, casts, comparison, conditional, json
from rules.functions.coerce import typed
from rules.functions.datetime import ages, extraction, to_char, truncation
from rules.functions.datetime.intervals import over, times
from rules.functions.datetime.moments import clock, shifted
from rules.functions.function import FUNCTIONS, EvalContext, Function, Operands
from rules.functions.guard import as_value
from rules.functions.math import numbers, transcendental
from rules.functions.math.arithmetic import arithmetic, negative
from rules.functions.text import patterns, pieces, strings
from rules.refusal import NotSupported
from rules.values.expression import Apply, Expression, Literal, Operand
from rules.values.types import FLOAT8

__all__ = ("CLOCKS", "FAMILIES", "FUNCTIONS", "OPERATORS", "call", "operate")

FAMILIES = (  # whose functions are registered by importing them
    numbers, transcendental, patterns, pieces, strings, ages, extraction, truncation, to_char, arrays,
    casts, conditional, json,
)  # fmt: skip
CLOCKS = frozenset(
    ("now", "current_date", "current_timestamp", "localtimestamp", "transaction_timestamp", "statement_timestamp")
)
_ARITHMETIC = frozenset(("+", "-", "*", "/", "%"))
_NULL_TESTS = {"is null": False, "is not null": True}
_DISTINCT = {"is distinct from": False, "is not distinct from": True}
OPERATORS = (
    frozenset(("and", "or", "not", "@", "||", "^", "between", "between symmetric"))
    | _ARITHMETIC
    | comparison.COMPARISONS
    | comparison.LIKE_NAMES
    | patterns.MATCHES.keys()
    | json.SIGNS
    | arrays.SIGNS
    | numbers.SIGNS
    | comparison.TEST_NAMES
    | _NULL_TESTS.keys()
    | _DISTINCT.keys()
)


def call(name: str, operands: Operands, setting: EvalContext) -> Expression:
    """A function by the name that PostgreSQL resolves."""
    if name in CLOCKS and not operands:
        return clock(name, setting)
    if name not in FUNCTIONS:
        hint = "Only listed functions, which fail on no row, read protected rows; apply it to the aggregated result."
        raise NotSupported(f'the function "{name}" is not supported over protected rows', hint=hint)
    function = FUNCTIONS[name]
    _check_server(function, setting)
    if not function.least <= len(operands) <= function.most:
        raise NotSupported(f'the function "{name}" with {len(operands)} arguments is not supported over protected rows')
    return function.make(operands, setting)


def _check_server(function: Function, setting: EvalContext) -> None:
    """Refuse, before anything is charged, what the twin knows and an older real database does not."""
    if setting.server_version < function.since * 10_000:
        ours = setting.server_version // 10_000
        hint = (
            "Only functions of the real database are supported over protected rows; apply it to the aggregated result."
        )
        message = (
            f'function "{function.name}" needs PostgreSQL {function.since}, and the real database is PostgreSQL {ours}'
        )
        raise NotSupported(message, hint=hint)


def operate(name: str, operands: Operands, setting: EvalContext) -> Expression:
    """An operator, infix or before its operand."""
    match name, operands:
        case "and", _:
            return comparison.both(*operands, setting=setting)
        case "or", _:
            return comparison.either(*operands, setting=setting)
        case "not", (only,):
            return comparison.negation(only, setting)
        case "-", (only,):
            return negative(only, setting)
        case "+", (only,):
            number = as_value(typed(only, setting, FLOAT8), setting)
            return replace(number, type=number.type.plain()) if isinstance(number, Apply) else number
        case "@", (only,):
            return numbers.absolute_of((only,), setting)
        case _, (first, second):
            return _binary(name, first, second, setting)
        case "between", (argument, low, high):
            return comparison.between(argument, low, high, setting)
        case "between symmetric", (argument, low, high):
            return comparison.between_symmetric(argument, low, high, setting)
        case _, (only,) if name in _NULL_TESTS:
            return comparison.is_null(only, setting, negated=_NULL_TESTS[name])
        case _, (only,) if name in comparison.TEST_NAMES:
            return comparison.test(name, only, setting)
    raise _no_operator(name)


def _binary(name: str, first: Operand, second: Operand, setting: EvalContext) -> Expression:
    if name in comparison.COMPARISONS:
        return comparison.compare(name, first, second, setting)
    if name in _DISTINCT:
        return comparison.distinct_from(first, second, setting, negated=_DISTINCT[name])
    if name in comparison.LIKE_NAMES:
        return comparison.like(name, first, second, setting)
    if name in patterns.MATCHES:
        return patterns.matches(name, first, second, setting)
    if name in arrays.SIGNS and arrays.element_of(first) is not None and arrays.element_of(second) is not None:
        return arrays.meets(name, first, second)
    if name in numbers.SIGNS:
        return numbers.combined(name, first, second, setting)
    if name in json.SIGNS and not any(map(_is_range, (first, second))):
        return json.part(name, first, second, setting)
    if name == "^":
        return transcendental.power((first, second), setting)
    if name == "||":
        return strings.joined((first, second), setting)
    if name in _ARITHMETIC:
        of_times = shifted(name, first, second, setting) if name in ("+", "-") else None
        by_span = {"*": times, "/": over}.get(name)
        of_spans = None if by_span is None else by_span(first, second, setting)
        return of_times or of_spans or arithmetic(name, first, second, setting)
    raise _no_operator(name)


def _is_range(operand: Operand) -> bool:
    return not isinstance(operand, Literal) and operand.type.kind == "other" and operand.type.name.endswith("range")


def _no_operator(name: str) -> NotSupported:
    hint = "Only listed operators, which fail on no row, read protected rows; apply it to the aggregated result."
    return NotSupported(f'the operator "{name}" is not supported over protected rows', hint=hint)
