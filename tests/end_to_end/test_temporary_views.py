# ruff: noqa: E501  (a statement a line)
"""Temporary views: by them tools learn what columns a query has; what reads one is read as the view's query."""

from collections.abc import Iterator

import psycopg
import pytest

from tests.support.running import Noisegate

CITIES = "CREATE TEMPORARY VIEW cities AS SELECT city, count(*) AS n, avg(extract(year FROM birth_date)) FROM customers GROUP BY 1"
COLUMNS = """
SELECT attname, pg_catalog.format_type(atttypid, atttypmod) FROM pg_catalog.pg_attribute
WHERE attrelid = CAST('"cities"' AS regclass) AND attnum > 0 AND NOT attisdropped ORDER BY attnum
"""


@pytest.fixture
def session(proxy: Noisegate) -> Iterator[psycopg.Connection]:
    with psycopg.connect(proxy.dsn(), autocommit=True) as connection:
        yield connection


def test_a_view_tells_its_columns_for_nothing(session: psycopg.Connection) -> None:
    told: list[str] = []
    session.add_notice_handler(lambda notice: told.append(notice.message_primary or ""))

    session.execute(CITIES)
    columns = session.execute(COLUMNS).fetchall()
    session.execute("DROP VIEW IF EXISTS cities")

    assert columns == [("city", "text"), ("n", "bigint"), ("avg", "numeric")]
    assert not any(" spent" in text for text in told)
    with pytest.raises(psycopg.errors.UndefinedTable):
        session.execute("SELECT * FROM cities")


@pytest.mark.parametrize("prepare", [False, True])
def test_what_reads_a_view_is_answered_as_its_query(session: psycopg.Connection, prepare: bool) -> None:
    session.execute(CITIES)
    session.execute(
        "CREATE TEMP VIEW paid(who, paid) AS SELECT customer_id, amount FROM public.orders WHERE status = 'paid'"
    )
    session.execute("CREATE TEMP VIEW rich AS SELECT who FROM paid WHERE paid > 300")
    session.execute("SET noisegate.rows_per_unit = 8")  # so little noise that an answer is not a fifth beside another
    named = "SELECT city, count(*) AS n, avg(extract(year FROM birth_date)) FROM customers GROUP BY 1 ORDER BY 1"
    pairs = {
        "SELECT * FROM cities ORDER BY 1": named,
        "SELECT sum(x.paid) FROM pg_temp.paid AS x": "SELECT sum(amount) FROM orders WHERE status = 'paid'",
        "SELECT count(*) FROM rich": "SELECT count(*) FROM orders WHERE status = 'paid' AND amount > 300",
        "SELECT count(*) FROM customers JOIN rich ON who = id": (
            "SELECT count(*) FROM customers JOIN orders ON customer_id = customers.id WHERE status = 'paid' AND amount > 300"
        ),
    }
    for sql, same in pairs.items():
        one, other = session.execute(sql, prepare=prepare).fetchall(), session.execute(same).fetchall()
        assert len(one) == len(other), sql
        assert [float(row[-1]) for row in one] == pytest.approx([float(row[-1]) for row in other], rel=0.2), sql
    assert len(session.execute("EXPLAIN SELECT count(*) FROM rich").fetchall()) > 5
    assert session.execute("SELECT * FROM cities LIMIT 0").description is not None
    with session.transaction():
        session.execute("DECLARE c CURSOR FOR SELECT n FROM cities")
        assert session.execute("FETCH ALL FROM c").fetchall()


def test_a_view_hides_the_table_of_its_name(session: psycopg.Connection) -> None:
    """As in PostgreSQL; and the table is read again when the view is gone."""
    session.execute("SET noisegate.epsilon = 10")
    session.execute("CREATE TEMP VIEW customers AS SELECT * FROM public.orders")
    session.execute("CREATE TEMP VIEW products AS SELECT * FROM public.customers")
    (hidden,) = session.execute("SELECT count(*) FROM customers").fetchone() or (0,)
    (counted,) = session.execute("SELECT count(*) FROM products").fetchone() or (0,)
    assert hidden > 1000 and 300 < counted < 500
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        session.execute("SELECT * FROM products")
    session.execute("DISCARD TEMP")
    (found,) = session.execute("SELECT count(*) FROM customers").fetchone() or (0,)
    assert 300 < found < 500
    assert session.execute("SELECT count(*) FROM products").fetchone() == (30,)


def test_a_view_ends_with_its_transaction_when_that_is_taken_back(session: psycopg.Connection) -> None:
    with session.transaction(force_rollback=True):
        session.execute("CREATE OR REPLACE TEMP VIEW v AS SELECT count(*) FROM customers")
        assert session.execute("SELECT count FROM v").fetchone()
    with pytest.raises(psycopg.errors.UndefinedTable):
        session.execute("SELECT count FROM v")
    session.execute("CREATE TEMP VIEW v AS SELECT 7 AS count; CREATE TEMP VIEW w AS SELECT id FROM products")
    assert session.execute("SELECT count FROM v").fetchone() == (7,)
    assert session.execute("SELECT count(*) FROM w").fetchone() == (30,)


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("SELECT * FROM rows", "42501"),
        ("SELECT * FROM rows LIMIT 5", "42501"),
        ("COPY rows TO STDOUT", "42501"),
        ("COPY (SELECT name FROM rows) TO STDOUT", "42501"),
        ("SELECT query_to_xml('SELECT * FROM rows', true, true, '')", "42501"),
        ("EXPLAIN ANALYZE SELECT * FROM rows", "0A000"),
        ("PREPARE p AS SELECT name FROM rows; EXECUTE p", "42501"),
        ("CREATE TEMP TABLE t AS SELECT * FROM rows", "25006"),
        ("CREATE TEMP TABLE t (a int)", "25006"),
        ("CREATE VIEW v AS SELECT * FROM rows", "25006"),
        ("CREATE VIEW pg_temp.v AS SELECT * FROM rows", "25006"),
        ("CREATE TEMP VIEW v AS SELECT pg_read_file('x')", "42501"),
        ("DROP VIEW public.customers", "42809"),
        ("UPDATE rows SET name = 'x'", "25006"),
    ],
)
def test_rows_do_not_leave_through_a_view(session: psycopg.Connection, sql: str, code: str) -> None:
    session.execute("CREATE TEMP VIEW rows AS SELECT * FROM customers")
    with pytest.raises(psycopg.Error) as caught:
        session.execute(sql)
    assert caught.value.sqlstate == code, caught.value


def test_a_view_means_what_the_string_has_made_of_it_so_far(session: psycopg.Connection) -> None:
    session.execute("CREATE TEMP VIEW rows AS SELECT * FROM customers")

    made = session.execute("CREATE TEMP VIEW customers AS SELECT 1 AS id; SELECT count(*) FROM customers")
    assert made.nextset()
    assert made.fetchall() == [(1,)]
    session.execute("DROP VIEW pg_temp.customers")
    made = session.execute("CREATE TEMP VIEW v AS SELECT * FROM customers; SELECT count(*) FROM v")
    assert made.nextset()
    assert made.fetchone() is not None
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="cannot be returned"):
        session.execute("CREATE TEMP VIEW w AS SELECT * FROM customers; SELECT * FROM w")
    with pytest.raises(psycopg.errors.UndefinedTable):
        session.execute("DROP VIEW rows; SELECT count(*) FROM rows")
    assert session.execute("SELECT count(*) FROM rows").fetchone() is not None  # the string was taken back


def test_views_may_come_and_go_as_often_as_one_likes(session: psycopg.Connection) -> None:
    with session.pipeline():
        for number in range(1_100):
            session.execute(f"CREATE TEMP VIEW v{number} AS SELECT city FROM customers", prepare=False)
            session.execute(f"DROP VIEW IF EXISTS v{number}", prepare=False)
    session.execute("CREATE TEMP VIEW last AS SELECT city, name FROM customers")

    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="cannot be returned"):
        session.execute("SELECT name FROM last")
    assert session.execute("SELECT count(*) FROM last").fetchone() is not None
    assert session.execute("SELECT count(*) FROM products").fetchone() == (30,)
    session.execute("DROP VIEW last")


def test_a_list_of_views_is_dropped_as_postgresql_does_it(session: psycopg.Connection) -> None:
    session.execute("CREATE TEMP VIEW one AS SELECT city FROM customers; CREATE TEMP VIEW two AS SELECT city FROM one")
    session.execute("CREATE TEMP VIEW three AS SELECT 3")
    with pytest.raises(psycopg.errors.DependentObjectsStillExist):
        session.execute("DROP VIEW one RESTRICT")
    session.execute("DROP VIEW IF EXISTS one, pg_temp.three, nothing CASCADE")

    for name in ("one", "two", "three"):
        with pytest.raises(psycopg.errors.UndefinedTable):
            session.execute(f"SELECT count(*) FROM {name}")


def test_a_session_has_a_limited_number_of_views(session: psycopg.Connection) -> None:
    with pytest.raises(psycopg.errors.ProgramLimitExceeded):
        for number in range(200):
            session.execute(f"CREATE TEMP VIEW v{number} AS SELECT 1")
