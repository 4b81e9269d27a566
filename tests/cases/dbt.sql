dbt and its metrics: a JSON comment before every statement, three-part names, inner projections; models need writes.

--# A metric: a projection inside, conditions as sums
--> answer
/* {"app": "dbt", "dbt_version": "1.10.23", "profile_name": "shop", "target_name": "dev"} */
SELECT ordered_at__month, SUM(orders) AS orders FROM (SELECT DATE_TRUNC('month', orders_src.ordered_at) AS ordered_at__month, CASE WHEN orders_src.id IS NOT NULL THEN 1 ELSE 0 END AS orders FROM "shop"."public"."orders" orders_src) subq_2 GROUP BY ordered_at__month

--# Two metrics joined, with MAX as a pass-through
--> answer
SELECT COALESCE(subq_4.channel, subq_9.channel) AS channel, MAX(subq_4.amount) AS amount, MAX(subq_9.orders) AS orders FROM (SELECT channel, SUM(amount) AS amount FROM (SELECT channel, amount FROM public.orders orders_src) subq_2 GROUP BY channel) subq_4 FULL OUTER JOIN (SELECT channel, COUNT(*) AS orders FROM public.orders GROUP BY channel) subq_9 ON subq_4.channel = subq_9.channel GROUP BY COALESCE(subq_4.channel, subq_9.channel)

--# A ratio of two metrics that have no dimension
--> answer, 1 row
SELECT CAST(MAX(subq_4.web) AS DOUBLE PRECISION) / CAST(NULLIF(MAX(subq_9.orders), 0) AS DOUBLE PRECISION) AS share FROM (SELECT SUM(web) AS web FROM (SELECT CASE WHEN channel = 'web' THEN 1 ELSE 0 END AS web FROM public.orders) subq_3) subq_4 CROSS JOIN (SELECT COUNT(*) AS orders FROM public.orders) subq_9

--# dbt show adds a limit around the model
--> answer
select * from (
    select status, count(*) as orders from "shop"."public"."orders" group by status
) as model_limit_subq limit 5

--# Models write: refused, and the transaction is rolled back
--> free
BEGIN
--> refused 25006
/* {"app": "dbt", "node_id": "model.shop.daily"} */ create view "shop"."public"."daily__dbt_tmp" as (select 1 as one)
--> error 25P02: current transaction is aborted
SELECT 1
--> free
ROLLBACK

--# What dbt reads of the catalog
--> free
select distinct nspname from pg_namespace where nspname = 'public'
--= public
--> free
select 'shop' as database, tablename as name, schemaname as schema, 'table' as type from pg_tables where schemaname ilike 'public' union all select 'shop' as database, viewname as name, schemaname as schema, 'view' as type from pg_views where schemaname ilike 'public' union all select 'shop' as database, matviewname as name, schemaname as schema, 'materialized_view' as type from pg_matviews where schemaname ilike 'public' order by 2
--= shop | customers | public | table
--= shop | order_items | public | table
--= shop | orders | public | table
--= shop | products | public | table
