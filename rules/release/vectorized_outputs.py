"""Outputs over hundreds of replicates of many groups at once, in doubles.

What is shown of an answer is computed exactly (`noise.outputs`). Replicates are what it might be, hundreds of times for
each group, so their order and their digits come from doubles, which tell values apart far below the noise.
"""

import numpy as np

from rules.mechanisms.noised_outputs import Average, CentredSum, Count, Estimate, Output, Spread, Statistic, Sum
from rules.release.estimates import replicated
from rules.release.matrix import Matrix

_FINE = 2.0**20  # how many widths from zero bounds may lie, so that a double tells where between them a value is


def values(output: Output, measures: list[Matrix]) -> Matrix | None:
    """The output of every replicate, NaN where it is NULL; None for an output that doubles do not tell well enough."""
    with np.errstate(all="ignore"):  # what is not defined is NaN, and is asked for below
        match output:
            case Count(measure=measure, shown_bare=shown_bare):
                return np.maximum(measures[measure], 0.0) if shown_bare else measures[measure]
            case Sum(measure=measure, step=step):
                return measures[measure] * float(step)
            case CentredSum(halves=halves, count=count, step=step, middle=middle):
                return (measures[halves] + float(middle) * measures[count]) * float(step / 2)
            case Average():
                return _average(output, measures)
            case Estimate():
                return replicated(output, measures)
            case Statistic(x=x, y=y) if _is_fine(x) and (y is None or _is_fine(y)):
                return _statistic(output, measures)
    return None


def arrays(numbers: Matrix, digits: int) -> list[str]:
    """Every row as an array in PostgreSQL's text."""
    width = numbers.shape[1]
    row = "{" + ",".join([f"%.{digits}f"] * width) + "}"
    written = (row % tuple(each) for each in numbers.tolist())
    return [each.replace("nan", "NULL") for each in written] if np.isnan(numbers).any() else list(written)


def _average(output: Average, measures: list[Matrix]) -> Matrix | None:
    low, high = float(output.low), float(output.high)
    if abs(low) + abs(high) > _FINE * (high - low):
        return None
    count = measures[output.count]
    mean = np.where(count > 0, measures[output.halves] / count * float(output.step / 2), 0.0)
    return np.clip((low + high) / 2 + mean, low, high)


def _is_fine(spread: Spread) -> bool:
    return float(abs(spread.low) + abs(spread.high)) <= _FINE * float(spread.high - spread.low)


def _statistic(output: Statistic, measures: list[Matrix]) -> Matrix:
    """As `noise.moments` has it."""
    rows = measures[output.count]
    offset, variance = _column(output.x, rows, measures)
    if output.y is None or output.products is None:
        found = variance * rows / (rows - 1) if output.kind.endswith("_samp") else variance
        return _where_defined(output, rows, np.sqrt(found) if output.kind.startswith("stddev") else found)
    other, other_variance = _column(output.y, rows, measures)
    limit = float((output.x.high - output.x.low) * (output.y.high - output.y.low)) / 4
    products = measures[output.products.measure] * float(output.products.unit) / rows
    covariance = np.clip(products - offset * other, -limit, limit)
    x_mean, y_mean = offset + _middle(output.x), other + _middle(output.y)
    found = _of_two(output, rows, (x_mean, variance), (y_mean, other_variance), covariance)
    return _where_defined(output, rows, found)


def _of_two(
    output: Statistic, rows: Matrix, x: tuple[Matrix, Matrix], y: tuple[Matrix, Matrix], covariance: Matrix
) -> Matrix:
    (x_mean, x_variance), (y_mean, y_variance) = x, y
    slope = np.where(x_variance > 0, covariance / x_variance, np.nan)
    explained = np.minimum(covariance**2 / (x_variance * y_variance), 1.0)
    both = (x_variance > 0) & (y_variance > 0)
    match output.kind:
        case "corr":
            return np.where(both, np.sign(covariance) * np.sqrt(explained), np.nan)
        case "regr_r2":
            return np.where(x_variance > 0, np.where(y_variance > 0, explained, 1.0), np.nan)
        case "regr_slope":
            return slope
        case "regr_intercept":
            return y_mean - slope * x_mean
        case "covar_samp":
            return covariance * rows / (rows - 1)
    return {
        "covar_pop": covariance,
        "regr_avgx": x_mean,
        "regr_avgy": y_mean,
        "regr_sxx": x_variance * rows,
        "regr_syy": y_variance * rows,
        "regr_sxy": covariance * rows,
    }[output.kind]


def _column(spread: Spread, rows: Matrix, measures: list[Matrix]) -> tuple[Matrix, Matrix]:
    """How far the mean lies from the middle, and the variance."""
    half = float(spread.high - spread.low) / 2
    offset = np.clip(measures[spread.total.measure] * float(spread.total.unit) / rows, -half, half)
    squares = measures[spread.squares.measure] * float(spread.squares.unit) / rows
    return offset, np.clip(squares - offset**2, 0.0, half**2)


def _middle(spread: Spread) -> float:
    return float(spread.low + spread.high) / 2


def _where_defined(output: Statistic, rows: Matrix, found: Matrix) -> Matrix:
    return np.where(rows >= (2 if output.kind.endswith("_samp") else 1), found, np.nan)
