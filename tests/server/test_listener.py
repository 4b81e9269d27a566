"""Coming in and going out, with real statements."""

import asyncio
import socket
import threading
import time

import psycopg
import pytest

from proxy.server.server_context import is_loopback
from proxy.server.tls import Tls
from proxy.settings import ServerSettings
from proxy.twin.embedded import Cluster
from proxy.wire.startup import SSLRequest, StartupMessage
from tests.server.relay import eventually, running_relay
from tests.support.waiting import is_active


def test_a_statement_that_runs_is_finished_before_the_proxy_stops(cluster: Cluster) -> None:
    answers: list[object] = []

    def ask(connection: psycopg.Connection) -> None:
        answers.append(connection.execute("select 'finished' from pg_sleep(0.5)").fetchone())

    with running_relay(cluster, ServerSettings(port=0, drain_timeout_seconds=10)) as relay:
        busy, idle = (psycopg.connect(relay.dsn(), autocommit=True) for _ in range(2))
        thread = threading.Thread(target=ask, args=[busy])
        thread.start()
        assert eventually(lambda: is_active(cluster.dsn(), "'finished' from"), 20)

        started = time.monotonic()
        relay.call(relay.listener.stop())

        assert time.monotonic() - started < 5
        thread.join()
        assert answers == [("finished",)]
        with pytest.raises(psycopg.errors.AdminShutdown):
            idle.execute("select 1")


@pytest.mark.parametrize("step", ["nothing said", "asks for TLS", "is asked to begin", "has begun", "is being let in"])
def test_who_is_on_his_way_in_does_not_keep_the_proxy_from_stopping(cluster: Cluster, tls: Tls, step: str) -> None:
    settings = ServerSettings(port=0, drain_timeout_seconds=20)
    with running_relay(cluster, settings, tls=tls) as relay, relay.socket() as client:
        if step == "is being let in":
            client.sendall(StartupMessage({"user": "ada", "database": "shop"}).encode())
            assert client.recv(1) == b"R"
        elif step != "nothing said":
            client.sendall(SSLRequest().encode())
        if step in ("is asked to begin", "has begun"):
            assert client.recv(1) == b"S"
        if step == "has begun":
            client.sendall(bytes.fromhex("1603010200 010001fc 0303"))
        assert eventually(lambda: len(relay.listener) == 1)

        started = time.monotonic()
        relay.call(relay.listener.stop())

        assert time.monotonic() - started < 10
        assert len(relay.listener) == 0


def test_who_comes_while_the_proxy_stops_is_sent_away(cluster: Cluster) -> None:
    with running_relay(cluster, ServerSettings(port=0, drain_timeout_seconds=20)) as relay:

        async def stop() -> None:
            late = relay.listener._welcome()  # taken in by the loop, and not yet connected
            stopping = asyncio.create_task(relay.listener.stop())
            await asyncio.sleep(0)
            later = relay.listener._welcome()
            arriving = iter((late, later))
            for _ in range(2):
                ours, theirs = socket.socketpair()
                await asyncio.get_running_loop().create_connection(arriving.__next__, sock=ours)
                pairs.append(theirs)
            async with asyncio.timeout(10):
                await stopping

        pairs: list[socket.socket] = []
        relay.call(stop())

        assert [theirs.recv(100) for theirs in pairs] == [b"", b""]
        for theirs in pairs:
            theirs.close()


@pytest.mark.extended
def test_a_million_rows_pass_a_slow_reader_without_piling_up(cluster: Cluster) -> None:
    with running_relay(cluster) as relay, psycopg.connect(relay.dsn()) as connection:
        with connection.cursor().copy(
            "COPY (SELECT repeat('x', 100) FROM generate_series(1, 1000000)) TO STDOUT"
        ) as rows:
            for number, row in enumerate(rows):
                if number == 10:
                    time.sleep(0.5)
                assert len(row) == 101

        assert number == 999_999


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", True),
        ("127.8.9.10", True),
        ("::1", True),
        ("::ffff:127.0.0.1", True),
        ("", True),
        ("10.0.0.1", False),
        ("::ffff:10.0.0.1", False),
        ("fe80::1%eth0", False),
        ("localhost.evil.example", False),
    ],
)
def test_only_this_machine_is_loopback(host: str, *, expected: bool) -> None:
    assert is_loopback(host) is expected
