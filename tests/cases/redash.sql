Redash: what people write by hand behind a comment that names them; LIMIT 1000 is added.

--# A comment, FILTER, a cast in short, a limit; with the comment of another job it is served again
--> answer, other rows
/* Username: ada@example.org, query_id: 17, Queue: queries, Job ID: 4f2, Query Hash: 9d1, Scheduled: False */ SELECT ordered_at::date AS day, count(*) FILTER (WHERE channel = 'web') AS web, count(*) AS orders FROM orders WHERE ordered_at >= '2025-06-01' AND ordered_at < '2025-06-08' GROUP BY 1 ORDER BY 1 LIMIT 1000

--> again, other rows
/* Username: ada@example.org, query_id: 17, Queue: queries, Job ID: 77, Query Hash: 9d1, Scheduled: True */ SELECT ordered_at::date AS day, count(*) FILTER (WHERE channel = 'web') AS web, count(*) AS orders FROM orders WHERE ordered_at >= '2025-06-01' AND ordered_at < '2025-06-08' GROUP BY 1 ORDER BY 1 LIMIT 1000

--# Months as text
--> answer
SELECT to_char(ordered_at, 'YYYY-MM') AS month, round(avg(amount), 2) AS mean FROM orders WHERE ordered_at >= '2025-01-01' GROUP BY 1 ORDER BY 1 LIMIT 1000

--# Numbers for a counter, by scalar subqueries without FROM
--> answer, 1 row
SELECT (SELECT count(*) FROM customers) AS customers, (SELECT count(*) FROM orders) AS orders

--# A cohort: when customers joined, and how many of them ordered
--> answer, other rows
WITH cohorts AS (SELECT date_trunc('year', joined_on)::date AS cohort, count(*) AS people FROM customers GROUP BY 1), active AS (SELECT date_trunc('year', c.joined_on)::date AS cohort, count(DISTINCT o.customer_id) AS buyers FROM customers c JOIN orders o ON o.customer_id = c.id GROUP BY 1) SELECT cohort, people, buyers, round(100.0 * buyers / nullif(people, 0), 1) AS percent FROM cohorts JOIN active USING (cohort) ORDER BY 1 LIMIT 1000

--# Rows
--> refused 42501: LIMIT and OFFSET would select
/* Username: ada@example.org */ SELECT * FROM customers LIMIT 1000

--# The schema browser
--> free
SELECT s.nspname AS table_schema, c.relname AS table_name, a.attname AS column_name, null AS data_type FROM pg_class c JOIN pg_namespace s ON c.relnamespace = s.oid AND s.nspname NOT IN ('pg_catalog', 'information_schema') JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped WHERE c.relkind = 'm' UNION SELECT table_schema, table_name, column_name, data_type FROM information_schema.columns WHERE table_schema NOT IN ('pg_catalog', 'information_schema')

--# An answer that is limited to nothing: the check of a query's columns
--> free, 0 rows
SELECT channel, count(*) FROM orders GROUP BY channel LIMIT 0
