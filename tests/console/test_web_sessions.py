"""A session of the web console ends with the password that began it, wherever that is kept."""

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from proxy.load_logins import line_of
from proxy.wire.scram import Verifier
from tests.conftest import RealDatabase
from tests.console.web import PORT, RULES, Visitor, port_of
from tests.server.relay import eventually
from tests.support import shop as shop_data
from tests.support.running import noisegate

SALT = bytes(range(16))
OLD, NEW = (Verifier.of_password(word, SALT) for word in ("old", "new"))
WITHOUT_ANALYSTS = shop_data.RULES[: shop_data.RULES.index("analysts:")]
QUERY = "SELECT rolname, rolpassword FROM pg_authid WHERE rolname = $1 AND rolcanlogin"


def test_no_other_site_takes_the_cookie_away(shop: RealDatabase, tmp_path: Path) -> None:
    """What another site's link or form brings to us comes without the cookie, and what we set then is kept."""
    with noisegate(tmp_path, shop.reader_dsn, rules=RULES, arguments=PORT) as running:
        visitor, stranger = Visitor(port_of(running)), Visitor(port_of(running))
        visitor.log_in("root")
        replies = [stranger.get("/health"), stranger.get("/login"), stranger.post("/logout", token="")]
        assert not [reply for reply in replies if reply.headers.get("set-cookie", "").startswith("__Host-noisegate=")]
        assert "set-cookie" not in visitor.post("/logout", token="0" * 64).headers
        assert visitor.get("/health").status == 200


def test_a_password_that_is_changed_in_the_database_ends_the_session(shop: RealDatabase, tmp_path: Path) -> None:
    logins = f'logins: {{auth_query: {{database: "{shop.dsn}", query: "{QUERY}", fresh_for: 1 s, timeout: 1 s}}}}'
    rules = f"{WITHOUT_ANALYSTS}{logins}\nanalysts:\n  erin: {{epsilon: 5}}\n"
    with shop.connect() as owner:
        owner.execute("DROP ROLE IF EXISTS erin")
        owner.execute(f"CREATE ROLE erin LOGIN PASSWORD '{OLD}'")
        try:
            with noisegate(tmp_path, shop.reader_dsn, rules=rules, arguments=PORT) as running:
                visitor = Visitor(port_of(running))
                visitor.log_in("erin", "old")
                time.sleep(1.1)
                assert visitor.get("/me").status == 200
                with owner.transaction():
                    owner.execute("LOCK TABLE pg_authid IN ACCESS EXCLUSIVE MODE")
                    time.sleep(1.1)
                    assert visitor.get("/me").status == 200  # the database cannot be asked
                owner.execute(f"ALTER ROLE erin PASSWORD '{NEW}'")
                time.sleep(2.1)
                assert visitor.get("/me").headers["location"] == "/login"
                assert visitor.log_in("erin", "new").headers["location"] == "/me"
                owner.execute("ALTER ROLE erin NOLOGIN")
                time.sleep(1.1)
                assert visitor.get("/me").headers["location"] == "/login"
        finally:
            owner.execute("DROP ROLE IF EXISTS erin")


def test_a_session_holds_at_the_addresses_of_its_account_alone(shop: RealDatabase, tmp_path: Path) -> None:
    rules = f'{WITHOUT_ANALYSTS}analysts:\n  ada: {{password: "{OLD}", addresses: [127.0.0.1]}}\n'
    with noisegate(tmp_path, shop.reader_dsn, rules=rules, arguments=PORT) as running:
        visitor = Visitor(port_of(running))
        visitor.log_in("ada", "old")
        for address, status in (("127.0.0.1", 200), ("127.0.0.2", 303)):
            assert Visitor(visitor.port, visitor.cookie, address=address).get("/me").status == status


def test_a_gateway_brings_only_users_who_may_come_from_its_address(shop: RealDatabase, tmp_path: Path) -> None:
    analysts = f'  ada: {{password: "{OLD}", addresses: [127.0.0.2]}}\n  bob: {{password: "{OLD}"}}\n'
    gateway = (*PORT, "--console-trusted-header", "X-User", "--console-trusted-from", "127.0.0.0/8")
    rules = f"{WITHOUT_ANALYSTS}analysts:\n{analysts}"
    with noisegate(tmp_path, shop.reader_dsn, rules=rules, arguments=gateway) as running:
        for user, address, status in (("ada", "127.0.0.1", 303), ("ada", "127.0.0.2", 200), ("bob", "127.0.0.1", 200)):
            visitor = Visitor(port_of(running), headers={"X-User": user}, address=address)
            assert visitor.get("/me").status == status, (user, address)


def test_a_password_whose_time_is_over_ends_the_session(shop: RealDatabase, tmp_path: Path) -> None:
    file = tmp_path / "verifiers.txt"
    until = datetime.now(UTC) + timedelta(seconds=20)
    file.write_text(line_of("ada", OLD, until) + "\n")
    rules = f"{WITHOUT_ANALYSTS}logins: {{file: verifiers.txt}}\nanalysts:\n  ada: {{epsilon: 5}}\n"
    with noisegate(tmp_path, shop.reader_dsn, rules=rules, arguments=PORT) as running:
        visitor = Visitor(port_of(running))
        assert visitor.log_in("ada", "old").headers["location"] == "/me"
        assert visitor.get("/me").status == 200
        assert eventually(lambda: visitor.get("/me").headers.get("location") == "/login", seconds=40)
