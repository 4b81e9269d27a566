"""noisegate.typical(expression over aggregates, lower, upper, blocks => n): the median of a statistic of many blocks.

The statistic needs no known sensitivity: whatever one unit does, it replaces the value of one block. What is released
is a candidate between the bounds, chosen by how many blocks lie below and above it (sample and aggregate).
"""

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

from rules.aggregates.block_statistics import BlockReading
from rules.aggregates.contributions import Recipe, Typical
from rules.bind.expression import Binding
from rules.bind.walk_syntax import is_plain_aggregate
from rules.kernel.blocks import MOST_BLOCKS, BlockValue, Cells
from rules.mechanisms.noised_outputs import Chosen, Ends
from rules.mechanisms.release_plan import End
from rules.refusal import BadSetting, NotSupported, pointing_at
from rules.sql import syntax as s
from rules.values.expression import Constant, Expression, Operand
from rules.values.types import FLOAT8
from rules.values.value import text_of

CANDIDATES = 1001  # a thousandth of the bounds apart
_HINT = (
    "Put an expression over aggregates first, then a lower and an upper bound: noisegate.typical(corr(a, b), -1, 1)."
)


def typical(call: s.Call, binding: Binding) -> Recipe:
    """The recipe of a typical value."""
    if not 3 <= len(call.arguments) <= 4:
        raise NotSupported("noisegate.typical takes an expression, two bounds and a number of blocks", hint=_HINT)
    statistic, lower, upper = call.arguments[:3]
    _check_total(statistic)
    reading = BlockReading(binding)
    value = replace(binding, leaf=_leaf(reading)).bind(statistic)
    if not value.type.is_number:
        raise NotSupported(
            f"noisegate.typical of {value.type.sql} is not supported", hint="Its value must be a number."
        )
    if not reading.aggregates:
        raise NotSupported("noisegate.typical needs an aggregate inside", hint=_HINT)
    low, high = _bound(lower, "lower", binding), _bound(upper, "upper", binding)
    if low >= high:
        message = "the lower bound of noisegate.typical must be below its upper bound"
        raise BadSetting(message, hint="Give the lower bound first: noisegate.typical(corr(a, b), -1, 1).")
    said = BlockValue(tuple(reading.aggregates), value, Cells(low, high, CANDIDATES))
    digits = _digits((high - low) / (CANDIDATES - 1))
    texts = tuple(_text(value, digits) for value in said.cells.values)
    return _recipe(Typical(said, texts, _blocks(call, binding)), said.cells)


def _recipe(part: Typical, cells: Cells) -> Recipe:
    half = (cells.high - cells.low) / (CANDIDATES - 1) / 2

    def barred(level: Decimal) -> Recipe:
        """Return how far the blocks lie apart only their own ranks can tell: two more draws."""
        middle = replace(part, level=level)
        low, high = replace(middle, end=End(-1, level)), replace(middle, end=End(1, level))
        lowest = tuple(text_of(max(value - half, cells.low), FLOAT8) for value in cells.values)
        highest = tuple(text_of(min(value + half, cells.high), FLOAT8) for value in cells.values)

        def output(numbers: tuple[int, ...]) -> Chosen:
            return Chosen(numbers[0], part.candidates, Ends(numbers[1], numbers[2], lowest, highest))

        return Recipe((middle, low, high), output, FLOAT8)

    return Recipe((part,), lambda numbers: Chosen(numbers[0], part.candidates), FLOAT8, barred=barred)


def _leaf(reading: BlockReading) -> Callable[[s.Expression], Operand | None]:
    """In the expression aggregates mean numbers of a block, and nothing means a row or a group."""

    def leaf(expression: s.Expression) -> Operand | None:
        match expression:
            case s.Call() if is_plain_aggregate(expression):
                with pointing_at(expression.name):
                    return reading.aggregate(expression)
            case s.Name(parts=(*_, name)):
                message = f'column "{name}" must be used in an aggregate inside of noisegate.typical'
                raise NotSupported(message, hint="Its value follows from the rows of a block alone.")
        return None

    return leaf


def _check_total(statistic: s.Expression) -> None:
    """A block's count or sum grows with the block: its median is no number of all."""
    inner = statistic
    while isinstance(inner, s.Cast):
        inner = inner.argument
    if isinstance(inner, s.Call) and inner.name in ("count", "sum") and is_plain_aggregate(inner):
        message = "a block's total says nothing of the whole"
        raise NotSupported(message, hint=f"Divide it, or ask {inner.name}() itself.", about="typical")


def _bound(written: s.Expression, name: str, binding: Binding) -> Fraction:
    bound = binding.bind(written)
    value = bound.value if isinstance(bound, Constant) else None
    if not isinstance(value, Fraction):
        raise BadSetting(f"the {name} bound of noisegate.typical must be a constant number", hint=_HINT)
    return value


def _blocks(call: s.Call, binding: Binding) -> int | None:
    """As many as are asked for; NULL and nothing mean as many as ε needs."""
    if len(call.arguments) < 4:
        return None
    bound: Expression = binding.bind(call.arguments[3])
    if isinstance(bound, Constant) and bound.text is None:
        return None
    value = bound.value if isinstance(bound, Constant) else None
    if not isinstance(value, Fraction) or value.denominator != 1 or not 1 <= value <= MOST_BLOCKS:
        message = f"the number of blocks must be a whole number from 1 to {MOST_BLOCKS:,}"
        raise BadSetting(message, hint="Leave it out to have as many as epsilon needs.")
    return int(value)


def _digits(step: Fraction) -> int:
    """So many behind the point that a candidate is told to a tenth of a step."""
    digits = 0
    while Fraction(1, 10**digits) > step / 10:
        digits += 1
    return digits


def _text(value: Fraction, digits: int) -> str | None:
    return text_of(Fraction(round(value * 10**digits), 10**digits), FLOAT8)
