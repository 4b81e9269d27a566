"""Variances, covariances, correlation and regression, from noised moments around the middles of the bounds.

With u = x − mid(x) and v = y − mid(y), which are within ±half the width of the bounds: var(x) = Σu²/n − (Σu/n)², cut to
what bounds allow, and so on. As in PostgreSQL an answer is NULL where it is not defined, here by noised numbers alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from rules.mechanisms.noised_outputs import Moment, Spread, Statistic


@dataclass(frozen=True, slots=True)
class Root:
    """A number that is the root of a fraction, with a sign: exact until its digits are printed."""

    square: Fraction
    negative: bool = False


Number = Fraction | Root


@dataclass(frozen=True, slots=True)
class _Column:
    """Mean and population variance of a column."""

    mean: Fraction
    variance: Fraction


def compute(statistic: Statistic, measures: Sequence[int]) -> Number | None:
    """The statistic, or None where PostgreSQL has NULL."""
    rows = measures[statistic.count]
    if rows < (2 if statistic.kind.endswith("_samp") else 1):
        return None
    x = _column(statistic.x, rows, measures)
    if statistic.y is None or statistic.products is None:
        return _of_one(statistic, x, rows)
    y = _column(statistic.y, rows, measures)
    return _of_two(statistic, x, y, _covariance(statistic.x, statistic.y, statistic.products, rows, measures), rows)


def _of_one(statistic: Statistic, x: _Column, rows: int) -> Number:
    match statistic.kind:
        case "var_pop":
            return x.variance
        case "var_samp":
            return x.variance * rows / (rows - 1)
        case "stddev_pop":
            return Root(x.variance)
        case "stddev_samp":
            return Root(x.variance * rows / (rows - 1))
        case other:
            raise ValueError(f"{other} is a statistic of two columns")


def _of_two(statistic: Statistic, x: _Column, y: _Column, covariance: Fraction, rows: int) -> Number | None:
    match statistic.kind:
        case "corr":
            return _correlation(x, y, covariance)
        case "regr_r2":
            return _determination(x, y, covariance)
        case "regr_slope" | "regr_intercept" if not x.variance:
            return None
        case "regr_slope":
            return covariance / x.variance
        case "regr_intercept":
            return y.mean - covariance / x.variance * x.mean
        case "covar_samp":
            return covariance * rows / (rows - 1)
        case kind:
            return {
                "covar_pop": covariance,
                "regr_avgx": x.mean,
                "regr_avgy": y.mean,
                "regr_sxx": x.variance * rows,
                "regr_syy": y.variance * rows,
                "regr_sxy": covariance * rows,
            }[kind]


def _column(spread: Spread, rows: int, measures: Sequence[int]) -> _Column:
    half = (spread.high - spread.low) / 2
    offset = _within(half, _total(spread.total, measures) / rows)
    variance = _total(spread.squares, measures) / rows - offset**2
    return _Column((spread.low + spread.high) / 2 + offset, max(Fraction(0), min(variance, half**2)))


def _covariance(x: Spread, y: Spread, products: Moment, rows: int, measures: Sequence[int]) -> Fraction:
    half_x, half_y = (x.high - x.low) / 2, (y.high - y.low) / 2
    offset_x = _within(half_x, _total(x.total, measures) / rows)
    offset_y = _within(half_y, _total(y.total, measures) / rows)
    return _within(half_x * half_y, _total(products, measures) / rows - offset_x * offset_y)


def _correlation(x: _Column, y: _Column, covariance: Fraction) -> Root | None:
    if not (x.variance and y.variance):
        return None
    return Root(min(Fraction(1), covariance**2 / (x.variance * y.variance)), negative=covariance < 0)


def _determination(x: _Column, y: _Column, covariance: Fraction) -> Fraction | None:
    """As PostgreSQL has it: NULL where x does not vary, 1 where y does not."""
    if not x.variance:
        return None
    return min(Fraction(1), covariance**2 / (x.variance * y.variance)) if y.variance else Fraction(1)


def _total(moment: Moment, measures: Sequence[int]) -> Fraction:
    return measures[moment.measure] * moment.unit


def _within(half: Fraction, number: Fraction) -> Fraction:
    return max(-half, min(number, half))
