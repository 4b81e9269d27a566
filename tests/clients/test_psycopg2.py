"""psycopg 2: the simple protocol, values in the text, cursors by DECLARE."""

from collections.abc import Iterator
from io import StringIO

import psycopg2
import psycopg2.extras
import pytest
from psycopg2.extensions import connection as Connection  # noqa: N812  (it is a class)

from tests.clients.questions import AMOUNTS, CITIES, ROWS, check_amounts, check_cities
from tests.support.running import Noisegate

Cities = dict[str | None, int]


@pytest.fixture
def connection(proxy: Noisegate) -> Iterator[Connection]:
    connection = psycopg2.connect(proxy.dsn())
    yield connection
    connection.close()


def test_answers_and_parameters(connection: Connection, cities: Cities) -> None:
    with connection, connection.cursor() as cursor:
        cursor.execute(CITIES)
        check_cities(cursor.fetchall(), cities)
        cursor.execute(AMOUNTS.format("%s"), [50])
        check_amounts(cursor.fetchall())


def test_a_refusal_aborts_the_transaction_and_rollback_mends_it(connection: Connection, cities: Cities) -> None:
    with connection.cursor() as cursor:
        with pytest.raises(psycopg2.errors.InsufficientPrivilege) as refusal:
            cursor.execute(ROWS)
        assert refusal.value.diag.message_hint
        with pytest.raises(psycopg2.errors.InFailedSqlTransaction):
            cursor.execute("SELECT 1")
        connection.rollback()
        cursor.execute(CITIES)
        check_cities(cursor.fetchall(), cities)


@pytest.mark.parametrize(("scrollable", "withhold"), [(None, False), (False, False), (True, True)])
def test_named_cursors(connection: Connection, cities: Cities, scrollable: bool | None, withhold: bool) -> None:
    with connection.cursor("answer", scrollable=scrollable, withhold=withhold) as cursor:
        cursor.itersize = 2
        cursor.execute(CITIES)
        if withhold:
            connection.commit()
        check_cities(list(cursor), cities)


def test_copy_expert_writes_a_private_answer(connection: Connection, cities: Cities) -> None:
    out = StringIO()
    with connection.cursor() as cursor:
        cursor.copy_expert(f"COPY ({CITIES}) TO STDOUT WITH CSV", out)

    pairs = [line.split(",") for line in out.getvalue().splitlines()]
    check_cities([(city or None, int(count)) for city, count in pairs], cities)


def test_statements_that_are_joined_into_one_string(connection: Connection, cities: Cities) -> None:
    with connection.cursor() as cursor:
        psycopg2.extras.execute_batch(cursor, AMOUNTS.format("%s"), [[50], [50]])
        check_amounts(cursor.fetchall())
        cursor.execute(f"SET TIME ZONE 'UTC'; SELECT 1; {CITIES}")
        check_cities(cursor.fetchall(), cities)


def test_what_a_pool_does_between_two_uses(connection: Connection, cities: Cities) -> None:
    connection.set_session(isolation_level="REPEATABLE READ", readonly=True)
    with connection.cursor() as cursor:
        cursor.execute(CITIES)
        check_cities(cursor.fetchall(), cities)
    connection.reset()
    connection.autocommit = True
    with connection.cursor() as cursor:
        cursor.execute("DISCARD ALL")
        cursor.execute(CITIES)
        check_cities(cursor.fetchall(), cities)


def test_a_client_that_speaks_latin1(connection: Connection) -> None:
    connection.set_client_encoding("LATIN1")
    with connection.cursor() as cursor:
        cursor.execute("SELECT 'é', count(*) FROM customers")
        ((letter, count),) = cursor.fetchall()
    assert letter == "é"
    assert 380 < count < 420
