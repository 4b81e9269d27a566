"""Logins as psql and an operator meet them: the file of verifiers, certificates, addresses, and auth_query."""

import socket
import ssl
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest
from scramp import ScramException

from proxy.load_logins import line_of
from proxy.wire.backend import ReadyForQuery
from proxy.wire.scram import Verifier
from proxy.wire.startup import SSLRequest
from tests.conftest import RealDatabase
from tests.server.bare_client import BareClient
from tests.server.relay import eventually
from tests.support import shop as shop_data
from tests.support.certificates import Authority
from tests.support.running import Noisegate, command, noisegate

SALT = bytes(range(16))
OLD, NEW = (Verifier.of_password(word, SALT) for word in ("old", "new"))
ANALYSTS = shop_data.RULES.index("analysts:")


def rules(logins: str, analysts: str) -> str:
    return f"{shop_data.RULES[:ANALYSTS]}{logins}\nanalysts:\n{analysts}\n"


@dataclass
class Listening:
    """A running proxy for a client of bare frames, under TLS."""

    proxy: Noisegate
    password: str

    def socket(self) -> socket.socket:
        plain = socket.create_connection(("127.0.0.1", self.proxy.port), timeout=60)
        plain.sendall(SSLRequest().encode())
        assert plain.recv(1) == b"S"
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return context.wrap_socket(plain)


def enters(running: Noisegate, analyst: str = "ada", **options: str) -> str:
    """Empty if this login succeeds and is answered, else what the client reads."""
    try:
        with psycopg.connect(running.dsn(**({"user": analyst} | options))) as session:
            assert session.execute("SELECT current_user").fetchone() == (analyst,)
    except psycopg.OperationalError as error:
        return str(error)
    return ""


def test_a_changed_file_of_verifiers_is_in_force_and_a_broken_one_is_not(shop: RealDatabase, tmp_path: Path) -> None:
    file = tmp_path / "verifiers.txt"
    file.write_text(line_of("ada", OLD) + "\n")
    with noisegate(
        tmp_path, shop.reader_dsn, rules=rules("logins: {file: verifiers.txt}", "  ada: {epsilon: 5}")
    ) as it:
        assert not enters(it, password="old")
        assert enters(it, password="new")

        file.write_text("\n".join([line_of("ada", OLD), line_of("ada", NEW)]))
        assert it.wait_for("verifiers_loaded")["names"] == 1
        assert not enters(it, password="old")
        assert not enters(it, password="new")

        file.write_text(f"{line_of('ada', NEW)}\nada rosebud\n")
        assert it.wait_for("verifiers_refused")["line"] == 2
        assert not enters(it, password="old")
        assert any("verifiers.txt:2" in line and "rosebud" not in line for line in it.lines)

        file.write_text(line_of("ada", NEW))
        it.wait_for("verifiers_loaded", count=2)
        assert not enters(it, password="new")
        assert "password authentication failed" in enters(it, password="old")


def test_addresses_and_expiry_are_told_to_the_log_alone(shop: RealDatabase, tmp_path: Path) -> None:
    analysts = f"""\
  ada: {{password: "{OLD}", addresses: [192.0.2.0/24]}}
  bob: {{password: "{OLD}", valid_until: 2026-01-01}}
  eve: {{password: "{OLD}", addresses: [127.0.0.0/8, "::1"], valid_until: 2226-01-01}}"""
    with noisegate(tmp_path, shop.reader_dsn, rules=rules("", analysts)) as it:
        assert any("bob cannot log in: valid_until was 2026-01-01 00:00 UTC" in line for line in it.lines)
        for name in ("ada", "bob"):
            assert f'password authentication failed for user "{name}"' in enters(it, name, password="old")
        assert not enters(it, "eve", password="old")
        assert eventually(lambda: len(it.events("login_refused")) == 2)
        assert [event["reason"] for event in it.events("login_refused")] == ["address", "expired"]


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority.make(tmp_path)


@pytest.fixture
def with_certificates(shop: RealDatabase, tmp_path: Path, authority: Authority) -> Iterator[Noisegate]:
    analysts = f"""\
  ada: {{certificate: ada}}
  bob: {{certificate: bob@example.org, password: "{OLD}", login: both}}
  eve: {{password: "{OLD}"}}"""
    arguments = ("--tls-client-ca", str(authority.bundle))
    with noisegate(tmp_path, shop.reader_dsn, rules=rules("", analysts), arguments=arguments) as running:
        yield running


def test_a_certificate_logs_in_alone_or_beside_a_password(with_certificates: Noisegate, authority: Authority) -> None:
    ada, bob = authority.client("ada"), authority.client("robert", "bob@example.org")

    assert not enters(with_certificates, "ada", password="''", **ada)
    assert not enters(with_certificates, "bob", password="old", **bob)
    assert not enters(with_certificates, "eve", password="old", **ada)
    for user, password, certificate in [
        ("ada", "old", {}),
        ("ada", "old", bob),
        ("bob", "old", ada),
        ("bob", "old", {}),
        ("bob", "new", bob),
        ("eve", "new", ada),
    ]:
        assert "password authentication failed" in enters(with_certificates, user, password=password, **certificate)


def test_a_certificate_of_another_authority_or_a_revoked_one_is_none(
    with_certificates: Noisegate, authority: Authority, tmp_path_factory: pytest.TempPathFactory
) -> None:
    forged = Authority.make(tmp_path_factory.mktemp("other")).client("ada")

    for certificate in (forged, authority.client("ada", revoked=True)):
        assert enters(with_certificates, "ada", password="''", **certificate)


QUERY = "SELECT rolname, rolpassword FROM pg_authid WHERE rolname = $1 AND rolcanlogin "
QUERY += "AND coalesce(rolvaliduntil > now(), true)"


@pytest.fixture
def asking(shop: RealDatabase, tmp_path: Path) -> Iterator[Noisegate]:
    with shop.connect() as owner:
        owner.execute("DROP ROLE IF EXISTS carol, dave")
        owner.execute(f"CREATE ROLE carol LOGIN PASSWORD '{OLD}'; CREATE ROLE dave LOGIN")
    logins = f'logins: {{auth_query: {{database: "{shop.dsn}", query: "{QUERY}", fresh_for: 1 s, timeout: 1 s}}}}'
    analysts = f'  carol: {{epsilon: 5}}\n  dave: {{epsilon: 5}}\n  bob: {{password: "{OLD}"}}'
    with noisegate(tmp_path, shop.reader_dsn, rules=rules(logins, analysts)) as running:
        yield running
    with shop.connect() as owner:
        owner.execute("DROP ROLE IF EXISTS carol, dave")


def test_a_query_finds_the_verifiers_that_the_database_keeps(asking: Noisegate, shop: RealDatabase) -> None:
    assert not enters(asking, "carol", password="old")
    for name in ("carol", "dave", "mallory"):
        assert f'password authentication failed for user "{name}"' in enters(asking, name, password="new")

    with shop.connect() as owner:
        owner.execute(f"ALTER ROLE carol PASSWORD '{NEW}'")
    time.sleep(1)
    assert not enters(asking, "carol", password="new")
    assert enters(asking, "carol", password="old")


def test_no_startup_packet_changes_what_the_query_reads(asking: Noisegate, shop: RealDatabase) -> None:
    """CVE-2025-12819 of PgBouncer: with track_extra_parameters, a search_path in the startup message was in force where
    its auth_query ran, before any password was read. It may be a parameter of its own or stand in `options`."""
    with shop.connect() as owner:
        owner.execute("CREATE SCHEMA IF NOT EXISTS lure")
        owner.execute(
            f"CREATE OR REPLACE VIEW lure.pg_authid AS SELECT name AS rolname, '{NEW}'::text AS rolpassword, "
            "true AS rolcanlogin FROM unnest(ARRAY['carol', 'dave']::name[]) AS name"
        )
    try:
        for path in ("lure", "lure, pg_catalog", '"lure",pg_catalog,public'):
            for user in ("carol", "dave"):
                with pytest.raises(ScramException):
                    BareClient(Listening(asking, "new"), user=user, search_path=path)
            with BareClient(Listening(asking, "old"), user="carol", search_path=path) as client:
                client.messages_until(ReadyForQuery)
            options = "-c search_path=" + path.replace(" ", "")
            assert "password authentication failed" in enters(asking, "carol", password="new", options=f"'{options}'")
            assert "password authentication failed" in enters(asking, "dave", password="new", options=f"'{options}'")
        assert not enters(asking, "carol", password="old", options="'-c search_path=lure'")
    finally:
        with shop.connect() as owner:
            owner.execute("DROP SCHEMA lure CASCADE")


def test_a_password_whose_time_is_over_in_the_database_opens_nothing(asking: Noisegate, shop: RealDatabase) -> None:
    """CVE-2025-2291 of PgBouncer before 1.24.1: its default auth_query did not ask for VALID UNTIL."""
    with shop.connect() as owner:
        owner.execute("ALTER ROLE carol VALID UNTIL '2020-01-01'")

    assert "password authentication failed" in enters(asking, "carol", password="old")


def test_a_query_that_fails_names_nothing_of_the_database_and_tells_nobody_apart(
    asking: Noisegate, shop: RealDatabase
) -> None:
    assert not enters(asking, "carol", password="old")
    time.sleep(1)
    with shop.connect() as owner, owner.transaction():
        owner.execute("LOCK TABLE pg_authid IN ACCESS EXCLUSIVE MODE")  # which a login there needs, too
        said = {
            enters(asking, name, password="new").partition("FATAL:")[2].replace(name, "")
            for name in ("bob", "eve", "carol")
        }
        assert not enters(asking, "bob", password="old")  # whose verifier stands in the rules

    (words,) = said
    assert "the password cannot be checked at the moment" in words
    assert "pg_authid" not in "".join(asking.lines)
    assert {event["reason"] for event in asking.events("auth_query_failed")} <= {"time_out", "cancelled"}
    time.sleep(1)
    assert not enters(asking, "carol", password="old")


def test_a_broken_rules_file_about_logins_says_so(shop: RealDatabase, tmp_path: Path) -> None:
    text = rules("logins: {file: nowhere.txt}", '  ada: {certificate: ada}\n  bob: {addresses: ["10.0.0.1/8"]}')
    path = shop_data.rules_file(tmp_path, text)

    said = command("serve", str(path), "--port", "0", database=shop.reader_dsn).stderr

    assert '"10.0.0.1/8" is not a network' in said
