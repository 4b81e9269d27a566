"""What stands behind the proxy fails: a clear error, nothing leaked, and recovery without a restart."""

import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import psycopg
import pytest

from proxy.twin.embedded import OWNER, Cluster
from tests.conftest import SERVER, RealDatabase, make_shop
from tests.support.running import Noisegate, command, noisegate, start

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
        session.execute("SET noisegate.empty_groups = show")
        rows = session.execute("SELECT status, count(*), avg(amount) FROM orders GROUP BY status").fetchall()

    assert version == old_and_new.cluster.version
    assert [row[0] for row in rows] == ["open", "paid", "sent", "returned"]


def test_a_database_that_goes_away_is_told_before_anything_is_charged(database: RealDatabase, tmp_path: Path) -> None:
    with noisegate(tmp_path, database.reader_dsn) as running, _session(running) as session:
        assert session.execute(COUNT).fetchone() is not None
        before = running.ledger_length()
        database.cluster.stop()

        with pytest.raises(psycopg.Error) as refusal:
            session.execute(COUNT)
        assert refusal.value.sqlstate == "57P03"
        assert session.execute("SELECT count(*) FROM products").fetchone() == (30,)  # the twin has it
        assert running.ledger_length() == before

        again = Cluster.start(database.cluster.directory, binaries=SERVER)
        try:
            assert session.execute(COUNT).fetchone() is not None
        finally:
            again.stop()
    assert running.ledger_length() == before + 2  # what was charged, and what was kept for it


def test_another_database_at_the_same_address_is_neither_asked_nor_charged_for(
    database: RealDatabase, tmp_path: Path
) -> None:
    """It has the same tables, with the same OIDs, and other rows: its answers are not of this ledger."""
    home = database.cluster.directory
    with noisegate(tmp_path, database.reader_dsn) as running, _session(running) as session:
        assert session.execute(COUNT).fetchone() is not None
        before = running.ledger_length()
        database.cluster.stop()
        shutil.rmtree(home / "data")
        other = Cluster.start(home, binaries=SERVER)
        try:
            make_shop(other, "shop")
            with pytest.raises(psycopg.Error) as refusal:
                session.execute(COUNT)
        finally:
            other.stop()
    assert refusal.value.sqlstate == "57P03"
    assert running.events("database")[0]["reason"] == "other_database"
    assert running.ledger_length() == before


@pytest.mark.parametrize("home", ["file", "database"])
def test_a_fault_stops_its_analyst_at_all_proxies_until_it_is_forgiven(
    database: RealDatabase, tmp_path: Path, home: str
) -> None:
    """The first page of a table is broken, as disks break it: planning does not meet it, reading does."""
    broken = _with_broken_page(database, "orders")
    ledger = _ledger_in(broken) if home == "database" else ""
    place = ("--ledger", ledger) if ledger else ()
    try:
        with noisegate(tmp_path, broken.reader_dsn, ledger=ledger) as running, _session(running) as session:
            other = start(running.rules, broken.reader_dsn, arguments=place)
            other.wait_for("ready")
            with pytest.raises(psycopg.errors.SystemError, match="failed after it was charged"):
                session.execute("SELECT count(*) FROM orders WHERE amount > 123.25")
            said = running.wait_for("fault")
            with psycopg.connect(other.dsn(sslmode="disable"), autocommit=True) as elsewhere:
                for each in (session, elsewhere):
                    with pytest.raises(psycopg.errors.ConfigurationLimitExceeded, match="your statements are refused"):
                        each.execute(COUNT)
                with psycopg.connect(other.dsn("bob", sslmode="disable"), autocommit=True) as bob:
                    assert bob.execute(COUNT).fetchone() is not None
                rules = str(running.rules)
                shown = command("ledger", "show", rules, *place, database=broken.reader_dsn)
                lifted = command("ledger", "forgive", rules, "ada", *place, database=broken.reader_dsn)
                again, nobody = (
                    command("ledger", "forgive", rules, name, *place, database=broken.reader_dsn)
                    for name in ("ada", "adda")
                )
                assert elsewhere.execute(COUNT).fetchone() is not None
            other.stop()
    finally:
        broken.cluster.stop()

    assert (said["level"], said["analyst"], said["kind"]) == ("error", "ada", "XX")
    assert "123.25" in str(said["inner_sql"])
    assert "ada is stopped since" in shown.stdout
    assert (lifted.returncode, lifted.stdout) == (0, "ada can query again\n")
    assert (again.returncode, again.stderr) == (1, "noisegate: ada is not stopped\n")
    words = 'there is no analyst "adda" in the rules or the ledger; did you mean "ada"?'
    assert (nobody.returncode, nobody.stderr) == (1, f"noisegate: {words}\n")


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
            _kill(running, "proxy.execute.worker")
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


def _with_broken_page(database: RealDatabase, table: str) -> RealDatabase:
    """The same database, started anew over a table whose first page has no valid header."""
    with database.connect() as connection:
        (path,) = connection.execute("SELECT pg_relation_filepath(%s)", (table,)).fetchone() or ("",)
    database.cluster.stop()
    with (database.cluster.directory / "data" / path).open("r+b") as file:
        file.write(b"\xff" * 24)
    return RealDatabase(Cluster.start(database.cluster.directory, binaries=SERVER), database.name)


def _ledger_in(database: RealDatabase) -> str:
    with database.connect() as connection:
        connection.execute("CREATE DATABASE ledger")
    return f"postgresql://{OWNER}@/ledger?host={database.cluster.directory}"


def _session(running: Noisegate) -> psycopg.Connection:
    session = psycopg.connect(running.dsn(), autocommit=True)
    session.execute(FRESH)
    return session


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
        children = [int(child) for path in lists for child in path.read_text().split()]
    except OSError:
        return []
    return [*children, *(descendant for child in children for descendant in _descendants(child))]


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
