"""The SQL of bounded statements, in several forms that compute the same integers: which one runs is advice.

Every form is a union of parts (`parts`). Their numbers are added by group, as numeric, and become bigints last: to
saturate at ±2^62 after the last addition is a 1-Lipschitz function of each number, and moves no difference further.
"""

from collections.abc import Sequence
from typing import Literal

from rules.kernel.keys import Found
from rules.kernel.measures import Distinct, DistinctMeasure, DistinctSum, DistinctValues, RowMeasure, Sum, Units
from rules.kernel.pairs import pairs, per_pair
from rules.kernel.parts import Column, Frame, Steps, grouped

SATURATION = 2**62
_ONCE = {"beyond": "MATERIALIZED "}  # or each worker of a parallel plan would look for them among all rows

Form = Literal["one row", "corrected", "candidates", "pairs"]


def statement_sql(
    frame: Frame, form: Form, *, repeatable: bool, candidates: str | None = None, threshold: int | None = None
) -> str:
    """The whole statement; of found groups only those that the measure with the threshold may let out."""
    steps, parts = _parts(frame, form, candidates)
    reading = "NOT MATERIALIZED" if repeatable else "MATERIALIZED"
    earlier = "".join(f", {name} AS {_ONCE.get(name, '')}({sql})" for name, sql in steps)
    keys = zip(frame.source.keys, frame.keys, strict=True)
    shown = [f"{name}::text" if isinstance(key, Found) else name for key, name in keys]
    shown += [saturated(f"sum({each.name})") for each in frame.columns]
    having = "" if threshold is None else f" HAVING sum(x{threshold}) > 0"
    return (
        f"WITH r AS {reading} ({frame.source.sql}){earlier} "
        f"SELECT {', '.join(shown)} FROM ({' UNION ALL '.join(parts)}) AS t{grouped(frame.keys)}{having}"
    )


def saturated(number: str) -> str:
    """A number of any size as a bigint; of no rows, 0."""
    return f"least(greatest(coalesce({number}, 0), -{SATURATION}), {SATURATION})::int8"


def _parts(frame: Frame, form: Form, candidates: str | None) -> tuple[Steps, list[str]]:
    if form == "one row":
        return (), [_one_row(frame)]
    summed = [each for each in frame.columns if isinstance(each.measure, RowMeasure)]
    units = [each for each in frame.columns if isinstance(each.measure, Units)]
    different = [_different(frame, each) for each in frame.columns if isinstance(each.measure, DistinctMeasure)]
    steps: Steps = ()
    parts = []
    if form != "pairs" and summed:
        corrections, corrected = _corrected(frame, summed, candidates if form == "candidates" else None)
        steps, parts, summed = corrections, corrected, []
    if summed or units:
        more, part = pairs(frame, [*summed, *units])
        steps, parts = (*steps, *more), [*parts, part]
    return steps, [*parts, *different] or [frame.part({}, "r")]  # without measures, the groups that there are


def _one_row(frame: Frame) -> str:
    """A plain GROUP BY, where a unit has at most one row in all.

    It is then in one group at most, and C ≤ 1 ≤ m: nothing is scaled, cut or ranked, and Σ over its rows is g. Listed
    keys keep this, since a list is a function of a row's values. Where rows have no unit, each row is one.
    """
    return frame.part({each.name: _plain(each) for each in frame.columns}, "r")


def _plain(column: Column) -> str:
    """A measure over rows of which each is a unit's only one. What it adds to a capped sum is clamped to the cap."""
    value, where = column.term.value, column.term.filtered
    match column.measure:
        case Distinct() | DistinctValues():
            return f"count(DISTINCT {value}){where}"
        case DistinctSum():
            return f"sum(DISTINCT {value}){where}"
        case Sum(total=int() as total):
            clamped = f"CASE WHEN {value} IS NOT NULL THEN least(greatest({value}, -{total}), {total}) END"
            return f"sum({clamped}){where}"
    return column.total


def _corrected(frame: Frame, columns: Sequence[Column], candidates: str | None) -> tuple[Steps, list[str]]:
    """Sums over all rows, as if no unit had more than m, and corrections for the units that have.

    The plain part has Σ_u F·s_u of each group, the correction Σ_u (trunc(F·m·s_u/C) − F·s_u) over units with C > m:
    what remains of each unit is g. Both read the rows, so the rows must be the same twice.

    Units beyond m are looked for among the rows, or in a superset of the rows. In a superset, every unit beyond m is
    beyond m too; C is then counted anew, over the rows themselves, and those with C ≤ m are corrected by nothing.
    """
    plain = frame.part({each.name: f"{each.factor}::numeric * {each.total}" for each in columns}, "r")
    among = "r" if candidates is None else f"({candidates}) AS s WHERE u IS NOT NULL"
    beyond = f"SELECT u FROM {among} GROUP BY u HAVING count(*) > {frame.caps.rows}"
    few = per_pair(frame, columns, "r JOIN beyond USING (u)")
    counted = f"SELECT *, {frame.by_unit('sum(n)', 'n')}::int8 AS c FROM ({few}) AS p"
    steps = (("beyond", beyond), ("corrected", counted))
    values = {
        each.name: f"sum({frame.share(each)} - {each.factor}::numeric * {each.summed})"  # 0 where c ≤ m
        for each in columns
    }
    return steps, [plain, frame.part(values, "corrected")]


def _different(frame: Frame, column: Column) -> str:
    """Different values by group, of which each unit brings at most m pairs of group and value.

    They cannot be scaled: a value counts once, however many units have it. So m triples (unit, group, value) of a unit
    are kept, over all groups, in an order by a hash that is total because triples are unique.
    """
    names = ", ".join([*frame.keys, "v"])
    where = f" AND {column.term.where}" if column.term.where else ""
    triples = ", ".join(["u", *frame.keys, f"{column.term.value} AS v"])
    distinct = f"SELECT DISTINCT {triples} FROM r WHERE {column.term.value} IS NOT NULL{where}"
    order = f"PARTITION BY u ORDER BY {frame.source.hashed('v')}, {names}"
    ranked = f"SELECT {names}, row_number() OVER ({order}) AS rn FROM ({distinct}) AS d"
    total = "sum(DISTINCT v)" if isinstance(column.measure, DistinctSum) else "count(DISTINCT v)"
    return frame.part({column.name: total}, f"({ranked}) AS e", f" WHERE rn <= {frame.caps.rows}")
