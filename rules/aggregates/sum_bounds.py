"""Find the bounds of what is summed, and the lattice on which it becomes an integer between them.

The bounds are advice: they follow from what is known of the number, which may be wrong. The kernel clamps every summand
to them last, as an integer, be it a column, a constant or computed, and however surely it seems to lie between them.
"""

import re
from fractions import Fraction

from rules.aggregates.lattice import LARGEST, find_lattice
from rules.bind.table import type_domain
from rules.functions.context import EvalContext
from rules.functions.guard import as_value
from rules.kernel.summand import Lattice, Summand
from rules.refusal import NotAllowed, NotSupported
from rules.values import domain
from rules.values.domain import Anything, Range
from rules.values.expression import Apply, Column, Expression

_PLAIN = re.compile(r"[a-z_][a-z0-9_$]*")  # a name that needs no quotes
_WIDE = 10**7  # from here on a type's own range is no bound to sum by


def clip(expression: Expression, rows: int, name: str) -> Summand:
    """A number of a sum and its lattice; `rows` of its integers must not overflow."""
    if not expression.type.is_number:
        seconds = f"Use its seconds: {name}(extract(epoch FROM x)) * interval '1 second'."
        hint = seconds if expression.type.kind == "interval" else "Count the values, or aggregate a number."
        raise NotSupported(f"{name} of {expression.type.sql} is not supported over protected rows", hint=hint)
    bounds = _bounds(expression)
    if bounds.low is None or bounds.high is None or _is_bounded_by_type(expression, bounds):
        raise _unbounded(expression, name)
    lattice = find_lattice(bounds.low, bounds.high, bounds.step, rows, binary=expression.type.kind == "float")
    if lattice is None:
        raise NotAllowed(f"the bounds of {name} include none of its values", hint="Use wider bounds.")
    return Summand(_unclamped(expression), lattice)


def clip_widely(argument: Expression, setting: EvalContext, name: str) -> Summand:
    """A number where no sensitivity rests on its bounds: without any it is clamped where integers stay exact."""
    expression = as_value(argument, setting)
    if expression.type.is_number:
        bounds, kind = _bounds(expression), expression.type.kind
        if bounds.low is None or bounds.high is None or (kind != "integer" and _is_bounded_by_type(expression, bounds)):
            step = Fraction(1, 2**20) if kind == "float" else _decimal_step(bounds.step)
            return Summand(_unclamped(expression), Lattice(step, -LARGEST, LARGEST))
        lattice = find_lattice(bounds.low, bounds.high, bounds.step, 1, binary=kind == "float")
        if lattice is not None:
            return Summand(_unclamped(expression), lattice)
    return clip(expression, 1, name)


def _decimal_step(step: Fraction | None) -> Fraction:
    """The power of ten of which all values are multiples, or a millionth."""
    digits = next((digits for digits in range(13) if step is not None and (step * 10**digits).denominator == 1), 6)
    return Fraction(1, 10**digits)


def _bounds(expression: Expression) -> Range:
    """A column that is clamped says by which steps its values lie apart."""
    image = domain.range_of(expression.domain)
    match expression:
        case Apply(name="clamp", arguments=(Column() as column, *_)) if expression.type.kind in ("integer", "numeric"):
            own = domain.range_of(column.domain).step
            return Range(image.low, image.high, own if own is not None else image.step)
    return image


def _is_bounded_by_type(expression: Expression, bounds: Range) -> bool:
    """Return whether nothing but the width of a wide type bounds a column: noise for that would hide every answer."""
    reach = max(abs(bounds.low or Fraction(0)), abs(bounds.high or Fraction(0)))
    return reach >= _WIDE and any(
        isinstance(column.declared, Anything)
        and domain.range_of(column.domain) == domain.range_of(type_domain(column.type))
        for column in _summed(expression)
    )


def _unbounded(expression: Expression, name: str) -> NotAllowed:
    columns = tuple({column.name: column for column in _summed(expression) if column.name}.values())
    shown = ", ".join(f'"{column.name}"' for column in columns) or "its argument"
    what = f"{shown} {'have' if len(columns) > 1 else 'has'} no bounds"
    first = next((column.name for column in columns), "x")
    written = first if _PLAIN.fullmatch(first) else f'"{first}"'
    instead = f"clamp it, as in least(greatest({written}, 0), 100)"
    if columns and columns[0].type.is_time:
        instead = f"select a range: WHERE {written} >= '2024-01-01' AND {written} < '2025-01-01'"
    hint = f"Ask your DBA to set lower and upper in the rules file, or {instead}."
    return NotAllowed(f"{what}, so one row could change {name} by any amount", hint=hint)


def _summed(expression: Expression) -> list[Column]:
    """The columns of which a number is made; conditions of CASE choose, and bound nothing."""
    match expression:
        case Column():
            return [expression]
        case Apply(name="case", arguments=arguments):
            return [column for argument in (*arguments[1:-1:2], *arguments[-1:]) for column in _summed(argument)]
        case Apply(arguments=arguments):
            return [column for argument in arguments for column in _summed(argument)]
    return []


def _unclamped(expression: Expression) -> Expression:
    """A column below its clamp or its test for NaN, which the kernel makes anyway."""
    match expression:
        case Apply(name="clamp" | "seen", arguments=(Column() as column, *_)):
            return column
    return expression
