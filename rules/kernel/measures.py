"""The integer measures of a bounded statement: what is counted or summed of the rows, units or different values.

`reach` is the largest absolute value of what one row, or one value, adds. Row measures are bounded by rows of a unit,
counts of units by its groups, and different values by values of a unit (`sensitivity`).
"""

from dataclasses import dataclass

from rules.kernel.summand import Summand
from rules.refusal import NotSupported
from rules.values.expression import TRUE, Expression


@dataclass(frozen=True, slots=True)
class Case:
    """One of a pivot's cases: the rows whose first true condition is this one. No row is in two cases of a pivot."""

    pivot: int
    number: int


class _OfOne:
    """A measure to which a row, a unit or a value adds one."""

    __slots__ = ()

    @property
    def reach(self) -> int:
        return 1


class _OfSummand:
    """A measure to which a row or a value adds a summand, or its distance from the middle, doubled."""

    __slots__ = ()
    summand: Summand
    centred: bool

    @property
    def reach(self) -> int:
        return self.summand.width if self.centred else self.summand.reach


@dataclass(frozen=True, slots=True)
class Count(_OfOne):
    """Rows for which the condition is true."""

    condition: Expression = TRUE
    case: Case | None = None


@dataclass(frozen=True, slots=True)
class Values(_OfOne):
    """Rows with a value."""

    summand: Summand
    case: Case | None = None


@dataclass(frozen=True, slots=True)
class Sum(_OfSummand):
    """Σq over rows with a value, or Σ(2q − (low + high)) where centred; `total` caps what a unit adds to all groups."""

    summand: Summand
    centred: bool = False
    total: int | None = None
    case: Case | None = None

    def __post_init__(self) -> None:
        if self.total is not None and (type(self.total) is not int or self.total < 1):
            raise NotSupported("the limit of a unit's total must be an integer of at least 1")


@dataclass(frozen=True, slots=True)
class Products:
    """Σ(2q − (low + high))(2r − (low + high)) over rows with both values; of one summand twice: squares."""

    first: Summand
    second: Summand
    case: Case | None = None

    @property
    def reach(self) -> int:
        return self.first.width * self.second.width


@dataclass(frozen=True, slots=True)
class Units(_OfOne):
    """Units with a row for which the condition is true."""

    condition: Expression = TRUE
    case: Case | None = None


@dataclass(frozen=True, slots=True)
class Distinct(_OfOne):
    """Different values that are not NULL."""

    expression: Expression
    case: Case | None = None


@dataclass(frozen=True, slots=True)
class DistinctValues(_OfOne):
    """Different q."""

    summand: Summand
    case: Case | None = None


@dataclass(frozen=True, slots=True)
class DistinctSum(_OfSummand):
    """The sum of the different q, or of the different 2q − (low + high)."""

    summand: Summand
    centred: bool = False
    case: Case | None = None


RowMeasure = Count | Values | Sum | Products
DistinctMeasure = Distinct | DistinctValues | DistinctSum
Measure = RowMeasure | Units | DistinctMeasure
