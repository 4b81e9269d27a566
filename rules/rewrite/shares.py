"""What one unit adds to a measure in one group, as SQL: all its rows there, and the share of them that is counted.

In the bounding statement c is a unit's rows in a group and t those that count; v… are what rows bring, s…, n… and f…
what those of one unit and group add up to.
"""

from collections.abc import Sequence

from rules.relation.expression import TRUE, Expression
from rules.rewrite.contributions import DistinctCount, DistinctSum, RowCount, RowSum, UnitCount, ValueCount

SATURATION = 2**62

Distinct = DistinctCount | DistinctSum
Summed = RowCount | ValueCount | RowSum | UnitCount | Distinct  # a Pick has a statement of its own


def held(part: Summed) -> Expression:
    """What is asked of each row."""
    match part:
        case RowCount(condition=condition) | UnitCount(condition=condition):
            return condition
        case RowSum(integer=integer) | ValueCount(integer=integer) | DistinctSum(integer=integer):
            return integer
        case DistinctCount(value=value):
            return value


def sums_of(part: Summed, place: int) -> tuple[str, ...]:
    """What one unit's rows of one group add up to: conditions (f), sums (s) and values that are there (n)."""
    match part:
        case RowCount(condition=condition) | UnitCount(condition=condition):
            return () if condition == TRUE else (f"count(*) FILTER (WHERE v{place}) AS f{place}",)
        case ValueCount():
            return (f"count(v{place}) AS n{place}",)
        case DistinctCount() | DistinctSum():
            return ()
        case RowSum(centre=None):
            return (f"coalesce(sum(v{place}), 0) AS s{place}",)
        case RowSum():
            return (f"coalesce(sum(v{place}), 0) AS s{place}", f"count(v{place}) AS n{place}")


def is_rounded(part: Summed) -> bool:
    """Whether its share is a count, whose rounding would always be downwards."""
    return isinstance(part, ValueCount) or (isinstance(part, RowCount) and part.condition != TRUE)


def of_different(place: int, part: Distinct) -> str:
    """What the different values of a group add up to."""
    match part:
        case DistinctCount():
            return f"count(DISTINCT v{place})"
        case DistinctSum(centre=None):
            return f"sum(DISTINCT v{place})"
        case DistinctSum(centre=centre):
            return f"2 * sum(DISTINCT v{place})::numeric - {centre} * count(DISTINCT v{place})::numeric"


def filter_of(condition: Expression, place: int) -> str:
    """Only the rows for which it is true."""
    return "" if condition == TRUE else f" FILTER (WHERE v{place})"


def scaled(place: int, part: Summed, before: Sequence[str] = ()) -> str:
    """A measure of a group: the shares of all units."""
    match part:
        case RowCount(condition=condition) if condition == TRUE:
            return "sum(t)"
        case DistinctCount() | DistinctSum():
            return "0::int8"
        case UnitCount(condition=condition):
            return "count(*)" if condition == TRUE else f"count(*) FILTER (WHERE f{place} > 0)"
    return f"sum({shared(place, part, before)})"


def shared(place: int, part: RowCount | ValueCount | RowSum, before: Sequence[str] = ()) -> str:
    """A unit's share of a measure in a group: t of its c rows are counted, so t/c of what they add.

    `before` are the numbers of rows that earlier counts of the same vector have.
    """
    match part:
        case RowCount() | ValueCount():
            return _next_share(counted(place, part), before) if before else _share(counted(place, part), " + h")
        case RowSum(centre=None):
            return _share(f"s{place}")
        case RowSum(centre=centre):
            return _share(f"(2 * s{place}::numeric - {centre} * n{place}::numeric)")


def counted(place: int, part: RowCount | ValueCount) -> str:
    """How many of a unit's rows in a group a count has."""
    return f"f{place}" if isinstance(part, RowCount) else f"n{place}"


def _next_share(own: str, before: Sequence[str]) -> str:
    """The counts of a vector are rounded as one: what they add up to, each with all before it, never exceeds t."""
    earlier = " + ".join(before)
    difference = f"div(({earlier} + {own})::numeric * t + h, c) - div(({earlier})::numeric * t + h, c)"
    return f"CASE WHEN c = t THEN {own}::int8 ELSE ({difference})::int8 END"


def _share(total: str, rounding: str = "") -> str:
    """div() is exact where / is not: 0 ≤ div(n·t + h, c) ≤ t for 0 ≤ n ≤ c and 0 ≤ h < c, |div(s·t, c)| ≤ t·M."""
    return f"CASE WHEN c = t THEN {total}::int8 ELSE div({total}::numeric * t{rounding}, c)::int8 END"


def clipped(number: str, bound: str) -> str:
    """NULL stays NULL, which least and greatest would make a number of."""
    return f"CASE WHEN {number} IS NOT NULL THEN least(greatest({number}, -{bound}), {bound}) END"


def saturated(measure: str) -> str:
    """A sum of any size as bigint: saturation moves no difference further."""
    if measure.startswith(("count(", "0::")):
        return measure
    return f"least(greatest(coalesce({measure}, 0), -{SATURATION}), {SATURATION})::int8"


def hash_of(names: Sequence[str], *more: str) -> str:
    """A hash of canonical texts, each with its length before it, so that no two lists look alike."""
    parts = [f"coalesce(length({name}::text) || ':' || {name}::text, 'N')" for name in names]
    parts += [f"'{each}'" for each in more]
    return f"hashtextextended({' || '.join(parts)}, 0)"
