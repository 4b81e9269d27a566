"""Public tables beyond the limit of the twin are read on the real database, by a login that can read nothing else."""

import asyncio
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from proxy.twin.embedded import Cluster
from tests.conftest import RealDatabase, make_shop
from tests.support import shop
from tests.support.running import Noisegate, command, noisegate
from tests.support.waiting import until

ROLE = "noisegate_public_reader"
RULES = (
    shop.RULES.replace("{epsilon: 1, max_epsilon: 10,", "{epsilon: 10, max_epsilon: 10,")
    .replace("  products: public\n", "  products: {public: true, columns: {cost: hidden}}\n")
    .replace("unit: customers.id", "public_reader: __READER__\nunit: customers.id", 1)
)
SCHEMA = """
ALTER TABLE products ADD COLUMN cost numeric, ADD COLUMN words tsvector, ADD COLUMN kind segment;
UPDATE products SET cost = price / 2, words = to_tsvector('english', name), kind = 'business' WHERE id % 2 = 0;
UPDATE products SET cost = price / 2, words = to_tsvector('english', name), kind = 'consumer' WHERE id % 2 = 1;
CREATE VIEW spy AS SELECT email FROM customers;
CREATE FUNCTION reveal() RETURNS bigint LANGUAGE sql SECURITY DEFINER AS 'SELECT count(*) FROM public.customers';
CREATE FUNCTION leak(integer, integer) RETURNS boolean LANGUAGE sql SECURITY DEFINER
    AS 'SELECT count(*) > 100 FROM public.customers';
REVOKE EXECUTE ON FUNCTION reveal, leak FROM PUBLIC; -- or the login would not be used
CREATE OPERATOR === (leftarg = integer, rightarg = integer, function = leak);
"""


@pytest.fixture(scope="module")
def database(real_cluster: Cluster) -> RealDatabase:
    made = make_shop(real_cluster, "large_public")
    with made.connect() as owner:
        owner.execute(SCHEMA)
    return made


def rules_for(database: RealDatabase, role: str = ROLE) -> str:
    return RULES.replace("__READER__", database.cluster.dsn(database.name, role))


@contextmanager
def served(database: RealDatabase, folder: Path, role: str = ROLE) -> Iterator[Noisegate]:
    """A proxy whose twin holds 29 rows of a table: products has 30."""
    arguments, rules = ("--max-public-rows", "29"), rules_for(database, role)
    with noisegate(folder, database.reader_dsn, rules=rules, name=database.name, arguments=arguments) as running:
        yield running


def granted(database: RealDatabase, folder: Path) -> str:
    """Return the part of what `noisegate grants` prints that is about the login for public tables."""
    rules = shop.rules_file(folder, rules_for(database))
    printed = command("grants", str(rules), database=database.reader_dsn)
    assert printed.returncode == 0, printed.stderr
    return printed.stdout.partition("-- public_reader")[2].partition("\n")[2]


@pytest.fixture(scope="module")
def large(database: RealDatabase, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Noisegate]:
    """A proxy with the role that `noisegate grants` makes."""
    folder = tmp_path_factory.mktemp("large")
    with database.connect() as owner:
        owner.execute(granted(database, folder))
    with served(database, folder) as running:
        yield running


@pytest.fixture
def session(large: Noisegate) -> Iterator[psycopg.Connection]:
    with psycopg.connect(large.dsn(), autocommit=True) as connection:
        yield connection


pytestmark = pytest.mark.extended


def inner_sql(session: psycopg.Connection, sql: str) -> str:
    """Return what would run on the real database, in one line."""
    return " ".join(" ".join(row[0] for row in session.execute(f"EXPLAIN {sql}")).split())


def ids(database: RealDatabase, query: str) -> list[int]:
    with database.connect() as owner:
        return [row[0] for row in owner.execute(query)]


SEARCHED = "words @@ to_tsquery('english', 'product')"  # which the planner itself does not read
MATCHED = [
    "words @@ to_tsquery('english', 'product & (7 | 8)')",
    "md5(name) < '5' AND kind = 'business'::segment",
    "price > (SELECT avg(price) FROM products WHERE category <> 'tool')",
    "(category, price) IN (SELECT category, max(price) FROM products GROUP BY category)",
    "id = ANY (SELECT x FROM unnest(ARRAY[1, 2, 3]) AS u(x))",
    "id IN (SELECT id FROM products GROUP BY id ORDER BY name LIMIT 20)",
    "name ~ '[13]$' AND name NOT LIKE '%2%' AND price BETWEEN 10 AND 80",
]


@pytest.mark.parametrize("condition", MATCHED)
def test_a_subquery_over_a_large_public_table_is_answered_exactly(
    session: psycopg.Connection, database: RealDatabase, condition: str
) -> None:
    inner = f"SELECT id FROM products WHERE {condition} AND {SEARCHED}"
    expected = ids(database, f"{inner} ORDER BY id")

    shown = inner_sql(session, f"SELECT count(*) FROM order_items WHERE product_id IN ({inner})")

    found = re.search(r'"product_id" IN \(([0-9, ]+)\)', shown)
    assert expected
    assert found is not None
    assert sorted(map(int, found[1].split(","))) == expected


def test_its_answer_has_the_right_numbers(session: psycopg.Connection, database: RealDatabase) -> None:
    sql = "SELECT count(DISTINCT o.customer_id) FROM orders AS o JOIN order_items AS i ON i.order_id = o.id"
    sql += " WHERE product_id IN (SELECT id FROM products ORDER BY price DESC LIMIT 3)"
    (expected,) = ids(database, sql)

    ((count,),) = session.execute(sql)

    assert abs(count - expected) <= 3  # ε = 10


def test_its_rows_list_the_groups(session: psycopg.Connection, database: RealDatabase) -> None:
    """30 groups without δ, in the table's own words."""
    session.execute("SET noisegate.empty_groups = show")
    rows = session.execute(
        "SELECT p.name, count(*) FROM order_items JOIN products AS p ON p.id = product_id GROUP BY 1 ORDER BY 1"
    ).fetchall()

    assert sorted(name for name, _ in rows) == sorted(f"Product {number}" for number in range(1, 31))


def test_its_values_bound_what_is_summed(session: psycopg.Connection) -> None:
    sql = "SELECT sum(quantity * p.price) FROM order_items JOIN products AS p ON p.id = product_id"

    shown = inner_sql(session, sql)

    assert "from 137 to 411000 in steps of 1/100" in shown


def test_parameters_stand_in_it(session: psycopg.Connection, database: RealDatabase) -> None:
    sql = "SELECT count(DISTINCT o.customer_id) FROM orders AS o JOIN order_items AS i ON i.order_id = o.id"
    sql += f" WHERE product_id IN (SELECT id FROM products WHERE name = {{}} AND {SEARCHED})"
    (expected,) = ids(database, sql.format("'Product 9'"))

    ((count,),) = session.execute(sql.format("%s"), ("Product 9",))

    assert abs(count - expected) <= 3  # ε = 10


def test_dates_are_read_in_the_style_of_the_session(session: psycopg.Connection) -> None:
    inner = f"SELECT id FROM products WHERE date '02/01/2024' + id = date '2024-01-05' AND {SEARCHED}"
    session.execute("SET DateStyle = 'German, DMY'")

    assert '"product_id" = 3' in inner_sql(session, f"SELECT count(*) FROM order_items WHERE product_id IN ({inner})")


def test_equal_questions_are_served_again(session: psycopg.Connection, large: Noisegate) -> None:
    sql = "SELECT p.category, count(*) FROM order_items JOIN products AS p ON p.id = product_id GROUP BY 1 ORDER BY 1"
    first = session.execute(sql).fetchall()
    spent = large.ledger_length()

    assert session.execute(sql).fetchall() == first
    assert large.ledger_length() == spent


HIDDEN = [
    ("SELECT id FROM products WHERE cost > 1", "42501|42703"),
    ("SELECT id FROM products AS p WHERE to_jsonb(p) ->> 'cost' > '0'", "42501"),
    ("SELECT id FROM spy, products", "42P01|42501|0A000"),
    ("SELECT id FROM products WHERE reveal() > 0", "42883|42501|0A000"),
    ("SELECT id FROM products WHERE id === 1", "42883|42501|0A000"),
    ("SELECT id FROM products WHERE id OPERATOR(public.===) 1", "42883|42501|0A000"),
    ("SELECT p.id FROM products AS p, staff", "42P01|42501|0A000"),
    ("SELECT p.id FROM products AS p, pg_class WHERE relname = 'customers'", "0A000"),
    ("SELECT p.id FROM products AS p WHERE EXISTS (SELECT FROM pg_catalog.pg_stats)", "0A000"),
    ("SELECT id FROM products WHERE 'customers'::regclass IS NOT NULL", "0A000"),
    ("SELECT id FROM products WHERE pg_sleep(1) IS NULL", "0A000"),
    ("SELECT id FROM products WHERE current_setting('server_version') > ''", "0A000"),
    ("SELECT id FROM products WHERE repeat(name, 100000000) > ''", "0A000"),
    ("SELECT id FROM products WHERE xmin IS NOT NULL", "42501"),
    ("SELECT id FROM ONLY products", "0A000"),
    ("SELECT id FROM products TABLESAMPLE system (10)", "0A000"),
    ("SELECT id FROM products FOR UPDATE", "0A000|42501"),
    ("WITH pg_class AS (SELECT 1 AS id) SELECT p.id FROM products AS p, pg_catalog.pg_class", "0A000"),
    ("WITH RECURSIVE r AS (SELECT 1 AS id UNION ALL SELECT id + 1 FROM r) SELECT r.id FROM r, products", "0A000"),
    ("SELECT query_to_xml('select 1', true, true, '') IS NULL AS id FROM products", "42501|0A000"),
]


@pytest.mark.parametrize(("query", "states"), HIDDEN)
def test_nothing_but_visible_public_rows_is_reached(session: psycopg.Connection, query: str, states: str) -> None:
    """A view, a function and an operator that read protected rows, hidden columns, catalogs: refused, or not there."""
    sql = f"SELECT count(*) FROM order_items WHERE product_id IN ({query})"
    with pytest.raises(psycopg.Error) as refusal:
        session.execute(f"EXPLAIN {sql}")
    assert refusal.value.sqlstate in states.split("|"), str(refusal.value)


FAILING = [
    f"SELECT id FROM products WHERE 1 / (price - price) > 0 AND {SEARCHED}",
    f"SELECT id FROM products WHERE name::integer = 7 AND {SEARCHED}",
]


@pytest.mark.parametrize("query", FAILING)
def test_an_error_of_the_real_database_is_told_in_words_of_ours(session: psycopg.Connection, query: str) -> None:
    with pytest.raises(psycopg.Error, match="cannot run this subquery over a large public table") as refusal:
        session.execute(f"SELECT count(*) FROM order_items WHERE product_id IN ({query})")
    assert "Product" not in str(refusal.value)


def test_it_takes_no_longer_than_the_statement_may(session: psycopg.Connection) -> None:
    session.execute("SET statement_timeout = '400ms'")
    many = ", ".join(f"products AS p{number}" for number in range(8))
    with pytest.raises(psycopg.Error) as refusal:
        session.execute(f"SELECT count(*) FROM order_items WHERE product_id IN (SELECT count(*) FROM {many})")
    assert refusal.value.sqlstate == "57014"


def test_too_many_rows_and_too_long_texts_are_refused(session: psycopg.Connection) -> None:
    rows = "SELECT a.id + 30 * b.id + 900 * c.id FROM products AS a, products AS b, products AS c LIMIT 20000"
    with pytest.raises(psycopg.Error, match="more than 10000 rows"):
        session.execute(f"SELECT count(*) FROM order_items WHERE product_id IN ({rows})")
    text = f"SELECT {' || '.join(['name'] * 150)} FROM products LIMIT 3"
    with pytest.raises(psycopg.Error, match="more than 1000 characters"):
        session.execute(f"SELECT count(*) FROM customers WHERE name IN ({text})")


def test_an_answer_that_would_be_joined_with_its_rows_is_refused_before_it_is_paid(
    session: psycopg.Connection, large: Noisegate
) -> None:
    before = large.ledger_length()
    with pytest.raises(psycopg.Error, match='public table "products" cannot be queried'):
        session.execute(
            "SELECT p.name, x.n FROM products AS p JOIN (SELECT product_id, count(*) AS n FROM order_items"
            " WHERE quantity = 3 GROUP BY 1) AS x ON x.product_id = p.id"
        )
    assert large.ledger_length() == before


def test_a_login_that_may_do_more_is_not_used(session: psycopg.Connection, database: RealDatabase) -> None:
    """Which powers there are is tested with the reader itself; here is what DBA and analyst are told."""
    sql = "EXPLAIN SELECT count(*) FROM order_items WHERE product_id IN (SELECT id FROM products WHERE id = {} LIMIT 1)"
    with database.connect() as owner:
        owner.execute(f"GRANT SELECT (city) ON customers TO {ROLE}")
        try:
            with pytest.raises(psycopg.Error, match="the login for them may do more") as refusal:
                session.execute(sql.format(21))
            assert "customers" not in str(refusal.value)
        finally:
            owner.execute(f"REVOKE SELECT (city) ON customers FROM {ROLE}")
    session.execute(sql.format(21))


def test_a_right_that_the_login_has_lost_is_told_with_the_table(
    session: psycopg.Connection, database: RealDatabase
) -> None:
    sql = "EXPLAIN SELECT count(*) FROM order_items WHERE product_id IN (SELECT id FROM products WHERE id = 22 LIMIT 1)"
    with database.connect() as owner:
        owner.execute(f"REVOKE SELECT (id) ON products FROM {ROLE}")
        try:
            with pytest.raises(psycopg.errors.InsufficientPrivilege, match="permission denied for table products: the"):
                session.execute(sql)
        finally:
            owner.execute(f"GRANT SELECT (id) ON products TO {ROLE}")

    def is_answered() -> bool:
        try:
            session.execute(sql)
        except psycopg.errors.SerializationFailure:  # the catalog is read again, where rights of columns stand too
            return False
        return True

    asyncio.run(until(is_answered))


def test_check_says_why_a_login_is_not_used(database: RealDatabase, large: Noisegate, tmp_path: Path) -> None:
    rules = shop.rules_file(tmp_path, rules_for(database, shop.READER))

    checked = command("check", str(rules), database=database.reader_dsn)

    assert "public_reader: it is not used: it may read public.customers, column id" in checked.stdout
    fine = command("check", str(large.rules), database=database.reader_dsn)
    assert "public_reader" not in fine.stdout


UNREAD = (  # the last four would be multiplied by rows that nobody counted
    "SELECT count(*) FROM order_items WHERE product_id IN (SELECT max(id) FROM products)",
    "SELECT count(*) FROM order_items AS i JOIN products AS p ON p.id = i.product_id JOIN products USING (category)",
    "SELECT count(*) FROM order_items AS i WHERE EXISTS (SELECT FROM products AS p JOIN products AS q"
    " ON q.category = p.category WHERE p.id = i.product_id)",
    "SELECT count(*) FROM order_items, products AS p, products AS q, products AS r",
    "SELECT sum(n) FROM (SELECT o.id, count(*) AS n FROM orders AS o, products, products AS q GROUP BY 1) AS counted",
)


def test_without_a_login_the_hint_names_the_key(database: RealDatabase, tmp_path: Path) -> None:
    rules = RULES.replace("public_reader: __READER__\n", "")
    arguments = ("--max-public-rows", "29")
    with (
        noisegate(tmp_path, database.reader_dsn, rules=rules, name=database.name, arguments=arguments) as running,
        psycopg.connect(running.dsn(), autocommit=True) as connection,
    ):
        for sql in UNREAD:
            with pytest.raises(psycopg.Error, match="the proxy does not hold its rows") as refusal:
                connection.execute(sql)
            assert "public_reader of the rules" in str(refusal.value), sql
        connection.execute("SELECT count(*) FROM order_items AS i JOIN products AS p ON p.id = i.product_id")
