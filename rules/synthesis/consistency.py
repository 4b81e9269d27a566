"""Noised marginals made consistent: no cell below zero, one number of rows, and one distribution of each column."""

from collections.abc import Sequence

import numpy as np

from rules.synthesis.model import Floats, Marginal, Table

_ROUNDS = 4
_FITTING = 30  # rounds of iterative proportional fitting


def consistent(table: Table) -> tuple[float, list[Floats], list[Floats]]:
    """The number of rows, the distribution of each column, and each marginal over columns, as counts of rows."""
    pairs = [marginal for marginal in table.marginals if marginal.columns]
    total = _total(table.marginals)
    ones = [_one(column, len(each.bins), pairs, total) for column, each in enumerate(table.columns)]
    return total, ones, [_fitted(pair, ones, total) for pair in pairs]


def simplex(values: Floats, total: float) -> Floats:
    """The point nearest to these values of all that are not below zero and add up to a total."""
    ordered = np.sort(values, axis=None)[::-1]
    excess = (np.cumsum(ordered) - total) / np.arange(1, ordered.size + 1)
    last = int(np.nonzero(ordered > excess)[0][-1]) if np.any(ordered > excess) else 0
    result: Floats = np.maximum(values - excess[last], 0.0)
    return result


def _total(marginals: Sequence[Marginal]) -> float:
    """The mean of all sums that count every row, each weighted by its precision."""
    whole = [marginal for marginal in marginals if marginal.is_whole]
    weights = [1 / max(each.variance * each.cells, 1e-12) for each in whole]
    sums = [float(each.counts.sum()) for each in whole]
    return max(1.0, float(np.dot(weights, sums)) / sum(weights))


def _one(column: int, bins: int, marginals: Sequence[Marginal], total: float) -> Floats:
    """The distribution of one column: the mean of what all marginals with it say, weighted by precision."""
    found, weights = np.zeros(bins), 0.0
    for marginal in marginals:
        if column not in marginal.columns:
            continue
        others = tuple(axis for axis, other in enumerate(marginal.columns) if other != column)
        sums = marginal.counts.sum(axis=others)
        if not marginal.is_whole:  # capped cells: only the shape of it counts
            sums = sums * (total / max(float(sums.sum()), 1.0))
        weight = 1 / max(marginal.variance * marginal.cells / bins, 1e-12)
        found, weights = found + weight * sums, weights + weight
    return simplex(found / weights, total)


def _fitted(marginal: Marginal, ones: Sequence[Floats], total: float) -> Floats:
    """A marginal whose sums are the distributions of its columns."""
    table = marginal.counts.astype(np.float64)
    if not marginal.is_whole:
        table = table * (total / max(float(table.sum()), 1.0))
    for _ in range(_ROUNDS):
        for axis, column in enumerate(marginal.columns):
            table = table + _spread(ones[column] - _others(table, axis), axis, table)
        table = simplex(table, total)
    for _ in range(_FITTING):
        for axis, column in enumerate(marginal.columns):
            sums = _others(table, axis)
            factor = np.divide(ones[column], sums, out=np.zeros_like(sums), where=sums > 0)
            table = table * _along(factor, axis, table.ndim)
    whole = float(table.sum())
    return table * (total / whole) if whole > 0 else np.full_like(table, total / table.size)


def _others(table: Floats, axis: int) -> Floats:
    """The sums over all axes but one."""
    result: Floats = table.sum(axis=tuple(other for other in range(table.ndim) if other != axis))
    return result


def _spread(missing: Floats, axis: int, table: Floats) -> Floats:
    """Return what is missing along an axis, in equal parts over the other ones."""
    result: Floats = _along(missing, axis, table.ndim) * (table.shape[axis] / table.size)
    return result


def _along(values: Floats, axis: int, dimensions: int) -> Floats:
    shape = [1] * dimensions
    shape[axis] = -1
    return values.reshape(shape)
