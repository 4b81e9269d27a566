"""One reading of the rows, summed by unit and group: the form for every kind of key, and for counts of units.

A pair is a unit and a group in which it has rows. There is one row for each pair, so what a unit adds to a group is
computed in one place, from numbers of that unit alone: c, its rows in all groups, d, its groups, and rn, the place of
the group among them.
"""

from collections.abc import Sequence

from rules.kernel.keys import Found
from rules.kernel.measures import RowMeasure, Sum, Units
from rules.kernel.parts import Column, Frame, Steps, grouped


def pairs(frame: Frame, columns: Sequence[Column]) -> tuple[Steps, str]:
    """The part of measures of rows and of units.

    Rows are scaled by m/c. Units of listed groups are scaled too, F·K'/max(d, K') in each group. Where groups are
    found, whole groups are wanted: only K' of a unit's groups count it, in an order by a hash that is total, since
    pairs are unique; all its rows count in all its groups, for m alone bounds them.

    Found groups may then be let out by a threshold over that count. A group is a candidate if the count is at least 1.
    Without one unit, all others keep their groups, for rn looks at one unit alone. So at most K' candidates are there
    because of it, and it is the only unit counted in them. Given that the noise lets none of these pass, both databases
    answer over the same groups, in which rows move by at most m·M.
    """
    steps = [("pairs", per_pair(frame, columns, "r"))]
    measured = _measured(frame, columns)
    if measured:
        steps.append(("units", f"SELECT *, {', '.join(measured)} FROM pairs"))
    capped = [each for each in columns if _cap(each) is not None]
    if capped:
        shares = ", ".join(f"{frame.share(each)} AS w{each.number}" for each in capped)
        steps.append(("shares", f"SELECT *, {shares} FROM {steps[-1][0]}"))
        sums = (
            f"{frame.by_unit(f'sum(abs(w{each.number}))', f'abs(w{each.number})')} AS t{each.number}" for each in capped
        )
        steps.append(("totals", f"SELECT *, {', '.join(sums)} FROM shares"))
    values = {each.name: f"sum({_value(frame, each)})" for each in columns}
    return tuple(steps), frame.part(values, steps[-1][0])


def per_pair(frame: Frame, columns: Sequence[Column], source: str) -> str:
    """One row for each unit and group: its rows there, and what they add up to."""
    names = ["u", *frame.keys]
    sums = [
        f"{each.total} AS {each.summed}" for each in columns if not isinstance(each.measure, Units) or each.term.where
    ]
    return f"SELECT {', '.join([*names, 'count(*) AS n', *sums])} FROM {source}{grouped(names)}"


def _measured(frame: Frame, columns: Sequence[Column]) -> list[str]:
    """What is known of a unit beside each of its pairs."""
    found = []
    if frame.caps.scales_rows and any(isinstance(each.measure, RowMeasure) for each in columns):
        found.append(f"{frame.by_unit('sum(n)', 'n')}::int8 AS c")
    units = [each for each in columns if isinstance(each.measure, Units)]
    if frame.caps.scales_groups:
        for each in units:
            here = f" FILTER (WHERE {each.summed} > 0)" if each.term.where else ""
            found.append(f"{frame.by_unit(f'count(*){here}', '1')} AS d{each.number}")
    if units and _is_found(frame):
        order = ", ".join([frame.source.hashed(), *frame.keys])
        found.append(f"row_number() OVER (PARTITION BY u ORDER BY {order}) AS rn")
    return found


def _is_found(frame: Frame) -> bool:
    return any(isinstance(key, Found) for key in frame.source.keys)


def _cap(column: Column) -> int | None:
    """F·b: the cap of what a unit adds to a sum over all groups."""
    match column.measure:
        case Sum(total=int() as total):
            return column.factor * total
    return None


def _value(frame: Frame, column: Column) -> str:
    """What a pair adds to a measure."""
    if isinstance(column.measure, Units):
        return _unit(frame, column)
    cap = _cap(column)
    if cap is None:
        return frame.share(column)
    share, total = f"w{column.number}", f"t{column.number}"
    return f"CASE WHEN {total} <= {cap} THEN {share} ELSE div({share}::numeric * {cap}, {total})::int8 END"


def _unit(frame: Frame, column: Column) -> str:
    most = frame.caps.groups
    value, conditions = "1", [f"{column.summed} > 0"] if column.term.where else []
    if _is_found(frame):
        conditions.append(f"rn <= {most}")
    elif frame.caps.scales_groups:
        value = f"{column.factor * most}::int8 / greatest(d{column.number}, {most})"
    return f"CASE WHEN {' AND '.join(conditions)} THEN {value} ELSE 0 END" if conditions else value
