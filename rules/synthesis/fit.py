"""Fit rows to noised marginals, link them to their parents, and tell how well the rows can be believed.

The marginals are made consistent before: no cell below zero, one distribution of each column. Rows are numbers of bins,
and move by gradual update (PrivSyn): those of cells with too many to cells with too few. Half of the rows that move
become copies of a row that is in the cell already, which keeps the patterns of other columns; of the others only the
marginal's own columns are set.

Rows are linked to parents of their own class: those with the same bins of the columns that both have.
A parent wants so many rows as its bucket says. Rows of a class take the places that its parents want in random order;
where these are too few, parents take more, in proportion to what they want, up to the cap. A class without room sends
its rows to the nearest class that has some.
"""

from collections.abc import Callable, Sequence

import numpy as np

from rules.frozen import replace
from rules.synthesis.model import (
    Between,
    Column,
    Fitted,
    FittedTable,
    Floats,
    Job,
    Marginal,
    PairReport,
    Parent,
    Table,
    Whole,
)
from rules.synthesis.values import lost_rows

REPETITIONS = 5  # fits to noise of the same law, which estimate the errors
_MOST_TO_TELL = 200_000  # rows of a fit that estimates errors

Clock = Callable[[], float]


def fit(job: Job, clock: Clock) -> Fitted:
    """Rows of all tables, and the report on each pair. The same job makes the same rows, if time suffices."""
    began = clock()
    random = np.random.default_rng(job.seed)
    made: list[FittedTable] = []
    reports: list[PairReport] = []
    for table in job.tables:
        is_late = _deadline(clock, job.limits.seconds)
        rows, goals = _rows(table, job.limits.rows, random, is_late)
        reports += _reports(table, rows, goals, random, is_late)
        made.append(_linked(table, job.tables, made, rows, random))
    return Fitted(tuple(made), tuple(reports), clock() - began)


def _deadline(clock: Clock, seconds: float) -> Callable[[], bool]:
    ends = clock() + seconds
    return lambda: clock() > ends


def distance(one: Floats, two: Floats) -> float:
    """The total variation of two tables of counts, each as shares of its sum: 0 to 1."""
    first, second = one / max(float(one.sum()), 1e-12), two / max(float(two.sum()), 1e-12)
    return float(np.abs(first - second).sum()) / 2


def counts_of(rows: Whole, marginal: Marginal) -> Floats:
    """Return how many rows are in each cell."""
    shape = marginal.counts.shape
    cells = np.ravel_multi_index(tuple(rows[:, place] for place in marginal.columns), shape)
    return np.bincount(cells, minlength=marginal.counts.size).reshape(shape).astype(np.float64)


def _rows(
    table: Table, most: int, random: np.random.Generator, is_late: Callable[[], bool]
) -> tuple[Whole, list[Floats]]:
    """The rows of one table; where there are too many to fit, each that is fitted stands for several."""
    total, ones, goals = consistent(table)
    rows = max(1, round(total))
    pairs = [marginal for marginal in table.marginals if marginal.columns]
    wanted = [(pair.columns, goal) for pair, goal in zip(pairs, goals, strict=True)]
    rows_fitted = fit_rows(ones, wanted, min(rows, most), random, is_late)
    if rows > most:
        whole, rest = divmod(rows, most)
        times = np.full(most, whole) + (random.permutation(most) < rest)
        rows_fitted = np.repeat(rows_fitted, times, axis=0)
    return rows_fitted, goals


def _linked(
    table: Table, tables: Sequence[Table], made: Sequence[FittedTable], rows: Whole, random: np.random.Generator
) -> FittedTable:
    """The rows that can be shown, each with its parent."""
    rows = np.delete(rows, lost_rows(table, rows), axis=0)
    if table.parent is None:
        return FittedTable(rows)
    above = made[table.parent.table]
    parents, moved = link(rows, above.bins, table.parent, tables[table.parent.table].columns, random)
    kept = parents >= 0
    return FittedTable(rows[kept], parents[kept], moved)


def _reports(
    table: Table, rows: Whole, goals: Sequence[Floats], random: np.random.Generator, is_late: Callable[[], bool]
) -> list[PairReport]:
    """Take the rows for the truth, noise their counts by the same law, fit again, and compare: five times."""
    pairs = [marginal for marginal in table.marginals if marginal.columns]
    truth = [counts_of(rows, pair) for pair in pairs]
    reports: list[list[float]] = [[] for _ in pairs]
    most = min(len(rows), _MOST_TO_TELL)
    for _ in range(REPETITIONS):
        if is_late() and reports and reports[0]:
            break
        again, _ = _rows(_noised_again(table, rows, random), most, random, is_late)
        for number, marginal_pair in enumerate(pairs):
            reports[number].append(distance(counts_of(again, marginal_pair), truth[number]))
    names = [tuple(table.columns[place].text for place in pair.columns) for pair in pairs]
    return [
        PairReport(
            table.name, name, pair.cells, pair.variance**0.5, float(np.mean(report)), min(report), max(report),
            distance(counts_of(rows, pair), np.maximum(goal, 0)),
        )
        for name, pair, report, goal in zip(names, pairs, reports, goals, strict=True)
    ]  # fmt: skip


def _noised_again(table: Table, rows: Whole, random: np.random.Generator) -> Table:
    """The table with counts of these rows, under noise of the same variance."""

    def noised(marginal: Marginal) -> Marginal:
        exact = counts_of(rows, marginal) if marginal.columns else np.array(float(len(rows)))
        noise = random.normal(0.0, marginal.variance**0.5, size=exact.shape)
        return replace(marginal, counts=exact + noise)

    return replace(table, marginals=tuple(map(noised, table.marginals)))


def link(
    children: Whole, parents: Whole, how: Parent, columns: tuple[Column, ...], random: np.random.Generator
) -> tuple[Whole, int]:
    """The parent of each row, or -1 where nobody has room for it; and how many rows left their class."""
    want = _wanted(children, parents, how, columns, random)
    shape = [len(columns[theirs].bins) for _, theirs in how.shared]
    of_children = _classes(children, [mine for mine, _ in how.shared], shape)
    of_parents = _classes(parents, [theirs for _, theirs in how.shared], shape)
    parents_of = np.full(len(children), -1, dtype=np.int64)
    room = np.where(want > 0, how.most, 0) if how.count is not None else np.full(len(parents), how.most)
    waiting = _grouped(of_children)
    for number, members in _grouped(of_parents).items():
        mine = waiting.get(number)
        if mine is None:
            continue
        places = _places(members, want, room, mine.size, random)
        parents_of[random.permutation(mine)[: places.size]] = places
        room -= np.bincount(places, minlength=room.size)
    return parents_of, _move(parents_of, of_children, of_parents, shape, room, random)


def _wanted(
    children: Whole, parents: Whole, how: Parent, columns: tuple[Column, ...], random: np.random.Generator
) -> Whole:
    """Return how many rows each parent wants, within its bucket."""
    if how.count is None:
        share = len(children) / max(1, len(parents))
        return np.floor(share + random.random(len(parents))).astype(np.int64)
    lows, highs = [], []
    for bin_ in columns[how.count].bins:
        if not isinstance(bin_, Between):
            raise TypeError("a number of rows has bins of numbers")
        lows.append(bin_.low)
        highs.append(min(bin_.high, how.most))
    buckets = parents[:, how.count]
    low, high = np.array(lows)[buckets], np.array(highs)[buckets]
    wanted: Whole = low + np.floor(random.random(buckets.size) * (high - low + 1)).astype(np.int64)
    return np.minimum(wanted, how.most)


def _classes(rows: Whole, places: list[int], shape: list[int]) -> Whole:
    if not places:
        return np.zeros(len(rows), dtype=np.int64)
    return np.ravel_multi_index(tuple(rows[:, place] for place in places), shape).astype(np.int64)


def _grouped(classes: Whole) -> dict[int, Whole]:
    """The rows of each class."""
    order = np.argsort(classes, kind="stable")
    numbers, starts = np.unique(classes[order], return_index=True)
    return (
        {int(number): part for number, part in zip(numbers, np.split(order, starts[1:]), strict=True)}
        if numbers.size
        else {}
    )


def _places(members: Whole, want: Whole, room: Whole, count: int, random: np.random.Generator) -> Whole:
    """So many places of these parents, or as many as there are: first those that they want."""
    wanted = random.permutation(np.repeat(members, np.minimum(want, room)[members]))
    if wanted.size >= count:
        return wanted[:count]
    left = (room - np.minimum(want, room))[members]
    more = np.repeat(members, left)
    key = random.exponential(size=more.size) / np.maximum(want[more], 1)
    return np.concatenate([wanted, more[np.argsort(key, kind="stable")][: count - wanted.size]])


def _move(
    parents: Whole, of_children: Whole, of_parents: Whole, shape: list[int], room: Whole, random: np.random.Generator
) -> int:
    """Give what is left to the nearest classes with room; returns how many rows were moved."""
    left, moved = _grouped_rows(parents, of_children), 0
    members = _grouped(of_parents)
    numbers = np.array(list(members), dtype=np.int64)
    theirs = (
        np.stack(np.unravel_index(numbers, shape), axis=1) if shape and numbers.size else np.zeros((numbers.size, 0))
    )
    for number, waiting in left.items():
        rows = waiting
        mine = np.array(np.unravel_index(number, shape)) if shape else np.zeros(0)
        common = (theirs == mine).sum(axis=1) + random.random(numbers.size)
        for place in np.argsort(-common, kind="stable"):
            if not rows.size:
                break
            of_class = members[int(numbers[place])]
            free = random.permutation(np.repeat(of_class, room[of_class]))[: rows.size]
            parents[rows[: free.size]], rows = free, rows[free.size :]
            room -= np.bincount(free, minlength=room.size)
            moved += int(free.size)
    return moved


def _grouped_rows(parents: Whole, of_children: Whole) -> dict[int, Whole]:
    rows = np.nonzero(parents < 0)[0]
    return {number: rows[part] for number, part in _grouped(of_children[rows]).items()}


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
