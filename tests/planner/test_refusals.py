"""What is not answered is refused with a code, a plain message, and a hint that works."""

from dataclasses import replace

import pytest

from rules.mechanisms.release_plan import PublicGroups
from rules.refusal import NotAllowed
from tests.conftest import RealDatabase
from tests.planner.planned import Planner

OWN_ORDERS = "orders AS o WHERE o.customer_id = c.id"
REFUSED = [
    ("SELECT * FROM customers", "42501", "rows"),
    ("SELECT name FROM customers", "42501", "rows"),
    ("SELECT id, count(*) FROM customers GROUP BY id", "42501", "would show single units"),
    ("SELECT customer_id, sum(amount) FROM orders GROUP BY 1 ORDER BY 2 DESC", "42501", "would show single units"),
    ("SELECT customer_id, count(*) FROM orders GROUP BY ROLLUP (customer_id)", "0A000", "single units"),
    ("SELECT id, city FROM customers GROUP BY GROUPING SETS ((city, id), (city))", "0A000", "single units"),
    (
        "SELECT count(*) FROM (SELECT customer_id, status FROM orders GROUP BY CUBE (1, 2)) AS t WHERE status IS NULL",
        "0A000",
        "single units",
    ),
    ("SELECT c FROM customers AS c", "42501", "whole-row"),
    ("SELECT count(c) FROM customers AS c", "42501", "whole-row"),
    ("SELECT count(*) FROM customers WHERE ctid = '(0,1)'", "42501", "system column"),
    ("SELECT count(email) FROM customers", "42501", "does not exist"),
    ("SELECT count(*) FROM staff, customers", "0A000", ""),
    ("SELECT array_agg(name) FROM customers", "42501", "values of single rows"),
    ("SELECT string_agg(name, ',') FROM customers", "42501", "values of single rows"),
    ("SELECT json_agg(name) FROM customers", "42501", "values of single rows"),
    ("SELECT JSON_ARRAYAGG(name ORDER BY id) FROM customers", "42501", "values of single rows"),
    ("SELECT is_vip, count(*), JSON_ARRAYAGG(is_vip) FROM customers GROUP BY is_vip", "42501", "values of single rows"),
    ("SELECT count(*), JSON_OBJECTAGG('a': 1) FROM customers", "42501", "values of single rows"),
    ("SELECT bool_or(is_vip) FROM customers", "42501", "values of single rows"),
    ("SELECT count(*) FROM customers AS a JOIN customers AS b ON a.city = b.city", "42501", "unit columns"),
    ("SELECT count(*) FROM customers, orders", "42501", "unit columns"),
    ("SELECT count(*) FROM (SELECT * FROM orders LIMIT 10) AS t", "42501", "LIMIT"),
    ("SELECT count(*) FROM (SELECT DISTINCT ON (status) * FROM orders) AS t", "42501", "DISTINCT ON"),
    ("SELECT sum(id) FROM orders", "42501", "no bounds"),
    ("SELECT avg(id * 2.5) FROM orders", "42501", "no bounds"),
    ("SELECT count(*) FROM customers WHERE md5(name) < 'a'", "0A000", '"md5"'),
    ("SELECT count(*) FROM customers WHERE name::interval > '1 day'", "0A000", "could fail"),
    ("SELECT count(*) FROM customers WHERE pg_sleep(1) IS NULL", "0A000", '"pg_sleep"'),
    ("SELECT to_char(id, '9G999'), count(*) FROM orders GROUP BY 1", "0A000", "to_char of a number"),
    ("SELECT count(*) FROM customers WHERE random() < 0.5", "0A000", '"random"'),
    ("SELECT count(*) FROM products FULL JOIN order_items ON product_id = id", "42501", "FULL JOIN"),
    ("SELECT count(*) FROM customers EXCEPT SELECT id FROM customers", "0A000", ""),
    ("SELECT sum(amount) OVER () FROM orders", "42501", "window"),
    ("SELECT count(*) FROM orders WHERE amount < 1e131071", "0A000", "out of the supported range"),
    ("SELECT count(*) FROM orders WHERE amount < 1e999999999", "0A000", "out of the supported range"),
    ("SELECT count(*) FROM orders WHERE amount > -1e-99999999999999999999", "0A000", "out of the supported range"),
    ("SELECT x FROM generate_series(1, (SELECT count(*) FROM orders)) AS x", "0A000", "of a function in FROM"),
    (
        "SELECT x FROM products AS a, generate_series(1, (SELECT count(*) FROM orders)) AS x "
        "WHERE a.id < (SELECT count(*) FROM orders)",
        "0A000",
        "of a function in FROM",
    ),
    (
        "SELECT count(*) FROM customers AS c "
        "WHERE (SELECT amount FROM orders WHERE status::text = c.city ORDER BY ordered_at LIMIT 1) > 3",
        "42501",
        "a correlated subquery with LIMIT over rows of different units",
    ),
    ("SELECT count(*) FROM customers WHERE city LIKE 'a!' ESCAPE '!'", "0A000", "single escape character"),
    (
        "SELECT count(*) FROM customers, JSON_TABLE('[1]'::jsonb, '$[*]' COLUMNS (a int PATH '$')) AS j",
        "0A000",
        "JSON_TABLE is not supported together with protected rows",
    ),
    ("SELECT count(*) FROM orders, ROWS FROM (unnest(ARRAY[id]), unnest(ARRAY[2])) AS t", "0A000", "ROWS FROM"),
    ("SELECT count(*) FROM customers, XMLTABLE('/a' PASSING XML '<a/>' COLUMNS b int)", "0A000", "XMLTABLE is not"),
    (
        "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r JOIN customers AS c ON c.id = n) "
        "SELECT count(*) FROM r",
        "0A000",
        "WITH RECURSIVE over protected rows",
    ),
]


@pytest.mark.parametrize(("sql", "sqlstate", "words"), REFUSED)
def test_what_is_not_private_is_refused_in_plain_words(planner: Planner, sql: str, sqlstate: str, words: str) -> None:
    refusal = planner.refusal(sql)
    assert (refusal.sqlstate, words in refusal.message) == (sqlstate, True), refusal.message


def test_groups_that_only_the_data_know_are_refused_without_delta(planner: Planner) -> None:
    refusal = planner.refusal("SELECT name, count(*) FROM customers GROUP BY name", delta="0")
    assert refusal.sqlstate == "42501"
    assert "(key 1) are not declared" in refusal.message
    assert "delta" in refusal.hint


def test_declared_groups_that_are_too_many_are_told_as_such(planner: Planner) -> None:
    refusal = planner.refusal("SELECT amount, count(*) FROM orders GROUP BY amount", delta="0")
    assert refusal.message == "the groups of this query are not declared, or too many to be listed, and delta is 0"
    larger = "SELECT width_bucket(amount, 0, 500, 20), count(*) FROM orders GROUP BY 1"  # as the hint says
    assert isinstance(planner.block(larger).groups, PublicGroups)


@pytest.mark.parametrize(
    ("sql", "mended"),
    [
        ("SELECT sum(id) FROM orders", "SELECT sum(least(greatest(id, 0), 100)) FROM orders"),
        ("SELECT noisegate.low(amount) FROM orders", "SELECT noisegate.low(avg(amount)) FROM orders"),
        (
            "SELECT name FROM products AS p WHERE p.id IN (SELECT product_id FROM order_items)",
            "SELECT name FROM products AS p WHERE (SELECT count(*) FROM order_items WHERE product_id = p.id) > 0",
        ),
        (
            "SELECT count(*) FROM (SELECT id FROM customers UNION ALL SELECT id FROM products) AS t",
            "SELECT sum(n) FROM (SELECT count(*) AS n FROM customers UNION ALL SELECT count(*) FROM products) AS t",
        ),
        ("SELECT sum(amount ORDER BY id) FROM orders", "SELECT sum(amount) FROM orders"),
        (
            "SELECT count(*) FROM orders WHERE to_date(note, 'YYYY-MM-DD') > '2024-01-01'",
            "SELECT count(*) FROM orders WHERE note::date > '2024-01-01'",
        ),
        ("SELECT bool_or(is_vip) FROM customers", "SELECT count(*) FILTER (WHERE is_vip) FROM customers"),
        ("SELECT count(*) FROM (SELECT * FROM orders LIMIT 10) AS t", "SELECT count(*) FROM orders LIMIT 10"),
        ("SELECT * FROM customers", "SELECT count(*) FROM customers"),
        ("SELECT count(o.*) FROM orders AS o", "SELECT count(*) FROM orders AS o"),
        ("SELECT count(*) FROM orders WHERE amount::money IS NULL", "SELECT sum(amount)::money FROM orders"),
        ("SELECT ARRAY[city], count(*) FROM customers GROUP BY 1", "SELECT city, count(*) FROM customers GROUP BY 1"),
        (
            "SELECT p.id, n FROM products AS p, "
            "LATERAL (SELECT count(*) AS n FROM order_items AS i WHERE i.product_id = p.id) AS t",
            "SELECT p.id, n FROM products AS p "
            "JOIN (SELECT product_id AS a, count(*) AS n FROM order_items GROUP BY 1) AS t ON t.a = p.id",
        ),
        (
            f"SELECT count(*) FROM customers AS c WHERE EXISTS (SELECT FROM {OWN_ORDERS} HAVING count(*) > 3)",
            f"SELECT count(*) FROM customers AS c WHERE (SELECT count(*) FROM {OWN_ORDERS}) > 3",
        ),
        (
            "SELECT name FROM products AS c WHERE EXISTS (SELECT count(*) FROM order_items WHERE product_id = c.id)",
            "SELECT name FROM products AS c WHERE (SELECT count(*) FROM order_items WHERE product_id = c.id) > 3",
        ),
        (
            f"SELECT count(*) FROM customers AS c WHERE 50 IN (SELECT max(amount) FROM {OWN_ORDERS})",
            f"SELECT count(*) FROM customers AS c WHERE (SELECT max(amount) FROM {OWN_ORDERS}) = 50",
        ),
        (
            "WITH i AS (SELECT * FROM order_items) SELECT (SELECT count(*) FROM i WHERE product_id = id) FROM products",
            "WITH i AS (SELECT * FROM order_items) SELECT (SELECT count(*) FROM i WHERE product_id = products.id) "
            "FROM products",
        ),
        (
            "SELECT count(*) FROM (SELECT id, segment FROM customers UNION SELECT id, 'business' FROM customers) AS t",
            "SELECT count(*) FROM (SELECT id, segment FROM customers "
            "UNION SELECT id, 'business'::public.segment FROM customers) AS t",
        ),
        (
            "SELECT count(*) FROM (SELECT id, segment FROM customers UNION SELECT id, NULL FROM customers) AS t",
            "SELECT count(*) FROM (SELECT id, segment FROM customers "
            "UNION SELECT id, NULL::public.segment FROM customers) AS t",
        ),
        (
            "SELECT (SELECT count(*) + (SELECT max(price) FROM products) FROM order_items WHERE product_id = p.id) "
            "FROM products AS p",
            "SELECT (SELECT count(*) FROM order_items WHERE product_id = p.id) + (SELECT max(price) FROM products) "
            "FROM products AS p",
        ),
    ],
)
def test_what_a_hint_says_works(planner: Planner, sql: str, mended: str) -> None:
    assert planner.refusal(sql).hint
    assert planner.plan(mended).blocks


@pytest.mark.parametrize(
    ("sql", "pointed"),
    [
        ("SELECT count(c.id), sum(o.id) FROM customers AS c JOIN orders AS o ON o.customer_id = c.id", "o.id)"),
        (
            "SELECT count(*) FROM customers AS c "
            "WHERE (SELECT amount FROM orders WHERE status::text = c.city ORDER BY ordered_at LIMIT 1) > 3",
            "LIMIT 1",
        ),
    ],
)
def test_a_refusal_points_at_the_column_in_the_call_that_it_is_about(planner: Planner, sql: str, pointed: str) -> None:
    position = planner.refusal(sql).position

    assert position is not None
    assert sql[position - 1 :].startswith(pointed)


@pytest.fixture(scope="module")
def older(shop: RealDatabase) -> Planner:
    """A planner that knows of the real database what one of another release would say."""
    planner = Planner(shop.dsn)
    zones = frozenset(["UTC", "Europe/Berlin"])
    planner.catalog = replace(planner.catalog, version=130023, time_zones=zones)
    return planner


@pytest.mark.parametrize(
    ("test", "words"),
    [
        ("date_bin('1 day', ordered_at, '2024-01-01') > now()", 'function "date_bin" needs PostgreSQL 14'),
        ("extract(hour FROM ordered_at AT TIME ZONE 'US/Pacific') = 3", "the real database has no time zone"),
        ("date_trunc('day', ordered_at, 'Asia/Tokyo') > now()", "the real database has no time zone"),
    ],
)
def test_what_the_real_database_does_not_know_is_refused_by_name(
    older: Planner, planner: Planner, test: str, words: str
) -> None:
    """The twin may be newer, and our own machine may have other time zones: there it would fail after the charge."""
    sql = f"SELECT count(*) FROM orders WHERE {test}"
    refusal = older.refusal(sql)
    assert refusal.sqlstate == "0A000"
    assert refusal.message.startswith(words)
    assert refusal.hint
    if planner.catalog.version >= 140000:
        assert planner.plan(sql).blocks


def test_a_time_zone_that_there_is_not_is_named(planner: Planner) -> None:
    refusal = planner.refusal("SELECT count(*) FROM orders WHERE ordered_at AT TIME ZONE 'Mars/Phobos' > '2024-05-01'")

    assert refusal.message == 'time zone "Mars/Phobos" is not known over protected rows'
    assert refusal.position is not None


def test_a_time_zone_that_both_know_is_no_matter(older: Planner) -> None:
    assert older.plan("SELECT count(*) FROM orders WHERE ordered_at AT TIME ZONE 'Europe/Berlin' > '2024-05-01'").blocks


@pytest.fixture
def abroad(shop: RealDatabase) -> Planner:
    """The shop with its public products, and its orders, on another server."""
    planner = Planner(shop.dsn)
    far = [replace(table, foreign=table.name.name in ("products", "orders")) for table in planner.catalog.tables]
    planner.catalog = replace(planner.catalog, tables=tuple(far))
    return planner


FAR = [
    "SELECT count(*) FROM order_items AS i JOIN products AS p ON p.id = i.product_id WHERE p.price > 5",
    "SELECT count(*) FROM orders",
]


@pytest.mark.parametrize("sql", FAR)
def test_rows_on_another_server_are_read_with_protected_ones_only_where_the_rules_trust_them(
    abroad: Planner, sql: str
) -> None:
    with pytest.raises(NotAllowed, match="has rows on a foreign server, where reading a row can fail"):
        abroad.plan(sql)

    abroad.rules = abroad.rules.replace("products: public", "products: {public: true, foreign: trusted}").replace(
        "unit: customer_id", "unit: customer_id\n    foreign: trusted"
    )
    assert abroad.plan(sql).blocks


@pytest.mark.parametrize(
    "marked",
    [
        "SELECT count(c.city) FROM customers AS c JOIN orders AS o ON o.customer_id = c.id WHERE ¦o.city = 'Berlin'",
        "SELECT p.id, (SELECT count(*) FROM order_items AS i WHERE i.product_id > ¦p.id) FROM products AS p",
        "SELECT p.id FROM products AS p WHERE p.price > (SELECT avg(o.amount + ¦p.price) FROM orders AS o)",
        "SELECT (SELECT sum(quantity * ¦price) FROM order_items WHERE product_id = p.id), price FROM products AS p",
        "SELECT t, count(*) FROM orders, ¦unnest(string_to_array(note, ' ')) AS t GROUP BY 1",
        "SELECT p.id, n FROM products AS p, ¦LATERAL (SELECT count(*) FROM orders WHERE amount > p.id) AS t(n)",
    ],
)
def test_a_refusal_points_at_what_it_is_about(planner: Planner, marked: str) -> None:
    assert planner.refusal(marked.replace("¦", "")).position == marked.index("¦") + 1


def test_a_column_of_a_query_around_a_subquery_is_told_as_such(planner: Planner) -> None:
    sql = "SELECT id, (SELECT count(*) FROM orders JOIN order_items ON order_id = orders.id AND product_id = p.id) AS n"

    refusal = planner.refusal(f"{sql} FROM products AS p")

    assert (refusal.sqlstate, refusal.position) == ("0A000", sql.index("p.id") + 1)
    assert refusal.message.startswith('column "p.id" of the outer query is not supported')
    assert "CTE" in refusal.hint


@pytest.mark.parametrize("words", ["LIMIT 1", "ORDER BY o.amount LIMIT 5", "ORDER BY o.amount DESC"])
@pytest.mark.parametrize("list_of_columns", ["1", "DISTINCT o.status", "DISTINCT ON (o.status) *"])
def test_exists_leaves_out_what_keeps_a_row_wherever_there_is_one(
    planner: Planner, list_of_columns: str, words: str
) -> None:
    sql = f"SELECT count(*) FROM customers AS c WHERE EXISTS (SELECT {{}} FROM {OWN_ORDERS} {{}})"

    made, plain = (planner.plan(sql.format(*parts)) for parts in ((list_of_columns, words), ("", "")))

    assert [planner.sql_of(block) for block in made.blocks] == [planner.sql_of(block) for block in plain.blocks]


@pytest.mark.parametrize("words", ["LIMIT 0", "OFFSET 1", "LIMIT 1 OFFSET 1"])
def test_exists_with_what_may_take_all_rows_away_is_refused(planner: Planner, words: str) -> None:
    planner.refusal(f"SELECT count(*) FROM customers AS c WHERE EXISTS (SELECT FROM {OWN_ORDERS} {words})")


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT count(*) FROM customers AS c WHERE EXISTS (SELECT ¦generate_series(1, 0) FROM {OWN_ORDERS})",
        f"SELECT count(*) FROM customers AS c WHERE EXISTS (SELECT 1 FROM {OWN_ORDERS} ORDER BY ¦unnest(NULL::int[]))",
        "SELECT count(*) FROM customers AS c "
        f"WHERE EXISTS (SELECT DISTINCT ON (¦generate_series(1, 0)) 1 FROM {OWN_ORDERS})",
        "SELECT count(*) FROM (SELECT amount FROM orders ORDER BY ¦generate_series(1, 3)) AS t",
        "SELECT count(*) FROM (SELECT customer_id FROM orders GROUP BY 1 ORDER BY ¦generate_series(1, 3)) AS t",
        "SELECT count(*) FROM customers WHERE id IN (SELECT customer_id FROM orders ORDER BY ¦generate_series(1, 0))",
        f"SELECT count(*) FROM customers AS c, LATERAL (SELECT FROM {OWN_ORDERS} ORDER BY ¦generate_series(1, 2)) AS t",
        "SELECT id, (SELECT count(*) FROM order_items AS i WHERE i.product_id = p.id ORDER BY ¦generate_series(1, 0)) "
        "FROM products AS p",
        f"SELECT count(*) FROM customers AS c WHERE is_vip = (SELECT true FROM {OWN_ORDERS} AND o.id = 1 "
        "ORDER BY ¦generate_series(1, 0))",
    ],
)
def test_a_set_where_a_clause_is_not_read_is_refused(planner: Planner, sql: str) -> None:
    """PostgreSQL has a row for each member of the set, wherever the function stands."""
    refusal = planner.refusal(sql.replace("¦", ""))

    assert "could return several rows or none" in refusal.message
    assert refusal.position == sql.index("¦") + 1


@pytest.mark.parametrize("order", ["lower(note)", "now()", "max(amount) OVER ()", "amount DESC NULLS LAST"])
def test_an_order_that_is_not_read_may_have_listed_functions(planner: Planner, order: str) -> None:
    assert planner.plan(f"SELECT count(*) FROM (SELECT * FROM orders ORDER BY {order}) AS t").blocks
