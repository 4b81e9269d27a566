"""What a private choice of bounds gains: median relative errors with declared and with chosen bounds.

python -m tests.bench.bounds
python -m tests.bench.bounds --customers 150000 --epsilon 0.1,1 --times 200
"""

import argparse
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from decimal import Decimal
from statistics import median

import psycopg

from proxy.twin.embedded import Cluster
from rules.catalog import Catalog
from rules.kernel.ground import Ground
from rules.mechanisms.draw import OpenDPNoise
from rules.mechanisms.noised_outputs import Text
from rules.mechanisms.release_plan import Block
from rules.planner.plan import NeedsInner, Plan, Request
from rules.planner.planner import plan
from rules.release.bound_ladder import choose_bound, draw_climb, tallies
from rules.release.release import columns, draw, known_groups, release
from rules.release.sensitivity import settled
from rules.replay import Kernel
from tests.bench import tpch
from tests.mechanisms.sent import sent
from tests.planner.planned import public_groups
from tests.planner.tpch import Question
from tests.support.catalogs import catalog_of


@dataclass(frozen=True, slots=True)
class Way:
    """Which bounds are chosen."""

    name: str
    rows: bool = False
    sums: bool = False


WAYS = (Way("declared"), Way("rows auto", rows=True), Way("sums auto", sums=True), Way("both", rows=True, sums=True))
Row = tuple[Text, ...]


@dataclass
class Bench:
    """The set, and the answers of its inner statements, each asked once."""

    connection: psycopg.Connection
    catalog: Catalog
    asked: dict[str, tuple[list[Row], float]] = field(default_factory=dict)
    noise: OpenDPNoise = field(default_factory=OpenDPNoise)
    kernel: Kernel = field(init=False)

    def __post_init__(self) -> None:
        self.kernel = Kernel(Ground(tpch.policy(), self.catalog))

    def run(self, sql: str) -> list[Row]:
        if sql not in self.asked:
            began = time.perf_counter()
            rows = self.connection.execute(sql).fetchall()
            texts = [tuple(None if cell is None else str(cell) for cell in row) for row in rows]
            self.asked[sql] = texts, time.perf_counter() - began
        return self.asked[sql][0]

    def plan(self, question: Question, epsilon: Decimal, *, rows: bool, sums: bool) -> Plan:
        request = Request(
            text=question.sql,
            search_path=("pg_catalog", "public"),
            epsilon=epsilon,
            rows_auto=rows,
            sums_auto=sums,
        )
        made = plan(request, tpch.policy(), self.catalog)
        while isinstance(made, NeedsInner):
            listed = public_groups(self.connection, made)
            request = replace(request, released=(*request.released, listed))
            made = plan(request, tpch.policy(), self.catalog)
        return made

    def choose(self, block: Block) -> tuple[int, ...]:
        """Bounds of the block's ladders, as one statement would choose them."""
        found = tallies(block, sent(self.run(self.tally_sql(block)))) if block.ladders else ()
        pairs = zip(block.ladders, found, strict=True)
        return tuple(
            choose_bound(ladder, heights, draw_climb(ladder, self.noise, group_size=1)) for ladder, heights in pairs
        )

    def answer(self, block: Block) -> dict[Row, Row]:
        """One noised answer, by group."""
        groups, width = known_groups(block), len(block.keys)
        assert groups is not None
        draws = draw(block, range(len(block.measures)), len(groups), self.noise, group_size=1)
        shown = columns(block, release(block, groups, sent(self.run(self.sql(block))), draws))
        return {row[:width]: row[width:] for row in zip(*shown, strict=True)}

    def seconds(self, block: Block, bounds: tuple[int, ...]) -> float:
        """What the database took for one answer."""
        asked = [self.tally_sql(block)] if block.ladders else []
        return sum(self.asked[sql][1] for sql in (*asked, self.sql(self.settled(block, bounds))))

    def settled(self, block: Block, bounds: tuple[int, ...]) -> Block:
        """The block with these bounds."""
        return settled(block, bounds, self.kernel, 1)

    def sql(self, block: Block) -> str:
        return self.kernel.bounded(block.statement).sql

    def tally_sql(self, block: Block) -> str:
        assert block.tally is not None
        return self.kernel.tally(block.tally).sql


def measure(bench: Bench, question: Question, block: Block, times: int) -> tuple[float, tuple[int, ...]]:
    """The median relative error over cells and repetitions, and the bounds chosen most often."""
    truth = {row[: question.keys]: row[question.keys :] for row in bench.run(question.sql)}
    errors: list[float] = []
    chosen: Counter[tuple[int, ...]] = Counter()
    for _ in range(times):
        bounds = bench.choose(block)
        chosen[bounds] += 1
        answer = bench.answer(bench.settled(block, bounds))
        pairs = (pair for group, cells in truth.items() for pair in zip(answer[group], cells, strict=True))
        errors += [abs(float(one or 0) / float(other) - 1) for one, other in pairs if other and float(other)]
    return median(errors), chosen.most_common(1)[0][0]


def main() -> None:
    """Measure, and print one line for each question, ε and way."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.bounds", description=__doc__.partition("\n")[0])
    parser.add_argument("--customers", type=int, default=15_000, help="how many (default: 15000, a tenth of TPC-H's)")
    parser.add_argument("--epsilon", default="0.1,1", help="of a statement (default: 0.1,1)")
    parser.add_argument("--times", type=int, default=100, help="answers of each kind (default: 100)")
    given = parser.parse_args()
    print(f"{'question':44}{'ε':>5}  {'bounds':12}{'median error':>13}{'seconds':>9}  most often")
    with _open(given.customers) as bench:
        for question in tpch.QUESTIONS:
            for epsilon in given.epsilon.split(","):
                for way in WAYS:
                    _print(bench, question, Decimal(epsilon), way, given.times)


def _print(bench: Bench, question: Question, epsilon: Decimal, way: Way, times: int) -> None:
    """One line, unless there is nothing to choose."""
    (block,) = bench.plan(question, epsilon, rows=way.rows, sums=way.sums).blocks
    if (way.rows or way.sums) and not block.ladders:
        return
    error, bounds = measure(bench, question, block, times)
    numbers = f"{epsilon:>5}  {way.name:12}{error:>12.2%}{bench.seconds(block, bounds):>9.2f}"
    told = (f"{ladder.what} {ladder.bound_text(bound)}" for ladder, bound in zip(block.ladders, bounds, strict=True))
    print(f"{question.name:44}{numbers}  {', '.join(told)}", flush=True)


@contextmanager
def _open(customers: int) -> Iterator[Bench]:
    settings = {"shared_buffers": "512MB", "max_wal_size": "4GB", "jit": "off", "work_mem": "256MB"}
    cluster = Cluster.start(settings=settings)
    try:
        with psycopg.connect(cluster.dsn(), autocommit=True) as connection:
            connection.execute("CREATE DATABASE tpch")
        with psycopg.connect(cluster.dsn("tpch"), autocommit=True) as connection:
            connection.execute(tpch.script(customers))
            yield Bench(connection, catalog_of(cluster.dsn("tpch")))
    finally:
        cluster.stop()


if __name__ == "__main__":
    main()
