"""What error bars over many groups cost: the time of a statement with them, of one without, and of making their arrays.

python -m tests.bench.bars
"""

import tempfile
from pathlib import Path
from time import perf_counter

import psycopg

from proxy.twin.embedded import Cluster
from tests.conftest import RealDatabase
from tests.support import shop
from tests.support.running import noisegate

GROUPS = 960
SCHEMA = f"""
CREATE TABLE people (id integer PRIMARY KEY, place integer NOT NULL, points integer NOT NULL, is_new boolean NOT NULL);
INSERT INTO people SELECT i, 1 + i % {GROUPS}, i % 200, i % 7 < 3 FROM generate_series(0, {GROUPS} * 100 - 1) AS i;
GRANT SELECT ON people TO {shop.READER};
"""
RULES = f"""\
database: ${{NOISEGATE_DATABASE}}
unit: people.id
tables:
  people:
    unit: id
    columns:
      place: {{lower: 1, upper: {GROUPS}}}
      points: {{lower: 0, upper: 200}}
budget: {{epsilon: 1000}}
defaults: {{epsilon: 1, max_epsilon: 10}}
analysts:
{shop.RULES[shop.RULES.index("analysts:") :].partition(chr(10))[2]}"""
ASKED = (
    "avg(points)",
    "avg(points), noisegate.low(avg(points)), noisegate.high(avg(points))",
    "count(*), noisegate.low(count(*)), noisegate.high(count(*))",
    "noisegate.margin(sum(points))",
    "noisegate.low(avg(points) * 2), noisegate.high(avg(points) * 2)",
    "noisegate.margin(count(*) FILTER (WHERE is_new) * 100.0 / count(*))",
    "noisegate.low(stddev(points)), noisegate.high(stddev(points))",
)


def main() -> None:
    """Print one line for each question: the least of some runs, in milliseconds."""
    cluster = Cluster.start(settings={"max_connections": 20})
    try:
        with tempfile.TemporaryDirectory() as directory:
            with psycopg.connect(cluster.dsn(), autocommit=True) as connection:
                connection.execute("CREATE DATABASE bars")
                connection.execute(f"CREATE ROLE {shop.READER} LOGIN")
            database = RealDatabase(cluster, "bars")
            with database.connect() as connection:
                connection.execute(SCHEMA)
            with noisegate(Path(directory), database.reader_dsn, rules=RULES, name="bars") as proxy:
                _measure(proxy.dsn("ada"))
    finally:
        cluster.stop()


def _measure(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("SET noisegate.reuse = off")
        for asked in ASKED:
            times = []
            for _ in range(4):
                start = perf_counter()
                connection.execute(f"SELECT place, {asked} FROM people GROUP BY place").fetchall()
                times.append(perf_counter() - start)
            print(f"{min(times) * 1000:8.0f} ms  {asked}", flush=True)


if __name__ == "__main__":
    main()
