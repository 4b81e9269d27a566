"""Bins of a column for marginals: numbers from 0, of which every row has one, whatever its value is.

So all marginals of a table count the same rows: a value that is not listed, or lies outside, has a bin of its own, and
NULL has the last one. Numbers of bins are never NULL, which stands for a column that a marginal has not.
"""

from dataclasses import dataclass
from itertools import pairwise

from rules.kernel.canonical import canonical_key, label_sql
from rules.kernel.summand import Summand
from rules.refusal import NotSupported
from rules.values.expression import Constant, Expression

MOST_BINS = 10_000


@dataclass(frozen=True, slots=True)
class LabelBins:
    """One bin for each of these values, one for all others, and one for NULL."""

    expression: Expression
    labels: tuple[Constant, ...]

    def __post_init__(self) -> None:
        if not 1 <= len(self.labels) <= MOST_BINS or any(label.text is None for label in self.labels):
            raise NotSupported("the bins of a column must be a list of values, without NULL")
        if any("{0}" in (label.text or "") for label in self.labels):  # which stands for the column in our own text
            raise NotSupported("a value with {0} in it cannot have a bin")

    @property
    def count(self) -> int:
        return len(self.labels) + 2

    def read(self) -> tuple[Expression, str]:
        """Return what is read of a row, and the number of its bin with {0} for that."""
        kind, others = self.expression.type, len(self.labels)
        listed = ", ".join(label_sql(label, kind) for label in self.labels)
        place = f"coalesce(array_position(ARRAY[{listed}], {canonical_key(kind, '{0}')}) - 1, {others})"
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
