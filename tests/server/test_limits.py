"""How many may be in, and for how long one may stand at the door."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack

import psycopg
import pytest

from proxy.server.admission import FailedLogins, PendingLogins, SessionSlots
from proxy.server.tls import Tls
from proxy.settings import ServerSettings
from proxy.twin.embedded import Cluster
from proxy.wire.backend import ErrorResponse
from proxy.wire.startup import LoginRefused, SSLRequest, StartupMessage
from tests.server.relay import Relay, eventually, running_relay


def test_an_analyst_has_so_many_sessions_and_the_house_so_many_in_all(cluster: Cluster) -> None:
    settings = ServerSettings(port=0, max_connections=3, max_connections_per_analyst=2, drain_timeout_seconds=0)
    with running_relay(cluster, settings) as relay, ExitStack() as stack:
        for _ in range(2):
            stack.enter_context(psycopg.connect(relay.dsn()))
        with pytest.raises(psycopg.OperationalError, match='too many connections for role "ada"'):
            psycopg.connect(relay.dsn())
        stack.enter_context(psycopg.connect(relay.dsn(user="grace")))
        with pytest.raises(psycopg.OperationalError, match="too many clients already"):
            psycopg.connect(relay.dsn(user="grace"))


def test_a_session_that_ends_gives_its_seat_to_another(cluster: Cluster) -> None:
    settings = ServerSettings(port=0, max_connections_per_analyst=1)
    with running_relay(cluster, settings) as relay:
        for _ in range(20):
            psycopg.connect(relay.dsn()).close()
            assert eventually(lambda: not len(relay.context.seats))


def test_seats_are_counted_by_analyst_and_forgotten_when_they_are_left() -> None:
    seats = SessionSlots(in_all=2, per_analyst=1)

    seats.take("ada")
    for user in ("ada", "ada"):
        with pytest.raises(LoginRefused) as caught:
            seats.take(user)
        assert caught.value.sqlstate == "53300"
    seats.take("bob")
    seats.leave("ada")

    assert len(seats) == 1
    seats.take("ada")


def test_a_crowd_that_says_nothing_does_not_keep_an_analyst_out(cluster: Cluster) -> None:
    settings = ServerSettings(port=0, max_logins=5, drain_timeout_seconds=0)
    with running_relay(cluster, settings) as relay, ExitStack() as stack:
        crowd = [stack.enter_context(relay.socket()) for _ in range(20)]

        psycopg.connect(relay.dsn()).close()

        assert crowd[0].recv(1) == b""
        assert len(relay.context.doorway) <= 5


def test_one_address_has_a_limit_of_its_own_at_the_door() -> None:
    gone: list[int] = []
    doorway = PendingLogins(10, per_host=2)
    turns = [lambda number=number: gone.append(number) for number in range(5)]

    doorway.enter(turns[0], "10.0.0.1")
    doorway.enter(turns[1], "10.0.0.1")
    doorway.enter(turns[2], "10.0.0.2")
    doorway.spoke(turns[0])
    doorway.enter(turns[3], "10.0.0.1")
    doorway.enter(turns[4], "10.0.0.1")

    assert gone == [1, 3]
    assert len(doorway) == 3


def test_the_doorway_lets_the_oldest_go() -> None:
    gone: list[int] = []
    doorway = PendingLogins(2)
    turns = [lambda number=number: gone.append(number) for number in range(4)]

    doorway.enter(turns[0])
    doorway.enter(turns[1])
    doorway.leave(turns[0])
    doorway.leave(turns[0])
    doorway.enter(turns[2])
    doorway.enter(turns[3])

    assert gone == [1]


def test_who_crowds_the_doorway_is_turned_out_of_it_and_nobody_else() -> None:
    gone: list[str] = []
    doorway = PendingLogins(4)
    turns = {name: (lambda name=name: gone.append(name)) for name in ("ada", "1", "2", "3", "4", "5", "6", "bob")}

    doorway.enter(turns["ada"], "10.0.0.1")
    for name in "12345":
        doorway.enter(turns[name], "10.0.0.9")
    assert gone == ["1", "2"]
    doorway.spoke(turns["3"])
    doorway.spoke(turns["3"])
    doorway.enter(turns["6"], "10.0.0.9")
    assert gone == ["1", "2", "4"]
    for name in "56":
        doorway.spoke(turns[name])
    doorway.enter(turns["bob"], "10.0.0.2")
    assert gone == ["1", "2", "4", "3"]
    for turn in turns.values():
        doorway.leave(turn)
    assert (len(doorway), doorway._silent, dict(doorway._by_host)) == (0, {}, {})


def test_whose_first_bytes_wait_to_be_read_is_not_turned_out_as_silent() -> None:
    doorway, turned_out = PendingLogins(3), list[str]()
    for name, has_sent in ("early", True), ("silent", False), ("late", True), ("new", False):
        doorway.enter(lambda name=name: turned_out.append(name), "here", lambda has_sent=has_sent: has_sent)  # type: ignore[misc]

    assert turned_out == ["silent"]


_FLOOD = """
import socket, sys
from collections import deque
crowd = deque(maxlen=200)
while True:
    if len(crowd) == 200:
        crowd.popleft().close()
    try:
        crowd.append(socket.create_connection(("127.0.0.1", int(sys.argv[1]))))
    except OSError:
        pass
"""


@pytest.fixture
def flooded(cluster: Cluster) -> Iterator[Relay]:
    """A proxy with twenty places before the login, and who opens connections without a word, as fast as they go."""
    settings = ServerSettings(port=0, max_logins=20, drain_timeout_seconds=0)
    with (
        running_relay(cluster, settings) as relay,
        # A process of its own: a thread would also keep the client from sending what it has to say.
        subprocess.Popen([sys.executable, "-c", _FLOOD, str(relay.port)]) as flood,
    ):
        yield relay
        flood.kill()


def test_a_flood_of_silent_connections_keeps_no_login_out(flooded: Relay) -> None:
    """Nearly all get in at once; whom the flood overtook before its first word gets in when it tries again."""
    failed = 0
    for _ in range(30):
        for _ in range(5):
            try:
                psycopg.connect(flooded.dsn(sslmode="disable")).close()
                break
            except psycopg.OperationalError:
                failed += 1
        else:
            pytest.fail("five tries, and no login")
    assert failed <= 6


@pytest.mark.extended
def test_wrong_passwords_make_the_next_one_wait_and_no_one_else(cluster: Cluster) -> None:
    with running_relay(cluster, ServerSettings(port=0, drain_timeout_seconds=0)) as relay:
        for _ in range(5):
            with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
                psycopg.connect(relay.dsn(password="wrong", sslmode="disable"))

        began = time.monotonic()
        psycopg.connect(relay.dsn(sslmode="disable")).close()
        assert time.monotonic() - began > 0.9
        began = time.monotonic()
        psycopg.connect(relay.dsn(user="grace", sslmode="disable")).close()
        assert time.monotonic() - began < 0.9


def test_what_wrong_passwords_cost_has_an_end() -> None:
    failures = FailedLogins()
    for _ in range(3):
        assert failures.seconds("a", "ada", 0) == 0
        failures.note("a", "ada", 0)
    assert failures.seconds("a", "ada", 0) == 0.25
    assert failures.seconds("b", "ada", 0) == failures.seconds("a", "bob", 0) == 0
    for number in range(2000):
        failures.note("a", f"user {number}", 0)
    assert failures.seconds("a", "bob", 0) == 5
    assert failures.seconds("a", "bob", 301) == 0
    for number in range(20_000):
        failures.note(f"{number}", "ada", 0)
    assert len(failures._counts) <= 10_000


@pytest.mark.parametrize("words", [b"", b"\0\0", SSLRequest().encode(), SSLRequest().encode()[:5], b"\x16"])
def test_who_does_not_say_who_he_is_in_time_is_cut_off_without_a_word(cluster: Cluster, tls: Tls, words: bytes) -> None:
    settings = ServerSettings(port=0, login_timeout_seconds=0.3)
    with running_relay(cluster, settings, tls=tls) as relay, relay.socket() as client:
        client.sendall(words)

        answer = b"".join(iter(lambda: client.recv(100), b""))

        assert answer in (b"", b"S")
        assert eventually(lambda: not len(relay.context.doorway))


def test_who_does_not_show_his_password_in_time_is_told(cluster: Cluster) -> None:
    settings = ServerSettings(port=0, login_timeout_seconds=0.3)
    with running_relay(cluster, settings) as relay, relay.socket() as client:
        client.sendall(StartupMessage({"user": "ada"}).encode())

        answer = b"".join(iter(lambda: client.recv(1000), b""))

        last = ErrorResponse.decode(answer[answer.index(b"E\0\0") :])
        assert (last.fields["S"], last.sqlstate) == ("FATAL", "57014")


@pytest.mark.extended
def test_a_login_in_time_is_not_disturbed_later(cluster: Cluster) -> None:
    settings = ServerSettings(port=0, login_timeout_seconds=2)
    with running_relay(cluster, settings) as relay, psycopg.connect(relay.dsn()) as connection:
        time.sleep(2.2)
        assert connection.execute("select 1").fetchone() == (1,)
