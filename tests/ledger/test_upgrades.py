"""Ledgers that released versions left, opened by this one: what was spent is spent, who was stopped is stopped.

Each file in `left_by` was written by the version that it is named after. Ada and bob were charged in October, which was
closed into a sum, before the database got another identity. In November ada and carol, who has a role, were charged and
answered, both others saw what ada had paid for, there was a promise, and bob's last statement failed. Ada came to the
role then, where the version knew what that costs. An operator granted a request, refused another, and left a third.
"""

import sqlite3
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import psycopg
import pytest

from proxy.ledger import copies
from proxy.ledger.connection import SCRIPTS
from proxy.ledger.group_commit import Home
from proxy.ledger.integrity import Anchor
from proxy.ledger.ledger import Ledger
from proxy.ledger.postgres import SCHEMA, LedgerDatabase
from proxy.ledger.sqlite import APPLICATION_ID, LedgerFile
from rules.accounting.accountant import Limit
from rules.accounting.budgets import Budgets
from rules.accounting.store import LedgerError, ReleaseQuery, Viewer
from rules.refusal import AnalystStopped
from tests.ledger.charges import IDENTITY, NOON, charge_of

FOLDER = Path(__file__).parent / "left_by"
VERSIONS = {"0.1.0": Decimal("1.5"), "0.2.0": Decimal("1.75")}  # and what the role has spent
SCHEMA_VERSION = 4  # of both

LIMITS = {name: Limit(Decimal(limit), Decimal("1e-6")) for name, limit in (("ada", 9), ("bob", 8), ("carol", 7))}
BUDGETS = Budgets(
    Limit(Decimal(20), Decimal("1e-6")), LIMITS, "month",
    roles={"research": Limit(Decimal(10), Decimal("1e-6"))}, members={"carol": "research"},
)  # fmt: skip


def statements(version: str) -> list[str]:
    tables = [statement for script in SCRIPTS[:SCHEMA_VERSION] for statement in script.split(";")]
    rows = (FOLDER / f"{version}.sql").read_text(encoding="utf-8").splitlines()[1:]
    return [statement for statement in (*tables, *rows) if statement.strip()]


def fill_file(path: Path, version: str) -> Home:
    path.touch(mode=0o600)
    connection = sqlite3.connect(path, isolation_level=None)
    pragmas = f"PRAGMA application_id = {APPLICATION_ID}", f"PRAGMA user_version = {SCHEMA_VERSION}"
    for statement in (*pragmas, *statements(version)):
        connection.execute(statement)
    connection.close()
    return LedgerFile(path, IDENTITY, Anchor(path.with_suffix(".anchor")))


def fill_database(dsn: str, anchor: Path, version: str) -> Home:
    with psycopg.connect(dsn) as connection:
        connection.execute(f"CREATE SCHEMA {SCHEMA}".encode())
        connection.execute(f"SET search_path = {SCHEMA}".encode())
        for statement in (*statements(version), f"INSERT INTO meta VALUES ('version', '{SCHEMA_VERSION}')"):
            connection.execute(statement.encode())
    return LedgerDatabase(dsn, IDENTITY, Anchor(anchor))


@pytest.fixture(params=VERSIONS)
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=["sqlite", "postgres"])
def home(request: pytest.FixtureRequest, version: str, tmp_path: Path) -> Home:
    if request.param == "sqlite":
        return fill_file(tmp_path / "ledger", version)
    empty_database: Callable[[], str] = request.getfixturevalue("empty_database")
    return fill_database(empty_database(), tmp_path / "anchor", version)


async def spent(ledger: Ledger, analyst: str) -> list[tuple[Decimal, Decimal] | None]:
    """Of the analyst, of all and of the role: in November, and ever."""
    balances = await ledger.balances(analyst, BUDGETS, NOON)
    return [None if balance is None else (balance.spent, balance.lifetime) for balance in balances]


async def test_all_that_was_spent_is_spent(home: Home, version: str) -> None:
    ledger = await Ledger.at(home)
    of_all, of_role = (Decimal("1.875"), Decimal("3.375")), (VERSIONS[version], VERSIONS[version])

    assert await spent(ledger, "ada") == [(Decimal("1.25"), Decimal("2.25")), of_all, None]
    assert await spent(ledger, "bob") == [(Decimal("1.125"), Decimal("1.625")), of_all, None]
    assert await spent(ledger, "carol") == [(Decimal("1.5"), Decimal("1.5")), of_all, of_role]
    await ledger.close()


async def test_what_was_said_is_in_force(home: Home, version: str) -> None:
    """Bob is stopped, ada has what was granted, a request is open, and the column has the range of the look."""
    ledger = await Ledger.at(home)
    with pytest.raises(AnalystStopped):
        await ledger.charge(charge_of("bob", "0.1"), BUDGETS)
    (ada, *_), (kept,) = await ledger.balances("ada", BUDGETS, NOON), await ledger.bounds()
    requests = [(request.analyst, request.state) for request in await ledger.requests(BUDGETS, NOON)]
    promise = await ledger.find_promise("ada", "question", BUDGETS, NOON)
    await ledger.close()

    assert ada.limit == Decimal("9.5")
    assert (kept.table, kept.column, kept.lower, kept.upper) == ("public.orders", "amount", "0", "16")
    assert requests == [("ada", "lapsed"), ("ada", "granted"), ("bob", "refused"), ("carol", "open")]
    assert (promise is None) == (version == "0.1.0")  # which did not write whose account had paid for the probe


async def test_what_was_answered_costs_nobody_twice_who_asks_for_the_same(home: Home) -> None:
    ledger = await Ledger.at(home)
    query = ReleaseQuery("block", "count within 1", Decimal(1), None)
    for analyst in ("ada", "bob", "carol"):
        (found,) = await ledger.find_releases(
            [query], Viewer(analyst=analyst, budgets=BUDGETS, now=NOON, since=NOON - timedelta(hours=1))
        )
        assert [(kept.id, kept.release.values) for kept in found.own] == [(2, (2**61, -7))]
    await ledger.close()


async def test_it_goes_on_and_every_entry_is_verified(home: Home, tmp_path: Path) -> None:
    ledger = await Ledger.at(home)
    await ledger.charge(charge_of("ada", "0.5", time=NOON + timedelta(hours=1)), BUDGETS)
    await ledger.checkpoints.verify(hurries=True)
    await ledger.close_before(NOON + timedelta(minutes=30), NOON + timedelta(hours=2))
    await ledger.close()

    copies.back_up(home, tmp_path / "copy")
    again = await Ledger.at(LedgerFile(tmp_path / "copy", IDENTITY, Anchor(None)))
    assert (await spent(again, "ada"))[0] == (Decimal("1.75"), Decimal("2.75"))
    assert [stop.analyst for stop in await again.stops()] == ["bob"]
    await again.close()


async def test_an_older_program_says_that_it_is_one(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("sqlite", "postgres"):
        monkeypatch.setattr(f"proxy.ledger.{module}.VERSION", SCHEMA_VERSION - 1)
    with pytest.raises(LedgerError, match="newer than version 3 of this program") as refused:
        await Ledger.at(home)

    assert "A newer Noisegate has opened it" in refused.value.hint
