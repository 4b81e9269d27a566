"""The integer measures of a bounded statement, and how far one unit moves them, by the numbers that the SQL enforces.

`reach` is the largest absolute value of what one row, or one value, adds. Row measures are bounded by rows of a unit,
counts of units by its groups, and different values by values of a unit (`sensitivity`).

Let a unit have C counted rows, Σq of them in a group, and w = min(1, m/C). What it adds to the group is

    g = F·Σq             where C ≤ m
    g = trunc(F·m·Σq/C)  otherwise

with F a power of two: a finer lattice in place of rounding by chance, so the released number is (integer + noise)/F.
Scaled, not sampled: this needs no order of rows, so no ties, and it is the same share in every question over the rows.

* **Rows.** Each |q| ≤ M, by the clamp. |g| ≤ F·w·(the unit's rows in the group)·M, since trunc never grows an absolute
  value, and these rows are C in all groups together: L1 ≤ F·w·C·M ≤ F·m·M. L2 ≤ L1, reached where all rows are in one
  group. A pivot's measures share the rows: Σ over its cases of |g_i|/(F_i·m·M_i) ≤ w·C/m ≤ 1, so they are one vector.
* **Totals.** With a cap b, and t = Σ|g| over all groups, g becomes trunc(g·F·b/t) where t > F·b: L1 ≤ F·b besides.
* **Units, listed.** A unit is in d of the G groups, and adds trunc(F·K/max(d, K)) to each, K = min(m, K, G), so
  L1 ≤ F·K and L2² ≤ d·F²·min(1, K/d)² ≤ F²·K. `m` stands in it because pairs of unit and group are scaled by K itself.
  None of these is above F, so in k' groups, if these are chosen of the list, L1 ≤ F·min(K, k').
* **Units, found.** At most K groups of a unit are counted, 1 in each: L1 ≤ K, L2² ≤ K.
* **Different values.** At most m triples (unit, group, value) of a unit are kept. Without it, at most m pairs (group,
  value) leave the set, each worth at most M: L1 ≤ m·M, and as much in L2, since all may be in one group.
"""

from dataclasses import dataclass
from typing import assert_never

from rules.kernel.summand import Summand
from rules.refusal import NotSupported, TooComplex
from rules.values.expression import TRUE, Expression


@dataclass(frozen=True, slots=True)
class Case:
    """One of a pivot's cases: the rows whose first true condition is this one. No row is in two cases of a pivot."""

    pivot: int
    number: int


class _OfOne:
    """A measure to which a row, a unit or a value adds one."""

    __slots__ = ()
    reach = 1


class _OfSummand:
    """A measure to which a row or a value adds a summand, or its distance from the middle, doubled."""

    __slots__ = ()
    summand: Summand
    centred: bool

    @property
    def reach(self) -> int:
        lattice = self.summand.lattice
        return lattice.width if self.centred else lattice.reach


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
        return self.first.lattice.width * self.second.lattice.width


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

MOST_SENSITIVE = 2**60  # a unit's integers, and half of what a saturated bigint holds, stay in range
_FINEST = 2**16
_FINE_ENOUGH = 2**26  # of a reach times a factor: finer would bring the sum of all rows near its saturation
_ROOM = 2**50  # for F·m·M, below MOST_SENSITIVE by the largest group_size of the rules


@dataclass(frozen=True, slots=True)
class Caps:
    """The caps that the statement enforces of each unit."""

    rows: int  # m: over all groups together
    groups: int  # K' = min(m, K, G)
    scales_rows: bool  # whether a unit may have more than m
    scales_groups: bool  # whether a unit's listed groups may be more than K'; found groups are cut to K' instead


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """Of ONE unit: the policy's group_size multiplies these. The released number is (integer + noise) / factor."""

    factor: int
    l1: int
    l2_squared: int
    largest: int  # in one group


def sensitivity(measure: Measure, caps: Caps) -> Sensitivity:
    """The factor and the distances of a measure over all groups.

    Example:
        >>> sensitivity(Count(), Caps(rows=32, groups=12, scales_rows=True, scales_groups=True))
        Sensitivity(factor=65536, l1=2097152, l2_squared=4398046511104, largest=2097152)
    """
    match measure:
        case Units():
            factor = _factor(caps.groups, measure.reach) if caps.scales_groups else 1
            return Sensitivity(factor, factor * caps.groups, factor**2 * caps.groups, factor)
        case Distinct() | DistinctValues() | DistinctSum():
            return _of(1, caps.rows * measure.reach)
        case Sum(total=int() as total):
            return _of(_row_factor(measure, caps), caps.rows * measure.reach, total)
        case Count() | Values() | Sum() | Products():
            return _of(_row_factor(measure, caps), caps.rows * measure.reach)
    assert_never(measure)


def _of(factor: int, most: int, total: int | None = None) -> Sensitivity:
    """Return what is scaled down to a total has to stay in range before that too."""
    if factor * most > MOST_SENSITIVE:
        hint = "Use narrower bounds, or lower noisegate.rows_per_unit."
        raise TooComplex("one unit could change this sum by more than the range of bigint", hint=hint)
    distance = factor * (most if total is None else min(most, total))
    return Sensitivity(factor, distance, distance**2, distance)


def _row_factor(measure: Measure, caps: Caps) -> int:
    return _factor(caps.rows, measure.reach) if caps.scales_rows else 1


def _factor(times: int, reach: int) -> int:
    """A power of two: 1 where the integers are fine enough already, and so small that all sums stay in range."""
    factor = _FINEST
    while factor > 1 and (factor * reach > _FINE_ENOUGH or factor * times * reach > _ROOM):
        factor //= 2
    return factor
