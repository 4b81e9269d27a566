"""Rows of a synopsis in a real twin: whoever has not paid for the newest ones reads none of them, by any name."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest

from proxy.engines.postgres.snapshots import PostgresEngine
from proxy.execute.rulebook import Rulebook
from proxy.synopses.make import Maker
from proxy.synopses.shelf import Shelf
from proxy.twin.twin import TwinLimits
from proxy.twin.twins import Twins
from rules.mechanisms.draw import OpenDPNoise
from tests.conftest import RealDatabase
from tests.support import shop as shop_data
from tests.support.ledgers import SqliteLedger
from tests.synopses.stage import RULES, SYNOPSIS

DAILY = RULES + SYNOPSIS.replace("refresh: month", "refresh: day")
"""Of two days of one month bob's budget holds the first, and ada's both."""


@pytest.fixture
async def twins(shop: RealDatabase, tmp_path: Path) -> AsyncIterator[tuple[Twins, Shelf, list[datetime], Rulebook]]:
    policy, engine = shop_data.policy(shop.reader_dsn, DAILY), PostgresEngine(shop.reader_dsn)
    catalog = await engine.catalog()
    SqliteLedger.create(tmp_path / "ledger", "1/shop")
    ledger = await SqliteLedger.open(tmp_path / "ledger", "1/shop")
    twins = await Twins.open(catalog, policy, engine, TwinLimits())
    clock = [datetime(2026, 11, 21, 12, tzinfo=UTC)]
    shelf = Shelf(Maker(engine, ledger, OpenDPNoise(), lambda: clock[-1]), twins, lambda _: None)
    yield twins, shelf, clock, Rulebook.of(policy, catalog, 0)
    await twins.close()
    await engine.close()
    await ledger.close()


@pytest.mark.parametrize(
    "route",
    ["SELECT count(*) FROM customers", "EXECUTE kept", "SELECT count(*) FROM seen", "TABLE explore.customers"],
)
async def test_who_cannot_pay_for_new_rows_reads_none_of_them(
    twins: tuple[Twins, Shelf, list[datetime], Rulebook], route: str
) -> None:
    shown, shelf, clock, rulebook = twins
    await shelf.follow(rulebook)
    with (
        psycopg.connect(shown.of("ada").dsn("ada"), autocommit=True) as ada,
        psycopg.connect(shown.of("bob").dsn("bob"), autocommit=True) as bob,
    ):
        ada.execute("CREATE TEMP VIEW hers AS SELECT * FROM explore.customers")
        bob.execute("SET search_path = explore, public")
        bob.execute("CREATE TEMP VIEW seen AS SELECT * FROM customers")
        bob.execute("PREPARE kept AS SELECT count(*) FROM customers")
        assert bob.execute(route.encode()).fetchone() is not None

        clock.append(clock[-1] + timedelta(days=1))
        await shelf.follow(rulebook)

        with pytest.raises((psycopg.errors.InsufficientPrivilege, psycopg.errors.UndefinedTable)):
            bob.execute(route.encode())
        assert ada.execute("SELECT count(*) > 300 FROM hers").fetchone() == (True,)
