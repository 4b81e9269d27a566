"""How far typical values lie from the whole's: by blocks of units, whose statistics are biased, and by noise.

python -m tests.bench.typical
python -m tests.bench.typical --people 2000 --times 200
"""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from math import sqrt
from statistics import fmean

import psycopg

from proxy.twin.embedded import Cluster
from rules.catalog import Catalog
from rules.kernel.ground import Ground
from rules.mechanisms.draw import OpenDPNoise
from rules.mechanisms.noised_outputs import Chosen
from rules.mechanisms.release_plan import Block, Choice
from rules.planner.plan import Plan, Request
from rules.planner.planner import plan
from rules.policy.load import load_policy
from rules.policy.model import Policy
from rules.release.release import release_choice
from rules.replay import Kernel
from tests.mechanisms.sent import sent
from tests.policy.test_load import VERIFIER
from tests.support.catalogs import catalog_of

# Every person has a taste, a purse and a number of orders of its own; some order very much.
SCHEMA = """
CREATE TABLE people (id integer PRIMARY KEY);
INSERT INTO people SELECT generate_series(1, {people});
CREATE FUNCTION chance(n bigint, seed integer) RETURNS float8 LANGUAGE sql IMMUTABLE
RETURN ((hashint8extended(n, seed) & 1099511627775) + 1) / 1099511627777.0;
CREATE TABLE orders (
    person_id integer NOT NULL REFERENCES people, amount numeric(10,2) NOT NULL, items integer NOT NULL
);
INSERT INTO orders
SELECT i, round((exp(2 + 0.6 * purse + 0.5 * sqrt(-2 * ln(chance(k, 3))) * cos(6.28 * chance(k, 4))) * (1 + items / 4.0))::numeric, 2),
       items
FROM (SELECT i, d, i::bigint * 1000 + d AS k, sqrt(-2 * ln(chance(i, 1))) * cos(6.28 * chance(i, 2)) AS purse,
             1 + (5 * chance(i::bigint * 1000 + d, 5))::integer AS items
      FROM generate_series(1, {people}) AS i, generate_series(1, 400) AS d
      WHERE d <= least(400, 3 / power(chance(i, 6), 0.7))) AS o;
"""  # noqa: E501 - a formula
RULES = f"""\
database: x
unit: people.id
tables:
  people: {{unit: id}}
  orders:
    unit: person_id
    rows_per_unit: 40
    columns: {{amount: {{lower: 0, upper: 1000}}, items: {{lower: 1, upper: 6}}}}
budget: {{epsilon: 10, delta: 1e-6}}
analysts: {{ada: {{password: "{VERIFIER}"}}}}
"""
QUESTIONS = (
    ("ratio of sums", "sum(amount) / nullif(sum(items), 0)", "0, 50"),
    ("p90 of a ratio", "percentile_cont(0.9) WITHIN GROUP (ORDER BY amount / items)", "0, 50"),
    ("correlation", "corr(amount, items)", "-1, 1"),
    ("slope", "regr_slope(amount, items)", "0, 50"),
    ("skewness", "(avg(power(amount, 3)) - 3 * avg(amount) * var_pop(amount) - power(avg(amount), 3)) "
     "/ nullif(power(stddev_pop(amount), 3), 0)", "0, 50"),
)  # fmt: skip


def main() -> None:
    """Measure, and print one line for each statistic and ε."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.typical", description=__doc__.partition("\n")[0])
    parser.add_argument("--people", type=int, default=20_000, help="how many (default: 20000)")
    parser.add_argument("--times", type=int, default=200, help="answers of each question (default: 200)")
    given = parser.parse_args()
    print(f"{'statistic':<16}{'epsilon':>8}{'blocks':>8}{'whole':>10}{'rms error':>11}{'mean error':>12}")
    with _open(given.people) as (connection, catalog):
        policy = load_policy(RULES, "rules.yaml", {})
        for name, statistic, bounds in QUESTIONS:
            for epsilon in ("0.1", "0.3", "1", "3"):
                whole, answers, blocks = _answers(connection, catalog, policy, statistic, bounds, epsilon, given.times)
                errors = [answer / whole - 1 for answer in answers]
                rms, mean = sqrt(fmean(error**2 for error in errors)), fmean(errors)
                print(f"{name:<16}{epsilon:>8}{blocks:>8}{whole:>10.4g}{rms:>11.1%}{mean:>12.1%}", flush=True)


def _answers(
    connection: psycopg.Connection, catalog: Catalog, policy: Policy, statistic: str, bounds: str, epsilon: str,
    times: int,
) -> tuple[float, list[float], int]:  # fmt: skip
    """The statistic of the whole, and answers in as many blocks as ε needs."""
    row = connection.execute(f"SELECT ({statistic})::float8 FROM orders").fetchone()
    assert row is not None
    block, kernel = _block(catalog, policy, f"SELECT noisegate.typical({statistic}, {bounds}) FROM orders", epsilon)
    (choice,), (output,) = block.measures, block.outputs
    assert isinstance(choice, Choice) and isinstance(output, Chosen) and choice.blocks is not None
    rows = sent(connection.execute(kernel.bounded(choice.statement).sql).fetchall())
    noise = OpenDPNoise()
    chosen = (release_choice(block, choice, ((),), rows, noise, group_size=1)[0] for _ in range(times))
    return row[0], [float(output.candidates[number] or "nan") for number in chosen], choice.blocks


def _block(catalog: Catalog, policy: Policy, sql: str, epsilon: str) -> tuple[Block, Kernel]:
    kernel = Kernel(Ground(policy, catalog))
    request = Request(sql, ("pg_catalog", "public"), epsilon=Decimal(epsilon), delta=Decimal("1e-9"))
    made = plan(request, policy, catalog, kernel)
    assert isinstance(made, Plan)
    (block,) = made.blocks
    return block, kernel


@contextmanager
def _open(people: int) -> Iterator[tuple[psycopg.Connection, Catalog]]:
    cluster = Cluster.start(settings={"shared_buffers": "256MB", "max_wal_size": "2GB", "jit": "off"})
    try:
        with psycopg.connect(cluster.dsn(), autocommit=True) as connection:
            connection.execute("CREATE DATABASE typical")
        with psycopg.connect(cluster.dsn("typical"), autocommit=True) as connection:
            connection.execute(SCHEMA.format(people=people))
            connection.execute("ANALYZE")
            yield connection, catalog_of(cluster.dsn("typical"))
    finally:
        cluster.stop()


if __name__ == "__main__":
    main()
