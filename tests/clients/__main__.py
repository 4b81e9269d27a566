"""Installs every client that can be had here, runs the tests of all of them, and prints the table of docs/tools.md.

    python -m tests.clients

What cannot be installed is skipped, and the table says so. Debian's packages are installed where we are root.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

from proxy.twin.embedded import BINARIES, server_binaries

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
GO_LIBRARIES = ("golang-github-lib-pq-dev", "golang-github-jackc-pgx-v4-dev")
DEBIAN = (
    "odbc-postgresql", "unixodbc", "pgbouncer", "golang-go", *GO_LIBRARIES, "postgresql", "libpostgresql-jdbc-java",
    "default-jre-headless", "nodejs", "npm",
)  # fmt: skip
PYTHON = ("psycopg", "psycopg2", "asyncpg", "pg8000", "sqlalchemy", "pandas", "ibis", "pgcli", "parquet")
PACKAGES = {"psycopg2": "psycopg2-binary", "ibis": "ibis-framework", "parquet": "pyarrow"}
PARQUET = ROOT / "tests/synopses/test_parquet.py"  # no client, but in need of one's package


@dataclass(eq=False)
class Results:
    """How the tests of each file ended."""

    outcomes: dict[str, Counter[str]] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or report.outcome != "passed":
            self._note(report.location[0], report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.outcome != "passed":
            self._note(report.nodeid, report)

    def _note(self, path: str, report: pytest.TestReport | pytest.CollectReport) -> None:
        client = Path(path).stem.removeprefix("test_")
        self.outcomes.setdefault(client, Counter())[report.outcome] += 1
        if report.outcome == "skipped" and isinstance(report.longrepr, tuple):
            self.reasons[client] = str(report.longrepr[2]).removeprefix("Skipped: ")


def main() -> int:
    """The exit code is pytest's: a client that is not here is no failure."""
    _install()
    results = Results()
    code = pytest.main([str(HERE), str(PARQUET), "-q", "-m", "clients or not clients"], plugins=[results])
    for client, outcomes in sorted(results.outcomes.items()):
        said = ", ".join(f"{count} {outcome}" for outcome, count in sorted(outcomes.items()))
        reason = f" ({results.reasons[client]})" if client in results.reasons else ""
        print(f"| {client} | {_version(client)} | {said}{reason} |")
    return int(code)


def _install() -> None:
    apt = shutil.which("apt-get")
    if apt is not None and os.geteuid() == 0:
        _try(apt, "update", "-q")
        for package in DEBIAN:
            _try(apt, "install", "-y", "-q", "--no-install-recommends", package)
    pip = (sys.executable, "-m", "pip", "install", "-q", "-c", str(ROOT / "constraints.txt"))
    _try(*pip, "-e", f"{ROOT}[test,clients,parquet]")


def _try(*line: str) -> None:
    done = subprocess.run(line, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    if done.returncode != 0:
        print(f"could not be installed: {' '.join(line)}: {done.stderr.strip().splitlines()[-1:]}")


def _version(client: str) -> str:
    if client in PYTHON:
        try:
            return version(PACKAGES.get(client, client))
        except PackageNotFoundError:
            return ""
    if client in ("node", "postgresjs"):
        wanted = json.loads((HERE / "node" / "package.json").read_text())["dependencies"]
        return str(wanted["pg" if client == "node" else "postgres"])
    packages = {"odbc": "odbc-postgresql", "jdbc": "libpostgresql-jdbc-java", "postgres_fdw": "postgresql-15"}
    if client in packages:
        return _said("dpkg-query", "-W", "-f", "${Version}", packages[client])
    if client == "go":
        return ", ".join(_said("dpkg-query", "-W", "-f", "${Version}", package) for package in GO_LIBRARIES)
    own = {
        "psql": str(server_binaries(max(BINARIES)) / "psql"),
        "pgbench": str(server_binaries(max(BINARIES)) / "pgbench"),
    }
    return _said(own.get(client, client), "--version")


def _said(*line: str) -> str:
    """The version in what a program prints."""
    if shutil.which(line[0]) is None:
        return ""
    done = subprocess.run(line, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    found = re.search(r"\d+[.\d]*", done.stdout.partition(":")[2] or done.stdout)
    return found[0] if found else ""


if __name__ == "__main__":
    sys.exit(main())
