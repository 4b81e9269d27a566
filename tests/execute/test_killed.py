"""kill -9 anywhere between charge and answer: what was answered is charged and kept, and the ledger opens again."""

import asyncio
import json
import sqlite3
from pathlib import Path

import pytest

from proxy.engines.postgres.snapshots import PostgresEngine
from proxy.execute.clock import system_clock
from proxy.execute.rulebook import Rulebook
from proxy.execute.service import Service
from rules.mechanisms.draw import OpenDPNoise
from tests.conftest import RealDatabase
from tests.execute.plans import UNITS, HandPlanner, block_of, plan_of
from tests.support import shop as shop_data
from tests.support.ledgers import SqliteLedger
from tests.support.processes import Sender, start
from tests.support.written import with_written

IDENTITY = "1/shop"


def answer_for_ever(sender: Sender, dsn: str, path: Path) -> None:
    """Ask in three sessions at once, and tell each answer: its session and its numbers."""

    async def ask(service: Service, session: str) -> None:
        plan = plan_of(block_of(UNITS))
        while True:
            answer = await service.answer(plan, analyst="ada", session=session, timeout_seconds=9, reuse=False)
            sender.send((session, list(answer.columns[1])))

    async def run() -> None:
        engine = PostgresEngine(dsn)
        ledger = await SqliteLedger.open(path, IDENTITY)
        rulebook = with_written(Rulebook.of(shop_data.policy(), await engine.catalog(), 0))
        service = Service(rulebook, HandPlanner(), engine, ledger, noise=OpenDPNoise(), clock=system_clock)
        await asyncio.gather(*(ask(service, f"s{number}") for number in range(3)))

    asyncio.run(run())


async def kill_while_answering(shop: RealDatabase, path: Path, rounds: int) -> None:
    for number in range(rounds):
        SqliteLedger.create(path, IDENTITY)
        answered = start(answer_for_ever, shop.reader_dsn, path).kill_after(number * 7 % 60)
        with sqlite3.connect(path) as connection:
            entries = connection.execute("SELECT entry FROM entries WHERE kind = 'charge'")
            charges = [json.loads(entry) for (entry,) in entries]
            kept = [json.loads(numbers) for (numbers,) in connection.execute("SELECT numbers FROM releases")]
        connection.close()
        await (await SqliteLedger.open(path, IDENTITY)).close()
        path.unlink()

        for session in {session for session, _ in answered}:
            given = sum(asker == session for asker, _ in answered)
            assert given <= sum(charge["session"] == session for charge in charges)
        assert all([int(text) for text in numbers] in kept for _, numbers in answered)
        assert len(kept) <= len(charges)


@pytest.mark.extended
async def test_no_answer_outlives_its_charge_or_differs_from_what_was_kept(shop: RealDatabase, tmp_path: Path) -> None:
    await kill_while_answering(shop, tmp_path / "ledger", rounds=6)


@pytest.mark.long
async def test_no_answer_outlives_its_charge_in_a_thousand_deaths(shop: RealDatabase, tmp_path: Path) -> None:
    await kill_while_answering(shop, tmp_path / "ledger", rounds=1000)
