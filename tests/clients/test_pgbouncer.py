"""pgbouncer in transaction mode: many clients on one connection of the proxy, which must keep nothing of theirs."""

from collections.abc import Iterator

import psycopg
import pytest

from tests.clients import as_other_user
from tests.clients.installed import program
from tests.clients.questions import AMOUNTS, CITIES, ROWS, check_amounts, check_cities
from tests.server.relay import eventually
from tests.support import shop
from tests.support.running import Noisegate

pytestmark = pytest.mark.clients

PORT = 6432  # names the socket; nobody else can have it


@pytest.fixture(scope="module")
def pooled(proxy: Noisegate) -> Iterator[str]:
    """How clients reach the pool, which has a single connection behind it."""
    pgbouncer = program("pgbouncer", "/usr/sbin/pgbouncer")
    with as_other_user.folder() as folder:
        users, settings = folder / "users", folder / "pgbouncer.ini"
        users.write_text(f'"ada" "{shop.PASSWORDS["ada"]}"\n')
        settings.write_text(
            f"[databases]\nshop = host=127.0.0.1 port={proxy.port} dbname={proxy.database}\n"
            f"[pgbouncer]\nlisten_addr =\nlisten_port = {PORT}\nunix_socket_dir = {folder}\nauth_type = trust\n"
            f"auth_file = {users}\npool_mode = transaction\ndefault_pool_size = 1\nserver_tls_sslmode = require\n"
        )
        as_other_user.give(users)
        as_other_user.give(settings)
        process = as_other_user.start(pgbouncer, str(settings))
        try:
            assert eventually((folder / f".s.PGSQL.{PORT}").exists, 20), "pgbouncer does not listen"
            yield f"host={folder} port={PORT} dbname=shop user=ada"
        finally:
            process.terminate()
            process.wait(20)


def connect(pooled: str) -> psycopg.Connection:
    """A client as pgbouncer wants it in transaction mode: without named prepared statements."""
    return psycopg.connect(pooled, autocommit=True, prepare_threshold=None)


def test_clients_in_turn_get_answers(pooled: str, cities: dict[str | None, int]) -> None:
    with connect(pooled) as one, connect(pooled) as other:
        for _ in range(2):
            for client in (one, other):
                check_cities(client.execute(CITIES).fetchall(), cities)
                check_amounts(client.execute(AMOUNTS.format("%s"), (50,)).fetchall())


def test_a_refusal_ends_nothing_for_others(pooled: str, cities: dict[str | None, int]) -> None:
    with connect(pooled) as one, connect(pooled) as other:
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            one.execute(ROWS)
        check_cities(other.execute(CITIES).fetchall(), cities)


def test_transactions_and_savepoints_stay_together(pooled: str, cities: dict[str | None, int]) -> None:
    with connect(pooled) as client, client.transaction():
        with pytest.raises(psycopg.errors.InsufficientPrivilege), client.transaction():
            client.execute(ROWS)
        client.execute("SET LOCAL TimeZone = 'Asia/Tokyo'")
        check_cities(client.execute(CITIES).fetchall(), cities)
        assert client.execute("SHOW TimeZone").fetchone() == ("Asia/Tokyo",)


def test_settings_of_one_transaction_do_not_reach_the_next(pooled: str) -> None:
    with connect(pooled) as client:
        with client.transaction():
            client.execute("SET LOCAL noisegate.epsilon = 5")
        assert client.execute("SHOW noisegate.epsilon").fetchone() != ("5",)
        client.execute("DISCARD ALL")
        assert client.execute("SELECT 1").fetchone() == (1,)
