"""Bits of whole numbers, and their divisors: & | # gcd lcm to_hex."""

from fractions import Fraction

from rules.refusal import NotSupported
from rules.relation import domain
from rules.relation.domain import Range
from rules.relation.expression import Apply, Expression, Operand
from rules.relation.functions.coerce import typed
from rules.relation.functions.guard import Setting, as_value
from rules.relation.types import INT4, TEXT, Type, integer_range, wider_number

Operands = tuple[Operand, ...]
SIGNS = frozenset(("&", "|", "#"))


def combined(name: str, left: Operand, right: Operand, setting: Setting) -> Expression:
    """x & y, x | y and x # y."""
    (first, second), result = _whole(name, (left, right), setting)
    image = _combined_image(name, domain.range_of(first.domain), domain.range_of(second.domain), result)
    return Apply(name, f"({{0}} {name} {{1}})", (first, second), result, image, first.nullable or second.nullable)


def _combined_image(name: str, one: Range, other: Range, result: Type) -> Range:
    """Of numbers that are not negative no bit is set that is higher than all of theirs."""
    lows, highs = [each.low for each in (one, other)], [each.high for each in (one, other)]
    known = [high for low, high in zip(lows, highs, strict=True) if low is not None and low >= 0 and high is not None]
    if name == "&" and known:
        return Range(Fraction(0), min(known), domain.ONE)
    if len(known) == 2:
        return Range(Fraction(0), Fraction((1 << int(max(known)).bit_length()) - 1), domain.ONE)
    first, last = integer_range(result.base)
    return Range(Fraction(first), Fraction(last), domain.ONE)


def divisor(name: str, operands: Operands, setting: Setting) -> Expression:
    """gcd and lcm, computed wider: NULL where the result does not fit."""
    given, result = _whole(name, operands, setting)
    last = integer_range(result.base)[1]
    wide = f"{name}({{0}}::numeric, {{1}}::numeric)"
    sql = f"CASE WHEN {wide} <= {last} THEN {wide}::{result.sql} END"
    return Apply(name, sql, given, result, Range(Fraction(0), Fraction(last), domain.ONE), nullable=True)


def to_hex(operands: Operands, setting: Setting) -> Expression:
    (given,), kind = _whole("to_hex", operands, setting)
    if kind.base == "int2":  # PostgreSQL has no such function either
        raise NotSupported("to_hex of smallint is not supported", hint="Cast it: to_hex(x::integer).")
    return Apply("to_hex", "to_hex({0})", (given,), TEXT, nullable=given.nullable)


def _whole(name: str, operands: Operands, setting: Setting) -> tuple[tuple[Expression, ...], Type]:
    kinds = [each.type for each in operands if not isinstance(each, str) and hasattr(each, "type")]
    known = next((each for each in kinds if isinstance(each, Type) and each.kind == "integer"), INT4)
    given = tuple(as_value(typed(each, setting, known), setting) for each in operands)
    result = given[0].type
    for each in given:
        if each.type.kind != "integer":
            raise NotSupported(f"{name} needs whole numbers, not {each.type.sql}", hint="Cast it: x::bigint.")
        result = wider_number(result, each.type)
    return given, result.plain()
