ibis: one level of query for each step, every column named, aliases t0, t1 ...

--# The session
--> free
SET TIMEZONE = UTC
--> free, 4 rows
SELECT "t0"."table_name" FROM "information_schema"."tables" AS "t0" WHERE "t0"."table_catalog" = 'shop' AND "t0"."table_schema" = 'public' ORDER BY 1

--# A grouped count below a sort
--> answer
SELECT * FROM ( SELECT "t0"."city", COUNT(*) AS "n", AVG(EXTRACT(year FROM "t0"."birth_date")) AS "born" FROM "customers" AS "t0" GROUP BY 1 ) AS "t1" ORDER BY "t1"."city" ASC

--# A count over a filter
--> answer
SELECT COUNT(*) AS "CountStar(Filter)" FROM ( SELECT * FROM "orders" AS "t0" WHERE "t0"."amount" > CAST(50 AS SMALLINT) AND "t0"."ordered_at" >= TIMESTAMP '2025-01-01 00:00:00' ) AS "t1"

--# A join, an aggregate, the best of it
--> answer, other rows
SELECT * FROM ( SELECT "t4"."city", SUM("t4"."amount") AS "total" FROM ( SELECT "t2"."id", "t2"."amount", "t3"."city" FROM "orders" AS "t2" INNER JOIN "customers" AS "t3" ON "t2"."customer_id" = "t3"."id" ) AS "t4" GROUP BY 1 ) AS "t5" ORDER BY "t5"."total" DESC LIMIT 3

--# A projection that is aggregated
--> answer
SELECT "t1"."year", SUM("t1"."paid") AS "paid", COUNT(DISTINCT "t1"."customer_id") AS "buyers" FROM ( SELECT CAST(EXTRACT(year FROM "t0"."ordered_at") AS SMALLINT) AS "year", "t0"."customer_id", CASE WHEN "t0"."status" IN ('paid', 'sent', 'delivered') THEN "t0"."amount" ELSE 0 END AS "paid" FROM "orders" AS "t0" ) AS "t1" GROUP BY 1

--# Statistics
--> answer, 1 row, apart
SELECT STDDEV_SAMP("t0"."amount") AS "sd", VAR_POP("t0"."amount") AS "var", CORR("t0"."discount", CAST("t0"."amount" AS DOUBLE PRECISION)) AS "corr" FROM "orders" AS "t0"

--# Raw SQL becomes a temporary view for a moment, which tells its columns
--> free
CREATE TEMPORARY VIEW "_ibis_view" AS SELECT segment, newsletter, count(*) AS n FROM customers GROUP BY 1, 2
--> free, 3 rows
SELECT a.attname AS column_name, FORMAT_TYPE(a.atttypid, a.atttypmod) AS data_type, NOT a.attnotnull AS nullable FROM pg_catalog.pg_attribute AS a JOIN pg_catalog.pg_class AS c ON a.attrelid = c.oid JOIN pg_catalog.pg_namespace AS n ON c.relnamespace = n.oid WHERE a.attnum > 0 AND NOT a.attisdropped AND n.nspname = (SELECT nspname FROM pg_catalog.pg_namespace WHERE oid = PG_MY_TEMP_SCHEMA()) AND c.relname = '_ibis_view' ORDER BY a.attnum ASC
--> answer
SELECT * FROM "_ibis_view" ORDER BY 1, 2
--> free
DROP VIEW IF EXISTS "_ibis_view"
--> again
WITH "q" AS (SELECT segment, newsletter, count(*) AS n FROM customers GROUP BY 1, 2) SELECT * FROM "q" AS "t1" WHERE "t1"."n" > 10 ORDER BY 1, 2

--# A preview, and all rows
--> refused 42501: LIMIT and OFFSET would select
SELECT * FROM "customers" AS "t0" LIMIT 10
--> refused 42501: rows of a protected table
SELECT "t0"."id", "t0"."city" FROM "customers" AS "t0"
