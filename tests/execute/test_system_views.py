"""What an analyst reads in noisegate.budget, noisegate.ledger and noisegate.columns, and what it costs: nothing."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest

from rules.planner.plan import Plan
from rules.refusal import BudgetSpent, InnerFailure, RulesChanged
from tests.execute.desk import Desk
from tests.execute.plans import FAULTY, IDS, UNITS, block_of, plan_of


def reading(*names: str) -> Plan:
    return Plan((), ("SELECT 1",), 0, Decimal(0), Decimal(0), system_views=names)


async def told(desk: Desk, name: str, analyst: str = "ada") -> list[list[str]]:
    answer = await desk.service.answer(reading(name), analyst=analyst, session="s", timeout_seconds=20)
    (rows,) = answer.columns
    return [str(row)[1:-1].split(",") for row in rows]


async def epsilon_of(desk: Desk, analyst: str = "ada") -> dict[str, list[str]]:
    """Of each account: the budget, what is spent, what is left, and what may be granted."""
    return {row[0].strip('"'): [cell.strip('"') for cell in row[1:5]] for row in await told(desk, "budget", analyst)}


async def test_reading_charges_nothing_and_asks_the_database_nothing(desk: Desk) -> None:
    for name in ("budget", "ledger", "columns"):
        await told(desk, name)

    assert desk.engine.seen == []
    assert await desk.spent() == (0, 0)


async def test_reading_the_budget_says_what_it_means_for_one_person(desk: Desk) -> None:
    """By the account with the least ε; nothing else of the ledger says so."""
    budget = desk.policy.budget.model_copy(update={"epsilon": Decimal(1), "per": "month"})
    small = Desk(desk.engine, desk.ledger, desk.policy.model_copy(update={"budget": budget}), desk.catalog)
    said = {
        (each is desk, name): (
            await each.service.answer(reading(name), analyst="ada", session="s", timeout_seconds=20)
        ).notices
        for each in (desk, small)
        for name in ("budget", "ledger")
    }

    lost = "may win more than 99 of 100 times: this budget no longer protects against that bet."
    assert said == {
        (True, "budget"): (f"After all answers, a bet on one person's presence {lost}",),
        (False, "budget"): (
            "After all answers of this month, a bet on one person's presence wins at most 73 of 100 times; "
            "a coin wins 50.",
        ),
        (True, "ledger"): (),
        (False, "ledger"): (),
    }


async def test_the_budget_is_what_the_ledger_grants(desk: Desk) -> None:
    await desk.ask(block_of(replace(UNITS, epsilon=Decimal("499.5"))), analyst="bob")

    assert await epsilon_of(desk, "bob") == {
        "yours": ["500", "499.5", "0.5", "0.5"],
        "shared": ["1000", "499.5", "500.5", "500.5"],
    }
    with pytest.raises(BudgetSpent):
        await desk.ask(block_of(replace(UNITS, epsilon=Decimal("0.51")), canonical="more"), analyst="bob")
    await desk.ask(block_of(replace(UNITS, epsilon=Decimal("0.5")), canonical="the rest"), analyst="bob")
    assert (await epsilon_of(desk, "bob"))["yours"] == ["500", "500", "0", "0"]


async def test_with_gaussian_noise_what_is_told_to_be_grantable_is_granted_by_rho(desk: Desk) -> None:
    """Nothing is spent yet, but no ε grants a draw that has none."""
    gaussian = Desk(desk.engine, desk.ledger, desk.policy.model_copy(update={"noise": "gaussian"}), desk.catalog)
    grantable = Decimal((await epsilon_of(gaussian, "bob"))["yours"][3])
    units = replace(UNITS, noise="gaussian")

    assert 26 < grantable < 27
    with pytest.raises(BudgetSpent) as refused:
        await gaussian.ask(block_of(replace(units, epsilon=grantable * Decimal("1.001"))), analyst="bob")
    assert refused.value.detail.startswith("ρ ")
    await gaussian.ask(block_of(replace(units, epsilon=grantable)), analyst="bob")
    assert Decimal((await epsilon_of(gaussian, "bob"))["yours"][3]) < Decimal("0.001")


async def test_explain_tells_what_is_left_on_the_account_that_ends_first(desk: Desk) -> None:
    foreseen = Plan((), ("SELECT 1",), 0, Decimal(0), Decimal(0), foreseen=(block_of(UNITS),))

    async def charge_now() -> str | None:
        answer = await desk.service.answer(foreseen, analyst="ada", session="s", timeout_seconds=20)
        return answer.columns[0][0]

    assert await charge_now() == "epsilon=1, with 1000 of 1000 left"
    await desk.ask(block_of(UNITS, canonical="another"), analyst="bob")
    assert await charge_now() == "epsilon=1, with 999 of 1000 left for all analysts"


async def test_a_charge_is_listed_with_six_digits(desk: Desk) -> None:
    await desk.ask(block_of(replace(UNITS, epsilon=Decimal("0.999999999999"))))

    ((_, _, epsilon, shared, *_),) = await told(desk, "ledger")
    assert (epsilon, shared) == ('"1"', '"1"')


async def test_others_are_told_of_in_the_shared_account_alone(desk: Desk) -> None:
    await desk.ask(block_of(UNITS), analyst="bob")

    assert (await epsilon_of(desk))["shared"][1] == "1"
    assert await told(desk, "ledger") == []
    assert len(await told(desk, "ledger", "bob")) == 1


async def test_the_ledger_tells_what_became_of_each_charge(desk: Desk) -> None:
    await desk.ask(block_of(UNITS, IDS), analyst="bob")
    await desk.ask(block_of(UNITS), analyst="ada")
    with pytest.raises(InnerFailure):
        await desk.ask(block_of(UNITS, sql=FAULTY, canonical="broken"))

    rows = [[cell.strip('"') for cell in row[1:8]] for row in await told(desk, "ledger")]

    assert rows == [["settled", "1", "0", "0", "0.5", "0", "1"], ["failed", "1", "1", "0", "0.5", "1", "0"]]


async def test_a_private_answer_and_the_budget_beside_it_are_of_one_moment(desk: Desk) -> None:
    """The budget is the one after the charge: what is left when the answer is read."""
    plan = replace(plan_of(block_of(UNITS)), system_views=("budget",))
    answer = await desk.service.answer(plan, analyst="ada", session="s", timeout_seconds=20)

    assert len(answer.columns) == 3
    assert str(answer.columns[2][0]).startswith('("yours","1000","1","999"')
    assert await desk.spent() == (1, 1)


async def test_what_the_dataset_pays_again_in_a_new_period_is_foreseen_and_told(desk: Desk) -> None:
    budget = desk.policy.budget.model_copy(update={"per": "day", "epsilon": Decimal("1.5")})
    desk.service = desk.open(desk.policy.model_copy(update={"budget": budget}))
    await desk.ask(block_of(UNITS), analyst="bob")
    desk.now += timedelta(hours=13)
    plan = replace(plan_of(), foreseen=(block_of(UNITS), block_of(IDS, canonical="more")))
    (foreseen,) = (await desk.service.answer(plan, analyst="bob", session="s", timeout_seconds=20)).columns
    assert "none, since it is refused: this statement would exceed the privacy budget that all analysts share" in str(
        foreseen[0]
    )

    await desk.ask(block_of(UNITS), analyst="ada")

    assert await desk.spent() == (1, 1)
    assert [cell.strip('"') for cell in (await told(desk, "ledger"))[0][2:4]] == ["1", "1"]
    with pytest.raises(BudgetSpent, match="share"):
        await desk.ask(block_of(IDS, canonical="more"), analyst="bob")


async def test_a_release_of_an_earlier_period_is_seen_again_only_for_what_is_asked(desk: Desk) -> None:
    """It costs the dataset too: what was bought dear yesterday is no price for a small question of today."""
    budget = desk.policy.budget.model_copy(update={"per": "day"})
    desk.service = desk.open(desk.policy.model_copy(update={"budget": budget}))
    small = replace(UNITS, epsilon=Decimal("0.1"))
    await desk.ask(block_of(UNITS), analyst="bob")
    await desk.ask(block_of(small, canonical="small"), analyst="bob")
    desk.now += timedelta(hours=13)

    await desk.ask(block_of(small))
    assert (len(desk.engine.seen), await desk.spent()) == (3, (Decimal("0.1"), Decimal("0.1")))
    await desk.ask(block_of(small, canonical="small"))
    assert (len(desk.engine.seen), await desk.spent()) == (3, (Decimal("0.2"), Decimal("0.2")))
    await desk.ask(block_of(small), block_of(small, canonical="small"), analyst="bob")
    assert (len(desk.engine.seen), await desk.spent("bob")) == (3, (Decimal("0.2"), Decimal("0.2")))


async def test_columns_follow_the_rules_in_force(desk: Desk) -> None:
    before = await told(desk, "columns")
    tables = dict(desk.policy.tables)
    del tables["products"]
    await desk.service.load(desk.policy.model_copy(update={"tables": tables}), desk.catalog)

    with pytest.raises(RulesChanged):
        await told(desk, "columns")
    plan = replace(reading("columns"), generation=1)
    (after,) = (await desk.service.answer(plan, analyst="ada", session="s", timeout_seconds=20)).columns

    assert {row[1].strip('"') for row in before} == {"customers", "orders", "order_items", "products"}
    assert not any("products" in str(row) for row in after)


async def test_a_new_period_has_a_new_budget_and_keeps_the_sum_of_all(desk: Desk) -> None:
    budget = desk.policy.budget.model_copy(update={"per": "month"})
    desk.service = desk.open(desk.policy.model_copy(update={"budget": budget}))
    await desk.ask(block_of(UNITS))
    desk.now += timedelta(days=20)

    (own, _) = await told(desk, "budget")

    assert own[1:5] == ['"1000"', '"0"', '"1000"', '"1000"']
    assert own[8:] == ['"month"', '"2026-12-01 00:00:00+00:00"', '"2027-01-01 00:00:00+00:00"', '"1"']
