"""pg8000: a Sync after every step, so that the unnamed statement has to survive it."""

import ssl
from collections.abc import Iterator
from io import BytesIO

import pg8000.dbapi
import pg8000.native
import pytest

from tests.clients.questions import AMOUNTS, CITIES, ROWS, check_amounts, check_cities
from tests.support import shop
from tests.support.running import Noisegate

Cities = dict[str | None, int]


@pytest.fixture
def connection(proxy: Noisegate) -> Iterator[pg8000.native.Connection]:
    context = ssl.create_default_context(cafile=str(proxy.rules.parent / "server.crt"))
    with pg8000.native.Connection(
        "ada",
        host="127.0.0.1",
        port=proxy.port,
        database=proxy.database,
        password=shop.PASSWORDS["ada"],
        ssl_context=context,
    ) as connection:
        yield connection


def test_answers_with_and_without_parameters(connection: pg8000.native.Connection, cities: Cities) -> None:
    check_cities([(city, count) for city, count in connection.run(CITIES)], cities)
    check_amounts([tuple(row) for row in connection.run(AMOUNTS.format("CAST(:least AS numeric)"), least=50)])


def test_a_prepared_statement_is_run_again(connection: pg8000.native.Connection) -> None:
    statement = connection.prepare(AMOUNTS.format("CAST(:least AS numeric)"))
    check_amounts([tuple(row) for row in statement.run(least=50)])
    check_amounts([tuple(row) for row in statement.run(least=50)])
    statement.close()


def test_a_refusal_leaves_the_session_usable(connection: pg8000.native.Connection, cities: Cities) -> None:
    with pytest.raises(pg8000.native.DatabaseError) as refusal:
        connection.run(ROWS)
    assert refusal.value.args[0]["C"] == "42501"
    check_cities([(city, count) for city, count in connection.run(CITIES)], cities)


def test_a_transaction_with_a_refusal_in_it(connection: pg8000.native.Connection, cities: Cities) -> None:
    connection.run("START TRANSACTION")
    check_cities([(city, count) for city, count in connection.run(CITIES)], cities)
    with pytest.raises(pg8000.native.DatabaseError):
        connection.run(ROWS)
    connection.run("ROLLBACK")
    check_cities([(city, count) for city, count in connection.run(CITIES)], cities)


def test_copy_to_a_stream(connection: pg8000.native.Connection, cities: Cities) -> None:
    out = BytesIO()
    connection.run(f"COPY ({CITIES}) TO STDOUT (FORMAT csv)", stream=out)
    pairs = [line.split(",") for line in out.getvalue().decode().splitlines()]
    check_cities([(city or None, int(count)) for city, count in pairs], cities)
