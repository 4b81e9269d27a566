"""What bounding costs: TPC-H's questions as PostgreSQL runs them, and the inner statements that are run in their place.

python -m tests.bench.inner                       # some minutes
python -m tests.bench.inner --scale 1 --pairs 5   # six million lines
python -m tests.bench.inner --scale 0.01 --pairs 1 --questions Q1,Q9

Prints, for each question, the seconds of the plain query, those of all inner statements of its plan, and the median of
the ratios of pairs that run one after the other. A question that takes too long is told, and has no ratio.
"""

import argparse
import os
import re
from statistics import median
from time import perf_counter

import psycopg

from proxy.twin.embedded import Cluster
from rules.mechanisms.release_plan import Choice
from rules.planner.plan import Plan
from rules.refusal import Refusal
from tests.planner import tpch
from tests.properties.planning import PINNED, Lab
from tests.support.catalogs import catalog_of

# At scale 1 as many rows as TPC-H has: 150,000 customers, ten orders each, four lines an order.
_CUSTOMERS = 150_000
_LARGER = {
    "generate_series(1, c * 37 % 9)": "generate_series(1, c * 37 % 21)",
    "generate_series(1, 1 + o_orderkey % 5)": "generate_series(1, 1 + o_orderkey % 7)",
    "(c * 7919 + n * 104729) % 1000003": "((c::bigint * 7919 + n * 104729) % 1000003)::integer",
    "(o_orderkey * 7919 + n * 104729) % 1000003": "((o_orderkey::bigint * 7919 + n * 104729) % 1000003)::integer",
}


def main() -> None:
    """Make the tables, run every question both ways, and print a line for each."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.inner", description=__doc__.partition("\n")[0])
    parser.add_argument("--scale", type=float, default=0.1, help="of TPC-H: 1 is six million lines (default: 0.1)")
    parser.add_argument("--seconds", type=int, default=120, help="that a statement may take (default: 120)")
    parser.add_argument("--pairs", type=int, default=3, help="plain and inner, one after the other (default: 3)")
    parser.add_argument("--questions", help="the only ones that are asked, as Q1,Q9")
    given = parser.parse_args()
    wanted = given.questions and given.questions.split(",")
    asked = [question for question in tpch.TPCH if not wanted or re.split("[ ,]", question.name)[0] in wanted]
    cluster = Cluster.start()
    try:
        with psycopg.connect(cluster.dsn(), autocommit=True) as connection:
            connection.execute("CREATE DATABASE tpch")
        with psycopg.connect(cluster.dsn("tpch"), autocommit=True) as connection:
            connection.execute(f"{tpch.SCHEMA}{_data(given.scale)}; CREATE INDEX ON orders (o_custkey)")
            connection.execute("VACUUM ANALYZE")
            connection.execute(f"{PINNED}; SET statement_timeout = '{given.seconds}s'")
            lab = Lab(connection, catalog_of(cluster.dsn("tpch")))
            print(f"scale {given.scale:g}, {os.cpu_count()} cores")
            _report([_measured(lab, question, given.pairs) for question in asked])
    finally:
        cluster.stop()


def _data(scale: float) -> str:
    data = tpch.DATA.replace("generate_series(1, 300)", f"generate_series(1, {round(_CUSTOMERS * scale)})")
    for small, large in _LARGER.items():
        data = data.replace(small, large)
    return data


def _measured(lab: Lab, question: tpch.Question, pairs: int) -> float | None:
    """The ratio of a question, or None where it is refused or takes too long."""
    try:
        plan = lab.plan(question.sql, tpch.policy())
    except Refusal as refusal:
        print(f"{question.name:<40} {refusal.message}")
        return None
    statements = _statements(lab, plan)
    if not statements:
        print(f"{question.name:<40} asks no protected rows")
        return None
    try:
        times = [(_seconds(lab, [question.sql], "public"), _seconds(lab, statements, "''")) for _ in range(pairs + 1)][
            1:
        ]
    except psycopg.errors.QueryCanceled:
        print(f"{question.name:<40} takes too long")
        return None
    ratio = median(inner / plain for plain, inner in times)
    plain, inner = (median(each) for each in zip(*times, strict=True))
    print(f"{question.name:<40} plain {plain:7.3f} s  inner {inner:7.3f} s  ratio {ratio:5.2f}", flush=True)
    return ratio


def _statements(lab: Lab, plan: Plan) -> list[str]:
    choices = (measure.statement for block in plan.blocks for measure in block.measures if isinstance(measure, Choice))
    summed = (
        block.statement for block in plan.blocks if not all(isinstance(measure, Choice) for measure in block.measures)
    )
    return list(dict.fromkeys(lab.sql(each) for each in (*summed, *choices)))


def _seconds(lab: Lab, statements: list[str], search_path: str) -> float:
    with lab.connection.transaction(force_rollback=True):
        lab.connection.execute(f"SET LOCAL search_path = {search_path}; SET LOCAL jit = off")
        begin = perf_counter()
        for sql in statements:
            lab.connection.execute(sql).fetchall()
        return perf_counter() - begin


def _report(ratios: list[float | None]) -> None:
    known = sorted(ratio for ratio in ratios if ratio is not None)
    above = ", ".join(f"{sum(ratio > bar for ratio in known)} above {bar}" for bar in (2, 5))
    print(f"{len(known)} of {len(ratios)} questions: median ratio {median(known):.2f}, worst {known[-1]:.2f}, {above}")


if __name__ == "__main__":
    main()
