"""How long single statements take through the proxy and directly, one after the other, as ratios of medians.

python -m tests.bench.latency                # some minutes
python -m tests.bench.latency --times 30 --only "served again"
python -m tests.bench.latency --bars         # the three bars alone, each with what it may be at most

Directly a client proves its password by SCRAM too, so that a connection costs it the same. `own` is the processor time
of the proxy's own process for one statement, its threads included: what the twin, the database and the client take is
not in it, nor what the machine does besides. What is new about a plan is in the difference of the last two fresh lines.
"""

import argparse
import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from decimal import Decimal
from itertools import count
from pathlib import Path
from statistics import median

import psycopg
import uvloop
from psycopg.conninfo import make_conninfo

from proxy.demo.run import HERE
from proxy.engines.postgres.catalog import read_catalog
from proxy.execute.worker_pool import PlannerPool
from proxy.wire.scram import Verifier
from rules.planner.plan import Plan, Request
from rules.policy.load import load_policy
from tests.bench.__main__ import CITIES, SALES, targets
from tests.bench.pgbench import Target, run

ROLE, PASSWORD = "measured", "measured"
Ask = Callable[[int], object]


@dataclass(frozen=True, slots=True)
class Case:
    """What is timed, by the number of the time."""

    name: str
    direct: Ask
    proxied: Ask


def main() -> None:
    """Measure, and print one line for each case."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.latency", description=__doc__.partition("\n")[0])
    parser.add_argument("--times", type=int, default=100, help="that each statement is sent (default: 100)")
    parser.add_argument("--only", default="", help="only cases with this in their name")
    parser.add_argument("--bars", action="store_true", help="measure the three bars, and nothing else")
    given = parser.parse_args()
    if given.bars:
        _measure_bars(given.times)
        return
    print(f"{'':44}{'direct':>12}{'proxy':>12}{'ratio':>8}{'more':>12}{'own':>12}")
    with targets() as (direct, proxied, fresh, process):
        with_password = _with_password(direct)
        with _connections(direct, proxied, fresh) as (plain, through, anew):
            for case in _cases(plain, through, anew, with_password, proxied):
                if given.only in case.name:
                    print(_line(case, given.times, process), flush=True)


def _cases(
    plain: psycopg.Connection, through: psycopg.Connection, anew: psycopg.Connection, direct: Target, proxied: Target
) -> Iterator[Case]:
    def ask(connection: psycopg.Connection, sql: str) -> Ask:
        return lambda number: connection.execute(sql.replace("NUMBER", str(number))).fetchall()

    def connect(target: Target, sql: str) -> Ask:
        def asked(_: int) -> object:
            with psycopg.connect(target.dsn, autocommit=True) as connection:
                return connection.execute(sql).fetchall()

        return asked

    some = "SELECT count(*) FROM customers WHERE id > -1000"
    numbers = count(1001)
    yield Case("relayed: SELECT 1", ask(plain, "SELECT 1"), ask(through, "SELECT 1"))
    yield Case("served again", ask(plain, CITIES), ask(through, CITIES))
    yield Case("served again, four outputs", ask(plain, _MANY), ask(through, _MANY))
    yield Case("connection and SELECT 1", connect(direct, "SELECT 1"), connect(proxied, "SELECT 1"))
    yield Case("connection and an answer served again", connect(direct, CITIES), connect(proxied, CITIES))
    yield Case("fresh answer, 30 rows a unit", ask(plain, SALES), ask(anew, SALES))
    yield Case("fresh answer, one number", ask(plain, some), ask(anew, some))

    def new(connection: psycopg.Connection) -> Ask:
        return lambda _: connection.execute(some.replace("1000", str(next(numbers)))).fetchall()

    yield Case("fresh answer, one number, as a new text", new(plain), new(anew))


_MANY = (
    "SELECT channel, count(*), sum(amount), avg(amount) FROM orders WHERE ordered_at >= '2025-07-01' GROUP BY channel"
)


_CTE = (
    "WITH o AS (SELECT c.city, o.amount, date_trunc('month', o.ordered_at) AS month FROM orders AS o "
    "JOIN customers AS c ON c.id = o.customer_id WHERE o.status IN ('paid', 'sent') AND o.id > -NUMBER) "
    "SELECT city, month, count(*) AS n, avg(amount) FROM o GROUP BY city, month ORDER BY n DESC LIMIT 20"
)
_FILTERED = _MANY.replace(" GROUP BY", " AND id > -NUMBER GROUP BY")
# Each time with another constant; and with another name besides, so that nothing of the statement's shape is known.
PLANNED = {
    "one number": "SELECT count(*) FROM customers WHERE id > -NUMBER",
    "one number, under new names": "SELECT count(*) AS nNUMBER FROM customers WHERE id > -NUMBER",
    "four outputs": _FILTERED,
    "four outputs, under new names": _FILTERED.replace("SELECT", "SELECT 1 AS nNUMBER,"),
    "a CTE over a join": _CTE,
    "a CTE over a join, under new names": _CTE.replace(" AS n,", " AS nNUMBER,").replace(" BY n ", " BY nNUMBER "),
}


def _measure_bars(times: int) -> None:
    with targets() as (direct, proxied, _, process):
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:  # as `serve` does
            planned = runner.run(_planning(direct, times))
        for name, took, own in planned:
            _tell_bar(f"planning of a new statement, {name}", took, "ms", 5)
            _tell_bar(f"planning of a new statement, {name}: processor time", own, "ms", 5)
        with _connections(direct, proxied) as (plain, through):
            for case in _cases(plain, through, through, _with_password(direct), proxied):
                if "served again" in case.name or "connection" in case.name:
                    proxy, directly, own = _times(case, times, process)
                    if "connection" in case.name:
                        _tell_bar(f"{case.name}, of a direct one's", proxy / directly, "times", 2)
                    else:
                        _tell_bar(f"{case.name}: the proxy's own time", own, "ms", 1)
        before = _processor_seconds(process)
        rate = run(proxied, CITIES, 8, 5).per_second
        own = 1000 * (_processor_seconds(process) - before) / (5 * rate)
        _tell_bar(f"served again to 8 clients, {rate:,.0f} a second: own time", own, "ms", 1)


def _tell_bar(name: str, value: float, unit: str, most: float) -> None:
    print(f"{name:68}{value:>9.3f} {unit:6}at most {most:g}: {'kept' if value <= most else 'missed'}", flush=True)


async def _planning(direct: Target, times: int) -> list[tuple[str, float, float]]:
    """Milliseconds to read and plan a text that was never seen, the median, and a worker's processor time for it."""
    rules = (HERE / "rules.yaml").read_text()
    verifier = str(Verifier.of_password("measured", bytes(16)))
    policy = load_policy(rules, "rules.yaml", {"ADA_VERIFIER": verifier, "NOISEGATE_DATABASE": direct.dsn})
    async with await psycopg.AsyncConnection.connect(direct.dsn, autocommit=True) as connection:
        await connection.execute("SET search_path = ''")
        catalog = await read_catalog(connection)
    numbers, found = count(1), []
    async with _pool() as pool:
        await pool.load(policy, catalog)
        (worker,) = pool.processes
        for name, text in PLANNED.items():
            took, before = [], 0.0
            for turn in range(10 + times):
                before = _processor_seconds(worker) if turn == 10 else before
                sql = text.replace("NUMBER", str(next(numbers)))
                began = time.perf_counter()
                (statement,) = (await pool.read(sql, ROLE)).statements
                request = Request(
                    sql,
                    ("pg_catalog", "public"),
                    epsilon=Decimal("0.1"),
                    fingerprint=statement.fingerprint,
                    shape=statement.shape,
                )
                made, _size = await pool.plan(request, ROLE)
                took.append(1000 * (time.perf_counter() - began))
                assert isinstance(made, Plan)
            own = 1000 * (_processor_seconds(worker) - before) / times
            found.append((name, median(took[10:]), own))
    return found


@asynccontextmanager
async def _pool() -> AsyncIterator[PlannerPool]:
    pool = await PlannerPool.start(size=1)
    try:
        yield pool
    finally:
        await pool.close()


def _line(case: Case, times: int, process: int) -> str:
    proxied, direct, own = _times(case, times, process)
    numbers = f"{direct:>9.3f} ms{proxied:>9.3f} ms{proxied / direct:>8.2f}{proxied - direct:>9.3f} ms"
    return f"{case.name:44}{numbers}{own:>9.3f} ms"


def _times(case: Case, times: int, process: int) -> tuple[float, float, float]:
    """In milliseconds: medians through the proxy and directly, and the proxy's own processor time of one statement."""
    for number in range(3):
        case.direct(number), case.proxied(number)
    pairs = []
    own = 0.0
    for number in range(times):
        before = _processor_seconds(process)
        pairs.append((_seconds(case.proxied, number), _seconds(case.direct, number)))
        own += _processor_seconds(process) - before
    proxied, direct = (1000 * median(pair[side] for pair in pairs) for side in (0, 1))
    return proxied, direct, 1000 * own / times


def _seconds(ask: Ask, number: int) -> float:
    began = time.perf_counter()
    ask(number)
    return time.perf_counter() - began


def _processor_seconds(process: int) -> float:
    """That a process has had until now, in its own code and in the kernel's: nanoseconds, by Linux's scheduler."""
    tasks = Path(f"/proc/{process}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


@contextmanager
def _connections(*targets: Target) -> Iterator[list[psycopg.Connection]]:
    connections = [psycopg.connect(target.dsn, options=target.options, autocommit=True) for target in targets]
    try:
        yield connections
    finally:
        for connection in connections:
            connection.close()


def _with_password(direct: Target) -> Target:
    """The same database for a role that has to prove its password."""
    with psycopg.connect(direct.dsn, autocommit=True) as owner:
        owner.execute(f"CREATE ROLE {ROLE} LOGIN PASSWORD '{PASSWORD}' IN ROLE pg_read_all_data")
        (place,) = owner.execute("SHOW hba_file").fetchone() or ("",)
        rules = Path(place)
        rules.write_text(f"host all {ROLE} all scram-sha-256\n{rules.read_text()}")
        owner.execute("SELECT pg_reload_conf()")
    target = make_conninfo(direct.dsn, user=ROLE, password=PASSWORD)
    _wait_for_password(make_conninfo(target, password="wrong"))
    return Target(target)


def _wait_for_password(wrong: str) -> None:
    """Until a wrong one is refused."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            psycopg.connect(wrong).close()
        except psycopg.OperationalError:
            return
        time.sleep(0.05)
    raise RuntimeError("the database asks for no password")


if __name__ == "__main__":
    main()
