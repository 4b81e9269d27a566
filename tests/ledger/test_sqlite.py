"""The ledger's file: made once, opened with suspicion, shared by processes, and whole after any death."""

import asyncio
import os
import random
import resource
import shutil
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from proxy.ledger import sqlite
from proxy.ledger.connection import Connection
from proxy.ledger.copies import back_up
from proxy.ledger.integrity import Anchor
from proxy.ledger.sqlite import LedgerFile
from rules.accounting.store import LedgerError
from rules.refusal import AnalystStopped, BudgetSpent
from tests.ledger.charges import BUDGETS, IDENTITY, NOON, charge_of, release_of
from tests.support.ledgers import SqliteLedger
from tests.support.processes import Sender, start


async def spend(path: Path, *, times: int = 1, anchor: Path | None = None) -> None:
    ledger = await SqliteLedger.open(path, IDENTITY, anchor=anchor)
    for _ in range(times):
        receipt = await ledger.charge(charge_of("ada", "0.01"), BUDGETS)
        await ledger.settle(receipt.charge, [release_of("0.01")])
    await ledger.close()


async def open_error(path: Path, *, identity: str = IDENTITY, anchor: Path | None = None) -> str:
    with pytest.raises(LedgerError) as caught:
        await SqliteLedger.open(path, identity, anchor=anchor)
    return str(caught.value)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    SqliteLedger.create(tmp_path / "ledger", IDENTITY)
    return tmp_path / "ledger"


async def test_what_is_charged_is_there_after_a_restart(path: Path) -> None:
    await spend(path, times=3)
    ledger = await SqliteLedger.open(path, IDENTITY)
    ada, *_ = await ledger.balances("ada", BUDGETS, NOON)
    await ledger.close()

    assert ada.spent == Decimal("0.03")


async def test_a_stop_is_there_after_a_restart_and_cannot_be_cut_out(path: Path) -> None:
    ledger = await SqliteLedger.open(path, IDENTITY)
    receipt = await ledger.charge(charge_of("ada", "0.01"), BUDGETS)
    await ledger.fault(receipt.charge, NOON, cause="22", stops=True)
    await ledger.close()
    ledger = await SqliteLedger.open(path, IDENTITY)
    with pytest.raises(AnalystStopped):
        await ledger.charge(charge_of("ada", "0.01"), BUDGETS)
    await ledger.charge(charge_of("bob", "0.01"), BUDGETS)
    await ledger.close()

    edit("UPDATE entries SET kind = 'fault' WHERE kind = 'stop'")(path)
    assert "was changed" in await open_error(path)


async def test_the_file_and_its_companions_are_for_their_owner_alone(path: Path) -> None:
    ledger = await SqliteLedger.open(path, IDENTITY)
    await ledger.charge(charge_of("ada", "0.01"), BUDGETS)

    assert {file.stat().st_mode & 0o777 for file in path.parent.iterdir()} == {0o600}
    await ledger.close()


async def test_a_ledger_is_never_made_over_another(path: Path) -> None:
    await spend(path)
    path.with_name(f"{path.name}-wal").touch()  # as beside a ledger that a proxy uses
    with pytest.raises(LedgerError, match="already exists"):
        SqliteLedger.create(path, IDENTITY)


async def test_what_is_left_of_a_lost_ledger_is_not_written_over(tmp_path: Path) -> None:
    (tmp_path / "ledger-wal").touch()
    with pytest.raises(LedgerError, match="left over from another ledger") as refused:
        SqliteLedger.create(tmp_path / "ledger", IDENTITY)
    assert refused.value.hint == "Stop the proxies that use it, and move that file away."


async def test_a_missing_ledger_is_not_made_anew(tmp_path: Path) -> None:
    assert "missing" in await open_error(tmp_path / "none")
    assert not (tmp_path / "none").exists()


async def test_a_ledger_of_another_database_is_refused(path: Path) -> None:
    assert "another database" in await open_error(path, identity="1/other")


async def test_a_ledger_that_others_may_read_is_refused(path: Path) -> None:
    path.chmod(0o644)
    assert "accessible to other users" in await open_error(path)


async def test_a_folder_is_no_ledger(tmp_path: Path) -> None:
    assert "is not a file" in await open_error(tmp_path)


def edit(statement: str) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        with sqlite3.connect(path) as connection:
            connection.execute(statement)
        connection.close()

    return damage


def overwrite(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[4096:12_288] = os.urandom(8192)
    path.write_bytes(content)


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:5000])


def empty(path: Path) -> None:
    path.write_bytes(b"")


@pytest.mark.parametrize(
    "damage",
    [
        edit("UPDATE entries SET entry = replace(entry, '0.01', '0.00') WHERE id = 3"),
        edit("DELETE FROM entries WHERE id = 1"),
        edit("UPDATE totals SET epsilon = '0'"),
        edit("DELETE FROM totals"),
        edit("INSERT INTO totals VALUES ('dataset', 'month:2999-12', '-100', '0', '0', 1)"),
        edit("INSERT INTO totals VALUES ('analyst:ada', 'month:2026-12', '-100', '0', '0', 1)"),
        edit("CREATE TRIGGER forget AFTER UPDATE ON totals BEGIN UPDATE totals SET epsilon = '0'; END"),
        edit("PRAGMA user_version = 999"),
        edit("PRAGMA application_id = 1"),
        overwrite,
        truncate,
        empty,
    ],
)
async def test_a_changed_or_damaged_ledger_is_refused(path: Path, damage: Callable[[Path], None]) -> None:
    await spend(path, times=20)
    damage(path)

    assert str(path) in await open_error(path)


def indexes(path: Path) -> dict[str, range]:
    """The bytes of each index of a small ledger: the cells of its only page."""
    content = path.read_bytes()
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT name, rootpage FROM sqlite_schema WHERE type = 'index'").fetchall()
    pages = {name: (page - 1) * 4096 for name, page in rows}
    begins = {name: int.from_bytes(content[page + 5 : page + 7]) for name, page in pages.items()}
    return {name: range(page + begins[name], page + 4096) for name, page in pages.items() if begins[name] < 4096}


@pytest.mark.parametrize("seed", range(10))
async def test_a_flipped_bit_of_an_index_is_found_at_opening(path: Path, seed: int) -> None:
    await spend(path, times=20)
    whole, chosen = path.read_bytes(), random.Random(seed)
    cells = indexes(path)
    assert len(cells) >= 8
    for name, places in cells.items():
        content = bytearray(whole)
        content[chosen.choice(places)] ^= 1 << chosen.randrange(8)
        path.write_bytes(content)
        with pytest.raises(LedgerError) as caught:
            await SqliteLedger.open(path, IDENTITY)
        assert caught.value.reason in ("damaged", "cannot_be_used"), name


async def test_a_ledger_whose_indexes_alone_are_damaged_can_be_copied_whole(path: Path) -> None:
    await spend(path, times=20)
    content, places = bytearray(path.read_bytes()), indexes(path)["releases_of_a_block"]
    content[content.index(b"block", places.start)] ^= 1
    path.write_bytes(content)
    assert "is damaged" in await open_error(path)

    back_up(LedgerFile(path, IDENTITY, Anchor(None)), path.with_name("copy"))

    ledger = await SqliteLedger.open(path.with_name("copy"), IDENTITY)
    ada, *_ = await ledger.balances("ada", BUDGETS, NOON)
    await ledger.close()
    assert ada.spent == Decimal("0.2")


async def test_a_flipped_bit_of_an_index_of_a_large_file_is_found_by_verify(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await spend(path, times=20)
    content, places = bytearray(path.read_bytes()), indexes(path)["releases_of_a_block"]
    content[content.index(b"block", places.start)] ^= 1
    path.write_bytes(content)
    monkeypatch.setattr(sqlite, "_SMALL_BYTES", 0)

    ledger = await SqliteLedger.open(path, IDENTITY)
    with pytest.raises(LedgerError, match="is damaged"):
        await ledger.checkpoints.verify(hurries=True)
    await ledger.close()


async def test_a_ledger_put_back_from_an_older_copy_is_seen_by_its_anchor(path: Path) -> None:
    anchor = path.with_name("anchor")
    await spend(path, anchor=anchor)
    shutil.copy(path, path.with_name("copy"))
    await spend(path, times=3, anchor=anchor)
    shutil.copy(path.with_name("copy"), path)

    assert "older than its anchor" in await open_error(path, anchor=anchor)


async def test_a_ledger_that_an_anchor_knows_is_not_made_anew(path: Path) -> None:
    anchor = path.with_name("anchor")
    await spend(path, anchor=anchor)
    path.unlink()
    with pytest.raises(LedgerError, match="new ledger would lose"):
        SqliteLedger.create(path, IDENTITY, anchor=anchor)


async def test_a_damaged_anchor_is_no_anchor(path: Path) -> None:
    path.with_name("anchor").write_text("seven")
    assert "anchor" in await open_error(path, anchor=path.with_name("anchor"))


async def test_an_anchor_that_several_processes_write_never_goes_back(path: Path) -> None:
    anchor = path.with_name("anchor")
    await spend(path, times=2, anchor=anchor)
    noted = anchor.read_text()
    assert noted.startswith("3 ")  # what was kept beside the second charge waits for no disk

    Anchor(anchor).note(1, "0" * 64)  # of a process that was slow

    assert anchor.read_text() == noted
    assert [path.name for path in anchor.parent.iterdir() if path.name.startswith("anchor")] == ["anchor"]


async def test_another_history_of_the_same_length_is_seen_by_the_anchor(path: Path) -> None:
    anchor, other = path.with_name("anchor"), path.with_name("other")
    SqliteLedger.create(other, IDENTITY)
    await spend(path, times=2, anchor=anchor)
    ledger = await SqliteLedger.open(other, IDENTITY)
    for _ in range(4):
        await ledger.charge(charge_of("bob", "0.01"), BUDGETS)
    await ledger.close()

    assert "does not belong to its anchor" in await open_error(other, anchor=anchor)


async def test_of_two_copies_behind_one_anchor_the_second_charges_nothing(path: Path) -> None:
    anchor, copied = path.with_name("anchor"), path.with_name("copied")
    await spend(path, times=2, anchor=anchor)
    shutil.copy(path, copied)
    first, second = [await SqliteLedger.open(each, IDENTITY, anchor=anchor) for each in (path, copied)]

    receipt = await first.charge(charge_of("ada", "0.01"), BUDGETS)
    with pytest.raises(LedgerError) as caught:
        await second.charge(charge_of("bob", "0.01"), BUDGETS)
    assert isinstance(caught.value.__cause__, LedgerError)
    assert caught.value.__cause__.reason == "older_than_anchor"
    await first.settle(receipt.charge, [release_of("0.01")])
    await first.charge(charge_of("ada", "0.01"), BUDGETS)
    await first.close()
    await second.close()
    with sqlite3.connect(copied) as connection:
        assert connection.execute("SELECT count(*) FROM entries WHERE analyst = 'bob'").fetchone() == (0,)
    connection.close()


async def test_a_copy_that_was_longer_when_the_other_charged_is_seen_too(path: Path) -> None:
    anchor, copied = path.with_name("anchor"), path.with_name("copied")
    ledger = await SqliteLedger.open(path, IDENTITY, anchor=anchor)
    receipts = [await ledger.charge(charge_of("ada", "0.01"), BUDGETS) for _ in range(3)]
    await ledger.close()
    shutil.copy(path, copied)
    first, second = [await SqliteLedger.open(each, IDENTITY, anchor=anchor) for each in (path, copied)]
    for receipt in receipts:  # which no anchor notes before the next charge
        await second.settle(receipt.charge, [release_of("0.01")])

    await first.charge(charge_of("ada", "0.01"), BUDGETS)
    with pytest.raises(LedgerError) as caught:
        await second.charge(charge_of("bob", "0.01"), BUDGETS)

    assert isinstance(caught.value.__cause__, LedgerError)
    assert caught.value.__cause__.reason == "other_than_anchor"
    await first.close()
    await second.close()


async def test_processes_that_share_a_ledger_and_its_anchor_go_on_together(path: Path) -> None:
    anchor = path.with_name("anchor")
    ledgers = [await SqliteLedger.open(path, IDENTITY, anchor=anchor) for _ in range(2)]
    for ledger in ledgers * 3:
        receipt = await ledger.charge(charge_of("ada", "0.01"), BUDGETS)
        await ledger.settle(receipt.charge, [release_of("0.01")])
    await ledgers[0].close_before(NOON + timedelta(days=1), NOON + timedelta(days=2))
    await ledgers[0].charge(charge_of("ada", "0.01", time=NOON + timedelta(days=2)), BUDGETS)
    await ledgers[0].close()
    await ledgers[1].close()


async def test_a_file_that_is_replaced_while_open_answers_nothing_more(path: Path) -> None:
    ledger = await SqliteLedger.open(path, IDENTITY)
    shutil.copy(path, path.with_name("copy"))
    path.unlink()
    with pytest.raises(LedgerError) as caught:
        await ledger.charge(charge_of("ada", "0.01"), BUDGETS)
    assert str(path) not in str(caught.value)

    path.with_name("copy").rename(path)
    await ledger.charge(charge_of("ada", "0.01"), BUDGETS)  # it is back, and so are we
    await ledger.close()


async def test_its_version_stays_while_nobody_writes_and_changes_with_every_process_that_does(path: Path) -> None:
    ledger = await SqliteLedger.open(path, IDENTITY)
    other = await SqliteLedger.open(path, IDENTITY)
    await ledger.balances("ada", BUDGETS, NOON)
    seen = [ledger.version()]
    await other.balances("ada", BUDGETS, NOON)
    assert [ledger.version()] == seen != [None]

    receipt = await other.charge(charge_of("ada", "0.01"), BUDGETS)
    seen.append(ledger.version())
    await other.settle(receipt.charge, [release_of("0.01")])
    seen.append(ledger.version())
    await ledger.charge(charge_of("bob", "0.01"), BUDGETS)
    seen.append(ledger.version())
    with sqlite3.connect(path) as editor:
        editor.execute("UPDATE releases SET numbers = '[1]'")
    editor.close()
    seen.append(ledger.version())
    os.utime(path)  # by an editor of bytes
    seen.append(ledger.version())
    shutil.copy(path, path.with_name("copy"))
    path.with_name("copy").rename(path)
    seen.append(ledger.version())
    assert len(set(seen)) == len(seen)

    path.unlink()
    assert ledger.version() is None
    await ledger.close()
    assert ledger.version() is None
    await other.close()


def ask_on_a_full_disk(sender: Sender, path: Path) -> None:
    """Charge and ask for the version, again and again, while no file can grow: each charge opens the ledger anew."""

    async def ask() -> tuple[int, bool]:
        ledger = await SqliteLedger.open(path, IDENTITY)
        _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
        refused, end = 0, time.monotonic() + 3
        while time.monotonic() < end:
            charge = asyncio.create_task(ledger.charge(charge_of("ada", "0.01"), BUDGETS))
            while not charge.done():
                ledger.version()
                await asyncio.sleep(0)
            refused += isinstance(charge.exception(), LedgerError)
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        receipt = await ledger.charge(charge_of("ada", "0.01"), BUDGETS)
        await ledger.close()
        return refused, receipt.charge > 0

    sender.send(asyncio.run(ask()))


@pytest.mark.extended
def test_its_version_is_asked_for_while_a_full_disk_closes_it(path: Path) -> None:
    """SQLite crashes where one thread closes a connection that another one uses."""
    worker = start(ask_on_a_full_disk, path)
    ((refused, is_charged),) = worker.messages()

    assert refused > 10
    assert is_charged
    assert worker.exitcode() == 0


async def test_a_full_disk_refuses_every_charge_and_recovers(path: Path) -> None:
    ledger = await SqliteLedger.open(path, IDENTITY)
    await ledger.charge(charge_of("ada", "0.01"), BUDGETS)
    await ledger._batches.run(lambda connection: connection.execute("PRAGMA max_page_count = 1").fetchone())
    big = [release_of("0.01", block="x" * 100_000)]
    with pytest.raises(LedgerError):
        await ledger.settle(1, big)
    await ledger.charge(charge_of("ada", "0.01"), BUDGETS)  # the connection was opened anew, the limit of pages is gone
    await ledger.close()
    await spend(path)


async def test_charges_that_wait_together_share_one_commit(path: Path) -> None:
    ledger = await SqliteLedger.open(path, IDENTITY)
    commits: list[str] = []

    def note(statement: str) -> None:
        commits.extend([statement] if statement == "COMMIT" else [])

    def trace(connection: Connection) -> None:
        assert isinstance(connection, sqlite3.Connection)
        connection.set_trace_callback(note)

    await ledger._batches.run(trace)

    await asyncio.gather(*(ledger.charge(charge_of("ada", "0.001"), BUDGETS) for _ in range(100)))

    await ledger.close()
    assert len(commits) < 50


async def test_a_charge_waits_for_the_disk_and_what_is_kept_beside_it_does_not(path: Path) -> None:
    ledger = await SqliteLedger.open(path, IDENTITY)
    seen: list[int] = []

    def note(connection: Connection) -> None:
        seen.append(connection.execute("PRAGMA synchronous").fetchone()[0])

    await ledger._batches.run(note)
    await ledger._batches.run(note, durable=False)
    await asyncio.gather(ledger._batches.run(note, durable=False), ledger._batches.run(note))
    await ledger.close()

    assert seen[:2] == [2, 1]  # FULL, NORMAL
    assert seen[3] == 2


def spend_all(sender: Sender, path: Path) -> None:
    """Charge bob until nothing is left, and tell each charge and each answer."""

    async def run() -> None:
        ledger = await SqliteLedger.open(path, IDENTITY)
        for _ in range(200):
            try:
                receipt = await ledger.charge(charge_of("bob", "0.01"), BUDGETS)
            except BudgetSpent:
                break
            sender.send(("charged", receipt.charge))
            await ledger.settle(receipt.charge, [release_of("0.01")])
            sender.send(("answered", receipt.charge))
        await ledger.close()

    asyncio.run(run())


def test_processes_that_share_a_file_never_overspend_together(path: Path) -> None:
    spenders = [start(spend_all, path) for _ in range(4)]
    granted = [charge for spender in spenders for kind, charge in spender.messages() if kind == "charged"]

    assert all(spender.exitcode() == 0 for spender in spenders)
    assert len(granted) == len(set(granted)) == 200  # 2 / 0.01, by all of them together


async def kill_while_spending(path: Path, rounds: int) -> None:
    """Kill a spender at any step, many times: what was answered is charged, and the ledger opens."""
    for number in range(rounds):
        spender = start(spend_all, path)
        told = spender.kill_after(number * 7 % 40)

        with sqlite3.connect(path) as connection:
            charges = connection.execute("SELECT id FROM entries WHERE kind = 'charge'")
            entries = {charge for (charge,) in charges}
        connection.close()
        assert {charge for _, charge in told} <= entries
        await (await SqliteLedger.open(path, IDENTITY)).close()
        if len(entries) == 200:
            path.unlink()
            SqliteLedger.create(path, IDENTITY)


async def test_no_answer_outlives_its_charge_when_the_process_is_killed(path: Path) -> None:
    await kill_while_spending(path, rounds=12)


@pytest.mark.long
async def test_no_answer_outlives_its_charge_in_thousands_of_deaths(path: Path) -> None:
    await kill_while_spending(path, rounds=2000)
