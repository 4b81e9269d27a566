"""Releases of one measure that are on the analyst's account are shown as their mean: free, and the same every time."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction

import pytest

from proxy.execute.service import Answer
from rules.mechanisms.noised_outputs import Chosen
from rules.mechanisms.release_plan import Block, Choice, PrivateGroups, PublicGroups, Quantile
from tests.execute.desk import Desk
from tests.execute.plans import FOUND, UNITS, block_of
from tests.support.written import statement_of

SQL = "SELECT * FROM (VALUES ('Berlin', 100), ('Lyon', 50)) AS t"
LISTED = PublicGroups((("Berlin",), ("Lyon",)))


def counts(epsilon: str, groups: PublicGroups | PrivateGroups = LISTED) -> Block:
    return block_of(replace(UNITS, epsilon=Decimal(epsilon)), groups=groups, sql=SQL)


async def buy(desk: Desk, noise: int, epsilon: str, *, analyst: str = "ada", reuse: bool = False) -> Answer:
    """Ask with this noise, for a new answer unless told otherwise."""
    desk.noise.constant = noise
    return await desk.ask(counts(epsilon), analyst=analyst, reuse=reuse)


def shown(answer: Answer) -> tuple[int, ...]:
    return tuple(int(text or "") for text in answer.columns[1])


async def test_what_is_bought_anew_is_shown_alone_and_what_is_served_is_the_mean(desk: Desk) -> None:
    assert shown(await buy(desk, 4, "1")) == (104, 54)
    assert shown(await buy(desk, 10, "1")) == (110, 60)
    assert shown(await desk.ask(counts("1"))) == (107, 57)
    assert await desk.spent() == (2, 2)


async def test_releases_are_weighted_by_their_precision(desk: Desk) -> None:
    await buy(desk, 100, "1")
    await buy(desk, 0, "3")

    assert shown(await desk.ask(counts("1"))) == (110, 60)


async def test_two_small_releases_serve_a_larger_question_for_free(desk: Desk) -> None:
    await buy(desk, 0, "0.3")
    await buy(desk, 25, "0.4")
    desk.noise.constant = 1000

    assert shown(await desk.ask(counts("0.5"))) == (116, 66)
    assert await desk.spent() == (Decimal("0.7"), Decimal("0.7"))
    assert shown(await desk.ask(counts("0.5000001"))) != (116, 66)
    assert await desk.spent() == (Decimal("1.2000001"), Decimal("1.2000001"))


async def test_what_is_bought_because_there_was_too_little_is_shown_as_it_will_be_served(desk: Desk) -> None:
    await buy(desk, 0, "0.3")
    first = await buy(desk, 50, "0.4", reuse=True)

    assert shown(first) == (132, 82)
    desk.noise.constant = 1000
    for _ in range(3):
        assert shown(await desk.ask(counts("0.4"))) == (132, 82)


async def test_what_others_paid_for_is_put_to_ones_own_when_it_is_paid_and_not_before(desk: Desk) -> None:
    await buy(desk, 0, "0.3", analyst="bob")
    await buy(desk, 50, "0.4", analyst="bob")

    assert shown(await desk.ask(counts("0.3"))) == (100, 50)  # the cheaper of bob's
    assert shown(await desk.ask(counts("0.3"))) == (100, 50)
    assert shown(await desk.ask(counts("0.4"))) == (132, 82)
    assert shown(await desk.ask(counts("0.4"))) == (132, 82)
    assert await desk.spent() == (Decimal("0.7"), Decimal("0.7"))


async def test_what_is_not_fresh_any_more_is_not_combined(desk: Desk) -> None:
    await buy(desk, 0, "1")
    desk.now += timedelta(hours=20)
    await buy(desk, 10, "1")
    assert shown(await desk.ask(counts("1"))) == (105, 55)

    desk.now += timedelta(hours=20)
    assert shown(await desk.ask(counts("1"))) == (110, 60)


async def test_numbers_over_other_groups_or_by_other_bounds_are_not_combined(desk: Desk) -> None:
    await buy(desk, 10, "1")
    desk.noise.constant = 0
    await desk.ask(counts("1", PublicGroups((("Berlin",),))), reuse=False)
    bounded = block_of(replace(UNITS, sensitivity=2), groups=LISTED, sql=SQL)
    await desk.ask(bounded, reuse=False)

    assert shown(await desk.ask(counts("1"))) == (110, 60)
    assert shown(await desk.ask(bounded)) == (100, 50)


async def test_groups_that_were_found_are_combined_where_the_same_were_found(desk: Desk) -> None:
    for noise, epsilon in ((0, "1"), (10, "1"), (-45, "2")):
        desk.noise.constant = noise
        await desk.ask(counts(epsilon, FOUND), reuse=False)

    assert shown(await desk.ask(counts("1", FOUND))) == (55,)  # the most precise list: Lyon was not found there
    assert shown(await desk.ask(counts("1.5", FOUND))) == (55,)
    desk.now += timedelta(seconds=1)
    for _ in range(3):
        desk.noise.constant = 10
        await desk.ask(counts("1", FOUND), reuse=False)
    assert shown(await desk.ask(counts("1", FOUND))) == (108, 58)  # five times 1² are more than 2²


async def test_choices_are_not_averaged(desk: Desk) -> None:
    sql = "SELECT city, (id / 100)::int, count(*) FROM public.customers WHERE id < 300 GROUP BY 1, 2"
    median = Choice("median of id", 1, Decimal(1), statement_of(sql), 3, Quantile(Fraction(1, 2)))
    texts = ("0-99", "100-199", "200-299")
    block = replace(counts("1"), measures=(UNITS, median), outputs=(Chosen(1, texts),), output_types=("text",))
    for _ in range(2):
        await desk.ask(block, reuse=False)

    assert (await desk.ask(block)).columns[1] == ("100-199", "100-199")


async def test_it_is_told_that_numbers_are_means_and_how_far_noise_may_have_moved_them(desk: Desk) -> None:
    alone = await buy(desk, 4, "0.1")
    assert "95% of counts within ±30" in alone.notices[0]
    for _ in range(3):
        await buy(desk, 4, "0.1")

    mean = await desk.ask(counts("0.1"))

    assert mean.notices[0].startswith("ε 0 spent")
    assert "95% of counts within ±14" in mean.notices[0]  # nearly normal, with half of the standard deviation
    assert "averaged over up to 4 releases" in mean.notices[1]


async def test_releases_of_integers_in_parts_of_one_are_whole_and_put_together_as_any_other(desk: Desk) -> None:
    factor = 2**16
    sql = f"SELECT place, {factor} * many FROM ({SQL}) AS r(place, many)"

    def parts(epsilon: str) -> Block:
        measure = replace(UNITS, sensitivity=factor, epsilon=Decimal(epsilon), factor=factor)
        return block_of(measure, groups=LISTED, sql=sql)

    desk.noise.constant = 100 * factor + factor // 2  # a tie goes up
    assert shown(await desk.ask(parts("1"), reuse=False)) == (201, 151)
    desk.noise.constant = factor // 2 - 1
    assert shown(await desk.ask(parts("3"), reuse=False)) == (100, 50)

    assert desk.noise.asked[-1] == (2, factor, Decimal(3))
    assert shown(await desk.ask(parts("1"))) == (110, 60)
    assert await desk.spent() == (4, 4)
    desk.noise.constant = 0
    assert shown(await desk.ask(counts("1"))) == (100, 50)  # without parts it is another measure
    assert await desk.spent() == (5, 5)


@pytest.mark.parametrize("bought", ["1e-7", "1e-9", "1e-12"])
@pytest.mark.parametrize("asked", ["1e-7", "1e-9", "1e-12", None])
async def test_a_statement_is_charged_no_more_delta_than_it_asks_for(
    desk: Desk, bought: str, asked: str | None
) -> None:
    """An answer of somebody else serves only if its threshold cost no more δ than this statement may."""
    await desk.ask(counts("1", PrivateGroups(0, Decimal(bought))), analyst="bob")
    groups = LISTED if asked is None else PrivateGroups(0, Decimal(asked))

    await desk.ask(counts("1", groups))

    review = await desk.ledger.review("ada", desk.service.rulebook.budgets, desk.now, most_charges=9)
    may_be_charged = Decimal(asked or 0)
    assert review.analyst.totals.delta <= may_be_charged
    is_served = not review.charges[0].fresh
    assert is_served == (asked is not None and Decimal(bought) <= may_be_charged)
