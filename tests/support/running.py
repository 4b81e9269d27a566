"""A proxy as a DBA runs it: the command line in a process of its own, in front of a real database."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from unittest.mock import patch

from proxy.cli import main
from proxy.server.tls import write_certificate
from tests.support import shop

START_SECONDS = 60


@dataclass
class Noisegate:
    """One `noisegate serve`. Its lines of standard error are kept, to be read as events or as words."""

    process: subprocess.Popen[str]
    rules: Path
    database: str
    lines: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        Thread(target=self._read, daemon=True).start()

    @property
    def port(self) -> int:
        return int(str(self.events("listening")[0]["port"]))

    def dsn(self, analyst: str = "ada", **options: str | int) -> str:
        """How libpq reaches it."""
        parts: dict[str, str | int] = {
            "host": "127.0.0.1",
            "port": self.port,
            "dbname": self.database,
            "user": analyst,
            "password": shop.PASSWORDS[analyst],
            "sslmode": "require",
            "connect_timeout": 10,
        }
        return " ".join(f"{name}={value}" for name, value in (parts | options).items())

    def events(self, name: str) -> list[dict[str, object]]:
        """What the log says of one kind of event."""
        said = [json.loads(line) for line in self.lines if line.startswith("{")]
        return [event for event in said if event["event"] == name]

    def wait_for(self, name: str, *, count: int = 1) -> dict[str, object]:
        """Wait until the log has an event so many times; return the last."""
        deadline = time.monotonic() + START_SECONDS
        while len(found := self.events(name)) < count:
            assert self.process.poll() is None or self.events(name), "\n".join(self.lines)
            assert time.monotonic() < deadline, "\n".join(self.lines)
            time.sleep(0.02)
        return found[count - 1]

    def ledger_length(self) -> int:
        """How many charges and faults its ledger has, read in the file itself."""
        place = f"file:{self.rules.with_suffix('.ledger')}?mode=ro"
        with closing(sqlite3.connect(place, uri=True)) as ledger:
            (length,) = ledger.execute("SELECT count(*) FROM entries").fetchone()
        return int(length)

    def stop(self) -> int:
        """End it as a DBA does; its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(START_SECONDS)

    def _read(self) -> None:
        assert self.process.stderr is not None
        self.lines.extend(line.rstrip("\n") for line in self.process.stderr)


def command(*arguments: str, database: str = "", given: str = "") -> subprocess.CompletedProcess[str]:
    """Run one command of ours to its end, with `given` as its input."""
    line = [sys.executable, "-m", "proxy", *arguments]
    return subprocess.run(
        line, env=_environment(database), capture_output=True, text=True, timeout=START_SECONDS, check=False,
        input=given,
    )  # fmt: skip


def run_here(*arguments: str, database: str) -> int:
    """Run one command of ours in a thread, which has no event loop yet: a process of its own takes longer to start."""
    with patch.dict(os.environ, _environment(database)), ThreadPoolExecutor(1) as thread:
        return thread.submit(main, arguments).result()


@contextmanager
def noisegate(
    directory: Path,
    database_dsn: str,
    *,
    rules: str = shop.RULES,
    name: str = "shop",
    ledger: str = "",
    arguments: tuple[str, ...] = (),
) -> Iterator[Noisegate]:
    """Serve a database by these rules, with a certificate and a ledger made for it, until the block is left."""
    path = shop.rules_file(directory, rules)
    certificate, key = write_certificate(directory)
    place = ("--ledger", ledger) if ledger else ()
    assert run_here("ledger", "init", str(path), *place, database=database_dsn) == 0
    tls = ("--tls-certificate", str(certificate), "--tls-key", str(key))
    running = start(path, database_dsn, name=name, arguments=(*tls, *place, *arguments))
    try:
        running.wait_for("ready")
        yield running
    finally:
        running.stop()


def start(
    rules: Path,
    database_dsn: str,
    *,
    name: str = "shop",
    arguments: tuple[str, ...] = (),
    environment: Mapping[str, str] | None = None,
    program: tuple[str, ...] = ("proxy",),
) -> Noisegate:
    """Start `noisegate serve` on any free port, and do not wait."""
    process = subprocess.Popen(
        [sys.executable, "-m", *program, "serve", str(rules), "--port", "0", *arguments],
        env={**_environment(database_dsn), **(environment or {})},
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    return Noisegate(process, rules, name)


def _environment(database: str) -> Mapping[str, str]:
    return os.environ | {"NOISEGATE_DATABASE": database}
