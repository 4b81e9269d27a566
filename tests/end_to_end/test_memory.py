"""The memory of a running proxy, as the machine sees it, while clients do what they can about it."""

import time
from pathlib import Path

import psycopg
import pytest

from tests.support.running import Noisegate

MEGABYTE = 1024**2


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="Linux alone tells the memory of a process")
def test_results_that_nobody_reads_are_not_kept_by_the_proxy(proxy: Noisegate) -> None:
    before = _resident_bytes(proxy.process.pid)
    clients = [psycopg.connect(proxy.dsn(), autocommit=True) for _ in range(6)]
    try:
        for client in clients:
            client.pgconn.send_query(b"SELECT repeat('x', 40000000)")
        with psycopg.connect(proxy.dsn("bob"), autocommit=True) as neighbour:
            deadline = time.monotonic() + 5
            while time.monotonic() < deadline:
                assert neighbour.execute("SELECT 1").fetchone() == (1,)
                assert _resident_bytes(proxy.process.pid) - before < 40 * MEGABYTE
                time.sleep(0.1)
    finally:
        for client in clients:
            client.close()


def _resident_bytes(process: int) -> int:
    status = Path(f"/proc/{process}/status").read_text()
    (line,) = (line for line in status.splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) * 1024
