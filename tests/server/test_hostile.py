"""Bytes that no client would send: they end their own connection, and disturb no other."""

import socket
import ssl
import struct
from collections.abc import Iterator
from itertools import pairwise

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from proxy.server.tls import Tls
from proxy.settings import ServerSettings
from proxy.twin.embedded import Cluster
from proxy.wire import codec
from proxy.wire.backend import ErrorResponse
from proxy.wire.frontend import Query, Terminate
from proxy.wire.startup import CancelRequest, GSSENCRequest, SSLRequest, StartupMessage
from tests.server.relay import Relay, eventually, running_relay

STARTUP = StartupMessage({"user": "ada", "database": "shop"}).encode()


def everything(client: socket.socket) -> bytes:
    """All that is sent until the other side closes; a reset is a close too."""
    answer = b""
    try:
        while piece := client.recv(10_000):
            answer += piece
    except ConnectionResetError:
        return answer
    return answer


@pytest.fixture(scope="module")
def calm(cluster: Cluster, tls: Tls) -> Iterator[Relay]:
    """One proxy for all the noise, so that what one leaves behind would meet the next."""
    with running_relay(cluster, ServerSettings(port=0, drain_timeout_seconds=0), tls=tls) as relay:
        yield relay


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    opening=st.sampled_from([b"", b"\x16", STARTUP, SSLRequest().encode(), GSSENCRequest().encode() + STARTUP]),
    garbage=st.binary(max_size=300),
)
def test_garbage_ends_in_a_close_and_the_next_client_is_served(calm: Relay, opening: bytes, garbage: bytes) -> None:
    with calm.socket() as client:
        client.sendall(opening + garbage)
        client.shutdown(socket.SHUT_WR)
        everything(client)

    assert eventually(lambda: not len(calm.listener))
    assert len(calm.context.doorway) == 0


def test_after_all_that_garbage_a_client_is_served(calm: Relay) -> None:
    with psycopg.connect(calm.dsn()) as connection:
        assert connection.execute("select 1").fetchone() == (1,)


@pytest.mark.parametrize(
    "opening",
    [
        struct.pack("!ii", 8, 2 << 16),
        StartupMessage({"user": ""}).encode(),
        codec.int32(4 + 4 + 9) + codec.int32(3 << 16) + b"user\0ada\0",
        STARTUP + b"Q" + struct.pack("!i", 2**31 - 1),
        *(STARTUP + kind + struct.pack("!I", length) for kind in (b"p", b"Q") for length in (2**31 + 8, 2**32 - 1)),
        STARTUP + Query(b"select 1").encode(),
        STARTUP + b"p" + struct.pack("!i", 3),
        STARTUP + b"p" + struct.pack("!i", 8) + b"ABCD",
    ],
)
def test_what_is_no_login_gets_one_fatal_error_and_the_end(calm: Relay, opening: bytes) -> None:
    """CVE-2026-107348 of PgBouncer: a length above 2^31 made it run in circles."""
    with calm.socket() as client:
        client.sendall(opening)

        answer = everything(client)

    assert answer[answer.index(b"E\0\0") :].startswith(b"E")
    last = ErrorResponse.decode(answer[answer.index(b"E\0\0") :])
    assert last.fields["V"] == "FATAL"


@pytest.mark.parametrize(
    "opening",
    [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        Terminate().encode(),  # of node-postgres: connect(); end()
        struct.pack("!i", 2**31 - 1),
        struct.pack("!i", -1),
        struct.pack("!ii", 10_001, 3 << 16),
        struct.pack("!iii", 12, CancelRequest.code, 1),  # without a secret
        struct.pack("!iiih", 14, CancelRequest.code, 1, 2),
        CancelRequest(1, bytes(257)).encode(),
        struct.pack("!iii", 12, SSLRequest.code, 1),
    ],
)
def test_what_is_no_packet_of_the_protocol_is_closed_without_a_message(calm: Relay, opening: bytes) -> None:
    with calm.socket() as client:
        client.sendall(opening)

        assert everything(client) == b""


FIRST = b"n,,n=,r=abcdefghijklmnop"
STARTUPS = [
    StartupMessage({"user": user, "database": base}).encode() for user in ("ada", "bob") for base in ("shop", "nowhere")
]


def chosen(words: bytes, mechanism: bytes = b"SCRAM-SHA-256", length: int | None = None) -> bytes:
    """A SASLInitialResponse; the length of the words may be a lie."""
    size = struct.pack("!i", len(words) if length is None else length)
    return codec.frame(b"p", mechanism + b"\0", size, words)


@pytest.mark.parametrize(
    "packets",
    [
        *((startup,) for startup in STARTUPS),
        *((chosen(FIRST), startup) for startup in STARTUPS),
        (codec.frame(b"p"),),
        (codec.frame(b"p", b"SCRAM-SHA-256"),),
        (codec.frame(b"p", b"SCRAM-SHA-256\0"),),
        (codec.frame(b"p", b"SCRAM-SHA-256\0\0"),),
        *((chosen(FIRST, length=length),) for length in (-(2**31), -2, -1, 0, 1, len(FIRST) + 1, 2**31 - 1)),
        (chosen(FIRST, b""),),
        (chosen(FIRST, b"SCRAM-SHA-1"),),
        (chosen(FIRST, b"SCRAM-SHA-256-PLUS"),),
        *(
            (chosen(words),)
            for words in (b"", b"\0", b"n", b"n,,", b"n,,n=", b",,,,,", b"y,,r=a,n=", b"n,,n=,r=", b"\xff")
        ),
        *(
            (chosen(words),)
            for words in (b"n,a=eve,n=,r=abc", b"p=tls-unique,,n=,r=abc", b"m=x,,n=,r=abc", b"n" * 4000)
        ),
        *(
            (chosen(FIRST), codec.frame(b"p", final))
            for final in (
                *(b"", b"\0", b"c=biws", b"c=biws,r=,p=", b"c=!!!,r=abcdefghijklmnop,p=AAAA", b"\xff\xfe", b"," * 3000),
                *(b"c=biws,r=abcdefghijklmnop,p=" + proof for proof in (b"", b"A", b"A" * 43 + b"=", b"A" * 3000)),
            )
        ),
    ],
)
def test_a_malformed_scram_packet_ends_its_own_login_alone(calm: Relay, packets: tuple[bytes, ...]) -> None:
    """CVE-2026-6664 of PgBouncer: a length in one went past the end, and ended all sessions before any password was
    read. CVE-2026-107350: a second startup message, in the middle of a login, was believed who it is that logs in."""
    with calm.socket() as client:
        client.sendall(STARTUP)
        assert client.recv(10_000).startswith(b"R")
        client.sendall(packets[0])
        if len(packets) > 1:
            assert client.recv(10_000).startswith(b"R")
            client.sendall(packets[1])
        answer = everything(client)

    error = ErrorResponse.decode(answer)
    assert error.fields["V"] == "FATAL"
    assert error.sqlstate in ("08P01", "28P01", "28000")
    with psycopg.connect(calm.dsn()) as connection:
        assert connection.execute("select 1").fetchone() == (1,)


@pytest.mark.parametrize("options", ["-c=", "-c =", "--=", "-c =1 -c=", "-c\\ ="])
def test_an_option_without_a_name_ends_its_own_login_alone(calm: Relay, options: str) -> None:
    """CVE-2026-107349 of PgBouncer: an empty name made it run in circles, before any password was read."""
    with pytest.raises(psycopg.OperationalError, match="unrecognized configuration parameter"):
        psycopg.connect(calm.dsn(), options=options, connect_timeout=10)

    with psycopg.connect(calm.dsn()) as connection:
        assert connection.execute("select 1").fetchone() == (1,)


def test_bytes_in_clear_behind_the_request_for_tls_are_never_taken_for_bytes_under_tls(calm: Relay) -> None:
    """CVE-2021-23214: who sits in between puts a startup message of his own in front of the handshake."""
    with calm.socket() as client:
        client.sendall(SSLRequest().encode() + STARTUP)

        answer = everything(client)

    assert ErrorResponse.decode(answer).sqlstate == "08P01"


def test_bytes_in_clear_just_after_the_request_for_tls_end_the_handshake(calm: Relay) -> None:
    with calm.socket() as client:
        client.sendall(SSLRequest().encode())
        assert client.recv(1) == b"S"
        client.sendall(STARTUP)

        answer = everything(client)

    assert b"SCRAM" not in answer
    assert eventually(lambda: not len(calm.listener))


def test_a_startup_that_comes_in_one_flight_with_the_end_of_the_handshake_is_heard(calm: Relay) -> None:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        context.maximum_version = version
        with calm.socket() as client:
            client.sendall(SSLRequest().encode())
            assert client.recv(1) == b"S"
            incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
            secure = context.wrap_bio(incoming, outgoing)
            while True:
                try:
                    secure.do_handshake()
                    break
                except ssl.SSLWantReadError:
                    client.sendall(outgoing.read())
                    incoming.write(client.recv(10_000))
            secure.write(STARTUP)
            client.sendall(outgoing.read())

            answer = b""
            while b"SCRAM-SHA-256-PLUS" not in answer:
                incoming.write(client.recv(10_000))
                try:
                    answer += secure.read()
                except ssl.SSLWantReadError:
                    continue


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_old_versions_of_tls_are_not_spoken(calm: Relay, version: ssl.TLSVersion) -> None:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.minimum_version, context.maximum_version = ssl.TLSVersion.TLSv1, version
    with calm.socket() as client:
        client.sendall(SSLRequest().encode())
        assert client.recv(1) == b"S"
        with pytest.raises((ssl.SSLError, ConnectionResetError)):
            context.wrap_socket(client)


@pytest.mark.parametrize("named", [[], ["h2"]])
def test_who_begins_with_tls_must_name_postgresql(calm: Relay, named: list[str]) -> None:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if named:
        context.set_alpn_protocols(named)

    with calm.socket() as client, context.wrap_socket(client) as secure:
        assert everything(secure) == b""


def is_done(tls: ssl.SSLObject) -> bool:
    """Whether the handshake needs nothing more of the other side."""
    try:
        tls.do_handshake()
    except ssl.SSLWantReadError:
        return False
    return True


def first_words(tls: ssl.SSLObject, incoming: ssl.MemoryBIO, client: socket.socket) -> bytes:
    """What the other side says; tickets of the session may come before it."""
    while True:
        try:
            return tls.read()
        except ssl.SSLWantReadError:
            incoming.write(client.recv(10_000))


@pytest.mark.parametrize("cuts", [(1,), (1, 2, 3), (5, 100)])
def test_a_handshake_may_come_in_pieces(calm: Relay, cuts: tuple[int, ...]) -> None:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["postgresql"])
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(incoming, outgoing)
    with calm.socket() as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with pytest.raises(ssl.SSLWantReadError):
            tls.do_handshake()
        hello = outgoing.read()
        for start, end in pairwise((0, *cuts, len(hello))):
            client.sendall(hello[start:end])
        while not is_done(tls):
            incoming.write(client.recv(10_000))
        tls.write(STARTUP)
        client.sendall(outgoing.read())

        assert b"SCRAM-SHA-256" in first_words(tls, incoming, client)


@pytest.mark.parametrize("words", [b"\x16", b"\x16\x03\x01\x02\x00\x01", b"\x16" * 300])
def test_who_leaves_a_handshake_that_he_began_is_forgotten(calm: Relay, words: bytes) -> None:
    for _ in range(10):
        with calm.socket() as client:
            client.sendall(words)

    assert eventually(lambda: not len(calm.listener))
    assert len(calm.context.doorway) == 0


@pytest.mark.parametrize("words", [b"", b"\x16", b"\x16\x03\x01\x02\x00\x01"])
def test_who_leaves_during_the_handshake_is_forgotten(calm: Relay, words: bytes) -> None:
    for _ in range(10):
        with calm.socket() as client:
            client.sendall(SSLRequest().encode())
            assert client.recv(1) == b"S"
            client.sendall(words)

    assert eventually(lambda: not len(calm.listener))
    assert len(calm.context.doorway) == 0


def test_a_port_that_is_only_knocked_at_is_forgotten(calm: Relay) -> None:
    for _ in range(20):
        calm.socket().close()

    assert eventually(lambda: not len(calm.listener))
