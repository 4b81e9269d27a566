"""Sums as integers: the bounds of what is summed, its lattice, and variances, correlation and regression as moments.

The bounds are advice: they follow from what is known of the number, which may be wrong. The kernel clamps every summand
to them last, as an integer, be it a column, a constant or computed, and however surely it seems to lie between them.

With d = 2q − (low + high), which is within ± the width of the bounds, Σd, Σd² and Σdx·dy are sums of integers as any
other. Where the width is so large that squares would not stay exact, q is put on a coarser lattice.
"""

import re
from fractions import Fraction
from functools import lru_cache
from math import ceil, floor

from rules.aggregates.contributions import Recipe, is_always_there, where
from rules.bind.declared_columns import type_domain
from rules.bind.expression import Binding
from rules.functions.function import EvalContext
from rules.functions.guard import as_value
from rules.kernel.added import SATURATION
from rules.kernel.measures import MOST_SENSITIVE, Products, Sum, Values
from rules.kernel.summand import Lattice, Summand
from rules.mechanisms.noised_outputs import Count, Moment, Output, Spread, Statistic
from rules.refusal import NotAllowed, NotSupported
from rules.release.moments import FORMULAS
from rules.values import domain
from rules.values.domain import Anything, Range
from rules.values.expression import Apply, Column, Expression, condition
from rules.values.types import FLOAT8, INT8, NUMERIC

_PLAIN = re.compile(r"[a-z_][a-z0-9_$]*")  # a name that needs no quotes
_WIDE = 10**7  # from here on a type's own range is no bound to sum by

LARGEST = 2**52  # of one row: exact in a double
_MOST_ROWS = 2**28  # of all units: so many at the ends of their bounds do not saturate a sum
_LARGEST_SUMMED = SATURATION // _MOST_ROWS  # of one row
_NOTHING = Fraction(0)
# Steps between the bounds of a double, and of a numeric whose scale nobody knows: so many that what rounding adds to
# the sum of _MOST_ROWS equal rows is less than the noise of one.
_FINE_BINARY = 2**30
_FINE_DECIMAL = 10**9
_SMALLEST_BINARY = Fraction(1, 2**80)
_SMALLEST_DECIMAL = Fraction(1, 10**24)
_FARTHEST = 10**120  # from zero
_DIGITS = 12
_MILLIONTH = Fraction(1, 10**6)

DIGITS = 16
_SEEN = {"integer": "({0}) IS NOT NULL", "numeric": "(({0}) <> 'NaN') IS TRUE", "float": "(({0}) <> 'NaN') IS TRUE"}
_ALIASES = {"variance": "var_samp", "stddev": "stddev_samp"}
OF_ONE = {name: name for name, formula in FORMULAS.items() if formula.columns == 1} | _ALIASES
OF_TWO = FORMULAS.keys() - OF_ONE.keys() | {"regr_count"}


def clip(expression: Expression, rows: int, name: str, *, is_centred: bool = True) -> Summand:
    """A number of a sum, or of distances from the middle, and its lattice; `rows` of its integers must not overflow."""
    if not expression.type.is_number:
        seconds = f"Use its seconds: {name}(extract(epoch FROM x)) * interval '1 second'."
        hint = seconds if expression.type.kind == "interval" else "Count the values, or aggregate a number."
        raise NotSupported(f"{name} of {expression.type.sql} is not supported over protected rows", hint=hint)
    bounds = _bounds(expression)
    if bounds.low is None or bounds.high is None or _is_bounded_by_type(expression, bounds):
        raise _unbounded(expression, name)
    _check_reach(bounds.low, bounds.high, name)
    summed = bounds.high - bounds.low if is_centred else max(abs(bounds.low), abs(bounds.high))
    is_float = expression.type.kind == "float"
    lattice = find_lattice(bounds.low, bounds.high, bounds.step, rows, binary=is_float, summed=summed)
    if lattice is None:
        raise NotAllowed(f"the bounds of {name} include none of its values", hint="Use wider bounds.")
    return Summand(_unclamped(expression), lattice)


def clip_widely(argument: Expression, setting: EvalContext, name: str) -> Summand:
    """A number where no sensitivity rests on its bounds: without any it is clamped where integers stay exact."""
    expression = as_value(argument, setting)
    if expression.type.is_number:
        bounds, kind = _bounds(expression), expression.type.kind
        if bounds.low is None or bounds.high is None or (kind != "integer" and _is_bounded_by_type(expression, bounds)):
            step = Fraction(1, 2**20) if kind == "float" else _power_of_ten(bounds.step) or _MILLIONTH
            return Summand(_unclamped(expression), Lattice(step, -LARGEST, LARGEST))
        lattice = find_lattice(bounds.low, bounds.high, bounds.step, 1, binary=kind == "float")
        if lattice is not None:
            return Summand(_unclamped(expression), lattice)
    return clip(expression, 1, name, is_centred=name != "sum")


def _check_reach(low: Fraction, high: Fraction, name: str) -> None:
    """Refuse what margins, which are doubles, cannot tell: the square of a sum is a double still."""
    if max(abs(low), abs(high)) > _FARTHEST:
        hint = "Clamp them, as in least(greatest(x, 0), 1000000), or ask your DBA to set narrower bounds."
        raise NotSupported(f"{name} of values that may lie beyond ±1e120 is not supported", hint=hint)


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
    if columns and columns[0].type.kind == "interval":
        hint = f"Clamp it, as in least(greatest({written}, interval '0'), interval '100 days')."
    if columns and columns[0].type.kind == "other":
        hint = f"Clamp the number that is made of it: {name}(least(greatest(…, 0), 100))."
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


@lru_cache(maxsize=1024)
def find_lattice(
    low: Fraction, high: Fraction, step: Fraction | None, rows: int, *, binary: bool, summed: Fraction = _NOTHING
) -> Lattice | None:
    """A lattice on which `rows` rows of a unit stay in range, or None when no multiple of the step fits the bounds.

    `summed` is the most that one row adds to a sum, which must not saturate by the rows of a large table. Where that is
    its distance from the middle, a narrow range far from zero keeps its steps: what a double can tell limits them.

    Example:
        >>> find_lattice(Fraction(0), Fraction("99.995"), Fraction("0.01"), rows=40, binary=False)
        Lattice(step=Fraction(1, 100), low=0, high=9999)
    """
    finest = chosen = _binary_step(high - low) if binary else _decimal_step(high - low, step)
    most = min(_LARGEST_SUMMED, MOST_SENSITIVE // (2 * max(rows, 1)))
    while max(abs(low), abs(high)) / chosen > LARGEST or summed / chosen >= most:
        chosen *= 2 if binary else 10
    first, last = ceil(low / chosen), floor(high / chosen)
    if first <= last:
        return Lattice(chosen, first, last)
    if step is not None and chosen == finest:
        return None
    nearest = round((low + high) / 2 / chosen)  # narrow bounds so far from zero that a step is wider than they are
    return Lattice(chosen, nearest, nearest)


@lru_cache(maxsize=1024)
def digits_of(lattice: Lattice) -> int:
    """Digits after the point that every multiple of the step has at most."""
    digits = 0
    while (lattice.step * 10**digits).denominator != 1:
        digits += 1
    return digits


def _binary_step(width: Fraction) -> Fraction:
    """A power of two: division by it is exact in a double."""
    step = _SMALLEST_BINARY
    while step * _FINE_BINARY * 2 <= width:
        step *= 2
    return step


def _decimal_step(width: Fraction, step: Fraction | None) -> Fraction:
    """The power of ten of which all values are multiples, or one that is fine enough for the range."""
    chosen = _power_of_ten(step)
    if chosen is not None:
        return chosen
    chosen = _SMALLEST_DECIMAL
    while chosen * _FINE_DECIMAL * 10 <= width:
        chosen *= 10
    return chosen


def _power_of_ten(step: Fraction | None) -> Fraction | None:
    """The largest power of ten up to one of which all multiples of a step are multiples, if there is any."""
    if step is None:
        return None
    powers = (Fraction(1, 10**digits) for digits in range(_DIGITS + 1))
    return next((power for power in powers if (step / power).denominator == 1), None)


def spread_of_one(name: str, argument: Expression, tested: Expression, binding: Binding, rows: int) -> Recipe:
    """A variance or standard deviation."""
    x = _summand(argument, tested, binding, rows, name)
    parts = (Values(x), Sum(x, centred=True), Products(x, x))

    def output(numbers: tuple[int, ...]) -> Output:
        return Statistic(OF_ONE[name], numbers[0], _spread(x, numbers[1], numbers[2]), DIGITS)

    return Recipe(parts, output, FLOAT8 if argument.type.kind == "float" else NUMERIC)


def spread_of_two(
    name: str, y_argument: Expression, x_argument: Expression, tested: Expression, binding: Binding, rows: int
) -> Recipe:
    """A statistic of pairs, of which PostgreSQL names y first. A row counts where both values are there."""
    y_alone = _summand(y_argument, tested, binding, rows, name)
    x_alone = _summand(x_argument, tested, binding, rows, name)
    y, x = _where_there(y_alone, x_alone), _where_there(x_alone, y_alone)
    count = Values(x)
    if name == "regr_count":
        return Recipe((count,), lambda numbers: Count(numbers[0]), INT8)
    parts = (count, Sum(x, centred=True), Products(x, x), Sum(y, centred=True), Products(y, y), Products(x, y))

    def output(numbers: tuple[int, ...]) -> Output:
        rows_at, x_total, x_squares, y_total, y_squares, products = numbers
        return Statistic(
            name,
            rows_at,
            _spread(x, x_total, x_squares),
            DIGITS,
            _spread(y, y_total, y_squares),
            Moment(products, x.lattice.step * y.lattice.step / 4),
        )

    return Recipe(parts, output, FLOAT8)


def _summand(argument: Expression, tested: Expression, binding: Binding, rows: int, name: str) -> Summand:
    return where(_coarse_enough(clip(as_value(argument, binding.setting), rows, name), rows), tested)


def _coarse_enough(summand: Summand, rows: int) -> Summand:
    """Squares of the centred integer do not saturate, and `rows` of them are within what noise can be drawn for.

    By powers of ten, so that 33.25 stays what it is; of doubles by powers of two.
    """
    lattice, times = summand.lattice, 2 if summand.expression.type.kind == "float" else 10
    factor = 1
    while _reach(lattice, factor) ** 2 > min(_LARGEST_SUMMED, MOST_SENSITIVE // rows):
        factor *= times
    if factor == 1:
        return summand
    low, high = ceil(Fraction(lattice.low, factor)), floor(Fraction(lattice.high, factor))
    if low > high:
        raise NotAllowed("the bounds are too wide for exact sums of squares", hint="Use narrower bounds.")
    return Summand(summand.expression, Lattice(lattice.step * factor, low, high))


def _reach(lattice: Lattice, factor: int) -> int:
    return lattice.width // factor + 1


def _where_there(summand: Summand, other: Summand) -> Summand:
    if is_always_there(other):
        return summand
    seen = condition("is a number", _SEEN[other.expression.type.kind], other.expression, nullable=False, strict=False)
    return where(summand, seen)


def _spread(summand: Summand, total: int, squares: int) -> Spread:
    step, lattice = summand.lattice.step, summand.lattice
    return Spread(
        total=Moment(total, step / 2),
        squares=Moment(squares, step**2 / 4),
        low=lattice.low * step,
        high=lattice.high * step,
    )
