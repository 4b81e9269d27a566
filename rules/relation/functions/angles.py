"""Angles: degrees, radians and the trigonometric functions, of numbers on which they are defined."""

from fractions import Fraction

from rules.relation.domain import Range
from rules.relation.expression import Apply, Constant, Expression, Operand
from rules.relation.functions.guard import LARGEST_FLOAT, Setting, as_double, safe_factor, within
from rules.relation.functions.numbers import number
from rules.relation.types import FLOAT8

Operands = tuple[Operand, ...]
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
CURVES = frozenset(_CURVES)


def pi(operands: Operands, setting: Setting) -> Expression:
    return _PI


def curve(name: str, operands: Operands, setting: Setting) -> Expression:
    """sin(x) and its kin."""
    reach, image = _CURVES[name]
    return Apply(name, f"{name}({{0}})", (within(_double(operands[0], setting), -reach, reach),), FLOAT8, image)


def direction(operands: Operands, setting: Setting) -> Expression:
    """atan2(y, x), of numbers whose quotient is no number that is too small."""
    given = tuple(safe_factor(_double(operand, setting)) for operand in operands)
    return Apply("atan2", "atan2({0}, {1})", given, FLOAT8, Range(-_CIRCLE, _CIRCLE))


def scaled(name: str, operands: Operands, setting: Setting) -> Expression:
    """degrees(x) and radians(x)."""
    return Apply(name, f"{name}({{0}})", (safe_factor(_double(operands[0], setting)),), FLOAT8)


def _double(operand: Operand, setting: Setting) -> Expression:
    given = as_double(number(operand, setting))
    if given.type == FLOAT8:
        return given
    return Apply("double", "({0})::double precision", (given,), FLOAT8, given.domain, given.nullable)
