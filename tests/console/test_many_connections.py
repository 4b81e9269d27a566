"""Strangers at the web console's port and the operators' one, who know how to connect: the proxy goes on."""

import socket
import ssl
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from http.client import HTTPException
from pathlib import Path
from threading import Event

import psycopg
import pytest

from tests.conftest import RealDatabase, make_shop
from tests.console.web import PORT, RULES, Visitor, port_of
from tests.server.relay import eventually
from tests.support.running import Noisegate, noisegate

CONTEXT = ssl._create_unverified_context()
HEAD = b"%s HTTP/1.1\r\nHost: localhost\r\n"


@pytest.fixture(scope="module")
def running(shop: RealDatabase, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Noisegate]:
    database = make_shop(shop.cluster, "crowded_shop")
    arguments = (*PORT, "--metrics-port", "0")
    place = tmp_path_factory.mktemp("crowd")
    with noisegate(place, database.reader_dsn, rules=RULES, name=database.name, arguments=arguments) as served:
        yield served


def open_files(running: Noisegate) -> int:
    return len(list(Path(f"/proc/{running.process.pid}/fd").iterdir()))


def secure(port: int) -> ssl.SSLSocket:
    return CONTEXT.wrap_socket(socket.create_connection(("127.0.0.1", port), timeout=20))


def health(port: int) -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=20) as asking:
        asking.sendall(b"GET /healthz HTTP/1.1\r\n\r\n")
        return asking.recv(15)


@pytest.mark.parametrize("name", ["console_port", "operator_port"])
def test_silent_connections_do_not_take_the_open_files(running: Noisegate, name: str) -> None:
    port, before = int(str(running.wait_for(name)["port"])), open_files(running)
    with ExitStack() as stack:
        for _ in range(400):
            stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=20))
        if name == "operator_port":
            assert health(port) == b"HTTP/1.1 200 OK"
        else:
            assert Visitor(port).get("/login").status == 200
        assert open_files(running) < before + 120
        with psycopg.connect(running.dsn(), autocommit=True) as session:
            assert session.execute("SELECT 1").fetchone() == (1,)


@pytest.mark.parametrize(
    "rest", [b"G", HEAD % b"POST /login" + b"Content-Length: 9\r\n\r\n", HEAD % b"GET /static/console.css" + b"\r\n"]
)
def test_connections_that_never_come_to_an_end_keep_no_browser_out(running: Noisegate, rest: bytes) -> None:
    port = port_of(running)
    with ExitStack() as stack:
        for _ in range(80):
            with suppress(OSError):
                slow = stack.enter_context(secure(port))
                slow.sendall(HEAD % b"GET /login" + b"\r\n")
                assert slow.recv(100)
                slow.sendall(rest)
        assert Visitor(port).get("/login").status == 200


def test_a_body_in_chunks_is_refused_before_it_is_read(running: Noisegate) -> None:
    with closing(secure(port_of(running))) as slow:
        slow.sendall(HEAD % b"POST /login" + b"Transfer-Encoding: chunked\r\n\r\n")
        assert slow.recv(100).startswith(b"HTTP/1.1 400 ")
        began = time.monotonic()
        with suppress(OSError):
            while time.monotonic() < began + 20:
                slow.sendall(b"1\r\na\r\n" * 1000)
        assert time.monotonic() < began + 10


def test_the_login_has_short_fields(running: Noisegate) -> None:
    visitor = Visitor(port_of(running))
    assert visitor.log_in("root", "x" * 40_000).status == 413
    assert visitor.log_in("root", "x" * 900).status == 403
    assert visitor.get("/login/").status == 404


def test_those_who_wait_after_wrong_passwords_keep_nobody_from_the_login(running: Noisegate) -> None:
    port = port_of(running)

    has_come = Event()

    def guess(number: int) -> None:
        guesser = Visitor(port, address=f"127.3.0.{number % 6 + 1}")
        while not has_come.wait(0.2):
            with suppress(OSError, HTTPException):  # of too many connections some are closed
                guesser.log_in("ada", "wrong")

    def is_full() -> bool:
        refused = [str(event["sqlstate"]) for event in running.events("login_refused")]
        return refused.count("53300") > 20

    with ThreadPoolExecutor(72) as threads:
        guesses = [threads.submit(guess, number) for number in range(72)]
        try:
            assert eventually(is_full, seconds=30)
            assert Visitor(port).log_in("ada").headers["location"] == "/me"
        finally:
            has_come.set()
        for each in guesses:
            each.result()
