"""A ledger opens from its newest checkpoint on, and an edit by hand before it is found all the same, in both homes."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from proxy.ledger import checkpoints, history
from proxy.ledger.connection import Connection
from proxy.ledger.group_commit import Home
from proxy.ledger.integrity import Anchor, append, find_closed, head
from proxy.ledger.ledger import Ledger
from proxy.ledger.postgres import LedgerDatabase
from proxy.ledger.sqlite import LedgerFile
from rules.accounting import chain
from rules.accounting.accountant import Totals
from rules.accounting.store import Grant, LedgerError
from rules.refusal import BudgetSpent
from tests.ledger.charges import BUDGETS, IDENTITY, NOON, charge_of, release_of

LATER = NOON + timedelta(days=40)
PART = 8


@dataclass(frozen=True)
class Place:
    """A home of a ledger, and somebody who edits it by hand."""

    make: Callable[[], Home]

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Ledger]:
        ledger = await Ledger.at(self.make())
        try:
            yield ledger
        finally:
            await ledger.close()

    def change(self, *statements: str) -> None:
        connection = self.make().connect()
        for statement in statements:
            connection.execute(statement)
        connection.close()

    async def refusal(self) -> str:
        with pytest.raises(LedgerError) as refused:
            async with self.open():
                pass
        return str(refused.value)


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.extended)])
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setattr(history, "PART", PART)
    monkeypatch.setattr(checkpoints, "PART", PART)
    if request.param == "sqlite":
        made = Place(lambda: LedgerFile(tmp_path / "ledger", IDENTITY, Anchor(tmp_path / "anchor")))
    else:
        dsn = request.getfixturevalue("empty_database")()
        made = Place(lambda: LedgerDatabase(dsn, IDENTITY, Anchor(tmp_path / "anchor")))
    made.make().create()
    return made


async def spend(ledger: Ledger, times: int) -> None:
    """Charges with a release each, bob's sight of the first, and now and then a word of an operator."""
    for number in range(times):
        receipt = await ledger.charge(charge_of("ada", "0.01"), BUDGETS)
        await ledger.settle(receipt.charge, [release_of("0.01")])
        if number == 0:
            await ledger.charge(charge_of("bob", sights=(1,)), BUDGETS)
            await ledger.grant(Grant(NOON, "ada", Decimal("0.5"), "root"), BUDGETS)
            await ledger.fault(receipt.charge, NOON, cause="22", stops=False)


async def checkpoint(ledger: Ledger) -> int:
    made = 0
    while await ledger.checkpoints.append(NOON):
        made += 1
    return made


@pytest.fixture
async def filled(place: Place) -> Place:
    """Twenty-four entries, of which two are checkpoints and sum up the first sixteen."""
    async with place.open() as ledger:
        await spend(ledger, 9)
        assert await checkpoint(ledger) == 2
        assert await checkpoint(ledger) == 0
        await ledger.charge(charge_of("ada", "0.01"), BUDGETS)
    return place


async def test_an_opening_reads_no_entry_that_a_checkpoint_sums_up_but_words(
    filled: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with filled.open() as ledger:
        before = await ledger.all_balances(["ada", "bob"], BUDGETS, NOON)
    read: list[int] = []
    genuine = history.checked_entries

    def watched(connection: Connection, place: str, start: chain.Closed):  # type: ignore[no-untyped-def]
        for entry in genuine(connection, place, start):
            read.append(entry[0])
            yield entry

    monkeypatch.setattr(history, "checked_entries", watched)
    async with filled.open() as ledger:
        assert min(read) == 17
        assert await ledger.all_balances(["ada", "bob"], BUDGETS, NOON) == before
        whole = await ledger.checkpoints.verify(hurries=True)
    assert min(read) == 1
    assert whole.sum.charges == 11
    assert whole.sum.number == max(read)


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        ("UPDATE totals SET epsilon = '0' WHERE account = 'dataset'", "totals"),
        ("UPDATE entries SET entry = replace(entry, '0.5', '5.5') WHERE kind = 'grant'", "a grant"),
        ("DELETE FROM entries WHERE kind = 'grant'", "a grant"),
        ("UPDATE entries SET analyst = 'bob' WHERE kind = 'grant'", "a grant"),
        ("UPDATE entries SET kind = 'forgive' WHERE id = 1", "a grant"),
        ("UPDATE entries SET kind = 'bounds' WHERE id = 16", "a grant"),
        (
            "UPDATE entries SET entry = replace(entry, '\"charges\":8', '\"charges\":7') WHERE kind = 'checkpoint'",
            "entry",
        ),
        ("UPDATE entries SET entry = replace(entry, '\"0.01\"', '\"0.02\"') WHERE id = 18", "entry 18"),
        ("UPDATE entries SET entry = 'x' WHERE kind = 'checkpoint'", "was changed"),
        ("UPDATE entries SET entry = '{}' WHERE kind = 'checkpoint'", "was changed"),
        ("UPDATE entries SET entry = 'x' WHERE id = 18", "entry 18"),
        ("DELETE FROM seen WHERE release = 8", "seen releases"),
        ("UPDATE releases SET numbers = '[5,5]' WHERE id = 8", "release 8"),
        ("UPDATE releases SET entry = NULL WHERE id = 8", "release 8"),
    ],
)
async def test_what_budgets_rest_on_and_what_is_newer_is_verified_at_opening(
    filled: Place, edit: str, said: str
) -> None:
    filled.change(edit)

    assert said in await filled.refusal()


@pytest.mark.parametrize(
    "edit",
    [
        "UPDATE entries SET entry = replace(entry, '\"0.01\"', '\"0.001\"') WHERE id = 6",
        "UPDATE releases SET numbers = '[5,5]' WHERE id = 1",
        *(
            pytest.param(edit, marks=pytest.mark.extended)
            for edit in (
                "UPDATE entries SET seal = 'x' WHERE id = 7",
                "UPDATE entries SET entry = 'x' WHERE id = 7",
                "UPDATE seen SET account = 'analyst:eve' WHERE release = 2",
                "INSERT INTO seen VALUES ('analyst:bob', 'month:2026-11', 3, 9)",
            )
        ),
    ],
)
async def test_an_edit_before_the_checkpoint_is_found_while_the_ledger_serves_which_then_answers_nothing(
    filled: Place, edit: str
) -> None:
    filled.change(edit)

    async with filled.open() as ledger:
        with pytest.raises(LedgerError):
            await ledger.checkpoints.verify(hurries=True)
        await ledger.charge(charge_of("ada", "0.01"), BUDGETS)
        keeping = asyncio.create_task(ledger.checkpoints.keep(lambda: NOON))
        with pytest.raises(LedgerError, match="has failed"):
            async with asyncio.timeout(60):
                while True:
                    await ledger.balances("ada", BUDGETS, NOON)
                    await asyncio.sleep(0.01)
        keeping.cancel()
        with suppress(asyncio.CancelledError):
            await keeping


async def test_a_checkpoint_that_says_less_than_its_entries_is_found(filled: Place) -> None:
    """Somebody who writes it with a seal that fits, as whoever may write to the ledger can."""
    home = filled.make()
    with home.snapshot() as connection:
        closed = find_closed(connection)
        newest = history.newest_checkpoint(connection, closed)
    (account, *_), *_ = newest.sum.accounts.items()
    cheaper = {**newest.sum.accounts, account: Totals()}
    end = [checkpoint async for checkpoint in _walked(filled)][-1]
    forged = chain.Checkpoint(
        chain.Closed(end.sum.number, end.sum.seal, IDENTITY, end.sum.charges, end.sum.release, cheaper), 0, end.words
    )
    async with filled.open() as ledger:
        await ledger._batches.run(lambda each: append(each, forged.entry(NOON)))
        with pytest.raises(LedgerError, match="checkpoint"):
            await ledger.checkpoints.verify(hurries=True)
    assert "totals" in await filled.refusal()


async def _walked(place: Place) -> AsyncIterator[chain.Checkpoint]:
    with place.make().snapshot() as connection:
        closed = find_closed(connection)
        for checkpoint in history.walk(connection, "", history.beginning(closed), closed):
            yield checkpoint


async def test_a_checkpoint_that_sums_up_itself_is_none(filled: Place) -> None:
    """Else nobody would verify the entry that it is."""
    with filled.make().snapshot() as connection:
        number, seal = head(connection)
    text = {"number": number, "seal": seal, "base": 0, "words": "", "identity": IDENTITY, "charges": 0, "release": 10}
    entry = json.dumps({"kind": "checkpoint", "time": "", "analyst": "", "accounts": [], **text})
    filled.change(
        f"UPDATE entries SET entry = '{entry}' WHERE id = (SELECT max(id) FROM entries WHERE kind = 'checkpoint')"
    )

    assert "was changed" in await filled.refusal()


async def test_a_sum_that_stands_before_what_it_sums_up_is_none(filled: Place) -> None:
    """Else whoever edits any old entry could say what everybody has spent, and no seal would be looked at."""
    with filled.make().snapshot() as connection:
        number, seal = head(connection)
    forged, time = chain.Closed(number, seal, IDENTITY, 11, 10).entry(NOON), chain.stamp(NOON)
    filled.change(
        "DELETE FROM totals",
        f"UPDATE entries SET kind = 'close', analyst = '', time = '{time}', entry = '{forged}' WHERE id = 1",
    )

    assert "was changed" in await filled.refusal()


@pytest.mark.parametrize("number", [0, -5])
async def test_a_word_before_the_first_entry_is_found(filled: Place, number: int) -> None:
    forged = chain.grant_entry(Grant(NOON, "ada", Decimal(1), "root"), "month:2026-11")
    filled.change(f"INSERT INTO entries VALUES ({number}, 'grant', '{chain.stamp(NOON)}', 'ada', '{forged}', 'x')")

    assert "a grant" in await filled.refusal()


async def test_an_older_ledger_is_seen_by_its_anchor_wherever_its_checkpoints_are(filled: Place) -> None:
    filled.change(
        "DELETE FROM seen WHERE entry > 22",
        "DELETE FROM releases WHERE entry > 22",
        "DELETE FROM entries WHERE id > 22",
    )

    assert "anchor" in await filled.refusal()


async def test_a_ledger_that_was_closed_has_no_checkpoint_until_the_next(filled: Place) -> None:
    async with filled.open() as ledger:
        (before, *_) = await ledger.balances("ada", BUDGETS, NOON)
        await ledger.close_before(NOON + timedelta(hours=1), LATER)
        assert (await ledger.checkpoints.verify(hurries=True)).base > 0
    async with filled.open() as ledger:
        assert (await ledger.balances("ada", BUDGETS, NOON))[0] == before
        for _ in range(4):
            receipt = await ledger.charge(charge_of("ada", "0.01"), BUDGETS)
            await ledger.settle(receipt.charge, [release_of("0.01")])
        assert await checkpoint(ledger) >= 1
    async with filled.open() as ledger:
        assert (await ledger.balances("ada", BUDGETS, NOON))[0].spent == before.spent + Decimal("0.04")
        assert (await ledger.checkpoints.verify(hurries=True)).sum.charges == 15
        with pytest.raises(BudgetSpent):
            await ledger.charge(charge_of("ada", "1.9"), BUDGETS)


async def test_of_two_proxies_one_makes_a_checkpoint_while_the_other_charges(place: Place) -> None:
    async with place.open() as one, place.open() as other:
        await spend(one, 10)
        made = await asyncio.gather(*(ledger.checkpoints.append(NOON) for ledger in (one, other)), spend(other, 3))
        assert True in made[:2]
    async with place.open() as ledger:
        assert (await ledger.checkpoints.verify(hurries=True)).sum.charges == 15
