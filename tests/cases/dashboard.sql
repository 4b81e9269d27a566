One dashboard, one truth: copies of one chart, totals, pages and row counts agree, and are paid once.

--# A top-N inside a statement is released once and reused by the outer query
--> answer, other rows
SELECT city, count(*) AS n FROM customers GROUP BY city ORDER BY n DESC LIMIT 3
--> again, other rows
SELECT t.city, t.n FROM (SELECT city, count(*) AS n FROM customers GROUP BY city ORDER BY n DESC LIMIT 3) AS t ORDER BY t.city

--# Pages of one table
--> answer, 4 rows, other rows
SELECT segment, newsletter, count(*) AS n FROM customers GROUP BY 1, 2 ORDER BY n DESC LIMIT 4
--> again, 2 rows, other rows
SELECT segment, newsletter, count(*) AS n FROM customers GROUP BY 1, 2 ORDER BY n DESC LIMIT 4 OFFSET 4
--> again, 1 row
SELECT count(*) FROM (SELECT segment, newsletter, count(*) AS n FROM customers GROUP BY 1, 2) AS pages

--# The same chart in other words
--> free
SET noisegate.rows_per_unit = 5
--> answer
SELECT channel, count(*) FROM orders WHERE amount >= 10 AND status = 'paid' GROUP BY channel
--> again
select o.channel as "Channel", count(1) as c from public.orders as o where o.status = 'paid' and o.amount >= 10 group by 1 order by c desc
--> again
/* refresh 17 */ SELECT "source"."channel", "source"."count" FROM (SELECT channel, count(*) AS count FROM orders WHERE (amount >= 10.0) AND (status = 'paid'::order_status) GROUP BY channel) AS "source" LIMIT 100

--# Part of the measures of an answer
--> answer, apart
SELECT status, count(*), sum(amount), avg(amount) FROM orders GROUP BY status
--> again, apart
SELECT status, avg(amount) FROM orders GROUP BY status ORDER BY 2

--# ROLLUP: cells add up to their totals
--> answer
SELECT channel, status, count(*) AS n FROM orders GROUP BY ROLLUP (channel, status)
--> again
WITH r AS (SELECT channel, status, count(*) AS n FROM orders GROUP BY ROLLUP (channel, status)) SELECT (SELECT sum(n) FROM r WHERE channel IS NOT NULL AND status IS NOT NULL) = (SELECT n FROM r WHERE channel IS NULL) AS adds_up
--= t
