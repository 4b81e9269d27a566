"""The memory of a running proxy, as the machine sees it, while clients do what they can about it."""

import os
import socket
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


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="Linux alone tells the memory of a process")
def test_statements_that_were_refused_are_not_kept_by_the_proxy(proxy: Noisegate) -> None:
    with psycopg.connect(proxy.dsn(), autocommit=True) as client:
        before = _resident_bytes(proxy.process.pid)
        for number in range(60):
            refused = client.pgconn.exec_params(
                f"SELECT * FROM customers WHERE name = $1 AND id > {number} LIMIT 3".encode(), [b"x" * 3 * MEGABYTE]
            )
            assert refused.error_field(psycopg.pq.DiagnosticField.SQLSTATE) == b"42501"
        assert _resident_bytes(proxy.process.pid) - before < 60 * MEGABYTE


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="Linux alone tells the memory of a process")
def test_what_closed_sessions_have_sent_is_not_kept_by_the_proxy(proxy: Noisegate) -> None:
    before = _resident_bytes(proxy.process.pid)
    for _ in range(40):
        client = psycopg.connect(proxy.dsn(sslmode="disable"), autocommit=True)
        with socket.socket(fileno=os.dup(client.fileno())) as own:
            own.settimeout(20)
            own.sendall(b"Q" + (4_000_000).to_bytes(4) + b"x" * 3_900_000)  # the rest never comes
        client.close()
    assert _resident_bytes(proxy.process.pid) - before < 60 * MEGABYTE


def _resident_bytes(process: int) -> int:
    status = Path(f"/proc/{process}/status").read_text()
    (line,) = (line for line in status.splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) * 1024
