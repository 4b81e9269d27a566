"""What is summed becomes an integer between two bounds, so that no row moves a sum further than the bounds say."""

import re
from dataclasses import dataclass
from fractions import Fraction

from rules.noise.lattice import Lattice, find_lattice
from rules.refusal import NotAllowed, NotSupported
from rules.relation import domain
from rules.relation.domain import Anything, Range
from rules.relation.expression import Apply, Column, Constant, Expression, columns_in
from rules.relation.functions.guard import constant
from rules.relation.scan import type_domain
from rules.relation.types import INT8
from rules.relation.value import decimal_text

_FITS = 2**62
_PLAIN = re.compile(r"[a-z_][a-z0-9_$]*")  # a name that needs no quotes
_WIDE = 10**7  # from here on a type's own range is no bound to sum by


@dataclass(frozen=True, slots=True)
class Summand:
    """An integer expression, NULL where nothing is summed, and the lattice on which it lies."""

    integer: Expression
    lattice: Lattice


def clip(given: Expression, rows: int, name: str) -> Summand:
    """The integer that stands for a number in a sum; `rows` of them must not overflow."""
    if not given.type.is_number:
        seconds = f"Take its seconds: {name}(extract(epoch FROM x)) * interval '1 second'."
        hint = seconds if given.type.kind == "interval" else "Ask for the count of each value, or of a number."
        raise NotSupported(f"{name} of {given.type.sql} is not supported over protected rows", hint=hint)
    inner, bounds = _summed(given)
    if bounds.low is None or bounds.high is None or _is_bounded_by_type(given, bounds):
        raise _unbounded(given, name)
    lattice = find_lattice(bounds.low, bounds.high, bounds.step, rows, binary=given.type.kind == "float")
    if lattice is None:
        raise NotAllowed(f"the bounds of {name} lie between two of its values", hint="Give wider bounds.")
    return Summand(_integer(inner, lattice, bounds), lattice)


def _summed(given: Expression) -> tuple[Expression, Range]:
    """A clamp at the leaf is done on the integer instead, once; its column says the step."""
    found = domain.range_of(given.domain)
    match given:
        case Apply(name="clamp", arguments=(Column() as column, *_)) if given.type.kind in ("integer", "numeric"):
            own = domain.range_of(column.domain).step
            return column, Range(found.low, found.high, own if own is not None else found.step)
    return given, found


def _is_bounded_by_type(given: Expression, bounds: Range) -> bool:
    """Whether nothing but the width of a wide type bounds a column: noise for that would hide every answer."""
    reach = max(abs(bounds.low or Fraction(0)), abs(bounds.high or Fraction(0)))
    return reach >= _WIDE and any(
        isinstance(column.declared, Anything)
        and domain.range_of(column.domain) == domain.range_of(type_domain(column.type))
        for column in columns_in(given)
    )


def _unbounded(given: Expression, name: str) -> NotAllowed:
    names = tuple(dict.fromkeys(_names(given)))
    columns = ", ".join(f'"{each}"' for each in names) or "its argument"
    what = f"{name}: {columns} {'have' if len(names) > 1 else 'has'} no bounds"
    first = names[0] if names and _PLAIN.fullmatch(names[0]) else f'"{names[0]}"' if names else "x"
    hint = f"Ask your DBA for lower and upper in the rules, or clamp it yourself: least(greatest({first}, 0), 100)."
    return NotAllowed(f"{what}, so one row could move it by any amount", hint=hint)


def _names(given: Expression) -> list[str]:
    match given:
        case Column(name=name):
            return [name] if name else []
        case Apply(arguments=arguments):
            return [name for each in arguments for name in _names(each)]
    return []


def _integer(given: Expression, lattice: Lattice, bounds: Range) -> Expression:
    image = Range(Fraction(lattice.low), Fraction(lattice.high), domain.ONE)
    nullable = given.nullable or given.type.kind != "integer"
    if isinstance(given, Constant) and isinstance(given.value, Fraction):
        return Constant(INT8, str(int(given.value / lattice.step)), Fraction(int(given.value / lattice.step)))
    if given.type.kind == "float":
        return Apply("lattice", _float_sql(lattice, bounds), _with_bounds(given, bounds), INT8, image, nullable)
    scaled = _scaled_sql(lattice.step)
    if given.type.kind == "integer" and lattice.step == 1:
        if isinstance(given, Column) and domain.is_within(given.domain, image):
            return given
        sql = f"CASE WHEN {{0}} IS NOT NULL THEN least(greatest({{0}}, {lattice.low}), {lattice.high}) END"
        return Apply("lattice", sql, (given,), given.type, image, nullable)
    seen = "{0} IS NOT NULL" if given.type.kind == "integer" else "{0} <> 'NaN'"
    if _fits(given, lattice):
        sql = f"CASE WHEN {seen} THEN least(greatest(({scaled})::int8, {lattice.low}), {lattice.high}) END"
    else:
        sql = f"CASE WHEN {seen} THEN least(greatest(round({scaled}), {lattice.low}), {lattice.high})::int8 END"
    return Apply("lattice", sql, (given,), INT8, image, nullable)


def _scaled_sql(step: Fraction) -> str:
    """x / step in numeric, where the step is a power of ten."""
    if step == 1:
        return "{0}::numeric"
    return f"{{0}} * {1 / step}::numeric" if step < 1 else f"{{0}} / {step}::numeric"


def _fits(given: Expression, lattice: Lattice) -> bool:
    """Whether the number fits bigint as it is, so that the clamp can be done on integers, which is cheaper."""
    found = domain.range_of(given.domain)
    limit = _FITS * lattice.step
    return domain.is_within(found, Range(-limit, limit))


def _with_bounds(given: Expression, bounds: Range) -> tuple[Expression, ...]:
    assert bounds.low is not None and bounds.high is not None
    return given, constant(bounds.low, given.type), constant(bounds.high, given.type)


def _float_sql(lattice: Lattice, bounds: Range) -> str:
    """Clamped before the division, so that infinities and 1e308 cannot fail in it, and again as an integer."""
    step = decimal_text(lattice.step)
    number = f"round(least(greatest({{0}}, {{1}}), {{2}}) / '{step}'::float8)"
    if lattice.step > 1:  # a tiny number divided by a large one would be an underflow
        number = f"CASE WHEN abs({{0}}) < 0.25 THEN 0 ELSE {number} END"
    return f"CASE WHEN {{0}} <> 'NaN' THEN least(greatest(({number})::int8, {lattice.low}), {lattice.high}) END"
