"""A change of `per` opens no new budget: a period of a new kind begins with what was spent in its time."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.ledger.group_commit import Home
from proxy.ledger.integrity import Anchor
from proxy.ledger.ledger import Ledger
from proxy.ledger.postgres import LedgerDatabase
from proxy.ledger.sqlite import LedgerFile
from rules.accounting.accountant import Limit
from rules.accounting.budgets import Budgets, Per, period_of, span_of
from rules.accounting.store import ReleaseQuery, Viewer
from rules.refusal import BudgetSpent
from tests.ledger.charges import BUDGETS, IDENTITY, NOON, charge_of, release_of

OCTOBER = NOON - timedelta(days=30)
YESTERDAY = NOON - timedelta(days=1)
LIMIT = Limit(Decimal(1000))


def per(kind: Per, budgets: Budgets = BUDGETS) -> Budgets:
    return replace(budgets, per=kind)


@asynccontextmanager
async def opened(home: Home) -> AsyncIterator[Ledger]:
    ledger = await Ledger.at(home)
    try:
        yield ledger
    finally:
        await ledger.close()


@pytest.fixture(params=["sqlite", "postgres"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Home]:
    if request.param == "sqlite":
        LedgerFile(tmp_path / "ledger", IDENTITY, Anchor(None)).create()
        return lambda: LedgerFile(tmp_path / "ledger", IDENTITY, Anchor(None))
    dsn = request.getfixturevalue("empty_database")()
    LedgerDatabase(dsn, IDENTITY, Anchor(None)).create()
    return lambda: LedgerDatabase(dsn, IDENTITY, Anchor(None))


async def test_a_period_of_a_new_kind_begins_with_what_was_spent_in_its_time(make: Callable[[], Home]) -> None:
    roles = replace(BUDGETS, roles={"staff": Limit(Decimal(2))}, members={"ada": "staff"})
    async with opened(make()) as ledger:
        await ledger.charge(charge_of("ada", "0.1", time=OCTOBER), per("ever", roles))
        await ledger.charge(charge_of("ada", "0.2", time=YESTERDAY), per("ever", roles))
        receipt = await ledger.charge(charge_of("ada", "0.3"), per("ever", roles))
        await ledger.settle(receipt.charge, [release_of("0.3")])
        await ledger.charge(charge_of("bob", "0.4"), per("ever", roles))

        expected: list[tuple[Per, str, str]] = [("month", "0.5", "0.9"), ("day", "0.3", "0.7"), ("week", "0.5", "0.9")]
        for kind, of_ada, of_all in expected:
            own, shared, role = await ledger.balances("ada", per(kind, roles), NOON)
            assert role is not None
            assert (own.spent, shared.spent, role.spent) == (Decimal(of_ada), Decimal(of_all), Decimal(of_ada)), kind
            assert own.lifetime == Decimal("0.6")
        with pytest.raises(BudgetSpent):
            await ledger.charge(charge_of("ada", "0.6"), per("month", roles))
        await ledger.charge(charge_of("ada", "0.5"), per("month", roles))

    async with opened(make()) as ledger:
        await ledger.checkpoints.verify(hurries=True)
        assert (await ledger.balances("ada", per("month", roles), NOON))[0].left == 0
        assert (await ledger.balances("ada", per("month", roles), NOON + timedelta(days=20)))[0].left == 1


async def test_what_was_paid_in_the_time_of_a_new_kind_of_period_is_not_paid_again(make: Callable[[], Home]) -> None:
    async with opened(make()) as ledger:
        for block, time in (("old", OCTOBER), ("new", YESTERDAY)):
            receipt = await ledger.charge(charge_of("ada", "0.1", time=time), per("ever"))
            await ledger.settle(receipt.charge, [release_of("0.1", block)])
        await ledger.charge(charge_of("bob", sights=(1, 2), time=YESTERDAY), per("ever"))

        for analyst in ("ada", "bob"):
            wanted = [ReleaseQuery(block, "count", Decimal("0.1"), None) for block in ("old", "new")]
            old, new = await ledger.find_releases(
                wanted, Viewer(analyst=analyst, budgets=per("month"), now=NOON, since=OCTOBER)
            )
            assert [kept.id for kept in new.own] == [2], analyst
            assert [kept.id for kept in old.own] == ([1] if analyst == "bob" else []), analyst
        receipt = await ledger.charge(charge_of("ada", sights=(1, 2)), per("month"))
        assert receipt.cost.epsilon == Decimal("0.1")


async def test_what_another_proxy_charges_by_the_rules_of_before_counts_in_the_new_kind_of_period_too(
    make: Callable[[], Home],
) -> None:
    async with opened(make()) as older, opened(make()) as newer:
        await older.charge(charge_of("ada", "0.1"), per("ever"))
        assert (await newer.balances("ada", per("month"), NOON))[0].spent == Decimal("0.1")
        receipt = await older.charge(charge_of("ada", "0.2"), per("ever"))
        await older.settle(receipt.charge, [release_of("0.2")])
        own, shared, _ = await newer.balances("ada", per("month"), NOON)
        assert (own.spent, shared.spent) == (Decimal("0.3"), Decimal("0.3"))
        wanted = [ReleaseQuery("block", "count", Decimal("0.1"), None)]
        (found,) = await newer.find_releases(
            wanted, Viewer(analyst="ada", budgets=per("month"), now=NOON, since=OCTOBER)
        )
        assert [kept.id for kept in found.own] == [1]
        await newer.charge(charge_of("ada", "0.7"), per("month"))
        with pytest.raises(BudgetSpent):
            await older.charge(charge_of("ada", "0.1"), per("ever"))
    async with opened(make()) as ledger:
        await ledger.checkpoints.verify(hurries=True)


async def test_a_sum_that_may_be_of_the_time_of_a_new_kind_of_period_counts_in_it(make: Callable[[], Home]) -> None:
    async with opened(make()) as ledger:
        await ledger.charge(charge_of("ada", "0.1", time=OCTOBER), per("ever"))
        await ledger.charge(charge_of("ada", "0.2", time=YESTERDAY), per("ever"))
        await ledger.close_before(NOON, NOON)
        await ledger.charge(charge_of("ada", "0.3"), per("ever"))
        assert (await ledger.balances("ada", per("month"), NOON))[0].spent == Decimal("0.6")
        december = NOON + timedelta(days=14)
        assert (await ledger.balances("ada", per("month"), december))[0].spent == 0
    async with opened(make()) as ledger:
        await ledger.checkpoints.verify(hurries=True)


STEPS = st.tuples(
    st.sampled_from(get_args(Per)),
    st.sampled_from(["ada", "bob"]),
    st.integers(1, 50),  # ε in hundredths
    st.integers(-3, 200),  # hours until then: a clock may be set back
    st.sampled_from(["", "settle", "read", "close", "open"]),
)


@given(steps=st.lists(STEPS, max_size=25))
def test_no_period_of_any_kind_has_less_than_was_charged_in_its_time(
    steps: list[tuple[Per, str, int, int, str]],
) -> None:
    """Whatever the rules say in between, and two proxies at once; and all of it is verified when it is opened again."""
    budgets = Budgets(LIMIT, {"ada": LIMIT, "bob": LIMIT})

    async def play(path: Path) -> None:
        home = LedgerFile(path, IDENTITY, Anchor(path.with_name("anchor")))
        home.create()
        ledger, charged, now, latest = await Ledger.at(home), list[tuple[datetime, str, Decimal]](), OCTOBER, OCTOBER
        for kind, analyst, hundredths, hours, what in steps:
            now += timedelta(hours=hours)
            latest, ruled = max(now, latest), per(kind, budgets)
            if what == "read":
                await ledger.balances(analyst, ruled, now)
                continue
            if what == "close":
                await ledger.close_before(now - timedelta(days=2), now)
            if what == "open":
                await ledger.close()
                ledger = await Ledger.at(LedgerFile(path, IDENTITY, Anchor(path.with_name("anchor"))))
            receipt = await ledger.charge(charge_of(analyst, str(Decimal(hundredths) / 100), time=now), ruled)
            charged.append((now, analyst, Decimal(hundredths) / 100))
            if what == "settle":
                await ledger.settle(receipt.charge, [release_of("0.01")])
        for kind in get_args(Per):
            ruled = per(kind, budgets)
            span = span_of(period_of(latest, ruled), ruled)
            paid = [(by, epsilon) for time, by, epsilon in charged if span is None or span[0] <= time < span[1]]
            own, shared, _ = await ledger.balances("ada", ruled, latest)
            assert own.spent >= sum((epsilon for by, epsilon in paid if by == "ada"), Decimal(0)), kind
            assert shared.spent >= sum((epsilon for _, epsilon in paid), Decimal(0)), kind
            assert shared.lifetime == sum((epsilon for *_, epsilon in charged), Decimal(0))
        await ledger.close()
        ledger = await Ledger.at(LedgerFile(path, IDENTITY, Anchor(path.with_name("anchor"))))
        await ledger.checkpoints.verify(hurries=True)
        await ledger.close()

    with TemporaryDirectory() as folder:
        asyncio.run(play(Path(folder) / "ledger"))
