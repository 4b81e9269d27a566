"""Real clients log in, and what they read when they may not."""

import asyncio
import shutil
import ssl
import subprocess
from collections.abc import Callable
from pathlib import Path

import asyncpg
import pg8000.dbapi
import psycopg
import psycopg2
import pytest

from proxy.server.tls import Tls
from proxy.twin.embedded import Cluster
from tests.server.relay import PASSWORD, USER, Relay, eventually, running_relay, self_signed

Ask = Callable[[Relay, str, str, ssl.SSLContext | None], str]


def ask_psql(relay: Relay, user: str, password: str, trust: ssl.SSLContext | None) -> str:
    dsn = relay.dsn(user=user, password=f"'{password}'", sslmode="require" if trust else "prefer")
    done = subprocess.run(
        ["psql", dsn, "-Atc", "select current_user"], capture_output=True, text=True, timeout=20, check=False
    )
    return done.stdout + done.stderr


def ask_psycopg(relay: Relay, user: str, password: str, trust: ssl.SSLContext | None) -> str:
    dsn = relay.dsn(user=user, password=f"'{password}'", sslmode="require" if trust else "prefer")
    try:
        with psycopg.connect(dsn) as connection:
            return str(connection.execute("select current_user", binary=True).fetchone())
    except psycopg.OperationalError as error:
        return str(error)


def ask_psycopg2(relay: Relay, user: str, password: str, trust: ssl.SSLContext | None) -> str:
    dsn = relay.dsn(user=user, password=f"'{password}'", sslmode="require" if trust else "prefer")
    try:
        connection = psycopg2.connect(dsn)
    except psycopg2.OperationalError as error:
        return str(error)
    with connection.cursor() as cursor:
        cursor.execute("select current_user")
        answer = str(cursor.fetchone())
    connection.close()
    return answer


def ask_asyncpg(relay: Relay, user: str, password: str, trust: ssl.SSLContext | None) -> str:
    async def ask() -> str:
        try:
            connection = await asyncpg.connect(
                host="127.0.0.1", port=relay.port, user=user, password=password, database="shop", ssl=trust
            )
        except asyncpg.PostgresError as error:
            return str(error)
        answer = str(await connection.fetchval("select current_user"))
        await connection.close()
        return answer

    return asyncio.run(ask())


def ask_pg8000(relay: Relay, user: str, password: str, trust: ssl.SSLContext | None) -> str:
    try:
        connection = pg8000.dbapi.connect(
            user, "127.0.0.1", "shop", relay.port, password, ssl_context=False if trust is None else trust
        )
    except pg8000.dbapi.DatabaseError as error:
        return str(error)
    cursor = connection.cursor()
    cursor.execute("select current_user")
    answer = str(cursor.fetchall())
    connection.close()
    return answer


CLIENTS = [
    pytest.param(
        ask_psql,
        marks=pytest.mark.skipif(shutil.which("psql") is None, reason="no psql on the PATH; the wheel's knows no TLS"),
    ),
    *(ask_psycopg, ask_psycopg2, ask_asyncpg, ask_pg8000),
]


@pytest.fixture(scope="module")
def trust(certificate: tuple[Path, Path]) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(certificate[0]))


@pytest.mark.parametrize("ask", CLIENTS)
def test_every_client_logs_in_in_clear(relay: Relay, ask: Ask) -> None:
    assert USER in ask(relay, USER, PASSWORD, None)


@pytest.mark.parametrize("ask", CLIENTS)
def test_every_client_logs_in_over_tls(tls_relay: Relay, ask: Ask, trust: ssl.SSLContext) -> None:
    assert USER in ask(tls_relay, USER, PASSWORD, trust)


def test_libpq_binds_the_login_to_the_certificate(tls_relay: Relay, certificate: tuple[Path, Path]) -> None:
    dsn = tls_relay.dsn(sslmode="verify-full", sslrootcert=str(certificate[0]), channel_binding="require")

    for _ in range(2):
        with psycopg.connect(dsn) as connection:
            assert connection.execute("select 1").fetchone() == (1,)


def test_libpq_may_begin_with_the_handshake_itself(tls_relay: Relay, certificate: tuple[Path, Path]) -> None:
    trusted = {"sslmode": "verify-full", "sslrootcert": str(certificate[0]), "channel_binding": "require"}

    with psycopg.connect(tls_relay.dsn(sslnegotiation="direct", **trusted), autocommit=True) as connection:
        assert connection.execute("select 1").fetchone() == (1,)
        connection.execute("set statement_timeout = '20s'")
        connection.cancel_safe()


def test_asyncpg_may_begin_with_the_handshake_itself(tls_relay: Relay, trust: ssl.SSLContext) -> None:
    trust.set_alpn_protocols(["postgresql"])

    async def ask() -> object:
        connection = await asyncpg.connect(
            host="127.0.0.1",
            port=tls_relay.port,
            user=USER,
            password=PASSWORD,
            database="shop",
            ssl=trust,
            direct_tls=True,
        )
        answer = await connection.fetchval("select 1")
        await connection.close()
        return answer

    assert asyncio.run(ask()) == 1


def test_where_no_tls_is_spoken_nobody_can_begin_with_it(relay: Relay) -> None:
    with pytest.raises(psycopg.OperationalError, match="SSL"):
        psycopg.connect(relay.dsn(sslmode="require", sslnegotiation="direct"))


def test_a_certificate_whose_signature_names_no_hash_works_without_channel_binding(
    cluster: Cluster, tmp_path: Path
) -> None:
    tls = Tls.load(*self_signed(tmp_path, signature="ed25519"))
    with running_relay(cluster, tls=tls) as relay:
        psycopg.connect(relay.dsn(sslmode="require")).close()
        with pytest.raises(psycopg.OperationalError, match="channel binding"):
            psycopg.connect(relay.dsn(sslmode="require", channel_binding="require"))


def test_another_database_does_not_exist(relay: Relay) -> None:
    with pytest.raises(psycopg.OperationalError, match='FATAL:  database "template1" does not exist'):
        psycopg.connect(relay.dsn(dbname="template1"))


def test_the_name_postgres_stands_for_the_only_database(relay: Relay) -> None:
    with psycopg.connect(relay.dsn(dbname="postgres")) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_replication_is_refused(relay: Relay) -> None:
    with pytest.raises(psycopg.OperationalError, match="replication is not allowed"):
        psycopg.connect(relay.dsn(replication="database"))


def test_where_tls_is_needed_a_login_in_clear_is_told_so_before_it_shows_its_password(tls_relay: Relay) -> None:
    with pytest.raises(psycopg.OperationalError, match="require TLS"):
        psycopg.connect(tls_relay.dsn(sslmode="disable"))


def test_settings_of_the_startup_reach_the_session(relay: Relay) -> None:
    with psycopg.connect(relay.dsn(application_name="promise", options="'-c statement_timeout=7s'")) as connection:
        assert connection.info.parameter_status("application_name") == "promise"
        assert connection.execute("show statement_timeout").fetchone() == ("7s",)


def test_the_process_id_that_a_client_learns_is_the_one_that_it_can_ask_for(relay: Relay) -> None:
    with psycopg.connect(relay.dsn()) as connection:
        assert connection.execute("select pg_backend_pid()").fetchone() == (connection.info.backend_pid,)


@pytest.mark.parametrize("version", ["3.0", "3.2", "latest"])
def test_newer_protocols_agree_on_what_both_speak(relay: Relay, version: str) -> None:
    with psycopg.connect(relay.dsn(max_protocol_version=version)) as connection:
        assert connection.execute("select 1").fetchone() == (1,)


def test_when_all_have_gone_nothing_is_held_for_them(relay: Relay) -> None:
    house = relay.context
    psycopg.connect(relay.dsn()).close()

    assert eventually(lambda: not len(relay.listener))
    assert (len(house.seats), len(house.doorway), len(house.keys)) == (0, 0, 0)
    assert eventually(lambda: all(session.is_closed for session in relay.sessions))


# Last: after wrong passwords the address has to wait.
@pytest.mark.parametrize("ask", CLIENTS)
@pytest.mark.parametrize("user", [USER, "eve"])
def test_every_client_reads_the_same_about_a_wrong_password_and_an_unknown_user(
    relay: Relay, ask: Ask, user: str
) -> None:
    answer = ask(relay, user, "a guess", None)

    assert "password authentication failed for user" in answer
    assert "28P01" in answer or ask is not ask_pg8000
