Tableau: PostgreSQL's ODBC driver or JDBC; aliases such as "sum:amount:ok"; tries whether it can make temporary tables.

--# Whether temporary tables can be made: no, so subqueries are used
--> refused 25006
CREATE LOCAL TEMPORARY TABLE "#Tableau_5_1_Connect_CheckCreateTempTableCap" ( "COL" INTEGER ) ON COMMIT PRESERVE ROWS
--> refused 25006: cannot execute
DROP TABLE "#Tableau_5_1_Connect_CheckCreateTempTableCap"
--> refused 25006
SELECT * INTO LOCAL TEMPORARY TABLE "#Tableau_5_2_Connect_CheckSelectIntoCap" FROM (SELECT 1 AS COL) AS CHECKTEMP LIMIT 1
--> free, 1 row
SELECT 1

--# Columns of a table by a condition that is never true
--> free, 0 rows
SELECT * FROM "public"."orders" WHERE (0 = 1)
--> free, 0 rows
SELECT * FROM (SELECT "orders"."amount" AS "amount", "customers"."city" AS "city" FROM "public"."orders" "orders" INNER JOIN "public"."customers" "customers" ON ("orders"."customer_id" = "customers"."id")) "Custom SQL Query" LIMIT 0
--> free, 0 rows
SELECT "orders"."amount" AS "amount" FROM "public"."orders" "orders" WHERE (0 = 1) LIMIT 1

--# A sum by month
--> answer
SELECT DATE_TRUNC( 'MONTH', CAST("orders"."ordered_at" AS TIMESTAMP) ) AS "tmn:ordered_at:ok",
  SUM("orders"."amount") AS "sum:amount:ok"
FROM "public"."orders" "orders"
GROUP BY 1

--# A year as a number, and a text dimension that is cast
--> answer
SELECT CAST(TRUNC(EXTRACT(YEAR FROM "orders"."ordered_at")) AS INTEGER) AS "yr:ordered_at:ok",
  CAST("orders"."channel" AS TEXT) AS "channel",
  COUNT(1) AS "cnt:orders:ok", AVG(CAST("orders"."amount" AS DOUBLE PRECISION)) AS "avg:amount:ok"
FROM "public"."orders" "orders"
GROUP BY 1, 2

--# A total for the whole table, with HAVING
--> answer, 1 row
SELECT SUM("orders"."amount") AS "sum:amount:ok"
FROM "public"."orders" "orders"
HAVING (COUNT(1) > 0)

--# Filters on casts, ranges and sets
--> answer
SELECT "customers"."city" AS "city", COUNT(DISTINCT "orders"."customer_id") AS "ctd:customer_id:ok"
FROM "public"."orders" "orders"
  INNER JOIN "public"."customers" "customers" ON ("orders"."customer_id" = "customers"."id")
WHERE ((CAST("orders"."channel" AS TEXT) IN ('app', 'web')) AND ("orders"."ordered_at" >= (TIMESTAMP '2024-01-01 00:00:00.000')) AND ("orders"."ordered_at" < (TIMESTAMP '2025-01-01 00:00:00.000')) AND (NOT ("orders"."amount" IS NULL)))
GROUP BY 1
HAVING (COUNT(1) >= 10)
ORDER BY 1 ASC NULLS FIRST

--# A filter's list of values
--> free, 4 rows
SELECT CAST("orders"."channel" AS TEXT) AS "channel" FROM "public"."orders" "orders" GROUP BY 1 ORDER BY 1 ASC NULLS FIRST
--> free, 9 rows
SELECT "customers"."city" AS "city" FROM "public"."customers" "customers" GROUP BY 1 ORDER BY 1 ASC NULLS FIRST

--# The range of a date for a slider
--> answer, 1 row, other rows
SELECT MIN("orders"."ordered_at") AS "TEMP(min)", MAX("orders"."ordered_at") AS "TEMP(max)" FROM "public"."orders" "orders" HAVING (COUNT(1) > 0)

--# The best cities by their sum, joined back
--> answer, other rows
SELECT "customers"."city" AS "city", DATE_TRUNC( 'YEAR', CAST("orders"."ordered_at" AS TIMESTAMP) ) AS "tyr:ordered_at:ok", SUM("orders"."amount") AS "sum:amount:ok"
FROM "public"."orders" "orders"
  INNER JOIN "public"."customers" "customers" ON ("orders"."customer_id" = "customers"."id")
  INNER JOIN (
  SELECT "customers"."city" AS "city", SUM("orders"."amount") AS "$__alias__0"
  FROM "public"."orders" "orders" INNER JOIN "public"."customers" "customers" ON ("orders"."customer_id" = "customers"."id")
  GROUP BY 1
  ORDER BY 2 DESC NULLS LAST
  LIMIT 3
) "t0" ON (NOT ("customers"."city" IS DISTINCT FROM "t0"."city"))
GROUP BY 1, 2

--# Percent of a total, by a CROSS JOIN with one row
--> answer
SELECT "t0"."channel" AS "channel", "t0"."sum" / NULLIF("t1"."total", 0) AS "pct"
FROM (SELECT CAST("orders"."channel" AS TEXT) AS "channel", SUM("orders"."amount") AS "sum" FROM "public"."orders" "orders" GROUP BY 1) "t0"
  CROSS JOIN (SELECT SUM("orders"."amount") AS "total" FROM "public"."orders" "orders" HAVING (COUNT(1) > 0)) "t1"

--# ATTR is the smallest and the largest of a text: values of single rows
--> refused 42501: m
SELECT MIN("customers"."city") AS "TEMP(attr:city:nk)(0)", MAX("customers"."city") AS "TEMP(attr:city:nk)(1)" FROM "public"."customers" "customers" HAVING (COUNT(1) > 0)

--# View Data
--> refused 42501: LIMIT and OFFSET would select
SELECT "orders"."id" AS "id", "orders"."amount" AS "amount" FROM "public"."orders" "orders" LIMIT 10000

--# ODBC reads by a cursor that is held: transaction, cursor and first rows in one string
--> answer, other rows
BEGIN;declare "SQL_CUR0x55" cursor with hold for SELECT "orders"."channel" AS "channel", COUNT(1) AS "cnt" FROM "public"."orders" "orders" GROUP BY 1 ORDER BY 1;fetch 2 in "SQL_CUR0x55"
--> free, 2 rows
fetch 100 in "SQL_CUR0x55"
--> free
close "SQL_CUR0x55";commit
