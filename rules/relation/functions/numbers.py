"""round, floor, abs, mod, width_bucket … over numbers: outside their domain they are NULL, not errors."""

import math
from fractions import Fraction

from rules.refusal import NotSupported
from rules.relation import domain, image
from rules.relation.domain import Domain, Range
from rules.relation.expression import Apply, Constant, Expression, Operand
from rules.relation.functions.arithmetic import absolute, arithmetic
from rules.relation.functions.coerce import typed
from rules.relation.functions.guard import Setting, as_value, finite
from rules.relation.types import FLOAT8, INT4, NUMERIC, Type

Operands = tuple[Operand, ...]


def number(operand: Operand, setting: Setting, given: Type = FLOAT8) -> Expression:
    found = as_value(typed(operand, setting, given), setting)
    if not found.type.is_number:
        raise NotSupported(f"a number is needed here, not {found.type.sql}")
    return found


def as_numeric_or_float(given: Expression) -> Expression:
    """Integers are taken as double precision by functions that know both (float8 is the preferred type)."""
    if given.type.kind != "integer":
        return given
    return Apply("cast", "({0})::double precision", (given,), FLOAT8, given.domain, given.nullable)


def absolute_of(operands: Operands, setting: Setting) -> Expression:
    return absolute(number(operands[0], setting))


def rounding(name: str, operands: Operands, setting: Setting) -> Expression:
    """floor, ceil, round and trunc to whole numbers; round and trunc of numeric also to n digits."""
    given = as_numeric_or_float(number(operands[0], setting))
    if len(operands) == 2:
        return _to_digits(name, given, operands[1], setting)
    found = _whole(name, given)
    return Apply(name, f"{name}({{0}})", (given,), given.type.plain(), found, given.nullable)


def _whole(name: str, given: Expression) -> Range:
    """What is known of a double is not exact, so it is taken outward."""
    found = domain.range_of(given.domain)
    if given.type.kind == "float" or name not in ("floor", "ceil", "ceiling"):
        return image.rounded(found, Fraction(1))
    move = math.floor if name == "floor" else math.ceil
    low, high = (None if bound is None else Fraction(move(bound)) for bound in (found.low, found.high))
    return Range(low, high, domain.ONE)


def _to_digits(name: str, given: Expression, digits: Operand, setting: Setting) -> Expression:
    places = typed(digits, setting, INT4)
    if not isinstance(places, Constant) or not isinstance(places.value, Fraction) or not -100 <= places.value <= 100:
        raise NotSupported(f"{name} needs a constant number of digits between -100 and 100")
    number = given
    if given.type.kind == "float":
        if not isinstance(given, Apply) or given.name != "cast":
            raise NotSupported(f"{name}(double precision, integer) does not exist", hint="Cast to numeric first.")
        number = given.arguments[0]  # an integer becomes numeric here, not double precision
    found = image.rounded(domain.range_of(number.domain), Fraction(10) ** -int(places.value))
    return Apply(name, f"{name}({{0}}::numeric, {{1}})", (number, places), NUMERIC, found, number.nullable)


def sign(operands: Operands, setting: Setting) -> Expression:
    given = as_numeric_or_float(number(operands[0], setting))
    found = domain.values((Fraction(-1), Fraction(0), Fraction(1)))
    return Apply("sign", "sign({0})", (given,), given.type.plain(), found, given.nullable)


def modulo(operands: Operands, setting: Setting) -> Expression:
    return arithmetic("%", operands[0], operands[1], setting)


def whole_quotient(operands: Operands, setting: Setting) -> Expression:
    """div(a, b) of numeric."""
    first, second = (finite(number(operand, setting, NUMERIC)) for operand in operands)
    if "float" in (first.type.kind, second.type.kind):
        raise NotSupported("div of double precision does not exist", hint="Cast to numeric first.")
    found = image.rounded(image.divide(domain.range_of(first.domain), domain.range_of(second.domain)), Fraction(1))
    return Apply("div", "div({0}::numeric, nullif({1}::numeric, 0))", (first, second), NUMERIC, found, nullable=True)


def width_bucket(operands: Operands, setting: Setting) -> Expression:
    """width_bucket(x, low, high, count) with constant low < high and count: a histogram's bin, 0 to count + 1."""
    given = as_numeric_or_float(number(operands[0], setting))
    low, high = (typed(operand, setting, given.type) for operand in operands[1:3])
    count = typed(operands[3], setting, INT4)
    bounds = [each.value for each in (low, high, count) if isinstance(each, Constant)]
    if len(bounds) < 3 or not all(isinstance(bound, Fraction) for bound in bounds):
        raise NotSupported("width_bucket needs constant bounds and a constant number of buckets")
    first, last, buckets = (Fraction(bound) for bound in bounds if isinstance(bound, Fraction))
    if first == last or not 1 <= buckets <= 100_000:
        raise NotSupported("width_bucket needs two different bounds and 1 to 100000 buckets")
    found: Domain = Range(Fraction(0), buckets + 1, Fraction(1))
    cast = "double precision" if "float" in (given.type.kind, low.type.kind, high.type.kind) else "numeric"
    if given.type.kind == "float" and isinstance(given, Apply) and given.name == "cast" and cast == "numeric":
        given = given.arguments[0]
    sql = f"width_bucket({{0}}::{cast}, {{1}}::{cast}, {{2}}::{cast}, {{3}})"
    return Apply("width_bucket", sql, (given, low, high, count), INT4, found, given.nullable)
