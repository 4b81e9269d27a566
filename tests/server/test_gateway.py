"""Clients behind a load balancer have their own addresses; connections that hang in TLS's handshake have an end."""

import socket
import ssl
import struct
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from ipaddress import ip_network

import psycopg
import pytest

from proxy.server.tls import Tls
from proxy.settings import ServerSettings
from proxy.twin.embedded import Cluster
from proxy.wire.startup import SSLRequest, StartupMessage
from tests.server.relay import USER, Relay, eventually, running_relay

SETTINGS = ServerSettings(
    port=0, gateways=(ip_network("127.0.0.1"),), max_logins_per_address=2, drain_timeout_seconds=0
)


@pytest.fixture(scope="module")
def balanced(cluster: Cluster, tls: Tls) -> Iterator[Relay]:
    with running_relay(cluster, SETTINGS, tls=tls) as relay:
        accounts = relay.context.accounts
        known = {**accounts.accounts, USER: replace(accounts.accounts[USER], networks=(ip_network("203.0.113.0/24"),))}  # type: ignore[attr-defined]
        relay.context.accounts = replace(accounts, accounts=known)  # type: ignore[type-var]
        yield relay


@contextmanager
def balancer(relay: Relay, client: str) -> Iterator[int]:
    """A port whose connections are passed on as those of a client."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            try:
                while True:
                    near, _ = listening.accept()
                    far = relay.socket()
                    far.sendall(f"PROXY TCP4 {client} 127.0.0.1 50000 {relay.port}\r\n".encode())
                    for source, target in ((near, far), (far, near)):
                        threading.Thread(target=_pass_on, args=(source, target), daemon=True).start()
            except OSError:
                """The test is over."""

        threading.Thread(target=serve, daemon=True).start()
        yield int(listening.getsockname()[1])
        listening.shutdown(socket.SHUT_RDWR)


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    try:
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        """One of them is gone."""


def test_a_client_behind_a_balancer_is_let_in_by_its_own_address(balanced: Relay) -> None:
    with balancer(balanced, "203.0.113.7") as port:
        psycopg.connect(balanced.dsn(port=port, sslmode="require")).close()
        with pytest.raises(psycopg.OperationalError, match="require TLS"):  # it is on another machine
            psycopg.connect(balanced.dsn(port=port, sslmode="disable"))
    with balancer(balanced, "198.51.100.7") as port, pytest.raises(psycopg.OperationalError, match="password"):
        psycopg.connect(balanced.dsn(port=port, sslmode="require"))


def test_a_balancer_that_does_not_say_whose_a_connection_is_passes_none_on(balanced: Relay) -> None:
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(balanced.dsn())
    with balanced.socket() as bare:
        bare.sendall(b"PROXY TCP4 203.0.113.7\r\n" + StartupMessage({"user": USER}).encode())
        assert b"PROXY protocol" in bare.recv(4096)


def test_nobody_else_is_believed_to_be_a_balancer(relay: Relay) -> None:
    with relay.socket() as bare:
        bare.sendall(b"PROXY TCP4 203.0.113.7 127.0.0.1 50000 6543\r\n" + StartupMessage({"user": USER}).encode())
        assert bare.recv(4096)[:1] != b"R"


def test_a_check_that_resets_its_connection_is_nobody(balanced: Relay, caplog: pytest.LogCaptureFixture) -> None:
    """As HAProxy's do. Whether the reset is there before us is a matter of time, so there are many."""
    for _ in range(300):
        with balanced.socket() as check:
            check.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            check.sendall(b"PROXY UNKNOWN\r\n")
    assert eventually(lambda: not len(balanced.listener) and not len(balanced.context.doorway))
    assert not [record for record in caplog.records if "login_refused" in record.getMessage()]


def test_one_client_behind_a_balancer_crowds_no_other_out(balanced: Relay) -> None:
    with ExitStack() as stack:
        crowd = [stack.enter_context(balanced.socket()) for _ in range(6)]
        for socket in crowd:
            socket.sendall(b"PROXY TCP4 203.0.113.9 127.0.0.1 50000 6543\r\n")
        assert eventually(lambda: len(balanced.context.doorway) == 2)
        with balancer(balanced, "203.0.113.7") as port:
            psycopg.connect(balanced.dsn(port=port, sslmode="require")).close()
        assert len(balanced.context.doorway) == 2


@pytest.mark.extended
def test_a_silent_handshake_is_one_of_its_addresss_and_ends_with_the_time_for_a_login(
    cluster: Cluster, tls: Tls
) -> None:
    settings = ServerSettings(
        port=0, max_logins=5, max_logins_per_address=3, login_timeout_seconds=2, drain_timeout_seconds=0
    )
    with running_relay(cluster, settings, tls=tls) as relay, ExitStack() as stack:
        crowd = [stack.enter_context(relay.socket()) for _ in range(8)]
        for socket in crowd:
            socket.sendall(SSLRequest().encode())
        assert eventually(lambda: len(relay.context.doorway) == 3)
        for socket in crowd[::2]:
            with suppress(OSError):  # it was turned out
                socket.sendall(ssl_hello()[:40])  # not even the whole of the first message

        psycopg.connect(relay.dsn(sslmode="require")).close()

        assert eventually(lambda: not len(relay.context.doorway) and not len(relay.listener), 20)


def test_a_proxy_ends_while_clients_leave_in_the_middle_of_a_handshake(cluster: Cluster, tls: Tls) -> None:
    for _ in range(5):
        with running_relay(cluster, tls=tls) as relay, ExitStack() as stack:
            for _ in range(5):
                each = stack.enter_context(relay.socket())
                each.sendall(SSLRequest().encode())
                assert each.recv(1) == b"S"


def ssl_hello() -> bytes:
    context = ssl.create_default_context()
    outgoing = ssl.MemoryBIO()
    half = context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        half.do_handshake()
    return outgoing.read()
