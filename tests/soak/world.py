"""Proxies on one ledger in front of one database, each of which can be frozen, killed and started again."""

import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psycopg

from proxy.twin.embedded import Cluster
from tests.ledger.charges import create_database
from tests.ledger.frozen import Line, line_to
from tests.support import shop
from tests.support.running import Noisegate, command, start

BUDGET = 4  # ε of each analyst for ever: small enough to be spent within a run
RULES = shop.RULES.replace("budget: {epsilon: 1000,", f"budget: {{epsilon: {BUDGET},")
RECOVERY_SECONDS = 90.0  # after which a world is broken; how long it took is reported


@dataclass
class World:
    """What is under attack."""

    directory: Path
    cluster: Cluster  # of the real database, and of the ledger where it is PostgreSQL's
    line: Line  # to both
    ledger: str
    proxies: list[Noisegate] = field(default_factory=list)

    @property
    def database(self) -> str:
        return f"host=127.0.0.1 port={self.line.port} dbname=shop user={shop.READER}"

    def start_proxy(self, place: int) -> None:
        """Start a proxy, the first time or after its death."""
        home = self.directory / str(place)
        home.mkdir(exist_ok=True)
        running = start(shop.rules_file(home, RULES), self.database, arguments=("--ledger", self.ledger))
        self.proxies[place : place + 1] = [running]

    def connect(self, place: int, analyst: str = "ada") -> psycopg.Connection:
        return psycopg.connect(self.proxies[place].dsn(analyst, sslmode="disable", connect_timeout=5), autocommit=True)

    def recover(self) -> float:
        """Wait until every proxy answers; return the seconds that it took."""
        began = time.monotonic()
        for place in range(len(self.proxies)):
            while not self._answers(place):
                if time.monotonic() - began > RECOVERY_SECONDS:
                    raise AssertionError("\n".join(self.proxies[place].lines[-40:]))
                time.sleep(0.1)
        return time.monotonic() - began

    def _answers(self, place: int) -> bool:
        """Whether a protected table is answered, or its budget is spent: both are a proxy at work."""
        running = self.proxies[place]
        if running.process.poll() is not None:  # its ledger was away when it started: a supervisor starts it again
            self.start_proxy(place)
            return False
        with suppress(psycopg.OperationalError, IndexError), self.connect(place, "bob") as connection:
            connection.execute("SET statement_timeout = '5s'; SET noisegate.reuse = off; SET noisegate.epsilon = 0.01")
            with suppress(psycopg.errors.ConfigurationLimitExceeded):
                connection.execute("SELECT count(*) FROM customers")
            return True
        return False

    def spent(self) -> tuple[dict[str, float], int]:
        """Read in the ledger what each account has spent, by the filter that holds, and how often ada was charged."""
        rules = str(self.directory / "0" / "rules.yaml")
        done = command("ledger", "show", rules, "--ledger", self.ledger, "--charges", "--json", database=self.database)
        assert done.returncode == 0, done.stderr
        shown = json.loads(done.stdout)
        accounts = {each["account"]: float(each["spent"]) for each in shown["accounts"]}
        return accounts, sum(each["analyst"] == "ada" for each in shown["charges"])


@contextmanager
def world(directory: Path, proxies: int, *, shared_ledger: bool) -> Iterator[World]:
    """Make a world whose ledger is a file, or a database that all proxies share."""
    with ExitStack() as stack:
        cluster = Cluster.start(settings={"max_connections": 100})
        stack.callback(cluster.stop)
        with psycopg.connect(cluster.dsn(), autocommit=True) as owner:
            owner.execute("CREATE DATABASE shop")
        with psycopg.connect(cluster.dsn("shop"), autocommit=True) as owner:
            for part in (shop.SCHEMA, shop.DATA, shop.GRANTS):
                owner.execute(part)
        line = stack.enter_context(line_to(cluster))
        made = World(directory, cluster, line, _ledger(directory, cluster, line, shared=shared_ledger))
        (directory / "0").mkdir()
        rules = str(shop.rules_file(directory / "0", RULES))
        done = command("ledger", "init", rules, "--ledger", made.ledger, database=made.database)
        assert done.returncode == 0, done.stderr
        for place in range(proxies):
            made.start_proxy(place)
        stack.callback(lambda: [proxy.stop() for proxy in made.proxies])
        made.recover()
        yield made


def _ledger(directory: Path, cluster: Cluster, line: Line, *, shared: bool) -> str:
    if not shared:
        return str(directory / "ledger")
    name = dict(part.split("=") for part in create_database(cluster).split())["dbname"]
    return f"postgresql://noisegate_owner@127.0.0.1:{line.port}/{name}"


def children(pid: int) -> list[int]:
    """List the processes below one, youngest last."""
    below = [int(text) for text in _children_of(pid)]
    return [*below, *(number for child in below for number in children(child))]


def _children_of(pid: int) -> list[str]:
    with suppress(OSError):
        tasks = Path(f"/proc/{pid}/task").iterdir()
        return [text for task in tasks for text in (task / "children").read_text(encoding="ascii").split()]
    return []


def send(pid: int, number: signal.Signals) -> None:
    """Send a signal to a process that may be gone."""
    with suppress(ProcessLookupError):
        os.kill(pid, number)
