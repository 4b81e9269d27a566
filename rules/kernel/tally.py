"""Tallies: how far units reach up a ladder of caps, so that a cap can be chosen privately.

A unit's total T is a number of that unit alone: its rows in the counted groups, the groups that they are in, or Σ|g|
of a sum over its groups. It needs the lowest rung that is not below T, or the last one. It passes every step below that
rung whole, and of the step to it the part that T has of it, in 64ths and rounded down:

    height of step j = Σ_u min(64, max(0, ⌊64·(min(T, b_(j+1)) − b_j)/(b_(j+1) − b_j)⌋))

So a unit is in one rung of each ladder, whatever its rows are, and moves the height of every step by 0 to 64, upwards.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from rules.kernel.bounded import caps_of
from rules.kernel.forms import Frame, per_pair, saturated, with_rows
from rules.kernel.keys import Key
from rules.kernel.measures import Measure, Sum
from rules.kernel.relations import Relation
from rules.kernel.rows import Rows
from rules.kernel.script import Script
from rules.kernel.seal import SEAL
from rules.kernel.sensitivity import sensitivity
from rules.kernel.source import Pivots, Term, source_of
from rules.kernel.statement import Tally
from rules.refusal import NotSupported


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
