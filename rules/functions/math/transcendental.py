"""Roots, powers, logarithms and angles: where PostgreSQL would report an error, or an overflow, they are NULL."""

import math
from collections.abc import Callable
from fractions import Fraction

from rules.functions.function import EvalContext, Operands, function, function_of_name
from rules.functions.guard import LARGEST_FLOAT, LARGEST_NUMERIC, as_double, constant, safe_factor, within
from rules.functions.math.numbers import as_numeric_or_float, number
from rules.refusal import NotSupported
from rules.values import domain, interval_arithmetic
from rules.values.domain import Range
from rules.values.expression import Apply, Constant, Expression
from rules.values.types import FLOAT8, INT4, NUMERIC

_MOST = 100  # of an exponent
_PI = Constant(FLOAT8, "3.141592653589793", Fraction(3.141592653589793))
_CIRCLE = Fraction(4)  # radians and more than there are on either side
_UNIT = Range(Fraction(-1), Fraction(1))
# name -> where it is defined, and what it can be
_CURVES: dict[str, tuple[Fraction, Range]] = {
    "sin": (Fraction(10) ** 15, _UNIT),
    "cos": (Fraction(10) ** 15, _UNIT),
    "tan": (Fraction(10) ** 15, Range()),
    "atan": (LARGEST_FLOAT, Range(-_CIRCLE, _CIRCLE)),
    "asin": (Fraction(1), Range(-_CIRCLE, _CIRCLE)),
    "acos": (Fraction(1), Range(-_CIRCLE, _CIRCLE)),
}


@function("power", arguments=2, examples="power(n2, 100) | power(n, 3) | power(i4, 8)")
@function("pow", arguments=2, examples="pow(f8, 2)")
def power(operands: Operands, setting: EvalContext) -> Expression:
    """x ^ n for a constant n, typed as PostgreSQL types it: numeric where one of them is and none is a double."""
    exponent = number(operands[1], setting, INT4)
    base = number(operands[0], setting, NUMERIC if exponent.type.kind == "numeric" else FLOAT8)
    if not isinstance(exponent, Constant) or not isinstance(exponent.value, Fraction) or abs(exponent.value) > _MOST:
        hint = f"Use a constant exponent from -{_MOST} to {_MOST}, or multiply, as in x * x."
        raise NotSupported(f"power() over protected rows needs a constant exponent from -{_MOST} to {_MOST}", hint=hint)
    is_numeric = base.type.kind != "float" and "numeric" in (base.type.kind, exponent.type.kind)
    if not is_numeric:
        return _inside(_double(as_double(base)), exponent.value, LARGEST_FLOAT)
    argument, is_plain = _as_numeric(base), exponent.value >= 0 and exponent.value.denominator == 1
    return _whole_power(argument, exponent.value) if is_plain else _inside(argument, exponent.value, LARGEST_NUMERIC)


def _whole_power(base: Expression, exponent: Fraction) -> Expression:
    """Of numeric, which is rounded to 16 digits or more."""
    reach = _root(LARGEST_NUMERIC, exponent)
    small = base if base.sure.is_within(-reach, reach) else within(base, -reach, reach)
    raised = _raised(domain.range_of(small.domain), exponent)
    return Apply("power", "power({0}, {1})", (small, constant(exponent, NUMERIC)), NUMERIC, raised, small.nullable)


def _inside(base: Expression, exponent: Fraction, largest: Fraction) -> Expression:
    """Neither too large nor too near zero; no root of a number below zero, no inverse of zero."""
    reach = _root(largest, exponent)
    low = -reach if exponent.denominator == 1 else Fraction(0)
    at_zero = "1" if exponent == 0 else "0" if exponent > 0 else "NULL"
    inner = f"CASE WHEN abs({{0}}) >= {{3}} THEN power({{0}}, {{4}}) ELSE {at_zero} END"
    sql = f"CASE WHEN {{0}} BETWEEN {{1}} AND {{2}} THEN {inner} END"
    bounds = (constant(low, base.type), constant(reach, base.type), constant(1 / reach, base.type))
    small = domain.range_of(domain.intersect(domain.range_of(base.domain), Range(low, reach)))
    is_whole = exponent.denominator == 1 and exponent >= 0
    raised = _raised(small, exponent) if is_whole else _rooted(base, exponent)
    result = base.type.plain()
    return Apply("power", sql, (base, *bounds, constant(exponent, base.type)), result, raised, nullable=True)


def _root(number_: Fraction, exponent: Fraction) -> Fraction:
    """A power of ten whose power stays below the number."""
    digits = len(str(int(number_))) - 1
    return Fraction(10) ** (digits if abs(exponent) <= 1 else math.floor(digits / abs(exponent)))


def _raised(bounds: Range, exponent: Fraction) -> Range:
    """The range of a whole power, with room for the rounding of the last digits."""
    image = Range(Fraction(1), Fraction(1))
    for _ in range(int(exponent)):
        image = interval_arithmetic.multiply(image, bounds)
    low = Fraction(0) if exponent % 2 == 0 and (image.low is None or image.low < 0) else image.low
    return Range(_outward(low, -1), _outward(image.high, 1))


def _rooted(base: Expression, exponent: Fraction) -> Range:
    """The range of a root, or of an inverse, of numbers that are not below zero."""
    bounds = domain.range_of(base.domain)
    if bounds.low is None or bounds.low < 0:
        return Range()
    if exponent > 0:
        return _between(lambda number: math.pow(number, exponent), bounds.low, bounds.high)
    return _between(lambda number: math.pow(number, exponent), bounds.high, _least_above_zero(base))


def _least_above_zero(expression: Expression) -> Fraction | None:
    """The least number above zero that an expression can be: that of whole numbers from 0 to 100 is 1."""
    bounds = domain.range_of(expression.domain)
    return bounds.low if bounds.low is not None and bounds.low > 0 else bounds.step


def _between(rising: Callable[[Fraction], float], low: Fraction | None, high: Fraction | None) -> Range:
    """What lies between the values of a function, with room for rounding; a value that is no double bounds nothing."""
    first, last = _outward(_double_of(rising, low), -1), _outward(_double_of(rising, high), 1)
    return Range(first, last) if first is None or last is None or first <= last else Range(last, first)


def _double_of(rising: Callable[[Fraction], float], bound: Fraction | None) -> Fraction | None:
    try:
        return None if bound is None else Fraction(rising(bound))
    except (OverflowError, ValueError):
        return None


def _outward(bound: Fraction | None, side: int) -> Fraction | None:
    return None if bound is None else bound + side * (abs(bound) / 10**12 + Fraction(1, 10**12))


@function("sqrt", arguments=1, examples="sqrt(n) | sqrt(f8) | sqrt(i8) | sqrt(f4)")
def square_root(operands: Operands, setting: EvalContext) -> Expression:
    argument = as_numeric_or_float(number(operands[0], setting))
    fitting = within(argument, Fraction(0), Fraction(10) ** 100)
    high = domain.range_of(fitting.domain).high
    image = Range(Fraction(0), None if high is None else _outward(_root_above(high), 1))
    return Apply("sqrt", "sqrt({0})", (fitting,), argument.type.plain(), image, nullable=True)


def _root_above(number: Fraction) -> Fraction:
    """The root, rounded up: Newton's method comes from above."""
    guess = max(number, Fraction(1))
    for _ in range(400):
        better = (guess + number / guess) / 2
        better = Fraction(-((-better * 10**12).__floor__()), 10**12)
        if better >= guess:
            return guess
        guess = better
    return guess


@function("cbrt", arguments=1, examples="cbrt(n) | cbrt(f8)")
def cube_root(operands: Operands, setting: EvalContext) -> Expression:
    argument = as_double(number(operands[0], setting))
    fitting = within(_double(argument), -LARGEST_FLOAT, LARGEST_FLOAT)
    bounds = domain.range_of(fitting.domain)
    return Apply("cbrt", "cbrt({0})", (fitting,), FLOAT8, _between(_cube_root, bounds.low, bounds.high), nullable=True)


def _cube_root(number: Fraction) -> float:
    return math.copysign(math.pow(abs(number), 1 / 3), number)


def _double(expression: Expression) -> Expression:
    if expression.type == FLOAT8:
        return expression
    return Apply("double", "({0})::double precision", (expression,), FLOAT8, expression.domain, expression.nullable)


@function_of_name("ln", arguments=1, examples="ln(n) | ln(f8) | ln(f4)")
@function_of_name("log", arguments=(1, 2), examples="log(2, n) | log(10.5, i4) | log(n) | log(f8)")
@function_of_name("log10", arguments=1, examples="log10(n)")
def logarithm(name: str, operands: Operands, setting: EvalContext) -> Expression:
    """ln, log and log10 of numbers above zero; log(b, x) of numeric for a constant base."""
    if len(operands) == 2:
        return _to_base(operands, setting)
    argument = as_numeric_or_float(number(operands[0], setting))
    fitting, logarithm_of = _above_zero(argument), math.log if name == "ln" else math.log10
    return Apply(name, f"{name}({{0}})", (fitting,), argument.type.plain(), _logarithms(fitting, logarithm_of), True)


def _above_zero(expression: Expression) -> Expression:
    return within(expression, Fraction(1, 10**100), Fraction(10) ** 100)


def _logarithms(fitting: Expression, logarithm_of: Callable[[Fraction], float]) -> Range:
    """Between those of the bounds. Whole numbers above zero are 1 at least."""
    bounds = domain.range_of(fitting.domain)
    least = max(filter(None, (bounds.low, bounds.step)), default=None)
    return _between(logarithm_of, least, bounds.high)


def _to_base(operands: Operands, setting: EvalContext) -> Expression:
    base, argument = number(operands[0], setting, NUMERIC), number(operands[1], setting, NUMERIC)
    if not isinstance(base, Constant) or not isinstance(base.value, Fraction) or not 2 <= base.value <= 1_000_000:
        raise NotSupported("log(b, x) needs a constant base from 2 to 1000000")
    if argument.type.kind == "float":
        raise NotSupported("log(b, x) of double precision does not exist", hint="Cast to numeric first.")
    fitting = _above_zero(_as_numeric(argument))
    logarithm_of_base = math.log(base.value)
    image = _logarithms(fitting, lambda number: math.log(number) / logarithm_of_base)
    return Apply("log", "log({0}::numeric, {1})", (base, fitting), NUMERIC, image, nullable=True)


def _as_numeric(expression: Expression) -> Expression:
    if expression.type.kind == "numeric":
        return expression
    return Apply("cast", "({0})::numeric", (expression,), NUMERIC, expression.domain, expression.nullable)


@function("exp", arguments=1, examples="exp(n) | exp(f8) | exp(i4) | exp(f4)")
def exponential(operands: Operands, setting: EvalContext) -> Expression:
    argument = as_numeric_or_float(number(operands[0], setting))
    fitting = within(argument, Fraction(-200), Fraction(200))
    bounds = domain.range_of(fitting.domain)
    image = domain.intersect(_between(math.exp, bounds.low, bounds.high), Range(Fraction(0), Fraction(10) ** 87))
    return Apply("exp", "exp({0})", (fitting,), argument.type.plain(), image, nullable=True)


@function("pi", arguments=0, examples="pi() * f8")
def pi(operands: Operands, setting: EvalContext) -> Expression:
    return _PI


@function_of_name("atan", arguments=1, examples="atan(f8)")
@function_of_name("acos", arguments=1, examples="acos(n)")
@function_of_name("sin", arguments=1, examples="sin(f8)")
@function_of_name("tan", arguments=1, examples="tan(f8)")
@function_of_name("asin", arguments=1, examples="asin(f8)")
@function_of_name("cos", arguments=1, examples="cos(n)")
def curve(name: str, operands: Operands, setting: EvalContext) -> Expression:
    """sin(x) and its kin."""
    reach, image = _CURVES[name]
    return Apply(
        name,
        f"{name}({{0}})",
        (within(_double(as_double(number(operands[0], setting))), -reach, reach),),
        FLOAT8,
        image,
    )


@function("atan2", arguments=2, examples="atan2(f8, n)")
def direction(operands: Operands, setting: EvalContext) -> Expression:
    """atan2(y, x), of numbers whose quotient is no number that is too small."""
    arguments = tuple(safe_factor(_double(as_double(number(operand, setting)))) for operand in operands)
    return Apply("atan2", "atan2({0}, {1})", arguments, FLOAT8, Range(-_CIRCLE, _CIRCLE))


@function_of_name("degrees", arguments=1, examples="degrees(f8)")
@function_of_name("radians", arguments=1, examples="radians(n)")
def scaled(name: str, operands: Operands, setting: EvalContext) -> Expression:
    """degrees(x) and radians(x)."""
    fitting = safe_factor(_double(as_double(number(operands[0], setting))))
    bounds = domain.range_of(fitting.domain)
    image = _between(math.degrees if name == "degrees" else math.radians, bounds.low, bounds.high)
    return Apply(name, f"{name}({{0}})", (fitting,), FLOAT8, image)
