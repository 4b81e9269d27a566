"""Measure with PostgreSQL's own pgbench: one script, so many clients, so many seconds, every latency written down."""

import os
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from proxy.twin.embedded import server_binaries

PGBENCH = server_binaries(18) / "pgbench"


@dataclass(frozen=True, slots=True)
class Target:
    """Where the statements go."""

    dsn: str
    options: str = ""


@dataclass(frozen=True, slots=True)
class Run:
    """What one run of pgbench saw."""

    median_ms: float
    per_second: float


def run(target: Target, sql: str, *, clients: int, seconds: float, protocol: str = "simple") -> Run:
    """Send one statement again and again."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "script.sql"
        script.write_text(f"{sql};\n")
        count = [str(PGBENCH), "-n", "-M", protocol, "-c", str(clients), "-j", "1", "-T", str(max(1, round(seconds)))]
        log = ["-l", "--log-prefix", f"{folder}/log", "-f", str(script)]
        done = subprocess.run(
            [*count, *log, target.dsn],
            env=os.environ | {"PGOPTIONS": target.options},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise RuntimeError(done.stderr[-2000:])
        microseconds = [float(line.split()[2]) for path in Path(folder).glob("log*") for line in _lines(path)]
    return Run(median(microseconds) / 1000, len(microseconds) / seconds)


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines()
