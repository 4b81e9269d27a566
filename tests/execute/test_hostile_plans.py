"""Plans that a taken-over planner writes, through the product's kernel and a real database: what is told is paid."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from sys import getrefcount

import pytest

from proxy.execute.find_released import precision_asked
from proxy.execute.released_cells import measure_key
from proxy.execute.repeated_statements import Plans
from rules.catalog import TableName
from rules.kernel.bounded import Statement
from rules.kernel.keys import Listed
from rules.kernel.measures import Case, Count, Units
from rules.kernel.script import Filter, Scan
from rules.mechanisms.draw import top_scale
from rules.mechanisms.noised_outputs import Count as Counted
from rules.mechanisms.release_plan import Block, Measure, PublicGroups, Top
from rules.mechanisms.threshold import find_threshold
from rules.planner.plan import Request
from rules.refusal import CannotRun, InnerFailure, Mismatch
from rules.release.sensitivity import enforced
from rules.values.expression import TRUE, Apply, Column, Constant
from rules.values.types import BOOLEAN, INT4, TEXT
from tests.execute.desk import Desk
from tests.execute.plans import FOUND, IDS, UNITS, HandPlanner, block_of, plan_of
from tests.planner.planned import whole

CUSTOMERS = Scan(TableName("public", "customers"), ((1, "id"), (2, "name")))
ITEMS = Scan(TableName("public", "order_items"), ((1, "order_id"), (2, "product_id")), 3)
PRODUCTS = tuple((str(number),) for number in range(1, 31))


def hostile(desk: Desk, block: Block) -> Block:
    """The block as it is run: with the numbers of the product's kernel."""
    return enforced(block, desk.service.rulebook.kernel, desk.policy.group_size)


def counted(pattern: str) -> Block:
    """How many customers have a name like this."""
    like = Apply("", "{0} ~~ {1}", (Column(2, TEXT), Constant(TEXT, pattern)), BOOLEAN)
    block = block_of(UNITS, groups=PublicGroups(((),), ((),)), canonical=f"names like {pattern}")
    return replace(block, statement=Statement(Filter(CUSTOMERS, like), (), (Count(),), 1), keys=())


async def test_planning_that_fails_on_values_of_rows_is_paid_and_stops_as_a_run_does(desk: Desk) -> None:
    """LIKE fails on a pattern's last backslash as soon as a text matches what stands before it.

    Planning holds the pattern against texts of rows, which statistics have.
    """
    await desk.ask(hostile(desk, counted("Nobody%\\")))
    spent = await desk.spent()

    with pytest.raises(InnerFailure):
        await desk.ask(hostile(desk, counted("Customer 1%\\")))
    assert await desk.spent() == (spent[0] + 1, spent[1] + 1)
    assert [stop.analyst for stop in await desk.ledger.stops()] == ["ada"]


async def test_a_statement_that_cannot_be_planned_by_its_schema_is_refused_for_nothing(desk: Desk) -> None:
    with pytest.raises(CannotRun):
        await desk.ask(block_of(UNITS, sql="SELECT salary FROM public.staff", canonical="broken"))
    assert (await desk.spent(), await desk.ledger.stops()) == ((0, 0), ())


def by_product(name: str, *, groups_per_unit: int | None, top: Top | None = None) -> Block:
    """People by product, or the first of them."""
    keys = (Listed((Column(2, INT4),), PRODUCTS),)
    measure = Measure(name, 1, Decimal(1), at_most_one=True)
    block = block_of(UNITS, canonical="people by product")
    return replace(
        block,
        statement=Statement(ITEMS, keys, (Units(),), 120, groups_per_unit),
        groups=PublicGroups(PRODUCTS, tuple((number,) for number in range(30))),
        measures=(measure,),
        tables=("customers", "orders", "order_items"),
        top=top,
    )


async def test_a_release_of_many_groups_is_no_choice_of_few(desk: Desk) -> None:
    """The numbers of chosen groups have noise for so many of them, so a longer list is not taken for the choice."""
    top = hostile(desk, by_product("people", groups_per_unit=10, top=Top("people", 1, Decimal(1), 1, 30)))
    assert top.top is not None and top.top.factor > 1
    listed = by_product("top 1 of 30 by people", groups_per_unit=1)
    listed = hostile(desk, listed)
    assert measure_key(listed.measures[0]) == (
        f"top 1 of 30 by people within {top.top.sensitivity} of {top.top.factor} parts"
    )

    await desk.ask(listed)
    answer = await desk.ask(top)
    assert len(answer.columns[0]) == 1


def pivot(first: int) -> Block:
    """How many customers leave these remainders: one vector."""
    conditions = tuple(
        Apply("", "({0} % 4 = {1})", (Column(1, INT4), Constant(INT4, str(first + case))), BOOLEAN) for case in (0, 1)
    )
    counts = tuple(Count(TRUE, Case(0, number)) for number in (0, 1))
    measures = tuple(Measure(f"of {first + case}", 1, Decimal(1), vector=0) for case in (0, 1))
    block = block_of(UNITS, groups=PublicGroups(((),), ((),)), canonical="remainders")
    statement = Statement(CUSTOMERS, (), counts, 1, pivots=(conditions,))
    outputs, types = (Counted(0), Counted(1)), ("bigint", "bigint")
    return replace(block, statement=statement, keys=(), measures=measures, outputs=outputs, output_types=types)


async def test_vectors_of_two_questions_with_one_key_are_two(desk: Desk) -> None:
    """Each was paid for when it was drawn, so it is paid for by whoever sees it then, and in a new period by all."""
    daily = {"budget": desk.policy.budget.model_copy(update={"per": "day"}), "fresh_for": timedelta(days=9)}
    desk.service = desk.open(desk.policy.model_copy(update=daily))
    asked = [hostile(desk, pivot(0)), hostile(desk, pivot(2))]

    first = await desk.ask(*asked)
    assert await desk.spent() == (2, 2)
    assert (await desk.ask(*asked, analyst="bob")).columns == first.columns
    assert await desk.spent("bob") == (2, 2)
    desk.now += timedelta(days=1)
    assert (await desk.ask(*asked, analyst="bob")).columns == first.columns
    assert await desk.spent("bob") == (2, 2)


async def test_a_plan_spends_no_more_than_its_statement_may(desk: Desk) -> None:
    """Or a worker that one analyst's text has taken over would spend what others have."""
    found = block_of(UNITS, groups=FOUND)
    plans = Plans(HandPlanner(plan_of(block_of(UNITS), block_of(IDS)), plan_of(found)))
    request = Request("0", ("public",), epsilon=Decimal(2))
    rulebook = desk.service.rulebook

    assert len(whole(await plans.plan(request, "ada", rulebook)).blocks) == 2
    with pytest.raises(Mismatch):
        await plans.plan(replace(request, epsilon=Decimal("1.999")), "ada", rulebook)
    with pytest.raises(Mismatch):
        await plans.plan(replace(request, text="1"), "ada", rulebook)
    assert await plans.plan(replace(request, text="1", delta=Decimal("1e-9")), "ada", rulebook)


def test_no_name_is_kept_with_what_follows_from_numbers_alone() -> None:
    """Names are a planner's, and may have megabytes; of what is kept there are thousands."""
    name = "n" * len(PRODUCTS)
    held = getrefcount(name)

    find_threshold(Measure(name, 1, Decimal(1)), Decimal("1e-6"))
    top_scale(Top(name, 1, Decimal(1), 1, 30), group_size=1)
    precision_asked(Measure(name, 1, Decimal(1)))
    assert getrefcount(name) == held
