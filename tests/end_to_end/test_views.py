"""A view of protected tables, asked through a running proxy as analysts ask a table."""

import re
from collections.abc import Iterator

import psycopg
import pytest

from proxy.twin.embedded import Cluster
from tests.clients.questions import RULES
from tests.conftest import RealDatabase, make_shop
from tests.running import Noisegate, noisegate

VIEWS = """
CREATE VIEW paid AS SELECT o.id, o.customer_id, o.amount, c.city FROM orders AS o JOIN customers AS c
    ON c.id = o.customer_id WHERE o.status = 'paid';
CREATE VIEW cities AS SELECT city, count(*) AS customers FROM customers GROUP BY city;
"""


@pytest.fixture(scope="module")
def viewed(real_cluster: Cluster) -> RealDatabase:
    database = make_shop(real_cluster, "viewed")
    with database.connect() as connection:
        connection.execute(VIEWS)
    return database


@pytest.fixture(scope="module")
def session(viewed: RealDatabase, tmp_path_factory: pytest.TempPathFactory) -> Iterator[psycopg.Connection]:
    rules = RULES.replace("tables:\n", "tables:\n  paid: view\n  cities: view\n")
    with noisegate(tmp_path_factory.mktemp("views"), viewed.reader_dsn, rules=rules, name="viewed") as running:
        yield connected(running)


def connected(running: Noisegate) -> psycopg.Connection:
    return psycopg.connect(running.dsn(), autocommit=True)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT city, count(*), avg(amount) FROM paid GROUP BY city ORDER BY 1",
        "SELECT p.city, sum(p.amount) / max(c.customers) FROM paid AS p JOIN cities AS c USING (city) GROUP BY 1",
        "SELECT sum(customers), (SELECT count(*) FROM paid) FROM public.cities",
        "SELECT count(*) FROM paid WHERE amount > (SELECT avg(amount) FROM paid)",
        "SELECT * FROM cities",
    ],
)
def test_answers_have_the_names_and_types_of_the_real_ones(
    session: psycopg.Connection, viewed: RealDatabase, sql: str
) -> None:
    with viewed.connect() as real:
        expected, found = real.execute(sql), session.execute(sql)
        assert [(each.name, each.type_code) for each in found.description or ()] == [
            (each.name, each.type_code) for each in expected.description or ()
        ]
        assert len(found.fetchall()) == len(expected.fetchall())


def test_a_parameter_a_cursor_and_explain_reach_a_view(session: psycopg.Connection) -> None:
    counted = "SELECT count(*) FROM paid WHERE city = %s"
    assert session.execute(counted, ("Berlin",), prepare=True, binary=True).fetchone()
    with session.transaction(), session.cursor("c") as cursor:
        assert cursor.execute(counted, ("Berlin",)).fetchone()
    lines = session.execute("EXPLAIN SELECT count(*) FROM paid").fetchall()
    assert re.search("tables: (orders, customers|customers, orders)", "\n".join(line for (line,) in lines))


def test_its_rows_are_no_more_open_than_those_of_its_tables(session: psycopg.Connection) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        session.execute("SELECT * FROM paid")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        session.execute("SELECT id, count(*) FROM paid GROUP BY 1")


def test_tools_see_its_columns_and_what_may_be_done_with_them(session: psycopg.Connection) -> None:
    seen = "SELECT column_name FROM information_schema.columns WHERE table_name = 'paid' ORDER BY ordinal_position"
    told = "SELECT column_name, can_be_summed FROM noisegate.columns WHERE table_name = 'paid'"
    probed = session.execute("SELECT * FROM paid LIMIT 0")

    assert session.execute(seen).fetchall() == [("id",), ("customer_id",), ("amount",), ("city",)]
    assert [each.name for each in probed.description or ()] == ["id", "customer_id", "amount", "city"]
    assert ("amount", True) in session.execute(told).fetchall()
