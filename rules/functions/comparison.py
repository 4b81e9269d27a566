"""Conditions: comparisons, NULL tests, AND, OR, NOT, IN and LIKE. None of them fails on any row.

A constant time becomes one of the kind that it is compared with. PostgreSQL compares times across kinds, so nothing
changes in what is true; but then it is known what a condition says of a column, and which groups there can be.
"""

from fractions import Fraction

from rules.functions.casts import cast_to
from rules.functions.coerce import typed, unified
from rules.functions.collation import check_collation
from rules.functions.datetime.periods import on_moment, tells_year
from rules.functions.function import EvalContext, Operands, check_unicode
from rules.functions.guard import as_double, as_value, is_infinite, padded, short
from rules.refusal import NotSupported
from rules.values import domain, value
from rules.values.expression import (
    FALSE,
    TRUE,
    Apply,
    Constant,
    Expression,
    Literal,
    Operand,
    all_of,
    condition,
    has_column,
)
from rules.values.types import BOOLEAN, INT4, INT8, NUMERIC, TEXT, TIMESTAMP, Type, hint_for, integer_range

COMPARISONS = frozenset(("=", "<>", "<", "<=", ">", ">="))
_LIKES = {
    "like": "LIKE", "~~": "LIKE", "!~~": "NOT LIKE", "ilike": "ILIKE", "~~*": "ILIKE", "!~~*": "NOT ILIKE",
}  # fmt: skip
_TESTS = {
    "is true": "IS TRUE", "is not true": "IS NOT TRUE", "is false": "IS FALSE", "is not false": "IS NOT FALSE",
}  # fmt: skip
LIKE_NAMES = frozenset(_LIKES)
TEST_NAMES = frozenset(_TESTS)
_LONGEST_PATTERN = 1000
_MOST_YEARS = 20  # that are compared one by one


def compare(name: str, left: Operand, right: Operand, setting: EvalContext) -> Expression:
    """left < right and its kin; a bare column is compared as it is, without its clamp."""
    left, right = without_padding((left, right), setting)
    (first, second), common = unified((left, right), setting, f'the comparison "{name}"')
    _check_comparable(common)
    first, second = _as_float(first, second), _as_float(second, first)
    first, second = _typed_like(first, second, setting), _typed_like(second, first, setting)
    if name not in ("=", "<>"):
        check_collation(name, first, second)
    if (on_column := on_moment(name, first, second, setting)) is not None:
        return on_column
    return condition(name, f"({{0}} {name} {{1}})", first, second)


def without_padding(operands: Operands, setting: EvalContext) -> Operands:
    """Operands of a comparison: beside a character(n) the blanks at the end of a varchar do not count."""
    if not are_padded(operands):
        return operands
    return tuple(operand if isinstance(operand, Literal) else as_padded(operand, setting) for operand in operands)


def are_padded(operands: Operands) -> bool:
    """Return whether PostgreSQL compares them as character(n), that is without the blanks at the end."""
    bases = {operand.type.base for operand in operands if not isinstance(operand, Literal)}
    return "bpchar" in bases <= {"bpchar", "varchar", "unknown"}


def as_padded(expression: Expression, setting: EvalContext) -> Expression:
    """A text as a character(n), if it is none."""
    return expression if expression.type.base == "bpchar" else cast_to(expression, Type("bpchar"), setting)


def _check_comparable(sql_type: Type) -> None:
    if sql_type.is_ambiguous:
        message = f"PostgreSQL has several operators to compare values of {sql_type.sql}, an enum with an implicit cast"
        hint = (
            "Compare its text: x::text = 'a'. Or ask your DBA to make the cast again AS ASSIGNMENT (noisegate check)."
        )
        raise NotSupported(message, hint=hint)
    if sql_type.kind in ("other", "unknown"):
        raise NotSupported(
            f"values of type {sql_type.sql} cannot be compared over protected rows", hint=hint_for(sql_type)
        )


def _as_float(expression: Expression, other: Expression) -> Expression:
    """A numeric that meets a double is converted to it."""
    return as_double(expression) if other.type.kind == "float" else expression


def distinct_from(left: Operand, right: Operand, setting: EvalContext, *, negated: bool) -> Expression:
    left, right = without_padding((left, right), setting)
    (first, second), common = unified((left, right), setting, "IS DISTINCT FROM")
    _check_comparable(common)
    first, second = _as_float(first, second), _as_float(second, first)
    words = "IS NOT DISTINCT FROM" if negated else "IS DISTINCT FROM"
    return condition(words.lower(), f"({{0}} {words} {{1}})", first, second, nullable=False, strict=False)


def is_null(operand: Operand, setting: EvalContext, *, negated: bool) -> Expression:
    argument = typed(operand, setting)
    words = "IS NOT NULL" if negated else "IS NULL"
    return condition(words.lower(), f"({{0}} {words})", argument, nullable=False, strict=False)


def both(*operands: Operand, setting: EvalContext) -> Expression:
    arguments = tuple(boolean(operand, setting) for operand in operands)
    flat = [
        part
        for argument in arguments
        for part in (argument.arguments if isinstance(argument, Apply) and argument.name == "and" else (argument,))
    ]
    return all_of(tuple(flat))


def either(*operands: Operand, setting: EvalContext) -> Expression:
    arguments = tuple(boolean(operand, setting) for operand in operands)
    holes = " OR ".join(f"{{{place}}}" for place in range(len(arguments)))
    return condition("or", f"({holes})", *arguments, strict=False)


def negation(operand: Operand, setting: EvalContext) -> Expression:
    argument = boolean(operand, setting)
    if argument in (TRUE, FALSE):
        return FALSE if argument == TRUE else TRUE
    return condition("not", "(NOT {0})", argument)


def boolean(operand: Operand, setting: EvalContext) -> Expression:
    argument = typed(operand, setting, BOOLEAN)
    if isinstance(argument, Constant) and argument.text is None:
        return Constant(BOOLEAN, None)
    if argument.type.kind != "boolean":
        raise NotSupported(f"the condition must be of type boolean, not {argument.type.sql}")
    return argument


def test(name: str, operand: Operand, setting: EvalContext) -> Expression:
    """x IS TRUE and its kin, which are never NULL."""
    return condition(name, f"({{0}} {_TESTS[name]})", boolean(operand, setting), nullable=False, strict=False)


def between_symmetric(operand: Operand, low: Operand, high: Operand, setting: EvalContext) -> Expression:
    """x BETWEEN SYMMETRIC a AND b is true in either order of the bounds."""
    return either(between(operand, low, high, setting), between(operand, high, low, setting), setting=setting)


def between(operand: Operand, low: Operand, high: Operand, setting: EvalContext) -> Expression:
    """x BETWEEN a AND b is x >= a AND x <= b."""
    return both(compare(">=", operand, low, setting), compare("<=", operand, high, setting), setting=setting)


def listed(operand: Operand, items: tuple[Operand, ...], setting: EvalContext) -> tuple[Operand, ...]:
    """The items of IN, of which several without columns take the type of what stands before: so blanks count or not,
    and numbers beside a real are rounded to one unless a double stands among them."""
    alone = [isinstance(item, Literal) or not has_column(item) for item in items]
    if sum(alone) < 2 or isinstance(operand, Literal):
        return items
    pairs = [*zip(items, alone, strict=True)]
    bases = {item.type.base for item, is_alone in pairs if is_alone and not isinstance(item, Literal)}
    if operand.type.kind != "text" and (operand.type.base != "float4" or "float8" in bases):
        return items
    return tuple(_as_type(item, operand.type, setting) if is_alone else item for item, is_alone in pairs)


def _as_type(item: Operand, wanted: Type, setting: EvalContext) -> Operand:
    """A text of one type as one of another, or a number as a real."""
    if isinstance(item, Literal) or item.type.base in (wanted.base, "unknown"):
        return item
    if (item.type.kind == "text") != (wanted.kind == "text"):
        return item
    return cast_to(item, wanted.plain(), setting)


def in_list(operand: Operand, items: tuple[Operand, ...], setting: EvalContext, *, negated: bool) -> Expression:
    if not items:
        return TRUE if negated else FALSE
    if not negated and len(items) <= _MOST_YEARS and tells_year(typed(operand, setting)):
        return either(*(compare("=", operand, item, setting) for item in items), setting=setting)
    arguments, common = unified(without_padding((operand, *items), setting), setting, "IN")
    _check_comparable(common)
    arguments = (arguments[0], *(_typed_like(argument, arguments[0], setting) for argument in arguments[1:]))
    if any(argument.type.kind == "float" for argument in arguments):
        arguments = tuple(as_double(argument) for argument in arguments)
    holes = ", ".join(f"{{{place}}}" for place in range(1, len(arguments)))
    name = "not in" if negated else "in"
    return condition(name, f"({{0}} {name.upper()} ({holes}))", *arguments, strict=False)


def like(name: str, operand: Operand, pattern: Operand, setting: EvalContext) -> Expression:
    """LIKE with a constant pattern that is whole: a lone escape at its end fails only on some rows."""
    if not isinstance(pattern, Literal | Constant):
        hint = "Use a constant or a parameter as the pattern."
        raise NotSupported("a LIKE pattern that is not constant is not supported over protected rows", hint=hint)
    argument = padded(typed(operand, setting, TEXT))
    if argument.type.kind != "text":
        raise NotSupported(
            f"LIKE needs a value of type text, not {argument.type.sql}", hint="Cast it: x::text LIKE '…'."
        )
    if (text := pattern.text) is not None:
        trailing = len(text) - len(text.rstrip("\\"))
        if trailing % 2:
            words = "a LIKE pattern must not end with a single escape character"
            raise NotSupported(words, hint="Write the escape character twice: LIKE 'a\\\\'.")
        if len(text) > _LONGEST_PATTERN:
            raise NotSupported(f"a LIKE pattern of more than {_LONGEST_PATTERN} characters is not supported")
    insensitive = _LIKES[name].endswith("ILIKE")
    if insensitive:
        check_unicode("ILIKE", setting)
        check_collation("ILIKE", argument)
    seen = short(as_value(argument, setting)) if insensitive else argument
    return condition(name, f"({{0}} {_LIKES[name]} {{1}})", seen, Constant(TEXT, text, text))


def _typed_like(expression: Expression, other: Expression, setting: EvalContext) -> Expression:
    """A constant as it is told beside another operand; anything else as it is."""
    if not isinstance(expression, Constant) or expression.text is None or isinstance(other, Constant):
        return expression
    match expression.type.kind, other.type.kind:
        case "integer", "integer":
            return _number(expression, is_whole=True)
        case (("integer" | "numeric"), "numeric"):
            return _number(expression, is_whole=False)
        case "text", "text" if expression.type.base in ("text", "varchar") and other.type.base in ("text", "varchar"):
            return Constant(TEXT, expression.text, expression.value)
    return _constant_like(expression, other, setting)


def _number(constant: Constant, *, is_whole: bool) -> Constant:
    """The smallest type that holds a whole number; a numeric without zeros at its end."""
    if not isinstance(constant.value, Fraction) or (shown := value.decimal_text(constant.value)) is None:
        return constant
    if not is_whole:
        return Constant(NUMERIC, shown, constant.value)
    least, most = integer_range(INT4.base)
    return Constant(INT4 if least <= constant.value <= most else INT8, shown, constant.value)


_KINDS = ("date", "timestamp", "timestamptz")  # from the coarser to the finer


def _constant_like(expression: Expression, other: Expression, setting: EvalContext) -> Expression:
    """A constant time as it is compared with another kind of time; anything else as it is."""
    if not (isinstance(expression, Constant) and expression.type.is_time and other.type.is_time) or is_infinite(
        expression
    ):
        return expression
    if _KINDS.index(expression.type.kind) < _KINDS.index(other.type.kind):
        return _refined(expression, other.type.plain(), setting)
    if expression.type.kind == "timestamptz" and other.type.kind != "timestamptz":
        return _local(expression, setting.time_zone)
    return expression


def _refined(constant: Constant, target: Type, setting: EvalContext) -> Expression:
    """Midnight of a date, or the instant that a local time means in the session's zone."""
    items = domain.items_of(cast_to(constant, target, setting).domain, 1)
    shown = value.text_of(items[0], target, setting.time_zone) if items else None
    return constant if not items or shown is None else Constant(target, shown, items[0])


def _local(constant: Constant, zone: str) -> Expression:
    """An instant as the zone's clock shows it, where that clock runs evenly for days before and after.

    Then later by the clock is later in time for all values, however far away.
    """
    if not isinstance(constant.value, Fraction):
        return constant
    at = int(constant.value)
    shown_at = value.to_local(at, zone)
    if shown_at is None or value.unevenness(at, zone):
        return constant
    local = Fraction(shown_at)
    shown = value.text_of(local, TIMESTAMP)
    return constant if shown is None else Constant(TIMESTAMP, shown, local)
