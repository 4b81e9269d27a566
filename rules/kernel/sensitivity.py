"""Bound how far one unit moves a measure, by the numbers that the statement enforces and nothing else.

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

from rules.kernel.measures import Count, Distinct, DistinctSum, DistinctValues, Measure, Products, Sum, Units, Values
from rules.refusal import TooComplex

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
