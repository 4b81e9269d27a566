"""Names to functions: the one list of what may stand over protected rows. What is not on it is refused by name."""

from collections.abc import Callable
from functools import partial

from rules.refusal import NotSupported
from rules.relation.expression import Expression, Operand
from rules.relation.functions import (
    ages,
    angles,
    arrays,
    bits,
    comparison,
    conditional,
    documents,
    formats,
    moment_text,
    numbers,
    patterns,
    periods,
    pieces,
    powers,
    text,
    time,
)
from rules.relation.functions.arithmetic import arithmetic, negative
from rules.relation.functions.cast import cast_to
from rules.relation.functions.coerce import typed
from rules.relation.functions.guard import Setting, as_value
from rules.relation.functions.shift import shifted
from rules.relation.functions.spans import times
from rules.relation.types import DATE, FLOAT8

Operands = tuple[Operand, ...]
Maker = Callable[[Operands, Setting], Expression]


def _substring(operands: Operands, setting: Setting) -> Expression:
    """substring(x, 2, 3) counts characters, substring(x, 'pattern') looks for one."""
    by_pattern = len(operands) == 2 and typed(operands[1], setting).type.kind == "text"
    return patterns.part(operands, setting) if by_pattern else text.substring(operands, setting)


def _to_timestamp(operands: Operands, setting: Setting) -> Expression:
    """to_timestamp(1700000000) and to_timestamp('2024-01-31', 'YYYY-MM-DD')."""
    return (ages.from_epoch if len(operands) == 1 else formats.to_timestamp)(operands, setting)


# name -> least and most arguments, and what makes the expression
FUNCTIONS: dict[str, tuple[int, int, Maker]] = {
    "abs": (1, 1, numbers.absolute_of),
    "round": (1, 2, partial(numbers.rounding, "round")),
    "trunc": (1, 2, partial(numbers.rounding, "trunc")),
    "floor": (1, 1, partial(numbers.rounding, "floor")),
    "ceil": (1, 1, partial(numbers.rounding, "ceil")),
    "ceiling": (1, 1, partial(numbers.rounding, "ceil")),
    "sign": (1, 1, numbers.sign),
    "mod": (2, 2, numbers.modulo),
    "div": (2, 2, numbers.whole_quotient),
    "power": (2, 2, powers.power),
    "pow": (2, 2, powers.power),
    "sqrt": (1, 1, powers.square_root),
    "cbrt": (1, 1, powers.cube_root),
    "ln": (1, 1, partial(powers.logarithm, "ln")),
    "log": (1, 2, partial(powers.logarithm, "log")),
    "log10": (1, 1, partial(powers.logarithm, "log10")),
    "exp": (1, 1, powers.exponential),
    "pi": (0, 0, angles.pi),
    "degrees": (1, 1, partial(angles.scaled, "degrees")),
    "radians": (1, 1, partial(angles.scaled, "radians")),
    "atan2": (2, 2, angles.direction),
    **{name: (1, 1, partial(angles.curve, name)) for name in angles.CURVES},
    "width_bucket": (4, 4, numbers.width_bucket),
    "gcd": (2, 2, partial(bits.divisor, "gcd")),
    "lcm": (2, 2, partial(bits.divisor, "lcm")),
    "to_hex": (1, 1, bits.to_hex),
    "cardinality": (1, 1, partial(arrays.length, "cardinality")),
    "array_length": (2, 2, partial(arrays.length, "array_length")),
    "lower": (1, 1, text.lower),
    "upper": (1, 1, text.upper),
    "initcap": (1, 1, text.initcap),
    "btrim": (1, 2, partial(text.trim, "btrim")),
    "ltrim": (1, 2, partial(text.trim, "ltrim")),
    "rtrim": (1, 2, partial(text.trim, "rtrim")),
    "left": (2, 2, partial(text.ends, "left")),
    "right": (2, 2, partial(text.ends, "right")),
    "substring": (2, 3, _substring),
    "substr": (2, 3, text.substring),
    "replace": (3, 3, text.replace),
    "regexp_replace": (3, 4, patterns.regexp_replace),
    "regexp_like": (2, 3, patterns.regexp_like),
    "regexp_substr": (2, 2, patterns.regexp_substr),
    "regexp_count": (2, 2, patterns.regexp_count),
    "like_escape": (2, 2, patterns.like_escape),
    "similar_to_escape": (1, 2, patterns.similar_to_escape),
    "length": (1, 1, partial(text.length, "length")),
    "char_length": (1, 1, partial(text.length, "length")),
    "character_length": (1, 1, partial(text.length, "length")),
    "octet_length": (1, 1, partial(text.length, "octet_length")),
    "strpos": (2, 2, text.position),
    "position": (2, 2, text.position),
    "starts_with": (2, 2, text.starts_with),
    "concat": (1, 50, text.concat),
    "concat_ws": (2, 50, text.concat_ws),
    "reverse": (1, 1, pieces.reverse),
    "split_part": (3, 3, pieces.split_part),
    "translate": (3, 3, pieces.translate),
    "lpad": (2, 3, partial(pieces.padded, "lpad")),
    "rpad": (2, 3, partial(pieces.padded, "rpad")),
    "repeat": (2, 2, pieces.repeat),
    "overlay": (3, 4, pieces.overlay),
    "ascii": (1, 1, pieces.ascii_code),
    "bit_length": (1, 1, pieces.bit_length),
    "date_trunc": (2, 3, time.date_trunc),
    "extract": (2, 2, time.extract),
    "date_part": (2, 2, time.date_part),
    "to_char": (2, 2, moment_text.to_char),
    "overlaps": (4, 4, periods.overlaps),
    "to_timestamp": (1, 2, _to_timestamp),
    "to_date": (2, 2, formats.to_date),
    "age": (1, 2, ages.age),
    "date_bin": (3, 3, ages.date_bin),
    "make_date": (3, 3, ages.make_date),
    "make_interval": (1, 7, ages.make_interval),
    "isfinite": (1, 1, ages.is_finite),
    "timezone": (2, 2, time.at_time_zone),
    "coalesce": (1, 100, conditional.coalesce),
    "nullif": (2, 2, conditional.nullif),
    "greatest": (1, 100, partial(conditional.extreme, "greatest")),
    "least": (1, 100, partial(conditional.extreme, "least")),
    "jsonb_typeof": (1, 1, documents.kind),
    "jsonb_extract_path": (2, 20, partial(documents.path, "jsonb_extract_path")),
    "jsonb_extract_path_text": (2, 20, partial(documents.path, "jsonb_extract_path_text")),
    "num_nulls": (1, 100, partial(conditional.counted, "num_nulls")),
    "num_nonnulls": (1, 100, partial(conditional.counted, "num_nonnulls")),
    "date": (1, 1, lambda given, setting: cast_to(given[0], DATE, setting)),
    "float8": (1, 1, lambda given, setting: cast_to(given[0], FLOAT8, setting)),
}
# What the oldest servers do not have yet, by the version that has it. All else is there, or is written in older words.
SINCE = {"date_bin": 14, "regexp_count": 15}
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
    | documents.SIGNS
    | arrays.SIGNS
    | bits.SIGNS
    | comparison.TEST_NAMES
    | _NULL_TESTS.keys()
    | _DISTINCT.keys()
)


def call(name: str, operands: Operands, setting: Setting) -> Expression:
    """A function by the name that PostgreSQL resolves."""
    if name in CLOCKS and not operands:
        return time.clock(name, setting)
    if name not in FUNCTIONS:
        hint = "Over protected rows only functions that cannot fail are run; apply it to the answer instead."
        raise NotSupported(f'the function "{name}" is not supported over protected rows', hint=hint)
    _check_version(name, setting)
    least, most, maker = FUNCTIONS[name]
    if not least <= len(operands) <= most:
        raise NotSupported(f'the function "{name}" with {len(operands)} arguments is not supported over protected rows')
    return maker(operands, setting)


def _check_version(name: str, setting: Setting) -> None:
    """The twin may be newer than the real database: what is missing there is said here, before anything is charged."""
    since = SINCE.get(name, 0)
    if setting.server_version < since * 10_000:
        ours = setting.server_version // 10_000
        hint = "Over protected rows only functions of the real database are run; apply it to the answer instead."
        raise NotSupported(f'the function "{name}" is of PostgreSQL {since}, the real database is {ours}', hint=hint)


def operate(name: str, operands: Operands, setting: Setting) -> Expression:
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
            return as_value(typed(only, setting, FLOAT8), setting)
        case "@", (only,):
            return numbers.absolute_of((only,), setting)
        case _, (first, second):
            return _binary(name, first, second, setting)
        case "between", (given, low, high):
            return comparison.between(given, low, high, setting)
        case "between symmetric", (given, low, high):
            return comparison.between_symmetric(given, low, high, setting)
        case _, (only,) if name in _NULL_TESTS:
            return comparison.is_null(only, setting, negated=_NULL_TESTS[name])
        case _, (only,) if name in comparison.TEST_NAMES:
            return comparison.test(name, only, setting)
    raise _no_operator(name)


def _binary(name: str, first: Operand, second: Operand, setting: Setting) -> Expression:
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
    if name in bits.SIGNS:
        return bits.combined(name, first, second, setting)
    if name in documents.SIGNS:
        return documents.part(name, first, second, setting)
    if name == "^":
        return powers.power((first, second), setting)
    if name == "||":
        return text.joined((first, second), setting)
    if name in _ARITHMETIC:
        of_times = shifted(name, first, second, setting) if name in ("+", "-") else None
        of_spans = times(first, second, setting) if name == "*" else None
        return of_times or of_spans or arithmetic(name, first, second, setting)
    raise _no_operator(name)


def _no_operator(name: str) -> NotSupported:
    hint = "Over protected rows only operators that cannot fail are run; apply it to the answer instead."
    return NotSupported(f'the operator "{name}" is not supported over protected rows', hint=hint)
