Grafana: the macros $__timeGroup, $__timeFilter and their kin as they are expanded; panels of time series, gauges, tables.

--# A check of the data source
--> free, 1 row
SELECT 1

--# The version, asked for at connect
--> free
SELECT current_setting('server_version_num')::int/100 as version

--# $__timeGroupAlias by a day, $__timeFilter; no customer has more than five orders in two weeks
--> free
SET noisegate.rows_per_unit = 5
--> answer
SELECT floor(extract(epoch from ordered_at)/86400)*86400 AS "time", count(*) AS orders FROM orders WHERE ordered_at BETWEEN '2025-03-01T00:00:00Z' AND '2025-03-14T23:59:59.999Z' GROUP BY 1 ORDER BY 1

--# By month, with a metric's name as a text
--> answer, other rows
SELECT date_trunc('month', ordered_at) AS "time", channel::text AS metric, sum(amount) AS value FROM orders WHERE ordered_at BETWEEN '2025-01-01T00:00:00Z' AND '2025-06-30T23:59:59Z' GROUP BY 1, 2 ORDER BY 1, 2

--# $__unixEpochFilter
--> answer, 1 row
SELECT count(*) AS value FROM orders WHERE extract(epoch from ordered_at) >= 1735689600 AND extract(epoch from ordered_at) <= 1751328000

--# $__timeGroup by five minutes, as epoch arithmetic and as a bin of the hour
--> answer, other rows
SELECT floor(extract(epoch from ordered_at)/300)*300 AS "time", count(*) AS orders FROM orders WHERE ordered_at BETWEEN '2025-03-01T08:00:00Z' AND '2025-03-01T14:00:00Z' GROUP BY 1 ORDER BY 1
--> answer, other rows
SELECT date_trunc('minute', ordered_at) AS "time", count(*) AS orders FROM orders WHERE ordered_at BETWEEN '2025-03-01T08:00:00Z' AND '2025-03-01T09:00:00Z' GROUP BY 1 ORDER BY 1

--# date_bin
--> answer, 8 rows, apart
SELECT date_bin('7 days', ordered_at, '2025-01-06') AS "time", avg(amount) AS "avg" FROM orders WHERE ordered_at >= '2025-01-06' AND ordered_at < '2025-03-03' GROUP BY 1 ORDER BY 1

--# Gaps filled by generate_series
--> free
SET noisegate.rows_per_unit = 5
--> answer
SELECT s.day AS "time", coalesce(n.orders, 0) AS orders FROM generate_series('2025-03-01'::timestamp, '2025-03-07'::timestamp, '1 day') AS s(day) LEFT JOIN (SELECT date_trunc('day', ordered_at) AS day, count(*) AS orders FROM orders WHERE ordered_at >= '2025-03-01' AND ordered_at < '2025-03-08' GROUP BY 1) AS n USING (day) ORDER BY 1

--# A gauge of a percentile
--> answer, 1 row, apart
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY amount) AS median FROM orders

--# A panel of logs is rows: refused
--> refused 42501: LIMIT and OFFSET would select
SELECT ordered_at AS "time", status AS message FROM orders WHERE ordered_at BETWEEN '2025-03-01T00:00:00Z' AND '2025-03-14T23:59:59Z' ORDER BY ordered_at DESC LIMIT 1000

--# A variable of the dashboard: the values of a column, and of a public table
--> free, 9 rows
SELECT DISTINCT city FROM customers ORDER BY city
--> free, 6 rows, same
SELECT DISTINCT category FROM products ORDER BY 1

--# The builder's list of tables and columns
--> free
select quote_ident(table_name) as "table" from information_schema.tables where quote_ident(table_schema) not in ('information_schema', 'pg_catalog', '_timescaledb_cache', '_timescaledb_catalog', '_timescaledb_internal', '_timescaledb_config', 'timescaledb_information', 'timescaledb_experimental') and table_type = 'BASE TABLE' and quote_ident(table_schema) in (SELECT CASE WHEN trim(s[i]) = '"$user"' THEN user ELSE trim(s[i]) END FROM generate_series(array_lower(string_to_array(current_setting('search_path'),','),1), array_upper(string_to_array(current_setting('search_path'),','),1)) as i, string_to_array(current_setting('search_path'),',') s) order by 1
--= customers
--= order_items
--= orders
--= products
--> free, 8 rows
select quote_ident(column_name) as "column", data_type as "type" from information_schema.columns where quote_ident(table_name) = 'orders'
