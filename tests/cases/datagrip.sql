DataGrip: JDBC; transaction numbers of catalog rows as marks of change, previews with ctid.

--# The connection
--> free, 1 row
select current_database() as a, current_schemas(false) as b
--> free, 1 row
select round(extract(epoch from pg_catalog.pg_postmaster_start_time() at time zone 'UTC')) as startup_time
--> free
select L.transactionid::varchar::bigint as transaction_id from pg_catalog.pg_locks L
where L.transactionid is not null order by pg_catalog.age(L.transactionid) desc limit 1
--> free, 1 row
select case when pg_catalog.pg_is_in_recovery() then null else (pg_catalog.txid_current() % (2^32)::bigint)::varchar::bigint end as current_txid

--# What there is, and whether it has changed
--> free
select N.oid::bigint as id, datname as name, D.description, datistemplate as is_template, datallowconn as allow_connections,
       pg_catalog.pg_get_userbyid(N.datdba) as "owner"
from pg_catalog.pg_database N left join pg_catalog.pg_shdescription D on N.oid = D.objoid
order by case when datname = pg_catalog.current_database() then -1::bigint else N.oid::bigint end
--> free
select N.oid::bigint as id, N.xmin as state_number, nspname as name, D.description, pg_catalog.pg_get_userbyid(N.nspowner) as "owner"
from pg_catalog.pg_namespace N left join pg_catalog.pg_description D on N.oid = D.objoid
order by case when nspname = pg_catalog.current_schema() then -1::bigint else N.oid::bigint end
--> free
--$ 2200
--$ 1
select T.relkind as table_kind, T.relname as table_name, T.oid as table_id, T.xmin as table_state_number, false as table_with_oids,
       T.reltablespace as tablespace_id, T.reloptions as options, T.relpersistence as persistence,
       (select pg_catalog.array_agg(inhparent::bigint order by inhseqno)::varchar from pg_catalog.pg_inherits where T.oid = inhrelid) as ancestors,
       T.relispartition as is_partition, pg_catalog.pg_get_partkeydef(T.oid) as partition_key,
       pg_catalog.pg_get_expr(T.relpartbound, T.oid) as partition_expression, T.relam as am_id, pg_catalog.pg_get_userbyid(T.relowner) as "owner"
from pg_catalog.pg_class T
where relnamespace = $1::oid and relkind in ('r', 'm', 'v', 'f', 'p')
  and pg_catalog.age(T.xmin) <= coalesce(nullif(greatest(pg_catalog.age($2::varchar::xid), -1), -1), 2147483647)
order by table_kind, table_id
--> free
with T as (select T.oid as table_id, T.relname as table_name from pg_catalog.pg_class T where T.relnamespace = 'public'::regnamespace and T.relkind in ('r', 'v', 'p'))
select T.table_id, C.attnum as column_position, C.attname as column_name, C.xmin as column_state_number, C.atttypmod as type_mod, C.attndims as dimensions_number,
       pg_catalog.format_type(C.atttypid, C.atttypmod) as type_spec, C.atttypid as type_id, C.attnotnull as mandatory,
       pg_catalog.pg_get_expr(D.adbin, T.table_id) as column_default_expression, not C.attislocal as column_is_inherited,
       C.attfdwoptions as options, C.attisdropped as column_is_dropped, C.attidentity as identity_kind, C.attgenerated as generated
from T join pg_catalog.pg_attribute C on T.table_id = C.attrelid left join pg_catalog.pg_attrdef D on (C.attrelid, C.attnum) = (D.adrelid, D.adnum)
where attnum > 0 order by table_id, attnum

--# A table is opened
--> refused 42501: LIMIT and OFFSET would select
SELECT t.* FROM public.orders t LIMIT 501
--> refused 42501: LIMIT and OFFSET would select
SELECT t.*, CTID FROM public.orders t LIMIT 501
--> answer
/* ApplicationName=DataGrip 2026.1 */ SELECT status, count(*) FROM public.orders t GROUP BY status ORDER BY 1
