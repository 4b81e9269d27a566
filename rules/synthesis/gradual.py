"""Rows that have given marginals, by gradual update (PrivSyn): rows of cells with too many move to cells with too few.

Rows are numbers of bins. Half of the rows that move become copies of a row that is in the cell already, which keeps the
patterns of other columns; of the others only the marginal's own columns are set.
"""

from collections.abc import Callable, Sequence

import numpy as np

from rules.synthesis.model import Floats, Whole

_SWEEPS = 60
_STEADY = 5  # sweeps with whole steps; then each is a little shorter
_SHORTER = 0.93
_LEAST = 20  # sweeps before a fit may end
_ENOUGH = 0.99  # of the error five sweeps ago


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
    free = _first_of_each(order, starts, less)
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


def _first_of_each(order: Whole, starts: Whole, number: Whole) -> Whole:
    """So many rows of each cell."""
    offsets = np.arange(int(number.sum())) - np.repeat(np.cumsum(number) - number, number)
    result: Whole = order[np.repeat(starts, number) + offsets]
    return result
