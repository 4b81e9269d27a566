"""postgres_fdw: another PostgreSQL as a client. What it sends as an aggregate is answered, what it fetches is not."""

from collections.abc import Iterator

import psycopg
import pytest

from tests.clients import as_other_user
from tests.clients.installed import program
from tests.clients.questions import CITIES, check_cities
from tests.support import shop as shop_data
from tests.support.running import Noisegate

pytestmark = pytest.mark.clients
BINARIES = "/usr/lib/postgresql/15/bin"


@pytest.fixture(scope="module")
def elsewhere(proxy: Noisegate) -> Iterator[psycopg.Connection]:
    """A PostgreSQL of its own with the shop as foreign tables."""
    initdb, pg_ctl = (program(name, f"{BINARIES}/{name}") for name in ("initdb", "pg_ctl"))
    with as_other_user.folder() as folder:
        data, log = str(folder / "data"), str(folder / "log")
        as_other_user.run(initdb, "-D", data, "-A", "trust", "-U", "owner", "--no-sync")
        options = f"-c listen_addresses='' -c unix_socket_directories={folder}"
        as_other_user.run(pg_ctl, "-D", data, "-w", "-l", log, "-o", options, "start")
        try:
            with psycopg.connect(f"host={folder} user=owner dbname=postgres", autocommit=True) as connection:
                _import_shop(connection, proxy)
                yield connection
        finally:
            as_other_user.run(pg_ctl, "-D", data, "-m", "fast", "stop")


def _import_shop(connection: psycopg.Connection, proxy: Noisegate) -> None:
    """Rows are made dear, so that PostgreSQL sends an aggregate rather than fetch what it is made of."""
    types = shop_data.SCHEMA.partition("CREATE TABLE")[0]
    password = shop_data.PASSWORDS["ada"]
    for statement in (
        "CREATE EXTENSION postgres_fdw",
        types,
        "CREATE SERVER far FOREIGN DATA WRAPPER postgres_fdw OPTIONS "
        f"(host '127.0.0.1', port '{proxy.port}', dbname '{proxy.database}', sslmode 'require', fdw_tuple_cost '1000')",
        f"CREATE USER MAPPING FOR owner SERVER far OPTIONS (user 'ada', password '{password}')",
        "IMPORT FOREIGN SCHEMA public FROM SERVER far INTO public",
    ):
        connection.execute(statement)


def test_aggregates_are_answered(elsewhere: psycopg.Connection, cities: dict[str | None, int]) -> None:
    check_cities(elsewhere.execute(CITIES).fetchall(), cities)
    row = elsewhere.execute("SELECT count(*), sum(amount) FROM orders WHERE amount > 50").fetchone()
    assert row is not None
    assert 1000 < row[0] < 3000


def test_rows_of_public_tables_are_fetched(elsewhere: psycopg.Connection) -> None:
    assert len(elsewhere.execute("SELECT * FROM products").fetchall()) == 30


def test_rows_of_protected_tables_are_refused_also_after_a_savepoint(elsewhere: psycopg.Connection) -> None:
    with elsewhere.transaction():
        with pytest.raises(psycopg.errors.InsufficientPrivilege), elsewhere.transaction():
            elsewhere.execute("SELECT * FROM customers")
        assert elsewhere.execute("SELECT count(*) FROM customers").fetchone() is not None


def test_writes_are_refused(elsewhere: psycopg.Connection) -> None:
    with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
        elsewhere.execute("INSERT INTO products VALUES (999, 'x', 'book', 1)")
