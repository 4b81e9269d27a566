"""Parts of the difference of two moments and of an age, which are the intervals that rows can have here."""

from fractions import Fraction

from rules.refusal import NotSupported
from rules.relation import domain, value
from rules.relation.domain import Range
from rules.relation.expression import Apply, Column, Expression
from rules.relation.types import Type
from rules.relation.value import DAY

_CLOCK = {"hour": 23, "minute": 59, "second": 60}
# What makes an interval -> what its fields can be: days of hours, and of an age months and years of days.
_LIMITS = {
    "-": {"epoch": 10**12, "day": 4_000_000, **_CLOCK},
    "age": {"epoch": 10**12, "year": 10_000, "decade": 1_000, "century": 100, "month": 11, "day": 31, **_CLOCK},
    "spans": {"epoch": 10**12},
}


def part_of_span(field: str, given: Expression, result: Type) -> Expression:
    """extract(field FROM x - y) and of age(x, y)."""
    if isinstance(given, Column) and field == "epoch":
        return _seconds(given, result)
    limit = _LIMITS.get(given.name, {}).get(field) if isinstance(given, Apply) else None
    if limit is None or not isinstance(given, Apply):
        raise NotSupported(f"extract({field} from interval) is not supported", hint="Take epoch and divide it.")
    step = Fraction(1, 10**6) if field in ("epoch", "second") else Fraction(1)
    whole = Range(Fraction(-limit), Fraction(limit), step)
    image = _years(given) or whole if (given.name, field) == ("age", "year") else whole
    return Apply("extract", f"extract({field} from {{0}})::{result.sql}", (given,), result, image, given.nullable)


def _seconds(given: Column, result: Type) -> Expression:
    """Of a column, whose intervals may be endless: more seconds than there are in a calendar are NULL."""
    limit, step = _LIMITS["-"]["epoch"], Fraction(1, 10**6)
    part = "extract(epoch from {0})"
    sql = f"CASE WHEN {part} BETWEEN -{limit} AND {limit} THEN {part}::{result.sql} END"
    return Apply("extract", sql, (given,), result, Range(Fraction(-limit), Fraction(limit), step), nullable=True)


def _years(age: Apply) -> Range | None:
    """The whole years of an age whose moments have bounds; they are cut towards zero."""
    later, earlier = (domain.range_of(each.domain) for each in age.arguments)
    low, high = _between(later.low, earlier.high, -DAY), _between(later.high, earlier.low, DAY)
    if low is None or high is None:
        return None
    return Range(low - (1 if low > 0 else 0), high + (1 if high < 0 else 0), domain.ONE)


def _between(later: Fraction | None, earlier: Fraction | None, slack: int) -> Fraction | None:
    """By the calendar, with the room that clocks need which are told in a zone and put forward and back."""
    if later is None or earlier is None:
        return None
    first, last = int(earlier) - slack, int(later) + slack
    if not value.is_dated(first) or not value.is_dated(last):
        return None
    return Fraction(value.moment_at(last).year - value.moment_at(first).year)
