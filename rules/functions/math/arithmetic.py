"""+ - * / % and their kin: typed as PostgreSQL types them, made so that no row overflows or divides by zero.

Operands are guarded by what is sure of them, and so are whole results: what a domain says of either is advice.
"""

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from operator import add, mul, sub

from rules.functions.casts import real
from rules.functions.coerce import typed
from rules.functions.function import EvalContext
from rules.functions.guard import MOST_DIGITS, as_double, as_value, few_digits, finite, safe_factor
from rules.refusal import NotSupported
from rules.values import domain, enforced, interval_arithmetic
from rules.values.domain import Domain, Range, Values
from rules.values.enforced import Sure
from rules.values.expression import Apply, Constant, Expression, Operand, null_of
from rules.values.types import FLOAT8, NUMERIC, Type, integer_range, wider_number

Image = Callable[[Range, Range], Range]

_LISTED = 1000  # values of a finite domain that are followed one by one
_EXACT: dict[str, Callable[[Fraction, Fraction], Fraction]] = {"+": add, "-": sub, "*": mul}
_SURE: dict[str, Callable[[Sure, Sure], Sure]] = {
    "+": enforced.plus,
    "-": enforced.minus,
    "*": enforced.times,
}
_IMAGES: dict[str, Image] = {
    "+": interval_arithmetic.add,
    "-": lambda left, right: interval_arithmetic.add(left, interval_arithmetic.negate(right)),
    "*": interval_arithmetic.multiply,
}


def arithmetic(name: str, left: Operand, right: Operand, setting: EvalContext) -> Expression:
    """left + right and so on, for two numbers."""
    return _calculated(name, *_numbers(name, left, right, setting))


@lru_cache(maxsize=512)
def _calculated(name: str, first: Expression, second: Expression) -> Expression:
    """The same of operands that are guarded: charts of a dashboard compute with the same ones."""
    result = wider_number(first.type, second.type)
    if result.kind == "float":
        made = _float(name, as_double(first), as_double(second))
        return made if result == FLOAT8 else real(made, is_tiny=name in ("*", "/"))
    if result.kind == "numeric":
        return _numeric(name, finite(first), finite(second))
    return _integer(name, first, second, result)


def negative(operand: Operand, setting: EvalContext) -> Expression:
    """- x; of a constant it is a constant, so that bounds may be negative."""
    argument = as_value(typed(operand, setting, FLOAT8), setting)
    if isinstance(argument, Constant) and isinstance(argument.value, Fraction) and argument.text is not None:
        text = argument.text.removeprefix("-") if argument.text.startswith("-") else f"-{argument.text}"
        if not enforced.of_type(argument.type).has(-argument.value):
            raise NotSupported(f"-{argument.text} is out of range for type {argument.type.sql}")
        return Constant(argument.type, text, -argument.value)
    if not argument.type.is_number:
        raise _no_operator("-", argument.type)
    image, held = interval_arithmetic.negate(domain.range_of(argument.domain)), enforced.negated(argument.sure)
    if argument.type.kind == "integer":
        return _fitted("negative", "-{0}", (argument,), argument.type.plain(), image, held)
    return Apply("negative", "(-{0})", (argument,), argument.type.plain(), image, argument.nullable, held)


def absolute(expression: Expression) -> Expression:
    image, held = (
        interval_arithmetic.absolute(domain.range_of(expression.domain)),
        enforced.either(expression.sure, enforced.negated(expression.sure)),
    )
    if expression.type.kind == "integer":
        return _fitted("abs", "abs({0})", (expression,), expression.type.plain(), image, held)
    return Apply("abs", "abs({0})", (expression,), expression.type.plain(), image, expression.nullable, held)


def _numbers(name: str, left: Operand, right: Operand, setting: EvalContext) -> tuple[Expression, Expression]:
    first = typed(left, setting, right.type if isinstance(right, Apply | Constant) else _type_of(right))
    second = typed(right, setting, first.type)
    first, second = _null_as(second, first), _null_as(first, second)
    for argument in (first, second):
        if not argument.type.is_number:
            raise _no_operator(name, first.type, second.type)
    return as_value(first, setting), as_value(second, setting)


def _null_as(other: Expression, argument: Expression) -> Expression:
    """NULL without a cast has the type of the other operand."""
    is_open = isinstance(argument, Constant) and argument.type.kind == "unknown" and argument.text is None
    return null_of(other.type.plain()) if is_open else argument


def _type_of(operand: Operand) -> Type:
    kind = getattr(operand, "type", None)
    return kind if isinstance(kind, Type) else NUMERIC


def _no_operator(name: str, *types: Type) -> NotSupported:
    written = f" {name} ".join(sql_type.sql for sql_type in types) if len(types) > 1 else f"{name} {types[0].sql}"
    return NotSupported(f"the operator {written} is not supported over protected rows")


def _nullable(*arguments: Expression) -> bool:
    return any(argument.nullable for argument in arguments)


def _float(name: str, left: Expression, right: Expression) -> Expression:
    """Operands are first made small enough, and not too near zero, for no error to be possible."""
    if name == "%":
        raise NotSupported("% of double precision is not supported", hint="Cast to numeric first: mod(x::numeric, 10).")
    if name in ("*", "/"):
        first, second = safe_factor(left), safe_factor(right)
    else:
        first, second = finite(left), finite(right)
    ranges = domain.range_of(first.domain), domain.range_of(second.domain)
    if name == "/":
        image = interval_arithmetic.divide(Range(ranges[0].low, ranges[0].high), Range(ranges[1].low, ranges[1].high))
        return Apply(
            "/", "({0} / nullif({1}, 0))", (first, second), FLOAT8, Range(image.low, image.high), nullable=True
        )
    image = _IMAGES[name](*ranges)
    return Apply(name, f"({{0}} {name} {{1}})", (first, second), FLOAT8, Range(image.low, image.high), nullable=True)


def _numeric(name: str, left: Expression, right: Expression) -> Expression:
    if name == "*":
        left, right = few_digits(left), few_digits(right)
    ranges = domain.range_of(left.domain), domain.range_of(right.domain)
    if name in _IMAGES:
        exact = _listed(name, left, right) or _IMAGES[name](*ranges)
        held = _SURE[name](left.sure, right.sure)
        return Apply(name, f"({{0}} {name} {{1}})", (left, right), NUMERIC, exact, _nullable(left, right), held)
    maker = _quotient if name == "/" else _remainder
    return maker(left, right, NUMERIC)


def _quotient(left: Expression, right: Expression, result: Type) -> Expression:
    image = interval_arithmetic.divide(domain.range_of(left.domain), domain.range_of(right.domain))
    low = None if image.low is None else image.low - _rounding(image.low)
    high = None if image.high is None else image.high + _rounding(image.high)
    return _by_nonzero("/", left, right, result, Range(low, high), Sure(digits=MOST_DIGITS))


def _rounding(bound: Fraction) -> Fraction:
    """Quotients are rounded to 16 digits or more: never past a whole number of fewer."""
    is_whole = bound.denominator == 1 and abs(bound) < 10**15
    return Fraction(0) if is_whole else abs(bound) / 10**15


def _remainder(left: Expression, right: Expression, result: Type) -> Expression:
    """a % b is no larger than a, and has the digits of both."""
    ranges = domain.range_of(left.domain), domain.range_of(right.domain)
    held = enforced.either(left.sure, enforced.negated(left.sure), Sure(Fraction(0), Fraction(0), right.sure.digits))
    return _by_nonzero("%", left, right, result, interval_arithmetic.remainder(*ranges), held)


def _by_nonzero(
    name: str, left: Expression, right: Expression, result: Type, image: Range, held: Sure
) -> Expression:  # fmt: skip
    """x / 0 is NULL here, not an error."""
    divisor, nullable = _divisor(right)
    sql = f"({{0}} {name} {divisor})"
    return Apply(name, sql, (left, right), result, image, nullable or _nullable(left, right), held)


def _divisor(right: Expression) -> tuple[str, bool]:
    """The divisor's text, and whether it can be NULL as far as is known."""
    is_guarded = right.sure.has(Fraction(0))
    return "nullif({1}, 0)" if is_guarded else "{1}", domain.contains(right.domain, Fraction(0))


def _integer(name: str, left: Expression, right: Expression, result: Type) -> Expression:
    ranges = domain.range_of(left.domain), domain.range_of(right.domain)
    if name == "%":
        # The one overflow of %, -2^63 % -1, is caught by PostgreSQL itself.
        return _remainder(left, right, result)
    if name == "/":
        divisor, nullable = _divisor(right)
        held = enforced.either(
            left.sure, enforced.negated(left.sure)
        )  # a whole quotient is no larger than what is divided
        image = interval_arithmetic.truncated_quotient(*ranges)
        return _fitted(name, f"{{0}} / {divisor}", (left, right), result, image, held, maybe_null=nullable)
    exact = _listed(name, left, right) or _IMAGES[name](*ranges)
    return _fitted(name, f"{{0}} {name} {{1}}", (left, right), result, exact, _SURE[name](left.sure, right.sure))


def _listed(name: str, left: Expression, right: Expression) -> Values | None:
    """Each value of a short list with a constant: bins that begin at 25 lie 50 apart, and not at every 25."""
    if not (isinstance(left, Constant) or isinstance(right, Constant)):
        return None
    first, second = (domain.items_of(argument.domain, _LISTED) for argument in (left, right))
    if not first or not second:
        return None
    operation = _EXACT[name]
    pairs = ((one, two) for one in first for two in second)
    return domain.values(
        operation(one, two) for one, two in pairs if isinstance(one, Fraction) and isinstance(two, Fraction)
    )


def _fitted(
    name: str,
    sql: str,
    expressions: tuple[Expression, ...],
    result: Type,
    image: Domain,
    held: Sure,
    *,
    maybe_null: bool = False,
) -> Expression:
    """An integer operation whose result may not fit: computed wider, NULL where PostgreSQL would report overflow.

    The result is written once, for sums of sums would grow with every guard: what lies beyond the type on either side,
    and NULL, becomes the number next to it, which is NULL in turn.
    """
    first, last = integer_range(result.base)
    limits = Range(Fraction(first), Fraction(last))
    if held.is_within(Fraction(first), Fraction(last)):
        nullable = _nullable(*expressions) or maybe_null
        return Apply(name, f"({sql})", expressions, result, domain.intersect(image, limits), nullable, held)
    wide = "numeric" if result.base == "int8" else "bigint"
    widened = sql.replace("{0}", f"{{0}}::{wide}")
    if name == "/" and wide == "numeric":
        widened = sql.replace(" / ", ", ").join(("div(", ")")).replace("{0}", "{0}::numeric")
    below, above = f"({first - 1})::{wide}", f"{last + 1}::{wide}"
    text = f"nullif(nullif(least(greatest({widened}, {below}), {above}), {below}), {above})::{result.sql}"
    nullable = _nullable(*expressions) or maybe_null or not domain.is_within(image, limits)
    return Apply(name, text, expressions, result, domain.intersect(image, limits), nullable)
