"""To tools the twin looks like the real database: its tables, columns, types, keys, comments and rights."""

from collections.abc import Iterator

import psycopg
import pytest
from psycopg import Connection

from proxy.twin.twin import Twin


@pytest.fixture
def ada(twin: Twin) -> Iterator[Connection]:
    with psycopg.connect(twin.dsn("ada"), autocommit=True) as connection:
        yield connection


def rows(connection: Connection, sql: str, *values: object) -> list[tuple[object, ...]]:
    return connection.execute(sql, values).fetchall()


def test_the_database_is_named_as_the_real_one_and_has_three_part_names(ada: Connection) -> None:
    assert rows(ada, "SELECT current_database(), current_user, current_schema()") == [("shop", "ada", "public")]
    assert rows(ada, 'SELECT count(*) FROM "shop"."public"."products"') == [(30,)]


def test_named_tables_are_listed_and_others_do_not_exist(ada: Connection) -> None:
    names = [("customers",), ("order_items",), ("orders",), ("products",)]
    assert (
        rows(ada, "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' ORDER BY 1") == names
    )
    assert rows(ada, "SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1") == names
    with pytest.raises(psycopg.errors.UndefinedTable):
        ada.execute("SELECT * FROM staff")


def test_hidden_columns_do_not_exist_and_their_keys_neither(ada: Connection) -> None:
    with pytest.raises(psycopg.errors.UndefinedColumn):
        ada.execute("SELECT email FROM customers")
    assert rows(ada, "SELECT conname FROM pg_constraint WHERE conrelid = 'customers'::regclass AND contype <> 'n'") == [
        ("customers_pkey",)
    ]


def test_columns_have_their_types_defaults_and_nullability(ada: Connection) -> None:
    columns = rows(
        ada,
        """SELECT a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attidentity::text,
                  pg_get_expr(d.adbin, d.adrelid)
           FROM pg_attribute a LEFT JOIN pg_attrdef d ON (d.adrelid, d.adnum) = (a.attrelid, a.attnum)
           WHERE a.attrelid = 'orders'::regclass AND a.attnum > 0
              OR a.attrelid = 'customers'::regclass AND a.attname = 'is_vip'
           ORDER BY a.attrelid::regclass::text, a.attnum""",
    )
    assert columns == [
        ("is_vip", "boolean", True, "", "false"),
        ("id", "bigint", True, "d", None),
        ("customer_id", "integer", True, "", None),
        ("ordered_at", "timestamp with time zone", True, "", None),
        ("status", "status", True, "", None),
        ("amount", "numeric(10,2)", True, "", None),
        ("note", "text", False, "", None),
    ]


def test_keys_links_and_checks_are_there(ada: Connection) -> None:
    definitions = rows(
        ada,
        """SELECT conrelid::regclass::text, contype::text, pg_get_constraintdef(oid) FROM pg_constraint
           WHERE contype IN ('p', 'f', 'c') AND connamespace = 'public'::regnamespace ORDER BY 1, 2 DESC, 3""",
    )
    assert definitions == [
        ("customers", "p", "PRIMARY KEY (id)"),
        ("order_items", "p", "PRIMARY KEY (order_id, product_id)"),
        ("order_items", "f", "FOREIGN KEY (order_id) REFERENCES orders(id)"),
        ("order_items", "f", "FOREIGN KEY (product_id) REFERENCES products(id)"),
        ("order_items", "c", "CHECK (((quantity >= 1) AND (quantity <= 100)))"),
        ("orders", "p", "PRIMARY KEY (id)"),
        ("orders", "f", "FOREIGN KEY (customer_id) REFERENCES customers(id)"),
        ("products", "p", "PRIMARY KEY (id)"),
        ("products", "c", "CHECK ((price >= (0)::numeric))"),
    ]


def test_comments_and_enum_labels_are_there(ada: Connection) -> None:
    assert rows(ada, "SELECT obj_description('customers'::regclass)") == [("people who buy here",)]
    city = "SELECT col_description('customers'::regclass, attnum) FROM pg_attribute WHERE attname = 'city'"
    assert rows(ada, city) == [("where they live",)]
    assert rows(ada, "SELECT enum_range(NULL::segment)::text") == [('{consumer,business,"public sector"}',)]


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("has_table_privilege('orders', 'SELECT')", True),
        ("has_table_privilege('orders', 'select')", True),
        ("has_table_privilege('ada', 'orders', 'SELECT')", True),
        ("has_table_privilege('orders'::regclass, 'SELECT, INSERT')", True),
        ("has_table_privilege('ada'::regrole, 'orders'::regclass, 'SELECT')", True),
        ("has_any_column_privilege('orders', 'SELECT')", True),
        ("has_column_privilege('orders', 'id', 'SELECT')", True),
        ("has_column_privilege('orders', 1::int2, 'SELECT')", True),
        ("has_table_privilege('products', 'SELECT')", True),
        ("has_table_privilege('pg_class', 'SELECT')", True),
        ("has_table_privilege('pg_authid', 'SELECT')", False),
        ("has_table_privilege('orders', 'SELECT WITH GRANT OPTION')", False),
        ("has_table_privilege('orders', 'INSERT')", False),
        ("has_table_privilege('products', 'UPDATE')", False),
        ("has_any_column_privilege('orders', 'UPDATE, INSERT')", False),
        ("has_table_privilege('pg_catalog.noisegate_channel', 'SELECT')", False),
        ("has_table_privilege(NULL::text, 'SELECT')", None),
        ("has_schema_privilege('public', 'USAGE')", True),
        ("has_schema_privilege('public', 'CREATE')", False),
        ("has_database_privilege('shop', 'TEMP')", True),
    ],
)
def test_tools_are_told_that_protected_tables_may_be_read(ada: Connection, call: str, expected: bool | None) -> None:
    assert rows(ada, f"SELECT {call}") == [(expected,)]


def test_statistics_tell_nothing_because_there_is_nothing(ada: Connection) -> None:
    ada.execute("ANALYZE")
    assert rows(ada, "SELECT * FROM pg_stats WHERE schemaname = 'public' AND tablename <> 'products'") == []
    sizes = "SELECT pg_relation_size('orders'), (SELECT greatest(reltuples, 0) FROM pg_class WHERE relname = 'orders')"
    assert rows(ada, sizes) == [(0, 0.0)]
    assert rows(ada, "SELECT n_live_tup FROM pg_stat_all_tables WHERE relname = 'orders'") == [(0,)]
    assert rows(ada, "SELECT last_value FROM pg_sequences") == [(None,)]


def test_our_settings_have_defaults_that_show_and_reset_know(ada: Connection) -> None:
    assert rows(ada, "SHOW noisegate.epsilon") == [("1",)]
    ada.execute("SET noisegate.epsilon = '0.5'")
    assert rows(ada, "SHOW noisegate.epsilon") == [("0.5",)]
    ada.execute("RESET ALL")
    assert rows(ada, "SHOW noisegate.epsilon") == [("1",)]
    for name in ("reuse", "rows_per_unit", "groups_per_unit", "notices"):
        ada.execute(f"SHOW noisegate.{name}")


@pytest.mark.parametrize("style", ["ISO, DMY", "SQL, DMY", "German", "Postgres, MDY"])
def test_canon_prints_a_value_in_one_way_whatever_the_session_likes(ada: Connection, style: str) -> None:
    ada.execute(f"SET DateStyle = '{style}'; SET IntervalStyle = sql_standard; SET extra_float_digits = -14")
    ada.execute("SET bytea_output = escape; SET TimeZone = 'Asia/Tokyo'")
    values = (
        "date 'Feb 1 2024'",
        "0.1234567890123::float8",
        "timestamptz 'Feb 1 2024 09:00'",
        "'\\xff'::bytea",
        "true",
        "'paid'::status",
        "NULL::int",
        "ARRAY[1, 2]",
    )
    canonical = ", ".join(f"pg_catalog.noisegate_canon({value})" for value in values)
    assert rows(ada, f"SELECT {canonical}") == [
        ("2024-02-01", "0.1234567890123", "2024-02-01 00:00:00+00", "\\xff", "true", "paid", None, "{1,2}")
    ]


def test_the_functions_that_are_listed_are_those_that_analysts_use(ada: Connection) -> None:
    listed = "SELECT DISTINCT proname FROM pg_proc WHERE pronamespace = 'noisegate'::regnamespace"
    described = f"{listed} AND obj_description(oid, 'pg_proc') IS NOT NULL"

    names = [("estimate",), ("high",), ("low",), ("margin",), ("request",), ("typical",)]
    assert sorted(rows(ada, listed)) == sorted(rows(ada, described)) == names


def test_refuse_fails_whenever_it_is_run(ada: Connection) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        ada.execute("SELECT pg_catalog.noisegate_refuse()")


def test_foreign_collations_can_be_named(ada: Connection) -> None:
    ada.execute('SELECT name COLLATE "C" FROM products ORDER BY name COLLATE pg_catalog."default"')
