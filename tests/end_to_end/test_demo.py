"""The demo, as somebody meets it who has just installed Noisegate."""

import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import psycopg
import pytest

from proxy.demo.run import ANALYST, DATABASE, PASSWORD


class Demo:
    """A running demo and what it has printed."""

    def __init__(self, home: Path, environment: Mapping[str, str] = os.environ) -> None:
        self.home = home
        self.process = subprocess.Popen(
            [sys.executable, "-m", "proxy", "demo", "--port", "0"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**environment, "TMPDIR": str(home)},
            start_new_session=True,
        )
        self.said = ""

    def wait(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said += line
            if "Ctrl-C ends" in line:
                return
        raise AssertionError(self.said)

    @property
    def port(self) -> int:
        found = re.search(r"port=(\d+)", self.said)
        assert found is not None
        return int(found[1])

    def connect(self) -> psycopg.Connection:
        target = f"host=127.0.0.1 port={self.port} dbname={DATABASE} user={ANALYST} password={PASSWORD} sslmode=require"
        return psycopg.connect(target, autocommit=True)

    def processes(self) -> list[int]:
        """All that run out of its home."""
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                line = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if str(self.home).encode() in line:
                found.append(int(entry.name))
        return found


@pytest.fixture
def home() -> Iterator[Path]:
    """A place for temporary files that only the demo uses, reachable by any user."""
    with tempfile.TemporaryDirectory(prefix="noisegate-demo-") as path:
        Path(path).chmod(0o755)
        yield Path(path)


@pytest.fixture
def demo(home: Path) -> Iterator[Demo]:
    running = Demo(home)
    running.wait()
    yield running
    if running.process.poll() is None:
        running.process.kill()
    running.process.wait()
    assert running.process.stdout is not None
    running.process.stdout.close()


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="processes are looked up in /proc")
def test_the_demo_answers_what_it_prints_and_leaves_nothing_behind(demo: Demo, home: Path) -> None:
    queries = [line.strip() for line in demo.said.splitlines() if line.startswith("    SELECT")]
    with demo.connect() as connection:
        by_city = connection.execute(queries[0]).fetchall()
        assert [row[0] for row in by_city][:3] == ["Berlin", "Lyon", "Porto"]
        assert abs(by_city[0][1] - 5370) < 100
        assert len(connection.execute(queries[1]).fetchall()) == 12
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute(queries[2])
    (line,) = (line for line in demo.said.splitlines() if "PGPASSWORD=" in line)
    assert shlex.split(line)[1].endswith("psql")

    os.killpg(demo.process.pid, signal.SIGINT)  # as a terminal does for Ctrl-C

    assert demo.process.wait(30) == 0
    _until(lambda: demo.processes() == [])
    assert [path for path in home.iterdir() if not path.name.startswith("noisegate-server-")] == []


@pytest.mark.extended
@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="processes are looked up in /proc")
def test_even_a_killed_demo_leaves_nothing_behind(demo: Demo, home: Path) -> None:
    demo.process.kill()
    demo.process.wait()

    _until(lambda: demo.processes() == [])
    _until(lambda: [path for path in home.iterdir() if not path.name.startswith("noisegate-server-")] == [])


def _until(holds: Callable[[], bool], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.1)
