"""How long a worker takes for a text that was never seen: it is read, planned, and told to the proxy.

python -m tests.bench.planning               # TPC-H's questions, a minute
python -m tests.bench.planning --times 100

A question stands in a new text each time: first with another constant, then under a new name, so that nothing that is
kept by the names is found. `took` is the time from question to answer, both pipes included; `own` is the processor time
of the worker. Questions that ask the database first (NeedsInner) are timed to that point.
"""

import argparse
import asyncio
import time
from collections.abc import Mapping
from decimal import Decimal
from itertools import count
from pathlib import Path
from statistics import median
from typing import NamedTuple

import psycopg
import uvloop

from proxy.demo.run import HERE
from proxy.execute.worker_pool import PlannerPool
from proxy.garbage import look_seldom
from proxy.twin.embedded import Cluster
from proxy.wire.scram import Verifier
from rules.catalog import Catalog
from rules.planner.plan import Request
from rules.policy.load import load_policy
from rules.policy.model import Policy
from rules.refusal import Refusal
from tests.bench.pgbench import Target
from tests.planner import tpch
from tests.support.catalogs import catalog_of

ANALYST = "measured"
_WARM = 10  # times before what is counted
MANY = (
    "SELECT channel, count(*), sum(amount), avg(amount) FROM orders WHERE ordered_at >= '2025-07-01' GROUP BY channel"
)
_FILTERED = MANY.replace(" GROUP BY", " AND id > -NUMBER GROUP BY")
_CTE = (
    "WITH o AS (SELECT c.city, o.amount, date_trunc('month', o.ordered_at) AS month FROM orders AS o "
    "JOIN customers AS c ON c.id = o.customer_id WHERE o.status IN ('paid', 'sent') AND o.id > -NUMBER) "
    "SELECT city, month, count(*) AS n, avg(amount) FROM o GROUP BY city, month ORDER BY n DESC LIMIT 20"
)
DEMO = {  # each time with another constant, and with another name besides
    "one number": "SELECT count(*) FROM customers WHERE id > -NUMBER",
    "one number, under new names": "SELECT count(*) AS nNUMBER FROM customers WHERE id > -NUMBER",
    "four outputs": _FILTERED,
    "four outputs, under new names": _FILTERED.replace("SELECT", "SELECT 1 AS nNUMBER,"),
    "a CTE over a join": _CTE,
    "a CTE over a join, under new names": _CTE.replace(" AS n,", " AS nNUMBER,").replace(" BY n ", " BY nNUMBER "),
}


class Times(NamedTuple):
    """In milliseconds: the median from question to answer, and a worker's processor time for one."""

    took: float
    own: float


def main() -> None:
    """Plan every question, and print a line for each."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.planning", description=__doc__.partition("\n")[0])
    parser.add_argument("--times", type=int, default=30, help="that each question is planned (default: 30)")
    times = parser.parse_args().times
    names = {question.name: question.sql for question in tpch.TPCH}
    policy, catalog = tpch.policy(), _catalog()
    known = measured(policy, catalog, {name: _with(sql, "NUMBER AS n") for name, sql in names.items()}, times)
    new = measured(policy, catalog, {name: _with(sql, "1 AS nNUMBER") for name, sql in names.items()}, times)
    print(f"{'':52}{'another constant':>20}{'another name':>20}")
    print(f"{'':52}{'took':>10}{'own':>10}{'took':>10}{'own':>10}")
    for name, times_known in known.items():
        times_new = new.get(name, Times(float("nan"), float("nan")))
        print(f"{name:52}" + "".join(f"{value:>10.2f}" for value in (*times_known, *times_new)))
    for word, chosen in (("median", median), ("most", max)):
        values = [chosen(each) for of in (known, new) for each in zip(*of.values(), strict=True)]
        print(f"{word:52}" + "".join(f"{value:>10.2f}" for value in values))


def _with(sql: str, output: str) -> str:
    """The question with one output more: whose value, or whose name, is new each time."""
    return sql.replace("SELECT ", f"SELECT {output}, ", 1)


def _catalog() -> Catalog:
    cluster = Cluster.start()
    try:
        with psycopg.connect(cluster.dsn(), autocommit=True) as connection:
            connection.execute("CREATE DATABASE tpch")
        with psycopg.connect(cluster.dsn("tpch"), autocommit=True) as connection:
            connection.execute(tpch.SCHEMA)
        return catalog_of(cluster.dsn("tpch"))
    finally:
        cluster.stop()


def demo_rules(direct: Target) -> Policy:
    """The rules of the demo, for a database that has its tables."""
    verifier = str(Verifier.of_password("measured", bytes(16)))
    environment = {"ADA_VERIFIER": verifier, "NOISEGATE_DATABASE": direct.dsn}
    return load_policy((HERE / "rules.yaml").read_text(), "rules.yaml", environment)


def measured(policy: Policy, catalog: Catalog, texts: Mapping[str, str], times: int) -> dict[str, Times]:
    """Each text with a number of its own in the place of NUMBER; those that are refused are left out."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:  # as `serve` does, and so is `look_seldom`
        return runner.run(_measured(policy, catalog, texts, times))


async def _measured(policy: Policy, catalog: Catalog, texts: Mapping[str, str], times: int) -> dict[str, Times]:
    pool = await PlannerPool.start(size=1)
    try:
        await pool.load(policy, catalog)
        look_seldom()
        numbers, found = count(1), {}
        for name, text in texts.items():
            took, before = [], 0.0
            try:
                for turn in range(_WARM + times):
                    before = processor_seconds(*pool.processes) if turn == _WARM else before
                    began = time.perf_counter()
                    await _plan(pool, text.replace("NUMBER", str(next(numbers))))
                    took.append(1000 * (time.perf_counter() - began))
            except Refusal as refusal:
                print(f"{name:52}{refusal.message}")
                continue
            own = 1000 * (processor_seconds(*pool.processes) - before) / times
            found[name] = Times(median(took[_WARM:]), own)
        return found
    finally:
        await pool.close()


async def _plan(pool: PlannerPool, sql: str) -> None:
    (statement,) = (await pool.read(sql, ANALYST)).statements
    request = Request(
        sql,
        ("pg_catalog", "public"),
        epsilon=Decimal("0.1"),
        fingerprint=statement.fingerprint,
        shape=statement.shape,
    )
    await pool.plan(request, ANALYST)


def processor_seconds(process: int) -> float:
    """That a process has had until now, in its own code and in the kernel's: nanoseconds, by Linux's scheduler."""
    tasks = Path(f"/proc/{process}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


if __name__ == "__main__":
    main()
