"""The synthesizer's input and output: noised marginals, and rows as numbers of bins."""

from dataclasses import field
from fractions import Fraction
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rules.frozen import frozen
from rules.values.types import Type

Floats: TypeAlias = NDArray[np.float64]
Whole: TypeAlias = NDArray[np.int64]


@frozen
class Label:
    """A bin of one value, as PostgreSQL reads it; None is NULL."""

    text: str | None


@frozen
class Between:
    """A bin of the whole numbers from low to high, in these steps; the value is one of them times the step."""

    low: int
    high: int
    step: Fraction
    type: Type
    every: int = 1  # values are multiples of so many steps, where a bin has any

    def __post_init__(self) -> None:
        if self.low > self.high:
            raise ValueError("a bin must have a value")


@frozen
class Lost:
    """A bin whose rows cannot be shown: the column can hold no value that stands for it."""


Bin = Label | Between | Lost


@frozen
class Column:
    """One column of the fit."""

    text: str  # as the rules file lists it
    bins: tuple[Bin, ...]
    shown_as: str | None = None  # which column of the synthetic table it is; None: only the fit knows of it


@frozen
class Marginal:
    """Noised counts over some columns, by their places."""

    columns: tuple[int, ...]
    counts: Floats
    variance: float  # of the noise of one cell
    is_whole: bool = True  # it counts all rows: no cell was capped

    @property
    def cells(self) -> int:
        return int(self.counts.size)


@frozen
class Parent:
    """The table that a table's rows refer to, by their places in the fit."""

    table: int
    shared: tuple[tuple[int, int], ...]  # columns of the rows, and the same of the parent
    count: int | None  # the column of the parent with the number of its rows here
    most: int  # rows here of one row there
    column: str  # of the synthetic table, by which it refers to the parent's key


@frozen
class KeyPart:
    """A column of a primary key, which is made up: numbers from 1 on, the parent's key, or a place beside it."""

    column: str
    kind: Literal["number", "text", "uuid", "parent", "place"]


@frozen
class Table:
    """One table to be fitted. The first marginal has no column: it is the number of rows."""

    name: str
    columns: tuple[Column, ...]
    marginals: tuple[Marginal, ...]
    parent: Parent | None = None
    keys: tuple[KeyPart, ...] = ()


@frozen
class Limits:
    """The most work that a fit may be."""

    rows: int = 1_000_000  # of a table
    seconds: float = 300.0


@frozen
class Job:
    """Everything that a fit depends on."""

    tables: tuple[Table, ...]
    seed: int
    limits: Limits = field(default_factory=Limits)


@frozen
class PairReport:
    """The distance of the synthetic rows from the real ones, in one marginal."""

    table: str
    columns: tuple[str, ...]
    cells: int
    noise_sd: float
    expected: float  # mean distance of fits to counts that are noised likewise (total variation, 0 to 1)
    low: float
    high: float
    residual: float  # distance from the noised counts themselves


@frozen
class FittedTable:
    """Rows as numbers of bins, and which row of the parent each refers to."""

    bins: Whole  # rows by columns
    parents: Whole | None = None
    moved: int = 0  # rows that no parent of their class was left for


@frozen
class Fitted:
    """All tables, in the order of the job."""

    tables: tuple[FittedTable, ...]
    pairs: tuple[PairReport, ...] = ()
    seconds: float = 0.0
