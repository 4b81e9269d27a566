"""What Gaussian noise gains on daily active users over a year, at the same ρ, by how many days of a person count.

python -m tests.bench.gaussian
python -m tests.bench.gaussian --people 100000 --epsilon 0.1 --times 20
"""

import argparse
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from statistics import median, pstdev

import psycopg

from proxy.twin.embedded import Cluster
from rules.catalog import Catalog
from rules.kernel.ground import Ground
from rules.mechanisms.draw import OpenDPNoise
from rules.mechanisms.noised_outputs import Text
from rules.mechanisms.release_plan import Block
from rules.planner.plan import Plan, Request
from rules.planner.planner import plan
from rules.policy.load import load_policy
from rules.policy.model import NoiseKind, Policy
from rules.release.release import columns, draw, known_groups, release
from rules.replay import Kernel
from tests.mechanisms.sent import sent
from tests.planner.planned import shown
from tests.policy.test_load import VERIFIER
from tests.support.catalogs import catalog_of

ACTIVE = "SELECT day, count(DISTINCT person_id) FROM visits GROUP BY day"
KINDS: tuple[NoiseKind, ...] = ("laplace", "gaussian")
# Half of the people come on a day or two, some on every other day: 38 days on average.
SCHEMA = """
CREATE TABLE people (id integer PRIMARY KEY);
INSERT INTO people SELECT generate_series(1, {people});
CREATE TABLE visits (person_id integer NOT NULL REFERENCES people, day date NOT NULL, PRIMARY KEY (person_id, day));
INSERT INTO visits SELECT i, date '2025-01-01' + d FROM generate_series(1, {people}) AS i, generate_series(0, 364) AS d
WHERE (hashint8(i::bigint * 1000 + d) & 65535) / 65536.0 < power((i * 7919 % 10007) / 10007.0, 8);
"""
RULES = f"""\
database: x
unit: people.id
tables:
  people: {{unit: id}}
  visits:
    unit: person_id
    rows_per_unit: 365
    columns: {{day: {{lower: 2025-01-01, upper: 2025-12-31}}}}
budget: {{epsilon: 10, delta: 1e-6}}
analysts: {{ada: {{password: "{VERIFIER}"}}}}
"""
Row = tuple[Text, ...]


@dataclass(frozen=True, slots=True)
class Errors:
    """Of one noise: its deviation, and by how much answers are off, by noise and by what was cut together."""

    noise: float
    answer: float


def main() -> None:
    """Measure, and print one line for each number of days."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.gaussian", description=__doc__.partition("\n")[0])
    parser.add_argument("--people", type=int, default=20_000, help="how many (default: 20000)")
    parser.add_argument("--epsilon", type=Decimal, default=Decimal("0.5"), help="of a statement (default: 0.5)")
    parser.add_argument("--times", type=int, default=20, help="answers of each kind (default: 20)")
    given = parser.parse_args()
    print(f"{'days of a person':>16}{'Laplace':>10}{'Gaussian':>10}{'ratio':>8}   median relative error of an answer")
    with _open(given.people) as (connection, catalog):
        truth = {day: int(users) for day, users in _texts(connection, ACTIVE) if users}
        for days in (10, 40, 365):
            laplace, gaussian = (_errors(connection, catalog, kind, days, given, truth) for kind in KINDS)
            numbers = f"{days:>16}{laplace.noise:>10.1f}{gaussian.noise:>10.1f}{laplace.noise / gaussian.noise:>8.1f}"
            print(f"{numbers}   {laplace.answer:.1%} and {gaussian.answer:.1%}", flush=True)


def _errors(
    connection: psycopg.Connection,
    catalog: Catalog,
    kind: NoiseKind,
    days: int,
    given: argparse.Namespace,
    truth: Mapping[Text, int],
) -> Errors:
    block = _block(catalog, kind, days, given.epsilon)
    sql = Kernel(Ground(_policy(kind), catalog)).bounded(block.statement).sql
    rows, groups, off, noise = connection.execute(sql).fetchall(), known_groups(block), list[float](), list[int]()
    exact = {row[0]: int(row[1]) for row in shown(block, rows)}
    assert groups is not None
    for _ in range(given.times):
        draws = draw(block, (0,), len(groups), OpenDPNoise(), group_size=1)
        for day, users in zip(*columns(block, release(block, groups, sent(rows), draws)), strict=True):
            noise.append(int(users or 0) - exact.get(day, 0))
            off.append(abs(int(users or 0) / truth[day] - 1))
    return Errors(pstdev(noise), median(off))


def _block(catalog: Catalog, kind: NoiseKind, days: int, epsilon: Decimal) -> Block:
    request = Request(ACTIVE, ("pg_catalog", "public"), epsilon=epsilon, groups_per_unit=days)
    made = plan(request, _policy(kind), catalog)
    assert isinstance(made, Plan)
    (block,) = made.blocks
    return block


def _policy(kind: NoiseKind) -> Policy:
    return load_policy(f"{RULES}noise: {kind}\n", "rules.yaml", {})


def _texts(connection: psycopg.Connection, sql: str) -> list[Row]:
    return [tuple(None if cell is None else str(cell) for cell in row) for row in connection.execute(sql).fetchall()]


@contextmanager
def _open(people: int) -> Iterator[tuple[psycopg.Connection, Catalog]]:
    cluster = Cluster.start(settings={"shared_buffers": "256MB", "max_wal_size": "2GB", "jit": "off"})
    try:
        with psycopg.connect(cluster.dsn(), autocommit=True) as connection:
            connection.execute("CREATE DATABASE days")
        with psycopg.connect(cluster.dsn("days"), autocommit=True) as connection:
            connection.execute(SCHEMA.format(people=people))
            yield connection, catalog_of(cluster.dsn("days"))
    finally:
        cluster.stop()


if __name__ == "__main__":
    main()
