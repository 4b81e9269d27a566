"""An independent g: what one unit adds to each measure and group, in exact integers and without any SQL."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from struct import pack, unpack

from rules.kernel.keys import Bins, Found, Key, Listed
from rules.kernel.measures import Case, Count, Distinct, DistinctSum, Measure, Products, Sum, Units, Values
from rules.kernel.summand import Summand
from rules.values.expression import Apply, Column, Constant, Expression
from rules.values.value import days_of, microseconds_of
from tests.kernel.facts import HUGE, Row

Group = tuple[int | str | None, ...]
Triple = tuple[Group, int | str]
Pivots = Sequence[Sequence[Expression]]
CANONICAL = {"5.0": "5", "5.00": "5", "-0": "0", "1e308": "1e+308", "-1e308": "-1e+308", "3e38": "3e+38"} | {
    "-3e38": "-3e+38", "1e-999": f"0.{'0' * 998}1"
}  # fmt: skip


def q_of(summand: Summand, row: Row) -> int | None:
    """The clamped integer of a cell."""
    lattice = summand.lattice
    number = _number_of(summand.expression, row)
    if number is None:
        return None
    low, high = lattice.low * lattice.step, lattice.high * lattice.step
    inside = low if number == Decimal("-Infinity") else high if number == Decimal("Infinity") else Fraction(number)
    scaled = min(max(inside, low), high) / lattice.step
    if summand.expression.type.kind == "float":
        return round(scaled)  # half to even
    return min(max(int(abs(scaled) + Fraction(1, 2)) * (-1 if scaled < 0 else 1), lattice.low), lattice.high)


def _number_of(expression: Expression, row: Row) -> Decimal | Fraction | None:
    """A number; NULL and NaN are none."""
    match expression:
        case Column(name=name, type=kind):
            text = row[name]
            return None if text in (None, "NaN") else _number(str(text), kind.base)
        case Constant(text=str() as text):
            return Fraction(text)
        case Apply(sql=sql, arguments=arguments):
            found = [Fraction(each) for given in arguments if (each := _number_of(given, row)) is not None]
            if len(found) < len(arguments):
                return None
            one, two, *more = found
            return min(max(one, two), *more) if more else {"*": one * two, "+": one + two, "-": one - two}[sql[5]]
    raise TypeError(expression)


def _number(text: str, base: str) -> Decimal | Fraction:
    """The number of a cell, dates in days and timestamps in microseconds; what Python has no date for is far away."""
    if base in ("date", "timestamp", "timestamptz"):
        if "inf" in text or text[:2] != "20":
            return Decimal("-Infinity" if text.startswith("-") or "BC" in text or text[0] == "0" else "Infinity")
        moment = datetime.fromisoformat(text.removesuffix("+00"))
        return Fraction(days_of(moment.date()) if base == "date" else microseconds_of(moment))
    if "Inf" in text or HUGE in text:
        return Decimal("-Infinity" if text.startswith("-") else "Infinity")
    if base == "float8":
        return Fraction(float(text))
    return Fraction(*unpack("f", pack("f", float(text)))) if base == "float4" else Fraction(Decimal(text))


def holds(condition: Expression, row: Row) -> bool:
    """Conditions of the tests: a truth, a comparison of `a` with a number, or TRUE."""
    if not isinstance(condition, Apply):
        return True
    (column,) = condition.arguments
    assert isinstance(column, Column)
    text, (_, *rest) = row[column.name], condition.sql.split()
    if text is None or not rest:
        return text == "true"
    return int(text) == int(rest[1]) if rest[0] == "=" else int(text) > int(rest[1])


def group_of(keys: Sequence[Key], row: Row) -> Group | None:
    """Ordinals, bins and canonical texts; None for a row that is not counted."""
    found: list[int | str | None] = []
    for key in keys:
        match key:
            case Listed(expressions=expressions, labels=labels):
                cells = [row[expression.name] for expression in expressions if isinstance(expression, Column)]
                places = [place for place, label in enumerate(labels) if list(label) == cells]
                if not places:
                    return None
                found.append(places[0])
            case Bins(summand=summand, width=width):
                q = q_of(summand, row)
                if q is None:
                    return None
                found.append((q - summand.lattice.low) // width)
            case Found(expression=Column(name=name)):
                text = row[name]
                if text is not None and (len(text.encode()) > 8192 or HUGE in text):
                    return None
                if name == "r" and text is not None:
                    text = _as_double(text)
                found.append(text if text is None or name == "b" else CANONICAL.get(text, text))
    return tuple(found)


def _as_double(text: str) -> str:
    """A real as PostgreSQL writes the double that it equals."""
    if text == "NaN" or "Inf" in text:
        return text
    (number,) = unpack("f", pack("f", float(text)))
    return repr(number + 0.0).removesuffix(".0")


@dataclass(frozen=True)
class Limits:
    """m and K' of a unit, the factor of a measure, and whether the groups are found."""

    rows: int
    groups: int
    factor: int
    found: bool


def contribution(
    rows: Sequence[tuple[Group, Row]], measure: Measure, pivots: Pivots, limits: Limits
) -> Counter[Group] | None:
    """What one unit adds, by group; None where an order by a hash decides."""
    factor, m, k = limits.factor, limits.rows, limits.groups
    added: Counter[Group] = Counter()
    for group, row in rows:
        if _counts(measure.case, pivots, row):
            added[group] += _value(measure, row)
    if isinstance(measure, Units):
        groups = [g for g, n in added.items() if n]
        if limits.found:
            return None if len({g for g, _ in rows}) > k else Counter(groups)
        return Counter({g: factor * k // max(len(groups), k) for g in groups})
    total = len(rows)
    shares = {g: factor * s if total <= m else _div(factor * m * s, total) for g, s in added.items()}
    if isinstance(measure, Sum) and measure.total is not None:
        t, cap = sum(map(abs, shares.values())), factor * measure.total
        shares = {g: s if t <= cap else _div(s * cap, t) for g, s in shares.items()}
    return Counter(shares)


def values_of(rows: Sequence[tuple[Group, Row]], measure: Distinct | DistinctSum, pivots: Pivots) -> set[Triple]:
    """The different values of a unit's rows, by group."""
    counted = [(group, _distinct(measure, row)) for group, row in rows if _counts(measure.case, pivots, row)]
    return {(group, value) for group, value in counted if value is not None}


def _div(one: int, other: int) -> int:
    return abs(one) // other * (-1 if one < 0 else 1)


def _counts(case: Case | None, pivots: Pivots, row: Row) -> bool:
    if case is None:
        return True
    return next((n for n, pivot in enumerate(pivots[case.pivot]) if holds(pivot, row)), None) == case.number


def _value(measure: Measure, row: Row) -> int:
    match measure:
        case Count(condition=condition) | Units(condition=condition):
            return int(holds(condition, row))
        case Values(summand=summand):
            return int(q_of(summand, row) is not None)
        case Sum(summand=summand, centred=centred):
            return _of(summand, row, centred=centred) or 0
        case Products(first=first, second=second):
            return (_of(first, row, centred=True) or 0) * (_of(second, row, centred=True) or 0)
    raise AssertionError


def _of(summand: Summand, row: Row, *, centred: bool) -> int | None:
    q = q_of(summand, row)
    return 2 * q - summand.lattice.low - summand.lattice.high if centred and q is not None else q


def _distinct(measure: Distinct | DistinctSum, row: Row) -> int | str | None:
    if isinstance(measure, DistinctSum):
        return _of(measure.summand, row, centred=measure.centred)
    assert isinstance(measure.expression, Column)
    text = row[measure.expression.name]
    return text if text is None or measure.expression.name == "b" else CANONICAL.get(text, text)
