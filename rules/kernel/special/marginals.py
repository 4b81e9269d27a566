"""Marginals: many tables of counts over the bins of one relation's columns, from one reading and one cut of each unit.

Let a unit have rows R_u, each a tuple of bins. Where they are more than m, m of them are kept, the first by a hash of
unit and bins: rows with equal bins may stand for each other, so which tuples are kept follows from R_u alone. They are
cut once, for all marginals, so that all marginals count the same rows.

To each marginal the unit then adds a vector v of whole numbers, v_c ≥ 0 and Σv_c ≤ m. Its L1 distance is at most m, and
so is its L2 distance, reached where all rows are in one cell. With a *cell cap* s at most s rows of a unit count in one
cell, which the statement writes as least(n, s): then 0 ≤ v_c ≤ s, and

    ‖v‖² = Σ v_c² ≤ s·Σ v_c ≤ s·m,

so the L2 distance is at most √(s·m). It is reached by m/s cells with s rows each.

Bins are numbers from 0, of which every row has one, whatever its value is.
So all marginals of a table count the same rows: a value that is not listed, or lies outside, has a bin of its own, and
NULL has the last one. Numbers of bins are never NULL, which stands for a column that a marginal has not.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise

from rules.kernel.added import saturated
from rules.kernel.expressions import key_wrap, label_sql
from rules.kernel.measures import Sensitivity
from rules.kernel.relation import Relation
from rules.kernel.rows import Item, Rows
from rules.kernel.script import Script
from rules.kernel.statement import SEAL, Marginal, Marginals, mask_of
from rules.kernel.summand import Summand
from rules.refusal import NotSupported
from rules.values.expression import Expression

MOST_COLUMNS = 24
MOST_MARGINALS = 500
MOST_ROWS = 2**29  # of a unit: the square of it is far below 2^60
MOST_BINS = 10_000


@dataclass(frozen=True, slots=True)
class LabelBins:
    """One bin for each of these values, one for all others, and one for NULL."""

    expression: Expression
    labels: tuple[str, ...]

    def __post_init__(self) -> None:
        if not 1 <= len(self.labels) <= MOST_BINS:
            raise NotSupported("the bins of a column must be a list of values")
        if any("{0}" in label for label in self.labels):  # which stands for the column in our own text
            raise NotSupported("a value with {0} in it cannot have a bin")

    @property
    def count(self) -> int:
        return len(self.labels) + 2

    def read(self) -> tuple[Expression, str]:
        """Return what is read of a row, and the number of its bin with {0} for that."""
        kind, others = self.expression.type, len(self.labels)
        listed = ", ".join(label_sql(label, kind) for label in self.labels)
        place = f"coalesce(array_position(ARRAY[{listed}], {key_wrap(self.expression)}) - 1, {others})"
        return self.expression, f"CASE WHEN ({{0}}) IS NULL THEN {others + 1} ELSE {place} END"


@dataclass(frozen=True, slots=True)
class EdgeBins:
    """Bins between edges, in steps of a summand's lattice: from each edge up to the next. NULL is in the last bin.

    Values below the first edge and from the last one on are in the bins at the ends, or, if these are `outside`, in
    one bin of their own, which comes after the others.
    """

    summand: Summand
    edges: tuple[int, ...]
    outside: bool = False

    def __post_init__(self) -> None:
        whole = all(type(edge) is int and abs(edge) < 2**62 for edge in self.edges)
        if not whole or not 1 <= len(self.edges) <= MOST_BINS or any(low >= high for low, high in pairwise(self.edges)):
            raise NotSupported("the edges of bins must be integers in ascending order")

    @property
    def count(self) -> int:
        return len(self.edges) + (1 if self.outside else 2)

    def read(self) -> tuple[Expression, str]:
        """Return what is read of a row, and the number of its bin with {0} for that."""
        edges = ", ".join(map(str, self.edges))
        whole, number = self.summand.wrap(), len(self.edges)
        place = f"width_bucket({whole}, ARRAY[{edges}]::int8[])"  # NULL where there is none
        if self.outside:
            return self.summand.expression, f"coalesce(({place} + {number - 1}) % {number}, {number})"
        return self.summand.expression, f"coalesce({place}, {number + 1})"


ColumnBins = LabelBins | EdgeBins


@dataclass(frozen=True, slots=True)
class Counted:
    """The columns of a marginal by their places, and how many rows of a unit count in one of its cells."""

    columns: tuple[int, ...]
    rows_per_cell: int | None = None  # None: as many as of the unit in all


@dataclass(frozen=True, slots=True)
class MarginalsStatement:
    """Counts of at most so many rows of each unit over the bins of each of these sets of columns."""

    rows: Script
    bins: tuple[ColumnBins, ...]
    counted: tuple[Counted, ...]
    rows_per_unit: int


def bounded_marginals(relation: Relation, statement: MarginalsStatement) -> Marginals:
    """The statement over the rows of its script."""
    rows, bins, counted = Rows(relation), statement.bins, statement.counted
    _check(bins, counted, statement.rows_per_unit)
    most = 1 if rows.proved_one else statement.rows_per_unit
    names = tuple(f"b{place}" for place in range(1, len(bins) + 1))
    read = [column.read() for column in bins]
    items = [Item(name, expression, wrap) for name, (expression, wrap) in zip(names, read, strict=True)]
    caps = [min(most, marginal.rows_per_cell or most) for marginal in counted]
    sets = ", ".join(f"({', '.join(names[place] for place in marginal.columns)})" for marginal in counted)
    steps = _steps(rows.select(items), names, most, has_identity=rows.has_identity, is_cut=not rows.proved_one)
    listed = ", ".join(names)
    capped = {
        mask_of(marginal.columns, len(names)): cap for marginal, cap in zip(counted, caps, strict=True) if cap < most
    }
    if not capped:
        total, source = "count(*)", f"cut GROUP BY GROUPING SETS ({sets})"
        sql = f"SELECT GROUPING({listed}), {listed}, {saturated(total)} FROM {source}"
    else:
        cells = (
            f"SELECT GROUPING({listed}) AS g, u, {listed}, count(*) AS n FROM cut GROUP BY u, GROUPING SETS ({sets})"
        )
        branches = " ".join(f"WHEN {mask} THEN {cap}" for mask, cap in capped.items())
        total = saturated(f"sum(least(n, CASE g {branches} ELSE n END))")
        sql = f"SELECT g, {listed}, {total} FROM ({cells}) AS t GROUP BY g, {listed}"
    marginals = tuple(
        Marginal(marginal.columns, Sensitivity(1, most, most * cap, cap))
        for marginal, cap in zip(counted, caps, strict=True)
    )
    return Marginals(f"{steps} {sql}", tuple(column.count for column in bins), marginals, SEAL)


def _steps(select: str, names: Sequence[str], most: int, *, has_identity: bool, is_cut: bool) -> str:
    """The rows that are counted, with their units where they have any: of each unit at most so many."""
    listed = ", ".join(names)
    if not has_identity:
        return f"WITH cut AS MATERIALIZED ({select})"
    read = f"SELECT u, {listed} FROM ({select}) AS s WHERE u IS NOT NULL"
    if not is_cut:
        return f"WITH cut AS MATERIALIZED ({read})"
    hashed = reduce(lambda seed, name: f"hashint4extended({name}, {seed})", names, "hash_array_extended(ARRAY[u], 0)")
    ranked = (
        f"SELECT r.*, row_number() OVER (PARTITION BY u ORDER BY {hashed}, {listed}) AS rn FROM r JOIN over_m USING (u)"
    )
    few = f"SELECT u, {listed} FROM r WHERE NOT EXISTS (SELECT 1 FROM over_m WHERE over_m.u = r.u)"
    return (
        f"WITH r AS MATERIALIZED ({read}), "
        f"over_m AS MATERIALIZED (SELECT u FROM r GROUP BY u HAVING count(*) > {most}), "
        f"cut AS MATERIALIZED ({few} UNION ALL SELECT u, {listed} FROM ({ranked}) AS k WHERE rn <= {most})"
    )


def _check(bins: Sequence[ColumnBins], counted: Sequence[Counted], rows_per_unit: int) -> None:
    """Refuse what is no such statement."""
    if not 1 <= len(bins) <= MOST_COLUMNS or not 1 <= len(counted) <= MOST_MARGINALS:
        raise NotSupported("there are too many columns or marginals, or none")
    if type(rows_per_unit) is not int or not 1 <= rows_per_unit <= MOST_ROWS:
        raise NotSupported("the limit of rows per unit must be an integer of at least 1")
    places = range(len(bins))
    if len({marginal.columns for marginal in counted}) < len(counted):
        raise NotSupported("a marginal is listed twice")
    if {place for marginal in counted for place in marginal.columns} != set(places):
        raise NotSupported("each column must be in a marginal")
    for marginal in counted:
        rising = all(one < two for one, two in zip(marginal.columns, marginal.columns[1:], strict=False))
        if not rising or any(type(place) is not int or place not in places for place in marginal.columns):
            raise NotSupported("the columns of a marginal must be places of columns in ascending order")
        if marginal.rows_per_cell is not None and (
            type(marginal.rows_per_cell) is not int or marginal.rows_per_cell < 1
        ):
            raise NotSupported("the limit of rows per cell must be an integer of at least 1")
