"""How long others wait while some connections send without end and read nothing.

python -m tests.bench.flood
python -m tests.bench.flood --bar        # SELECT 1 of another analyst under 50 ms in 99 of 100, on two idle cores
"""

import argparse
import socket
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import median

import psycopg

from proxy.twin.embedded import Cluster
from proxy.wire.frontend import Bind, Execute, Parse
from tests.conftest import make_shop
from tests.support.running import Noisegate, noisegate

CONNECTIONS = 3
PART = b"".join(message.encode() for message in (Parse(b"", b"SELECT 1"), Bind(b"", b""), Execute(b""))) * 100_000
BAR_MS = 50
SECONDS = 6.0


def main() -> None:
    """Print one line for each thing that another analyst, or a supervisor, asks for."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.flood", description=__doc__.partition("\n")[0])
    parser.add_argument("--connections", type=int, default=CONNECTIONS, help="that send (default: 3)")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of each line (default: 6)")
    parser.add_argument("--bar", action="store_true", help="say whether SELECT 1 keeps its bar")
    given = parser.parse_args()
    cluster = Cluster.start()
    try:
        database = make_shop(cluster, "shop").reader_dsn
        with (
            tempfile.TemporaryDirectory() as folder,
            noisegate(Path(folder), database, arguments=("--metrics-port", "0")) as proxy,
            psycopg.connect(proxy.dsn("bob", sslmode="disable"), autocommit=True) as other,
        ):
            for number in (0, given.connections):
                for name, ask in _asked(proxy, other).items():
                    with flood(proxy, number):
                        times = _times(ask, given.seconds)
                    _tell(name, number, times, has_bar=given.bar and name == "SELECT 1")
    finally:
        cluster.stop()


def _asked(proxy: Noisegate, other: psycopg.Connection) -> dict[str, Callable[[], object]]:
    health = f"http://127.0.0.1:{proxy.wait_for('operator_port')['port']}/healthz"
    return {
        "SELECT 1": lambda: other.execute("SELECT 1").fetchall(),
        "a login": lambda: psycopg.connect(proxy.dsn("bob", sslmode="disable")).close(),
        "/healthz": lambda: urllib.request.urlopen(health, timeout=60).read(),
    }


@contextmanager
def flood(proxy: Noisegate, connections: int) -> Iterator[None]:
    """Let so many connections of one analyst send as fast as they can, and read nothing."""
    senders = [psycopg.connect(proxy.dsn("ada", sslmode="disable")) for _ in range(connections)]
    sockets = [socket.socket(fileno=sender.fileno()) for sender in senders]
    threads = [threading.Thread(target=_send, args=(each,), daemon=True) for each in sockets]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        for each in sockets:
            each.shutdown(socket.SHUT_RDWR)
            each.detach()
        for thread in threads:
            thread.join()


def _send(connection: socket.socket) -> None:
    connection.setblocking(True)
    with suppress(OSError):  # it is shut down at the end
        while True:
            connection.sendall(PART)


def _times(ask: Callable[[], object], seconds: float) -> list[float]:
    """In milliseconds, for at least so long."""
    times = []
    end = time.perf_counter() + seconds
    while (began := time.perf_counter()) < end:
        ask()
        times.append(1000 * (time.perf_counter() - began))
    return sorted(times)


def _tell(name: str, connections: int, times: list[float], *, has_bar: bool) -> None:
    tail = times[int(len(times) * 0.99)] if len(times) > 1 else times[0]
    bar = f"   at most {BAR_MS}: {'kept' if tail <= BAR_MS else 'missed'}" if has_bar and connections else ""
    figures = f"{median(times):>9.2f} ms median{tail:>9.2f} ms p99{times[-1]:>9.2f} ms at most"
    print(f"{name:<12}{connections:>3} connections send{len(times):>7} times{figures}{bar}", flush=True)


if __name__ == "__main__":
    main()
