"""How many may be in, and for how long one may stand at the door."""

import time
from contextlib import ExitStack

import psycopg
import pytest

from proxy.server.limits import Doorway, Seats
from proxy.server.tls import Tls
from proxy.settings import ServerSettings
from proxy.twin.embedded import Cluster
from proxy.wire.backend import ErrorResponse
from proxy.wire.startup import LoginRefused, SSLRequest, StartupMessage
from tests.server.relay import eventually, running_relay


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
            assert eventually(lambda: not len(relay.house.seats))


def test_seats_are_counted_by_analyst_and_forgotten_when_they_are_left() -> None:
    seats = Seats(in_all=2, per_analyst=1)

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
        assert len(relay.house.doorway) <= 5


def test_the_doorway_lets_the_oldest_go() -> None:
    gone: list[int] = []
    doorway = Doorway(2)
    turns = [lambda number=number: gone.append(number) for number in range(4)]

    doorway.enter(turns[0])
    doorway.enter(turns[1])
    doorway.leave(turns[0])
    doorway.leave(turns[0])
    doorway.enter(turns[2])
    doorway.enter(turns[3])

    assert gone == [1]


@pytest.mark.parametrize("words", [b"", b"\0\0", SSLRequest().encode(), SSLRequest().encode()[:5], b"\x16"])
def test_who_does_not_say_who_he_is_in_time_is_cut_off_without_a_word(cluster: Cluster, tls: Tls, words: bytes) -> None:
    settings = ServerSettings(port=0, login_timeout_seconds=0.3)
    with running_relay(cluster, settings, tls=tls) as relay, relay.socket() as client:
        client.sendall(words)

        answer = b"".join(iter(lambda: client.recv(100), b""))

        assert answer in (b"", b"S")
        assert eventually(lambda: not len(relay.house.doorway))


def test_who_does_not_show_his_password_in_time_is_told(cluster: Cluster) -> None:
    settings = ServerSettings(port=0, login_timeout_seconds=0.3)
    with running_relay(cluster, settings) as relay, relay.socket() as client:
        client.sendall(StartupMessage({"user": "ada"}).encode())

        answer = b"".join(iter(lambda: client.recv(1000), b""))

        last = ErrorResponse.decode(answer[answer.index(b"E\0\0") :])
        assert (last.fields["S"], last.sqlstate) == ("FATAL", "57014")


def test_a_login_in_time_is_not_disturbed_later(cluster: Cluster) -> None:
    settings = ServerSettings(port=0, login_timeout_seconds=2)
    with running_relay(cluster, settings) as relay, psycopg.connect(relay.dsn()) as connection:
        time.sleep(2.2)
        assert connection.execute("select 1").fetchone() == (1,)
