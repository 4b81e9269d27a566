"""What stands behind the proxy fails: a clear error, nothing leaked, and recovery without a restart."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import psycopg
import pytest

from proxy.twin.embedded import Cluster
from tests.conftest import SERVER, RealDatabase, make_shop
from tests.running import Noisegate, noisegate

PROC = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="processes are looked up in /proc")
COUNT = "SELECT count(*) FROM customers"
FRESH = "SET noisegate.reuse = off"


@pytest.fixture
def database(cluster_home: Path) -> Iterator[RealDatabase]:
    """A real database of our own that may be stopped: it keeps its data for the next start."""
    cluster = Cluster.start(cluster_home, binaries=SERVER)
    yield make_shop(cluster, "shop")
    cluster.stop()


@pytest.fixture(params=[16, 18])
def old_and_new(request: pytest.FixtureRequest) -> Iterator[RealDatabase]:
    cluster = Cluster.start(version=request.param)
    yield make_shop(cluster, "shop")
    cluster.stop()


def test_old_and_new_databases_are_served_alike(old_and_new: RealDatabase, tmp_path: Path) -> None:
    with noisegate(tmp_path, old_and_new.reader_dsn) as running, psycopg.connect(running.dsn()) as session:
        version = session.info.server_version // 10000
        rows = session.execute("SELECT status, count(*), avg(amount) FROM orders GROUP BY status").fetchall()

    assert version == old_and_new.cluster.version
    assert [row[0] for row in rows] == ["open", "paid", "sent", "returned"]


def test_a_database_that_goes_away_is_told_before_anything_is_charged(database: RealDatabase, tmp_path: Path) -> None:
    with noisegate(tmp_path, database.reader_dsn) as running, _session(running) as session:
        assert session.execute(COUNT).fetchone() is not None
        before = _spent(running)
        database.cluster.stop()

        with pytest.raises(psycopg.Error) as refusal:
            session.execute(COUNT)
        assert refusal.value.sqlstate == "57P03"
        assert session.execute("SELECT count(*) FROM products").fetchone() == (30,)  # the twin has it

        again = Cluster.start(database.cluster.directory, binaries=SERVER)
        try:
            assert session.execute(COUNT).fetchone() is not None
        finally:
            again.stop()
    assert _spent(running) == before + 1


@PROC
def test_a_twin_that_dies_is_made_anew(shop: RealDatabase, tmp_path: Path) -> None:
    with noisegate(tmp_path, shop.reader_dsn) as running:
        lost = _session(running)
        _kill(running, "postgres")

        running.wait_for("twin_made")
        with pytest.raises(psycopg.OperationalError):
            lost.execute("SELECT 1")
        with _session(running) as session:
            assert session.execute(COUNT).fetchone() is not None
    lost.close()


@PROC
def test_workers_that_die_are_replaced(shop: RealDatabase, tmp_path: Path) -> None:
    with noisegate(tmp_path, shop.reader_dsn) as running, _session(running) as session:
        for number in range(3):
            _kill(running, "proxy.query.worker")
            sql = f"{COUNT} WHERE id > {number}"
            _until(partial(_answers, session, sql))


def test_a_ledger_that_is_gone_stops_answers_and_not_sessions(shop: RealDatabase, tmp_path: Path) -> None:
    with noisegate(tmp_path, shop.reader_dsn) as running, _session(running) as session:
        assert session.execute(COUNT).fetchone() is not None
        ledger = running.rules.with_suffix(".ledger")
        ledger.rename(tmp_path / "elsewhere")

        with pytest.raises(psycopg.Error) as refusal:
            session.execute(COUNT)
        assert refusal.value.sqlstate == "57P03"
        assert session.execute("SELECT 1").fetchone() == (1,)

        (tmp_path / "elsewhere").rename(ledger)
        _until(lambda: _answers(session, COUNT))


@PROC
def test_a_killed_proxy_leaves_no_process_and_no_twin(shop: RealDatabase, tmp_path: Path) -> None:
    with noisegate(tmp_path, shop.reader_dsn) as running:
        homes = {_home(pid) for pid in _descendants(running.process.pid) if "postgres" in _line(pid)} - {None}
        family = _descendants(running.process.pid)
        assert homes
        running.process.kill()
        running.process.wait()

    _until(lambda: not any(_line(pid) for pid in family))
    _until(lambda: not any(Path(home).exists() for home in homes if home))


def _session(running: Noisegate) -> psycopg.Connection:
    session = psycopg.connect(running.dsn(), autocommit=True)
    session.execute(FRESH)
    return session


def _spent(running: Noisegate) -> int:
    """How many answers were charged."""
    return len(running.events("answered"))


def _answers(session: psycopg.Connection, sql: str) -> bool:
    try:
        return session.execute(sql).fetchone() is not None
    except psycopg.Error as error:
        assert error.sqlstate in ("57P03", "54001"), error
        return False


def _kill(running: Noisegate, name: str) -> None:
    """Kill those of the proxy's processes, and theirs, that have this in their command line."""
    found = [pid for pid in _descendants(running.process.pid) if name in _line(pid)]
    assert found
    for pid in found:
        os.kill(pid, signal.SIGKILL)


def _descendants(pid: int) -> list[int]:
    lists = Path(f"/proc/{pid}/task").glob("*/children")  # each thread has children of its own
    try:
        children = [int(child) for each in lists for child in each.read_text().split()]
    except OSError:
        return []
    return [*children, *(each for child in children for each in _descendants(child))]


def _line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


def _home(pid: int) -> str | None:
    words = _line(pid).split()
    return str(Path(words[words.index("-D") + 1]).parent) if "-D" in words else None


def _until(holds: Callable[[], bool], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.1)
