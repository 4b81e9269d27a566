"""Scripts: which constructors make a relation, with which arguments, as plain data.

A script says nothing that has to be believed. The planner writes it in a process that may be killed, it crosses a pipe,
and `relations.build` replays it through the constructors; what it cannot make sound it refuses.

Columns are numbers, given once in a statement. Expressions carry templates of the registry, which are checked when they
are rendered; domains, nullability and names, which an expression of the planner has too, are not part of a script.
"""

from dataclasses import dataclass
from typing import Literal

from rules.catalog import TableName
from rules.values.expression import TRUE, Constant, Expression
from rules.values.types import Type

JoinKind = Literal["inner", "left", "right", "full"]


@dataclass(frozen=True, slots=True)
class Scan:
    """The rows of a table: some of its columns, and a number for the unit where it is no column of the table's own."""

    table: TableName
    columns: tuple[tuple[int, str], ...]
    unit: int | None = None


@dataclass(frozen=True, slots=True)
class Values:
    """Written or released constants: public rows."""

    columns: tuple[tuple[int, Type], ...]
    rows: tuple[tuple[Constant, ...], ...]


@dataclass(frozen=True, slots=True)
class Filter:
    source: "Script"
    condition: Expression


@dataclass(frozen=True, slots=True)
class Project:
    """The source's columns, and computed ones."""

    source: "Script"
    computed: tuple[tuple[int, Expression], ...]


@dataclass(frozen=True, slots=True)
class Join:
    """Rows that meet where columns are equal (left, right) and a condition is true. `unit` is new in a full join."""

    kind: JoinKind
    left: "Script"
    right: "Script"
    equal: tuple[tuple[int, int], ...] = ()
    condition: Expression = TRUE
    unit: int | None = None


@dataclass(frozen=True, slots=True)
class Semi:
    """The rows for which a row of the other relation exists, or none does; with a mark all rows, and which it is."""

    source: "Script"
    other: "Script"
    equal: tuple[tuple[int, int], ...]
    condition: Expression
    negated: bool = False
    mark: int | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """An aggregate or window function by a template of the registry, with {over} where OVER goes."""

    sql: str
    arguments: tuple[Expression, ...]
    type: Type


@dataclass(frozen=True, slots=True)
class PerUnit:
    """One row for each unit and key, with aggregates of that unit's own rows."""

    source: "Script"
    keys: tuple[tuple[int, Expression], ...]
    calls: tuple[tuple[int, Call], ...]


@dataclass(frozen=True, slots=True)
class Correlated:
    """The source's rows, each with aggregates of its unit's rows of the other relation that a condition ties to it."""

    source: "Script"
    other: "Script"
    equal: tuple[tuple[int, int], ...]
    condition: Expression
    calls: tuple[tuple[int, Call], ...]


@dataclass(frozen=True, slots=True)
class SortKey:
    expression: Expression
    descending: bool = False
    nulls_first: bool | None = None


@dataclass(frozen=True, slots=True)
class Window:
    """Functions over one window of each unit's rows, each with its frame: "" or ROWS BETWEEN start AND end and its kin,
    which is checked to be nothing else."""

    source: "Script"
    partition: tuple[Expression, ...]
    order: tuple[SortKey, ...]
    calls: tuple[tuple[int, Call, str], ...]


@dataclass(frozen=True, slots=True)
class UnionAll:
    """The branches' rows, column by column under numbers and types of the union's own."""

    branches: tuple["Script", ...]
    columns: tuple[tuple[int, Type, tuple[int, ...]], ...]  # for each branch the column that it takes
    unit: int | None = None


Script = Scan | Values | Filter | Project | Join | Semi | PerUnit | Correlated | Window | UnionAll
