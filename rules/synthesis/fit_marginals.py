"""Fit rows to noised marginals, which are made consistent before: no cell below zero, one distribution of each column.

Rows move by gradual update (PrivSyn): those of cells with too many to cells with too few.
Rows are numbers of bins. Half of the rows that move become copies of a row that is in the cell already, which keeps the
patterns of other columns; of the others only the marginal's own columns are set.
"""

from collections.abc import Callable, Sequence

import numpy as np

from rules.synthesis.model import Floats, Marginal, Table, Whole

Known = dict[tuple[int, ...], Floats]  # distributions by the columns that they are over
_ROUNDS = 4
_FITTING = 30  # rounds of iterative proportional fitting
_SWEEPS = 60
_STEADY = 5  # sweeps with whole steps; then each is a little shorter
_SHORTER = 0.93
_LEAST = 20  # sweeps before a fit may end
_ENOUGH = 0.99  # of the error five sweeps ago


def consistent(table: Table) -> tuple[float, list[Floats], list[Floats]]:
    """The number of rows, the distribution of each column, and each marginal over columns, as counts of rows."""
    pairs = [marginal for marginal in table.marginals if marginal.columns]
    total = _total(table.marginals)
    ones = [_one(column, len(spec.bins), pairs, total) for column, spec in enumerate(table.columns)]
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
    weights = [1 / max(marginal.variance * marginal.cells, 1e-12) for marginal in whole]
    sums = [float(marginal.counts.sum()) for marginal in whole]
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


def fit_rows(
    columns: Sequence[Floats], marginals: Sequence[tuple[tuple[int, ...], Floats]], rows: int,
    random: np.random.Generator, is_late: Callable[[], bool],
) -> Whole:  # fmt: skip
    """So many rows that have the distributions of columns, and marginals as near as can be in the time."""
    table = np.stack([random.permutation(_filled(column, rows)) for column in columns], axis=1)
    goals = [(list(places), goal * (rows / goal.sum())) for places, goal in marginals if len(places) > 1]
    alpha, errors = 1.0, list[float]()
    for sweep in range(1, _SWEEPS + 1):
        turns = [goals[row] for row in random.permutation(len(goals))]
        distances = [_update(table, places, goal, alpha, random) for places, goal in turns]
        errors.append(float(np.mean(distances)) if distances else 0.0)
        if sweep >= _STEADY:
            alpha *= _SHORTER
        stalls = sweep > _LEAST and errors[-1] > _ENOUGH * errors[-6]
        if stalls or errors[-1] == 0 or is_late():
            break
    return table


def _filled(goal: Floats, rows: int) -> Whole:
    """So many numbers of bins, in these proportions, by largest remainders."""
    wanted = goal * (rows / goal.sum())
    whole = np.floor(wanted).astype(np.int64)
    rest = rows - int(whole.sum())
    if rest > 0:
        whole[np.argsort(whole - wanted, kind="stable")[:rest]] += 1
    return np.repeat(np.arange(goal.size, dtype=np.int64), whole)


def _update(table: Whole, places: list[int], goal: Floats, alpha: float, random: np.random.Generator) -> float:
    """One marginal, in place; the distance that it had before."""
    rows, wanted = len(table), goal.ravel()
    cells = np.ravel_multi_index(tuple(table[:, place] for place in places), goal.shape)
    have = np.bincount(cells, minlength=wanted.size)
    error = float(np.abs(wanted - have).sum()) / (2 * rows)
    less = np.floor(alpha * np.maximum(have - wanted, 0) + random.random(wanted.size)).astype(np.int64)
    less = np.minimum(less, have)
    more = np.maximum(wanted - have, 0)
    if not less.sum() or more.sum() <= 0:
        return error
    order, starts = _by_cell(cells, have, random)
    offsets = np.arange(int(less.sum())) - np.repeat(np.cumsum(less) - less, less)
    free: Whole = order[np.repeat(starts, less) + offsets]
    target = np.searchsorted(np.cumsum(more) / more.sum(), random.random(free.size), side="right")
    target = np.minimum(target, wanted.size - 1)
    copies = (random.random(free.size) < 0.5) & (have[target] > 0)
    chosen = target[copies]
    sources = order[starts[chosen] + (random.random(chosen.size) * have[chosen]).astype(np.int64)]
    copied = table[sources]
    table[free[copies]] = copied
    for place, value in zip(places, np.unravel_index(target, goal.shape), strict=True):
        table[free, place] = value
    return error


def _by_cell(cells: Whole, have: Whole, random: np.random.Generator) -> tuple[Whole, Whole]:
    """The rows in the order of their cells, beginning somewhere, and where each cell begins."""
    kind = np.uint16 if have.size <= 65_536 else np.uint32
    turned = int(random.integers(len(cells)))
    order = np.argsort(np.roll(cells, -turned).astype(kind), kind="stable")
    return (order + turned) % len(cells), np.cumsum(have) - have
