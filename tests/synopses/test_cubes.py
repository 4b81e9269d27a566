"""The life of cubes over a real database and a real ledger: what is planned, who is charged when, and what serves."""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proxy.execute.rulebook import Rulebook
from proxy.synopses.cubes import CubeMaker
from proxy.synopses.make import drop
from rules.accounting.store import KeptRelease
from rules.catalog import Catalog, Index, TableName
from rules.policy.rules_yaml import RulesError
from rules.refusal import BudgetSpent
from rules.synopses.check import check_synopses
from rules.synopses.cubes import CubePlan, plan_cube
from rules.synopses.plan import NotPlanned
from tests.conftest import RealDatabase
from tests.support import shop as shop_data
from tests.support.catalogs import catalog_of
from tests.synopses.stage import CUBE, RULES, CubeStage, cube_stage

place = pytest.fixture(cube_stage)


@pytest.fixture(scope="module")
def catalog(shop: RealDatabase) -> Catalog:
    return catalog_of(shop.dsn)


async def test_it_is_made_once_paid_once_by_each_and_a_restart_costs_nothing(place: CubeStage) -> None:
    await place.shelf.follow(place.rulebook())
    await place.shelf.follow(place.rulebook())
    await place.started().follow(place.rulebook())

    assert len(await place.charges()) == len(await place.charges("ada")) == len(await place.charges("bob")) == 1
    balances = {who: await place.ledger.balances(who, place.rulebook().budgets, place.now) for who in ("ada", "bob")}
    (ada, shared, _), (bob, _, _) = balances["ada"], balances["bob"]
    assert ada.spent == bob.spent == shared.spent
    assert Decimal("9.9") < shared.spent <= 10
    (state,), listed = place.book.standing, place.schema
    assert state.readers == listed.readers == ("ada", "bob")
    assert (listed.state, listed.cube_of, listed.cells) == ("ready", "orders", 2 * (5 + 4 + 20))


async def test_what_was_dropped_serves_nobody_until_it_is_made_again(place: CubeStage) -> None:
    await place.shelf.follow(place.rulebook())
    assert await drop("daily", place.rulebook(), place.ledger, place.now)
    await place.shelf.follow(place.rulebook())

    assert not place.book.standing and not place.shown.schemas
    await place.started().follow(place.rulebook())
    assert not place.shown.schemas, "after a restart it is there again"
    await place.make(place.rulebook())
    await place.shelf.follow(place.rulebook())
    assert [state.readers for state in place.book.standing] == [("ada",)]  # bob's budget holds one of them


async def test_a_new_period_makes_it_anew_and_what_is_not_refreshed_is_paid_for_ever(place: CubeStage) -> None:
    await place.shelf.follow(place.rulebook())
    (first,) = place.book.standing
    place.now += timedelta(days=20)
    await place.shelf.follow(place.rulebook())
    (second,) = place.book.standing
    assert first.releases.isdisjoint(second.releases)
    assert [len(await place.charges(who)) for who in ("synopsis daily", "ada")] == [2, 2]

    place.now += timedelta(days=60)
    lasting = place.rulebook(RULES + CUBE.replace("refresh: month, ", ""))
    await place.started().follow(lasting)
    assert place.book.standing == (second,)
    assert [len(await place.charges(who)) for who in ("synopsis daily", "ada")] == [2, 2]


async def test_a_proxy_that_starts_finds_what_stands_before_it_makes_anything(place: CubeStage) -> None:
    await place.started().follow(place.rulebook(), makes=False)
    assert not place.book.standing and not await place.charges()

    await place.shelf.follow(place.rulebook())
    (state,) = place.book.standing
    place.now += timedelta(days=20)  # from now on it is due
    place.book.tell({})
    await place.started().follow(place.rulebook(), makes=False)

    assert place.book.standing == (state,)
    assert len(await place.charges()) == len(await place.charges("ada")) == 1


async def test_a_reader_who_comes_to_a_role_may_use_it_when_the_role_has_paid(place: CubeStage) -> None:
    await place.shelf.follow(place.rulebook())
    text = (RULES + CUBE).replace("  ada:\n", "  ada:\n    role: science\n")
    of_role = place.rulebook(text + "roles: {science: {epsilon: 20}}\n")
    of_poor = place.rulebook(text.replace("role: science", "role: poor") + "roles: {poor: {epsilon: 2}}\n")
    await place.shelf.follow(of_role)

    (state,) = place.book.standing
    assert state.readers == ("ada", "bob")
    for release in state.releases:
        assert await place.ledger.payers(release, ["ada"], of_role.budgets) == {"ada"}
    own, _, role = await place.ledger.balances("ada", of_role.budgets, place.now)
    assert role is not None and own.spent == role.spent

    await place.shelf.follow(of_poor)
    assert [state.readers for state in place.book.standing] == [("bob",)]


async def test_who_cannot_pay_may_not_use_it_and_who_comes_later_pays_first(place: CubeStage) -> None:
    await place.shelf.follow(place.rulebook((RULES + CUBE).replace("epsilon: 12", "epsilon: 3")))
    assert list(place.readers) == ["ada"]
    assert not await place.charges("bob")

    await place.shelf.follow(place.rulebook())
    assert place.readers == ("ada", "bob")
    assert len(await place.charges("bob")) == len(await place.charges()) == 1


async def test_a_budget_that_does_not_hold_it_runs_nothing(place: CubeStage) -> None:
    rules = place.rulebook((RULES + CUBE).replace("epsilon: 10,", "epsilon: 31,"))

    with pytest.raises(BudgetSpent):
        await place.make(rules)
    await place.shelf.follow(rules)

    assert not place.book.standing
    assert not await place.charges()


async def test_what_is_made_while_the_rules_change_charges_nobody_by_the_old_ones(
    place: CubeStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor is the next cube made by them, which may be in the rules no more."""
    second = CUBE.replace("synopses: {daily", "  later").replace("epsilon: 10", "epsilon: 5").replace("}}", "}")
    both = RULES + CUBE.replace("synopses: {daily", "synopses:\n  daily").replace("}}", "}") + second
    poor = (RULES + CUBE).replace("epsilon: 12", "epsilon: 3")
    make = CubeMaker.make

    async def make_slowly(
        maker: CubeMaker, plan: CubePlan, rulebook: Rulebook, *, once_since: datetime | None
    ) -> Sequence[KeptRelease]:
        made = await make(maker, plan, rulebook, once_since=once_since)
        place.shelf.reloaded()
        return made

    with monkeypatch.context() as slow:
        slow.setattr(CubeMaker, "make", make_slowly)
        await place.shelf.follow(place.rulebook(both))

    assert [await place.paid(who) for who in ("", "synopsis later", "ada", "bob")] == [1, 0, 0, 0]
    await place.shelf.follow(place.rulebook(poor))
    assert place.readers == ("ada",)
    assert [await place.paid(who) for who in ("", "ada", "bob")] == [1, 1, 0]


async def test_two_proxies_that_find_it_due_at_once_make_it_once(place: CubeStage) -> None:
    shelves = [place.started() for _ in range(2)]
    for _ in range(2):
        await asyncio.gather(*(shelf.follow(place.rulebook()) for shelf in shelves))

    assert [await place.paid(who) for who in ("", "ada", "bob")] == [1, 1, 1]
    assert [state.readers for state in place.book.standing] == [("ada", "bob")]


async def test_other_keys_leave_it_as_outdated_and_without_its_rules_it_is_gone(place: CubeStage) -> None:
    await place.shelf.follow(place.rulebook())
    await place.shelf.follow(place.rulebook((RULES + CUBE).replace("customers.city, ", "")))
    assert place.schema.state == "outdated"

    await place.shelf.follow(place.rulebook(RULES))
    assert not place.shown.schemas and not place.book.standing


async def test_upkeep_of_the_schema_leaves_a_cube_as_it_is(place: CubeStage) -> None:
    """An index, a comment, or a table that the rules do not name changes no answer."""
    await place.shelf.follow(place.rulebook())
    index = Index("orders_of_a_day", "CREATE INDEX …", ("ordered_at",))
    tables = [
        replace(table, comment="kept well", indexes=(*table.indexes, index), fingerprint="as of today")
        for table in place.catalog.tables
    ]
    staging = replace(tables[0], name=TableName("public", "staging_of_today"))
    place.catalog = replace(place.catalog, tables=(*tables, staging))
    await place.shelf.follow(place.rulebook())

    assert place.schema.state == "ready"
    assert len(await place.charges()) == 1


async def test_nobody_is_charged_for_an_outdated_cube(place: CubeStage, caplog: pytest.LogCaptureFixture) -> None:
    """By other rules of its tables its cells answer nothing any more, which each proxy tells."""
    of_ada = (RULES + CUBE).replace("table: orders}", "table: orders, analysts: [ada]}")
    other = "rows_per_unit: 41"
    await place.shelf.follow(place.rulebook(of_ada))
    changed = (RULES + CUBE).replace("rows_per_unit: 40", other)
    assert other in changed
    for shelf in (place.shelf, place.started()):
        await shelf.follow(place.rulebook(changed))

    assert sum("synopsis_outdated" in record.getMessage() for record in caplog.records) == 2
    assert (place.schema.state, place.readers) == ("outdated", ("ada",))
    assert not await place.charges("bob")
    assert len(await place.charges("ada")) == 1


KEYS = ("status", "ordered_at by month", "customers.city", "customers.segment", "customers.is_vip")


@settings(max_examples=8)
@given(
    keys=st.lists(st.sampled_from(KEYS), min_size=1, max_size=3, unique=True),
    orders=st.sets(st.integers(1, 4), min_size=1),
    measures=st.sampled_from(("[count]", "[count, sum(amount)]", "[sum(amount)]")),
    epsilon=st.sampled_from(("0.01", "1", "20")),
    delta=st.booleans(),
)
def test_every_set_is_planned_and_all_together_cost_no_more_than_the_price(
    catalog: Catalog, keys: list[str], orders: set[int], measures: str, epsilon: str, delta: bool
) -> None:
    cube = f"{{epsilon: {epsilon}, cube: {keys}, orders: {sorted(orders)}, measures: {measures}, table: orders}}"
    rules = shop_data.RULES if delta else shop_data.RULES.replace(", delta: 1e-6", "").replace(", delta: 1e-9", "")
    policy = shop_data.policy(rules=f"{rules}synopses: {{daily: {cube}}}\n".replace("'", ""))
    wanted = [combination for size in sorted(orders) for combination in combinations(keys, size)]
    if not wanted:
        with pytest.raises(NotPlanned):
            plan_cube("daily", policy, catalog)
        return

    made = plan_cube("daily", policy, catalog)

    assert [key_set.keys for key_set in made.sets] == wanted
    whole = made.price.rho if delta else made.price.epsilon or Decimal(0)
    spent = sum(
        (mechanism.rho if delta else mechanism.epsilon or Decimal(0) for mechanism in made.mechanisms), Decimal(0)
    )
    assert whole * Decimal("0.999") < spent <= whole
    assert all((mechanism.epsilon is None) == delta for mechanism in made.mechanisms)


@pytest.mark.parametrize(
    ("cube", "words"),
    [
        ("cube: [status, status]", "twice"),
        ("cube: [ordered_at by month, ordered_at by year]", "twice"),
        ("cube: [amount by 20]", "write a key as"),
        ("cube: [count(orders)]", "write a key as"),
        ("cube: [status], measures: [avg(amount)]", "write a measure as"),
        ("cube: [status], measures: [count, count(*)]", "twice"),
        ("cube: [status], tables: {orders: [status]}", "unknown key"),
        ("cubes: [status]", "did you mean"),
    ],
)
def test_what_is_no_cube_is_told_in_plain_words(cube: str, words: str) -> None:
    with pytest.raises(RulesError, match=words):
        shop_data.policy(rules=f"{shop_data.RULES}synopses: {{daily: {{epsilon: 1, {cube}}}}}\n")


@pytest.mark.parametrize(
    ("cube", "words"),
    [
        ("cube: [note]", "not declared"),
        ("cube: [ordered_at by month], measures: [sum(id)]", "several tables|no bounds"),
        ("cube: [id]", "several tables"),
        ("cube: [wrong]", "no protected table"),
        ("cube: [status], table: staff", "not in the rules file"),
        ("cube: [status], table: products", "no protected table"),
        ("cube: [status], orders: [2]", "fewer keys"),
        ("cube: [status], measures: [sum(note)], table: orders", "sum"),
        ("cube: [email], table: customers", "email"),
        ("cube: [ordered_at by day, status, customers.city, customers.country, customers.segment]", "cells|groups"),
    ],
)
def test_what_cannot_be_measured_is_refused_with_its_place(catalog: Catalog, cube: str, words: str) -> None:
    rules = f"{shop_data.RULES}synopses: {{daily: {{epsilon: 1, {cube}}}}}\n"
    findings = list(check_synopses(shop_data.policy(rules=rules), catalog))

    (error,) = [finding for finding in findings if finding.severity == "error"]
    assert error.path.startswith("synopses.daily")
    assert re.search(words, error.message), error.message
