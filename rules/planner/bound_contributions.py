"""Bound contributions: how many rows and groups of a unit are counted, who says so, and what may be cut by it.

The statements of the kernel that keep to it are made here.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import prod

from rules.aggregates.contributions import Contribution, Pick, Selection, Typical
from rules.algebra.nodes import Facts, Node, scans_in
from rules.bind.scope import PlannerContext
from rules.frozen import frozen, replace
from rules.kernel.bounded import GroupLadder, Ladder, RowLadder, Statement, SumLadder, TallyStatement
from rules.kernel.forms import Form
from rules.kernel.keys import Key
from rules.kernel.measures import Case, Count, Measure, Sum, Units
from rules.kernel.script import Filter, Project, Scan, Script
from rules.kernel.special.blocks import (
    BlockAggregate,
    BlockDistinct,
    BlockMoment,
    BlockPlace,
    BlockRows,
    BlockStatement,
)
from rules.mechanisms.release_plan import Cut
from rules.planner.clamped_totals import caps_of_totals
from rules.planner.disjoint_measures import Vector, pivots_of
from rules.planner.fan_out import FanOut, find_fan_out
from rules.planner.plan import Request
from rules.planner.select_partitions import Keyed
from rules.planner.to_script import bare, bare_key, bare_measure, bare_summand
from rules.sql.session_settings import MOST_ROWS
from rules.values.expression import Expression, ids_in

_DEFAULT_GROUPS = 1  # of a unit that are counted where the groups are found: others cost more than they add


@frozen
class Cap:
    """The number of rows of a unit that are counted."""

    rows: int
    by: str  # whose number it is, in words; nothing where a key proves that there are no more
    is_declared: bool = True  # or else it is only the most among which one is chosen


@frozen
class Bounding:
    """The caps of a block, which the kernel enforces."""

    rows: int  # m: rows of a unit in the whole answer
    groups: int  # K: groups in which a unit counts, where units are counted
    limits_groups: bool  # whether K is less than m
    is_single: bool = False  # whether a key proves that each unit has one row
    is_chosen: bool = False  # whether m is only the ceiling of a ladder, the block's first
    chooses_groups: bool = False  # whether K is the ceiling of a ladder, the next one
    own: tuple[Sum, ...] = ()  # sums of which a unit's total has a ladder of its own
    vectors: tuple[Vector, ...] = ()  # the measures, those together of which a row is in at most one

    @property
    def ladders(self) -> int:
        """Count the bounds that are chosen."""
        return self.is_chosen + self.chooses_groups + len(self.own)

    def find_ladder(self, part: Contribution) -> int | None:
        """The number of the ladder that is there for this measure: a sum's own, that of groups, or that of rows."""
        if isinstance(part, Typical):
            return None
        if isinstance(part, Sum) and part in self.own:
            return self.is_chosen + self.chooses_groups + self.own.index(part)
        if isinstance(part, Units) and self.chooses_groups:
            return int(self.is_chosen)
        return 0 if self.is_chosen else None

    def chosen_by(self, part: Contribution) -> tuple[int, ...]:
        """By which the sensitivity is less once they are chosen. A unit is in no more groups than it has rows."""
        if isinstance(part, Typical):
            return ()
        both = 0 if self.is_chosen else None, self.find_ladder(part)
        return tuple(dict.fromkeys(bound for bound in both if bound is not None))


def find_cap(node: Node, request: Request, context: PlannerContext) -> tuple[Cap, tuple[str, ...]]:
    """The cap by the rules, lowered by the session, or as many rows as a key proves.

    Where nobody says it, any number up to the most, of which a lower one is chosen.
    """
    rows, own = node.facts.rows, request.rows_per_unit
    limits = [cap for cap in (rows.cap, own) if cap is not None]
    if rows.proved is not None and all(rows.proved <= limit for limit in limits):
        return Cap(rows.proved, ""), ()
    if own is not None and (rows.cap is None or own < rows.cap):
        return Cap(own, "your cap"), ()
    if rows.cap is not None:
        return Cap(rows.cap, _words(node, rows.cap)), ()
    known = [scan.facts.rows.cap or scan.facts.rows.proved for scan in scans_in(node) if scan.facts.unit is not None]
    most = max((cap for cap in known if cap is not None), default=0)
    if not most or None in known:
        return Cap(MOST_ROWS, "", is_declared=False), ()
    return _multiplied(most, find_fan_out(node, context), is_declared=_is_declared(node, context))


def _words(node: Node, cap: int) -> str:
    """Return whose number the cap is: that of one table, or of several that are joined by nothing but the unit."""
    known = [scan.facts.rows.cap for scan in scans_in(node) if scan.facts.unit is not None]
    caps = [cap for cap in known if cap is not None and cap > 1]
    if len(caps) < 2 or prod(caps) != cap or sum(caps) == cap:
        return "the rules' cap"
    named = [f"{cap:,}" for cap in caps]
    return f"the rules' caps of {', '.join(named[:-1])} and {named[-1]}, multiplied"


def _multiplied(rows: int, fan_out: FanOut | None, *, is_declared: bool) -> tuple[Cap, tuple[str, ...]]:
    """The cap after joins that multiply rows: as many as the declared rows usually become, where that is known.

    Where the rules do not say a number it is only the most among which one is chosen, and then all that meet count.
    """
    if not is_declared:
        most = MOST_ROWS if fan_out is None else min(rows * fan_out.most, MOST_ROWS)
        return Cap(most, "", is_declared=False), ()
    if fan_out is None:
        notice = f"a join multiplies rows: at most {rows} rows of each unit are counted"
        return Cap(rows, "the rules' cap"), (notice,)
    if fan_out.most == 1:
        return Cap(rows, "the rules' cap"), ()
    usual = fan_out.rows_of(rows)
    words = f"the rules' cap of {rows:,}, times the {fan_out.most:,} public rows that each row meets"
    if usual < rows * fan_out.most:
        words = f"the rules' cap of {rows:,}, whose rows meet {float(fan_out.mean):.3g} public rows on average"
    return Cap(min(usual, MOST_ROWS), words), ()


def _is_declared(node: Node, context: PlannerContext) -> bool:
    """Return whether the rules say a number for any table that is read."""
    rules = (context.policy.find_table(scan.table) for scan in scans_in(node))
    return any(rule is not None and rule.rows_per_unit is not None for rule in rules)


def bounding_of(
    facts: Facts, keys: tuple[Expression, ...], cap: Cap, request: Request, *, is_private: bool
) -> Bounding:  # fmt: skip
    """Find how many rows and groups of a unit are counted. The kernel cuts or scales what is more, or has a key that
    proves that there is no more."""
    proved = facts.rows.proved
    rows = cap.rows if proved is None else min(proved, cap.rows)
    one_group = not keys or all(ids_in(key) <= facts.determined for key in keys)
    groups = 1 if one_group else rows
    if not one_group and (is_private or request.groups_per_unit is not None):
        groups = min(rows, request.groups_per_unit or _DEFAULT_GROUPS)
    return Bounding(rows, groups, limits_groups=groups < rows and not one_group)


def limited(bounding: Bounding, contributions: Sequence[Contribution], *, is_private: bool) -> tuple[str, ...]:
    """A unit in more groups than count is told of by the rules alone, whether there is one or not."""
    counts_units = any(isinstance(part, Units | Typical) for part in contributions)
    if not bounding.limits_groups or not (counts_units or is_private):
        return ()
    groups = "1 group" if bounding.groups == 1 else f"{bounding.groups:,} groups"
    why = "where units are counted" if counts_units else "in the threshold above which a group is shown"
    return (f"a unit counts in at most {groups} {why}; to change this, SET noisegate.groups_per_unit",)


def find_cuts(
    keyed: Keyed, cap: Cap, bounding: Bounding, parts: Sequence[Contribution], groups: int | None
) -> tuple[Cut, ...]:
    """Return what may be cut, besides what is chosen: by the rules and the query, whether anything is or not.

    Units that are counted in so many groups as there are, or as a key proves, are not cut, whatever the cap of rows is.
    """
    totals = tuple(Cut("rows", most, "the rules' cap") for most in caps_of_totals(keyed, parts))
    if bounding.is_single or not cap.by:
        return totals
    cuts = []
    if not bounding.is_chosen and any(not isinstance(part, Units | Typical) for part in parts):
        cuts.append(Cut("rows", bounding.rows, cap.by))
    listed = groups is not None and bounding.groups > 1 and bounding.groups < groups
    if listed and not bounding.chooses_groups and any(isinstance(part, Units | Typical) for part in parts):
        cuts.append(Cut("groups", bounding.groups, cap.by))
    return tuple(dict.fromkeys((*cuts, *totals)))


def weight_of_report(groups: int | None, weights: Sequence[Fraction]) -> Fraction:
    """The weight of the report of what was cut: a cut as large as the noise of G groups is seen with 3/G of their ε.

    With few groups that would be most of it, and a quarter has to do; with many it is a sixteenth at least.
    """
    among = min(max(12, groups or 1), 48)
    return sum(weights, Fraction(0)) * Fraction(3, among)


def statement_of(rows: Script, keys: tuple[Key, ...], parts: Sequence[Contribution], bounding: Bounding) -> Statement:
    """The statement of all measures; a choice has one of its own."""
    pivots = pivots_of(bounding.vectors)
    measures = tuple(_with_case(part, pivots.cases) for part in parts if not isinstance(part, Selection))
    conditions = tuple(tuple(map(bare, condition)) for condition in pivots.conditions)
    # A plain GROUP BY, one number, and what needs pairs are the kernel's own choice.
    is_chosen = bounding.is_single or not keys or any(isinstance(part, Units) for part in parts)
    form = None if is_chosen else _form(rows)
    return Statement(rows, keys, measures, bounding.rows, bounding.groups, conditions, form)


def _form(rows: Script) -> Form | None:
    """Choose how the cap is enforced at the least cost, which changes no number.

    Units beyond the cap are looked for among all rows of a table, if nothing but a list of groups leaves rows out: what
    is looked at then has fewer joins, and may be an index. Rows that are joined, gathered or looked up cost more to
    read again than to sum by unit and group, which needs them once.
    """
    match rows:
        case Scan():
            return "candidates"
        case Project(source=source):
            return _form(source)
        case Filter(source=source):
            return None if _form(source) == "candidates" else _form(source)
    return "pairs"


def histogram_statement(rows: Script, keys: tuple[Key, ...], pick: Pick, bounding: Bounding) -> Statement:
    """Count the rows of each group that have each candidate, which is one more key."""
    return Statement(rows, (*keys, bare_key(pick.candidate)), (Count(),), bounding.rows, finds_groups=False)


def block_statement(
    rows: Script, keys: tuple[Key, ...], part: Typical, bounding: Bounding, blocks: int, salt: int
) -> BlockStatement:  # fmt: skip
    """Count the blocks of each group that have each candidate."""
    value = replace(
        part.value,
        aggregates=tuple(map(_bare_aggregate, part.value.aggregates)),
        expression=bare(part.value.expression),
    )
    return BlockStatement(rows, keys, value, blocks, salt, bounding.groups)


def _bare_aggregate(aggregate: BlockAggregate) -> BlockAggregate:
    match aggregate:
        case BlockRows(condition=condition):
            return BlockRows(bare(condition))
        case BlockDistinct(expression=expression):
            return BlockDistinct(bare(expression))
        case BlockMoment(summands=summands):
            return replace(aggregate, summands=tuple(map(bare_summand, summands)))
        case BlockPlace(summand=summand):
            return replace(aggregate, summand=bare_summand(summand))


def tally_statement(
    rows: Script, keys: tuple[Key, ...], bounding: Bounding, rungs: Sequence[tuple[int, ...]]
) -> TallyStatement:
    """The ladders of rows, then of groups, and then of sums, in the order of the block's."""
    ladders: list[Ladder] = [RowLadder(rungs[0])] if bounding.is_chosen else []
    ladders += [GroupLadder(rungs[len(ladders)])] if bounding.chooses_groups else []
    ladders += [
        SumLadder(_bare_sum(total), rung) for total, rung in zip(bounding.own, rungs[len(ladders) :], strict=True)
    ]
    return TallyStatement(rows, keys, tuple(ladders), bounding.rows)


def _bare_sum(summed: Sum) -> Sum:
    made = bare_measure(summed)
    assert isinstance(made, Sum)
    return made


def _with_case(part: Measure, cases: Mapping[Contribution, Case]) -> Measure:
    return replace(bare_measure(part), case=cases.get(part))
