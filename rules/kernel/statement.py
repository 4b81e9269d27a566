"""Statements that the real database runs: sealed, so that whoever holds one knows that this package made it.

Amounts rest on relations and statements having been made by the kernel's constructors. So their classes want a seal
that the modules of this package alone have, and cannot be pickled, copied, replaced or subclassed: the one way to have
one is to build it. They are frozen dataclasses with slots of their own writing: `slots=True` would let them be loaded.
"""

from dataclasses import InitVar, dataclass
from typing import NoReturn

from rules.kernel.measures import Sensitivity

SEAL = object()


class Sealed:
    """The base of sealed values: made with the seal, which is their last argument, and never otherwise."""

    __slots__ = ()

    def __post_init__(self, seal: object) -> None:
        if seal is not SEAL:
            raise TypeError(f"only the kernel makes a {type(self).__name__}")

    def __init_subclass__(cls) -> None:
        if not cls.__module__.startswith("rules.kernel.") or any(base is not Sealed for base in cls.__bases__):
            raise TypeError(f"{cls.__name__} would extend a sealed class")

    def _refuse(self, *arguments: object, **named: object) -> NoReturn:
        raise TypeError(f"a {type(self).__name__} is made anew, never copied")

    __copy__ = __deepcopy__ = __replace__ = __reduce_ex__ = __setstate__ = _refuse


@dataclass(frozen=True, slots=True)
class Ordinals:
    """A key column of int4: places in a list, from 0. Others than these do not exist."""

    count: int


@dataclass(frozen=True, slots=True)
class Texts:
    """A key column of text, found in the data: at most 8192 octets, or NULL. Only a threshold lets them out."""


KeyColumn = Ordinals | Texts


@dataclass(frozen=True, slots=True)
class Measured:
    """One int8 column. Measures of one vector share an ε: Σ|x_i|/l1_i ≤ 1 over all of them together."""

    sensitivity: Sensitivity
    vector: int | None = None


@dataclass(frozen=True, slots=True)
class Threshold:
    """By which found groups are let out: a measure that counts units, each in at most so many groups."""

    measure: int
    groups: int


@dataclass(frozen=True, slots=True)
class Numbers:
    """What a statement enforces, without the statement: nothing can be run of it."""

    keys: tuple[KeyColumn, ...]
    measures: tuple[Measured, ...]
    threshold: Threshold | None


@dataclass(frozen=True)
class Bounded(Sealed):
    """A statement of which one unit moves each measure by no more than its sensitivity.

    Its rows are one for each group that has any: the key columns in the order of the keys, then the measures.
    """

    __slots__ = ("keys", "measures", "sql", "threshold")
    sql: str
    keys: tuple[KeyColumn, ...]
    measures: tuple[Measured, ...]
    threshold: Threshold | None  # where a key is found: the last measure, if none that was asked for will do
    seal: InitVar[object]


@dataclass(frozen=True)
class Tally(Sealed):
    """A statement whose rows are the number of a ladder, that of a rung, the units whose total needs it, and parts.

    Each unit is in one rung of each ladder, with 0 to 64 parts of the step to that rung.
    """

    __slots__ = ("rungs", "sql")
    sql: str
    rungs: tuple[tuple[int, ...], ...]
    seal: InitVar[object]


@dataclass(frozen=True, slots=True)
class Marginal:
    """Counts over the bins of some columns, and how far one unit moves them."""

    columns: tuple[int, ...]  # by their places; none: the number of rows
    sensitivity: Sensitivity


@dataclass(frozen=True)
class Marginals(Sealed):
    """A statement of which one unit moves each marginal by no more than its sensitivity.

    Its rows are a mask, the numbers of bins (NULL where a marginal has not the column), and a count as int8. A column
    has so many bins; cells without rows are missing.
    """

    __slots__ = ("bins", "marginals", "sql")
    sql: str
    bins: tuple[int, ...]
    marginals: tuple[Marginal, ...]
    seal: InitVar[object]

    def mask(self, columns: tuple[int, ...]) -> int:
        """The first cell of the rows of a marginal: a bit for each column that it has not, the last one lowest."""
        return mask_of(columns, len(self.bins))


def mask_of(columns: tuple[int, ...], count: int) -> int:
    """Compute what PostgreSQL's GROUPING says of all columns where the rows are grouped by these."""
    return sum(1 << (count - 1 - place) for place in range(count) if place not in columns)
