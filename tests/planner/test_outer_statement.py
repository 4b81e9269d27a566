# ruff: noqa: E501  (a statement a line)
"""The outer statement against PostgreSQL itself: the same columns as the original, and only noised arrays to read."""

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal

import psycopg
import pytest

from proxy.engines.postgres.snapshots import PostgresEngine
from proxy.twin.embedded import Cluster
from proxy.twin.own_objects import create_defined
from rules.bind.inner_answers import InnerAnswer
from rules.catalog import Catalog
from rules.mechanisms.noised_outputs import Text
from rules.mechanisms.release_plan import Block, PublicGroups
from rules.planner.plan import NeedsInner, Plan, Request
from rules.planner.planner import plan
from rules.refusal import Refusal
from rules.release.release import Noised, columns
from tests.conftest import RealDatabase, make_shop
from tests.planner.planned import whole
from tests.support import shop as shop_data

TEXT_ARRAY = 1009


@pytest.fixture(scope="module")
async def catalog(shop: RealDatabase) -> Catalog:
    engine = PostgresEngine(shop.reader_dsn)
    try:
        return await engine.catalog()
    finally:
        await engine.close()


@pytest.fixture(scope="module")
def connection(real_cluster: Cluster) -> Iterator[psycopg.Connection]:
    """PostgreSQL as a twin: it describes the originals, and runs the outer statements."""
    with psycopg.connect(real_cluster.dsn(), autocommit=True) as owner:
        owner.execute("DROP DATABASE IF EXISTS outer_statements")  # that of another module with this fixture
    with make_shop(real_cluster, "outer_statements").connect() as connected:
        for step in create_defined("pg_catalog.noisegate_"):
            connected.execute(step.sql)
        yield connected


Column = tuple[str, int, int]


def described(connection: psycopg.Connection, text: str, parameters: int = 0, arrays: int = 0) -> list[Column]:
    oids = [0] * parameters + [TEXT_ARRAY] * arrays
    prepared = connection.pgconn.prepare(b"", text.encode(), oids)
    assert prepared.status == psycopg.pq.ExecStatus.COMMAND_OK, prepared.error_message.decode()
    found = connection.pgconn.describe_prepared(b"")
    return [((found.fname(n) or b"").decode(), found.ftype(n), found.fmod(n)) for n in range(found.nfields)]


def planned(text: str, catalog: Catalog, parameters: tuple[str, ...] = (), types: tuple[str, ...] = ()) -> Plan:
    request = Request(
        text,
        ("pg_catalog", "public"),
        parameter_types=types,
        parameters=parameters,
        epsilon=Decimal(1),
        delta=Decimal("1e-9"),
        now="2026-11-21T12:00:00+00:00",
    )
    made = plan(request, shop_data.policy(), catalog)
    if isinstance(made, NeedsInner) and made.inner.use == "groups":
        width = made.inner.sql.count(" AS k")
        rows: tuple[tuple[Text, ...], ...] = (("garden",), ("kitchen",)) if width == 1 else ((None,) * width,)
        listed = InnerAnswer(made.inner, ("value",) * width, ("text",) * width, rows)
        made = plan(replace(request, released=(listed,)), shop_data.policy(), catalog)
    return whole(made)


def answered(block: Block) -> tuple[tuple[Text, ...], ...]:
    """A block's columns where every measure of every group is seven."""
    groups = block.groups.rows if isinstance(block.groups, PublicGroups) else ()
    return columns(block, Noised(groups, {index: (7,) * len(groups) for index in range(len(block.measures))}))


def run(connection: psycopg.Connection, made: Plan, parameters: tuple[str, ...] = ()) -> list[tuple[Text, ...]]:
    arrays = [array(column) for block in made.blocks for column in answered(block)]
    values = [parameter.encode() for parameter in (*parameters, *arrays)]
    oids = [0] * len(parameters) + [TEXT_ARRAY] * len(arrays)
    result = connection.pgconn.exec_params(made.outer_with_parameters().encode(), values, oids)
    assert result.status == psycopg.pq.ExecStatus.TUPLES_OK, result.error_message.decode()
    cells = [[result.get_value(row, column) for column in range(result.nfields)] for row in range(result.ntuples)]
    return [tuple(None if cell is None else cell.decode() for cell in row) for row in cells]


def array(values: tuple[Text, ...]) -> str:
    quoted = (
        "NULL" if value is None else '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"' for value in values
    )
    return "{" + ",".join(quoted) + "}"


SHAPES = """
SELECT count(*) FROM orders
SELECT count(*) AS n, count(note), sum(amount) total, avg(amount) FROM orders
SELECT status, count(*) FROM orders GROUP BY status
SELECT status::text, count(*) FROM orders GROUP BY status::text ORDER BY 1
SELECT status AS s, count(*) AS n FROM orders GROUP BY s HAVING count(*) > 5 ORDER BY n DESC, s NULLS FIRST LIMIT 3 OFFSET 1
SELECT status AS "Größe & co", sum(amount) AS "sum:amount:ok" FROM "public"."orders" "orders" GROUP BY 1 HAVING (COUNT(1) > 0)
SELECT 1 AS literal, status, ABS(0) AS "pivot-grouping", count(*) FROM orders GROUP BY 1, 2, 3 ORDER BY 1 LIMIT 1
SELECT o.status, count(*) FROM orders o GROUP BY status ORDER BY o.status DESC
SELECT orders.status, orders.status = 'paid' AS paid, count(*) FROM orders GROUP BY orders.status, 2
SELECT user, current_role, current_user, (VALUES (1)), (VALUES (2), (1) ORDER BY 1 LIMIT 1), count(*) FROM orders
SELECT 'paid'::status AS s, count(*) FROM orders GROUP BY s
SELECT CASE WHEN amount > 5 THEN 'paid'::text::status END AS s, count(*) FROM orders GROUP BY 1
SELECT status, rank() OVER "By.Size" FROM orders GROUP BY status WINDOW "By.Size" AS (ORDER BY count(*))
SELECT DISTINCT status FROM orders
SELECT DISTINCT status, count(*) FROM orders GROUP BY status
SELECT DISTINCT ON (status) status, count(*) FROM orders GROUP BY status ORDER BY status, 2 DESC
SELECT city FROM customers GROUP BY 1 ORDER BY 1 ASC NULLS FIRST
SELECT city, is_vip, count(*) FROM customers GROUP BY (city, is_vip)
SELECT status, count(*) * 100.0 / sum(count(*)) OVER () AS pct FROM orders GROUP BY status
SELECT status, rank() OVER w, sum(sum(amount)) OVER (ORDER BY status ROWS UNBOUNDED PRECEDING) FROM orders GROUP BY status WINDOW w AS (ORDER BY sum(amount) DESC)
SELECT status, lag(count(*)) OVER (PARTITION BY status = 'open' ORDER BY status) FROM orders GROUP BY status
SELECT sum(amount) / nullif(count(*), 0), coalesce(sum(amount), 0), round(avg(amount), 2) FROM orders
SELECT CASE WHEN count(*) > 100 THEN 'many' ELSE 'few' END, greatest(count(*), 5) FROM orders
SELECT count(*) FILTER (WHERE status = 'paid') * 1.0 / nullif(count(*), 0) AS share FROM orders
SELECT status, count(*) / (SELECT count(*) FROM orders)::float FROM orders GROUP BY status
SELECT (SELECT count(*) FROM orders) AS o, (SELECT count(*) FROM customers) AS c
SELECT 'all' AS s, count(*) FROM orders UNION ALL SELECT status::text, count(*) FROM orders GROUP BY status ORDER BY 2
SELECT count(*) FROM (SELECT status FROM orders GROUP BY status) x
SELECT * FROM (SELECT status, sum(amount) AS total FROM orders GROUP BY 1) t WHERE total > 10 ORDER BY total
SELECT t.*, t.total * 2 FROM (SELECT status, sum(amount) FROM orders GROUP BY 1) AS t(status, total)
WITH m AS (SELECT status, count(*) AS n FROM orders GROUP BY 1) SELECT *, sum(n) OVER () FROM m ORDER BY n DESC
WITH o AS (SELECT * FROM orders), m AS MATERIALIZED (SELECT status, count(*) n FROM o GROUP BY 1) SELECT m.status, m.n, (SELECT max(n) FROM m) FROM m
WITH t AS (SELECT count(*) AS n FROM orders), u AS (SELECT count(*) AS n FROM customers) SELECT t.n::numeric / u.n FROM t, u
SELECT a.status, a.n, b.n FROM (SELECT status, count(*) n FROM orders GROUP BY 1) a FULL JOIN (SELECT status, count(*) n FROM orders WHERE amount > 5 GROUP BY 1) b USING (status)
SELECT interval '1' day, interval '-3' month AS m, coalesce(interval '1' day, '2'::interval hour), count(*) FROM orders
SELECT d, c FROM (SELECT interval '1' day AS d, count(*) AS c FROM orders) s
SELECT status, sum(count(*)) OVER ("rows" ROWS 1 PRECEDING), rank() OVER "range" FROM orders GROUP BY status WINDOW "rows" AS (ORDER BY status), "range" AS ("rows")
SELECT * FROM (SELECT count(*) AS c FROM orders) s, session_user, localtime(0), coalesce(lower('A'), 'b'), nullif(1, 2)
SELECT * FROM (SELECT count(*) AS f FROM orders) f, generate_series(1, 2), unnest(ARRAY[1]), CAST(1 AS int) WITH ORDINALITY
SELECT s.x, b.n FROM generate_series(1, 12) AS s(x) LEFT JOIN (SELECT extract(month FROM ordered_at) AS a, count(*) n FROM orders GROUP BY 1) b ON b.a = s.x
SELECT row_to_json(x) FROM (SELECT status, count(*) FROM orders GROUP BY 1) x
SELECT (array_agg(n ORDER BY n))[1], string_agg(s, ', ' ORDER BY s COLLATE "C") FROM (SELECT status::text AS s, count(*) n FROM orders GROUP BY 1) x
SELECT date_trunc('month', ordered_at) AS ordered_at, count(*) FROM orders WHERE ordered_at >= '2024-01-01' AND ordered_at < '2024-07-01' GROUP BY date_trunc('month', ordered_at) ORDER BY ordered_at
SELECT extract(year FROM ordered_at) AS y, to_char(sum(amount), '999G999') FROM orders GROUP BY y ORDER BY y
SELECT status, (SELECT max(p.price) FROM products p WHERE p.category = orders.status::text) FROM orders GROUP BY status
SELECT status, sum(amount) FROM orders GROUP BY status HAVING sum(amount) > (SELECT avg(price) FROM products)
SELECT p.category, count(*), max(p.category) OVER () FROM order_items i JOIN products p ON p.id = i.product_id GROUP BY p.category
SELECT c.city, count(DISTINCT c.id), sum(o.amount) FROM customers c JOIN orders o ON o.customer_id = c.id GROUP BY c.city
SELECT n, count(*) FROM (SELECT customer_id, count(*) AS n FROM orders GROUP BY customer_id) x GROUP BY n ORDER BY n
SELECT city, is_vip, count(*), grouping(city, is_vip) FROM customers GROUP BY ROLLUP (city, is_vip) ORDER BY 4, 1, 2
SELECT coalesce(city, 'all'), segment, count(*), grouping(city) + grouping(segment) FROM customers GROUP BY CUBE (city, 2) HAVING grouping(segment) = 0
SELECT segment, is_vip, avg(extract(year FROM birth_date)) FROM customers GROUP BY GROUPING SETS ((segment), (is_vip), ())
SELECT count(*) FROM customers GROUP BY ()
SELECT note FROM orders GROUP BY ROLLUP (note)
SELECT note, grouping(note) FROM orders GROUP BY GROUPING SETS ((note), (), ())
SELECT city, is_vip, count(*), grouping(is_vip) FROM customers GROUP BY city, is_vip ORDER BY grouping(city), 1
SELECT amount::numeric(8,1), ordered_at::timestamptz(0), count(*) FROM orders GROUP BY 1, 2
SELECT city::varchar(3) AS c, country::char(4), count(*) FROM customers GROUP BY city::varchar(3), 2 ORDER BY city::varchar(3)
SELECT city, (SELECT count(*) FROM products WHERE category > city) FROM customers GROUP BY city HAVING EXISTS (SELECT FROM products p WHERE p.name <> city)
SELECT nullif(country, 'DE'), count(*) FROM customers GROUP BY 1
SELECT coalesce(amount, amount), greatest(amount, amount) AS most, count(*) FROM orders GROUP BY 1, 2 ORDER BY 1
SELECT least(amount, 10), coalesce(amount, 0), count(*) FROM orders GROUP BY 1, 2
SELECT CASE WHEN status = 'paid' THEN amount ELSE amount END AS a, CASE WHEN status = 'paid' THEN amount END, count(*) FROM orders GROUP BY 1, 2
SELECT nullif(amount, 5), nullif(amount, 5::float8), nullif(amount, 2.5), count(*) FROM orders GROUP BY 1, 2, 3
SELECT nullif(amount, abs(id)), nullif(amount, coalesce(id, 0)), nullif(amount, id * 1.5), nullif(amount, -id::real), count(*) FROM orders GROUP BY ROLLUP (1, 2), 3, 4
SELECT nullif(city::char(3), 'Ber'), nullif(city::char(3), name), coalesce(city::varchar(3), name::varchar(3)), count(*) FROM customers GROUP BY 1, 2, 3
SELECT coalesce(city::varchar(3), name::varchar(4)), coalesce(country, country), coalesce(country, city), count(*) FROM customers GROUP BY 1, 2, 3
SELECT CASE WHEN is_vip THEN country ELSE city END, CASE WHEN is_vip THEN city ELSE country END, greatest(city, country) FROM customers GROUP BY 1, 2, 3
SELECT coalesce(nullif(amount, 0), amount) AS a FROM orders GROUP BY a
SELECT a, count(*) FROM (SELECT nullif(amount, 2.5) AS a FROM orders) t GROUP BY a
WITH t AS (SELECT nullif(amount, 2) AS a, coalesce(nullif(amount, id), amount) AS b FROM orders) SELECT a, b, count(*) FROM t GROUP BY a, b
SELECT nullif(city::char(3), country), nullif(city::char(3), 'a'::varchar), nullif(city::char(3), NULL), count(*) FROM customers GROUP BY 1, 2, 3
SELECT a, b FROM (SELECT nullif(city::char(3), country) AS a, nullif(city::char(3), 'a') AS b FROM customers) t GROUP BY a, b
SELECT coalesce(city::char(3), 'Ber'), coalesce(name, city::char(3)), greatest('x'::text, city::char(3)), coalesce(NULL, city::char(3)) FROM customers GROUP BY 1, 2, 3, 4
SELECT CASE WHEN is_vip THEN city::char(3) END AS c, CASE WHEN is_vip THEN city::char(3) ELSE name END FROM customers GROUP BY 1, 2
SELECT a, b, count(*) FROM (SELECT CASE WHEN is_vip THEN city::char(3) END AS a, coalesce(city::char(3), 'Ber') AS b FROM customers) t GROUP BY a, b
SELECT amount::numeric, amount::numeric::numeric(10,2), amount::numeric(8,1)::numeric, count(*) FROM orders GROUP BY 1, 2, 3
SELECT a, b, count(*) FROM (SELECT amount::numeric AS a, amount::numeric(8,1)::numeric AS b FROM orders) t GROUP BY a, b
SELECT a, b, c, count(*) FROM (SELECT +amount AS a, amount AS b, amount::numeric(10,2) AS c FROM orders) t GROUP BY a, b, c
WITH w(x, c) AS (SELECT amount::numeric, ordered_at::timestamptz(0)::timestamptz FROM orders), v AS (SELECT * FROM w) SELECT x, c, count(*) FROM v GROUP BY ROLLUP (x, c)
SELECT a, b, nullif(a, 'Ber'), coalesce(a, a) FROM (SELECT country::varchar AS b, city::char(3)::bpchar AS a FROM customers) t GROUP BY 1, 2, 3, 4
SELECT a, count(*) FROM (SELECT customer_id, amount::numeric AS a FROM orders UNION ALL SELECT customer_id, amount FROM orders) t GROUP BY a
SELECT a, count(*) FROM (SELECT customer_id, amount AS a FROM orders UNION SELECT customer_id, amount::numeric FROM orders) t GROUP BY a
SELECT t.amount, count(*) FROM (SELECT customer_id, amount::numeric FROM orders) t JOIN (SELECT customer_id, city FROM customers JOIN orders ON customer_id = customers.id) u USING (customer_id) GROUP BY t.amount
SELECT count(*), (SELECT 1)::text, (SELECT 1 + 1)::text, (VALUES (1)), (VALUES (1))::text, CASE WHEN true THEN 1 ELSE (SELECT 2) END FROM orders
SELECT sqrt(count(*)), |/ count(*), sqrt(sum(amount)) AS r, ln(count(*)), log(sum(amount)), log(2, count(*)), exp(avg(amount)::float8) FROM orders
SELECT count(*) ^ 2, power(count(*), 0.5), sum(amount) ^ 2, 2 ^ count(*), pow(1.5::real, count(*)), acos(count(*)), atanh(1.0 / count(*)) FROM orders
SELECT sqrt(n), power(n, 2), count(*) FROM (SELECT status, count(*) - 3 AS n FROM orders GROUP BY 1) t GROUP BY sqrt(n), power(n, 2) ORDER BY sqrt(n), power
SELECT count(*), (SELECT max(price::money / price::money) FROM products), (SELECT point(3, 4) / point(max(id), 1) FROM products)::text FROM orders
SELECT count(*)::int::money / sum(id % 2)::int::money, interval '1 day' / count(*), (count(*) / 3.0)::money / count(*)::smallint FROM orders
SELECT y, z, count(*) FROM (SELECT coalesce(a, b) AS y, CASE WHEN a > 3 THEN b ELSE a END AS z FROM (SELECT amount::numeric AS a, amount AS b FROM orders) s) t GROUP BY y, z
SELECT y, z, count(*) FROM (SELECT nullif(a, 2) AS y, coalesce(b, b) AS z FROM (SELECT amount::numeric AS a, amount AS b FROM orders) s) t GROUP BY y, z
SELECT x, y, z, count(*) FROM (SELECT id, max(city::char(9)) AS x, min(city::char(9)) AS y, coalesce(max(city::char(9)), '123456789') AS z FROM customers GROUP BY id) s GROUP BY x, y, z
SELECT status, k1, m1, (SELECT max(p.id) FROM products p WHERE p.id = k1 + m1) FROM (SELECT status, id % 3 AS k1, id % 2 AS m1 FROM orders) t GROUP BY 1, 2, 3
SELECT m1, grouping(m1), count(*), (SELECT m1 + 1) FROM (SELECT id % 4 AS m1 FROM customers) t GROUP BY GROUPING SETS ((m1), ())
SELECT DISTINCT cast(city AS varchar(2)) AS city, segment FROM customers ORDER BY cast(city AS varchar(2)), 2
SELECT 'all' AS a, status, count(*) FROM orders GROUP BY ROLLUP (1, 2) ORDER BY 1, 2
SELECT DISTINCT ON (city) upper(city) AS city, count(*) FROM customers GROUP BY customers.city ORDER BY city
SELECT name, count(*) FROM customers GROUP BY name
SELECT country, segment, joined IS NULL, count(*) FROM customers GROUP BY country, segment, joined IS NULL
SELECT is_vip AND true, count(*) FROM customers GROUP BY is_vip
SELECT * FROM orders LIMIT 0
SELECT o.*, c.city AS "City" FROM orders o JOIN customers c ON c.id = o.customer_id WHERE 1 = 0
SELECT id, amount + 1 FROM public.orders WHERE false
""".strip().splitlines()


@pytest.mark.parametrize("text", SHAPES)
def test_the_outer_statement_has_the_columns_of_the_original(
    text: str, catalog: Catalog, connection: psycopg.Connection
) -> None:
    made = planned(text, catalog)
    arrays = sum(len(answered(block)) for block in made.blocks)

    assert described(connection, made.outer_with_parameters(), arrays=arrays) == described(connection, text)
    run(connection, made)


@pytest.mark.parametrize(
    ("text", "since"),
    [
        ("SELECT JSON_OBJECT('s': status, 'n': count(*)), JSON_ARRAY(count(*), 1) FROM orders GROUP BY status", 16),
        ("SELECT JSON_ARRAY(SELECT count(*) FROM orders GROUP BY status), JSON_ARRAY(SELECT id FROM products)", 16),
        ("SELECT JSON_SCALAR(count(*)), JSON('1'), JSON_SERIALIZE(to_json(count(*))) FROM orders", 17),
        ("SELECT JSON_VALUE(to_jsonb(count(*)), '$'), JSON_EXISTS(to_jsonb(count(*)), '$') FROM orders", 17),
        (
            'SELECT status, JSON_ARRAYAGG(count(*)) OVER "W x" FROM orders GROUP BY 1 WINDOW "W x" AS (ORDER BY status)',
            16,
        ),
    ],
)
def test_documents_are_made_of_answers(text: str, since: int, catalog: Catalog, connection: psycopg.Connection) -> None:
    if connection.info.server_version < since * 10_000:
        pytest.skip(f"PostgreSQL has this since {since}")
    test_the_outer_statement_has_the_columns_of_the_original(text, catalog, connection)


def test_rows_come_in_the_order_of_their_keys(catalog: Catalog, connection: psycopg.Connection) -> None:
    made = planned("SELECT status, count(*) FROM orders GROUP BY status", catalog)

    assert run(connection, made) == [("open", "7"), ("paid", "7"), ("sent", "7"), ("returned", "7")]


def test_a_name_in_distinct_on_is_first_of_all_an_output_column(
    catalog: Catalog, connection: psycopg.Connection
) -> None:
    made = planned("SELECT DISTINCT ON (status) 3 AS status, count(*) FROM orders GROUP BY orders.status", catalog)

    assert run(connection, made) == [("3", "7")]


def test_a_constant_in_grouping_sets_is_null_in_totals(catalog: Catalog, connection: psycopg.Connection) -> None:
    made = planned("SELECT 'all' AS a, count(*) FROM orders GROUP BY ROLLUP (1)", catalog)

    assert run(connection, made) == [("all", "7"), (None, "7")]


def test_a_bare_name_in_a_subquery_is_the_key_of_that_name(catalog: Catalog, connection: psycopg.Connection) -> None:
    made = planned("SELECT status, (SELECT x || status FROM (SELECT 'a' AS x) o) FROM orders GROUP BY status", catalog)

    assert run(connection, made)[0] == ("open", "aopen")


def test_a_bare_name_in_a_subquery_is_never_another_column_of_ours(
    catalog: Catalog, connection: psycopg.Connection
) -> None:
    """The second key is in a column k2, and the first one in k1: what the analyst calls k1 must not be that."""
    source = "(SELECT is_vip AS k2, segment::text AS k1 FROM customers) AS t"
    made = planned(f"SELECT k2, k1, (SELECT k1 FROM (SELECT 1) AS o) FROM {source} GROUP BY k2, k1", catalog)

    rows = run(connection, made)
    assert rows and all(k1 == again for _, k1, again in rows)


def test_grouping_without_sets_is_zero(catalog: Catalog, connection: psycopg.Connection) -> None:
    made = planned("SELECT grouping(is_vip), count(*) FROM customers GROUP BY is_vip", catalog)

    assert run(connection, made) == [("0", "7"), ("0", "7")]


def test_equal_blocks_are_asked_once(catalog: Catalog, connection: psycopg.Connection) -> None:
    text = "SELECT (SELECT count(*) FROM orders) AS a, (SELECT sum(amount) FROM orders) AS b, count(*) FROM orders"

    assert len(planned(text, catalog).blocks) == 1


def test_a_bare_count_is_shown_from_zero_and_used_as_it_is(catalog: Catalog, connection: psycopg.Connection) -> None:
    outer = planned("SELECT count(*), count(*) + 1 FROM orders", catalog).outer_with_parameters()

    assert "SELECT _ng1.s1 AS count, _ng1.m1 + 1" in outer


@pytest.mark.parametrize(
    ("text", "around"),
    [
        (
            "DECLARE c NO SCROLL CURSOR WITH HOLD FOR SELECT count(*) FROM orders",
            "DECLARE c NO SCROLL CURSOR WITH HOLD",
        ),
        ("COPY (SELECT count(*) FROM orders) TO STDOUT WITH (FORMAT csv, HEADER)", "COPY ("),
    ],
)
def test_what_stands_around_a_query_stays(text: str, around: str, catalog: Catalog) -> None:
    outer = planned(text, catalog).outer_with_parameters()

    assert outer.startswith(around)
    assert "orders" not in outer


def test_parameters_keep_their_numbers_and_arrays_come_after_them(
    catalog: Catalog, connection: psycopg.Connection
) -> None:
    text = "SELECT status, $1::text, count(*) FROM orders WHERE amount > $2 GROUP BY status HAVING count(*) > $3"
    made = planned(text, catalog, ("x", "5", "0"), ("text", "numeric", "bigint"))

    assert made.parameters == 3
    assert [part for part in made.outer if isinstance(part, int)] == [1, 4, 5, 6, 3]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM orders LIMIT 10",
        "SELECT FROM orders",
        "SELECT o FROM orders o",
        "SELECT id FROM orders UNION SELECT id FROM customers",
        "SELECT DISTINCT id FROM customers",
        "SELECT id, count(*) FROM orders GROUP BY id",
        "SELECT sum(amount) OVER () FROM orders",
        "SELECT array_agg(amount) FROM orders",
        "SELECT count(o) FROM orders o",
        "SELECT email(customers), count(*) FROM customers GROUP BY 1",
        "SELECT (SELECT amount FROM orders LIMIT 1)",
        "SELECT name FROM products WHERE EXISTS (SELECT 1 FROM orders WHERE customer_id = 7)",
        "SELECT name FROM products WHERE id IN (SELECT customer_id FROM orders)",
        "SELECT ROW(o.*) FROM orders o",
        "SELECT ARRAY(SELECT amount FROM orders)",
        "SELECT name FROM products ORDER BY (SELECT max(amount) FROM orders WHERE customer_id = products.id)",
        "SELECT 1 FROM products LIMIT (SELECT customer_id FROM orders WHERE id = 1)",
        "SELECT * FROM ROWS FROM (generate_series(1, (SELECT customer_id FROM orders WHERE id = 3))) AS x",
        "SELECT json_agg(o) FROM (SELECT * FROM orders) o",
        "VALUES ((SELECT amount FROM orders WHERE id = 1))",
        "WITH RECURSIVE r AS (SELECT id FROM orders UNION SELECT id FROM r) SELECT count(*) FROM r",
        "COPY orders TO STDOUT",
    ],
)
def test_rows_are_never_given_out(text: str, catalog: Catalog) -> None:
    with pytest.raises(Refusal):
        planned(text, catalog)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("/* ä */ SELECT status, array_agg(amount) FROM orders GROUP BY 1", "array_agg"),
        ("SELECT count(*) FROM orders WHERE lower(note) = 'ö' AND md5(note) = 'x'", "md5"),
        ("COPY (SELECT sum(o.id) FROM orders AS o) TO STDOUT", "o.id"),
    ],
)
def test_a_refusal_points_at_what_it_names(text: str, named: str, catalog: Catalog) -> None:
    with pytest.raises(Refusal) as refused:
        planned(text, catalog)

    assert refused.value.position == text.index(named) + 1


def test_a_key_with_a_list_is_known_again_where_it_is_repeated(catalog: Catalog) -> None:
    key = "CASE WHEN city IN ('a', 'b') THEN 1 END"

    made = planned(f"SELECT {key}, count(*) FROM customers GROUP BY {key} ORDER BY {key}", catalog)

    assert "city" not in made.outer_with_parameters()


@pytest.mark.parametrize("number", [0, 2, 70_000, 1 << 20, (1 << 20) + 1])
def test_no_parameter_stands_where_arrays_do(catalog: Catalog, number: int) -> None:
    text = f"SELECT count(*), ${number}::int FROM customers WHERE id > $1"
    request = Request(text, ("public",), parameters=("7",), parameter_types=("integer",), epsilon=Decimal("0.1"))
    with pytest.raises(Refusal) as refused:
        plan(request, shop_data.policy(), catalog)
    assert (refused.value.sqlstate, refused.value.message) == ("42P02", f"there is no parameter ${number}")
    assert refused.value.position == text.index(f"${number}") + 1
