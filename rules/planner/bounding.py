"""Find how many rows and groups of a unit are counted, and make the statements of the kernel that keep to it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from rules.aggregates.contributions import Contribution, Pick, Selection, Typical
from rules.kernel.blocks import BlockAggregate, BlockDistinct, BlockMoment, BlockPlace, BlockRows, BlockStatement
from rules.kernel.bounded import Statement
from rules.kernel.forms import Form
from rules.kernel.keys import Key
from rules.kernel.measures import Case, Count, Measure, Sum, Units
from rules.kernel.script import Filter, Project, Scan, Script, bare
from rules.kernel.tally import GroupLadder, Ladder, RowLadder, SumLadder, TallyStatement
from rules.planner.disjoint_measures import Vector, pivots_of
from rules.planner.to_script import bare_key, bare_measure, bare_summand


@dataclass(frozen=True, slots=True)
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


def statement_of(rows: Script, keys: tuple[Key, ...], parts: Sequence[Contribution], bounding: Bounding) -> Statement:
    """The statement of all measures; a choice has one of its own."""
    pivots = pivots_of(bounding.vectors)
    measures = tuple(_with_case(part, pivots.cases) for part in parts if not isinstance(part, Selection))
    conditions = tuple(tuple(map(bare, condition)) for condition in pivots.conditions)
    form = _form(rows) if keys and not any(isinstance(part, Units) for part in parts) else None
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
