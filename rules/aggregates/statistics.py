"""Variances, correlation and regression as moments: sums of centred integers, of their squares and products.

With d = 2q − (low + high), which is within ± the width of the bounds, Σd, Σd² and Σdx·dy are sums of integers as any
other. Where the width is so large that squares would not stay exact, q is put on a coarser lattice.
"""

from fractions import Fraction
from math import ceil, floor

from rules.aggregates.contributions import Recipe, is_always_there, where
from rules.aggregates.lattice import LARGEST
from rules.aggregates.sum_bounds import clip
from rules.bind.expression import Binding
from rules.functions.guard import as_value
from rules.kernel.measures import Products, Sum, Values
from rules.kernel.sensitivity import MOST_SENSITIVE
from rules.kernel.summand import Lattice, Summand
from rules.mechanisms.noised_outputs import Count, Moment, Output, Spread, Statistic
from rules.refusal import NotAllowed
from rules.release.moments import FORMULAS
from rules.values.expression import Expression, condition
from rules.values.types import FLOAT8, INT8, NUMERIC

DIGITS = 16
_SEEN = {"integer": "({0}) IS NOT NULL", "numeric": "(({0}) <> 'NaN') IS TRUE", "float": "(({0}) <> 'NaN') IS TRUE"}
_ALIASES = {"variance": "var_samp", "stddev": "stddev_samp"}
OF_ONE = {name: name for name, formula in FORMULAS.items() if formula.columns == 1} | _ALIASES
OF_TWO = FORMULAS.keys() - OF_ONE.keys() | {"regr_count"}


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
    """Squares of the centred integer stay exact, and `rows` of them within what noise can be drawn for."""
    lattice = summand.lattice
    factor = 1
    while _reach(lattice, factor) ** 2 > min(LARGEST, MOST_SENSITIVE // rows):
        factor *= 2
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
