"""How long single statements take through the proxy and directly, one after the other, as ratios of medians.

python -m tests.bench.latency                # some minutes
python -m tests.bench.latency --times 30 --only "served again"
python -m tests.bench.latency --bars         # the three bars alone, each with what it may be at most

Directly a client proves its password by SCRAM too, so that a connection costs it the same. `own` is the processor time
of the proxy's own process for one statement, its threads included: what the twin, the database and the client take is
not in it, nor what the machine does besides. What is new about a plan is in the difference of the last two fresh lines.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from statistics import median

import psycopg
from psycopg.conninfo import make_conninfo

from tests.bench.__main__ import CITIES, SALES, targets
from tests.bench.pgbench import Target, run
from tests.bench.planning import DEMO, MANY, demo_rules, measured, processor_seconds
from tests.support.catalogs import catalog_of

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
    yield Case("served again, four outputs", ask(plain, MANY), ask(through, MANY))
    yield Case("connection and SELECT 1", connect(direct, "SELECT 1"), connect(proxied, "SELECT 1"))
    yield Case("connection and an answer served again", connect(direct, CITIES), connect(proxied, CITIES))
    yield Case("fresh answer, 30 rows a unit", ask(plain, SALES), ask(anew, SALES))
    yield Case("fresh answer, one number", ask(plain, some), ask(anew, some))

    def new(connection: psycopg.Connection) -> Ask:
        return lambda _: connection.execute(some.replace("1000", str(next(numbers)))).fetchall()

    yield Case("fresh answer, one number, as a new text", new(plain), new(anew))


def _measure_bars(times: int) -> None:
    with targets() as (direct, proxied, _, process):
        for name, planning in measured(demo_rules(direct), catalog_of(direct.dsn), DEMO, times).items():
            _tell_bar(f"planning of a new statement, {name}", planning.took, "ms", 5)
            _tell_bar(f"planning of a new statement, {name}: processor time", planning.own, "ms", 5)
        with _connections(direct, proxied) as (plain, through):
            for case in _cases(plain, through, through, _with_password(direct), proxied):
                if "served again" in case.name or "connection" in case.name:
                    proxy, directly, own = _times(case, times, process)
                    if "connection" in case.name:
                        _tell_bar(f"{case.name}, of a direct one's", proxy / directly, "times", 2)
                    else:
                        _tell_bar(f"{case.name}: the proxy's own time", own, "ms", 1)
        before = processor_seconds(process)
        rate = run(proxied, CITIES, 8, 5).per_second
        own = 1000 * (processor_seconds(process) - before) / (5 * rate)
        _tell_bar(f"served again to 8 clients, {rate:,.0f} a second: own time", own, "ms", 1)


def _tell_bar(name: str, value: float, unit: str, most: float) -> None:
    print(f"{name:68}{value:>9.3f} {unit:6}at most {most:g}: {'kept' if value <= most else 'missed'}", flush=True)


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
        before = processor_seconds(process)
        pairs.append((_seconds(case.proxied, number), _seconds(case.direct, number)))
        own += processor_seconds(process) - before
    proxied, direct = (1000 * median(pair[side] for pair in pairs) for side in (0, 1))
    return proxied, direct, 1000 * own / times


def _seconds(ask: Ask, number: int) -> float:
    began = time.perf_counter()
    ask(number)
    return time.perf_counter() - began


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
