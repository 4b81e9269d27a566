"""Noised marginals made consistent: no cell below zero, and one number of rows, one distribution of each column."""

from collections.abc import Sequence

import numpy as np

from rules.synthesis.model import Floats, Marginal, Table

Known = dict[tuple[int, ...], Floats]  # distributions by the columns that they are over

_ROUNDS = 4
_FITTING = 30  # rounds of iterative proportional fitting


def consistent(table: Table) -> tuple[float, list[Floats], list[Floats]]:
    """The number of rows, the distribution of each column, and each marginal over columns, as counts of rows."""
    pairs = [marginal for marginal in table.marginals if marginal.columns]
    total = _total(table.marginals)
    ones = [_one(column, len(each.bins), pairs, total) for column, each in enumerate(table.columns)]
    known: Known = {(column,): one for column, one in enumerate(ones)}
    goals: list[Floats] = []
    for marginal in pairs:  # the larger ones come last
        wider = [other for other in pairs if set(marginal.columns) < set(other.columns)]
        known[marginal.columns] = _fitted(_joined(marginal, wider, total), marginal.columns, known, total)
        goals.append(known[marginal.columns])
    return total, ones, goals


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
        sums = _whole(marginal, total).sum(axis=others)
        weight = 1 / max(marginal.variance * marginal.cells / bins, 1e-12)
        found, weights = found + weight * sums, weights + weight
    return simplex(found / weights, total)


def _joined(marginal: Marginal, wider: Sequence[Marginal], total: float) -> Floats:
    """The counts of a marginal: the mean of its own and of what wider ones add up to, weighted by precision."""
    found, weights = np.zeros(marginal.counts.shape), 0.0
    for each in (marginal, *wider):
        left_out = tuple(axis for axis, column in enumerate(each.columns) if column not in marginal.columns)
        weight = marginal.cells / max(each.variance * each.cells, 1e-12)
        found, weights = found + weight * _whole(each, total).sum(axis=left_out), weights + weight
    return found / weights


def _whole(marginal: Marginal, total: float) -> Floats:
    """The counts of a marginal; of one with capped cells only the shape of it counts."""
    counts = marginal.counts.astype(np.float64)
    return counts if marginal.is_whole else counts * (total / max(float(counts.sum()), 1.0))


def _fitted(table: Floats, columns: tuple[int, ...], known: Known, total: float) -> Floats:
    """Counts whose sums are the known distributions of all columns and pairs among theirs."""
    below = [(tuple(map(columns.index, part)), one) for part, one in known.items() if set(part) < set(columns)]
    for _ in range(_ROUNDS):
        for axes, one in below:
            missing = _along(one - _others(table, axes), axes, table.ndim)
            table = table + missing * (one.size / table.size)  # in equal parts over the other axes
        table = simplex(table, total)
    for _ in range(_FITTING):
        for axes, one in below:
            sums = _others(table, axes)
            factor = np.divide(one, sums, out=np.zeros_like(sums), where=sums > 0)
            table = table * _along(factor, axes, table.ndim)
    whole = float(table.sum())
    return table * (total / whole) if whole > 0 else np.full_like(table, total / table.size)


def _others(table: Floats, axes: tuple[int, ...]) -> Floats:
    """The sums over all other axes."""
    result: Floats = table.sum(axis=tuple(other for other in range(table.ndim) if other not in axes))
    return result


def _along(values: Floats, axes: tuple[int, ...], dimensions: int) -> Floats:
    shape = [1] * dimensions
    for axis, size in zip(axes, values.shape, strict=True):
        shape[axis] = size
    return values.reshape(shape)
