Cube: flat statements with aliases without AS, GROUP BY by number, parameters as text, a limit on everything.

--# A time dimension in a time zone
--> answer
--$ 2025-01-01T00:00:00.000Z
--$ 2025-06-30T23:59:59.999Z
SELECT (date_trunc('month', ("orders".ordered_at::timestamptz AT TIME ZONE 'UTC'))) "orders__ordered_at_month", count(*) "orders__count" FROM public.orders AS "orders" WHERE ("orders".ordered_at >= $1::timestamptz AND "orders".ordered_at <= $2::timestamptz) GROUP BY 1 ORDER BY 1 ASC LIMIT 10000

--# Not this value, or NULL; a text that contains another
--> answer
--$ Berlin
SELECT "customers".city "customers__city", count(*) "customers__count" FROM public.customers AS "customers" WHERE ("customers".city <> $1 OR "customers".city IS NULL) GROUP BY 1 ORDER BY 2 DESC LIMIT 10000
--> answer
--$ er
SELECT count(*) "customers__count" FROM public.customers AS "customers" WHERE ("customers".city ILIKE '%' || $1 || '%') LIMIT 10000

--# A measure's filter by a parameter that comes as text
--> answer, other rows
--$ 1500
SELECT "customers".city "customers__city", count("customers".id) "customers__count" FROM public.customers AS "customers" GROUP BY 1 HAVING (count("customers".id) > $1) ORDER BY 2 DESC LIMIT 10000

--# Several measures over a join
--> answer
SELECT "orders".channel "orders__channel", sum("orders".amount) "orders__amount", avg("orders".amount) "orders__mean", count(distinct "orders".customer_id) "orders__buyers" FROM public.orders AS "orders" LEFT JOIN public.customers AS "customers" ON "orders".customer_id = "customers".id GROUP BY 1 ORDER BY 2 DESC LIMIT 10000

--# A rolling window by a date series
--> answer, other rows
SELECT q."day", sum(q.n) OVER (ORDER BY q."day" ROWS BETWEEN 6 PRECEDING AND CURRENT ROW) "orders__rolling" FROM (SELECT date_trunc('day', "orders".ordered_at) "day", count(*) n FROM public.orders AS "orders" WHERE "orders".ordered_at >= '2025-05-01' AND "orders".ordered_at < '2025-06-01' GROUP BY 1) AS q ORDER BY 1

--# Two facts joined on null-safe keys
--> answer
SELECT q_0."channel", "orders__count", "orders__amount" FROM (SELECT "orders".channel::text "channel", count(*) "orders__count" FROM public.orders AS "orders" GROUP BY 1) AS q_0 INNER JOIN (SELECT "orders".channel::text "channel", sum("orders".amount) "orders__amount" FROM public.orders AS "orders" GROUP BY 1) AS q_1 ON (q_0."channel" = q_1."channel" OR (q_0."channel" IS NULL AND q_1."channel" IS NULL)) ORDER BY 2 DESC LIMIT 10000

--# How many orders a customer has, as a dimension
--> answer, other rows
SELECT "per_customer".n "orders__per_customer", count(*) "customers__count" FROM (SELECT customer_id, least(count(*), 10) n FROM public.orders GROUP BY customer_id) AS "per_customer" GROUP BY 1 ORDER BY 1 LIMIT 10000

--# Ungrouped queries are rows
--> refused 42501: LIMIT and OFFSET would select
SELECT "orders".id "orders__id", "orders".amount "orders__amount" FROM public.orders AS "orders" ORDER BY 1 LIMIT 10000

--# What the driver checks and reads of the schema
--> free, 1 row
SELECT $1::int AS number
--$ 1
--> free, 22 rows
SELECT columns.column_name as "column_name", columns.table_name as "table_name", columns.table_schema as "table_schema", columns.data_type as "data_type" FROM information_schema.columns WHERE columns.table_schema NOT IN ('pg_catalog', 'information_schema', 'mysql', 'performance_schema', 'sys', 'INFORMATION_SCHEMA', 'noisegate')
