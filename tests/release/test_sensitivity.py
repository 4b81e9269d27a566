"""The numbers of a block are those of the kernel's statements, whatever a plan says and whichever bounds are chosen."""

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import pytest

from rules.kernel import measures as kernel
from rules.kernel.bounded import RowLadder, Statement, SumLadder, TallyStatement
from rules.kernel.ground import Ground
from rules.kernel.keys import Bins, Found, Listed
from rules.kernel.script import Scan
from rules.kernel.summand import Lattice, Summand
from rules.mechanisms.exponential_choice import place_for_extreme
from rules.mechanisms.noised_outputs import Chosen, ChosenList, Count, Moment, Output, Spread, Statistic, Sum
from rules.mechanisms.release_plan import (
    Bar,
    Block,
    Choice,
    End,
    FromEnd,
    KeyColumn,
    Ladder,
    Measure,
    PrivateGroups,
    PublicGroups,
    Quantile,
    Top,
)
from rules.refusal import Mismatch, TooComplex
from rules.release.bound_ladder import rungs_to
from rules.release.sensitivity import enforced, settled
from rules.replay import Kernel
from rules.values.expression import TRUE, Apply, Column
from rules.values.types import BOOLEAN, INT4, Type
from tests.policy.test_check import CATALOG, ORDERS, policy

KERNEL = Kernel(Ground(policy(), CATALOG))
PARTS = 2**16  # of one, into which the kernel's integers are cut where they are small enough
ID, AMOUNT = Column(1, INT4), Column(3, Type("numeric", 10, 2))
SCAN = Scan(ORDERS.name, ((1, "id"), (2, "customer_id"), (3, "amount")))
THREE = Listed((ID,), (("1",), ("2",), ("3",)))
SMALL = kernel.Sum(Summand(AMOUNT, Lattice(Fraction(1, 100), 0, 500)))
LARGE = kernel.Sum(Summand(AMOUNT, Lattice(Fraction(1, 100), 0, 2**27)))  # too large to be cut into parts
STATEMENT = Statement(SCAN, (THREE,), (kernel.Count(), SMALL, LARGE, kernel.Units()), 40)
HISTOGRAM = Statement(SCAN, (THREE, Bins(Summand(AMOUNT, Lattice(Fraction(1), 0, 99)), 1)), (kernel.Count(),), 40)
ROWS = Ladder("rows of a unit", "rows", Decimal("0.1"), rungs_to(40), thresholds=(640,) * 10)
COUNTED = Measure("rows", 40 * PARTS, Decimal(1), (0,), factor=PARTS)
SUMMED = Measure("sum", 40 * 500 * PARTS, Decimal(1), (0,), factor=PARTS)
MEDIAN = Choice("median", 40 * PARTS, Decimal(1), HISTOGRAM, 100, Quantile(Fraction(1, 2)), (0,), factor=PARTS)
BLOCK = Block(
    canonical="orders",
    statement=STATEMENT,
    keys=(KeyColumn("integer", "id"),),
    groups=PublicGroups((("1",), ("2",), ("3",)), ((0,), (1,), (2,))),
    measures=(
        COUNTED,
        SUMMED,
        Measure("large sum", 40 * 2**27, Decimal(1), (0,)),
        Measure("units", 3, Decimal(1), (0,), at_most_one=True),
        MEDIAN,
        Choice("max", 40 * PARTS, Decimal(1), HISTOGRAM, 100, FromEnd(9, largest=True), (0,), factor=PARTS),
    ),
    outputs=(),
    output_types=(),
    tables=("orders",),
    ladders=(ROWS,),
    tally=TallyStatement(SCAN, (THREE,), (RowLadder(ROWS.rungs),), 40),
)


def in_numbers(block: Block) -> list[int]:
    """The sensitivities, of numbers in place of the database's finer integers."""
    return [measure.sensitivity // measure.factor for measure in block.measures]


def declared(rows: int) -> Block:
    """As it is planned where the rules declare so many rows."""
    histogram = replace(HISTOGRAM, rows_per_unit=rows)
    return replace(
        BLOCK,
        statement=replace(STATEMENT, rows_per_unit=rows),
        measures=tuple(
            replace(measure, statement=histogram, chosen_by=())
            if isinstance(measure, Choice)
            else replace(measure, chosen_by=())
            for measure in BLOCK.measures
        ),
        ladders=(),
        tally=None,
    )


@pytest.mark.parametrize("rows", ROWS.rungs)
def test_a_settled_block_is_as_if_the_bound_had_been_declared(rows: int) -> None:
    block = settled(BLOCK, (rows,), KERNEL, 1)

    assert replace(block, canonical="orders") == enforced(declared(rows), KERNEL, 1)
    assert in_numbers(block) == [rows, rows * 500, rows * 2**27, min(rows, 3), rows, rows]
    assert (block.ladders, block.tally) == ((), None)


def test_a_settled_block_is_another_block_for_each_bound() -> None:
    assert settled(BLOCK, (3,), KERNEL, 1).canonical != settled(BLOCK, (5,), KERNEL, 1).canonical != BLOCK.canonical


def test_the_place_of_an_extreme_follows_the_chosen_bound() -> None:
    largest = settled(BLOCK, (3,), KERNEL, 1).measures[-1]

    assert isinstance(largest, Choice)
    assert largest.target == FromEnd(place_for_extreme(100, 3 * PARTS, Decimal(1)), largest=True)


def test_a_chosen_bound_is_a_bound_of_the_integers_too() -> None:
    block = settled(BLOCK, (10,), KERNEL, 1)

    assert [measure.factor for measure in block.measures] == [PARTS, PARTS, 1, 1, PARTS, PARTS]
    assert [measure.sensitivity for measure in block.measures] == [
        10 * PARTS, 10 * 500 * PARTS, 10 * 2**27, 3, 10 * PARTS, 10 * PARTS,
    ]  # fmt: skip


def test_a_sum_is_capped_by_its_own_ladder_and_no_other_measure_is() -> None:
    ladder = replace(ROWS, name="sum", rungs=(125, 2_500, 20_000))
    block = replace(
        BLOCK, ladders=(ladder,), tally=TallyStatement(SCAN, (THREE,), (SumLadder(SMALL, ladder.rungs),), 40)
    )

    assert in_numbers(settled(block, (125,), KERNEL, 1)) == [40, 125, 40 * 2**27, 3, 40, 40]
    assert settled(block, (125,), KERNEL, 1).statement.measures[1] == replace(SMALL, total=125)


def test_a_block_without_ladders_is_settled_as_it_is() -> None:
    assert settled(declared(40), (), KERNEL, 1) == declared(40)


def test_what_a_plan_says_of_its_measures_is_not_believed() -> None:
    lied = tuple(
        replace(measure, sensitivity=1, factor=1, target=FromEnd(1, largest=True))
        if isinstance(measure, Choice) and isinstance(measure.target, FromEnd)
        else replace(measure, sensitivity=1, factor=1)
        for measure in BLOCK.measures
    )

    assert enforced(replace(BLOCK, measures=lied), KERNEL, 1) == enforced(BLOCK, KERNEL, 1)
    assert in_numbers(enforced(replace(BLOCK, measures=lied), KERNEL, 1)) == [40, 20_000, 40 * 2**27, 3, 40, 40]


MANY = replace(BLOCK, measures=BLOCK.measures[:3], ladders=(), tally=None)
FOUND = replace(STATEMENT, keys=(Found(ID),), measures=(kernel.Count(), kernel.Units()))
FOUND_BLOCK = replace(
    BLOCK,
    statement=FOUND,
    groups=PrivateGroups(measure=1, delta=Decimal("1e-6")),
    measures=(COUNTED, BLOCK.measures[3]),
    ladders=(),
    tally=None,
)


def test_found_groups_are_let_out_by_the_units_that_their_statement_counts() -> None:
    assert in_numbers(enforced(FOUND_BLOCK, KERNEL, 1)) == [40, 40]


@pytest.mark.parametrize(
    "lie",
    [
        # groups that are found pass as listed ones, and the other way round
        lambda: replace(FOUND_BLOCK, groups=BLOCK.groups),
        lambda: replace(BLOCK, groups=PrivateGroups(measure=3, delta=Decimal("1e-6"))),
        # a key that is not there, or a measure
        lambda: replace(FOUND_BLOCK, keys=()),
        lambda: replace(BLOCK, measures=(*BLOCK.measures, Measure("one more", 1, Decimal(1)))),
        # a measure that is read as a key: the others would stand in the group of its exact number
        lambda: replace(MANY, groups=PublicGroups((("1",), ("2",)), ((0, 40 * PARTS), (0, 39 * PARTS)))),
        lambda: replace(MANY, groups=PublicGroups((("0", "1"),)), keys=BLOCK.keys * 2),
        # a threshold over rows
        lambda: replace(FOUND_BLOCK, groups=PrivateGroups(measure=0, delta=Decimal("1e-6"))),
        # and one over a choice, which has no column
        lambda: replace(
            FOUND_BLOCK,
            groups=PrivateGroups(measure=0, delta=Decimal("1e-6")),
            measures=(BLOCK.measures[4], *FOUND_BLOCK.measures),
        ),
        lambda: replace(FOUND_BLOCK, groups=PrivateGroups(measure=7, delta=Decimal("1e-6"))),
        # groups of a list that is known, with those in which nobody is counted
        lambda: replace(FOUND_BLOCK, statement=replace(FOUND, is_list_known=True)),
        # a choice among sums, or by nothing
        lambda: replace(BLOCK, measures=(*BLOCK.measures[:4], replace(MEDIAN, statement=STATEMENT))),
        lambda: replace(
            BLOCK,
            measures=(*BLOCK.measures[:4], replace(MEDIAN, statement=replace(HISTOGRAM, measures=()))),
        ),
        # one ε for measures of the same rows
        lambda: replace(BLOCK, measures=(replace(COUNTED, vector=1), replace(SUMMED, vector=1), *BLOCK.measures[2:])),
        # rows of which a unit has more than one in a group
        lambda: replace(BLOCK, measures=(replace(COUNTED, at_most_one=True), *BLOCK.measures[1:])),
        # rungs that are not those of the tally
        lambda: replace(BLOCK, ladders=(replace(ROWS, rungs=(1, 40)),)),
        lambda: replace(BLOCK, tally=None),
        # prices that would lower what was spent
        lambda: replace(BLOCK, measures=(replace(COUNTED, epsilon=Decimal(-1)), *BLOCK.measures[1:])),
        lambda: replace(BLOCK, measures=(*BLOCK.measures[:4], replace(MEDIAN, epsilon=Decimal(-1)))),
        lambda: replace(BLOCK, ladders=(replace(ROWS, epsilon=Decimal(0)),)),
        lambda: replace(BLOCK, report=Decimal(-1)),
        lambda: replace(FOUND_BLOCK, groups=PrivateGroups(measure=1, delta=Decimal(-1))),
        lambda: replace(FOUND_BLOCK, groups=PrivateGroups(measure=1, delta=Decimal(1))),
        # and for whose noise a scale would be looked for that no double has
        lambda: replace(BLOCK, measures=(replace(COUNTED, noise="gaussian", epsilon=Decimal("1e-300")),)),
        # a threshold for noise whose tail is not known
        lambda: replace(FOUND_BLOCK, measures=(COUNTED, Measure("units", 3, Decimal(1), noise="gaussian"))),
        # what would take all memory, or fail once it is paid
        lambda: replace(BLOCK, measures=(*BLOCK.measures[:4], replace(MEDIAN, candidates=10**10))),
        lambda: replace(BLOCK, measures=(*BLOCK.measures[:4], replace(MEDIAN, candidates=0))),
        lambda: replace(BLOCK, measures=(*BLOCK.measures[:4], replace(MEDIAN, end=End(1, Decimal(1))))),
        lambda: replace(BLOCK, measures=(*BLOCK.measures[:4], replace(MEDIAN, end=End(-1, Decimal(9))))),
        lambda: replace(BLOCK, outputs=(Sum(0, Fraction(1), 10**10),)),
        lambda: replace(BLOCK, level=Decimal(1)),
    ],
)
def test_a_plan_that_means_another_statement_is_refused(lie: Callable[[], Block]) -> None:
    with pytest.raises(Mismatch):
        enforced(lie(), KERNEL, 1)


SPREAD = Spread(Moment(0, Fraction(1)), Moment(1, Fraction(1)), Fraction(0), Fraction(9))


@pytest.mark.parametrize(
    "output",
    [
        Count(6),
        Statistic("geometric", 0, SPREAD, 16),
        Statistic("corr", 0, SPREAD, 16),
        Statistic("var_pop", 0, replace(SPREAD, squares=Moment(6, Fraction(1))), 16),
        Chosen(4, ("1", "2")),
        ChosenList((4, 9), ("1",) * 100),
    ],
)
def test_an_output_that_could_not_be_computed_is_refused_before_it_is_charged(output: Output) -> None:
    with pytest.raises(Mismatch, match="cannot answer"):
        enforced(replace(BLOCK, outputs=(Count(0), output)), KERNEL, 1)


@pytest.mark.parametrize("shows", [{"shown": (1,)}, {"bars": (Bar(1),)}, {"counted": 4}, {"counted": 9}])
def test_what_is_shown_besides_the_outputs_is_of_the_block(shows: dict[str, object]) -> None:
    with pytest.raises(Mismatch, match="does not have"):
        enforced(replace(BLOCK, outputs=(Count(0),), **shows), KERNEL, 1)  # type: ignore[arg-type]


def test_measures_of_one_vector_are_drawn_at_the_one_epsilon_that_is_paid() -> None:
    conditions = tuple(Apply("t", f"({{0}} = {number})", (ID,), BOOLEAN) for number in (1, 2))
    counts = tuple(kernel.Count(TRUE, kernel.Case(0, number)) for number in (0, 1))
    pivot = Statement(SCAN, (THREE,), counts, 40, pivots=(conditions,))
    alike = tuple(Measure(name, 1, Decimal(1), vector=0) for name in "ab")
    block = replace(BLOCK, statement=pivot, measures=alike, outputs=(), output_types=(), ladders=(), tally=None)

    enforced(block, KERNEL, 1)
    for other in (replace(alike[1], epsilon=Decimal(2)), replace(alike[1], noise="gaussian")):
        with pytest.raises(Mismatch, match="not one vector"):
            enforced(replace(block, measures=(alike[0], other)), KERNEL, 1)


def test_a_table_that_a_statement_reads_and_a_plan_does_not_name_is_refused() -> None:
    """Its keys would not be looked at in the snapshot."""
    with pytest.raises(Mismatch, match="reads a table that it does not name"):
        enforced(replace(BLOCK, tables=()), KERNEL, 1)


def test_what_noise_could_not_be_drawn_for_is_refused_before_it_is_charged() -> None:
    most = kernel.Sum(Summand(AMOUNT, Lattice(Fraction(1, 100), 0, 2**54)))
    block = replace(BLOCK, statement=replace(STATEMENT, measures=(kernel.Count(), SMALL, most, kernel.Units())))

    enforced(block, KERNEL, 1)
    with pytest.raises(TooComplex):
        enforced(block, KERNEL, 2)


UNITS = replace(
    BLOCK,
    statement=replace(STATEMENT, measures=(kernel.Units(),)),
    measures=(Measure("units", 3, Decimal(1), at_most_one=True),),
    ladders=(),
    tally=None,
)


def test_of_groups_that_are_chosen_a_unit_is_in_all_and_adds_one_to_each() -> None:
    block = enforced(replace(UNITS, top=Top("units", 99, Decimal(1), 2, 99)), KERNEL, 1)

    assert block.top == Top("units", 1, Decimal(1), 2, 3)
    assert block.measures[0].sensitivity == 2
    assert enforced(UNITS, KERNEL, 1).measures[0].sensitivity == 3


@pytest.mark.parametrize(
    "block",
    [
        replace(BLOCK, top=Top("units", 1, Decimal(1), 2, 3)),
        replace(UNITS, top=Top("units", 1, Decimal(1), 4, 3)),
        replace(
            UNITS,
            statement=replace(STATEMENT, measures=(kernel.Count(),)),
            measures=(COUNTED,),
            top=Top("rows", 1, Decimal(1), 2, 3),
        ),
    ],
)
def test_groups_are_chosen_by_the_only_count_of_units_or_not_at_all(block: Block) -> None:
    with pytest.raises(Mismatch):
        enforced(block, KERNEL, 1)
