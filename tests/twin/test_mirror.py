"""Views, indexes and functions of the real schema are there for tools; nothing of them says or runs what is hidden."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import replace

import psycopg
import pytest
from psycopg import Connection

from proxy.engines.postgres.snapshots import PostgresEngine
from proxy.twin.twin import Twin, TwinLimits
from rules.policy.model import Policy
from tests.conftest import RealDatabase, make_shop
from tests.support import shop as shop_data

SCHEMA = """
CREATE VIEW paid AS SELECT id, customer_id, amount FROM orders WHERE status = 'paid' AND customer_id <> 4711;
CREATE VIEW secrets AS SELECT id, email FROM customers;
CREATE VIEW cheap AS SELECT id, name, price FROM products WHERE price < 20;
CREATE MATERIALIZED VIEW categories AS SELECT category, count(*) AS number FROM products GROUP BY 1;
CREATE UNIQUE INDEX categories_key ON categories (category);
COMMENT ON VIEW paid IS 'what came in';
CREATE INDEX orders_by_day ON orders (ordered_at DESC, id) INCLUDE (amount);
CREATE INDEX orders_open ON orders (customer_id) WHERE status = 'open';
CREATE INDEX orders_of_one ON orders (ordered_at) WHERE customer_id = 4711;
CREATE INDEX orders_late ON orders (age(ordered_at, ordered_at)) WHERE amount IS NOT NULL;
CREATE INDEX orders_note ON orders (lower(note)) WHERE note IS NOT NULL;
CREATE INDEX customers_mail ON customers (city, lower(email));
CREATE INDEX customers_whole ON customers (city, (customers IS NULL));
CREATE UNIQUE INDEX products_name ON products (name, category, id);
CREATE FUNCTION net(gross numeric, rate numeric DEFAULT 0.19) RETURNS numeric LANGUAGE sql IMMUTABLE
    AS 'SELECT gross / (1 + rate)';
CREATE FUNCTION year_of(d date) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT extract(year FROM d)::int';
CREATE FUNCTION mail_of(i int) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT email FROM customers WHERE id = i';
CREATE FUNCTION salaries() RETURNS SETOF staff LANGUAGE sql AS 'SELECT * FROM staff';
CREATE FUNCTION worth(o orders) RETURNS numeric LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN 4711; END';
CREATE FUNCTION mail_in(c customers) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT c.email';
CREATE FUNCTION people(OUT email text, OUT id int) RETURNS SETOF record LANGUAGE sql
    AS 'SELECT email, id FROM customers';
CREATE PROCEDURE tidy(i int) LANGUAGE sql AS 'DELETE FROM orders WHERE id = i';
ALTER TABLE products ADD CONSTRAINT dear CHECK (net(price) >= 0);
"""
RULES = shop_data.RULES.replace(
    "  products: public\n",
    """\
  products: public
  paid: view
  secrets: {unit: id, columns: {email: hidden}}
  cheap: public
  categories: public
""",
)


def _policy(real: RealDatabase) -> Policy:
    return shop_data.policy(real.reader_dsn, RULES)


@pytest.fixture(scope="module")
def real(real_cluster: object, shop: RealDatabase) -> RealDatabase:
    database = make_shop(shop.cluster, "mirrored")
    with database.connect() as connection:
        connection.execute(SCHEMA)
        connection.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {shop_data.READER}")
    return database


@pytest.fixture(scope="module", params=[160000, 180000], ids=["16", "18"])
async def mirror(request: pytest.FixtureRequest, real: RealDatabase) -> AsyncIterator[Twin]:
    engine = PostgresEngine(real.reader_dsn)
    catalog = replace(await engine.catalog(), version=request.param)
    twin = await Twin.open(catalog, _policy(real), engine, TwinLimits())
    yield twin
    await twin.close()
    await engine.close()


@pytest.fixture
def ada(mirror: Twin) -> Iterator[Connection]:
    with psycopg.connect(mirror.dsn("ada"), autocommit=True) as connection:
        yield connection


def _all(connection: Connection, sql: str) -> list[tuple[object, ...]]:
    return connection.execute(sql).fetchall()


def test_views_are_views_and_public_ones_have_their_rows(ada: Connection, real: RealDatabase) -> None:
    kinds = """SELECT relname, relkind::text FROM pg_class
               WHERE relnamespace = 'public'::regnamespace AND relkind IN ('v', 'm') ORDER BY 1"""
    with real.connect() as owner:
        assert _all(ada, kinds) == _all(owner, kinds)
        for public in ("cheap", "categories"):
            rows = f"SELECT * FROM {public} ORDER BY 1"
            assert _all(ada, rows) == _all(owner, rows) != []
        columns = "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = 'paid'::regclass"
        assert sorted(_all(ada, columns)) == sorted(_all(owner, columns))
    assert _all(ada, "SELECT obj_description('paid'::regclass)") == [("what came in",)]
    assert "paid" in {name for (name,) in _all(ada, "SELECT table_name FROM information_schema.views")}


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM paid",
        "SELECT count(*) FROM secrets",
        "EXPLAIN SELECT * FROM paid",
        "COPY (SELECT id FROM paid) TO STDOUT",
        "UPDATE paid SET amount = 0",
        "SELECT * FROM pg_catalog.noisegate_rows",
        "REFRESH MATERIALIZED VIEW categories",
    ],
)
def test_no_route_executes_anything_over_a_protected_view(ada: Connection, sql: str) -> None:
    below = next(iter(_all(ada, "SELECT relname FROM pg_class WHERE relname ~ '^noisegate_rows_'")))[0]
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        ada.execute(sql.replace("noisegate_rows", str(below)))


def test_nothing_says_the_text_of_a_view_or_what_it_hides(ada: Connection) -> None:
    texts = (
        "SELECT definition FROM pg_views",
        "SELECT pg_get_viewdef('paid'::regclass) || pg_get_viewdef('secrets'::regclass)",
        "SELECT pg_get_ruledef(oid) FROM pg_rewrite",
        "SELECT indexdef FROM pg_indexes",
        "SELECT indpred::text || indexprs::text FROM pg_index",
        "SELECT prosrc || prosqlbody::text || proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace",
        "SELECT coalesce(prosrc, '') || coalesce(proargnames::text, '') FROM pg_proc "
        "WHERE pronamespace = 'public'::regnamespace",
        "SELECT attname FROM pg_attribute WHERE attrelid >= 16384",
        "SELECT pg_get_constraintdef(oid) FROM pg_constraint",
    )
    said = "".join(str(value) for sql in texts for row in _all(ada, sql) for value in row)
    for hidden in ("4711", "email", "salary", "orders WHERE"):
        assert hidden not in said


def test_indexes_have_the_names_and_definitions_of_the_real_ones(ada: Connection, real: RealDatabase) -> None:
    definitions = "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY 1"
    with real.connect() as owner:
        wanted = _all(owner, definitions)
    names = [name for name, _ in wanted]
    assert {"orders_by_day", "orders_open", "orders_late", "orders_note", "customers_whole"} < set(names)
    hidden = ("orders_of_one", "customers_mail", "customers_email_key", "staff_pkey")
    assert set(hidden) < set(names)
    assert _all(ada, definitions) == [(name, text) for name, text in wanted if name not in hidden]


def test_functions_that_compute_can_be_used_and_the_others_are_listed(ada: Connection, real: RealDatabase) -> None:
    listed = """SELECT proname, prokind::text, pg_get_function_result(oid) FROM pg_proc
                WHERE pronamespace = 'public'::regnamespace AND proname NOT IN ('people', 'salaries') ORDER BY 1"""
    with real.connect() as owner:
        assert _all(ada, listed) == _all(owner, listed)
        for name in ("net(numeric,numeric)", "year_of(date)"):
            text = f"SELECT pg_get_functiondef('{name}'::regprocedure)"
            assert _all(ada, text) == _all(owner, text)
    assert _all(ada, "SELECT round(net(119), 2), year_of('2024-05-06')") == [(100, 2024)]
    assert _all(ada, "SELECT count(*) FROM pg_proc WHERE proname = 'salaries'") == [(0,)]  # of a table that is not here
    for call in ("mail_of(1)", "worth(NULL)", "people()"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            ada.execute(f"SELECT {call}")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        ada.execute("CALL tidy(1)")


def test_closed_tables_have_one_size(ada: Connection) -> None:
    assert _all(
        ada,
        "SELECT DISTINCT pg_table_size(oid), pg_total_relation_size(oid) - pg_indexes_size(oid) FROM pg_class "
        "WHERE relnamespace = 'public'::regnamespace AND relname IN ('customers', 'orders', 'order_items', 'paid')",
    ) == [(0, 0)]
    assert _all(ada, "SELECT pg_table_size('products') > 0, pg_table_size('pg_class') > 0") == [(True, True)]


def test_a_public_table_with_a_check_that_calls_a_function_is_open(mirror: Twin, ada: Connection) -> None:
    assert not mirror.closed_tables
    assert _all(ada, "SELECT conname FROM pg_constraint WHERE conname = 'dear'") == [("dear",)]
