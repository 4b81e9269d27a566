"""A view of protected tables, asked through a running proxy as analysts ask a table."""

import re
from collections.abc import Iterator
from decimal import Decimal

import psycopg
import pytest
from sqlalchemy import create_engine, inspect, make_url
from sqlalchemy.pool import StaticPool

from proxy.twin.embedded import Cluster
from tests.clients.questions import RULES
from tests.conftest import RealDatabase, make_shop
from tests.support.running import Noisegate, noisegate

VIEWS = """
CREATE VIEW paid AS SELECT o.id, o.customer_id, o.amount, c.city FROM orders AS o JOIN customers AS c
    ON c.id = o.customer_id WHERE o.status = 'paid';
CREATE FUNCTION net(gross numeric) RETURNS numeric LANGUAGE sql IMMUTABLE AS 'SELECT round(gross / 1.19, 2)';
CREATE VIEW price_list AS SELECT category, min(price) AS cheapest FROM products GROUP BY category;
CREATE MATERIALIZED VIEW names AS SELECT id, name FROM products;
GRANT SELECT ON price_list, names TO noisegate_reader;
CREATE VIEW cities AS SELECT city, count(*) AS customers FROM customers GROUP BY city;
"""

PUBLIC = """\
  price_list: {public: {because: "prices hang on the wall"}}
  names: {public: {because: "so do the names"}}
"""


@pytest.fixture(scope="module")
def viewed(real_cluster: Cluster) -> RealDatabase:
    database = make_shop(real_cluster, "viewed")
    with database.connect() as connection:
        connection.execute(VIEWS)
    return database


@pytest.fixture(scope="module")
def session(viewed: RealDatabase, tmp_path_factory: pytest.TempPathFactory) -> Iterator[psycopg.Connection]:
    rules = RULES.replace("tables:\n", f"tables:\n  paid: view\n  cities: view\n{PUBLIC}")
    with noisegate(tmp_path_factory.mktemp("views"), viewed.reader_dsn, rules=rules, name="viewed") as running:
        connection = connected(running)
        connection.execute("SET noisegate.empty_groups = show")  # as many groups as the rules list
        yield connection


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
        assert [(column.name, column.type_code) for column in found.description or ()] == [
            (column.name, column.type_code) for column in expected.description or ()
        ]
        assert len(found.fetchall()) == len(expected.fetchall())


def test_a_view_that_is_public_for_a_reason_is_exact_and_stands_alone(session: psycopg.Connection) -> None:
    assert session.execute("SELECT count(*), min(cheapest) > 0 FROM price_list").fetchall() == [(3, True)]
    assert session.execute("SELECT count(*) FROM names").fetchall() == [(30,)]
    for name in ("price_list", "names"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match=f'the public view "{name}" cannot be read'):
            session.execute(f"SELECT count(*) FROM orders JOIN {name} AS p ON true")


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
    assert [column.name for column in probed.description or ()] == ["id", "customer_id", "amount", "city"]
    assert ("amount", True) in session.execute(told).fetchall()


def test_tools_see_views_indexes_and_functions(session: psycopg.Connection, viewed: RealDatabase) -> None:
    url = make_url("postgresql+psycopg://")
    with viewed.connect() as real:
        seen = [
            inspect(create_engine(url, creator=lambda connection=connection: connection, poolclass=StaticPool))
            for connection in (session, real)
        ]
        assert [sorted(inspector.get_view_names()) for inspector in seen] == [["cities", "paid", "price_list"]] * 2
        assert seen[0].get_indexes("orders") == seen[1].get_indexes("orders") != []
        assert sorted(seen[0].get_table_names()) == sorted(set(seen[1].get_table_names()) - {"staff"})


def test_functions_that_compute_are_used_over_answers(session: psycopg.Connection) -> None:
    ((net, gross),) = session.execute("SELECT net(sum(amount)), sum(amount) FROM paid").fetchall()
    assert abs(net * Decimal("1.19") - gross) <= Decimal("0.01")
