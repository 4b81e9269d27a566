"""Variances, correlation and regression as moments: sums of centred integers, of their squares and products.

With d = 2q − (low + high), which is within ± the width of the bounds, Σd, Σd² and Σdx·dy are sums of integers as any
other (DESIGN section 4). Where the width is so large that squares would not stay exact, q is put on a coarser lattice.
"""

from fractions import Fraction
from math import ceil, floor
from typing import cast

from rules.noise.lattice import LARGEST, MOST_SENSITIVE, Lattice
from rules.noise.measures import Count, Moment, Output, Spread, Statistic, StatisticKind
from rules.refusal import NotAllowed
from rules.relation.bind_expression import Binding
from rules.relation.domain import ONE, Range
from rules.relation.expression import Apply, Expression
from rules.relation.functions.guard import as_value
from rules.relation.types import FLOAT8, INT8, NUMERIC
from rules.rewrite.clip_sums import Summand, clip
from rules.rewrite.contributions import Recipe, RowSum, ValueCount, where

DIGITS = 16
OF_ONE: dict[str, StatisticKind] = {
    "variance": "var_samp",
    "var_samp": "var_samp",
    "var_pop": "var_pop",
    "stddev": "stddev_samp",
    "stddev_samp": "stddev_samp",
    "stddev_pop": "stddev_pop",
}
OF_TWO = frozenset(
    (
        "covar_pop covar_samp corr regr_slope regr_intercept regr_r2 regr_avgx regr_avgy regr_sxx regr_syy regr_sxy "
        "regr_count"
    ).split()
)


def spread_of_one(name: str, argument: Expression, tested: Expression, binding: Binding, rows: int) -> Recipe:
    """A variance or standard deviation."""
    x = _summand(argument, tested, binding, rows, name)
    parts = (ValueCount(x.integer), _total(x), _square(x))

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
    count = ValueCount(x.integer)
    if name == "regr_count":
        return Recipe((count,), lambda numbers: Count(numbers[0]), INT8)
    parts = (count, _total(x), _square(x), _total(y), _square(y), _product(x, y))

    def output(numbers: tuple[int, ...]) -> Output:
        rows_at, x_total, x_squares, y_total, y_squares, products = numbers
        return Statistic(
            cast(StatisticKind, name),
            rows_at,
            _spread(x, x_total, x_squares),
            DIGITS,
            _spread(y, y_total, y_squares),
            Moment(products, x.lattice.step * y.lattice.step / 4),
        )

    return Recipe(parts, output, FLOAT8)


def _summand(argument: Expression, tested: Expression, binding: Binding, rows: int, name: str) -> Summand:
    given = _coarse_enough(clip(as_value(argument, binding.setting), rows, name), rows)
    return Summand(where(given, tested), given.lattice)


def _coarse_enough(given: Summand, rows: int) -> Summand:
    """Squares of the centred integer stay exact, and `rows` of them within what noise can be drawn for."""
    lattice = given.lattice
    factor = 1
    while _reach(lattice, factor) ** 2 > min(LARGEST, MOST_SENSITIVE // rows):
        factor *= 2
    if factor == 1:
        return given
    low, high = ceil(Fraction(lattice.low, factor)), floor(Fraction(lattice.high, factor))
    if low > high:
        raise NotAllowed("the bounds are too far from each other for squares to be exact", hint="Give narrower bounds.")
    sql = f"CASE WHEN {{0}} IS NOT NULL THEN least(greatest(round({{0}}::numeric / {factor}), {low}), {high})::int8 END"
    image = Range(Fraction(low), Fraction(high), ONE)
    coarse = Apply("coarser", sql, (given.integer,), INT8, image, given.integer.nullable)
    return Summand(coarse, Lattice(lattice.step * factor, low, high))


def _reach(lattice: Lattice, factor: int) -> int:
    return lattice.width // factor + 1


def _where_there(given: Summand, other: Summand) -> Summand:
    if not other.integer.nullable:
        return given
    sql = "CASE WHEN {0} IS NOT NULL THEN {1} END"
    integer = Apply("case", sql, (other.integer, given.integer), given.integer.type, given.integer.domain)
    return Summand(integer, given.lattice)


def _middle(given: Summand) -> int:
    return given.lattice.low + given.lattice.high


def _total(given: Summand) -> RowSum:
    return RowSum(given.integer, given.lattice.width, _middle(given))


def _square(given: Summand) -> RowSum:
    return _product(given, given)


def _product(one: Summand, two: Summand) -> RowSum:
    """dx·dy for each row; a bigint, since the lattices were made coarse enough."""
    factors = (f"(2 * {{0}}::int8 - ({_middle(one)}))", f"(2 * {{1}}::int8 - ({_middle(two)}))")
    reach = one.lattice.width * two.lattice.width
    image = Range(Fraction(-reach), Fraction(reach), ONE)
    nullable = one.integer.nullable or two.integer.nullable
    arguments = (one.integer, two.integer)
    return RowSum(Apply("product", " * ".join(factors), arguments, INT8, image, nullable), reach)


def _spread(given: Summand, total: int, squares: int) -> Spread:
    step, lattice = given.lattice.step, given.lattice
    return Spread(
        total=Moment(total, step / 2),
        squares=Moment(squares, step**2 / 4),
        low=lattice.low * step,
        high=lattice.high * step,
    )
