pgAdmin: the tree, the dashboard, the query tool with its EXPLAIN, the data tab.

--# The session
--> free
SET DateStyle=ISO; SET client_min_messages=notice; SELECT set_config('bytea_output','hex',false) FROM pg_show_all_settings() WHERE name = 'bytea_output'; SET client_encoding='utf-8';
--> free, 1 row
SELECT db.oid as did, db.datname, db.datallowconn, pg_encoding_to_char(db.encoding) AS serverencoding,
    has_database_privilege(db.oid, 'CREATE') as cancreate, datistemplate
FROM pg_catalog.pg_database db WHERE db.datname = current_database()
--> free, 1 row
SELECT roles.oid as id, roles.rolname as name, roles.rolsuper as is_superuser,
    CASE WHEN roles.rolsuper THEN true ELSE roles.rolcreaterole END as can_create_role,
    CASE WHEN roles.rolsuper THEN true ELSE roles.rolcreatedb END as can_create_db,
    CASE WHEN 'pg_signal_backend'=ANY(ARRAY(WITH RECURSIVE cte AS (
        SELECT pg_roles.oid,pg_roles.rolname FROM pg_roles WHERE pg_roles.oid = roles.oid
        UNION ALL
        SELECT m.roleid, pgr.rolname FROM cte cte_1
        JOIN pg_auth_members m ON m.member = cte_1.oid JOIN pg_roles pgr ON pgr.oid = m.roleid)
    SELECT rolname FROM cte)) THEN True ELSE False END as can_signal_backend
FROM pg_catalog.pg_roles as roles WHERE rolname = current_user

--# The tree of tables
--> free
SELECT rel.oid, rel.relname AS name,
    (SELECT count(*) FROM pg_catalog.pg_trigger WHERE tgrelid=rel.oid AND tgisinternal = FALSE) AS triggercount,
    (CASE WHEN rel.relkind = 'p' THEN true ELSE false END) AS is_partitioned,
    (SELECT count(1) FROM pg_catalog.pg_inherits WHERE inhrelid=rel.oid LIMIT 1) as is_inherits, des.description
FROM pg_catalog.pg_class rel
LEFT OUTER JOIN pg_catalog.pg_description des ON (des.objoid=rel.oid AND des.objsubid=0 AND des.classoid='pg_class'::regclass)
WHERE rel.relkind IN ('r','s','t','p') AND rel.relnamespace = 'public'::regnamespace AND NOT rel.relispartition
ORDER BY rel.relname
--> free, 1 row
SELECT rel.oid, rel.relname AS name, rel.reltuples::bigint, rel.relacl, spc.spcname, pg_catalog.pg_get_userbyid(rel.relowner) AS relowner,
    pg_catalog.pg_relation_size(rel.oid) AS size, substring(pg_catalog.array_to_string(rel.reloptions, ',') FROM 'fillfactor=([0-9]*)') AS fillfactor
FROM pg_catalog.pg_class rel LEFT OUTER JOIN pg_catalog.pg_tablespace spc on spc.oid=rel.reltablespace
WHERE rel.oid = 'public.orders'::regclass::oid
--> free
SELECT DISTINCT att.attname as name, att.attnum, att.attndims, att.atttypmod, att.attnotnull, pg_catalog.format_type(ty.oid,NULL) AS typname,
    pg_catalog.format_type(ty.oid,att.atttypmod) AS displaytypname, pg_catalog.pg_get_expr(def.adbin, def.adrelid) AS defval,
    EXISTS(SELECT 1 FROM pg_catalog.pg_constraint WHERE conrelid=att.attrelid AND contype='f' AND att.attnum=ANY(conkey)) As is_fk,
    seq.*, pg_catalog.col_description(att.attrelid, att.attnum) AS description
FROM pg_catalog.pg_attribute att
JOIN pg_catalog.pg_type ty ON ty.oid=atttypid
LEFT OUTER JOIN pg_catalog.pg_attrdef def ON adrelid=att.attrelid AND adnum=att.attnum
LEFT OUTER JOIN pg_catalog.pg_depend dep ON dep.refobjid=att.attrelid AND dep.refobjsubid=att.attnum AND dep.classid='pg_class'::regclass
LEFT OUTER JOIN pg_catalog.pg_sequence seq ON dep.objid=seq.seqrelid
WHERE att.attrelid = 'public.orders'::regclass::oid AND att.attnum > 0 AND att.attisdropped IS FALSE ORDER BY att.attnum

--# The statistics of a table and the dashboard tell of the twin
--> free
SELECT st.relname AS "Table name", n_tup_ins, n_live_tup, seq_scan, heap_blks_read, pg_catalog.pg_size_pretty(pg_catalog.pg_relation_size(st.relid)) AS "Size"
FROM pg_catalog.pg_stat_all_tables st JOIN pg_catalog.pg_class cl on cl.oid=st.relid LEFT JOIN pg_catalog.pg_statio_all_tables sio ON sio.relid = st.relid
WHERE st.schemaname = 'public' ORDER BY st.relname
--> free
/*pga4dash*/
SELECT 'session_stats' AS chart_name, pg_catalog.row_to_json(t) AS chart_data
FROM (SELECT
   (SELECT count(*) FROM pg_catalog.pg_stat_activity WHERE datname = current_database()) AS "Total",
   (SELECT count(*) FROM pg_catalog.pg_stat_activity WHERE state = 'active' AND datname = current_database()) AS "Active"
) t
UNION ALL
SELECT 'tps_stats' AS chart_name, pg_catalog.row_to_json(t) AS chart_data
FROM (SELECT (SELECT sum(xact_commit) + sum(xact_rollback) FROM pg_catalog.pg_stat_database WHERE datname = current_database()) AS "Transactions") t

--# The data tab shows rows, and counting them is a question
--> refused 42501: LIMIT and OFFSET would select
SELECT * FROM public.orders
ORDER BY id ASC LIMIT 100
--> answer, apart
SELECT COUNT(*)::text FROM public.orders

--# EXPLAIN by its button
--> free, other rows
EXPLAIN (FORMAT JSON, ANALYZE FALSE, VERBOSE FALSE, COSTS TRUE, BUFFERS FALSE, TIMING FALSE, SUMMARY FALSE, SETTINGS FALSE, WAL FALSE) SELECT status, count(*) FROM orders GROUP BY status
--> refused 0A000: EXPLAIN ANALYZE
EXPLAIN (FORMAT JSON, ANALYZE TRUE, VERBOSE FALSE, COSTS TRUE, BUFFERS FALSE, TIMING TRUE, SUMMARY FALSE, SETTINGS FALSE, WAL FALSE) SELECT status, count(*) FROM orders GROUP BY status
--> free, 1 row
SELECT pg_catalog.pg_cancel_backend(0)
