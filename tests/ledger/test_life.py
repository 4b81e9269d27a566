"""A ledger outlives its database's name, its disk and its first million charges, wherever it is kept."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from proxy.ledger import checkpoints, copies, promises
from proxy.ledger.group_commit import Home
from proxy.ledger.integrity import Anchor
from proxy.ledger.ledger import Ledger
from proxy.ledger.postgres import LedgerDatabase
from proxy.ledger.review import Wish
from proxy.ledger.sqlite import LedgerFile
from rules.accounting.store import BudgetRequest, Grant, KeptBounds, LedgerError, Promise, Stop
from rules.refusal import AnalystStopped, BudgetSpent
from tests.ledger.charges import BUDGETS, IDENTITY, NOON, charge_of, release_of
from tests.support.ledgers import SqliteLedger

OTHER = "7300000000000000001/shop"
LATER = NOON + timedelta(days=40)


@dataclass(frozen=True)
class Place:
    """Where a ledger of a test is, and its anchor."""

    make: Callable[[str, Anchor], Home]
    anchor: Path

    def home(self, identity: str = IDENTITY) -> Home:
        return self.make(identity, Anchor(self.anchor))

    @asynccontextmanager
    async def open(self, identity: str = IDENTITY) -> AsyncIterator[Ledger]:
        ledger = await Ledger.at(self.home(identity))
        try:
            yield ledger
        finally:
            await ledger.close()

    async def refusal(self, identity: str = IDENTITY) -> LedgerError:
        with pytest.raises(LedgerError) as refused:
            async with self.open(identity):
                pass
        return refused.value


def place_of(kind: str, request: pytest.FixtureRequest, folder: Path, name: str = "ledger") -> Place:
    if kind == "sqlite":
        return Place(lambda identity, anchor: LedgerFile(folder / name, identity, anchor), folder / f"{name}.anchor")
    dsn = request.getfixturevalue("empty_database")()
    return Place(lambda identity, anchor: LedgerDatabase(dsn, identity, anchor), folder / f"{name}.anchor")


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    made = place_of(request.param, request, tmp_path)
    made.home().create()
    return made


async def pay(ledger: Ledger, *epsilons: str, analyst: str = "ada", after: timedelta = timedelta()) -> int:
    """One charge with one release."""
    charge = replace(charge_of(analyst, *epsilons, time=NOON + after), statement="f1", shape="SELECT count(*) FROM t")
    receipt = await ledger.charge(charge, BUDGETS)
    await ledger.settle(receipt.charge, [release_of(epsilons[0])])
    return receipt.charge


# Move


async def test_a_moved_ledger_belongs_to_the_other_database_with_all_that_was_spent(place: Place) -> None:
    async with place.open() as ledger, place.open() as served:
        await pay(ledger, "0.4")
        await pay(served, "0.1")
        await ledger.move(OTHER, NOON, before=IDENTITY)
        with pytest.raises(LedgerError):  # of another proxy, which is before the old database still
            await pay(served, "0.1")

    refused = await place.refusal()
    assert OTHER in str(refused)
    assert f"--from {OTHER}" in refused.hint
    async with place.open(OTHER) as moved:
        ada, *_ = await moved.balances("ada", BUDGETS, NOON)
        assert ada.spent == Decimal("0.5")
        await moved.move(IDENTITY, NOON, before=OTHER)
    async with place.open() as back:
        assert (await back.balances("ada", BUDGETS, NOON))[0].spent == Decimal("0.5")


# Copies


async def test_a_copy_that_is_made_while_others_charge_is_whole(place: Place, tmp_path: Path) -> None:
    async with place.open() as ledger:
        await pay(ledger, "0.1")

        async def go_on() -> None:
            for _ in range(8):
                await pay(ledger, "0.1")

        copy, _ = await asyncio.gather(asyncio.to_thread(copies.back_up, place.home(), tmp_path / "copy"), go_on())

    assert copy.entries >= 2
    assert (tmp_path / "copy").stat().st_mode & 0o077 == 0
    with pytest.raises(LedgerError, match="already exists"):
        copies.back_up(place.home(), tmp_path / "copy")
    opened = await Ledger.at(LedgerFile(tmp_path / "copy", IDENTITY, Anchor(None)))
    history = await opened.history(Wish())
    await opened.close()
    assert len(history.charges) == (copy.entries + 1) // 2


@pytest.mark.parametrize("into", ["sqlite", "postgres"])
async def test_a_copy_is_put_back_into_either_home_and_the_ledger_says_so(
    place: Place, into: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    async with place.open() as ledger:
        await pay(ledger, "0.4")
        await ledger.move(OTHER, NOON, before=IDENTITY)
    copies.back_up(place.home(), tmp_path / "copy")
    target = replace(place_of(into, request, tmp_path, "again"), anchor=place.anchor)

    told = copies.restore(
        tmp_path / "copy", lambda root: target.make(root, Anchor(target.anchor)), Anchor(target.anchor), LATER, None
    )

    assert (told.entries, told.missing, told.is_anchored) == (3, 0, True)
    async with target.open(OTHER) as restored:
        assert (await restored.balances("ada", BUDGETS, NOON))[0].spent == Decimal("0.4")
        assert (await restored.history(Wish())).charges[0].shape == "SELECT count(*) FROM t"
        await pay(restored, "0.1")
    assert Anchor(target.anchor).read()[0] == 5  # and what was settled last waits for the next durable commit
    assert "anchor" in str(await place.refusal(OTHER))  # the first ledger is not the one any more


async def test_what_the_anchor_misses_in_a_copy_is_told_and_has_to_be_accepted(place: Place, tmp_path: Path) -> None:
    async with place.open() as ledger:
        await pay(ledger, "0.2")
        copies.back_up(place.home(), tmp_path / "copy")
        await pay(ledger, "0.3")
        await ledger.charge(charge_of("ada", "0.1"), BUDGETS)
    target = Place(lambda identity, anchor: LedgerFile(tmp_path / "again", identity, anchor), place.anchor)

    def put_back(missing: int | None) -> copies.Copy:
        anchor = Anchor(target.anchor)
        return copies.restore(tmp_path / "copy", lambda root: target.make(root, anchor), anchor, LATER, missing)

    for wrong in (None, 1):
        with pytest.raises(LedgerError, match="has 3 entries that are not in") as refused:
            put_back(wrong)
        assert "--missing 3" in refused.value.hint
        assert not (tmp_path / "again").exists()
    assert put_back(3).missing == 3
    async with target.open() as restored:
        assert (await restored.balances("ada", BUDGETS, NOON))[0].spent == Decimal("0.2")


async def test_a_copy_that_was_changed_is_not_put_back(place: Place, tmp_path: Path) -> None:
    async with place.open() as ledger:
        await pay(ledger, "0.2")
    copies.back_up(place.home(), tmp_path / "copy")
    with LedgerFile(tmp_path / "copy", "", Anchor(None)).snapshot() as copy:
        copy.execute("UPDATE totals SET epsilon = '0'")
        copy.execute("COMMIT")

    with pytest.raises(LedgerError, match="totals"):
        copies.restore(
            tmp_path / "copy", lambda root: LedgerFile(tmp_path / "x", root, Anchor(None)), Anchor(None), LATER, None
        )
    assert not (tmp_path / "x").exists()


# Closing


async def test_what_is_closed_is_paid_still_and_what_is_newer_is_served_still(place: Place) -> None:
    async with place.open() as ledger:
        for _ in range(3):
            await pay(ledger, "0.1")
        await pay(ledger, "0.5", analyst="bob", after=timedelta(days=3))
        before = await ledger.all_balances(["ada", "bob"], BUDGETS, NOON)
        served = await Ledger.at(place.home())  # another proxy, which goes on
        await pay(served, "0.1", analyst="bob", after=timedelta(days=3))

        closed = await ledger.close_before(NOON + timedelta(days=1), LATER)

        assert closed == (6, 3)
        assert await ledger.close_before(NOON + timedelta(days=1), LATER) == (0, 0)
        await pay(served, "0.1", analyst="bob", after=timedelta(days=4))
        await served.close()
    async with place.open() as again:
        ada, bob, shared = await again.all_balances(["ada", "bob"], BUDGETS, NOON)
        assert (ada, bob.spent, shared.spent) == (before[0], Decimal("0.7"), Decimal("1.0"))
        history = await again.history(Wish())
        assert ([charge.analyst for charge in history.charges], history.closed) == (["bob"] * 3, 3)
        assert history.analysts == ("ada", "bob")
        with pytest.raises(BudgetSpent):
            await again.charge(charge_of("ada", "0.8"), BUDGETS)
        assert await again.close_before(LATER + timedelta(days=1), LATER) == (7, 3)  # the first sum too
    async with place.open() as last:
        assert (await last.all_balances(["ada", "bob"], BUDGETS, NOON))[2].spent == Decimal("1.0")
        receipt = await last.charge(charge_of("bob", "0.1"), BUDGETS)
        await last.settle(receipt.charge, [release_of("0.1")])  # under a number that no other release had
    async with place.open() as ledger:
        assert (await ledger.balances("bob", BUDGETS, NOON))[0].spent == Decimal("0.8")


async def test_a_stop_and_a_move_outlive_the_entries_that_said_so(place: Place) -> None:
    async with place.open() as ledger:
        charge = await pay(ledger, "0.1")
        await ledger.fault(charge, NOON, cause="22", stops=True)
        await ledger.fault(await pay(ledger, "0.1", analyst="bob"), NOON, cause="22", stops=True)
        await ledger.forgive("bob", NOON)
        await ledger.move(OTHER, NOON, before=IDENTITY)
    async with place.open(OTHER) as ledger:
        await ledger.close_before(LATER, LATER)
    async with place.open(OTHER) as ledger:
        assert list(await ledger.stops()) == [Stop("ada", NOON, charge, "22")]
        with pytest.raises(AnalystStopped):
            await ledger.charge(charge_of("ada", "0.1"), BUDGETS)
        await pay(ledger, "0.1", analyst="bob")
    assert OTHER in str(await place.refusal())


async def test_a_grant_is_for_one_analyst_one_period_and_within_the_budget_of_all(place: Place) -> None:
    async with place.open() as ledger:
        await pay(ledger, "0.9")
        with pytest.raises(BudgetSpent, match="your"):
            await pay(ledger, "0.3")
        balance = await ledger.grant(Grant(NOON, "ada", Decimal("0.5"), "root"), BUDGETS)
        assert (balance.limit, balance.left) == (Decimal("1.5"), Decimal("0.6"))
        await pay(ledger, "0.3")
        await ledger.close_before(LATER, NOON)
    async with place.open() as ledger:
        await pay(ledger, "0.3")
        with pytest.raises(BudgetSpent, match="your"):
            await pay(ledger, "0.1")
        await ledger.grant(Grant(NOON, "ada", Decimal(5), "root"), BUDGETS)
        with pytest.raises(BudgetSpent, match="all analysts share"):
            await pay(ledger, "0.6")
        with pytest.raises(BudgetSpent, match="your"):
            await pay(ledger, "1.1", after=timedelta(days=31))  # in another month


@pytest.mark.parametrize("epsilon", ["-1", "0", "NaN", "Infinity"])
async def test_a_grant_is_of_a_number_above_zero(place: Place, epsilon: str) -> None:
    async with place.open() as ledger:
        with pytest.raises(LedgerError):
            await ledger.grant(Grant(NOON, "ada", Decimal(epsilon), "root"), BUDGETS)
        assert (await ledger.balances("ada", BUDGETS, NOON))[0].limit == 1


async def test_a_grant_counts_once_while_what_is_closed_is_being_deleted(place: Place) -> None:
    """As after a power cut: the sum is there, and nothing that it stands for is deleted yet."""
    async with place.open() as ledger:
        await pay(ledger, "0.1")
        await ledger.grant(Grant(NOON, "ada", Decimal("0.5"), "root"), BUDGETS)
        filed = await ledger.request("ada", BudgetRequest(Decimal("0.2"), "why"), BUDGETS, NOON)
        with place.home().snapshot() as connection:
            made = checkpoints.sum_up(connection, "", LATER)
        await ledger._batches.run(lambda connection: checkpoints.close(connection, made, LATER))

        assert (await ledger.balances("ada", BUDGETS, NOON))[0].limit == Decimal("1.5")
        assert list(await ledger.requests(BUDGETS, NOON)) == [filed]
    async with place.open() as ledger:
        assert (await ledger.balances("ada", BUDGETS, NOON))[0].limit == Decimal("1.5")
        await ledger.checkpoints.verify(hurries=True)


async def test_a_sum_that_was_changed_is_seen(place: Place) -> None:
    async with place.open() as ledger:
        await pay(ledger, "0.4")
        await ledger.close_before(LATER, LATER)
        found = await ledger._batches.run(
            lambda connection: connection.execute("SELECT id, entry FROM entries WHERE kind = 'close'").fetchone()
        )
        fields = json.loads(found[1])
        cheaper = [[*account[:2], "0", *account[3:]] for account in fields["accounts"]]
        entry = json.dumps(fields | {"accounts": cheaper}, sort_keys=True, separators=(",", ":"))
        await ledger._batches.run(
            lambda connection: (
                connection.execute("UPDATE entries SET entry = ? WHERE id = ?", (entry, found[0])).fetchone
            )
        )

    assert "was changed" in str(await place.refusal())


async def test_a_ledger_is_opened_without_a_lock(place: Place) -> None:
    """A charge in the middle of somebody else's opening does not wait for it."""
    async with place.open() as ledger:
        await pay(ledger, "0.1")
        with place.home().snapshot() as reading:
            assert reading.execute("SELECT count(*) FROM entries").fetchone() == (2,)
            async with asyncio.timeout(5):
                await pay(ledger, "0.1")
            assert reading.execute("SELECT count(*) FROM entries").fetchone() == (2,)


async def test_a_promise_is_its_analysts_and_the_newest_for_its_question(place: Place) -> None:
    question, other = "5ea1" * 16, "77aa" * 16
    async with place.open() as ledger:
        await ledger.keep_promise("ada", question, Promise(Decimal("0.3"), ("first",)), BUDGETS, NOON)
        await ledger.keep_promise("ada", question, Promise(Decimal("0.2"), ("newest", "ε")), BUDGETS, NOON)
        await ledger.keep_promise("ada", other, Promise(Decimal(1), ()), BUDGETS, NOON)
    async with place.open() as ledger:
        assert await ledger.find_promise("ada", question, BUDGETS, NOON) == Promise(Decimal("0.2"), ("newest", "ε"))
        assert await ledger.find_promise("ada", other, BUDGETS, NOON) == Promise(Decimal(1), ())
        assert await ledger.find_promise("bob", question, BUDGETS, NOON) is None
        assert (await ledger.balances("ada", BUDGETS, NOON))[0].spent == 0


async def test_a_promise_is_told_on_the_accounts_alone_that_have_paid_for_its_probe(place: Place) -> None:
    """Its ε and its words follow from noised numbers of that period, which no later one has on its account."""
    question, promise = "5ea1" * 16, Promise(Decimal("0.3"), ("told",))
    with_role = replace(BUDGETS, roles={"team": BUDGETS.dataset}, members={"ada": "team"})
    async with place.open() as ledger:
        await ledger.keep_promise("ada", question, promise, BUDGETS, NOON)
        assert await ledger.find_promise("ada", question, BUDGETS, LATER) is None
        assert await ledger.find_promise("ada", question, with_role, NOON) is None

        await ledger.charge(charge_of("ada", "0.1", time=LATER), BUDGETS)
        assert await ledger.find_promise("ada", question, BUDGETS, NOON) is None  # a clock set back

        await ledger.keep_promise("ada", question, promise, with_role, LATER)
        assert await ledger.find_promise("ada", question, with_role, LATER) == promise


async def test_promises_that_cost_nothing_do_not_fill_the_ledger(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are kept before what they are for is charged, so whoever has nothing left makes them too."""
    monkeypatch.setattr(promises, "MOST_A_DAY", 3)
    free = Promise(Decimal("0.3"), ())
    async with place.open() as ledger:
        for _ in range(9):
            await ledger.keep_promise("ada", "5ea1" * 16, Promise(Decimal("0.3"), ("told",)), BUDGETS, NOON)
        for number in range(9):
            await ledger.keep_promise("ada", f"{number:064d}", free, BUDGETS, NOON)
        await ledger.keep_promise("bob", "5ea1" * 16, free, BUDGETS, NOON)
        later = NOON + timedelta(days=2)
        await ledger.keep_promise("ada", f"{9:064d}", free, BUDGETS, later)
        with place.home().snapshot() as connection:
            rows = connection.execute("SELECT analyst, count(*) FROM entries GROUP BY analyst ORDER BY analyst")
            assert [tuple(row) for row in rows] == [("ada", 4), ("bob", 1)]
        assert await ledger.find_promise("ada", f"{9:064d}", BUDGETS, later) is not None
        assert await ledger.find_promise("ada", f"{8:064d}", BUDGETS, NOON) is None


async def test_bounds_that_were_looked_for_survive_the_closing_of_old_entries(tmp_path: Path) -> None:
    SqliteLedger.create(tmp_path / "ledger", IDENTITY)
    ledger = await SqliteLedger.open(tmp_path / "ledger", IDENTITY)
    kept = [
        KeptBounds(NOON, "orders", "amount", "0", upper, Decimal("0.1")) for upper in ("256", "512")
    ]  # the newest counts
    for bounds in kept:
        await ledger.keep_bounds(bounds)
    await ledger.keep_bounds(replace(kept[0], column="day"))

    await ledger.close_before(NOON + timedelta(hours=1), NOON + timedelta(hours=2))

    assert {(bound.column, bound.upper) for bound in await ledger.bounds()} == {("amount", "512"), ("day", "256")}
    await ledger.close()
    again = await SqliteLedger.open(tmp_path / "ledger", IDENTITY)
    assert len(await again.bounds()) == 2
    await again.close()
