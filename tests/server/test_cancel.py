"""Who holds the key may cancel, and nobody else."""

import threading

import psycopg
import pytest

from proxy.server.server_context import CancelKeys
from proxy.wire.startup import CancelRequest
from tests.server.relay import Relay


@pytest.mark.parametrize("version", ["3.0", "3.2"])
def test_a_client_cancels_what_it_runs(relay: Relay, version: str) -> None:
    with psycopg.connect(relay.dsn(max_protocol_version=version), autocommit=True) as connection:
        threading.Timer(0.3, connection.cancel_safe).start()

        with pytest.raises(psycopg.errors.QueryCanceled):
            connection.execute("select pg_sleep(20)")

        assert connection.execute("select 1").fetchone() == (1,)


def test_a_client_cancels_over_tls(tls_relay: Relay) -> None:
    with psycopg.connect(tls_relay.dsn(sslmode="require"), autocommit=True) as connection:
        threading.Timer(0.3, connection.cancel_safe).start()

        with pytest.raises(psycopg.errors.QueryCanceled):
            connection.execute("select pg_sleep(20)")


def test_a_wrong_key_is_met_with_silence_and_cancels_nothing(relay: Relay) -> None:
    with psycopg.connect(relay.dsn(), autocommit=True) as connection:
        with relay.socket() as stranger:
            stranger.sendall(CancelRequest(connection.info.backend_pid, b"four").encode())
            assert stranger.recv(1) == b""

        assert connection.execute("select 'undisturbed'").fetchone() == ("undisturbed",)


def test_a_key_is_as_long_as_the_protocol_allows_and_holds_until_it_is_forgotten() -> None:
    keys, cancelled = CancelKeys(), list[str]()
    short = keys.issue(1, 0, lambda: cancelled.append("short"))
    long = keys.issue(2, 2, lambda: cancelled.append("long"))

    assert (len(short.secret), len(long.secret)) == (4, 32)
    assert keys.cancel(CancelRequest(1, short.secret))
    assert keys.cancel(CancelRequest(2, long.secret))
    for wrong in (CancelRequest(1, long.secret), CancelRequest(2, long.secret[:4]), CancelRequest(3, short.secret)):
        assert not keys.cancel(wrong)
    keys.forget(short)
    assert not keys.cancel(CancelRequest(1, short.secret))
    assert cancelled == ["short", "long"]


def test_a_number_that_was_given_to_another_client_meanwhile_stays_with_that_one() -> None:
    keys = CancelKeys()
    old = keys.issue(1, 2, lambda: None)
    new = keys.issue(1, 2, lambda: None)

    keys.forget(old)

    assert not keys.cancel(CancelRequest(1, old.secret))
    assert keys.cancel(CancelRequest(1, new.secret))
