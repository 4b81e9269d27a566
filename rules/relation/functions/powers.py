"""Roots, powers, logarithms: where PostgreSQL would report an error, or an overflow, they are NULL."""

import math
from fractions import Fraction

from rules.refusal import NotSupported
from rules.relation import domain, image
from rules.relation.domain import Range
from rules.relation.expression import Apply, Constant, Expression, Operand
from rules.relation.functions.guard import LARGEST_FLOAT, LARGEST_NUMERIC, Setting, as_double, constant, within
from rules.relation.functions.numbers import as_numeric_or_float, number
from rules.relation.types import FLOAT8, INT4, NUMERIC

Operands = tuple[Operand, ...]
_MOST = 100  # of an exponent


def power(operands: Operands, setting: Setting) -> Expression:
    """x ^ n for a constant n, typed as PostgreSQL types it: numeric where one of them is and none is a double."""
    base, exponent = number(operands[0], setting), number(operands[1], setting, INT4)
    if not isinstance(exponent, Constant) or not isinstance(exponent.value, Fraction) or abs(exponent.value) > _MOST:
        hint = f"Write it with a constant exponent from -{_MOST} to {_MOST}, or as products."
        raise NotSupported("this power is not supported over protected rows", hint=hint)
    is_numeric = base.type.kind != "float" and "numeric" in (base.type.kind, exponent.type.kind)
    if not is_numeric:
        return _inside(_double(as_double(base)), exponent.value, LARGEST_FLOAT)
    given, is_plain = _as_numeric(base), exponent.value >= 0 and exponent.value.denominator == 1
    return _whole_power(given, exponent.value) if is_plain else _inside(given, exponent.value, LARGEST_NUMERIC)


def _whole_power(base: Expression, exponent: Fraction) -> Expression:
    """Of numeric, which is rounded to 16 digits or more."""
    reach = _root(LARGEST_NUMERIC, exponent)
    lies_within = domain.is_within(domain.range_of(base.domain), Range(-reach, reach))
    small = base if lies_within else within(base, -reach, reach)
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
    raised = _raised(small, exponent) if exponent.denominator == 1 and exponent >= 0 else Range()
    return Apply("power", sql, (base, *bounds, constant(exponent, base.type)), base.type, raised, nullable=True)


def _root(number_: Fraction, exponent: Fraction) -> Fraction:
    """A power of ten whose power stays below the number."""
    digits = len(str(int(number_))) - 1
    return Fraction(10) ** (digits if abs(exponent) <= 1 else math.floor(digits / abs(exponent)))


def _raised(given: Range, exponent: Fraction) -> Range:
    """The range of a whole power, with room for the rounding of the last digits."""
    found = Range(Fraction(1), Fraction(1))
    for _ in range(int(exponent)):
        found = image.multiply(found, given)
    low = Fraction(0) if exponent % 2 == 0 and (found.low is None or found.low < 0) else found.low
    return Range(_outward(low, -1), _outward(found.high, 1))


def _outward(bound: Fraction | None, side: int) -> Fraction | None:
    return None if bound is None else bound + side * (abs(bound) / 10**12 + Fraction(1, 10**12))


def square_root(operands: Operands, setting: Setting) -> Expression:
    given = as_numeric_or_float(number(operands[0], setting))
    fitting = within(given, Fraction(0), Fraction(10) ** 100)
    high = domain.range_of(fitting.domain).high
    found = Range(Fraction(0), None if high is None else _outward(_root_above(high), 1))
    return Apply("sqrt", "sqrt({0})", (fitting,), given.type.plain(), found, nullable=True)


def _root_above(given: Fraction) -> Fraction:
    """The root, rounded up: Newton's method comes from above."""
    guess = max(given, Fraction(1))
    for _ in range(400):
        better = (guess + given / guess) / 2
        better = Fraction(-((-better * 10**12).__floor__()), 10**12)
        if better >= guess:
            return guess
        guess = better
    return guess


def cube_root(operands: Operands, setting: Setting) -> Expression:
    given = as_double(number(operands[0], setting))
    fitting = within(_double(given), -LARGEST_FLOAT, LARGEST_FLOAT)
    reach = Fraction(10) ** 50
    return Apply("cbrt", "cbrt({0})", (fitting,), FLOAT8, Range(-reach, reach), nullable=True)


def _double(given: Expression) -> Expression:
    if given.type == FLOAT8:
        return given
    return Apply("double", "({0})::double precision", (given,), FLOAT8, given.domain, given.nullable)


def logarithm(name: str, operands: Operands, setting: Setting) -> Expression:
    """ln, log and log10 of numbers above zero; log(b, x) of numeric for a constant base."""
    if len(operands) == 2:
        return _to_base(operands, setting)
    given = as_numeric_or_float(number(operands[0], setting))
    return Apply(name, f"{name}({{0}})", (_above_zero(given),), given.type.plain(), _LOGARITHMS, nullable=True)


_LOGARITHMS = Range(Fraction(-231), Fraction(231))  # ln(10^100) = 230.26


def _above_zero(given: Expression) -> Expression:
    return within(given, Fraction(1, 10**100), Fraction(10) ** 100)


def _to_base(operands: Operands, setting: Setting) -> Expression:
    base, given = number(operands[0], setting, NUMERIC), number(operands[1], setting, NUMERIC)
    if not isinstance(base, Constant) or not isinstance(base.value, Fraction) or not 2 <= base.value <= 1_000_000:
        raise NotSupported("log(b, x) needs a constant base from 2 to 1000000")
    if given.type.kind == "float":
        raise NotSupported("log(b, x) of double precision does not exist", hint="Cast to numeric first.")
    found = Range(Fraction(-333), Fraction(333))  # log2(10^100) = 332.2
    arguments = (base, _above_zero(_as_numeric(given)))
    return Apply("log", "log({0}::numeric, {1})", arguments, NUMERIC, found, nullable=True)


def _as_numeric(given: Expression) -> Expression:
    if given.type.kind == "numeric":
        return given
    return Apply("cast", "({0})::numeric", (given,), NUMERIC, given.domain, given.nullable)


def exponential(operands: Operands, setting: Setting) -> Expression:
    given = as_numeric_or_float(number(operands[0], setting))
    fitting = within(given, Fraction(-200), Fraction(200))
    found = Range(Fraction(0), Fraction(10) ** 87)
    return Apply("exp", "exp({0})", (fitting,), given.type.plain(), found, nullable=True)
