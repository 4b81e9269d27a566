"""Queries over public tables are printed for the real database as they were written, and nothing else is."""

from collections import Counter
from collections.abc import Iterator

import psycopg
import pytest

from rules.catalog import TableName
from rules.planner.check_public import check_public
from rules.planner.plan import PublicQuery
from rules.refusal import NotSupported
from rules.sql.grammar import parse
from rules.sql.public_sql import COLLATIONS, FUNCTIONS, OPERATORS, TYPES, Printed, ReadableTable, print_public
from rules.sql.tree import made_canonical
from tests.conftest import RealDatabase

COLUMNS = "id", "name", "category", "price"
AGREEING = [
    "SELECT * FROM products ORDER BY price DESC NULLS LAST, 1 LIMIT 3 OFFSET 2",
    "SELECT p.* FROM products AS p (a, b, c, d) WHERE p.a IN (1, -2, 3) AND NOT p.c = 'book'",
    "SELECT DISTINCT ON (category) category, name AS n FROM products ORDER BY category, price DESC",
    "SELECT category, count(*), count(DISTINCT price) FILTER (WHERE price > 10.5), avg(price)::numeric(10,2)"
    " FROM products GROUP BY category HAVING max(price) > 3 ORDER BY 2 DESC, 1 FETCH FIRST 2 ROWS WITH TIES",
    "SELECT category, price > 50, grouping(category), sum(price) FROM products GROUP BY ROLLUP (category, price > 50)",
    "SELECT category, count(*) FROM products GROUP BY GROUPING SETS ((category), ()), CUBE (name)",
    "SELECT id, rank() OVER w, sum(price) OVER (w ROWS BETWEEN 1 PRECEDING AND CURRENT ROW),"
    " lag(id, 2) OVER (ORDER BY id) FROM products WINDOW w AS (PARTITION BY category ORDER BY price)",
    "WITH c AS (SELECT category FROM products), d (x) AS (SELECT category FROM c) SELECT x, count(*) FROM d GROUP BY x",
    "WITH products AS (SELECT 1 AS id) SELECT id FROM products",
    "SELECT p.id FROM products AS p JOIN (SELECT category, max(price) AS price FROM products GROUP BY 1) AS m"
    " USING (category, price) LEFT JOIN products AS q ON q.id = p.id + 1"
    " CROSS JOIN (VALUES (1, 'a'), (2, 'b')) AS v (x, y)",
    "SELECT p.id, l.name FROM products AS p, LATERAL (SELECT q.name FROM products AS q WHERE q.id = p.id - 1) AS l",
    "SELECT id FROM products NATURAL JOIN (SELECT id, name FROM products) AS x",
    "SELECT u.x, u.place FROM unnest(ARRAY['b', 'a']) WITH ORDINALITY AS u (x, place)",
    "SELECT id FROM products WHERE name LIKE 'Product 1_' AND name NOT ILIKE '%3' AND name SIMILAR TO '%(1|2)%'",
    "SELECT id FROM products WHERE name LIKE 'Product!_1' ESCAPE '!' OR name ~* '2$' OR name !~ '[0-9]'",
    "SELECT id FROM products WHERE price BETWEEN 10 AND 20 OR price NOT BETWEEN SYMMETRIC 90 AND 1"
    " OR (price IS NULL) IS TRUE",
    "SELECT id FROM products WHERE (id, category) IN (SELECT id, 'book' FROM products) OR id = ANY (ARRAY[1, 2])"
    " OR id > ALL (SELECT id - 1 FROM products) OR EXISTS (SELECT FROM products AS q WHERE q.id = products.id * 2)",
    "SELECT id, (SELECT max(price) FROM products), ARRAY(SELECT id FROM products ORDER BY id LIMIT 2) FROM products",
    "SELECT CASE WHEN price > 50 THEN 'a' ELSE NULL END, CASE category WHEN 'book' THEN 1 END, coalesce(NULL, name),"
    " nullif(category, 'book'), greatest(1, id), least(price, 3), price IS DISTINCT FROM 3 FROM products",
    "SELECT extract(year FROM date '2024-02-29' + id), substring(name FROM 2 FOR 3), trim(BOTH 'P' FROM name),"
    " position('d' IN name), overlay(name PLACING 'x' FROM 1), timestamp '2024-01-01' AT TIME ZONE 'UTC',"
    " interval '1' day * id, date_trunc('month', timestamp '2024-05-05') FROM products",
    "SELECT (ARRAY[1, 2, 3])[2], (ARRAY[1, 2, 3])[2:3], (string_to_array(name, ' '))[1], ROW(1, id) = ROW(1, 2)"
    " FROM products",
    "SELECT name || E'\\\\ it''s', 'a\\b', id::text, -id, +id, id % 7, 2 ^ 3, ~id, true AND NOT false FROM products",
    "SELECT name COLLATE \"C\" < 'Q', '{\"a\": [1]}'::jsonb -> 'a' ->> 0, int4range(1, 5) @> id FROM products",
    "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY price), mode() WITHIN GROUP (ORDER BY category) FROM products",
    "SELECT id FROM products UNION ALL (SELECT 3 EXCEPT SELECT 4) ORDER BY 1 DESC LIMIT 4",
    "(SELECT id FROM products WHERE id < 5) INTERSECT ALL SELECT id FROM products WHERE id > 2",
    "VALUES (1, 'a'), (2, NULL)",
    "SELECT count(*) FROM products WHERE to_tsvector('english', name) @@ to_tsquery('english', '7 | 8')",
    'SELECT "name" AS "we""ird" FROM "products" AS "Te st" WHERE "Te st".id = 1e0',
]
REFUSED = [
    "SELECT id FROM customers",
    "SELECT relname FROM pg_class",
    "SELECT relname FROM pg_catalog.pg_class",
    "WITH pg_class AS (SELECT 1) SELECT id FROM products, pg_catalog.pg_class",
    "SELECT (WITH pg_class AS (SELECT 1 AS x) SELECT x FROM pg_class), id FROM products, pg_class",
    "SELECT public.reveal() FROM products",
    "SELECT reveal() FROM products",
    "SELECT pg_catalog.pg_read_file('x')",
    "SELECT pg_sleep(1)",
    "SELECT query_to_xml('select 1', true, true, '')",
    "SELECT nextval('s')",
    "SELECT current_user",
    "SELECT current_setting('x')",
    "SELECT random()",
    "SELECT generate_series(1, 1000000000)",
    "SELECT repeat(name, 1000000) FROM products",
    "SELECT string_agg(name, ',') FROM products",
    "SELECT 'customers'::regclass",
    "SELECT 1::public.money_of_ours",
    "SELECT name COLLATE public.mine FROM products",
    "SELECT id OPERATOR(public.===) 1 FROM products",
    "SELECT id === 1 FROM products",
    "SELECT name FROM products ORDER BY name USING <",
    "SELECT name FROM products FOR UPDATE",
    "SELECT name FROM ONLY products",
    "SELECT name FROM products TABLESAMPLE system (1)",
    "SELECT (p).name FROM products AS p",
    "SELECT xmlelement(name x)",
    "SELECT B'101'",
    "SELECT name INTO kept FROM products",
    "SELECT * FROM ROWS FROM (unnest(ARRAY[1]), unnest(ARRAY[2])) AS x",
    "SELECT concat_ws(VARIADIC ARRAY['a', 'b'])",
    "SELECT make_interval(days => 3)",
    "WITH RECURSIVE r AS (SELECT 1 AS x UNION ALL SELECT x FROM r) SELECT x FROM r",
    "WITH r AS (DELETE FROM products RETURNING id) SELECT id FROM r",
    "SELECT $1",
    "SELECT id FROM (products AS a JOIN products AS b USING (id)) AS j",
]


def printed(sql: str) -> Printed:
    (piece,) = parse(sql)
    return print_public(made_canonical(piece.tree), _table, lambda names: None, [])


def _table(schema: str | None, name: str) -> ReadableTable:
    if schema not in (None, "public") or name != "products":
        raise NotSupported(f"{name} is not public")
    return ReadableTable(TableName("public", "products"), COLUMNS)


@pytest.fixture
def owner(shop: RealDatabase) -> Iterator[psycopg.Connection]:
    with shop.connect() as connection:
        yield connection


@pytest.mark.parametrize("sql", AGREEING)
def test_what_is_printed_has_the_same_rows_and_names(owner: psycopg.Connection, sql: str) -> None:
    written = owner.execute(sql)
    names, rows = [column.name for column in written.description or ()], written.fetchall()
    owner.execute("SET search_path = ''")

    made = owner.execute(printed(sql).sql)

    assert [column.name for column in made.description or ()] == names
    assert Counter(map(str, made.fetchall())) == Counter(map(str, rows))


@pytest.mark.parametrize("sql", AGREEING)
def test_what_is_printed_is_let_through(sql: str) -> None:
    made = printed(sql)
    assert check_public(PublicQuery(made.sql, made.tables)).tables >= set(made.tables)


@pytest.mark.parametrize("sql", REFUSED)
def test_what_is_not_on_the_list_is_refused(sql: str) -> None:
    with pytest.raises(NotSupported):
        printed(sql)


def test_a_hidden_column_is_in_no_text() -> None:
    made = print_public(
        parse("SELECT *, p, count(p.*) FROM products AS p NATURAL JOIN products GROUP BY p.id")[0].tree,
        lambda schema, name: ReadableTable(TableName("public", "products"), ("id",)),
        lambda names: None,
        [],
    )
    assert '(SELECT "id" FROM "public"."products") AS "p"' in made.sql


def test_a_cte_out_of_scope_is_no_relation(owner: psycopg.Connection) -> None:
    """Our names of CTEs are no relations: a slip of our scopes is an error there, not another relation's rows."""
    made = printed("WITH pg_class AS (SELECT 1 AS x) SELECT x FROM pg_class")

    assert '"noisegate cte 1" AS "pg_class"' in made.sql
    assert owner.execute(made.sql).fetchall() == [(1,)]


def test_functions_of_the_list_read_nothing_and_change_nothing(owner: psycopg.Connection) -> None:
    """Each is PostgreSQL's own; none of them is volatile, so it cannot write, wait or draw."""
    rows = owner.execute(
        "SELECT proname, bool_or(provolatile = 'v'), bool_or(prosecdef) FROM pg_proc"
        " WHERE pronamespace = 'pg_catalog'::regnamespace AND proname = ANY (%s) GROUP BY 1",
        (sorted(FUNCTIONS),),
    ).fetchall()

    assert {name for name, volatile, definer in rows if volatile or definer} == set()
    assert len(FUNCTIONS) - len(rows) <= 8  # those that only newer servers have


def test_operators_and_types_of_the_list_are_those_of_postgresql(owner: psycopg.Connection) -> None:
    known = owner.execute(
        "SELECT (SELECT array_agg(oprname::text) FROM pg_operator WHERE oprnamespace = 'pg_catalog'::regnamespace),"
        " (SELECT array_agg(typname::text) FROM pg_type WHERE typnamespace = 'pg_catalog'::regnamespace),"
        " (SELECT array_agg(collname::text) FROM pg_collation)"
    ).fetchone()
    assert known is not None
    assert OPERATORS - {"!=", *known[0]} == set()
    assert TYPES - set(known[1]) == set()
    assert COLLATIONS - set(known[2]) == set()
