"""EXPLAIN of a private statement shows what it would cost and reads, and costs nothing itself."""

import psycopg
import pytest

from tests.running import Noisegate


@pytest.fixture
def session(proxy: Noisegate) -> psycopg.Connection:
    return psycopg.connect(proxy.dsn(), autocommit=True)


def lines(session: psycopg.Connection, sql: str) -> str:
    return "\n".join(str(row[0]) for row in session.execute(sql).fetchall())


def test_a_private_statement_is_explained_and_nothing_is_spent(session: psycopg.Connection) -> None:
    told: list[str] = []
    session.add_notice_handler(lambda notice: told.append(notice.message_primary or ""))

    text = lines(session, "EXPLAIN SELECT status, count(*), avg(amount) FROM orders GROUP BY status")

    assert "Private answer  (epsilon=" in text
    for words in ("tables: orders", "unit: customers.id", "rows per unit: 40", "sensitivity 40", "inner SQL: WITH"):
        assert words in text
    assert told == []


def test_the_json_form_is_json(session: psycopg.Connection) -> None:
    cursor = session.execute("EXPLAIN (FORMAT JSON) SELECT count(*) FROM orders")
    assert cursor.description is not None
    assert (cursor.description[0].name, cursor.description[0].type_code) == ("QUERY PLAN", 114)

    row = cursor.fetchone()

    assert row is not None
    (whole,) = row[0]
    (block,) = whole["Plan"]["blocks"]
    assert block["tables"] == ["orders"]


def test_groups_that_are_in_the_data_are_not_counted(session: psycopg.Connection) -> None:
    text = lines(session, "EXPLAIN SELECT name, count(*) FROM customers GROUP BY name")

    assert "groups: found in the data, by threshold" in text


def test_parameters_are_explained_as_bound(session: psycopg.Connection) -> None:
    text = lines(session, "EXPLAIN SELECT count(*) FROM orders WHERE note = 'it''s' OR note = 'back\\slash'")

    assert "it''s" in text


@pytest.mark.parametrize(
    ("sql", "sqlstate"),
    [
        ("EXPLAIN SELECT * FROM customers", "42501"),
        ("EXPLAIN ANALYZE SELECT count(*) FROM orders", "0A000"),
        ("EXPLAIN (ANALYZE, FORMAT JSON) SELECT count(*) FROM orders", "0A000"),
        ("EXPLAIN (FORMAT YAML) SELECT count(*) FROM orders", "0A000"),
        ("EXPLAIN SELECT nope FROM orders", "42703"),
    ],
)
def test_what_cannot_be_explained_is_refused(session: psycopg.Connection, sql: str, sqlstate: str) -> None:
    with pytest.raises(psycopg.Error) as caught:
        session.execute(sql)

    assert caught.value.sqlstate == sqlstate
    assert session.execute("SELECT 1").fetchone() == (1,)


def test_explain_of_public_tables_is_postgresqls_own(session: psycopg.Connection) -> None:
    assert "Scan on products" in lines(session, "EXPLAIN SELECT * FROM products")
