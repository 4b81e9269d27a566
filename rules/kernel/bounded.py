"""The bounded statement: keys and measures over local rows, each of which one unit moves by no more than is said.

Boundedness: Q(D) = sat(Σ_u g(R_u)) by group and measure, with g a function of one unit's rows R_u into integers whose
distances from 0 are those of `sensitivity`. Removing a unit takes its rows away and no others, for the rows are local,
so Q moves by at most the distance of g. All caps stand in the SQL itself: nothing that is said of rows is believed.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from rules.kernel.forms import Form, Frame, statement_sql
from rules.kernel.keys import Key, column_of, count_of
from rules.kernel.measures import DistinctMeasure, Measure, Sum, Units
from rules.kernel.relations import Relation
from rules.kernel.rows import Rows
from rules.kernel.script import Script
from rules.kernel.seal import SEAL
from rules.kernel.sensitivity import Caps, Sensitivity, sensitivity
from rules.kernel.source import Pivots, source_of
from rules.kernel.statement import Bounded, Measured, Threshold
from rules.refusal import NotSupported


@dataclass(frozen=True, slots=True)
class Statement:
    """Measures by group, of at most so many rows of each unit over all groups, and so many groups where units count.

    Where a key is found, units are counted for a threshold: the first Units that is asked for, or one more measure.
    Not so for groups that another statement found. `form` is advice; whatever cannot have it gets one that it can.
    """

    rows: Script
    keys: tuple[Key, ...]
    measures: tuple[Measure, ...]
    rows_per_unit: int
    groups_per_unit: int | None = None
    pivots: Pivots = ()
    form: Form | None = None
    finds_groups: bool = True


def bounded(relation: Relation, statement: Statement) -> Bounded:
    """The statement over the rows of its script."""
    rows, keys = Rows(relation), statement.keys
    caps = caps_of(rows, keys, statement.rows_per_unit, statement.groups_per_unit)
    finds = statement.finds_groups and count_of(keys) is None
    measures = [*statement.measures, Units()] if finds and Units() not in statement.measures else [*statement.measures]
    threshold = Threshold(measures.index(Units()), caps.groups) if finds else None
    source = source_of(rows, keys, measures, statement.pivots)
    distances = [sensitivity(measure, caps) for measure in measures]
    form = _form(rows, keys, measures, statement.form)
    sql = statement_sql(
        Frame(source, caps, tuple(distance.factor for distance in distances)),
        form,
        candidates=rows.candidates() if form == "candidates" else None,
        threshold=threshold.measure if threshold else None,
    )
    return Bounded(sql, tuple(map(column_of, keys)), _vectors(measures, distances), threshold, SEAL)


def caps_of(rows: Rows, keys: Sequence[Key], rows_per_unit: int, groups_per_unit: int | None) -> Caps:
    """Enforce m by scaling, or by a key that PostgreSQL enforces, and K' = min(m, K, G) by scaling or by rank."""
    declared = rows_per_unit, groups_per_unit
    if any(type(cap) is not int or cap < 1 for cap in declared if cap is not None):
        raise NotSupported("the limits of rows and groups per unit must be integers of at least 1")
    most, groups = 1 if rows.proved_one else rows_per_unit, count_of(keys)
    counted = min(most, *(max(count, 1) for count in (groups_per_unit, groups) if count is not None), most)
    scales_groups = not rows.proved_one and groups is not None and counted < groups
    return Caps(most, counted, scales_rows=not rows.proved_one, scales_groups=scales_groups)


def _form(rows: Rows, keys: Sequence[Key], measures: Sequence[Measure], advised: Form | None) -> Form:
    """The advised form, if it can be had. One reading of pairs always can, where rows know their unit."""
    if rows.proved_one and (advised in (None, "one row") or not rows.has_identity):
        return "one row"
    if count_of(keys) is None or any(map(_is_capped, measures)) or advised == "pairs":
        return "pairs"
    if advised in ("corrected", "candidates"):
        return advised
    return "pairs" if not keys or any(isinstance(measure, Units) for measure in measures) else "corrected"


def _vectors(measures: Sequence[Measure], distances: Sequence[Sensitivity]) -> tuple[Measured, ...]:
    """The first row measure of each case of a pivot makes a vector, the second of each another one, and so on.

    So no two measures of a vector count the same row. Capped sums have a vector of their own: what a cap leaves of them
    is no share of the unit's rows. So have units and different values, of which a unit has some in several cases.
    """
    numbers: dict[tuple[int, int], int] = {}
    seen: dict[tuple[int, int], int] = {}
    vectors = []
    for measure, distance in zip(measures, distances, strict=True):
        case = measure.case
        if case is None or isinstance(measure, Units | DistinctMeasure) or _is_capped(measure):
            vectors.append(Measured(distance))
            continue
        place = seen.get((case.pivot, case.number), 0)
        seen[case.pivot, case.number] = place + 1
        vectors.append(Measured(distance, numbers.setdefault((case.pivot, place), len(numbers))))
    return tuple(vectors)


def _is_capped(measure: Measure) -> bool:
    return isinstance(measure, Sum) and measure.total is not None
