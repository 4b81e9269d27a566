"""The bounded statement: keys and measures over local rows, each of which one unit moves by no more than is said.

Boundedness: Q(D) = sat(Σ_u g(R_u)) by group and measure, with g a function of one unit's rows R_u into integers whose
distances from 0 are those of `sensitivity`. Removing a unit takes its rows away and no others, for the rows are local,
so Q moves by at most the distance of g. All caps stand in the SQL itself: nothing that is said of rows is believed.
"""

from collections.abc import Sequence
from math import prod

from rules.kernel.forms import Form, statement_sql
from rules.kernel.keys import Bins, Found, Key, Listed
from rules.kernel.measures import DistinctMeasure, Measure, RowMeasure, Sum, Units
from rules.kernel.parts import Column, Frame
from rules.kernel.rows import Rows
from rules.kernel.sensitivity import Caps, Sensitivity, sensitivity
from rules.kernel.source import Pivots, source_of
from rules.kernel.statement import _KERNEL, Bounded, KeyColumn, Measured, Ordinals, Texts, Threshold
from rules.refusal import NotSupported


def bounded(
    rows: Rows,
    keys: Sequence[Key],
    measures: Sequence[Measure],
    *,
    rows_per_unit: int,
    groups_per_unit: int | None = None,
    pivots: Pivots = (),
    form: Form | None = None,
    finds_groups: bool = True,
) -> Bounded:
    """Measures by group, of at most so many rows of each unit over all groups, and so many groups where units count.

    Where a key is found, units are counted for a threshold: the first Units that is asked for, or one more measure.
    Not so for groups that another statement found. `form` is advice; whatever cannot have it gets one that it can.
    """
    found = finds_groups and any(isinstance(key, Found) for key in keys)
    threshold = measures.index(Units()) if Units() in measures else len(measures)
    measured = [*measures, Units()] if found and threshold == len(measures) else list(measures)
    caps = caps_of(rows, keys, rows_per_unit, groups_per_unit)
    if not rows.has_identity and not rows.proved_one:
        raise NotSupported("rows of a table without a primary key cannot be duplicated by a join")
    source = source_of(rows, keys, measured, pivots)
    distances = [sensitivity(each, caps) for each in measured]
    numbered = enumerate(zip(measured, source.terms, distances, strict=True))
    columns = tuple(Column(number, each, term, distance.factor) for number, (each, term, distance) in numbered)
    chosen = _form(rows, keys, measured, form)
    sql = statement_sql(
        Frame(source, columns, caps),
        chosen,
        repeatable=rows.repeatable,
        candidates=rows.candidates() if chosen == "candidates" else None,
        threshold=threshold if found else None,
    )
    shown, groups = tuple(map(_key_column, keys)), Threshold(threshold, caps.groups) if found else None
    return Bounded(sql, shown, _vectors(measured, distances), groups, _KERNEL)


def caps_of(rows: Rows, keys: Sequence[Key], rows_per_unit: int, groups_per_unit: int | None) -> Caps:
    """What is enforced: m by scaling, or by a key that PostgreSQL enforces; K' = min(m, K, G) by scaling or by rank."""
    given = rows_per_unit, groups_per_unit
    if any(type(each) is not int or each < 1 for each in given if each is not None):
        raise NotSupported("the limits of rows and groups per unit must be integers of at least 1")
    most = 1 if rows.proved_one else rows_per_unit
    found = any(isinstance(key, Found) for key in keys)
    groups = None if found else prod(_size(key) for key in keys)
    counted = min(most, *(max(each, 1) for each in (groups_per_unit, groups) if each is not None), most)
    scales_groups = not rows.proved_one and groups is not None and counted < groups
    return Caps(most, counted, scales_rows=not rows.proved_one, scales_groups=scales_groups)


def _size(key: Key) -> int:
    match key:
        case Listed(labels=labels):
            return len(labels)
        case Bins(count=count):
            return count
    raise TypeError("found keys have no size")


def _form(rows: Rows, keys: Sequence[Key], measures: Sequence[Measure], advised: Form | None) -> Form:
    """The advised form, if it can be had. One reading of pairs always can, where rows know their unit."""
    if rows.proved_one and (advised in (None, "one row") or not rows.has_identity):
        return "one row"
    found = any(isinstance(key, Found) for key in keys)
    capped = any(isinstance(each, Sum) and each.total is not None for each in measures)
    if found or capped or not rows.repeatable or advised == "pairs":
        return "pairs"
    if advised == "candidates" and rows.candidates() is not None:
        return "candidates"
    if advised in ("corrected", "candidates"):
        return "corrected"
    return "pairs" if not keys or any(isinstance(each, Units) for each in measures) else "corrected"


def _key_column(key: Key) -> KeyColumn:
    return Texts() if isinstance(key, Found) else Ordinals(_size(key))


def _vectors(measures: Sequence[Measure], distances: Sequence[Sensitivity]) -> tuple[Measured, ...]:
    """The first row measure of each case of a pivot makes a vector, the second of each another one, and so on.

    So no two measures of a vector count the same row. Capped sums have a vector of their own: what a cap leaves of them
    is no share of the unit's rows. So have units and different values, of which a unit has some in several cases.
    """
    numbers: dict[tuple[int, int], int] = {}
    seen: dict[tuple[int, int], int] = {}
    found = []
    for measure, distance in zip(measures, distances, strict=True):
        case = measure.case
        if case is None or isinstance(measure, Units | DistinctMeasure) or _is_capped(measure):
            found.append(Measured(distance))
            continue
        place = seen.get((case.pivot, case.number), 0)
        seen[case.pivot, case.number] = place + 1
        found.append(Measured(distance, numbers.setdefault((case.pivot, place), len(numbers))))
    return tuple(found)


def _is_capped(measure: RowMeasure) -> bool:
    return isinstance(measure, Sum) and measure.total is not None
