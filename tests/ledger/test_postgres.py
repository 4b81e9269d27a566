"""The ledger in PostgreSQL: made once, opened with suspicion, shared by machines."""

import asyncio
import subprocess
import sys
import textwrap
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from proxy.ledger.integrity import Anchor
from proxy.ledger.postgres import LedgerDatabase
from proxy.twin.embedded import Cluster
from rules.accounting.store import LedgerError
from rules.refusal import AnalystStopped
from tests.ledger.charges import BUDGETS, IDENTITY, NOON, charge_of, release_of
from tests.support.ledgers import PostgresLedger


@pytest.fixture
def dsn(empty_database: Callable[[], str]) -> str:
    dsn = empty_database()
    PostgresLedger.create(dsn, IDENTITY)
    return dsn


async def spend(dsn: str, *, times: int = 3, anchor: Path | None = None) -> None:
    ledger = await PostgresLedger.open(dsn, IDENTITY, anchor=anchor)
    for _ in range(times):
        receipt = await ledger.charge(charge_of("ada", "0.01"), BUDGETS)
        await ledger.settle(receipt.charge, [release_of("0.01")])
    await ledger.close()


async def open_error(dsn: str, *, identity: str = IDENTITY, anchor: Path | None = None) -> str:
    with pytest.raises(LedgerError) as caught:
        await PostgresLedger.open(dsn, identity, anchor=anchor)
    return str(caught.value)


async def test_a_ledger_is_never_made_over_another(dsn: str) -> None:
    await spend(dsn)
    with pytest.raises(LedgerError, match="already"):
        PostgresLedger.create(dsn, IDENTITY)


def test_a_ledger_is_only_made_where_every_text_can_be_kept(real_cluster: Cluster) -> None:
    """A charge that cannot be kept takes all others with it that are committed at the same time."""
    with psycopg.connect(real_cluster.dsn(), autocommit=True) as owner:
        owner.execute("CREATE DATABASE latin ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0")
    try:
        with pytest.raises(LedgerError, match="LATIN1, which lacks characters"):
            PostgresLedger.create(real_cluster.dsn("latin"), IDENTITY)
    finally:
        with psycopg.connect(real_cluster.dsn(), autocommit=True) as owner:
            owner.execute("DROP DATABASE latin WITH (FORCE)")


async def test_a_missing_ledger_is_not_made_anew(empty_database: Callable[[], str]) -> None:
    assert "missing" in await open_error(empty_database())


async def test_a_database_that_is_away_is_said_to_be_away() -> None:
    assert "unavailable" in await open_error("host=/nowhere dbname=ledger")


async def test_a_ledger_of_another_database_is_refused(dsn: str) -> None:
    assert "another database" in await open_error(dsn, identity="1/other")


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE entries SET entry = replace(entry, '0.01', '0.00') WHERE id = 3",
        "UPDATE entries SET analyst = 'eve' WHERE id = 2",
        "DELETE FROM entries WHERE id = 2",
        "UPDATE totals SET epsilon = '0'",
        "DELETE FROM totals",
        "UPDATE meta SET value = '999' WHERE name = 'version'",
    ],
)
async def test_a_changed_ledger_is_refused(dsn: str, damage: str) -> None:
    await spend(dsn)
    with psycopg.connect(dsn, autocommit=True, options="-c search_path=noisegate_ledger") as connection:
        connection.execute("ALTER TABLE releases DROP CONSTRAINT releases_charge_fkey")
        connection.execute(damage.encode())

    assert "ledger" in await open_error(dsn)


async def test_entries_that_are_missing_are_seen_by_the_anchor(dsn: str, tmp_path: Path) -> None:
    await spend(dsn, anchor=tmp_path / "anchor")
    with psycopg.connect(dsn, autocommit=True, options="-c search_path=noisegate_ledger") as connection:
        connection.execute("TRUNCATE entries, totals, releases, seen")

    assert "older than its anchor" in await open_error(dsn, anchor=tmp_path / "anchor")


@pytest.mark.extended  # five seconds
async def test_a_proxy_that_vanishes_with_the_ledger_in_hand_has_no_other_refused(dsn: str) -> None:
    """A network that drops packets tells the server nothing: it waits for the next statement of that transaction."""
    ledger = await PostgresLedger.open(dsn, IDENTITY)
    with psycopg.connect(dsn, autocommit=True, options="-c search_path=noisegate_ledger") as vanished:
        for statement in LedgerDatabase(dsn, IDENTITY, Anchor(None)).begin(durable=True):
            vanished.execute(statement.encode())

        receipt = await ledger.charge(charge_of("ada", "0.5"), BUDGETS)

        with pytest.raises(psycopg.errors.IdleInTransactionSessionTimeout):
            vanished.execute("COMMIT")
    assert receipt.charge > 0
    await ledger.close()


async def test_a_lost_connection_is_replaced_and_what_was_charged_is_there(dsn: str) -> None:
    ledger = await PostgresLedger.open(dsn, IDENTITY)
    await ledger.charge(charge_of("ada", "0.5"), BUDGETS)
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    with pytest.raises(LedgerError, match="has failed"):
        await ledger.charge(charge_of("ada", "0.1"), BUDGETS)

    receipt = await ledger.charge(charge_of("ada", "0.1"), BUDGETS)
    await ledger.close()
    assert str(receipt.analyst.spent) == "0.6"


@pytest.mark.parametrize(
    "setting",
    [
        "idle_session_timeout = '100ms'",
        "statement_timeout = '100ms'",
        "transaction_timeout = '100ms'",
        "default_transaction_read_only = on",
        "client_encoding = 'LATIN1'",
    ],
)
async def test_what_the_database_sets_for_its_sessions_stops_no_ledger(dsn: str, setting: str) -> None:
    """A line that stands still is ended by none, nor one that waits for another proxy, and all texts can be kept."""
    with psycopg.connect(dsn, autocommit=True) as owner:
        name, database = setting.split()[0], f'"{owner.info.dbname}"'
        if owner.execute("SELECT FROM pg_settings WHERE name = %s", (name,)).fetchone() is None:
            pytest.skip("this server has no such setting")
        owner.execute(f"ALTER DATABASE {database} SET {setting}".encode())
        try:
            ledger = await PostgresLedger.open(dsn, IDENTITY)
            owner.execute("BEGIN; LOCK TABLE noisegate_ledger.entries IN EXCLUSIVE MODE")
            waiting = asyncio.create_task(ledger.charge(replace(charge_of("ada", "0.1"), shape="€ł"), BUDGETS))
            await asyncio.sleep(0.3)
            owner.execute("COMMIT")
            await waiting
            await asyncio.sleep(0.3)
            await ledger.charge(charge_of("ada", "0.1"), BUDGETS)
            await ledger.close()
            await spend(dsn)
        finally:
            owner.execute("SET default_transaction_read_only = off")
            owner.execute(f"ALTER DATABASE {database} RESET {name}".encode())


async def test_a_stop_holds_for_every_proxy_of_the_ledger_and_is_lifted_for_all(dsn: str) -> None:
    one, other = await PostgresLedger.open(dsn, IDENTITY), await PostgresLedger.open(dsn, IDENTITY)
    receipt = await one.charge(charge_of("ada", "0.01"), BUDGETS)
    running = await other.charge(charge_of("ada", "0.01"), BUDGETS)
    await one.fault(receipt.charge, NOON, cause="22", stops=True)

    with pytest.raises(AnalystStopped):
        await other.charge(charge_of("ada", "0.01"), BUDGETS)
    with pytest.raises(AnalystStopped):
        await other.settle(running.charge, [release_of("0.01")])
    assert await other.forgive("ada", NOON)
    await one.charge(charge_of("ada", "0.01"), BUDGETS)
    await one.close()
    await other.close()
    await spend(dsn)  # the chain holds with both in it


SPENDER = textwrap.dedent(
    """
    import asyncio, sys
    from tests.support.ledgers import PostgresLedger
    from rules.refusal import BudgetSpent
    from tests.ledger.charges import BUDGETS, IDENTITY, charge_of

    async def main():
        ledger = await PostgresLedger.open(sys.argv[1], IDENTITY)
        outcomes = await asyncio.gather(
            *(ledger.charge(charge_of("bob", "0.01"), BUDGETS) for _ in range(120)), return_exceptions=True
        )
        await ledger.close()
        assert all(isinstance(each, BudgetSpent) for each in outcomes if isinstance(each, Exception))
        print(sum(not isinstance(each, Exception) for each in outcomes))

    asyncio.run(main())
    """
)


@pytest.mark.extended
def test_proxies_that_share_a_database_never_overspend_together(dsn: str) -> None:
    command, root = [sys.executable, "-c", SPENDER, dsn], Path(__file__).parents[2]
    spenders = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root) for _ in range(3)]

    assert sum(int(spender.communicate()[0]) for spender in spenders) == 200  # 2 / 0.01, by all of them together
