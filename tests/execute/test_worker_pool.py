"""The planner's workers die for the proxy: whatever a text does to them, the next one is answered."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import suppress
from decimal import Decimal
from pathlib import Path

import pytest
import pytest_asyncio

from proxy.execute import worker_pool
from proxy.execute.worker_pool import PlannerPool
from proxy.execute.worker_process import Worker
from rules.catalog import Catalog
from rules.planner.plan import Plan, Request
from rules.refusal import NotSupported, Refusal, TooComplex, Unavailable
from rules.sql.statement import Kind
from tests.policy.test_check import CATALOG, policy
from tests.support import shop as shop_data
from tests.support.waiting import until

pytestmark = pytest.mark.slow  # starts processes

NESTED_ARRAYS = "SELECT " + "ARRAY[" * 60 + "1" + "]" * 60
SUM = "SELECT " + "+".join(["1"] * 400)
LONG_SUM = "SELECT " + "+".join(["1"] * 1_900)
DEEP = "SELECT " + "(" * 60 + "1" + ")" * 60


@pytest_asyncio.fixture(scope="module")
async def pool() -> AsyncIterator[PlannerPool]:
    """One for all tests: whatever one of them does to its workers, the next one finds it at work."""
    made = await PlannerPool.start(size=2, seconds=5)
    yield made
    await made.close()


@pytest_asyncio.fixture(scope="module")
async def patient_pool() -> AsyncIterator[PlannerPool]:
    """One whose only worker no test ends."""
    made = await PlannerPool.start(size=1, seconds=20)
    await made.load(policy(), CATALOG)
    yield made
    await made.close()


async def both_at_work(pool: PlannerPool, when: str) -> None:
    """Wait for workers that another test has killed: to start one takes longer than to read."""
    await asyncio.gather(*(pool.read(f"SELECT '{name}', '{when}'", name) for name in ("ada", "bob")))


async def test_a_text_is_read_in_a_worker_and_remembered(pool: PlannerPool) -> None:
    reading = await pool.read("BEGIN; SELECT 1 FROM orders", "ada")

    assert [statement.kind for statement in reading.statements] == [Kind.TRANSACTION, Kind.QUERY]
    assert await pool.read("BEGIN; SELECT 1 FROM orders", "ada") is reading


@pytest.mark.parametrize(
    "text", [NESTED_ARRAYS, LONG_SUM, DEEP, "SELECT '" + "\\'" * 20_000, "(" * 64, "SELECT 1e999999999"]
)
async def test_a_text_that_strains_the_parsers_leaves_the_pool_at_work(pool: PlannerPool, text: str) -> None:
    try:
        await pool.read(text, "ada")
    except Refusal as refusal:
        assert refusal.sqlstate == "54001"

    assert len((await pool.read("SELECT 2", "ada")).statements) == 1


async def test_a_text_beyond_the_limits_never_reaches_a_worker(pool: PlannerPool) -> None:
    with pytest.raises(TooComplex):
        await pool.read("SELECT " + "+".join(["1"] * 100_000), "ada")


@pytest.mark.skipif(not Path("/proc/self/oom_score_adj").exists(), reason="Linux alone says who goes first")
async def test_when_memory_runs_out_a_worker_goes_before_the_proxy(pool: PlannerPool) -> None:
    await pool.read("SELECT 1", "ada")

    for process in pool.processes:
        assert Path(f"/proc/{process}/oom_score_adj").read_text() == "1000\n"


async def test_a_text_is_planned_by_the_worker_that_read_it() -> None:
    pool = await PlannerPool.start(size=2)
    await pool.load(policy(), CATALOG)

    for number in range(4):
        text = f"SELECT count(*) + {number} FROM customers"
        await pool.read(text, "ada")
        await pool.plan(Request(text, ("public",), epsilon=Decimal("0.1")), "ada")

    assert [place.generation for place in pool._places].count(1) == 1
    await pool.close()


async def test_a_worker_is_told_nothing_that_lets_it_in_anywhere() -> None:
    pool = PlannerPool(size=1, seconds=5)
    reader = "public_reader: host=there user=reader password=of-the-reader"
    rules = shop_data.policy("dbname=shop password=of-the-shop", f"{reader}\n{shop_data.RULES}")
    verifiers = [text for analyst in rules.analysts.values() for text in analyst.password or ()]

    await pool.load(rules, Catalog("shop", 180000, "", "UTF8", ()))

    secrets = [rules.database, rules.public_reader, *verifiers]
    assert len(secrets) == 4
    assert not [secret for secret in secrets if str(secret).encode() in (pool._rules or b"")]


TOO_DEEP = {
    "a sum of answers": f"SELECT {'+'.join(['count(*)'] * 250)} FROM orders",
    "a difference of rows": f"SELECT count(*) FROM orders WHERE id{' - id' * 460} = 1",
    "a longer one": f"SELECT count(*) FROM orders WHERE id{' - id' * 1_900} = 1",
    "NOT": f"SELECT count(*) FROM orders WHERE {'NOT ' * 3_900}(id = 1)",
    "NOT of an answer": f"SELECT {'NOT ' * 3_900}(count(*) > 1) FROM orders",
    "signs": f"SELECT count(*) FROM orders WHERE id = {'- ' * 3_900}id",
    "tests for NULL": f"SELECT count(*) FROM orders WHERE id{' IS NULL' * 1_900}",
    "casts": f"SELECT count(*) FROM orders WHERE id{'::bigint' * 1_300} = 1",
    "UNION": f"SELECT count(*) FROM orders{' EXCEPT SELECT 1' * 1_200}",
}


@pytest.mark.parametrize("text", TOO_DEEP.values(), ids=TOO_DEEP)
async def test_a_statement_that_is_too_deep_is_too_complex_and_its_worker_goes_on(
    patient_pool: PlannerPool, text: str
) -> None:
    request = Request(text, ("public",), epsilon=Decimal(1))
    before = patient_pool.processes

    with pytest.raises(TooComplex, match=r"too complex|within each other|nested too deeply"):
        await patient_pool.plan(request, "ada")

    assert patient_pool.processes == before


ONCE_FATAL = {
    "a path that is no constant": "SELECT * FROM JSON_TABLE('[1]', '$[*]' COLUMNS (a int PATH '$')), customers LIMIT 0",
    "a sample of a query": "SELECT id FROM customers TABLESAMPLE SYSTEM (1) LIMIT 0",
    "a lock of a query": "SELECT id FROM customers LIMIT 0 FOR UPDATE OF customers",
}


@pytest.mark.parametrize("text", ONCE_FATAL.values(), ids=ONCE_FATAL)
async def test_what_the_printer_cannot_print_ends_no_worker(patient_pool: PlannerPool, text: str) -> None:
    before = patient_pool.processes

    with suppress(NotSupported):
        await patient_pool.read(text, "ada")
        await patient_pool.plan(Request(text, ("public",), epsilon=Decimal(1)), "ada")

    assert patient_pool.processes == before


async def test_a_worker_has_read_all_modules_that_the_error_of_a_mean_needs(patient_pool: PlannerPool) -> None:
    sql = "EXPLAIN SELECT status, count(*), avg(amount) FROM orders GROUP BY status"

    planned, _ = await patient_pool.plan(Request(sql, ("public",), epsilon=Decimal(1)), "ada")

    assert isinstance(planned, Plan) and planned.outer


async def test_a_killed_worker_is_replaced(pool: PlannerPool) -> None:
    for worker in pool.workers:
        worker.kill()

    for number in range(4):
        try:
            await pool.read(f"SELECT {number}", "ada")
        except TooComplex:
            continue

    assert len((await pool.read("SELECT 99", "ada")).statements) == 1


@pytest.mark.parametrize("command", ["/nowhere", "true", pytest.param("sleep 60", marks=pytest.mark.extended)])
async def test_a_worker_that_cannot_be_started_is_no_fault_of_the_statement(
    monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    pool, start = PlannerPool(size=1, seconds=5), Worker.start
    with monkeypatch.context() as patches:
        patches.setattr(worker_pool, "START_SECONDS", 0.5)
        patches.setattr(Worker, "start", lambda: start(*command.split()))
        for _ in range(2):
            with pytest.raises(Unavailable, match="the planner cannot be started"):
                await pool.read("SELECT 1", "ada")

    assert len((await pool.read("SELECT 1", "ada")).statements) == 1
    await until(lambda: pool.busy == 0)
    await pool.close()


async def test_a_caller_who_goes_away_leaves_no_answer_for_the_next(pool: PlannerPool) -> None:
    for number in range(20):
        task = asyncio.create_task(pool.read(f"SELECT {number} AS a", "ada"))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    readings = await asyncio.gather(*(pool.read(f"SELECT {number} AS b", "ada") for number in range(20)))

    assert [reading.statements[0].text for reading in readings] == [f"SELECT {number} AS b" for number in range(20)]


async def test_a_caller_who_goes_away_ends_no_worker(pool: PlannerPool) -> None:
    await both_at_work(pool, "before one is left")
    before = set(pool.processes)
    for process in before:
        os.kill(process, signal.SIGSTOP)  # no answer comes before they leave
    tasks = [asyncio.create_task(pool.read(f"SELECT 4, {number}", "ada")) for number in range(4)]
    await until(lambda: pool.busy == 1 and pool.waiting == 3)
    for task in tasks:
        task.cancel()

    ends = await asyncio.gather(*tasks, return_exceptions=True)
    for process in before:
        os.kill(process, signal.SIGCONT)

    assert [type(end) for end in ends] == [asyncio.CancelledError] * 4
    await until(lambda: pool.waiting == 0)  # who had no turn yet gave it up
    assert len((await pool.read("SELECT 'next'", "ada")).statements) == 1
    assert set(pool.processes) == before


@pytest.mark.extended
async def test_who_kills_workers_keeps_nobody_waiting_who_can_have_another(pool: PlannerPool) -> None:
    await both_at_work(pool, "before some are killed")
    for number in range(3):
        task = asyncio.create_task(pool.read(f"{LONG_SUM} + {number}", "ada"))
        await asyncio.sleep(0.005)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        workers = pool.workers

        for again in range(2):
            await pool.read(f"SELECT 'bob {number}, {again}'", "bob")

        assert pool.workers == workers  # none had to be started for him
        await asyncio.gather(*(pool.read(f"SELECT {number}, '{name}'", name) for name in ("ada", "bob")))


async def test_a_closed_pool_starts_no_worker_for_those_who_wait() -> None:
    pool = await PlannerPool.start(size=1)
    (process,) = pool.processes
    os.kill(process, signal.SIGSTOP)
    asking = [asyncio.create_task(pool.read(f"SELECT '{name}'", name)) for name in ("ada", "bob")]
    await until(lambda: pool.busy == 1 and pool.waiting == 1)

    await pool.close()

    ends = await asyncio.gather(*asking, return_exceptions=True)
    assert [type(end) for end in ends] == [TooComplex, Unavailable]
    assert (pool.processes, pool.busy, pool.waiting) == ((), 0, 0)


async def test_who_asks_for_much_keeps_nobody_else_waiting(pool: PlannerPool) -> None:
    await both_at_work(pool, "before the flood")
    flood = [asyncio.create_task(pool.read(f"{SUM} + {number}", "ada")) for number in range(30)]
    await asyncio.sleep(0)

    await pool.read("SELECT 'bob'", "bob")

    assert sum(task.done() for task in flood) < 15
    await asyncio.gather(*flood)


async def test_workers_know_no_secret_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """A text that takes one over would find the way into the real database there."""
    monkeypatch.setenv("NOISEGATE_DATABASE", "postgresql://reader:secret@real/shop")
    monkeypatch.setenv("PGPASSWORD", "secret")
    pool = await PlannerPool.start(size=1)
    try:
        (process,) = pool.processes
        assert b"secret" not in Path(f"/proc/{process}/environ").read_bytes()
    finally:
        await pool.close()
