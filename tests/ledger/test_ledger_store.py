"""What every home of the ledger promises, whichever it is."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from proxy.ledger.ledger import Ledger
from proxy.ledger.requests import NoSuchRequest, OperatorAnswer
from rules.accounting.accountant import Limit, Totals, epsilon_of
from rules.accounting.store import (
    BudgetRequest,
    KeptRelease,
    LedgerError,
    LedgerStore,
    ReleaseQuery,
    ServableReleases,
    Stop,
    Viewer,
)
from rules.mechanisms.cost import Mechanism
from rules.mechanisms.noised_outputs import Text
from rules.refusal import AnalystStopped, BudgetSpent, ChargedSince
from tests.ledger.charges import BUDGETS, IDENTITY, MAKERS, NOON, charge_of, release_of
from tests.support.ledgers import PostgresLedger, SqliteLedger


@pytest.fixture(params=["sqlite", "postgres"])
async def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[LedgerStore]:
    store: LedgerStore
    if request.param == "sqlite":
        SqliteLedger.create(tmp_path / "ledger", IDENTITY)
        store = await SqliteLedger.open(tmp_path / "ledger", IDENTITY)
    else:
        dsn = request.getfixturevalue("empty_database")()
        PostgresLedger.create(dsn, IDENTITY)
        store = await PostgresLedger.open(dsn, IDENTITY)
    yield store
    await store.close()


async def find(
    ledger: LedgerStore,
    *,
    block: str = "block",
    measure: str = "count",
    epsilon: str = "0.1",
    groups: tuple[tuple[Text, ...], ...] | None = None,
    analyst: str = "ada",
    now: datetime = NOON,
    since: datetime = NOON,
) -> KeptRelease | None:
    """What serves alone: the analyst's own before that of others."""
    wanted = ReleaseQuery(block, measure, Decimal(epsilon), groups)
    (found,) = await ledger.find_releases([wanted], Viewer(analyst=analyst, budgets=BUDGETS, now=now, since=since))
    own = (release for release in found.own if release.release.mechanism.strength >= wanted.epsilon)
    return next(own, found.other)


async def test_a_charge_is_taken_from_both_accounts(ledger: LedgerStore) -> None:
    receipt = await ledger.charge(charge_of("ada", "0.1", "0.2"), BUDGETS)

    assert receipt.cost.epsilon == Decimal("0.3")
    assert (receipt.analyst.spent, receipt.analyst.left) == (Decimal("0.3"), Decimal("0.7"))
    assert (receipt.dataset.spent, receipt.dataset.left) == (Decimal("0.3"), Decimal("1.7"))
    bob, dataset, _ = await ledger.balances("bob", BUDGETS, NOON)
    assert (bob.spent, dataset.spent) == (Decimal(0), Decimal("0.3"))


async def test_a_charge_that_does_not_fit_leaves_no_trace(ledger: LedgerStore) -> None:
    await ledger.charge(charge_of("ada", "0.9"), BUDGETS)
    with pytest.raises(BudgetSpent, match="your privacy budget"):
        await ledger.charge(charge_of("ada", "0.2"), BUDGETS)
    await ledger.charge(charge_of("ada", "0.1"), BUDGETS)
    await ledger.charge(charge_of("bob", "1"), BUDGETS)
    with pytest.raises(BudgetSpent, match="all analysts share"):
        await ledger.charge(charge_of("bob", "0.1"), BUDGETS)

    ada, dataset, _ = await ledger.balances("ada", BUDGETS, NOON)
    assert (ada.left, dataset.left) == (Decimal(0), Decimal(0))


@pytest.mark.parametrize(
    "mechanism",
    [
        *(Mechanism.pure(Decimal(epsilon)) for epsilon in ("-1", "0", "NaN", "sNaN", "Infinity", "-Infinity")),
        *(Mechanism.pure(Decimal("0.1"), Decimal(delta)) for delta in ("-1e-9", "1", "NaN", "Infinity")),
        *(Mechanism(Decimal("0.1"), rho=Decimal(rho)) for rho in ("0", "-1", "1e-9", "0.006", "NaN", "Infinity")),
        *(Mechanism(None, rho=Decimal(rho)) for rho in ("0", "-0.1", "NaN", "Infinity")),
    ],
    ids=str,
)
async def test_a_charge_that_no_draw_can_have_is_refused_whoever_makes_it(
    ledger: LedgerStore, mechanism: Mechanism
) -> None:
    charge = replace(charge_of("ada", "0.5"), mechanisms=(Mechanism.pure(Decimal("0.5")), mechanism))
    with pytest.raises(LedgerError) as refused:
        await ledger.charge(charge, BUDGETS)

    assert refused.value.reason == "invalid_charge"
    ada, dataset, _ = await ledger.balances("ada", BUDGETS, NOON)
    assert ada.spent == dataset.spent == 0


async def test_concurrent_charges_never_overspend_together(ledger: LedgerStore) -> None:
    charges = (ledger.charge(charge_of("ada", "0.1"), BUDGETS) for _ in range(50))
    outcomes = await asyncio.gather(*charges, return_exceptions=True)

    assert sum(not isinstance(outcome, BaseException) for outcome in outcomes) == 10
    assert all(isinstance(outcome, BudgetSpent) for outcome in outcomes if isinstance(outcome, BaseException))


async def test_a_budget_is_new_in_a_new_period_and_the_lifetime_sum_stays(ledger: LedgerStore) -> None:
    await ledger.charge(charge_of("ada", "1"), BUDGETS)
    next_month = NOON + timedelta(days=14)
    receipt = await ledger.charge(charge_of("ada", "0.4", time=next_month), BUDGETS)

    assert (receipt.analyst.spent, receipt.analyst.lifetime) == (Decimal("0.4"), Decimal("1.4"))
    with pytest.raises(BudgetSpent):
        await ledger.charge(charge_of("ada", "0.7", time=NOON), BUDGETS)  # the clock was set back


async def test_a_budget_for_ever_counts_what_was_paid_by_the_month(ledger: LedgerStore) -> None:
    """Rules that are changed to a promise for a lifetime keep it: nothing of before is forgotten."""
    ever = replace(BUDGETS, per="ever")
    await ledger.charge(charge_of("ada", "0.7"), BUDGETS)
    await ledger.charge(charge_of("bob", "0.9", time=NOON + timedelta(days=31)), BUDGETS)
    with pytest.raises(BudgetSpent, match="your privacy budget"):
        await ledger.charge(charge_of("ada", "0.4"), ever)
    receipt = await ledger.charge(charge_of("ada", "0.3"), ever)
    with pytest.raises(BudgetSpent, match="all analysts share"):
        await ledger.charge(charge_of("bob", "0.2"), ever)

    assert (receipt.analyst.spent, receipt.dataset.spent) == (Decimal(1), Decimal("1.9"))
    assert (receipt.analyst.lifetime, receipt.dataset.lifetime) == (Decimal(1), Decimal("1.9"))
    assert (await ledger.review("ada", ever, NOON, most_charges=9)).analyst.totals.epsilon == 1


async def test_with_a_delta_the_better_filter_grants(ledger: LedgerStore) -> None:
    budgets = replace(BUDGETS, dataset=Limit(Decimal(1), Decimal("1e-6")), analysts={"ada": BUDGETS.dataset})
    with_delta = replace(budgets, analysts={"ada": budgets.dataset})
    for _ in range(200):
        await ledger.charge(charge_of("ada", "0.01"), with_delta)

    _, dataset, _ = await ledger.balances("ada", with_delta, NOON)
    assert dataset.spent < 1 < dataset.lifetime
    with pytest.raises(BudgetSpent):
        await ledger.charge(charge_of("ada", "0.01", delta="6e-7"), with_delta)


async def test_a_release_is_kept_as_it_was_noised(ledger: LedgerStore) -> None:
    receipt = await ledger.charge(charge_of("ada", "0.1"), BUDGETS)
    await ledger.settle(receipt.charge, [release_of("0.1")])

    kept = await find(ledger)
    assert kept is not None
    assert kept.release == release_of("0.1")
    assert (kept.time, kept.paid) == (NOON, True)


async def test_releases_are_found_by_block_measure_groups_epsilon_and_age(ledger: LedgerStore) -> None:
    receipt = await ledger.charge(charge_of("ada", "0.1"), BUDGETS)
    await ledger.settle(receipt.charge, [release_of("0.1")])

    assert await find(ledger, groups=release_of("0.1").groups)
    assert not await find(ledger, groups=(("Berlin",),))
    assert not await find(ledger, block="other")
    assert not await find(ledger, measure="other")
    assert not await find(ledger, epsilon="0.10000000000000000001")
    assert not await find(ledger, since=NOON + timedelta(seconds=1))


async def test_what_is_paid_comes_before_what_is_cheap_and_that_before_what_is_new(ledger: LedgerStore) -> None:
    for analyst, epsilon in (("ada", "0.3"), ("bob", "0.2"), ("bob", "0.1"), ("bob", "0.1")):
        receipt = await ledger.charge(charge_of(analyst, epsilon), BUDGETS)
        await ledger.settle(receipt.charge, [release_of(epsilon)])

    found = [await find(ledger, analyst=analyst) for analyst in ("ada", "eve")]
    assert [(kept.id, kept.paid) for kept in found if kept is not None] == [(1, True), (4, False)]


async def test_what_is_on_the_own_account_is_found_whatever_its_epsilon(ledger: LedgerStore) -> None:
    for analyst, epsilon in (("ada", "0.05"), ("ada", "0.2"), ("bob", "0.3"), ("ada", "0.05"), ("bob", "0.2")):
        receipt = await ledger.charge(charge_of(analyst, epsilon), BUDGETS)
        await ledger.settle(receipt.charge, [release_of(epsilon)])
    await ledger.charge(charge_of("ada", sights=(5,)), BUDGETS)

    wanted = ReleaseQuery("block", "count", Decimal("0.3"), release_of("1").groups)
    (found,) = await ledger.find_releases([wanted], Viewer(analyst="ada", budgets=BUDGETS, now=NOON, since=NOON))

    assert [release.id for release in found.own] == [5, 2, 4, 1]
    assert found.other is not None and found.other.id == 3
    assert all(release.paid for release in found.own) and not found.other.paid


async def test_what_is_on_the_own_account_is_found_by_how_its_block_begins(ledger: LedgerStore) -> None:
    """The newest first, of one's own alone, and nothing that is older than asked for."""
    one, other = "f" * 64, "%_" * 32  # of as many characters; none of them means another
    blocks = [(one, "1"), (other, "2"), ("e" * 64, "3"), (one, "4")]
    for place, (family, text) in enumerate(blocks):
        for analyst in ("ada", "bob"):
            time = NOON - timedelta(hours=place)
            receipt = await ledger.charge(charge_of(analyst, "0.05", time=time), BUDGETS)
            await ledger.settle(receipt.charge, [release_of("0.05", block=f"{family} {text}")])

    async def found(*families: str, hours: int) -> list[str]:
        since = NOON - timedelta(hours=hours)
        kept = await ledger.find_cells(families, Viewer(analyst="ada", budgets=BUDGETS, now=NOON, since=since))
        assert all(release.paid for release in kept)
        return [release.release.block[-1] for release in kept]

    assert await found(one, other, hours=5) == ["4", "2", "1"]
    assert await found(one, hours=2) == ["1"]
    assert await found("d" * 64, hours=5) == await found(hours=5) == []


async def test_what_is_on_the_account_of_others_alone_is_found_by_how_its_block_begins(ledger: LedgerStore) -> None:
    family = "f" * 64
    numbers: list[int] = []
    for place, analyst in enumerate(("ada", "bob", "bob")):
        receipt = await ledger.charge(charge_of(analyst, "0.05"), BUDGETS)
        await ledger.settle(receipt.charge, [release_of("0.05", block=f"{family} {place}")])

    async def found(family: str = family, hours: int = 5) -> list[str]:
        since = NOON - timedelta(hours=hours)
        kept = await ledger.find_cells(
            [family], Viewer(analyst="ada", budgets=BUDGETS, now=NOON, since=since), of_others=True
        )
        assert all(release.shared and not release.paid for release in kept)
        numbers[:] = [release.id for release in kept]
        return [release.release.block[-1] for release in kept]

    assert await found() == ["2", "1"]
    assert await found(hours=-1) == await found("e" * 64) == []
    await found()
    await ledger.charge(replace(charge_of("ada", "0.05"), mechanisms=(), sights=(numbers[0],)), BUDGETS)
    assert await found() == ["1"]


@pytest.mark.parametrize("months", [0, 1, 3])
async def test_what_lasts_serves_who_has_paid_for_it_in_whichever_period_and_nobody_else(
    ledger: LedgerStore, months: int
) -> None:
    """It is made on an account of its own, and ada and bob pay for one half of it each."""
    family = "f" * 64
    blocks = [f"{family} {number}" for number in range(4)]
    receipt = await ledger.charge(charge_of("synopsis daily", "0.1"), MAKERS)
    await ledger.settle(receipt.charge, [release_of("0.1", block=block) for block in blocks])
    kept = await ledger.newest_of("synopsis daily")
    numbers = tuple(release.id for release in kept)
    for analyst, some in (("ada", numbers[:2]), ("bob", numbers[2:])):
        await ledger.charge(charge_of(analyst, sights=some), MAKERS)
    now = NOON + timedelta(days=30 * months)

    async def own(analyst: str) -> list[int]:
        wanted = [ReleaseQuery(block, "count", Decimal("0.1"), None) for block in blocks]
        found = await ledger.find_releases(
            wanted, Viewer(analyst=analyst, budgets=MAKERS, now=now, since=now, lasting=numbers)
        )
        assert not any(releases.other for releases in found), "it was offered at its price"
        assert all(release.is_lasting and release.paid for some in found for release in some.own)
        return [release.id for some in found for release in some.own]

    async def cells(analyst: str) -> list[int]:
        found = await ledger.find_cells(
            [family], Viewer(analyst=analyst, budgets=MAKERS, now=now, since=now, lasting=numbers)
        )
        return sorted(release.id for release in found)

    assert [release.release.block for release in kept] == blocks
    assert await own("ada") == await cells("ada") == list(numbers[:2])
    assert await own("bob") == await cells("bob") == list(numbers[2:])
    assert await own("eve") == await cells("eve") == []
    later = await ledger.charge(charge_of("ada", "0.1", time=now), MAKERS)
    releases = [release_of("0.1", block=block) for block in blocks]
    beside = await ledger.settle(later.charge, releases, beside=now, lasting=numbers)
    assert [[release.id for release in some] for some in beside] == [[numbers[0]], [numbers[1]], [], []]


async def test_a_cube_of_many_cells_crowds_out_nothing(ledger: LedgerStore) -> None:
    family = "f" * 64
    for analyst, times in (("ada", 1), ("bob", 1), ("synopsis daily", 130)):
        receipt = await ledger.charge(charge_of(analyst, "0.1"), MAKERS)
        blocks = [f"{family} {analyst} {number}" for number in range(times)]
        await ledger.settle(receipt.charge, [release_of("0.001", block=block) for block in blocks])
    lasting = tuple(release.id for release in await ledger.newest_of("synopsis daily"))
    await ledger.charge(charge_of("ada", sights=lasting), MAKERS)

    cells = await ledger.find_cells(
        [family], Viewer(analyst="ada", budgets=MAKERS, now=NOON, since=NOON, lasting=lasting)
    )
    others = await ledger.find_cells(
        [family], Viewer(analyst="ada", budgets=MAKERS, now=NOON, since=NOON, lasting=lasting), of_others=True
    )

    assert [cell.id for cell in cells] == [*reversed(lasting), 1]
    assert [release.id for release in others] == [2]


async def test_what_lasts_comes_first_and_once(ledger: LedgerStore) -> None:
    """Seen in two periods it is one release: a mean of it with itself would be told as more precise."""
    block = "f" * 64 + " x"
    paid = await ledger.charge(charge_of("ada", "0.1"), BUDGETS)
    await ledger.settle(paid.charge, [release_of("0.1", block=block)])
    next_month = NOON + timedelta(days=14)
    await ledger.charge(charge_of("ada", sights=(1,), time=next_month), BUDGETS)
    newer = await ledger.charge(charge_of("ada", "0.1", time=next_month), BUDGETS)
    await ledger.settle(newer.charge, [release_of("0.1", block=block)])

    wanted = [ReleaseQuery(block, "count", Decimal("0.1"), None)]
    cells = await ledger.find_cells(
        [block[:64]], Viewer(analyst="ada", budgets=BUDGETS, now=next_month, since=next_month, lasting=(1,))
    )
    (found,) = await ledger.find_releases(
        wanted, Viewer(analyst="ada", budgets=BUDGETS, now=next_month, since=next_month, lasting=(1,))
    )

    assert [cell.id for cell in cells] == [1, 2]
    assert sorted(release.id for release in found.own) == [1, 2]


async def test_the_newest_charge_of_an_account_has_its_releases_in_order(ledger: LedgerStore) -> None:
    assert await ledger.newest_of("ada") == ()
    for measures in (("a", "b"), ("c", "d", "e")):
        receipt = await ledger.charge(charge_of("ada", "0.1"), BUDGETS)
        await ledger.settle(receipt.charge, [release_of("0.1", measure=measure) for measure in measures])
    await ledger.charge(charge_of("ada", "0.1"), BUDGETS)

    assert [release.release.measure for release in await ledger.newest_of("ada")] == ["c", "d", "e"]
    assert [release.release.measure for release in await ledger.newest_of("ada", measure="a")] == ["a", "b"]
    assert await ledger.newest_of("ada", measure="f") == ()


async def test_what_is_charged_once_is_not_charged_again_since(ledger: LedgerStore) -> None:
    once = replace(charge_of("ada", "0.1"), once_since=NOON - timedelta(hours=1))
    charged = await asyncio.gather(*(ledger.charge(once, BUDGETS) for _ in range(3)), return_exceptions=True)

    assert [type(each) for each in charged].count(ChargedSince) == 2
    await ledger.charge(charge_of("bob", "0.1"), BUDGETS)
    await ledger.charge(replace(once, time=NOON + timedelta(days=1), once_since=NOON + timedelta(hours=1)), BUDGETS)
    _, shared, _ = await ledger.balances("ada", BUDGETS, NOON)
    assert shared.lifetime == Decimal("0.3")


async def test_settling_tells_what_the_analyst_has_of_the_same(ledger: LedgerStore) -> None:
    for analyst, time in (("ada", NOON - timedelta(hours=1)), ("ada", NOON), ("bob", NOON)):
        receipt = await ledger.charge(charge_of(analyst, "0.1", time=time), BUDGETS)
        await ledger.settle(receipt.charge, [release_of("0.1"), replace(release_of("0.1", measure="sum"), groups=())])
    receipt = await ledger.charge(charge_of("ada", "0.1"), BUDGETS)
    releases = [release_of("0.1"), release_of("0.1", measure="sum")]

    alone = await ledger.settle(receipt.charge, releases)
    counts, sums = await ledger.settle(receipt.charge, releases, beside=NOON)

    assert [list(releases) for releases in alone] == [[], []]
    assert [count.id for count in counts] == [7, 3]  # its own twin of just now, not the old one, not bob's
    assert [release.id for release in sums] == [8]  # not those over other groups


async def test_a_first_sight_is_paid_once_by_the_analyst_and_never_by_the_dataset(ledger: LedgerStore) -> None:
    paid = await ledger.charge(charge_of("ada", "0.3"), BUDGETS)
    await ledger.settle(paid.charge, [release_of("0.3")])
    kept = await find(ledger, analyst="bob")
    assert kept is not None and not kept.paid

    first = await ledger.charge(charge_of("bob", sights=(kept.id,)), BUDGETS)
    again = await ledger.charge(charge_of("bob", sights=(kept.id, kept.id)), BUDGETS)
    own = await ledger.charge(charge_of("ada", sights=(kept.id,)), BUDGETS)

    assert (first.cost.epsilon, again.cost.epsilon, own.cost.epsilon) == (Decimal("0.3"), Decimal(0), Decimal(0))
    assert first.dataset.spent == again.dataset.spent == Decimal("0.3")


async def test_a_sight_is_paid_again_in_a_new_period(ledger: LedgerStore) -> None:
    paid = await ledger.charge(charge_of("ada", "0.3"), BUDGETS)
    await ledger.settle(paid.charge, [release_of("0.3")])
    next_month = NOON + timedelta(days=14)
    kept = await find(ledger, now=next_month)
    assert kept is not None

    receipt = await ledger.charge(charge_of("ada", sights=(kept.id,), time=next_month), BUDGETS)

    assert (kept.paid, receipt.cost.epsilon) == (False, Decimal("0.3"))


async def test_what_is_seen_again_in_a_new_period_is_paid_by_the_dataset_too_and_once(ledger: LedgerStore) -> None:
    """All analysts together receive it in that period: unpaid, a full budget could be received beside it."""
    paid = await ledger.charge(charge_of("ada", "1"), BUDGETS)
    await ledger.settle(paid.charge, [release_of("1")])
    next_month = NOON + timedelta(days=14)
    found = [await find(ledger, analyst=analyst, now=next_month) for analyst in ("ada", "bob")]
    assert [(kept.paid, kept.shared) for kept in found if kept is not None] == [(False, False)] * 2

    ada = await ledger.charge(charge_of("ada", sights=(1,), time=next_month), BUDGETS)
    kept = await find(ledger, analyst="bob", now=next_month)
    assert kept is not None and (kept.paid, kept.shared) == (False, True)
    bob = await ledger.charge(charge_of("bob", sights=(1,), time=next_month), BUDGETS)

    assert (ada.dataset.spent, bob.dataset.spent, bob.analyst.spent) == (Decimal(1), Decimal(1), Decimal(1))
    with pytest.raises(BudgetSpent, match="all analysts share"):
        wide = replace(BUDGETS, analysts={"bob": Limit(Decimal(9))})
        await ledger.charge(charge_of("bob", "1.1", time=next_month), wide)
    (first, again) = (await ledger.review("ada", BUDGETS, next_month, most_charges=9)).charges
    assert (first.first_seen, again.first_seen) == ((), (Mechanism.pure(Decimal(1)),))


async def test_a_fault_that_stops_refuses_every_later_charge_of_its_analyst(ledger: LedgerStore) -> None:
    receipt = await ledger.charge(charge_of("ada", "0.1"), BUDGETS)
    await ledger.fault(receipt.charge, NOON, cause="22", stops=True)
    for later in (NOON, NOON + timedelta(days=400)):
        with pytest.raises(AnalystStopped):
            await ledger.charge(charge_of("ada", "0.1", time=later), BUDGETS)

    ada, *_ = await ledger.balances("ada", BUDGETS, NOON)
    assert ada.spent == Decimal("0.1")
    assert await ledger.stops() == (Stop("ada", NOON, receipt.charge, "22"),)
    await ledger.charge(charge_of("bob", "0.1"), BUDGETS)


async def test_a_fault_that_is_said_again_stops_nobody_whom_the_dba_has_forgiven(ledger: LedgerStore) -> None:
    """Who did not hear of the commit, as where the connection was cut, says it again."""
    receipt = await ledger.charge(charge_of("ada", "0.1"), BUDGETS)
    await ledger.fault(receipt.charge, NOON, cause="22", stops=True)
    assert await ledger.forgive("ada", NOON)
    await ledger.fault(receipt.charge, NOON, cause="22", stops=True)

    assert await ledger.stops() == ()


async def test_a_fault_that_stops_nobody_is_kept_and_nothing_more(ledger: LedgerStore) -> None:
    for _ in range(5):
        receipt = await ledger.charge(charge_of("ada", "0.1"), BUDGETS)
        await ledger.fault(receipt.charge, NOON, cause="57", stops=False)

    assert await ledger.stops() == ()
    review = await ledger.review("ada", BUDGETS, NOON, most_charges=9)
    assert {charge.state for charge in review.charges} == {"failed"}


async def test_what_ran_while_a_fault_stopped_its_analyst_is_not_settled(ledger: LedgerStore) -> None:
    failed = await ledger.charge(charge_of("ada", "0.1"), BUDGETS)
    running = await ledger.charge(charge_of("ada", "0.1"), BUDGETS)
    others = await ledger.charge(charge_of("bob", "0.1"), BUDGETS)
    await ledger.fault(failed.charge, NOON, cause="22", stops=True)

    with pytest.raises(AnalystStopped):
        await ledger.settle(running.charge, [release_of("0.1")])
    assert await find(ledger) is None
    await ledger.settle(others.charge, [release_of("0.1")])


async def test_who_is_forgiven_asks_again_until_the_next_fault(ledger: LedgerStore) -> None:
    receipt = await ledger.charge(charge_of("ada", "0.1"), BUDGETS)
    assert not await ledger.forgive("ada", NOON)  # there is nothing to forgive, and nothing in advance
    for _ in range(2):
        await ledger.fault(receipt.charge, NOON, cause="22", stops=True)
        assert await ledger.forgive("ada", NOON)
        assert not await ledger.forgive("ada", NOON)
        receipt = await ledger.charge(charge_of("ada", "0.1"), BUDGETS)
        assert await ledger.stops() == ()
    await ledger.fault(receipt.charge, NOON, cause="22", stops=True)

    with pytest.raises(AnalystStopped):
        await ledger.charge(charge_of("ada", "0.1"), BUDGETS)


async def test_nothing_is_settled_without_its_charge(ledger: LedgerStore) -> None:
    with pytest.raises(LedgerError):
        await ledger.settle(7, [release_of("0.1")])


async def test_a_draw_without_pure_epsilon_is_kept_as_such(ledger: LedgerStore) -> None:
    gaussian = Mechanism(None, Decimal(0), Decimal("0.001"))
    limit = Limit(Decimal(1), Decimal("1e-6"))
    budgets = replace(BUDGETS, dataset=limit, analysts={"ada": limit})
    receipt = await ledger.charge(replace(charge_of("ada", "0.01"), mechanisms=(gaussian,)), budgets)
    await ledger.settle(receipt.charge, [replace(release_of("1"), mechanism=gaussian)])

    kept = await find(ledger, epsilon="0.0447")  # the ε whose Laplace noise costs as much ρ
    assert kept is not None and kept.release.mechanism == gaussian
    assert await find(ledger, epsilon="0.0448") is None
    with pytest.raises(BudgetSpent):
        await ledger.charge(charge_of("ada", "0.01"), BUDGETS)  # without a δ nothing more is granted


async def test_over_all_periods_what_has_no_pure_epsilon_is_what_zcdp_makes_of_it(ledger: LedgerStore) -> None:
    limit = Limit(Decimal(3), Decimal("1e-6"))
    budgets = replace(BUDGETS, dataset=limit, analysts={"ada": limit})
    gaussian = replace(charge_of("ada", "1"), mechanisms=(Mechanism.concentrated(Decimal("0.3")),))
    await ledger.charge(charge_of("ada", "0.1", time=NOON - timedelta(days=31)), budgets)
    first = await ledger.charge(gaussian, budgets)
    second = await ledger.charge(replace(gaussian, time=NOON + timedelta(days=31)), budgets)

    assert first.cost.epsilon == 0 and not first.cost.pure
    assert first.cost.rho == Decimal("0.045")
    month = epsilon_of(Decimal("0.045"), limit.conversion_delta)
    assert second.analyst.spent == month
    assert float(second.analyst.lifetime) == pytest.approx(0.1 + 2 * float(month))


async def test_a_review_tells_an_analyst_of_own_charges_and_of_both_accounts(ledger: LedgerStore) -> None:
    settled = await ledger.charge(charge_of("ada", "0.1", "0.2"), BUDGETS)
    await ledger.settle(settled.charge, [release_of("0.1"), release_of("0.2", measure="sum")])
    failed = await ledger.charge(charge_of("ada", "0.3"), BUDGETS)
    await ledger.fault(failed.charge, NOON, cause="57", stops=False)
    await ledger.charge(charge_of("ada", "0.05"), BUDGETS)
    await ledger.charge(charge_of("bob", "0.5"), BUDGETS)

    review = await ledger.review("ada", BUDGETS, NOON, most_charges=10)

    assert [charge.state for charge in review.charges] == ["settled", "failed", "charged"]
    assert [len(charge.fresh) for charge in review.charges] == [2, 1, 1]
    assert (review.analyst.totals.epsilon, review.dataset.totals.epsilon) == (Decimal("0.65"), Decimal("1.15"))
    assert (review.analyst.lifetime, review.period) == (Decimal("0.65"), "month:2026-11")
    own = [mechanism for charge in review.charges for mechanism in (*charge.fresh, *charge.seen)]
    assert Totals().plus(own) == review.analyst.totals


async def test_a_review_shows_the_newest_charges_and_what_was_seen_of_others(ledger: LedgerStore) -> None:
    bobs = await ledger.charge(charge_of("bob", "0.2"), BUDGETS)
    await ledger.settle(bobs.charge, [release_of("0.2")])
    await ledger.charge(charge_of("ada", "0.1"), BUDGETS)
    await ledger.charge(charge_of("ada", sights=(1,), time=NOON + timedelta(hours=1)), BUDGETS)

    (newest,) = (await ledger.review("ada", BUDGETS, NOON, most_charges=1)).charges

    assert (newest.fresh, newest.seen, newest.state) == ((), (Mechanism.pure(Decimal("0.2")),), "settled")
    assert (await ledger.review("ada", BUDGETS, NOON, most_charges=0)).charges == ()


async def test_releases_that_were_drawn_for_one_price_cost_it_once_at_first_sight(ledger: LedgerStore) -> None:
    paid = await ledger.charge(charge_of("ada", "0.4"), BUDGETS)
    pivot = [replace(release_of("0.4", measure=name), vector=0) for name in ("open", "sent")]
    await ledger.settle(paid.charge, pivot)
    found = [await find(ledger, measure=name, analyst="bob") for name in ("open", "sent")]
    opened, sent = (kept.id for kept in found if kept is not None)

    assert (await ledger.charge(charge_of("bob", sights=(opened,)), BUDGETS)).cost.epsilon == Decimal("0.4")
    assert (await ledger.charge(charge_of("bob", sights=(opened, sent)), BUDGETS)).cost.epsilon == 0
    later = NOON + timedelta(days=15)
    for name, sights in (("bob", (opened,)), ("ada", (sent, opened))):
        seen = await ledger.charge(charge_of(name, sights=sights, time=later), BUDGETS)
        assert (seen.cost.epsilon, seen.analyst.spent, seen.dataset.spent) == (Decimal("0.4"),) * 3
    kept = await find(ledger, measure="sent", analyst="ada", now=later)
    assert kept is not None and kept.paid and kept.vector == (opened, sent)


ROLE = replace(
    BUDGETS,
    analysts={name: Limit(Decimal(1)) for name in ("ada", "bob", "eve")},
    roles={"team": Limit(Decimal("0.5"))},
    members={"ada": "team", "bob": "team"},
)


async def test_a_role_has_an_account_of_its_own_that_its_analysts_share(ledger: LedgerStore) -> None:
    receipt = await ledger.charge(charge_of("ada", "0.4"), ROLE)
    assert receipt.role is not None and receipt.tightest == (receipt.role, "role")
    assert (receipt.role.spent, receipt.role.left) == (Decimal("0.4"), Decimal("0.1"))

    with pytest.raises(BudgetSpent) as refused:
        await ledger.charge(charge_of("bob", "0.2"), ROLE)
    assert 'the role "team" share this month' in str(refused.value)
    assert "SET noisegate.epsilon = 0.1 would fit" in refused.value.hint
    assert (await ledger.charge(charge_of("eve", "0.2"), ROLE)).role is None
    assert (await ledger.charge(charge_of("bob", "0.1"), ROLE)).analyst.spent == Decimal("0.1")


async def test_an_answer_of_a_colleague_is_on_the_account_of_the_role_already(ledger: LedgerStore) -> None:
    eves = await ledger.charge(charge_of("eve", "0.1"), ROLE)
    await ledger.settle(eves.charge, [release_of("0.1")])
    adas = await ledger.charge(charge_of("ada", "0.3"), ROLE)
    await ledger.settle(adas.charge, [release_of("0.3", measure="sum")])

    first = await ledger.charge(charge_of("bob", sights=(1, 2)), ROLE)

    assert (first.analyst.spent, first.dataset.spent) == (Decimal("0.4"), Decimal("0.4"))
    assert first.role is not None and first.role.spent == Decimal("0.4")  # eve's is new to the role, ada's is not
    again = await ledger.charge(charge_of("ada", sights=(1,)), ROLE)
    assert again.role is not None and (again.role.spent, again.analyst.spent) == (Decimal("0.4"), Decimal("0.4"))
    review = await ledger.review("ada", ROLE, NOON, most_charges=10)
    assert review.role is not None and review.role.totals.epsilon == Decimal("0.4")


async def test_what_an_analyst_had_seen_before_is_paid_by_the_role_that_the_analyst_comes_to(
    ledger: LedgerStore,
) -> None:
    eves = await ledger.charge(charge_of("eve", "0.4"), ROLE)
    await ledger.settle(eves.charge, [release_of("0.4")])
    moved = replace(ROLE, members={**ROLE.members, "eve": "team"})
    query = ReleaseQuery("block", "count", Decimal("0.4"), None)

    async def find() -> ServableReleases:
        (found,) = await ledger.find_releases([query], Viewer(analyst="eve", budgets=moved, now=NOON, since=NOON))
        return found

    before = await find()
    assert not before.own and before.other is not None and not before.other.paid

    seen = await ledger.charge(charge_of("eve", sights=(1,)), moved)
    assert (seen.cost.epsilon, seen.analyst.spent, seen.dataset.spent) == (Decimal(0), Decimal("0.4"), Decimal("0.4"))
    assert seen.role is not None and seen.role.spent == Decimal("0.4")
    after = await find()
    assert [release.id for release in after.own] == [1] and after.other is None
    again = await ledger.charge(charge_of("eve", sights=(1,)), moved)
    assert again.role is not None and again.role.spent == Decimal("0.4")
    assert await ledger.payers(1, ["eve"], moved) == {"eve"}

    with pytest.raises(BudgetSpent, match='the role "team" share'):
        await ledger.charge(charge_of("eve", "0.2"), moved)


async def test_a_request_is_open_until_it_is_answered_or_its_period_is_over(ledger: LedgerStore) -> None:
    asked = [
        await ledger.request("ada", BudgetRequest(Decimal(number), "why"), BUDGETS, NOON) for number in range(1, 4)
    ]
    assert isinstance(ledger, Ledger)
    word = OperatorAnswer(NOON, "dba", "so be it")
    await ledger.grant_request(asked[0].number, word, BUDGETS, epsilon=Decimal("0.5"))
    await ledger.refuse_request(asked[1].number, word, BUDGETS)

    states = [(request.state, request.granted) for request in await ledger.requests(BUDGETS, NOON, analyst="ada")]
    assert states == [("granted", Decimal("0.5")), ("refused", None), ("open", None)]
    assert await ledger.requests(BUDGETS, NOON, analyst="bob") == ()
    later = NOON + timedelta(days=31)
    assert [request.state for request in await ledger.requests(BUDGETS, later)] == ["granted", "refused", "lapsed"]
    for number in (asked[0].number, asked[1].number, 999):
        with pytest.raises(NoSuchRequest):
            await ledger.grant_request(number, word, BUDGETS)
    assert (await ledger.charge(charge_of("ada", "1.5"), BUDGETS)).analyst.left == 0


async def test_open_requests_keep_their_numbers_when_older_entries_are_closed(ledger: LedgerStore) -> None:
    assert isinstance(ledger, Ledger)
    await ledger.charge(charge_of("ada", "0.1"), BUDGETS)
    numbers = [
        (await ledger.request("ada", BudgetRequest(Decimal(each), "why"), BUDGETS, NOON)).number for each in (1, 2)
    ]
    await ledger.refuse_request(numbers[0], OperatorAnswer(NOON, "dba"), BUDGETS)

    await ledger.close_before(NOON + timedelta(hours=1), NOON + timedelta(hours=2))

    assert [request.number for request in await ledger.requests(BUDGETS, NOON)] == [numbers[1]]
    done = await ledger.grant_request(numbers[1], OperatorAnswer(NOON, "dba"), BUDGETS)
    assert (done.number, done.granted) == (numbers[1], Decimal(2))
    assert (await ledger.balances("ada", BUDGETS, NOON))[0].limit == Decimal(3)
    await ledger.close_before(NOON + timedelta(hours=3), NOON + timedelta(hours=4))
    assert (await ledger.balances("ada", BUDGETS, NOON))[0].limit == Decimal(3)
