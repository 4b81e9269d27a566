"""What is kept beside the entries is under their chain: releases, who has seen them, and sums, in both homes."""

import json
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Protocol

import psycopg
import pytest

from proxy.ledger import stored_releases
from proxy.ledger.connection import SCRIPTS, Connection
from proxy.ledger.ledger import Ledger
from proxy.ledger.postgres import _Connection
from proxy.ledger.sqlite import APPLICATION_ID
from rules.accounting import chain
from rules.accounting.chain import LIFETIME
from rules.accounting.store import LedgerError, ReleaseQuery, ServableReleases, Viewer
from tests.ledger.charges import BUDGETS, IDENTITY, NOON, charge_of, release_of
from tests.support.ledgers import PostgresLedger, SqliteLedger

MONTH = "month:2026-11"


class Home(Protocol):
    """A ledger, and somebody who edits it by hand."""

    def create(self) -> None: ...

    async def open(self) -> Ledger: ...

    def edit(self, *statements: str) -> None: ...

    def fill(self, work: Callable[[Connection], object]) -> None: ...


@dataclass
class File:
    path: Path

    def create(self) -> None:
        SqliteLedger.create(self.path, IDENTITY)

    async def open(self) -> Ledger:
        return await SqliteLedger.open(self.path, IDENTITY, anchor=self.path.with_name("anchor"))

    def edit(self, *statements: str) -> None:
        with sqlite3.connect(self.path) as connection:
            for statement in statements:
                connection.execute(statement)
        connection.close()

    def fill(self, work: Callable[[Connection], object]) -> None:
        self.path.touch(mode=0o600)
        connection = sqlite3.connect(self.path, isolation_level=None)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute("PRAGMA user_version = 1")
        work(connection)
        connection.close()


@dataclass
class Database:
    dsn: str
    anchor: Path

    def create(self) -> None:
        PostgresLedger.create(self.dsn, IDENTITY)

    async def open(self) -> Ledger:
        return await PostgresLedger.open(self.dsn, IDENTITY, anchor=self.anchor)

    def _connect(self) -> psycopg.Connection:
        return psycopg.connect(self.dsn, autocommit=True, options="-c search_path=noisegate_ledger")

    def edit(self, *statements: str) -> None:
        with self._connect() as connection:
            connection.execute("SET session_replication_role = replica")  # as SQLite's shell, it heeds no foreign key
            for statement in statements:
                connection.execute(statement.encode())

    def fill(self, work: Callable[[Connection], object]) -> None:
        with self._connect() as connection:
            connection.execute("CREATE SCHEMA noisegate_ledger")
            work(_Connection(connection))
            connection.execute("INSERT INTO meta VALUES ('version', '1')")


@pytest.fixture(params=["sqlite", "postgres"])
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Home:
    if request.param == "sqlite":
        return File(tmp_path / "ledger")
    return Database(request.getfixturevalue("empty_database")(), tmp_path / "anchor")


@pytest.fixture
def home(empty: Home) -> Iterator[Home]:
    empty.create()
    yield empty


async def spend(home: Home) -> None:
    """Ada has two releases, and bob has seen the first; entries 1 to 5."""
    ledger = await home.open()
    for _ in range(2):
        receipt = await ledger.charge(charge_of("ada", "0.1"), BUDGETS)
        await ledger.settle(receipt.charge, [release_of("0.1")])
    await ledger.charge(charge_of("bob", sights=(1,)), BUDGETS)
    await ledger.close()


async def open_error(home: Home) -> str:
    with pytest.raises(LedgerError) as caught:
        await home.open()
    return str(caught.value)


async def look(ledger: Ledger, analyst: str) -> ServableReleases:
    wanted = ReleaseQuery("block", "count", Decimal("0.1"), None)
    (found,) = await ledger.find_releases([wanted], Viewer(analyst=analyst, budgets=BUDGETS, now=NOON, since=NOON))
    return found


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        ("UPDATE releases SET numbers = '[5,5]' WHERE id = 2", "release 2"),
        ("UPDATE releases SET groups = '[[\"Lyon\"],[null]]' WHERE id = 1", "release 1"),
        ('UPDATE releases SET cost = \'["0.01","0","0.00005"]\' WHERE id = 1', "release 1"),
        ("UPDATE releases SET epsilon = 9 WHERE id = 1", "release 1"),
        ("UPDATE releases SET list = 'x' WHERE id = 1", "release 1"),
        ("UPDATE releases SET block = 'x' WHERE id = 1", "release 1"),
        ("UPDATE releases SET measure = 'x' WHERE id = 1", "release 1"),
        ("UPDATE releases SET time = '2099-01-01T00:00:00.000000+00:00' WHERE id = 1", "release 1"),
        ("UPDATE releases SET charge = 3 WHERE id = 1", "release 1"),
        ("UPDATE releases SET entry = 4 WHERE id = 1", "release 1"),
        ("UPDATE releases SET entry = NULL WHERE id = 1", "release 1"),
        ("DELETE FROM releases WHERE id = 1", "release 1"),
        (
            "INSERT INTO releases SELECT 3, charge, time, block, measure, cost, epsilon, groups, list, numbers, entry"
            " FROM releases WHERE id = 1",
            "release 3",
        ),
        ("DELETE FROM seen WHERE account = 'analyst:bob'", "a record of seen releases"),
        ("DELETE FROM seen WHERE release = 2", "a record of seen releases"),
        (f"INSERT INTO seen VALUES ('analyst:bob', '{MONTH}', 2, 4)", "a record of seen releases"),
        (f"INSERT INTO seen VALUES ('dataset', '{MONTH}', 2, 4)", "a record of seen releases"),
        ("UPDATE seen SET account = 'analyst:eve' WHERE release = 2", "a record of seen releases"),
        ("UPDATE seen SET period = 'month:2026-12' WHERE release = 2", "a record of seen releases"),
        ("UPDATE seen SET entry = 5 WHERE release = 2", "a record of seen releases"),
        ("DELETE FROM totals WHERE period = 'lifetime'", "totals"),
        ("UPDATE totals SET epsilon = '0' WHERE period = 'lifetime'", "totals"),
        ("UPDATE entries SET entry = replace(entry, 'settle', 'settie') WHERE id = 2", "entry 2"),
    ],
)
async def test_a_release_or_sight_that_was_edited_is_refused_at_opening(home: Home, edit: str, said: str) -> None:
    await spend(home)
    home.edit(edit)

    assert said in await open_error(home)


@pytest.mark.parametrize(
    ("edit", "analyst"),
    [
        ("UPDATE releases SET numbers = '[5,5]'", "ada"),
        ("UPDATE releases SET numbers = '[5,5]'", "eve"),
        ("UPDATE releases SET entry = NULL", "ada"),
        ("UPDATE seen SET account = 'analyst:eve' WHERE release = 2", "eve"),
        ("UPDATE seen SET entry = 99 WHERE release = 2", "ada"),
    ],
)
async def test_what_was_edited_in_an_open_ledger_is_not_served(home: Home, edit: str, analyst: str) -> None:
    await spend(home)
    ledger = await home.open()
    await look(ledger, analyst)
    home.edit(edit)

    with pytest.raises(LedgerError, match=r"in the privacy ledger|the privacy ledger shows"):
        await look(ledger, analyst)
    await ledger.close()


async def test_a_sight_that_nobody_paid_for_makes_nothing_free(home: Home) -> None:
    await spend(home)
    ledger = await home.open()
    home.edit(f"INSERT INTO seen VALUES ('analyst:bob', '{MONTH}', 2, 4)")
    with pytest.raises(LedgerError, match="as paid that is not"):
        await ledger.charge(charge_of("bob", sights=(2,)), BUDGETS)
    home.edit("DELETE FROM seen WHERE release = 2", "DELETE FROM releases WHERE id = 2")
    with pytest.raises(LedgerError, match="release is missing"):
        await ledger.charge(charge_of("bob", sights=(2,)), BUDGETS)
    await ledger.close()


async def test_a_ledger_that_is_cut_while_it_is_open_answers_nothing_more(home: Home) -> None:
    """An older copy in its place, without an anchor even: what this process has charged must be there."""
    ledger = await home.open()
    for _ in range(3):
        await ledger.charge(charge_of("ada", "0.1"), BUDGETS)
    home.edit("DELETE FROM entries WHERE id = 3")

    for _ in range(2):
        with pytest.raises(LedgerError, match="has failed"):
            await ledger.charge(charge_of("ada", "0.1"), BUDGETS)
    await ledger.close()


async def test_the_anchor_knows_only_what_no_power_cut_takes_back(home: Home) -> None:
    """What is kept beside a charge waits for no disk. A ledger that has lost it opens, and has lost no charge."""
    ledger = await home.open()
    receipt = await ledger.charge(charge_of("ada", "0.1"), BUDGETS)
    await ledger.settle(receipt.charge, [release_of("0.1")])
    assert (await look(ledger, "ada")).own
    await ledger.close()
    home.edit("DELETE FROM seen", "DELETE FROM releases", "DELETE FROM entries WHERE kind = 'settle'")

    ledger = await home.open()
    assert not (await look(ledger, "ada")).own
    assert (await ledger.balances("ada", BUDGETS, NOON))[0].spent == Decimal("0.1")
    await ledger.close()


def version_1(connection: Connection) -> None:
    """A ledger as version 1 kept it: ada has a release of last month and one that bob has seen; bob failed once."""
    for statement in SCRIPTS[0].split(";"):
        if statement.strip():
            connection.execute(statement)
    connection.execute("INSERT INTO meta VALUES ('identity', ?)", (IDENTITY,))
    october, sight = "month:2026-10", chain.Sight(2, release_of("0.2").mechanism, is_first=False)
    texts = [
        chain.charge_entry(charge_of("ada", "0.1", time=NOON - timedelta(days=31)), october, []),
        chain.charge_entry(charge_of("ada", "0.2"), MONTH, []),
        chain.charge_entry(charge_of("bob", "0.3"), MONTH, [sight]),
        chain.fault_entry(3, "bob", NOON, cause="", stops=False),
    ]
    seal = IDENTITY
    for number, text in enumerate(texts, start=1):
        fields = {name: value for name, value in json.loads(text).items() if name not in ("first", "cause")}
        entry = json.dumps(fields, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        seal = chain.seal(seal, entry)
        row = number, *chain.heading(entry), entry, seal
        connection.execute("INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?)", row)
    for number, epsilon in ((1, "0.1"), (2, "0.2")):
        kept_row = stored_releases._row(number, number, chain.stamp(NOON), release_of(epsilon))
        connection.execute(f"INSERT INTO releases VALUES ({', '.join('?' * 10)})", kept_row)
    for account, period, release in (("ada", october, 1), ("ada", MONTH, 2), ("bob", MONTH, 2)):
        connection.execute("INSERT INTO sights VALUES (?, ?, ?)", (f"analyst:{account}", period, release))


async def test_a_ledger_of_version_1_is_put_under_the_chain(empty: Home) -> None:
    empty.fill(version_1)
    ledger = await empty.open()
    ada, dataset, _ = await ledger.balances("ada", BUDGETS, NOON)
    bob, *_ = await ledger.balances("bob", BUDGETS, NOON)
    own = [[release.id for release in (await look(ledger, analyst)).own] for analyst in ("ada", "bob")]
    await ledger.close()

    assert (ada.spent, ada.lifetime, dataset.spent, bob.spent) == tuple(map(Decimal, ("0.2", "0.3", "0.5", "0.5")))
    assert own == [[2], [2]]
    await (await empty.open()).close()
    empty.edit("UPDATE releases SET numbers = '[5,5]' WHERE id = 1")
    assert "release 1" in await open_error(empty)


async def test_a_ledger_of_version_1_whose_entries_were_edited_stays_as_it_is(empty: Home) -> None:
    empty.fill(version_1)
    empty.edit("UPDATE entries SET entry = replace(entry, '0.3', '0.1') WHERE id = 3")

    assert "entry 3" in await open_error(empty)
    empty.edit("SELECT 1 FROM sights", "SELECT 1 FROM accounts")


async def test_a_program_of_version_1_charges_nothing_in_a_ledger_of_this_one(home: Home) -> None:
    """Its sums would miss what this version keeps: it fails at the tables that it looks for."""
    await spend(home)
    with pytest.raises((sqlite3.Error, psycopg.Error), match="accounts"):
        home.edit("SELECT epsilon, delta, rho, pure FROM accounts")


async def test_what_was_paid_in_all_periods_is_one_of_the_sums(home: Home) -> None:
    ledger = await home.open()
    await ledger.charge(charge_of("ada", "0.1"), BUDGETS)
    await ledger.charge(charge_of("ada", "0.2", time=NOON + timedelta(days=31)), BUDGETS)
    await ledger.close()

    home.edit(f"UPDATE totals SET epsilon = '0.2' WHERE period = '{LIFETIME}' AND account = 'analyst:ada'")
    assert "totals" in await open_error(home)
