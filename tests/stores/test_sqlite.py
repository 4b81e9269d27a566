"""The ledger's file: made once, opened with suspicion, shared by processes, and whole after any death."""

import asyncio
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest

from proxy.stores.connection import Connection
from proxy.stores.history import Anchor
from proxy.stores.sqlite import SqliteLedger
from rules.ledger.store import LedgerError
from tests.stores.charges import BUDGETS, IDENTITY, NOON, charge_of, release_of


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
    ada, _ = await ledger.balances("ada", BUDGETS, NOON)
    await ledger.close()

    assert ada.spent == Decimal("0.03")


async def test_the_file_and_its_companions_are_for_their_owner_alone(path: Path) -> None:
    ledger = await SqliteLedger.open(path, IDENTITY)
    await ledger.charge(charge_of("ada", "0.01"), BUDGETS)

    assert {file.stat().st_mode & 0o777 for file in path.parent.iterdir()} == {0o600}
    await ledger.close()


async def test_a_ledger_is_never_made_over_another(path: Path) -> None:
    await spend(path)
    with pytest.raises(LedgerError, match="exists already"):
        SqliteLedger.create(path, IDENTITY)


async def test_what_is_left_of_a_lost_ledger_is_not_written_over(tmp_path: Path) -> None:
    (tmp_path / "ledger-wal").touch()
    with pytest.raises(LedgerError, match="left of another ledger"):
        SqliteLedger.create(tmp_path / "ledger", IDENTITY)


async def test_a_missing_ledger_is_not_made_anew(tmp_path: Path) -> None:
    assert "missing" in await open_error(tmp_path / "none")
    assert not (tmp_path / "none").exists()


async def test_a_ledger_of_another_database_is_refused(path: Path) -> None:
    assert "another database" in await open_error(path, identity="1/other")


async def test_a_ledger_that_others_may_read_is_refused(path: Path) -> None:
    path.chmod(0o644)
    assert "open to others" in await open_error(path)


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
    with pytest.raises(LedgerError, match="would forget"):
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
    assert [each.name for each in anchor.parent.iterdir() if each.name.startswith("anchor")] == ["anchor"]


async def test_another_history_of_the_same_length_is_seen_by_the_anchor(path: Path) -> None:
    anchor, other = path.with_name("anchor"), path.with_name("other")
    SqliteLedger.create(other, IDENTITY)
    await spend(path, times=2, anchor=anchor)
    ledger = await SqliteLedger.open(other, IDENTITY)
    for _ in range(4):
        await ledger.charge(charge_of("bob", "0.01"), BUDGETS)
    await ledger.close()

    assert "not the one that its anchor" in await open_error(other, anchor=anchor)


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


SPENDER = textwrap.dedent(
    """
    import asyncio, sys
    from pathlib import Path
    from proxy.stores.sqlite import SqliteLedger
    from rules.refusal import BudgetSpent
    from tests.stores.charges import BUDGETS, IDENTITY, charge_of, release_of

    async def main():
        ledger = await SqliteLedger.open(Path(sys.argv[1]), IDENTITY)
        granted = 0
        for _ in range(200):
            try:
                receipt = await ledger.charge(charge_of("bob", "0.01"), BUDGETS)
            except BudgetSpent:
                break
            granted += 1
            print("charged", receipt.charge, flush=True)
            await ledger.settle(receipt.charge, [release_of("0.01")])
            print("answered", receipt.charge, flush=True)
        await ledger.close()

    asyncio.run(main())
    """
)


def start_spender(path: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", SPENDER, str(path)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2])


def test_processes_that_share_a_file_never_overspend_together(path: Path) -> None:
    spenders = [start_spender(path) for _ in range(4)]
    granted = [line for spender in spenders for line in spender.communicate()[0].splitlines() if "charged" in line]

    assert all(spender.returncode == 0 for spender in spenders)
    assert len(granted) == len(set(granted)) == 200  # 2 / 0.01, by all of them together


async def kill_while_spending(path: Path, rounds: int) -> None:
    """Kill a spender at any step, many times: what was answered is charged, and the ledger opens."""
    for round_number in range(rounds):
        spender = start_spender(path)
        assert spender.stdout is not None
        first = spender.stdout.readline()
        assert first.startswith("charged")
        time.sleep((round_number * 7 % 40) / 1000)
        os.kill(spender.pid, signal.SIGKILL)
        said = [first, *spender.communicate()[0].splitlines(keepends=True)]
        whole = [line.split() for line in said if line.endswith("\n")]

        with sqlite3.connect(path) as connection:
            charges = connection.execute("SELECT id FROM entries WHERE kind = 'charge'")
            entries = {number for (number,) in charges}
        connection.close()
        assert {int(number) for _, number in whole} <= entries
        await (await SqliteLedger.open(path, IDENTITY)).close()
        if len(entries) == 200:
            path.unlink()
            SqliteLedger.create(path, IDENTITY)


async def test_no_answer_outlives_its_charge_when_the_process_is_killed(path: Path) -> None:
    await kill_while_spending(path, rounds=12)


@pytest.mark.long
async def test_no_answer_outlives_its_charge_in_thousands_of_deaths(path: Path) -> None:
    await kill_while_spending(path, rounds=2000)
