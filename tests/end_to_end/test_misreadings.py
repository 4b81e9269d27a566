"""Spellings that a parser took for others: each means what PostgreSQL means by it, or is refused and costs nothing."""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from proxy.twin.embedded import Cluster
from tests.conftest import RealDatabase, make_shop
from tests.support.running import Noisegate, noisegate

# Names that differ from PostgreSQL's own by their quotes alone.
NAMESAKES = """
CREATE DOMAIN "int" AS text;
CREATE FUNCTION "UPPER"(text) RETURNS text IMMUTABLE LANGUAGE sql RETURN lower($1);
"""
NAMESAKES_13 = NAMESAKES.replace("RETURN lower($1)", "AS 'SELECT lower($1)'")
UNKNOWN = [
    ("SELECT count(*) FROM customers WHERE \"UPPER\"(city) = 'BERLIN'", ("42883", "0A000")),
    ("SELECT count(*) FROM customers WHERE \"Lower\"(city) = 'berlin'", ("42883", "0A000")),
    ('SELECT sum(amount::"integer") FROM orders', ("42704", "0A000")),
    ('SELECT count(*) FROM orders WHERE amount::"Numeric" > 5', ("42704", "0A000")),
    ('SELECT count(*) FROM customers WHERE "now"() IS NULL AND "NOW"() IS NULL', ("42883", "0A000")),
]
MEANT = [
    "SELECT count(*) FROM customers WHERE btrim(name, 'Custr') = 'omer 7' OR btrim(name, 'C7') = 'ustomer '",
    "SELECT count(*) FROM customers WHERE btrim(city, 'Bn') IN ('erli', 'Lyo') AND btrim('xxaxx', 'x') = 'a'",
    "SELECT count(*) FROM customers WHERE ltrim(city, 'BL') = 'erlin' OR rtrim(city, 'no') = 'Ly'",
    "SELECT count(DISTINCT id) FROM customers AS c JOIN (SELECT customer_id AS id, amount FROM orders) AS o USING (id) "
    "WHERE o.amount > 5",
]
EITHER = [
    "SELECT count(*) FROM customers WHERE \"UPPER\"(city) = 'berlin'",
    "SELECT count(*) FROM customers WHERE \"upper\"(city) = 'BERLIN'",
    "SELECT count(*) FROM customers WHERE (id + 1)::\"int\" > '3'",
    "SELECT count(DISTINCT j.id) FROM customers AS c JOIN (SELECT customer_id AS id, amount FROM orders) AS o "
    "USING (id) AS j WHERE j.id > 50",
    "SELECT count(*) FROM customers WHERE @ (id - 200) < 50",
]


@pytest.fixture(scope="module")
def named(real_cluster: Cluster) -> RealDatabase:
    """A shop with a domain and a function whose names look like PostgreSQL's."""
    database = make_shop(real_cluster, "misread_shop")
    with database.connect() as connection:
        connection.execute(NAMESAKES if connection.info.server_version >= 140000 else NAMESAKES_13)
    return database


@pytest.fixture(scope="module")
def running(named: RealDatabase, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Noisegate]:
    home: Path = tmp_path_factory.mktemp("misread")
    with noisegate(home, named.reader_dsn, name=named.name) as running:
        yield running


@pytest.fixture(scope="module")
def plain(shop: RealDatabase, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Noisegate]:
    with noisegate(tmp_path_factory.mktemp("read"), shop.reader_dsn) as running:
        yield running


def session_of(running: Noisegate) -> psycopg.Connection:
    session = psycopg.connect(running.dsn(), autocommit=True)
    session.execute("SET noisegate.epsilon = 10")
    return session


@pytest.mark.parametrize(("sql", "sqlstates"), UNKNOWN)
def test_a_name_in_quotes_is_no_name_without_them(plain: Noisegate, sql: str, sqlstates: tuple[str, ...]) -> None:
    before = plain.ledger_length()
    with session_of(plain) as session, pytest.raises(psycopg.Error) as refusal:
        session.execute(sql.encode())

    assert refusal.value.sqlstate in sqlstates
    assert plain.ledger_length() == before


@pytest.mark.parametrize("sql", MEANT)
def test_what_is_printed_another_way_is_answered_as_postgresql_means_it(
    plain: Noisegate, shop: RealDatabase, sql: str
) -> None:
    with session_of(plain) as session, shop.connect() as real:
        (answer,) = session.execute(sql.encode()).fetchone() or ()
        (truth,) = real.execute(sql.encode()).fetchone() or ()

    assert abs(answer - truth) <= 5


@pytest.mark.parametrize("sql", EITHER)
def test_a_namesake_is_never_taken_for_what_it_looks_like(running: Noisegate, named: RealDatabase, sql: str) -> None:
    """Either refused for nothing, or what PostgreSQL itself counts: of 400 people noise moves it by less than 5."""
    before = running.ledger_length()
    with session_of(running) as session, named.connect() as real:
        (truth,) = real.execute(sql.encode()).fetchone() or ()
        try:
            (answer,) = session.execute(sql.encode()).fetchone() or ()
        except psycopg.Error as refusal:
            assert refusal.sqlstate in ("42883", "42704", "0A000", "42501")
            assert running.ledger_length() == before
            return

    assert abs(answer - truth) <= 5
