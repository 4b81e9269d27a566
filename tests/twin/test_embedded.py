"""The embedded PostgreSQL runs, keeps to itself, and leaves nothing behind."""

import os
import signal
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psycopg
import pytest

from proxy.process_isolation import bare_environment
from proxy.twin import embedded
from proxy.twin.embedded import Cluster, ClusterError

CHILD = """
import sys, time
from proxy.twin.embedded import Cluster
cluster = Cluster.start()
print(cluster.directory, flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("version", [16, 18])
def test_a_cluster_of_the_wanted_version_answers_on_a_private_socket(version: int) -> None:
    cluster = Cluster.start(version=version)
    try:
        with psycopg.connect(cluster.dsn()) as connection:
            assert connection.info.server_version // 10000 == version
            assert connection.execute("SHOW listen_addresses").fetchone() == ("",)
            assert connection.execute("SHOW server_encoding").fetchone() == ("UTF8",)
        assert stat.S_IMODE(cluster.directory.stat().st_mode) == 0o700
    finally:
        cluster.stop()
    assert not cluster.directory.exists()


def test_a_cluster_in_a_given_directory_keeps_its_data_for_the_next_start(cluster_home: Path) -> None:
    first = Cluster.start(cluster_home)
    with psycopg.connect(first.dsn(), autocommit=True) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 1 AS a")
    first.stop()
    first.stop()

    second = Cluster.start(cluster_home)
    with psycopg.connect(second.dsn()) as connection:
        assert connection.execute("SELECT a FROM kept").fetchone() == (1,)
    second.stop()


def test_killing_the_parent_outright_ends_the_server_and_removes_its_directory() -> None:
    with subprocess.Popen([sys.executable, "-c", CHILD], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        directory = Path(parent.stdout.readline().strip())
        postmaster = int((directory / "data" / "postmaster.pid").read_text().split()[0])
        parent.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 20
    while (directory.exists() or _alive(postmaster)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not directory.exists()
    assert not _alive(postmaster)


def test_a_statement_that_wants_too_much_memory_fails_and_its_neighbours_live() -> None:
    cluster = Cluster.start(memory_limit_bytes=2**30)
    try:
        with psycopg.connect(cluster.dsn()) as neighbour, psycopg.connect(cluster.dsn()) as greedy:
            greedy.execute("SET work_mem = '1000GB'")
            with pytest.raises(psycopg.errors.OutOfMemory):
                greedy.execute("SELECT array_agg(repeat('x', 1000000) || n) FROM generate_series(1, 2000) AS n")
            assert neighbour.execute("SELECT 1").fetchone() == (1,)
    finally:
        cluster.stop()


def test_a_server_that_ends_by_itself_is_noticed_and_leaves_no_keeper(cluster_home: Path) -> None:
    cluster = Cluster.start(cluster_home)
    os.kill(int((cluster_home / "data" / "postmaster.pid").read_text().split()[0]), signal.SIGQUIT)
    deadline = time.monotonic() + 20
    while cluster.is_running() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not cluster.is_running()
    cluster.stop()


def test_a_server_that_cannot_start_says_why(cluster_home: Path) -> None:
    with pytest.raises(ClusterError, match="no_such_setting"):
        Cluster.start(cluster_home, settings={"no_such_setting": "1"})


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{process}/status")
    return not status.exists() or "State:\tZ" not in status.read_text()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs the server as somebody else")
def test_a_server_below_a_home_that_is_closed_to_others_runs_from_a_copy(
    cluster_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster_home.chmod(0o755)
    monkeypatch.setattr(embedded, "can_run", lambda binaries: False)
    monkeypatch.setattr(tempfile, "tempdir", str(cluster_home))

    for _ in range(2):
        cluster = Cluster.start()
        with psycopg.connect(cluster.dsn()) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
        cluster.stop()

    assert len(list(cluster_home.iterdir())) == 1


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="Linux alone shows what a process has")
def test_a_server_has_no_secret_and_no_file_of_ours(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Whoever takes over one of its processes must find nothing there but the twin."""
    monkeypatch.setenv("NOISEGATE_DATABASE", "password=the-secret")
    monkeypatch.setenv("PGPASSWORD", "the-secret")
    held = (tmp_path / "ours").open("w")
    os.set_inheritable(held.fileno(), True)
    cluster = Cluster.start()
    try:
        postmaster = cluster._postmaster
        keeper = cluster._keeper.pid
        with psycopg.connect(cluster.dsn()) as connection:
            for process in (keeper, postmaster, connection.info.backend_pid):
                environment = Path(f"/proc/{process}/environ").read_bytes()
                assert b"secret" not in environment
                assert {entry.partition(b"=")[0] for entry in environment.split(b"\0") if b"=" in entry} <= {
                    *(name.encode() for name in bare_environment("PYTHON")),
                    *(b"PGDATA", b"PG_GRANDPARENT_PID", b"PGLOCALEDIR", b"PGSYSCONFDIR"),
                    *(name.encode() for name in ("LC_COLLATE", "LC_CTYPE", "LC_MESSAGES", "LC_MONETARY")),
                    *(name.encode() for name in ("LC_NUMERIC", "LC_TIME")),
                }
            files = {file.resolve() for file in Path(f"/proc/{postmaster}/fd").iterdir()}
        assert (tmp_path / "ours").resolve() not in files
        if os.geteuid() == 0:
            assert Path(f"/proc/{postmaster}").stat().st_uid != 0
    finally:
        cluster.stop()
        held.close()


def test_killing_the_keeper_outright_ends_the_server_and_removes_its_directory() -> None:
    cluster = Cluster.start()
    os.kill(cluster._keeper.pid, signal.SIGKILL)

    cluster.stop()

    assert not cluster.directory.exists()
    assert not _alive(cluster._postmaster)
