Looker: dotted aliases, COALESCE around sums, a row limit on everything, pivots in four nested queries.

--# Sums by a month as text, grouped by another expression than is selected
--> answer
SELECT
    (TO_CHAR(DATE_TRUNC('month', orders."ordered_at" ), 'YYYY-MM')) AS "orders.ordered_month",
    COALESCE(SUM(orders."amount" ), 0) AS "orders.total_amount",
    COUNT(*) AS "orders.count"
FROM "public"."orders"
     AS orders
WHERE ((( orders."ordered_at" ) >= ((DATE_TRUNC('month', TIMESTAMP '2025-01-01 00:00'))) AND ( orders."ordered_at" ) < (((DATE_TRUNC('month', TIMESTAMP '2025-01-01 00:00') + INTERVAL '6 month')))))
GROUP BY
    (DATE_TRUNC('month', orders."ordered_at" ))
ORDER BY
    1 DESC
FETCH NEXT 500 ROWS ONLY

--# Bounds as scalar subqueries
--> answer
SELECT COUNT(*) AS "orders.count" FROM "public"."orders" AS orders WHERE ((( orders."ordered_at" ) >= ((SELECT TIMESTAMP '2025-01-01')) AND ( orders."ordered_at" ) < ((SELECT (TIMESTAMP '2025-01-01' + INTERVAL '6 month')))))

--# A date, with a limit
--> answer, 5 rows, apart
SELECT (DATE(orders."ordered_at" )) AS "orders.ordered_date", AVG(orders."amount" ) AS "orders.average_amount" FROM "public"."orders" AS orders WHERE orders."ordered_at" >= '2025-03-01' AND orders."ordered_at" < '2025-03-06' GROUP BY 1 ORDER BY 1 DESC LIMIT 500

--# Drill fields are grouped by the primary key: rows
--> refused 42501: these groups would show single units
SELECT customers."id" AS "customers.id", customers."city" AS "customers.city", COUNT(*) AS "orders.count" FROM "public"."orders" AS orders LEFT JOIN "public"."customers" AS customers ON orders."customer_id" = customers."id" GROUP BY 1, 2 ORDER BY 3 DESC LIMIT 500

--# A symmetric aggregate is not answered; a hint says what is
--> refused 0A000
SELECT customers."city" AS "customers.city", COALESCE(COALESCE(CAST((SUM(DISTINCT (CAST(FLOOR(COALESCE(orders."amount" , 0)*(1000000*1.0)) AS DECIMAL(65,0))) + ('x' || MD5(orders."id" ::varchar))::bit(64)::bigint::DECIMAL(65)) - SUM(DISTINCT ('x' || MD5(orders."id" ::varchar))::bit(64)::bigint::DECIMAL(65))) AS DOUBLE PRECISION) / CAST((1000000*1.0) AS DOUBLE PRECISION), 0), 0) AS "orders.total_amount" FROM "public"."orders" AS orders LEFT JOIN "public"."customers" AS customers ON orders."customer_id" = customers."id" GROUP BY 1 ORDER BY 2 DESC LIMIT 500

--# A pivot: ranks over released groups, four queries deep
--> answer, other rows
SELECT * FROM (
SELECT *, DENSE_RANK() OVER (ORDER BY z___min_rank) as z___pivot_row_rank, RANK() OVER (PARTITION BY z__pivot_col_rank ORDER BY z___min_rank) as z__is_highest_ranked_cell FROM (
SELECT *, MIN(z___rank) OVER (PARTITION BY "orders.status") as z___min_rank FROM (
SELECT *, RANK() OVER (ORDER BY CASE WHEN z__pivot_col_rank=1 THEN (CASE WHEN "orders.count" IS NOT NULL THEN 0 ELSE 1 END) ELSE 2 END, CASE WHEN z__pivot_col_rank=1 THEN "orders.count" ELSE NULL END DESC, "orders.count" DESC, z__pivot_col_rank, "orders.status") AS z___rank FROM (
SELECT *, DENSE_RANK() OVER (ORDER BY "orders.channel" NULLS LAST) AS z__pivot_col_rank FROM (
SELECT orders."status" AS "orders.status", orders."channel" AS "orders.channel", COUNT(*) AS "orders.count" FROM "public"."orders" AS orders GROUP BY 1, 2) ww
) bb WHERE z__pivot_col_rank <= 16384
) aa
) xx
) zz
 WHERE (z__pivot_col_rank <= 50 OR z__is_highest_ranked_cell = 1) AND (z___pivot_row_rank <= 500 OR z__pivot_col_rank = 1) ORDER BY z___pivot_row_rank

--# Suggestions of a filter
--> free, 9 rows
SELECT customers."city" AS "customers.city" FROM "public"."customers" AS customers GROUP BY 1 ORDER BY 1 FETCH NEXT 1000 ROWS ONLY
--> answer, 9 rows
SELECT customers."city" AS "customers.city" FROM "public"."customers" AS customers GROUP BY 1 ORDER BY COUNT(*) DESC, 1 FETCH NEXT 1000 ROWS ONLY

--# Connection tests, and whether temporary tables can be made: no
--> free, 1 row
SELECT 1
--> refused 25006
CREATE TEMPORARY TABLE looker_pdt_test AS SELECT 1 AS one
