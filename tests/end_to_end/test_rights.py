"""The proxy's role: the least rights are enough, a missing one is named, and so is why it cannot connect."""

import socket
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from proxy.twin.embedded import Cluster
from tests.conftest import RealDatabase, make_shop
from tests.support import shop as shop_data
from tests.support.running import command, noisegate


@pytest.fixture(scope="module")
def guarded(real_cluster: Cluster) -> RealDatabase:
    return make_shop(real_cluster, "Guarded 'shop'")


def test_the_role_that_is_printed_can_do_all_that_is_needed_and_nothing_more(
    guarded: RealDatabase, tmp_path: Path
) -> None:
    rules = shop_data.rules_file(tmp_path)
    dsn = guarded.cluster.dsn(guarded.name, 'the "least"')
    printed = command("grants", str(rules), database=dsn)
    assert printed.returncode == 0, printed.stderr
    with guarded.connect() as owner:
        for _ in range(2):  # it may be run again
            owner.execute(printed.stdout.encode())

    checked = command("check", str(rules), database=dsn)

    assert checked.returncode == 0
    assert "the role" not in checked.stdout
    with (
        noisegate(tmp_path, dsn, name=guarded.name.replace("'", "\\'")) as running,
        psycopg.connect(running.dsn(dbname="'Guarded \\'shop\\''"), autocommit=True) as ada,
    ):
        assert ada.execute("SELECT count(*), (SELECT count(*) FROM products) FROM orders").fetchone()


@pytest.mark.parametrize("made", ["SUPERUSER", ""])
def test_a_superuser_and_an_owner_of_tables_are_not_made_the_proxys_role(
    guarded: RealDatabase, tmp_path: Path, made: str
) -> None:
    """They would lose what they may do: the variable of the database names whoever ran check last."""
    role = f"boss_{made.lower()}"
    printed = command("grants", str(shop_data.rules_file(tmp_path)), database=guarded.cluster.dsn(guarded.name, role))
    with guarded.connect() as owner:
        owner.execute(f"CREATE ROLE {role} LOGIN CREATEDB {made}")
        owner.execute(f"CREATE TABLE of_{role} (); ALTER TABLE of_{role} OWNER TO {role}")

    with guarded.connect() as owner:
        with pytest.raises(psycopg.errors.RaiseException, match="needs a role of its own") as refused:
            owner.execute(printed.stdout.encode())
        owner.rollback()
        rights = "SELECT rolcreatedb, rolconfig FROM pg_roles WHERE rolname = %s"
        assert owner.execute(rights, [role]).fetchone() == (True, None)
    assert refused.value.diag.message_hint == "noisegate grants --role NAME RULES prints that of another."
    with guarded.connect() as owner:
        owner.execute(f"DROP TABLE of_{role}; DROP ROLE {role}")


def test_a_missing_right_is_an_error_with_the_sql_that_grants_it(guarded: RealDatabase, tmp_path: Path) -> None:
    rules = shop_data.rules_file(tmp_path)
    with guarded.connect() as owner:
        owner.execute("CREATE ROLE poor LOGIN; GRANT SELECT ON customers, products, order_items TO poor")
    dsn = guarded.cluster.dsn(guarded.name, "poor")
    assert command("ledger", "init", str(rules), database=dsn).returncode == 0

    checked = command("check", str(rules), database=dsn)
    started = command("serve", str(rules), "--port", "0", database=dsn)

    wanted = 'GRANT SELECT ON "public"."orders" TO "poor"'
    assert (checked.returncode, started.returncode) == (1, 1)
    assert f"error: tables.orders: the proxy's role cannot read it ({wanted})" in checked.stdout
    assert f"orders: {wanted}" in started.stderr
    with guarded.connect() as owner:
        owner.execute(wanted.encode())
    assert command("check", str(rules), database=dsn).returncode == 0


def test_a_right_that_is_revoked_while_the_proxy_runs_is_told_with_the_table(
    guarded: RealDatabase, tmp_path: Path
) -> None:
    joined = "SELECT category, count(*) FROM order_items JOIN products ON product_id = products.id GROUP BY 1"
    with guarded.connect() as owner:
        owner.execute(
            "CREATE ROLE stripped LOGIN; GRANT SELECT ON customers, products, orders, order_items TO stripped"
        )
        with (
            noisegate(tmp_path, guarded.cluster.dsn(guarded.name, "stripped"), name="Guarded \\'shop\\'") as running,
            psycopg.connect(running.dsn(dbname="'Guarded \\'shop\\''"), autocommit=True) as ada,
        ):
            before = running.ledger_length()
            for revoked, tables in (
                ("SELECT ON products", "table products"),
                ("SELECT ON orders, order_items", "tables order_items, orders"),
                ("USAGE ON SCHEMA public", "tables order_items, orders, products"),
            ):
                source = "PUBLIC, stripped" if revoked.startswith("USAGE") else "stripped"
                owner.execute(f"REVOKE {revoked} FROM {source}".encode())
                try:
                    with pytest.raises(psycopg.errors.InsufficientPrivilege) as refusal:
                        ada.execute(joined)
                finally:
                    owner.execute(f"GRANT {revoked} TO {source}".encode())
                assert str(refusal.value.diag.message_primary).startswith(f"permission denied for {tables}: the proxy")
                assert "noisegate check" in (refusal.value.diag.message_hint or "")
            assert running.ledger_length() == before
            assert ada.execute(joined).fetchall()


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (
            "GRANT SELECT ON staff TO rich",
            "may read 1 table or view that the rules do not name (staff); "
            'REVOKE SELECT ON "public"."staff" FROM "rich"',
        ),
        ("GRANT UPDATE ON orders TO rich", "may write to 1 table;"),
        ("ALTER ROLE rich BYPASSRLS", "has BYPASSRLS"),
        ("ALTER ROLE rich CREATEDB", "may create databases"),
        ("GRANT CREATE ON SCHEMA public TO rich", "may create in 1 schema;"),
        ("GRANT pg_read_all_data TO rich", "is a member of pg_read_all_data"),
        ("ALTER TABLE products OWNER TO rich", "owns 1 table or view"),
        ("ALTER ROLE rich SUPERUSER", "is a superuser"),
    ],
)
def test_a_right_too_much_is_a_warning(guarded: RealDatabase, tmp_path: Path, given: str, told: str) -> None:
    rules = shop_data.rules_file(tmp_path)
    with guarded.connect() as owner:
        owner.execute("CREATE ROLE rich LOGIN; GRANT SELECT ON customers, products, orders, order_items TO rich")
        try:
            owner.execute(given.encode())
            checked = command("check", str(rules), database=guarded.cluster.dsn(guarded.name, "rich"))
        finally:
            owner.execute("ALTER TABLE products OWNER TO CURRENT_USER; DROP OWNED BY rich; DROP ROLE rich")

    assert checked.returncode == 0
    assert f'the role "rich" {told}' in checked.stdout


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


@pytest.fixture(scope="module")
def strict() -> Iterator[Cluster]:
    """A server that asks some roles for a password, and lets others not in."""
    cluster = Cluster.start(tcp_port=free_port())
    try:
        hba = cluster.directory / "data" / "pg_hba.conf"
        first = "local all asked scram-sha-256\nhost all asked all scram-sha-256\nlocal all barred reject\n"
        hba.write_text(first + hba.read_text())
        with psycopg.connect(cluster.dsn(), autocommit=True) as owner:
            owner.execute("CREATE ROLE asked LOGIN PASSWORD 'right'; CREATE ROLE barred LOGIN; CREATE ROLE other LOGIN")
            owner.execute("CREATE DATABASE closed")
            owner.execute("REVOKE CONNECT ON DATABASE closed FROM PUBLIC")
            owner.execute("SELECT pg_reload_conf()")
        yield cluster
    finally:
        cluster.stop()


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"user": "asked", "password": "wrong"}, "the password is wrong"),
        ({"user": "asked"}, "the server asks for a password"),
        ({"user": "barred"}, "see its pg_hba.conf"),
        ({"user": "nobody_here"}, "there is no such role: noisegate grants prints the SQL"),
        ({"user": "other", "dbname": "closed"}, "may not connect to this database: noisegate grants prints the SQL"),
        ({"dbname": "nothing_here"}, "there is no such database"),
        ({"host": "/tmp/no/such/folder"}, "there is no server at that socket"),
        ({"host": "127.0.0.1", "port": "1"}, "nothing listens there"),
        ({"host": "no-such-host.invalid"}, "no machine has the name of host"),
        ({"host": "127.0.0.1", "sslmode": "require"}, "the two sides do not agree on TLS"),
    ],
)
def test_why_it_cannot_connect_is_told_to_the_dba(
    strict: Cluster, tmp_path: Path, change: dict[str, str], told: str
) -> None:
    rules = shop_data.rules_file(tmp_path)

    done = command("check", str(rules), database=make_conninfo(strict.dsn(), **change))

    assert done.returncode == 4
    assert told in done.stderr
    assert "Traceback" not in done.stderr
