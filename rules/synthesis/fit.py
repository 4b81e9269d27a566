"""The whole way from noised marginals to rows, and how well the rows can be believed.

Rows are linked to parents of their own class: those with the same bins of the columns that both have.
A parent wants so many rows as its bucket says. Rows of a class take the places that its parents want in random order;
where these are too few, parents take more, in proportion to what they want, up to the cap. A class without room sends
its rows to the nearest class that has some.
"""

from collections.abc import Callable, Sequence

import numpy as np

from rules.frozen import replace
from rules.synthesis.fit_marginals import consistent, fit_rows
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

REPETITIONS = 5  # fits to noise that is drawn likewise, by which errors are told
_MOST_TO_TELL = 200_000  # rows of such a fit

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
