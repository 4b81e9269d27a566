"""Two neighbouring worlds: a database with a unit and the same without it, a proxy before each, and clients of both.

The databases are copies of one cluster's files, so names, numbers of objects and the cluster's identifier are the same.
All that leaves a proxy is compared: each frame to a client, what it logs, its ledger with all hashes, and what it asks
its mechanisms and its database. Left out are the times of log lines, ports, and the keys by which clients cancel.
Numbers of objects that were made in a running twin follow from its backends, so no statement here asks for them.
"""

import json
import re
import shutil
import signal
import socket
import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg

from proxy.twin.embedded import Cluster
from proxy.wire.backend import BackendKeyData, ReadyForQuery
from proxy.wire.buffer import Frame
from proxy.wire.frontend import Bind, Describe, Execute, Parse, Query, Sync
from tests.privacy.replay.mechanisms import CLOCK, FOLLOWER, LEADER, TAPE, steps_of
from tests.server.bare_client import BareClient
from tests.support import shop
from tests.support.listed_sql import all_sent_are_listed
from tests.support.running import Noisegate, run_here, start

DATABASE = "shop"
BEGINNING = datetime(2026, 11, 2, 9, 30, tzinfo=UTC)
_PORTS = re.compile(r"\b(port\D{0,3}|127\.0\.0\.1:)\d+")
_OF_TIME = ("time", "seconds", "port")
_PLACES = re.compile(rf"\S+/({LEADER}|{FOLLOWER})/rules\.yaml")

Message = Bind | Describe | Execute | Parse | Query | Sync | bytes


@dataclass
class World:
    """One of the two."""

    name: str
    folder: Path
    cluster: Cluster
    proxy: Noisegate
    password: str = ""

    def socket(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.proxy.port), timeout=60)

    @property
    def log(self) -> list[str]:
        return [_without_time(line) for line in list(self.proxy.lines)]

    @property
    def steps(self) -> list[str]:
        file = steps_of(self.folder, self.name)
        return file.read_text(encoding="utf-8").splitlines() if file.exists() else []

    @property
    def ledger(self) -> list[str]:
        """All rows of all tables."""
        place = f"file:{self.proxy.rules.with_suffix('.ledger')}?mode=ro"
        with closing(sqlite3.connect(place, uri=True)) as ledger:
            tables = [name for (name,) in ledger.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            return [f"{table}: {row}" for table in sorted(tables) for row in ledger.execute(f"SELECT * FROM {table}")]


def _without_time(line: str) -> str:
    if not line.startswith("{"):
        return _PLACES.sub("rules.yaml", _PORTS.sub(r"\1N", line))
    fields = json.loads(line)
    return json.dumps({name: value for name, value in fields.items() if name not in _OF_TIME})


@dataclass
class Session:
    """A client of each world. What it sends is sent to both, and what comes back has to be the same."""

    clients: Sequence[BareClient]

    def ask(self, *sql: str) -> list[Frame]:
        """Ask by the simple protocol, and then by the extended one."""
        return [frame for text in sql for frame in (*self.send(Query(text.encode())), *self.extended(text))]

    def simple(self, *sql: str) -> list[Frame]:
        return [frame for text in sql for frame in self.send(Query(text.encode()))]

    def extended(self, sql: str, *parameters: bytes | None, binary: bool = False) -> list[Frame]:
        formats = (1,) if binary else ()
        parse = Parse(b"", sql.encode(), ())
        return self.send(parse, Describe(b"S", b""), Bind(b"", b"", (), parameters, formats), Execute(b"", 0), Sync())

    def send(self, *messages: Message) -> list[Frame]:
        """Send messages that end in one ReadyForQuery."""
        data = b"".join(message if isinstance(message, bytes) else message.encode() for message in messages)
        replies = []
        for client in self.clients:  # the leader first: the follower's mechanisms release what the leader's did
            client.send(data)
            replies.append(_until_ready(client))
        check_alike(f"the replies to {messages}", *map(_in_words, replies))
        return replies[0]


def _until_ready(client: BareClient) -> list[Frame]:
    frames = list[Frame]()
    while not frames or frames[-1].kind != ReadyForQuery.kind:
        frame = client.frame()
        if frame is None:
            return frames
        if frame.kind != BackendKeyData.kind:
            frames.append(frame)
    return frames


def _in_words(frames: Sequence[Frame]) -> list[str]:
    return [f"{frame.kind!r} {frame.raw!r}" for frame in frames]


def check_alike(what: str, leader: Sequence[str], follower: Sequence[str]) -> None:
    """Fail with the first difference."""
    for place, (one, other) in enumerate(zip(leader, follower, strict=False)):
        if one != other:
            start = next(at for at, (a, b) in enumerate(zip(one + "\0", other + "\1", strict=False)) if a != b)
            window = slice(max(0, start - 200), start + 300)
            raise AssertionError(f"{what} differ at {place}:\n  {one[window]}\n  {other[window]}")
    more = leader[len(follower) :] or follower[len(leader) :]
    assert not more, f"{what}: {len(leader)} and {len(follower)}; one world has more: {more[0][:500]}"


@dataclass(frozen=True)
class Neighbours:
    """Two clusters with the same files, from one of which a unit was removed."""

    whole: Cluster
    without: Cluster
    removal: str


@dataclass
class Worlds:
    """Both, with their clients. The leader's mechanisms decide what is released."""

    leader: World
    follower: World
    folder: Path
    neighbours: Neighbours
    _sessions: int = 0
    _now: datetime = BEGINNING

    @contextmanager
    def session(self, analyst: str = "ada") -> Iterator[Session]:
        """Log in to both."""
        self._sessions += 1
        with ExitStack() as stack:
            stack.callback(self.wait_for, "client_gone", self._sessions)
            clients = []
            for world in (self.leader, self.follower):
                world.password = shop.PASSWORDS[analyst]
                clients.append(stack.enter_context(BareClient(world, user=analyst, database=DATABASE)))
            check_alike("the greetings", *(_in_words(_until_ready(client)) for client in clients))
            session = Session(clients)
            session.simple("SET noisegate.progress = off")  # which tells of time
            yield session

    def advance(self, by: timedelta) -> None:
        """Turn the clock of both."""
        self._now += by
        _write_clock(self.folder, self._now)

    def reload(self, rules: str, until: str = "rules_loaded", count: int = 0) -> None:
        """Put other rules in force, and wait for what they bring about: in the leader first, whose releases decide."""
        for world in (self.leader, self.follower):
            loaded = len(world.proxy.events("rules_loaded")) + 1
            shop.rules_file(world.proxy.rules.parent, rules)
            world.proxy.process.send_signal(signal.SIGHUP)
            world.proxy.wait_for("rules_loaded", count=loaded)
            world.proxy.wait_for(until, count=count or loaded)

    def wait_for(self, event: str, count: int) -> None:
        for world in (self.leader, self.follower):
            world.proxy.wait_for(event, count=count)

    def change(self, sql: str) -> None:
        """Change the rows of both databases, of which one still has no row of the unit."""
        whole, without = self.neighbours.whole, self.neighbours.without
        for cluster, script in ((whole, sql), (without, f"{sql}; {self.neighbours.removal}")):
            with psycopg.connect(cluster.dsn(DATABASE), autocommit=True) as owner:
                owner.execute(script)

    def check(self) -> None:
        """Compare what no client sees, when no client is left."""
        check_alike("the steps", self.leader.steps, self.follower.steps)
        check_alike("the logs", self.leader.log, self.follower.log)
        check_alike("the ledgers", self.leader.ledger, self.follower.ledger)


def _write_clock(folder: Path, now: datetime) -> None:
    fresh = folder / f"{CLOCK}.new"
    fresh.write_text(now.isoformat())
    fresh.rename(folder / CLOCK)


@contextmanager
def open_neighbours(rows: Sequence[str], removal: str) -> Iterator[Neighbours]:
    """Make a database with all of these rows, and the same one after the removal of a unit."""
    with ExitStack() as stack:
        home = Path(tempfile.mkdtemp(prefix="noisegate-test-"))  # a place that another user of the machine can reach
        stack.callback(shutil.rmtree, home, ignore_errors=True)
        made = Cluster.start(home)
        try:
            with psycopg.connect(made.dsn(), autocommit=True) as owner:
                owner.execute(f"CREATE DATABASE {DATABASE}")
            with psycopg.connect(made.dsn(DATABASE), autocommit=True) as owner:
                for script in rows:
                    owner.execute(script)
        finally:
            made.stop()
        clusters = []
        for _ in range(2):
            clusters.append(Cluster.start(template=home / "data"))
            stack.callback(clusters[-1].stop)
            stack.enter_context(all_sent_are_listed(clusters[-1]))
        with psycopg.connect(clusters[1].dsn(DATABASE), autocommit=True) as owner:
            owner.execute(removal)
            owner.execute("ANALYZE")
        whole, without = clusters
        yield Neighbours(whole, without, removal)


@contextmanager
def open_worlds(
    folder: Path,
    neighbours: Neighbours,
    rules: str,
    *,
    leads_without: bool = True,
    program: tuple[str, ...] = ("tests.privacy.replay.mechanisms",),
) -> Iterator[Worlds]:
    """Serve both databases. Either may lead: where the leader has the unit, groups of it alone are found by δ alone."""
    (folder / TAPE).touch()
    _write_clock(folder, BEGINNING)
    clusters = [neighbours.without, neighbours.whole]
    with ExitStack() as stack:
        worlds = list[World]()
        for name, cluster in zip((LEADER, FOLLOWER), clusters if leads_without else clusters[::-1], strict=True):
            place = folder / name
            place.mkdir()
            path, dsn = shop.rules_file(place, rules), cluster.dsn(DATABASE, shop.READER)
            if worlds:
                shutil.copy(worlds[0].proxy.rules.with_suffix(".ledger"), path.with_suffix(".ledger"))
            else:
                assert run_here("ledger", "init", str(path), database=dsn) == 0
            module, *fault = program
            command = (module, str(folder), name, *fault)
            # One order of sets of texts in both, which Python else draws anew in each process.
            running = start(path, dsn, name=DATABASE, program=command, environment={"PYTHONHASHSEED": "0"})
            stack.callback(running.stop)
            worlds.append(World(name, folder, cluster, running))
        leader, follower = worlds
        both = Worlds(leader, follower, folder, neighbours)
        both.wait_for("ledger_verified", 1)  # the last event of a start
        yield both
