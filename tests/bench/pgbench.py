"""Measure with PostgreSQL's own pgbench: one statement, so many clients, so many seconds."""

import os
import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from proxy.twin.embedded import server_binaries

PGBENCH = server_binaries(18) / "pgbench"
FIGURE = re.compile(r"^(latency average|tps) = ([\d.]+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Target:
    """Where the statements go."""

    dsn: str
    options: str = ""


@dataclass(frozen=True, slots=True)
class Run:
    """What one run of pgbench saw. Its log of single latencies is too coarse for many clients: some are 0."""

    latency_ms: float
    per_second: float


def run(
    target: Target, sql: str, clients: int, seconds: float, *, protocol: str = "simple", connects: bool = False
) -> Run:
    """Send one statement again and again, over a new connection each time if it connects."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "script.sql"
        script.write_text(f"{sql};\n")
        count = ["-n", "-M", protocol, "-c", str(clients), "-j", "1", "-T", str(max(1, round(seconds)))]
        count += ["-C"] if connects else []
        done = subprocess.run(
            [str(PGBENCH), *count, "-f", str(script), target.dsn],
            env=os.environ | {"PGOPTIONS": target.options},
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode != 0:
        raise RuntimeError(done.stderr[-2000:])
    figures = {name: float(value) for name, value in FIGURE.findall(done.stdout)}
    per_second = figures["tps"]
    return Run(clients * 1000 / per_second if connects else figures["latency average"], per_second)
