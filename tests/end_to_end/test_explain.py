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


@pytest.mark.parametrize("prepare", [None, True], ids=["simple", "extended"])
def test_execute_of_a_prepared_statement_is_explained_with_its_values(
    session: psycopg.Connection, *, prepare: bool | None
) -> None:
    session.execute("PREPARE p (numeric, text) AS SELECT count(*), $2 AS tag FROM orders WHERE amount > $1")

    for options in ("", "(FORMAT TEXT) ", "VERBOSE "):
        cursor = session.execute(f"EXPLAIN {options}EXECUTE p (100 + 23, 'it''s')", prepare=prepare)
        text = "\n".join(str(row[0]) for row in cursor.fetchall())

        assert "Private answer  (epsilon=" in text
        assert "123" in text


def test_execute_of_what_a_driver_has_prepared_is_explained(session: psycopg.Connection) -> None:
    session.prepare_threshold = 0
    session.execute("SELECT count(*) FROM orders WHERE amount > %s::numeric AND status = %s", (5, "paid"))
    (name,) = (
        session.execute("SELECT name FROM pg_prepared_statements WHERE statement LIKE '%amount%' LIMIT 1").fetchone()
        or ()
    )

    text = lines(session, f"EXPLAIN EXECUTE {name} (7, 'open')")

    assert "Private answer" in text
    assert "'open'" in text


def test_execute_of_a_public_statement_is_explained_by_postgresql(session: psycopg.Connection) -> None:
    session.execute("PREPARE public_one AS SELECT name FROM products")

    assert "Scan on products" in lines(session, "EXPLAIN EXECUTE public_one")


@pytest.mark.parametrize("prepare", [None, True], ids=["simple", "extended"])
@pytest.mark.parametrize(
    ("sql", "sqlstate"),
    [
        ("EXPLAIN EXECUTE nothing", "26000"),
        ("EXPLAIN ANALYZE EXECUTE p (1)", "0A000"),
        ("EXPLAIN (ANALYZE) EXECUTE p (1)", "0A000"),
        ("EXPLAIN EXECUTE p", "42601"),
        ("EXPLAIN EXECUTE p (1, 2)", "42601"),
        ("EXPLAIN EXECUTE p ('x')", "22P02"),
    ],
)
def test_execute_that_cannot_be_is_not_explained(
    session: psycopg.Connection, sql: str, sqlstate: str, *, prepare: bool | None
) -> None:
    session.execute("PREPARE p (numeric) AS SELECT count(*) FROM orders WHERE amount > $1")

    with pytest.raises(psycopg.Error) as refusal:
        session.execute(sql, prepare=prepare)

    assert refusal.value.sqlstate == sqlstate
    assert session.execute("SELECT 1").fetchone() == (1,)


@pytest.mark.parametrize("prepare", [None, True], ids=["simple", "extended"])
def test_execute_with_values_is_answered_in_both_protocols(
    session: psycopg.Connection, *, prepare: bool | None
) -> None:
    session.execute("PREPARE counted (numeric, text) AS SELECT count(*) > 500, $2 AS tag FROM orders WHERE amount > $1")

    assert session.execute("EXECUTE counted (1, 'mine')", prepare=prepare).fetchall() == [(True, "mine")]
