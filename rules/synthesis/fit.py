"""The whole way from noised marginals to rows, and how well the rows can be believed."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from rules.synthesis.consistency import consistent
from rules.synthesis.gradual import fit_rows
from rules.synthesis.link import link
from rules.synthesis.model import Fitted, FittedTable, Floats, Job, Marginal, PairReport, Table, Whole
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
