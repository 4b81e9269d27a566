"""ε goes where most of an answer is made of it."""

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rules.aggregates.contributions import Contribution
from rules.kernel.measures import Count, Sum, Units
from rules.kernel.summand import Lattice, Summand
from rules.mechanisms.cost import share
from rules.mechanisms.release_plan import Block, Measure
from rules.planner.draft import weights_of
from rules.values.expression import FALSE, TRUE, Column
from rules.values.types import INT4
from tests.planner.planned import Planner

LATTICE = Lattice(Fraction(1), 0, 10)
SUMS = tuple(Sum(Summand(Column(number, INT4), LATTICE)) for number in (1, 2))
PARTS: tuple[Contribution, ...] = (Count(TRUE), Count(FALSE), Units(), *SUMS)
VECTORS = tuple((part,) for part in PARTS)

uses = st.lists(st.lists(st.sampled_from(PARTS), min_size=1, unique=True), min_size=1, max_size=12)


@pytest.mark.extended
@given(uses=uses, others=st.lists(st.fractions(1, 10), min_size=len(PARTS), max_size=len(PARTS)))
@example(
    uses=[[PARTS[0]], [PARTS[0], PARTS[1]], [PARTS[0], PARTS[2]], [PARTS[3]], [PARTS[4]]], others=[Fraction(1)] * 5
)
def test_no_other_shares_have_a_much_smaller_sum_of_relative_errors(
    uses: list[list[Contribution]], others: list[Fraction]
) -> None:
    needed = [vector for vector in VECTORS if any(vector[0] in use for use in uses)]
    counts = [sum(vector[0] in use for use in uses) for vector in needed]

    def errors(weights: list[Fraction]) -> Fraction:
        epsilons = share(Decimal(1), weights)
        return sum((count / Fraction(epsilon) for count, epsilon in zip(counts, epsilons, strict=True)), Fraction(0))

    assert errors(list(weights_of(needed, uses))) <= errors(others[: len(needed)]) * Fraction(13, 12)


def test_what_nothing_is_shown_of_has_a_share_too() -> None:
    assert weights_of([(Units(),)], [[Count()]]) == (Fraction(1),)


@pytest.mark.parametrize(("outputs", "weight"), [(1, 1), (3, 1), (4, 2), (8, 2), (9, 3), (10_000, 100)])
def test_weights_are_whole(outputs: int, weight: int) -> None:
    assert weights_of([(Count(),)], [[Count()]] * outputs) == (Fraction(weight),)


def test_parts_of_an_answer_of_three_outputs_are_asked_for_at_their_share(planner: Planner) -> None:
    """So a mean beside its sum and count is known when it is asked for alone, and they when the mean is known."""
    whole, mean = (
        planner.block(f"SELECT {outputs} FROM orders WHERE amount IS NOT NULL")
        for outputs in ("count(*), avg(amount), sum(amount)", "avg(amount)")
    )

    assert {of(block, part) for block in (whole, mean) for part in ("rows", "sum")} == {Decimal("0.5")}


def test_the_count_that_many_outputs_share_has_more(planner: Planner) -> None:
    means = "avg(quantity), avg(quantity * quantity), avg(-quantity)"
    block = planner.block(f"SELECT count(*), {means} FROM order_items")

    assert abs(of(block, "rows") - 2 * of(block, "sum")) < Decimal("1e-9")


def test_equal_measures_weigh_the_same_in_every_block(planner: Planner) -> None:
    together = planner.plan(
        "SELECT (SELECT avg(amount) FROM orders WHERE status = 'paid'), count(*), sum(quantity), avg(quantity),"
        " sum(quantity * 2) FROM order_items"
    )
    few, many = sorted(together.blocks, key=lambda block: len(block.measures))

    assert abs(few.epsilon + many.epsilon - 1) < Decimal("1e-9")
    assert abs(of(few, "sum") / of(few, "rows") - 1) < Decimal("1e-9")
    assert of(few, "rows") < of(many, "rows")


def of(block: Block, kind: str) -> Decimal:
    """The ε of the first measure of a kind."""
    return next(
        measure.epsilon
        for measure in block.measures
        if isinstance(measure, Measure) and kind in measure.name.split(" of ")[0]
    )
