"""Rounding, signs, remainders, width_bucket and bits of numbers: outside their domain they are NULL, not errors."""

import math
from fractions import Fraction

from rules.functions.coerce import typed
from rules.functions.function import EvalContext, Operands, function, function_of_name
from rules.functions.guard import LARGEST_FLOAT, as_double, as_value, finite, to_double
from rules.functions.math.arithmetic import absolute, arithmetic
from rules.refusal import NotSupported
from rules.values import domain, enforced, interval_arithmetic
from rules.values.domain import Range
from rules.values.enforced import Sure
from rules.values.expression import Apply, Constant, Expression, Operand
from rules.values.types import FLOAT8, INT4, NUMERIC, TEXT, Type, integer_range, wider_number

SIGNS = frozenset(("&", "|", "#"))
_ROUNDED = Fraction(1, 10**9)  # of a bin's number, which has six digits before the point at most


def number(operand: Operand, setting: EvalContext, sql_type: Type = FLOAT8) -> Expression:
    argument = as_value(typed(operand, setting, sql_type), setting)
    if not argument.type.is_number:
        raise NotSupported(f"the argument must be a number, not {argument.type.sql}")
    return argument


def as_numeric_or_float(expression: Expression) -> Expression:
    """Integers and reals are taken as double precision by functions that know both (float8 is the preferred type)."""
    if expression.type.kind != "integer" and expression.type.base != "float4":
        return expression
    return to_double(expression, "cast")


@function("abs", arguments=1, examples="abs(i2) | abs(f8) | abs(f4)")
def absolute_of(operands: Operands, setting: EvalContext) -> Expression:
    return absolute(number(operands[0], setting))


@function_of_name(
    "round",
    arguments=(1, 2),
    examples="""
    round(n) | round(f8) | round(n, 2) | round(i8, -3) | round(n, -100)
    """,
)
@function_of_name("trunc", arguments=(1, 2), examples="trunc(n) | trunc(n, 3) | trunc(f8) | trunc(f4)")
@function_of_name("floor", arguments=1, examples="floor(n) | floor(f8) | floor(f4)")
@function_of_name("ceil", arguments=1, examples="ceil(n)")
@function_of_name("ceiling", arguments=1, same_as="ceil", examples="ceiling(f8)")
def rounding(name: str, operands: Operands, setting: EvalContext) -> Expression:
    """floor, ceil, round and trunc to whole numbers; round and trunc of numeric also to n digits."""
    argument = as_numeric_or_float(number(operands[0], setting))
    if len(operands) == 2:
        return _to_digits(name, argument, operands[1], setting)
    image, held = _rounded_range(name, argument), _rounded(argument.sure, 0)
    return Apply(name, f"{name}({{0}})", (argument,), argument.type.plain(), image, argument.nullable, held)


def _rounded(sure: Sure, places: int) -> Sure:
    """Any rounding moves a number by less than one of its last place."""
    step = Fraction(10) ** -places
    moved = enforced.plus(sure, Sure(-step, step, 0))
    return Sure(moved.low, moved.high, max(places, 0))


def _rounded_range(name: str, expression: Expression) -> Range:
    """Return what is known of a double is not exact, so it is taken outward."""
    image = domain.range_of(expression.domain)
    if expression.type.kind == "float" or name not in ("floor", "ceil", "ceiling"):
        return interval_arithmetic.rounded(image, Fraction(1))
    move = math.floor if name == "floor" else math.ceil
    low, high = (None if bound is None else Fraction(move(bound)) for bound in (image.low, image.high))
    return Range(low, high, domain.ONE)


def _to_digits(name: str, expression: Expression, digits: Operand, setting: EvalContext) -> Expression:
    places = typed(digits, setting, INT4)
    if not isinstance(places, Constant) or not isinstance(places.value, Fraction) or not -100 <= places.value <= 100:
        raise NotSupported(f"{name} needs a constant number of digits between -100 and 100")
    number = expression
    if expression.type.kind == "float":
        if not isinstance(expression, Apply) or expression.name != "cast" or not _is_of_integer(expression):
            raise NotSupported(f"{name}(double precision, integer) does not exist", hint="Cast to numeric first.")
        number = expression.arguments[0]  # an integer becomes numeric here, not double precision
    image = interval_arithmetic.rounded(domain.range_of(number.domain), Fraction(10) ** -int(places.value))
    held = _rounded(number.sure, int(places.value))
    return Apply(name, f"{name}({{0}}::numeric, {{1}})", (number, places), NUMERIC, image, number.nullable, held)


def _is_of_integer(cast: Apply) -> bool:
    return cast.arguments[0].type.kind == "integer"


@function("sign", arguments=1, examples="sign(n) | sign(i4)")
def sign(operands: Operands, setting: EvalContext) -> Expression:
    argument = as_numeric_or_float(number(operands[0], setting))
    values = domain.values((Fraction(-1), Fraction(0), Fraction(1)))
    held = Sure(-domain.ONE, domain.ONE, 0)
    return Apply("sign", "sign({0})", (argument,), argument.type.plain(), values, argument.nullable, held)


@function("mod", arguments=2, examples="mod(i8, i8_) | mod(n, n_)")
def modulo(operands: Operands, setting: EvalContext) -> Expression:
    return arithmetic("%", operands[0], operands[1], setting)


@function("div", arguments=2, examples="div(n, n_) | div(i8, i8_)")
def whole_quotient(operands: Operands, setting: EvalContext) -> Expression:
    """div(a, b) of numeric."""
    first, second = (finite(number(operand, setting, NUMERIC)) for operand in operands)
    if "float" in (first.type.kind, second.type.kind):
        raise NotSupported("div of double precision does not exist", hint="Cast to numeric first.")
    image = interval_arithmetic.rounded(
        interval_arithmetic.divide(domain.range_of(first.domain), domain.range_of(second.domain)), Fraction(1)
    )
    return Apply(
        "div", "div({0}::numeric, nullif({1}::numeric, 0))", (first, second), NUMERIC, image, held=Sure(digits=0)
    )


@function(
    "width_bucket",
    arguments=4,
    examples="""
    width_bucket(n, 0, 100, 5) | width_bucket(n, ARRAY[-1, 0, 2.5]) | width_bucket(f8, ARRAY[0, 1.5])
    width_bucket(f8, 0, 100, 5) | width_bucket(i4, 10, 0, 3) | width_bucket(n2, 0, 99.5, 7)
    """,
)
def width_bucket(operands: Operands, setting: EvalContext) -> Expression:
    """width_bucket(x, low, high, count) with constants for all but x: a histogram's bin, 0 to count + 1.

    Before PostgreSQL 16 differences of doubles overflow in it, and the bin is any number. Those of numbers and bounds
    that are far from the largest double do not.
    """
    argument = as_numeric_or_float(number(operands[0], setting))
    low, high = (typed(operand, setting, argument.type) for operand in operands[1:3])
    count = typed(operands[3], setting, INT4)
    bounds = [bound.value for bound in (low, high, count) if isinstance(bound, Constant)]
    if len(bounds) < 3 or not all(isinstance(bound, Fraction) for bound in bounds):
        raise NotSupported("width_bucket needs constant bounds and a constant number of buckets")
    first, last, buckets = (Fraction(bound) for bound in bounds if isinstance(bound, Fraction))
    if first == last or not 1 <= buckets <= 100_000:
        raise NotSupported("width_bucket needs two different bounds and 1 to 100000 buckets")
    if max(abs(first), abs(last)) > LARGEST_FLOAT:
        raise NotSupported("width_bucket needs bounds of at most 150 digits")
    cast = "double precision" if "float" in (argument.type.kind, low.type.kind, high.type.kind) else "numeric"
    if argument.type.kind == "float" and isinstance(argument, Apply) and argument.name == "cast" and cast == "numeric":
        argument = argument.arguments[0]
    fitting = finite(as_double(argument) if cast == "double precision" else argument)
    sql = f"width_bucket({{0}}::{cast}, {{1}}::{cast}, {{2}}::{cast}, {{3}})"
    known = domain.UNBOUNDED if cast == "double precision" else domain.range_of(fitting.domain)
    image = _buckets(known, first, last, int(buckets))
    return Apply("width_bucket", sql, (fitting, low, high, count), INT4, image, fitting.nullable)


def _buckets(known: Range, first: Fraction, last: Fraction, buckets: int) -> Range:
    """The bins of numbers between bounds. A quotient of numerics is rounded, and may reach the next bin."""
    ends = [None if end is None else (end - first) * buckets / (last - first) for end in (known.low, known.high)]
    low, high = ends if first < last else ends[::-1]
    lowest = 0 if low is None else min(max(math.floor(low) + 1, 0), buckets + 1)
    highest = buckets + 1 if high is None else min(max(math.floor(high + _ROUNDED) + 1, 0), buckets + 1)
    return Range(Fraction(lowest), Fraction(highest), domain.ONE)


def combined(name: str, left: Operand, right: Operand, setting: EvalContext) -> Expression:
    """x & y, x | y and x # y."""
    (first, second), result = _whole(name, (left, right), setting)
    image = _combined_image(name, domain.range_of(first.domain), domain.range_of(second.domain), result)
    return Apply(name, f"({{0}} {name} {{1}})", (first, second), result, image, first.nullable or second.nullable)


def _combined_image(name: str, one: Range, other: Range, result: Type) -> Range:
    """Of numbers that are not negative no bit is set that is higher than all of theirs."""
    lows, highs = [image.low for image in (one, other)], [image.high for image in (one, other)]
    known = [high for low, high in zip(lows, highs, strict=True) if low is not None and low >= 0 and high is not None]
    if name == "&" and known:
        return Range(Fraction(0), min(known), domain.ONE)
    if len(known) == 2:
        return Range(Fraction(0), Fraction((1 << int(max(known)).bit_length()) - 1), domain.ONE)
    first, last = integer_range(result.base)
    return Range(Fraction(first), Fraction(last), domain.ONE)


@function_of_name("gcd", arguments=2, examples="gcd(i4, 30) | gcd(i8, i8_)")
@function_of_name("lcm", arguments=2, examples="lcm(i2, i4)")
def divisor(name: str, operands: Operands, setting: EvalContext) -> Expression:
    """gcd and lcm, computed wider: NULL where the result does not fit."""
    arguments, result = _whole(name, operands, setting)
    last = integer_range(result.base)[1]
    wide = f"{name}({{0}}::numeric, {{1}}::numeric)"
    sql = f"CASE WHEN {wide} <= {last} THEN {wide}::{result.sql} END"
    return Apply(name, sql, arguments, result, Range(Fraction(0), Fraction(last), domain.ONE), nullable=True)


@function("to_hex", arguments=1, examples="to_hex(i4) | to_hex(i8)")
def to_hex(operands: Operands, setting: EvalContext) -> Expression:
    (argument,), kind = _whole("to_hex", operands, setting)
    if kind.base == "int2":  # PostgreSQL has no such function either
        raise NotSupported("to_hex of smallint is not supported", hint="Cast it: to_hex(x::integer).")
    return Apply("to_hex", "to_hex({0})", (argument,), TEXT, nullable=argument.nullable)


def _whole(name: str, operands: Operands, setting: EvalContext) -> tuple[tuple[Expression, ...], Type]:
    kinds = [operand.type for operand in operands if not isinstance(operand, str) and hasattr(operand, "type")]
    known = next((kind for kind in kinds if isinstance(kind, Type) and kind.kind == "integer"), INT4)
    arguments = tuple(as_value(typed(operand, setting, known), setting) for operand in operands)
    result = arguments[0].type
    for argument in arguments:
        if argument.type.kind != "integer":
            raise NotSupported(f"{name} needs integers, not {argument.type.sql}", hint="Cast it: x::bigint.")
        result = wider_number(result, argument.type)
    return arguments, result.plain()
