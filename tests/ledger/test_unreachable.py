"""A ledger that does not answer keeps nobody waiting: not an analyst, and not the end of the proxy."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress

import pytest

from proxy.ledger import group_commit
from proxy.ledger.ledger import Ledger
from proxy.twin.embedded import Cluster
from rules.accounting.store import LedgerError
from tests.ledger.charges import BUDGETS, IDENTITY, charge_of
from tests.ledger.frozen import Line, line_to
from tests.support.ledgers import PostgresLedger


@pytest.fixture
def line(real_cluster: Cluster) -> Iterator[Line]:
    with line_to(real_cluster) as line:
        yield line


@pytest.fixture
async def ledger(
    empty_database: Callable[[], str], line: Line, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Ledger]:
    dsn = empty_database()
    PostgresLedger.create(dsn, IDENTITY)
    monkeypatch.setattr(group_commit, "CLOSE_SECONDS", 0.5)
    ledger = await PostgresLedger.open(f"{dsn} host=127.0.0.1 port={line.port}", IDENTITY)
    ledger._batches._patience_seconds = 0.5
    yield ledger
    with suppress(RuntimeError):  # a test has closed it
        await ledger.close()


async def test_a_charge_is_refused_when_the_ledger_does_not_answer_and_made_when_it_does(
    ledger: Ledger, line: Line
) -> None:
    line.freeze()
    began = time.monotonic()
    charges = [asyncio.create_task(ledger.charge(charge_of("ada", "0.01"), BUDGETS)) for _ in range(3)]
    outcomes = await asyncio.gather(*charges, return_exceptions=True)
    assert time.monotonic() - began < 5

    for outcome in outcomes:
        assert isinstance(outcome, LedgerError)
        assert outcome.sqlstate == "57P03"
        assert "charged" in outcome.hint

    line.thaw()
    ledger._batches._patience_seconds = 15
    assert (await ledger.charge(charge_of("ada", "0.01"), BUDGETS)).charge > 0


async def test_a_ledger_that_does_not_answer_is_given_up_on_by_itself_when_all_who_asked_have_left(
    ledger: Ledger, line: Line
) -> None:
    """Statements with a time-out below the ledger's patience: none of them would ever see its end."""
    line.lose()
    for _ in range(3):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(ledger.charge(charge_of("ada", "0.01"), BUDGETS), 0.1)
    await asyncio.sleep(0.5)
    ledger._batches._patience_seconds = 15

    assert (await asyncio.wait_for(ledger.charge(charge_of("ada", "0.01"), BUDGETS), 5)).charge > 0


async def test_a_ledger_that_does_not_answer_can_be_left(ledger: Ledger, line: Line) -> None:
    line.freeze()
    charge = asyncio.create_task(ledger.charge(charge_of("ada", "0.01"), BUDGETS))
    await asyncio.sleep(0.1)
    charge.cancel()
    began = time.monotonic()

    await ledger.close()

    assert time.monotonic() - began < 5


async def test_opening_a_ledger_that_does_not_answer_can_be_broken_off(
    empty_database: Callable[[], str], line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    dsn = empty_database()
    PostgresLedger.create(dsn, IDENTITY)
    monkeypatch.setattr(group_commit, "CLOSE_SECONDS", 0.5)
    line.freeze()
    opening = asyncio.create_task(
        PostgresLedger.open(f"{dsn} host=127.0.0.1 port={line.port} connect_timeout=2", IDENTITY)
    )
    await asyncio.sleep(0.2)
    began = time.monotonic()

    opening.cancel()
    with pytest.raises((asyncio.CancelledError, LedgerError)):
        await opening

    assert time.monotonic() - began < 5
