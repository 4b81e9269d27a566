"""The keys of a bounded statement: labels that are listed, values that are found, and bins of a histogram.

A listed label leaves as its place in the list and never as text. The list is made a function of the value by GROUP BY,
in which PostgreSQL's own equality decides what is one label, so a label that is listed twice doubles no rows. A row
whose values are not in the list is not counted, wherever it came from: membership is tested before any row is counted.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from rules.kept import kept_if_short
from rules.kernel.expressions import label_sql
from rules.kernel.statement import KeyColumn, Ordinals, Texts
from rules.kernel.summand import Summand
from rules.refusal import NotSupported
from rules.values.expression import Expression
from rules.values.types import Type

Labels = tuple[tuple[str | None, ...], ...]

_FEW = 4  # labels


@dataclass(frozen=True, slots=True)
class Listed:
    """Combinations of values that are known beforehand; NULL is a value. One of them is known by its place.

    Labels are texts of the types of the expressions that they are compared with.
    """

    expressions: tuple[Expression, ...]
    labels: Labels

    def __post_init__(self) -> None:
        if not self.expressions or not {len(self.expressions)}.issuperset(map(len, self.labels)):
            raise NotSupported("every label must have a value for each expression of its list")

    @property
    def count(self) -> int:
        return len(self.labels)


@dataclass(frozen=True, slots=True)
class Found:
    """Values that only the rows know. They leave as text, if enough units have them."""

    expression: Expression


@dataclass(frozen=True, slots=True)
class Bins:
    """Bins of so many steps each over a summand's bounds, the last of which may be shorter. NULL is in no bin."""

    summand: Summand
    width: int

    def __post_init__(self) -> None:
        if type(self.width) is not int or self.width < 1 or self.count > 2**31 - 1:
            raise NotSupported("a bin must be at least one step wide, and there must be fewer than 2^31 bins")

    @property
    def count(self) -> int:
        return (self.summand.lattice.high - self.summand.lattice.low) // self.width + 1

    @property
    def wrap(self) -> str:
        """The number of a row's bin, from 0: q is clamped to its bounds in this very text, and NULL stays NULL."""
        return f"((({self.summand.wrap()}) - ({self.summand.lattice.low})) / {self.width})::int4"


Key = Listed | Found | Bins


def count_of(keys: Sequence[Key]) -> int | None:
    """Count the groups; None where some are found."""
    counts = [key.count for key in keys if not isinstance(key, Found)]
    return prod(counts) if len(counts) == len(keys) else None


def column_of(key: Key) -> KeyColumn:
    return Texts() if isinstance(key, Found) else Ordinals(key.count)


@dataclass(frozen=True, slots=True)
class KeySql:
    """A key as one column, over rows whose columns are named: joins that bring it, and conditions that rows keep."""

    value: str
    joins: tuple[str, ...] = ()
    condition: str = ""


def listed_sql(key: Listed, columns: tuple[str, ...], name: str) -> KeySql:
    """The place of a row's values in the list.

    A short list is a CASE, which is sooner looked through than joined. NULL is equal to nothing, and IS NOT DISTINCT
    FROM is not hashed. So the labels of longer ones are joined by which of their values are NULL: a row fits the labels
    of one such pattern only.
    """
    if 1 <= len(key.labels) <= _FEW:
        return _few(key, columns)
    kinds = tuple(expression.type for expression in key.expressions)
    patterns = _rows(key.labels, kinds)
    key_columns, joins = [], []
    for number, (pattern, rows) in enumerate(patterns.items()):
        nulls = " AND ".join(f"{column} IS NULL" for column, null in zip(columns, pattern, strict=True) if null)
        if all(pattern):
            first = next(place for place, label in enumerate(key.labels) if all(value is None for value in label))
            key_columns.append(f"CASE WHEN {nulls} THEN {first} END")
            continue
        here = [column for column, null in zip(columns, pattern, strict=True) if not null]
        kind = "JOIN" if len(patterns) == 1 else "LEFT JOIN"
        joins.append(_join(kind, f"{name}_{number}", here, rows, nulls))
        key_columns.append(f"{name}_{number}.place")
    if not key_columns:
        return KeySql("NULL::int4", condition="false")
    value = f"coalesce({', '.join(key_columns)})" if len(key_columns) > 1 else key_columns[0]
    return KeySql(value, tuple(joins), "" if len(patterns) == 1 and joins and not nulls else f"{value} IS NOT NULL")


@kept_if_short(256, 40_000)  # the charts of a dashboard have the same lists
def _rows(labels: Labels, kinds: tuple[Type, ...]) -> Mapping[tuple[bool, ...], list[str]]:
    """The labels of a list with their places, by which of their values are NULL."""
    patterns: dict[tuple[bool, ...], list[str]] = {}
    for place, label in enumerate(labels):
        pattern = tuple([value is None for value in label])
        values = [label_sql(value, kind) for value, kind in zip(label, kinds, strict=True) if value is not None]
        patterns.setdefault(pattern, []).append(f"({', '.join([*values, str(place)])})")
    return patterns


def _few(key: Listed, columns: tuple[str, ...]) -> KeySql:
    """The first label that a row's values are equal to."""
    branches = []
    for place, label in enumerate(key.labels):
        tests = (
            f"{column} IS NULL" if value is None else f"{column} = {label_sql(value, expression.type)}"
            for column, value, expression in zip(columns, label, key.expressions, strict=True)
        )
        branches.append(f"WHEN {' AND '.join(tests)} THEN {place}")
    value = f"CASE {' '.join(branches)} END"
    return KeySql(value, condition=f"{value} IS NOT NULL")


def _join(kind: str, name: str, columns: list[str], rows: list[str], nulls: str) -> str:
    values = ", ".join(f"k{place}" for place in range(len(columns)))
    function = f"SELECT {values}, min(place)::int4 AS place FROM (VALUES {', '.join(rows)}) AS v ({values}, place)"
    equal = [f"{name}.k{place} = {column}" for place, column in enumerate(columns)]
    on = " AND ".join([*equal, *([nulls] if nulls else [])])
    return f"{kind} ({function} GROUP BY {values}) AS {name} ON {on}"
