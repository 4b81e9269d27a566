"""kill -9 anywhere between charge and answer: what was answered is charged and kept, and the ledger opens again."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from proxy.stores.sqlite import SqliteLedger
from tests.conftest import RealDatabase

IDENTITY = "1/shop"
ASKER = textwrap.dedent(
    """
    import asyncio, sys
    from pathlib import Path
    from proxy.engine.postgres import PostgresEngine
    from proxy.query.clock import system_clock
    from proxy.query.rulebook import Rulebook
    from proxy.query.service import Service
    from proxy.stores.sqlite import SqliteLedger
    from rules.noise.mechanism import OpenDPNoise
    from tests import shop
    from tests.query.plans import UNITS, HandPlanner, block_of, plan_of

    async def ask(service, session):
        plan = plan_of(block_of(UNITS))
        while True:
            answer = await service.answer(plan, analyst="ada", session=session, timeout_seconds=9, reuse=False)
            print(session, ",".join(answer.columns[1]), flush=True)

    async def main():
        engine = PostgresEngine(sys.argv[1])
        ledger = await SqliteLedger.open(Path(sys.argv[2]), "1/shop")
        rulebook = Rulebook.of(shop.policy(), await engine.catalog(), 0)
        service = Service(rulebook, HandPlanner(), engine, ledger, noise=OpenDPNoise(), clock=system_clock)
        await asyncio.gather(*(ask(service, f"s{number}") for number in range(3)))

    asyncio.run(main())
    """
)


def ask_until_killed(shop: RealDatabase, path: Path, milliseconds: int) -> list[list[str]]:
    """The answers that were given before the kill: session and numbers."""
    command = [sys.executable, "-c", ASKER, shop.reader_dsn, str(path)]
    asker = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2])
    assert asker.stdout is not None
    first = asker.stdout.readline()
    assert first.startswith("s")
    time.sleep(milliseconds / 1000)
    os.kill(asker.pid, signal.SIGKILL)
    said = [first, *asker.communicate()[0].splitlines(keepends=True)]
    return [line.split() for line in said if line.endswith("\n")]


async def kill_while_answering(shop: RealDatabase, path: Path, rounds: int) -> None:
    for number in range(rounds):
        SqliteLedger.create(path, IDENTITY)
        answered = ask_until_killed(shop, path, number * 7 % 60)
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
        assert all([int(text) for text in numbers.split(",")] in kept for _, numbers in answered)
        assert len(kept) <= len(charges)


async def test_no_answer_outlives_its_charge_or_differs_from_what_was_kept(shop: RealDatabase, tmp_path: Path) -> None:
    await kill_while_answering(shop, tmp_path / "ledger", rounds=6)


@pytest.mark.long
async def test_no_answer_outlives_its_charge_in_a_thousand_deaths(shop: RealDatabase, tmp_path: Path) -> None:
    await kill_while_answering(shop, tmp_path / "ledger", rounds=1000)
