Superset 6.1: psycopg2, a new connection for nearly every statement, what `make superset` sees it send from its charts.

--# What comes with every connection
--> free
select pg_catalog.version()
--> free
select current_schema()
--> free
show transaction isolation level
--> free
show standard_conforming_strings
--> free
BEGIN
--> free
set search_path = "public"
--> answer
SELECT city AS city, COUNT(*) AS count FROM public.customers GROUP BY city ORDER BY count DESC LIMIT 100
--> free
ROLLBACK

--# Bounds of time are read by a format
--> answer, 12 rows
SELECT DATE_TRUNC('month', ordered_at) AS ordered_at, AVG(amount) AS "mean amount" FROM public.orders WHERE ordered_at >= TO_TIMESTAMP('2025-01-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US') AND ordered_at < TO_TIMESTAMP('2026-01-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US') GROUP BY DATE_TRUNC('month', ordered_at) ORDER BY "mean amount" DESC LIMIT 1000

--# The same span a year before repeats its bounds
--> answer, 12 rows
SELECT DATE_TRUNC('month', ordered_at) AS ordered_at, COUNT(*) AS orders FROM public.orders WHERE ordered_at >= TO_TIMESTAMP('2024-01-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US') AND ordered_at < TO_TIMESTAMP('2025-01-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US') AND ordered_at >= TO_TIMESTAMP('2024-01-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US') AND ordered_at < TO_TIMESTAMP('2025-01-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US') GROUP BY DATE_TRUNC('month', ordered_at) ORDER BY orders DESC LIMIT 50000

--# Bins of half an hour; where nothing was ordered PostgreSQL has no row
--> answer, other rows
SELECT DATE_TRUNC('hour', ordered_at) + INTERVAL '30 minutes' * FLOOR(EXTRACT(MINUTE FROM ordered_at) / 30) AS ordered_at, COUNT(*) AS orders FROM public.orders WHERE ordered_at >= TO_TIMESTAMP('2025-06-02 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US') AND ordered_at < TO_TIMESTAMP('2025-06-03 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US') GROUP BY DATE_TRUNC('hour', ordered_at) + INTERVAL '30 minutes' * FLOOR(EXTRACT(MINUTE FROM ordered_at) / 30) ORDER BY orders DESC LIMIT 10000

--# Hours, and bins of five minutes, through a night in which clocks may change
--> answer, other rows
SELECT DATE_TRUNC('hour', ordered_at) AS ordered_at, COUNT(*) AS orders FROM public.orders WHERE ordered_at >= TO_TIMESTAMP('2025-03-29 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US') AND ordered_at < TO_TIMESTAMP('2025-03-31 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US') GROUP BY DATE_TRUNC('hour', ordered_at) ORDER BY orders DESC LIMIT 10000
--> answer, other rows
SELECT DATE_TRUNC('hour', ordered_at) + INTERVAL '5 minutes' * FLOOR(EXTRACT(MINUTE FROM ordered_at) / 5) AS ordered_at, COUNT(*) AS orders FROM public.orders WHERE ordered_at >= TO_TIMESTAMP('2025-03-30 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US') AND ordered_at < TO_TIMESTAMP('2025-03-30 06:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US') GROUP BY DATE_TRUNC('hour', ordered_at) + INTERVAL '5 minutes' * FLOOR(EXTRACT(MINUTE FROM ordered_at) / 5) ORDER BY orders DESC LIMIT 10000

--# A series limit joins the best
--> answer
SELECT DATE_TRUNC('year', ordered_at) AS ordered_at, channel AS channel, COUNT(*) AS orders FROM public.orders JOIN (SELECT channel AS channel__, COUNT(*) AS mme_inner__ FROM public.orders GROUP BY channel ORDER BY sum(amount) DESC LIMIT 2) AS series_limit ON channel = channel__ GROUP BY DATE_TRUNC('year', ordered_at), channel ORDER BY ordered_at, channel LIMIT 10000

--# A series limit that keeps the others: the best, and all that are not among them
--> answer
SELECT DATE_TRUNC('year', ordered_at) AS ordered_at, CASE WHEN (series_limit.city__ IS NOT NULL) THEN city ELSE 'Others' END AS city, COUNT(*) AS orders FROM (SELECT o.*, c.city, c.segment FROM orders AS o JOIN customers AS c ON c.id = o.customer_id) AS virtual_table LEFT OUTER JOIN (SELECT city AS city__, COUNT(*) AS mme_inner__ FROM (SELECT o.*, c.city, c.segment FROM orders AS o JOIN customers AS c ON c.id = o.customer_id) AS virtual_table GROUP BY city ORDER BY COUNT(*) DESC LIMIT 2) AS series_limit ON city = city__ GROUP BY DATE_TRUNC('year', ordered_at), CASE WHEN (series_limit.city__ IS NOT NULL) THEN city ELSE 'Others' END

--# Filters of a query's dataset, and one on the aggregate; noise may lift a group of nobody over it
--> answer, other rows
SELECT city AS city, COUNT(*) AS orders FROM (SELECT o.*, c.city, c.segment FROM orders AS o JOIN customers AS c ON c.id = o.customer_id) AS virtual_table WHERE ordered_at >= TO_TIMESTAMP('2025-01-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US') AND segment IN ('consumer', 'school') AND city ILIKE '%n%' AND rating IS NOT NULL AND ((amount > 10)) GROUP BY city HAVING ((COUNT(*) > 10)) ORDER BY orders DESC LIMIT 100

--# Filters of every other kind
--> answer
SELECT DATE_TRUNC('year', joined_on) AS joined_on, COUNT(*) AS count FROM public.customers WHERE joined_on >= TO_DATE('2021-01-01', 'YYYY-MM-DD') AND joined_on < TO_DATE('2024-01-01', 'YYYY-MM-DD') AND (city NOT IN ('Graz', 'Vienna')) AND city NOT LIKE 'B%' AND segment != 'school' AND newsletter IS false AND birth_date IS NOT NULL AND id <= 19000 GROUP BY DATE_TRUNC('year', joined_on) ORDER BY joined_on DESC LIMIT 100

--# A share as a metric
--> answer, 3 rows
SELECT DATE_TRUNC('year', ordered_at) AS ordered_at, COUNT(*) AS orders, 100.0 * COUNT(*) FILTER(WHERE status = 'returned') / NULLIF(COUNT(*), 0) AS "% returned" FROM public.orders GROUP BY DATE_TRUNC('year', ordered_at) ORDER BY orders DESC LIMIT 100

--# A table in pages, and how many rows there are in all
--> answer, other rows
SELECT city AS city, segment AS segment, COUNT(*) AS count FROM public.customers GROUP BY city, segment ORDER BY count DESC LIMIT 10
--> again, 1 rows
SELECT COUNT(*) AS rowcount FROM (SELECT city AS city, segment AS segment, COUNT(*) AS count FROM public.customers GROUP BY city, segment ORDER BY count DESC LIMIT 10000) AS rowcount_qry

--# The values of a filter
--> free, same
SELECT DISTINCT city AS column_values FROM (SELECT DISTINCT city FROM public.customers) AS t ORDER BY 1 LIMIT 10000
