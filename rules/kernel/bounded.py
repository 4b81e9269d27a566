"""Bounded statements: keys and measures over local rows, each of which one unit moves by no more than is said.

Boundedness: Q(D) = sat(Σ_u g(R_u)) by group and measure, with g a function of one unit's rows R_u into integers whose
distances from 0 are those of `sensitivity`. Removing a unit takes its rows away and no others, for the rows are local,
so Q moves by at most the distance of g. All caps stand in the SQL itself: nothing that is said of rows is believed.

Tallies say how far units reach up a ladder of caps, so that a cap can be chosen privately.
A unit's total T is a number of that unit alone: its rows in the counted groups, the groups that they are in, or Σ|g|
of a sum over its groups. It needs the lowest rung that is not below T, or the last one. It passes every step below that
rung whole, and of the step to it the part that T has of it, in 64ths and rounded down:

    height of step j = Σ_u min(64, max(0, ⌊64·(min(T, b_(j+1)) − b_j)/(b_(j+1) − b_j)⌋))

So a unit is in one rung of each ladder, whatever its rows are, and moves the height of every step by 0 to 64, upwards.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from rules.kernel.added import saturated
from rules.kernel.forms import Form, Frame, per_pair, statement_sql, with_rows
from rules.kernel.keys import Key, column_of, count_of
from rules.kernel.measures import Caps, DistinctMeasure, Measure, Sensitivity, Sum, Units, sensitivity
from rules.kernel.relation import Relation
from rules.kernel.rows import Rows
from rules.kernel.script import Script
from rules.kernel.source import Pivots, Source, Term, source_of
from rules.kernel.statement import SEAL, Bounded, Measured, Numbers, Tally, Threshold
from rules.refusal import NotSupported


@dataclass(frozen=True, slots=True)
class Statement:
    """Measures by group, of at most so many rows of each unit over all groups, and so many groups where units count.

    Where a key is found, units are counted for a threshold: the first Units that is asked for, or one more measure.
    Not so for groups that another statement found. `form` is advice; whatever cannot have it gets one that it can.
    Groups in which no unit is counted stay away, unless the list is known that the groups are looked up in: there such
    a group has rows of units that count elsewhere, and whether these come must not depend on one unit more. So many
    groups of one unit may come then that no threshold lets them out: there is none.
    """

    rows: Script
    keys: tuple[Key, ...]
    measures: tuple[Measure, ...]
    rows_per_unit: int
    groups_per_unit: int | None = None
    pivots: Pivots = ()
    form: Form | None = None
    finds_groups: bool = True
    is_list_known: bool = False


@dataclass(frozen=True, slots=True)
class RowLadder:
    """Rising caps of a unit's rows."""

    rungs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class GroupLadder:
    """Rising caps of the groups in which a unit counts."""

    rungs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SumLadder:
    """Rising caps of what a unit adds to a sum over all groups, in steps of its lattice."""

    measure: Sum
    rungs: tuple[int, ...]


Ladder = RowLadder | GroupLadder | SumLadder

PARTS = 64  # of a step, in which heights are counted
_LARGEST_INTEGER = 2**55  # of a rung, so that a bigint holds 64 times it


@dataclass(frozen=True, slots=True)
class TallyStatement:
    """For each ladder the units by the rung that they need."""

    rows: Script
    keys: tuple[Key, ...]
    ladders: tuple[Ladder, ...]
    rows_per_unit: int
    pivots: Pivots = ()


@dataclass(frozen=True, slots=True)
class _Enforced:
    """What is enforced of the measures, those for a threshold included."""

    rows: Rows
    caps: Caps
    measures: Sequence[Measure]
    distances: Sequence[Sensitivity]
    threshold: Threshold | None

    @classmethod
    def of(cls, relation: Relation, statement: Statement) -> "_Enforced":
        rows, keys, asked = Rows(relation), statement.keys, statement.measures
        caps = caps_of(rows, keys, statement.rows_per_unit, statement.groups_per_unit)
        finds = statement.finds_groups and count_of(keys) is None
        measures = [*asked, Units()] if finds and Units() not in asked else [*asked]
        threshold = Threshold(measures.index(Units()), caps.groups) if finds and not statement.is_list_known else None
        return cls(rows, caps, measures, [sensitivity(measure, caps) for measure in measures], threshold)


def numbers_of(relation: Relation, statement: Statement) -> Numbers:
    """What the bounded statement says of its columns, without its text, which takes longer to write."""
    made = _Enforced.of(relation, statement)
    return Numbers(tuple(map(column_of, statement.keys)), _vectors(made.measures, made.distances), made.threshold)


def bounded(relation: Relation, statement: Statement) -> Bounded:
    """The statement over the rows of its script."""
    made = _Enforced.of(relation, statement)
    source = source_of(made.rows, statement.keys, made.measures, statement.pivots)
    form = _form(made.rows, source, made.measures, statement.form)
    sql = statement_sql(
        Frame(source, made.caps, tuple(distance.factor for distance in made.distances)),
        form,
        candidates=made.rows.candidates() if form == "candidates" else None,
        threshold=made.threshold.measure if made.threshold else None,
    )
    numbers = tuple(map(column_of, statement.keys)), _vectors(made.measures, made.distances), made.threshold
    return Bounded(sql, *numbers, SEAL)


def caps_of(rows: Rows, keys: Sequence[Key], rows_per_unit: int, groups_per_unit: int | None) -> Caps:
    """Enforce m by scaling, or by a key that PostgreSQL enforces, and K' = min(m, K, G) by scaling or by rank."""
    declared = rows_per_unit, groups_per_unit
    if any(type(cap) is not int or cap < 1 for cap in declared if cap is not None):
        raise NotSupported("the limits of rows and groups per unit must be integers of at least 1")
    most, groups = 1 if rows.proved_one else rows_per_unit, count_of(keys)
    counted = min(most, *(max(count, 1) for count in (groups_per_unit, groups) if count is not None), most)
    scales_groups = not rows.proved_one and groups is not None and counted < groups
    return Caps(most, counted, scales_rows=not rows.proved_one, scales_groups=scales_groups)


def _form(rows: Rows, source: Source, measures: Sequence[Measure], advised: Form | None) -> Form:
    """The advised form, if it can be had. One reading of pairs always can, where rows know their unit.

    Rows that may be others the next time are read once: corrections would be of rows that the sums do not have.
    """
    if rows.proved_one and (advised in (None, "one row") or not rows.has_identity):
        return "one row"
    keys = source.keys
    if count_of(keys) is None or any(map(_is_capped, measures)) or advised == "pairs" or not source.is_steady:
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


def tally(relation: Relation, statement: TallyStatement) -> Tally:
    """Units by the rung that each needs, and their parts of the step to it, over the groups that would be counted."""
    rows, ladders = Rows(relation), statement.ladders
    if not ladders or any(not _rises(ladder.rungs) for ladder in ladders):
        raise NotSupported("the candidates for a bound must be integers of at least 1 in ascending order")
    caps = caps_of(rows, statement.keys, statement.rows_per_unit, None)
    sums: tuple[Measure, ...] = tuple(ladder.measure for ladder in ladders if isinstance(ladder, SumLadder))
    for total in sums:
        sensitivity(total, caps)  # refuses what a bigint does not hold
    frame = Frame(source_of(rows, statement.keys, sums, statement.pivots), caps, (1,) * len(sums))
    needed = ", ".join(_needed(number, ladder.rungs) for number, ladder in enumerate(ladders))
    passed, step = f"{PARTS} * (least(total, rungs[rung + 1]) - rungs[rung])", "(rungs[rung + 1] - rungs[rung])"
    fits = max(ladder.rungs[-1] for ladder in ladders) <= _LARGEST_INTEGER
    part = f"{passed} / {step}" if fits else f"div({passed.replace('*', '::numeric *', 1)}, {step})"
    sql = (
        f"WITH r AS NOT MATERIALIZED ({frame.source.sql}), {_totals(frame, ladders)} "
        f"SELECT ladder, rung, count(*), coalesce(sum(CASE WHEN rung > 0 THEN {part} END), 0)::int8 FROM totals "
        f"CROSS JOIN LATERAL (VALUES {needed}) AS n (ladder, total, rung, rungs) GROUP BY ladder, rung"
    )
    return Tally(sql, tuple(ladder.rungs for ladder in ladders), SEAL)


def _needed(number: int, rungs: Sequence[int]) -> str:
    """The rung that a unit's total needs, from 0, and all rungs, which PostgreSQL counts from 1."""
    above, values_list = ", ".join(str(rung + 1) for rung in rungs[:-1]), ", ".join(map(str, rungs))
    return f"({number}, t{number}, width_bucket(t{number}, ARRAY[{above}]::int8[]), ARRAY[{values_list}]::int8[])"


def _rises(rungs: tuple[int, ...]) -> bool:
    whole = all(type(rung) is int and 1 <= rung < 2**62 for rung in rungs)
    return bool(rungs) and whole and all(low < high for low, high in pairwise(rungs))


def _totals(frame: Frame, ladders: Sequence[Ladder]) -> str:
    """One row for each unit, with its total for each ladder."""
    sums = iter(frame.source.terms)
    if not frame.source.has_identity:  # then every row is a unit
        totals = [_alone(next(sums)) if isinstance(ladder, SumLadder) else "1" for ladder in ladders]
        return f"totals AS (SELECT {_named(totals)} FROM r)"
    totals = [_total(ladder, frame, sums) for ladder in ladders]
    return (
        f"pairs AS ({per_pair(frame, frame.source.terms, 'r')}), units AS ({with_rows(frame, 'pairs')}), "
        f"totals AS (SELECT {_named(totals)} FROM units GROUP BY u)"
    )


def _total(ladder: Ladder, frame: Frame, sums: Iterator[Term]) -> str:
    """Write what a unit adds in all, from one row for each of its groups."""
    match ladder:
        case RowLadder():
            return "sum(n)"
        case GroupLadder():
            return "count(*)"
        case SumLadder():
            return f"sum(abs({frame.share(next(sums))}))"


def _alone(term: Term) -> str:
    """Write what one row adds."""
    value = f"abs({term.value})"
    return f"CASE WHEN {term.where} THEN {value} END" if term.where else value


def _named(totals: Sequence[str]) -> str:
    return ", ".join(f"{saturated(total)} AS t{number}" for number, total in enumerate(totals))
