What tools ask beside aggregates: probes, keep-alives, settings, keys, privileges, comments, sizes.

--# Keep-alives
--> free, 1 row
SELECT 1
--> free
;
--> free
-- ping
--> free
/* ping */
--> free, 1 row
SELECT version()
--> free, same
SELECT 1 AS "a", 'b' AS b, NULL

--# A row that would be there: whether a table has any
--> refused 42501: LIMIT and OFFSET would select
SELECT 1 AS "a" FROM orders LIMIT 1
--> answer, 1 row, apart
SELECT count(*) > 0 AS filled FROM orders
--> answer, 1 row, apart
SELECT EXISTS (SELECT count(*) FROM orders HAVING count(*) > 10) AS filled

--# Probes of every kind
--> free, 0 rows
SELECT * FROM orders WHERE false
--> free, 0 rows
SELECT * FROM orders WHERE 1 = 0 ORDER BY channel LIMIT 10
--> free, 0 rows
SELECT * FROM (SELECT * FROM orders WHERE amount > 10) AS "Custom SQL" LIMIT 0
--> free, 0 rows
SELECT "id", "city" FROM "shop"."public"."customers" LIMIT 0
--> free, 0 rows
WITH x AS (SELECT c.city, o.* FROM customers c JOIN orders o ON o.customer_id = c.id) SELECT * FROM x WHERE 1 <> 1
--> free, 0 rows
TABLE orders LIMIT 0
--> free, 0 rows
SELECT city, count(*) FROM customers WHERE 1 = 2 GROUP BY city
--> free, 0 rows
SELECT * FROM orders FETCH FIRST 0 ROWS ONLY
--> free, 0 rows
SELECT * FROM (SELECT city, count(*) AS n FROM customers GROUP BY city) AS q WHERE 0 = 1

--# Count of a table, and of the groups of an answer
--> answer
SELECT COUNT(*) FROM orders
--> answer, 1 row
SELECT COUNT(*) AS rowcount FROM (SELECT channel, status, count(*) FROM orders GROUP BY channel, status) AS rowcount_qry
--> again, 1 row
SELECT COUNT(1) FROM (SELECT channel, status, count(*) FROM orders GROUP BY channel, status) AS t

--# Lists of values: an enum, a declared column, a boolean, a public table
--> free, 4 rows, same
SELECT DISTINCT channel FROM orders ORDER BY channel
--> free, 9 rows, same
SELECT city FROM customers GROUP BY 1 ORDER BY 1 ASC NULLS FIRST
--> free, 2 rows, same
SELECT DISTINCT newsletter FROM customers ORDER BY newsletter
--> free, 6 rows, same
SELECT DISTINCT category FROM products ORDER BY category
--> free, 9 rows
SELECT DISTINCT "city" FROM customers WHERE city IS NOT NULL LIMIT 1000

--# The range of a date for a time filter
--> answer, 1 row, other rows
SELECT min(ordered_at), max(ordered_at) FROM orders
--> answer, 1 row, other rows
SELECT min(joined_on)::text AS first, max(joined_on)::text AS last FROM customers

--# Primary and foreign keys, comments, privileges
--> free, same
SELECT a.attname, format_type(a.atttypid, a.atttypmod) FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY(i.indkey) WHERE i.indrelid = 'public.order_items'::regclass AND i.indisprimary ORDER BY 1
--> free, same
SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid IN ('orders'::regclass, 'order_items'::regclass) AND contype = 'f' ORDER BY 1, 2
--> free, same
SELECT obj_description(attrelid), col_description(attrelid, attnum) FROM pg_attribute WHERE attrelid = 'customers'::regclass AND attname = 'city'
--= Everybody who has an account. Each of them is a privacy unit. | Where the first order was sent to
--> free, 1 row
SELECT has_table_privilege('customers', 'SELECT'), has_table_privilege('orders', 'INSERT') AND current_user = 'ada', has_table_privilege(current_user, 'products', 'SELECT'), has_any_column_privilege('customers', 'SELECT'), has_schema_privilege('public', 'USAGE'), has_column_privilege('customers', 'city', 'SELECT')
--= t | f | t | t | t | t

--# Sizes and statistics tell nothing of protected tables
--> free
SELECT reltuples <= 0, relpages FROM pg_class WHERE oid = 'orders'::regclass
--= t | 0
--> free
SELECT pg_size_pretty(pg_total_relation_size('orders')) = pg_size_pretty(pg_total_relation_size('order_items')) AS alike
--= f
--> free, 0 rows
SELECT * FROM pg_stats WHERE tablename IN ('customers', 'orders', 'order_items')
--> free
SELECT n_live_tup, n_tup_ins FROM pg_stat_user_tables WHERE relname = 'orders'
--= 0 | 0

--# Settings that tools make
--> free
SET application_name = 'tool'; SET client_min_messages TO notice; SET DateStyle = 'ISO, MDY'; SET extra_float_digits = 3; SET bytea_output = 'hex'; SET TIME ZONE 'Europe/Berlin'; SET SESSION search_path = public, pg_catalog; SET statement_timeout = 30000; SET lock_timeout TO '5s'; SET jit = off; SET row_security = off; SET default_transaction_read_only = on; SET intervalstyle = 'postgres'; SET synchronize_seqscans TO off; SET standard_conforming_strings = on
--> free, 1 row
SHOW TimeZone
--= Europe/Berlin
--> free
SET TIME ZONE INTERVAL '+00:00' HOUR TO MINUTE
--> free, 1 row
SELECT set_config('jit', 'off', false), current_setting('server_version_num')::int >= 130000
--= off | t
--> free, 1 row
SHOW TRANSACTION ISOLATION LEVEL
--= read committed
--> free
SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL REPEATABLE READ
--> answer, 1 row
SELECT count(*) FROM customers
--> free
RESET ALL
--> free
LISTEN something
--> free
UNLISTEN *
--> free
DISCARD ALL
--> again, 1 row
SELECT count(*) FROM customers
--> free
SHOW ALL

--# What is refused, and what PostgreSQL itself refuses, leaves the session usable
--> refused 25006
CREATE TEMP TABLE t (a int)
--> refused 25006
INSERT INTO products VALUES (1000, 'x', 'books', 1)
--> error 42P01: relation "nosuch"
SELECT count(*) FROM nosuch
--> error 42703: column "nosuch"
SELECT nosuch FROM customers
--> error 42601: syntax error
SELEC 1
--> error 42703: column "email"
SELECT count(email) FROM customers
--> error 42803: column "customers.city"
SELECT city, count(*) FROM customers
--> error 22P02: invalid input
SELECT count(*) FROM orders WHERE channel = 'pigeon'
--> free, 1 row
SELECT 1
