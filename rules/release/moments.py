"""Variances, covariances, correlation and regression, from noised moments around the middles of the bounds.

With u = x − mid(x) and v = y − mid(y), which are within ±half the width of the bounds: var(x) = Σu²/n − (Σu/n)², cut to
what bounds allow, and so on. As in PostgreSQL an answer is NULL where it is not defined, here by noised numbers alone.
Each statistic is one formula, of exact fractions for what is shown and of doubles for replicates of it.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Final, Generic, Protocol, TypeVar

import numpy as np

from rules.frozen import frozen
from rules.mechanisms.noised_outputs import Matrix, Moment, Spread, Statistic

N = TypeVar("N", Fraction, Matrix)

_FINE: Final = 2.0**20  # how many widths from zero bounds may lie, so that a double tells where between them a value is


@frozen
class ColumnMoments(Generic[N]):
    """Mean and population variance of a column."""

    mean: N
    variance: N


@frozen
class Moments(Generic[N]):
    """All that statistics are computed from. Of one column alone, y is x."""

    rows: N
    x: ColumnMoments[N]
    y: ColumnMoments[N]
    covariance: N
    explained: N  # the share of y's variance that x explains, at most 1; 1 where y does not vary


@frozen
class Root:
    """A number that is the root of a fraction, with a sign: exact until its digits are printed."""

    square: Fraction
    negative: bool = False


class _Of(Protocol):
    def __call__(self, moments: Moments[N], /) -> N: ...


@frozen
class Formula:
    """One statistic, and where it is NULL: with fewer rows, or where one of these columns does not vary."""

    of: _Of
    columns: int = 2
    least_rows: int = 1
    varying: str = ""
    is_root: bool = False  # what is computed is the square; its sign is the covariance's


FORMULAS: dict[str, Formula] = {}
"""Statistics by PostgreSQL's names: whoever adds one adds it here alone."""


def _statistic(
    name: str, *, columns: int = 2, least_rows: int = 1, varying: str = "", is_root: bool = False
) -> Callable[[_Of], _Of]:
    def register(of: _Of) -> _Of:
        FORMULAS[name] = Formula(of, columns, least_rows, varying, is_root)
        return of

    return register


@_statistic("var_pop", columns=1)
@_statistic("stddev_pop", columns=1, is_root=True)
def _variance(moments: Moments[N]) -> N:
    return moments.x.variance


@_statistic("var_samp", columns=1, least_rows=2)
@_statistic("stddev_samp", columns=1, least_rows=2, is_root=True)
def _sample_variance(moments: Moments[N]) -> N:
    return moments.x.variance * moments.rows / (moments.rows - 1)


@_statistic("covar_pop")
def _covariance(moments: Moments[N]) -> N:
    return moments.covariance


@_statistic("covar_samp", least_rows=2)
def _sample_covariance(moments: Moments[N]) -> N:
    return moments.covariance * moments.rows / (moments.rows - 1)


@_statistic("corr", varying="xy", is_root=True)
@_statistic("regr_r2", varying="x")
def _explained(moments: Moments[N]) -> N:
    return moments.explained


@_statistic("regr_slope", varying="x")
def _slope(moments: Moments[N]) -> N:
    return moments.covariance / moments.x.variance


@_statistic("regr_intercept", varying="x")
def _intercept(moments: Moments[N]) -> N:
    return moments.y.mean - moments.covariance / moments.x.variance * moments.x.mean


@_statistic("regr_avgx")
def _mean_of_x(moments: Moments[N]) -> N:
    return moments.x.mean


@_statistic("regr_avgy")
def _mean_of_y(moments: Moments[N]) -> N:
    return moments.y.mean


@_statistic("regr_sxx")
def _squares_of_x(moments: Moments[N]) -> N:
    return moments.x.variance * moments.rows


@_statistic("regr_syy")
def _squares_of_y(moments: Moments[N]) -> N:
    return moments.y.variance * moments.rows


@_statistic("regr_sxy")
def _products(moments: Moments[N]) -> N:
    return moments.covariance * moments.rows


def compute(statistic: Statistic, measures: Sequence[int]) -> Fraction | Root | None:
    """Return the statistic exactly, or None where PostgreSQL has NULL."""
    formula, rows = FORMULAS[statistic.kind], Fraction(measures[statistic.count])
    if rows < formula.least_rows:
        return None
    x, offset_x = _exact_column(statistic.x, rows, measures)
    y, covariance = x, Fraction(0)
    if formula.columns == 2:
        if statistic.y is None or statistic.products is None:
            raise ValueError(f"{statistic.kind} is a statistic of two columns")
        y, offset_y = _exact_column(statistic.y, rows, measures)
        limit = _half(statistic.x) * _half(statistic.y)
        covariance = _within(limit, _total(statistic.products, measures) / rows - offset_x * offset_y)
    variances = {"x": x.variance, "y": y.variance}
    if not all(variances[name] for name in formula.varying):
        return None
    both = x.variance * y.variance
    explained = min(Fraction(1), covariance**2 / both) if both else Fraction(1)
    computed = formula.of(Moments(rows, x, y, covariance, explained))
    return Root(computed, negative=covariance < 0) if formula.is_root else computed


def replicated(statistic: Statistic, measures: list[Matrix]) -> Matrix | None:
    """Return the statistic of every replicate, NaN where it is NULL; None where doubles do not tell it well enough."""
    if not all(_is_fine(spread) for spread in (statistic.x, statistic.y) if spread is not None):
        return None
    formula, rows = FORMULAS[statistic.kind], measures[statistic.count]
    x, offset_x = _column(statistic.x, rows, measures)
    y, covariance = x, np.zeros_like(rows)
    if statistic.y is not None and statistic.products is not None:
        y, offset_y = _column(statistic.y, rows, measures)
        limit = float(_half(statistic.x) * _half(statistic.y))
        products = measures[statistic.products.measure] * float(statistic.products.unit) / rows
        covariance = np.clip(products - offset_x * offset_y, -limit, limit)
    explained = np.minimum(covariance**2 / (x.variance * y.variance), 1.0)
    statistics = formula.of(Moments(rows, x, y, covariance, np.where(y.variance > 0, explained, 1.0)))
    if formula.is_root:
        statistics = np.where(covariance < 0, -1.0, 1.0) * np.sqrt(statistics)
    is_defined = rows >= formula.least_rows
    for name in formula.varying:
        is_defined &= {"x": x.variance, "y": y.variance}[name] > 0
    return np.where(is_defined, statistics, np.nan)


def _exact_column(spread: Spread, rows: Fraction, measures: Sequence[int]) -> tuple[ColumnMoments[Fraction], Fraction]:
    """Return a column, and how far its mean lies from the middle of its bounds."""
    half = _half(spread)
    offset = _within(half, _total(spread.total, measures) / rows)
    variance = _total(spread.squares, measures) / rows - offset**2
    return ColumnMoments((spread.low + spread.high) / 2 + offset, max(Fraction(0), min(variance, half**2))), offset


def _column(spread: Spread, rows: Matrix, measures: list[Matrix]) -> tuple[ColumnMoments[Matrix], Matrix]:
    half = float(_half(spread))
    offset = np.clip(measures[spread.total.measure] * float(spread.total.unit) / rows, -half, half)
    squares = measures[spread.squares.measure] * float(spread.squares.unit) / rows
    middle = float(spread.low + spread.high) / 2
    return ColumnMoments(offset + middle, np.clip(squares - offset**2, 0.0, half**2)), offset


def _half(spread: Spread) -> Fraction:
    return (spread.high - spread.low) / 2


def _is_fine(spread: Spread) -> bool:
    return float(abs(spread.low) + abs(spread.high)) <= _FINE * float(spread.high - spread.low)


def _total(moment: Moment, measures: Sequence[int]) -> Fraction:
    return measures[moment.measure] * moment.unit


def _within(half: Fraction, number: Fraction) -> Fraction:
    return max(-half, min(number, half))
