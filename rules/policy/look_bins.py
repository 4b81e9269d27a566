"""A private look at columns: questions whose groups are known bins, and what noised counts in these bins say.

Each unit adds 1 in all, spread over its rows, to the bins of a column. So noise has the scale 1/ε whatever units there
are, and what is made of the noised counts is post-processing.
"""

from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from typing import Final, Literal

from rules.catalog import Column, Table, TableName
from rules.frozen import frozen
from rules.policy.column_kind import kind_of
from rules.policy.model import Bound, Policy

_POWERS: Final = [Decimal(2) ** power for power in range(-7, 45)]
NUMBERS: Final = [-power for power in reversed(_POWERS)] + [Decimal(0)] + _POWERS  # the edges of bins
YEARS: Final = range(1900, 2101)
ROWS: Final = [2**power for power in range(17)]  # of one unit
_TAIL: Final = 0.02  # of the rows, each unit's weighing 1 in all, that may lie below a range, and above
_SHARE: Final = 0.05  # of units that may have more rows than a cap that is proposed

Kind = Literal["rows", "numbers", "years", "values"]


@frozen
class ColumnLook:
    """One question about a table, or one of its columns."""

    table: TableName
    column: str | None
    kind: Kind
    sql: str
    edges: tuple[Decimal, ...] = ()  # of the bins of numbers: the n-th bin ends below the n-th edge


@frozen
class LookResult:
    """The findings of a look; nothing where noise hides all."""

    lower: Bound | None = None
    upper: Bound | None = None
    rows: int | None = None
    values: tuple[str, ...] = ()


def rows_look(table: Table, policy: Policy) -> ColumnLook:
    """Return how many rows a unit has in a table."""
    rules = policy.find_table(table.name)
    assert rules is not None, "tables of the policy are looked at"
    unit, source, alias = rules.unit_step(), f"{_name(table.name)} AS t0", 0
    while unit.target is not None:
        following = policy.find_table(unit.target)
        assert following is not None, "the way to the unit is in the policy"
        joined = f"{_name(unit.target)} AS t{alias + 1} ON t{alias}.{_quoted(unit.column)}"
        source = f"{source} JOIN {joined} = t{alias + 1}.{_quoted(unit.target_column)}"
        unit, alias = following.unit_step(), alias + 1
    of_units = f"SELECT t{alias}.{_quoted(unit.column)} AS u, count(*) AS n FROM {source} GROUP BY 1"
    bins = " ".join(f"WHEN n <= {most} THEN {number}" for number, most in enumerate(ROWS))
    return ColumnLook(
        table.name, None, "rows", f"SELECT CASE {bins} ELSE {len(ROWS)} END, count(*) FROM ({of_units}) AS s GROUP BY 1"
    )


def column_look(table: Table, column: Column) -> ColumnLook | None:
    """In which bins the values of a column are; None for a type without bins."""
    name, kind, edges = _quoted(column.name), kind_of(column.type), tuple[Decimal, ...]()
    shape: Kind = "numbers"
    match kind:
        case "integer" | "number" | "float":
            edges = tuple(number for number in NUMBERS if kind != "integer" or number == int(number))
            bins, last = " ".join(f"WHEN {name} < {edge:f} THEN {n}" for n, edge in enumerate(edges)), len(edges)
        case "date" | "timestamp":
            bins, last = " ".join(f"WHEN {name} < DATE '{year}-01-01' THEN {year}" for year in YEARS), YEARS.stop
            shape = "years"
        case _:
            return None
    case = f"CASE {bins} WHEN {name} IS NOT NULL THEN {last} END"
    return ColumnLook(
        table.name, column.name, shape, f"SELECT {case}, count(*) FROM {_name(table.name)} GROUP BY 1", edges
    )


def values_look(table: Table, column: Column) -> ColumnLook | None:
    """Return which values of a text column many units have: groups that are found in the data, by threshold."""
    if kind_of(column.type) != "text":
        return None
    name = _quoted(column.name)
    return ColumnLook(table.name, column.name, "values", f"SELECT {name}, count(*) FROM {_name(table.name)} GROUP BY 1")


def found_rows(counts: Sequence[tuple[str | None, int]], reach: float) -> LookResult:
    """The least cap that about 19 of 20 units do not exceed, by the bins that noise alone did not fill."""
    bins = {int(label or 0): count for label, count in counts if count > reach}
    whole = sum(bins.values())
    for number, most in enumerate(ROWS):
        if whole and sum(count for rows, count in bins.items() if rows > number) <= _SHARE * whole:
            return LookResult(rows=most)
    return LookResult()


def found_range(look: ColumnLook, counts: Sequence[tuple[str | None, int]], reach: float) -> LookResult:
    """From the lowest to the highest bin that noise alone did not fill, without the outermost fiftieth on each side.

    Those are quantiles of noised counts: what few units have beyond is clamped.

    Example:
        >>> years = ColumnLook(TableName("public", "orders"), "day", "years", "")
        >>> found_range(years, [("1996", 40), ("1998", 35), ("2100", 3), (None, 99)], 12.0)
        LookResult(lower=datetime.date(1995, 1, 1), upper=datetime.date(1997, 12, 31), rows=None, values=())
    """
    filled = _inner(sorted((int(label), count) for label, count in counts if label is not None and count > reach))
    if not filled:
        return LookResult()
    if look.kind == "years":
        first, last = max(filled[0] - 1, YEARS.start), min(filled[-1] - 1, YEARS.stop - 1)
        return LookResult(date(first, 1, 1), date(last, 12, 31))
    upper, lower = look.edges[min(filled[-1], len(look.edges) - 1)], look.edges[max(filled[0] - 1, 0)]
    return LookResult(_plain(Decimal(0) if 0 < lower <= upper / 2 else lower), _plain(upper))


def _inner(bins: list[tuple[int, int]]) -> list[int]:
    """The bins between two quantiles."""
    tail = _TAIL * sum(count for _, count in bins)
    below, above, edges = 0, sum(count for _, count in bins), list[int]()
    for label, count in bins:
        above -= count
        if below + count > tail and above + count > tail:
            edges.append(label)
        below += count
    return edges


def found_values(counts: Sequence[tuple[str | None, int]], most: int = 50) -> LookResult:
    """The values that passed the threshold, unless they are many: then they are no list for a rules file."""
    values = tuple(sorted(label for label, _ in counts if label is not None and label.isprintable()))
    return LookResult(values=values if len(values) <= most else ())


def _plain(number: Decimal) -> int | Decimal:
    return int(number) if number == int(number) else number


def _name(table: TableName) -> str:
    return f"{_quoted(table.schema)}.{_quoted(table.name)}"


def _quoted(name: str) -> str:
    escaped = name.replace('"', '""')
    return f'"{escaped}"'
