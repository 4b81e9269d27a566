"""What hostile analysts try, by the way in which it would leak. Written for the shop of `tests.support.shop`.

Each statement must be refused with one of the SQLSTATEs beside it, or, where "free" stands there, be answered without
any protected row and without a charge. None may ever be answered from rows, real or of the twin's empty tables.
"""

from typing import NamedTuple

ROWS = ("42501", "0A000")  # rows, or a shape that is not supported
KIND = ("25006", "42501", "0A000")  # refused by the kind of statement
ABSENT = ("42P01", "42703", "42883", "42501", "0A000", "3F000")  # it does not exist for an analyst
FREE = ("free",)


class Attack(NamedTuple):
    name: str
    sql: str
    outcome: tuple[str, ...] = ROWS


RAW_ROWS = (
    Attack("select star", "SELECT * FROM customers"),
    Attack("table command", "TABLE customers"),
    Attack("no columns, countable rows", "SELECT FROM customers WHERE birth_date < '1930-01-01'"),
    Attack("constants, countable rows", "SELECT 1 FROM customers WHERE city = 'Porto'"),
    Attack("limit one", "SELECT id FROM customers ORDER BY id LIMIT 1"),
    Attack("union of rows", "SELECT city FROM customers UNION ALL SELECT category FROM products"),
    Attack("intersect", "SELECT id FROM customers INTERSECT SELECT id FROM products"),
    Attack("except", "SELECT id FROM products EXCEPT SELECT id FROM customers"),
    Attack("distinct on", "SELECT DISTINCT ON (city) id FROM customers"),
    Attack("values with a subselect", "VALUES ((SELECT id FROM customers LIMIT 1))"),
    Attack("group by the unit", "SELECT id, count(*) FROM customers GROUP BY id"),
    Attack("group by the unit elsewhere", "SELECT customer_id, sum(amount) FROM orders GROUP BY customer_id"),
    Attack("functional dependency", "SELECT id, name FROM customers GROUP BY id"),
    Attack("cursor over rows", "DECLARE c CURSOR WITH HOLD FOR SELECT * FROM customers"),
    Attack("copy table", "COPY customers TO STDOUT"),
    Attack("copy rows", "COPY (SELECT name FROM customers) TO STDOUT"),
    Attack("for update", "SELECT count(*) FROM (SELECT * FROM customers FOR UPDATE) t"),
)

ROWS_AS_VALUES = (
    Attack("alias as value", "SELECT c FROM customers c"),
    Attack("row to json", "SELECT row_to_json(c) FROM customers c"),
    Attack("row as text in where", "SELECT count(*) FROM customers c WHERE c::text LIKE '%vip%'"),
    Attack("max of rows as text", "SELECT max(c::text) FROM customers c"),
    Attack("group by row", "SELECT c, count(*) FROM customers c GROUP BY c"),
    Attack("field as function", "SELECT city(customers) FROM customers"),
    Attack("ctid", "SELECT count(*) FROM customers WHERE ctid = '(0,1)'"),
    Attack("xmin", "SELECT xmin, count(*) FROM customers GROUP BY xmin"),
    Attack("tableoid", "SELECT tableoid, count(*) FROM customers GROUP BY tableoid"),
)

AGGREGATES_OF_INPUTS = tuple(
    Attack(f"{name} gives its inputs back", f"SELECT {call} FROM customers")
    for name, call in (
        ("array_agg", "array_agg(name)"),
        ("string_agg", "string_agg(name, ',')"),
        ("json_agg", "json_agg(name)"),
        ("jsonb_object_agg", "jsonb_object_agg(id, name)"),
        ("max of text", "max(name)"),
        ("min of text", "min(name)"),
        ("mode of text", "mode() WITHIN GROUP (ORDER BY name)"),
        ("percentile_disc of text", "percentile_disc(0.5) WITHIN GROUP (ORDER BY name)"),
        ("bool_or", "bool_or(is_vip)"),
        ("every", "every(is_vip)"),
        ("bit_or", "bit_or(id)"),
        ("hypothetical rank", "rank(5) WITHIN GROUP (ORDER BY id)"),
        ("any_value", "any_value(name)"),
        ("xmlagg", "xmlagg(xmlelement(name x, name))"),
    )
)

WINDOWS = (
    Attack("row_number over everybody", "SELECT row_number() OVER (ORDER BY id) FROM customers"),
    Attack("count over everybody", "SELECT count(*) OVER () FROM customers"),
    Attack("window below an aggregate", "SELECT count(*) FROM (SELECT rank() OVER (ORDER BY amount) r FROM orders) t"),
    Attack("first value", "SELECT DISTINCT first_value(name) OVER (ORDER BY id) FROM customers"),
)

OTHER_PEOPLE = (
    Attack(
        "exists about another", "SELECT count(*) FROM customers WHERE EXISTS (SELECT 1 FROM customers v WHERE v.id = 7)"
    ),
    Attack(
        "in a list of orders, which are one's own",
        "SELECT count(*) FROM customers WHERE id NOT IN (SELECT customer_id FROM orders WHERE id = 3)",
        (*ROWS, "answer"),
    ),
    Attack(
        "scalar maximum, which is noised first",
        "SELECT count(*) FROM customers WHERE birth_date = (SELECT max(birth_date) FROM customers)",
        (*ROWS, "answer"),
    ),
    Attack("limit as an oracle", "SELECT name FROM products LIMIT (SELECT id FROM customers WHERE is_vip LIMIT 1)"),
    Attack(
        "public rows by a protected subselect",
        "SELECT name FROM products WHERE EXISTS (SELECT 1 FROM customers WHERE id = 7)",
    ),
    Attack("cross join of units", "SELECT count(*) FROM customers a, customers b"),
    Attack("join of units by city", "SELECT count(*) FROM customers a JOIN customers b ON a.city = b.city"),
    Attack(
        "linking equality below or", "SELECT count(*) FROM customers c JOIN orders o ON c.id = o.customer_id OR true"
    ),
    Attack("lateral over units", "SELECT count(*) FROM customers c, LATERAL (SELECT * FROM orders LIMIT c.id) o"),
    Attack(
        "recursive",
        "WITH RECURSIVE r AS (SELECT id FROM customers UNION SELECT r.id + 1 FROM r) SELECT count(*) FROM r",
    ),
)

ISOLATION = (
    Attack("limit below the aggregate", "SELECT count(*) FROM (SELECT * FROM customers ORDER BY id LIMIT 1) t"),
    Attack("offset below the aggregate", "SELECT count(*) FROM (SELECT * FROM customers OFFSET 10) t"),
    Attack(
        "distinct on below", "SELECT count(*) FROM (SELECT DISTINCT ON (city) * FROM customers ORDER BY city, id) t"
    ),
    Attack("sample", "SELECT count(*) FROM customers TABLESAMPLE BERNOULLI (50) REPEATABLE (1)"),
    Attack(
        "fetch with ties", "SELECT count(*) FROM (SELECT * FROM orders ORDER BY amount FETCH FIRST 1 ROWS WITH TIES) t"
    ),
)

CONTRIBUTION = (
    Attack(
        "series per row", "SELECT count(*) FROM customers, generate_series(1, CASE WHEN is_vip THEN 1000000 ELSE 1 END)"
    ),
    Attack(
        "unnest per row",
        "SELECT count(*) FROM (SELECT unnest(string_to_array(repeat('a,', 1000), ',')) FROM customers) t",
    ),
    Attack("set-returning item", "SELECT count(*) FROM (SELECT regexp_split_to_table(name, '') FROM customers) t"),
)

UNBOUNDED = (
    Attack("sum without bounds", "SELECT sum(id) FROM orders"),
    Attack("sum of a product without bounds", "SELECT sum(amount * id) FROM orders"),
    Attack("power, within bounds", "SELECT sum(amount ^ 100) FROM orders", (*ROWS, "answer")),
    Attack("exp, within bounds", "SELECT sum(exp(amount)) FROM orders", (*ROWS, "answer")),
)

ERRORS_AS_BITS = tuple(
    Attack(f"{name} fails for some rows", f"SELECT count(*) FROM customers WHERE {condition}", (*ROWS, "answer"))
    for name, condition in (
        ("division", "1 / (id - 7) > 0"),
        ("modulo", "5 % (id - 7) > 0"),
        ("text to integer", "name::int > 0"),
        ("text to date", "name::date > '2020-01-01'"),
        ("overflow of int4", "id * 2000000000 > 0"),
        ("sqrt", "sqrt(7 - id) > 0"),
        ("ln", "ln(id - 7) > 0"),
        ("narrowing", "(id * 1000)::int2 > 0"),
        ("chr", "chr(id - 7) = 'a'"),
        ("substring", "substring(name, 1, id - 7) = 'a'"),
        ("repeat", "length(repeat(name, 20000000)) > 0"),
        ("to_date", "to_date(name, 'YYYY') > '2020-01-01'"),
        ("to_number", "to_number(name, '999') > 0"),
        ("like with a loose escape", "name LIKE 'Al\\'"),
        ("regular expression", "name ~ '('"),
        ("regular expression from a column", "name ~ city"),
        ("interval arithmetic", "birth_date + id * interval '100000 years' > '2020-01-01'"),
        ("make_date", "make_date(id, 13, 1) > '2020-01-01'"),
        ("time zone from a column", "joined AT TIME ZONE name > '2020-01-01'"),
        ("width_bucket", "width_bucket(id, 1, 1, 5) > 0"),
        ("json path", "jsonb_path_exists('{}', name::jsonpath)"),
        ("backtracking", "name ~ '^(a+)(a+)(a+)(a+)(a+)\\5\\4\\3\\2\\1\\1\\1b?a$'"),
    )
)

SQL_AS_TEXT = tuple(
    Attack(f"{name} runs text", f"SELECT {call}", ABSENT)
    for name, call in (
        ("query_to_xml", "query_to_xml('SELECT * FROM customers', true, false, '')"),
        ("quoted", "\"query_to_xml\"('SELECT * FROM customers', true, false, '')"),
        ("qualified", "pg_catalog.Query_To_XML('SELECT * FROM customers', true, false, '')"),
        ("unicode escape", "U&\"quer\\0079_to_xml\"('SELECT * FROM customers', true, false, '')"),
        ("table_to_xml", "table_to_xml('customers', true, false, '')"),
        ("cursor_to_xml", "cursor_to_xml('c', 10, true, false, '')"),
        ("ts_stat", "(ts_stat('SELECT to_tsvector(name) FROM customers')).word"),
        ("dblink", "* FROM dblink('dbname=shop', 'SELECT name FROM customers') AS t(n text)"),
        ("pg_read_file", "pg_read_file('/etc/passwd')"),
        ("lo_import", "lo_import('/etc/passwd')"),
        ("pg_ls_dir", "pg_ls_dir('.')"),
    )
)

OTHER_STATEMENTS = tuple(
    Attack(name, sql, (*KIND, "42601", "42P01", "42704", "22023"))
    for name, sql in (
        ("insert", "INSERT INTO customers (id) VALUES (1)"),
        ("update", "UPDATE orders SET amount = 0"),
        ("delete", "DELETE FROM orders"),
        ("merge", "MERGE INTO orders o USING customers c ON o.customer_id = c.id WHEN MATCHED THEN DELETE"),
        ("truncate", "TRUNCATE customers"),
        ("write in a cte", "WITH d AS (DELETE FROM orders RETURNING *) SELECT count(*) FROM d"),
        ("do", "DO $$ BEGIN RAISE EXCEPTION '%', (SELECT name FROM customers LIMIT 1); END $$"),
        ("call", "CALL something()"),
        ("select into", "SELECT * INTO t FROM customers"),
        ("temporary table", "CREATE TEMP TABLE t AS SELECT * FROM customers"),
        ("a view in the temporary schema", "CREATE VIEW pg_temp.products AS SELECT * FROM customers"),
        ("view", "CREATE VIEW v AS SELECT * FROM customers"),
        ("function", "CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'"),
        ("lock", "LOCK TABLE customers"),
        ("copy from", "COPY customers FROM STDIN"),
        ("copy to a program", "COPY (SELECT 1) TO PROGRAM 'cat'"),
        ("copy to a file", "COPY (SELECT 1) TO '/tmp/out'"),
        ("set role", "SET ROLE noisegate_owner"),
        ("session authorization", "SET SESSION AUTHORIZATION noisegate_owner"),
        ("alter system", "ALTER SYSTEM SET work_mem = '1GB'"),
        ("alter role", "ALTER ROLE ada SET statement_timeout = 0"),
        ("grant", "GRANT SELECT ON customers TO PUBLIC"),
        ("vacuum", "VACUUM customers"),
        ("analyze", "ANALYZE customers"),
        ("notify", "NOTIFY noisegate_cancel, 'x'"),
        ("explain analyze", "EXPLAIN ANALYZE SELECT count(*) FROM customers"),
        ("explain rows", "EXPLAIN SELECT * FROM customers"),
        ("load", "LOAD 'auto_explain'"),
        ("publication", "CREATE PUBLICATION p FOR ALL TABLES"),
    )
)

HIDDEN = (
    Attack("hidden column", "SELECT count(*) FROM customers WHERE email = 'x'", ABSENT),
    Attack("hidden column in a star", "SELECT count(t.email) FROM (SELECT * FROM customers) t", ABSENT),
    Attack("table outside the rules", "SELECT count(*) FROM internal_notes", ABSENT),
    Attack("another schema", "SELECT count(*) FROM evil.products", ABSENT),
    Attack("a name of 64 bytes", f'WITH "{"x" * 64}" AS (SELECT 1) SELECT count(*) FROM "{"x" * 64}"', (*FREE, *ROWS)),
)

PARSERS = (
    Attack("a long sum", "SELECT " + "+".join(["1"] * 30_000), ("54001", "54000", "54011", "0A000")),
    Attack("nested arrays", "SELECT " + "ARRAY[" * 24 + "1" + "]" * 24, (*FREE, "54000", "54001")),
    Attack("nested parentheses", "SELECT " + "(" * 200 + "1" + ")" * 200, (*FREE, "54001")),
    Attack("a comment that ends early", "SELECT 1 /* a */ FROM customers -- */"),
    Attack("a tail after a comment", "SELECT /* -- */ name FROM customers"),
    Attack("escape string", r"SELECT E'\'' , name FROM customers --'"),
    Attack("dollar quotes", "SELECT $a$ $b$ $a$, name FROM customers -- $b$"),
    Attack("unreadable", "SELECT ((( FROM customers", ("42601",)),
    Attack("other blanks", "SELECT\u00a0name FROM customers", ("42601", "42703", *ROWS)),
)

ATTACKS = (
    *RAW_ROWS,
    *ROWS_AS_VALUES,
    *AGGREGATES_OF_INPUTS,
    *WINDOWS,
    *OTHER_PEOPLE,
    *ISOLATION,
    *CONTRIBUTION,
    *UNBOUNDED,
    *ERRORS_AS_BITS,
    *SQL_AS_TEXT,
    *OTHER_STATEMENTS,
    *HIDDEN,
    *PARSERS,
)
