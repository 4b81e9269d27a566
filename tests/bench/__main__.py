"""What the proxy costs: the same statements through it and directly, in pairs, as medians of their ratios.

python -m tests.bench                    # everything, some minutes
python -m tests.bench --seconds 1 --pairs 1 --clients 1
"""

import argparse
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from proxy.demo.run import ANALYST, HERE, open_shop
from proxy.wire.scram import Verifier
from tests.bench.pgbench import Run, Target, run
from tests.support import shop as shop_data
from tests.support.running import noisegate


@dataclass(frozen=True, slots=True)
class Case:
    """One statement, and how it is asked."""

    name: str
    sql: str
    protocol: str = "simple"
    fresh: bool = False  # a new release each time, so that the real database is asked each time
    connects: bool = False  # over a new connection each time, as Superset asks; only one client's time is meant


METADATA = (
    "SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod) FROM pg_class AS c "
    "JOIN pg_attribute AS a ON a.attrelid = c.oid WHERE c.relname = 'orders' AND a.attnum > 0"
)
CITIES = "SELECT city, count(*) FROM customers GROUP BY city"
SALES = "SELECT status, count(*), sum(amount) FROM orders GROUP BY status"
CASES = (
    Case("a connection and SELECT 1", "SELECT 1", connects=True),
    Case("relayed: SELECT 1", "SELECT 1"),
    Case("relayed: SELECT 1, prepared", "SELECT 1", "prepared"),
    Case("relayed: columns of a table", METADATA),
    Case("relayed: public row by key", "SELECT * FROM products WHERE id = 42"),
    Case("private, served again", CITIES),
    Case("private, served again, prepared", CITIES, "prepared"),
    Case("private, fresh, one row a unit", CITIES, fresh=True),
    Case("private, fresh, 30 rows a unit", SALES, fresh=True),
)
FRESH = "-c noisegate.reuse=off -c noisegate.epsilon=0.0001"


def main() -> None:
    """Measure, and print one line for each case and number of clients."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=3, help="of each run (default: 3)")
    parser.add_argument("--pairs", type=int, default=3, help="direct and through the proxy, alternately (default: 3)")
    parser.add_argument("--clients", default="1,8,32", help="numbers of clients (default: 1,8,32)")
    parser.add_argument("--only", default="", help="only cases with this in their name")
    given = parser.parse_args()
    print(f"{'':34}{'clients':>8}{'direct':>12}{'proxy':>12}{'ratio':>8}{'more':>12}{'per second':>12}")
    with targets() as (direct, proxied, fresh, _):
        for case in (case for case in CASES if given.only in case.name):
            for clients in map(int, given.clients.split(",")):
                pairs = [
                    tuple(
                        run(target, case.sql, clients, given.seconds, protocol=case.protocol, connects=case.connects)
                        for target in (direct, fresh if case.fresh else proxied)
                    )
                    for _ in range(given.pairs)
                ]
                print(_line(case.name, clients, pairs), flush=True)


@contextmanager
def targets() -> Iterator[tuple[Target, Target, Target, int]]:
    """The demo's shop directly, through a proxy, and through it with a fresh release each time; the proxy's process."""
    shop = open_shop(tcp_port=_free_port())
    verifier = str(Verifier.of_password(shop_data.PASSWORDS[ANALYST], bytes(16)))
    rules = (HERE / "rules.yaml").read_text().replace("${ADA_VERIFIER}", f'"{verifier}"')
    rules = rules.replace("epsilon: 60", "epsilon: 1000").replace("epsilon: 30", "epsilon: 1000")
    rules = rules.replace("defaults: {", "defaults: {min_epsilon: 0.0001, ")
    try:
        with tempfile.TemporaryDirectory() as folder, noisegate(Path(folder), shop.dsn, rules=rules) as running:
            through = running.dsn(ANALYST, sslmode="disable")
            port = shop.cluster.tcp_port
            direct = Target(f"{shop.owner_dsn} host=127.0.0.1 port={port}")
            yield direct, Target(through), Target(through, FRESH), running.process.pid
    finally:
        shop.cluster.stop()


def _line(name: str, clients: int, pairs: list[tuple[Run, ...]]) -> str:
    direct, proxied = (median(pair[side].latency_ms for pair in pairs) for side in (0, 1))
    ratio = median(after.latency_ms / before.latency_ms for before, after in pairs)
    rate = median(after.per_second for _, after in pairs)
    numbers = f"{direct:>9.3f} ms{proxied:>9.3f} ms{ratio:>8.2f}{proxied - direct:>9.3f} ms{rate:>12,.0f}"
    return f"{name:34}{clients:>8}{numbers}"


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


if __name__ == "__main__":
    main()
