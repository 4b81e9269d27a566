Metabase: JDBC, a remark before every statement, three-part names, questions nested as "source".

--# A count by month
--> answer
-- Metabase:: userID: 1 queryType: MBQL queryHash: 5e1e9c2b
SELECT CAST(DATE_TRUNC('month', "public"."orders"."ordered_at") AS date) AS "ordered_at", COUNT(*) AS "count" FROM "public"."orders" GROUP BY CAST(DATE_TRUNC('month', "public"."orders"."ordered_at") AS date) ORDER BY CAST(DATE_TRUNC('month', "public"."orders"."ordered_at") AS date) ASC

--# A week begins on Sunday
--> answer
SELECT CAST((DATE_TRUNC('week', ("public"."orders"."ordered_at" + INTERVAL '1 day')) + INTERVAL '-1 day') AS date) AS "ordered_at", COUNT(*) AS "count" FROM "public"."orders" WHERE "public"."orders"."ordered_at" >= date '2025-01-01' AND "public"."orders"."ordered_at" < date '2025-04-01' GROUP BY 1 ORDER BY 1 ASC

--# The day of the week
--> answer, 7 rows
SELECT (CAST(extract(dow from "public"."orders"."ordered_at") AS integer) + 1) AS "ordered_at", SUM("public"."orders"."amount") AS "sum" FROM "public"."orders" GROUP BY (CAST(extract(dow from "public"."orders"."ordered_at") AS integer) + 1) ORDER BY 1 ASC

--# Bins; amounts above the largest of the rules are in the last one
--> answer, other rows
SELECT ((FLOOR((("public"."orders"."amount" - 0.0) / 50.0)) * 50.0) + 0.0) AS "amount", COUNT(*) AS "count" FROM "public"."orders" GROUP BY ((FLOOR((("public"."orders"."amount" - 0.0) / 50.0)) * 50.0) + 0.0) ORDER BY ((FLOOR((("public"."orders"."amount" - 0.0) / 50.0)) * 50.0) + 0.0) ASC

--# OR chains in place of IN
--> answer
SELECT COUNT(*) AS "count" FROM "public"."customers" WHERE ("public"."customers"."city" = 'Berlin' OR "public"."customers"."city" = 'Lyon' OR "public"."customers"."city" = 'Porto')

--# A value that it is not, or NULL
--> answer
SELECT COUNT(*) AS "count" FROM "public"."customers" WHERE ("public"."customers"."city" <> 'Berlin') OR ("public"."customers"."city" IS NULL)

--# A joined question, with a filter by a parameter
--> answer
--$ web
--$ 2025-01-01
SELECT "Customers"."city" AS "Customers__city", count(*) AS "count", sum("public"."orders"."amount") AS "sum" FROM "public"."orders" LEFT JOIN "public"."customers" AS "Customers" ON "public"."orders"."customer_id" = "Customers"."id" WHERE ("public"."orders"."channel" = $1) AND ("public"."orders"."ordered_at" >= $2) GROUP BY "Customers"."city" ORDER BY "count" DESC, "Customers"."city" ASC LIMIT 5

--# A nested question with a filter on the aggregate
--> answer
SELECT "source"."city" AS "city", "source"."count" AS "count" FROM (SELECT "public"."customers"."city" AS "city", COUNT(*) AS "count" FROM "public"."customers" GROUP BY "public"."customers"."city" ORDER BY "public"."customers"."city" ASC) AS "source" WHERE "source"."count" > 1500 LIMIT 1048575

--# The share of rows with a property, as Metabase writes it
--> answer
SELECT CAST(SUM(CASE WHEN "public"."orders"."channel" = 'web' THEN 1 ELSE 0.0 END) AS DOUBLE PRECISION) / NULLIF(CAST(COUNT(*) AS DOUBLE PRECISION), 0.0) AS "share" FROM "public"."orders"

--# Average and distinct customers beside each other
--> answer, 6 rows, apart
SELECT "public"."orders"."status" AS "status", AVG("public"."orders"."amount") AS "avg", COUNT(distinct "public"."orders"."customer_id") AS "count" FROM "public"."orders" GROUP BY "public"."orders"."status" ORDER BY "public"."orders"."status" ASC

--# An average of averages: the outer one is computed from what was released
--> answer, 1 row
SELECT AVG("source"."avg") AS "avg" FROM (SELECT "public"."orders"."status" AS "status", AVG("public"."orders"."amount") AS "avg" FROM "public"."orders" GROUP BY "public"."orders"."status" ORDER BY "public"."orders"."status" ASC) AS "source"

--# A cumulative sum over a released sum
--> answer
SELECT DATE_TRUNC('month', "public"."orders"."ordered_at") AS "ordered_at", SUM(SUM("public"."orders"."amount")) OVER (ORDER BY DATE_TRUNC('month', "public"."orders"."ordered_at") ASC ROWS UNBOUNDED PRECEDING) AS "sum" FROM "public"."orders" GROUP BY DATE_TRUNC('month', "public"."orders"."ordered_at") ORDER BY DATE_TRUNC('month', "public"."orders"."ordered_at") ASC

--# The month before, by LAG
--> answer
SELECT DATE_TRUNC('month', "public"."orders"."ordered_at") AS "ordered_at", SUM("public"."orders"."amount") AS "sum", LAG(SUM("public"."orders"."amount"), 1) OVER (ORDER BY DATE_TRUNC('month', "public"."orders"."ordered_at") ASC) AS "lag" FROM "public"."orders" GROUP BY DATE_TRUNC('month', "public"."orders"."ordered_at") ORDER BY DATE_TRUNC('month', "public"."orders"."ordered_at") ASC

--# A pivot by grouping sets
--> answer
SELECT "public"."orders"."channel" AS "channel", "public"."orders"."status" AS "status", GROUPING("public"."orders"."status", "public"."orders"."channel") AS "pivot-grouping", COUNT(*) AS "count" FROM "public"."orders" GROUP BY GROUPING SETS (("public"."orders"."channel", "public"."orders"."status"), ("public"."orders"."channel"), ())

--# A pivot by UNION ALL with a constant key
--> answer
SELECT * FROM (SELECT "public"."orders"."channel" AS "channel", ABS(0) AS "pivot-grouping", COUNT(*) AS "count" FROM "public"."orders" GROUP BY "public"."orders"."channel", ABS(0) UNION ALL SELECT NULL, ABS(1), COUNT(*) FROM "public"."orders") AS "pivot" ORDER BY "pivot-grouping", "channel"

--# In the last months, by the clock
--> answer, other rows
SELECT COUNT(*) AS "count" FROM "public"."orders" WHERE "public"."orders"."ordered_at" >= DATE_TRUNC('month', (NOW() + INTERVAL '-24 month')) AND "public"."orders"."ordered_at" < DATE_TRUNC('month', NOW())

--# A table is hidden from the catalog if this probe fails
--> free, 0 rows
SELECT TRUE AS "_" FROM "public"."orders" WHERE 1 <> 1 LIMIT 0

--# The scan of a table for fingerprints is refused, and the session goes on
--> refused 42501: LIMIT and OFFSET would select
SELECT "public"."orders"."id" AS "id", "public"."orders"."amount" AS "amount" FROM "public"."orders" LIMIT 10000
--> free, 1 row
SELECT 1

--# The values of a filter
--> free, 6 rows, same
SELECT "public"."orders"."status" FROM "public"."orders" GROUP BY "public"."orders"."status" ORDER BY "public"."orders"."status" ASC LIMIT 1001
--> free, 9 rows
SELECT DISTINCT "public"."customers"."city" AS "city" FROM "public"."customers" ORDER BY "public"."customers"."city" ASC LIMIT 1000

--# Which tables there are, and what may be read
--> free
SELECT "n"."nspname" AS "schema", "c"."relname" AS "name", CASE "c"."relkind" WHEN 'r' THEN 'TABLE' WHEN 'v' THEN 'VIEW' END AS "type", "d"."description" AS "description", "stat"."n_live_tup" AS "estimated_row_count" FROM "pg_catalog"."pg_class" AS "c" INNER JOIN "pg_catalog"."pg_namespace" AS "n" ON "c"."relnamespace" = "n"."oid" LEFT JOIN "pg_catalog"."pg_description" AS "d" ON ("c"."oid" = "d"."objoid") AND ("d"."objsubid" = 0) AND ("d"."classoid" = 'pg_class'::regclass) LEFT JOIN "pg_stat_user_tables" AS "stat" ON ("n"."nspname" = "stat"."schemaname") AND ("c"."relname" = "stat"."relname") WHERE ("c"."relnamespace" = "n"."oid") AND ("n"."nspname" !~ 'information_schema|pg_catalog|pg_toast|noisegate') AND ("c"."relkind" IN ('r', 'p', 'v', 'f', 'm')) ORDER BY "type" ASC, "schema" ASC, "name" ASC
--= public | customers | TABLE | Everybody who has an account. Each of them is a privacy unit. | 0
--= public | order_items | TABLE |  | 0
--= public | orders | TABLE |  | 0
--= public | products | TABLE | What we sell: nothing about people | 120
--> free
with table_privileges as (
 select NULL as role, t.schemaname as schema, t.objectname as table,
   pg_catalog.has_any_column_privilege(current_user, '"' || replace(t.schemaname, '"', '""') || '"' || '.' || '"' || replace(t.objectname, '"', '""') || '"', 'update') as update,
   pg_catalog.has_any_column_privilege(current_user, '"' || replace(t.schemaname, '"', '""') || '"' || '.' || '"' || replace(t.objectname, '"', '""') || '"', 'select') as select,
   pg_catalog.has_any_column_privilege(current_user, '"' || replace(t.schemaname, '"', '""') || '"' || '.' || '"' || replace(t.objectname, '"', '""') || '"', 'insert') as insert,
   pg_catalog.has_table_privilege(current_user, '"' || replace(t.schemaname, '"', '""') || '"' || '.' || '"' || replace(t.objectname, '"', '""') || '"', 'delete') as delete
 from (select schemaname, tablename as objectname from pg_catalog.pg_tables union select schemaname, viewname as objectname from pg_views union select schemaname, matviewname as objectname from pg_matviews) t
 where t.schemaname !~ '^pg_' and t.schemaname not in ('information_schema', 'noisegate') and pg_catalog.has_schema_privilege(current_user, t.schemaname, 'usage')
) select t.* from table_privileges t where t.select or t.update or t.insert or t.delete order by 3
--=  | public | customers | f | t | f | f
--=  | public | order_items | f | t | f | f
--=  | public | orders | f | t | f | f
--=  | public | products | f | t | f | f

--# The session as the driver leaves it
--> free
SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ UNCOMMITTED
--> free
SHOW TRANSACTION ISOLATION LEVEL
--= read uncommitted
--> free
SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY
--> answer
SELECT COUNT(*) AS "count" FROM "public"."orders"
--> free
SET extra_float_digits = 3
