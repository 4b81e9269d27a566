"""From the exact counts of a synopsis to its noised ones, and from these to what the synthesizer is given."""

import hashlib
from collections.abc import Mapping, Sequence
from decimal import Decimal

import numpy as np

from rules.accounting.store import Release
from rules.frozen import frozen
from rules.kernel.statement import Marginal, Marginals
from rules.mechanisms.cost import Mechanism
from rules.mechanisms.draw import Noise, add
from rules.policy.synopses import account_name
from rules.refusal import Mismatch
from rules.synopses.labels import as_groups, is_label
from rules.synopses.plan import PlannedTable, SynopsisPlan
from rules.synopses.relation import Origin
from rules.synopses.shares import Weighed, check_sum, noise_of, shares_of_marginals, shares_of_totals
from rules.synthesis import model

Rows = Sequence[tuple[bytes | None, ...]]


@frozen
class Labels:
    """The labels of open columns, and what they and the counts cost together."""

    price: Mechanism
    by_column: Mapping[Origin, tuple[str, ...]]


@frozen
class Measured:
    """The exact counts of one table: for each marginal those of its cells, in order."""

    table: PlannedTable
    statement: Marginals
    counts: tuple[tuple[int, ...], ...]


def measured(table: PlannedTable, made: Marginals, rows: Rows) -> Measured:
    """The rows of a statement, as counts of all cells; one that is missing has none."""
    kept = [{number: place for place, number in enumerate(column.binned.numbers)} for column in table.columns]
    masks = {made.mask(marginal.columns): number for number, marginal in enumerate(made.marginals)}
    counts: list[dict[tuple[int, ...], int]] = [{} for _ in made.marginals]
    for mask, *bins, count in rows:
        number = masks[_whole(mask)]
        cell = tuple(kept[place].get(_whole(bins[place]), -1) for place in made.marginals[number].columns)
        if -1 not in cell:  # a bin that the catalog proves empty
            counts[number][cell] = _whole(count)
    return Measured(
        table,
        made,
        tuple(_flat(marginal, cells, table) for marginal, cells in zip(made.marginals, counts, strict=True)),
    )


def _flat(marginal: Marginal, cells: Mapping[tuple[int, ...], int], table: PlannedTable) -> tuple[int, ...]:
    shape = [table.columns[place].binned.count for place in marginal.columns]
    return tuple(cells.get(tuple(map(int, cell)), 0) for cell in np.ndindex(*shape))


def _whole(cell: bytes | None) -> int:
    if cell is None:
        raise ValueError("a number is missing")
    return int(cell)


def release_synopsis(
    plan: SynopsisPlan, tables: Sequence[Measured], price: Mechanism, noise: Noise, labels: Labels | None = None
) -> Release:
    """All noised counts as one release. First the rows of each table, by which the rest of the price is shared.

    Labels that were found before stand in the same release, and have had their part of a price beside this one.
    """
    size = plan.group_size
    first = shares_of_totals(price, len(tables))
    totals = [_noised(table, 0, first, price, noise, size) for table in tables]
    places = [(table, number) for table in tables for number in range(1, len(table.counts))]
    rows = {id(table): max(1, total[0]) for table, total in zip(tables, totals, strict=True)}
    weighed = [
        Weighed(measured.statement.marginals[number], len(measured.counts[number]), rows[id(measured)])
        for measured, number in places
    ]
    shares = shares_of_marginals(price, weighed, group_size=size)
    check_sum(price, [first] * len(tables) + shares)
    noised = [
        _noised(measured, number, share, price, noise, size)
        for (measured, number), share in zip(places, shares, strict=True)
    ]
    about = [_about(table, 0, first) for table in tables]
    about += [_about(measured, number, share) for (measured, number), share in zip(places, shares, strict=True)]
    values = tuple(value for part in (*totals, *noised) for value in part)
    known = Labels(price, {}) if labels is None else labels
    return Release(account_name(plan.name), plan.digest, known.price, (*as_groups(known.by_column), *about), values)


def _noised(
    table: Measured, number: int, epsilon: Decimal, price: Mechanism, noise: Noise, group_size: int
) -> tuple[int, ...]:
    counts = table.counts[number]
    law = noise_of(table.statement.marginals[number], epsilon, price, group_size=group_size)
    return tuple(map(add, counts, noise.draw(law, len(counts))))


def _about(table: Measured, number: int, epsilon: Decimal) -> tuple[str, ...]:
    return str(table.table.table.name), str(number), str(epsilon)


def job_of(plan: SynopsisPlan, made: Sequence[Marginals], release: Release, limits: model.Limits) -> model.Job:
    """Return what the synthesizer is given: the release, and what its bins stand for."""
    if release.measure != plan.digest:
        raise Mismatch("the synopsis was made by other rules")
    noised: dict[tuple[str, int], model.Marginal] = {}
    statements = {str(table.table.name): (table, marginals) for table, marginals in zip(plan.tables, made, strict=True)}
    start = 0
    for name, text, epsilon in (group for group in release.groups if not is_label(group)):
        table, statement = statements[str(name)]
        marginal = statement.marginals[int(str(text))]
        shape = tuple(table.columns[place].binned.count for place in marginal.columns)
        size = int(np.prod(shape, dtype=np.int64)) if shape else 1
        counts = np.array(release.values[start : start + size], dtype=np.float64).reshape(shape)
        start += size
        law = noise_of(marginal, Decimal(str(epsilon)), release.mechanism, group_size=plan.group_size)
        is_whole = marginal.sensitivity.l2_squared == marginal.sensitivity.l1**2
        noised[str(name), int(str(text))] = model.Marginal(marginal.columns, counts, float(1 / law.precision), is_whole)
    tables = tuple(_table(table, noised) for table in plan.tables)
    return model.Job(tables, seed_of(release), limits)


def _table(table: PlannedTable, noised: Mapping[tuple[str, int], model.Marginal]) -> model.Table:
    name, link = str(table.table.name), table.link
    columns = tuple(model.Column(column.listed.text, column.binned.shown, column.shown_as) for column in table.columns)
    marginals = tuple(noised[name, number] for number in range(len(table.statement.counted)))
    parent = None if link is None else model.Parent(link.parent, link.shared, link.count, link.most, link.column)
    return model.Table(name, columns, marginals, parent, table.keys)


def seed_of(release: Release) -> int:
    """Of the fit: it follows from what is released, so that a fit can be made again, and is the same elsewhere."""
    text = repr((release.block, release.measure, release.values)).encode()
    return int.from_bytes(hashlib.sha256(text).digest()[:8], "big")
