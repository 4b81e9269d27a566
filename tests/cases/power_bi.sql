Power BI: Npgsql; one large query for types at connect, three levels of sub-selects in lower case, an outer NOT NULL.

--# Types are loaded in one string of several statements
--> free
SELECT version();

SELECT ns.nspname, t.oid, t.typname, t.typtype, t.typnotnull, t.elemtypoid
FROM (
    -- Arrays have typtype=b - this subquery identifies them by their typreceive and converts their typtype to a
    -- We first do this for the type (innerest-most subquery), and then for its element type
    -- This also returns the array element, range subtype and domain base type as elemtypoid
    SELECT
        typ.oid, typ.typnamespace, typ.typname, typ.typtype, typ.typrelid, typ.typnotnull, typ.relkind,
        elemtyp.oid AS elemtypoid, elemtyp.typname AS elemtypname, elemcls.relkind AS elemrelkind,
        CASE WHEN elemproc.proname='array_recv' THEN 'a' ELSE elemtyp.typtype END AS elemtyptype
    FROM (
        SELECT typ.oid, typnamespace, typname, typrelid, typnotnull, relkind, typelem AS elemoid,
            CASE WHEN proc.proname='array_recv' THEN 'a' ELSE typ.typtype END AS typtype,
            CASE
                WHEN proc.proname='array_recv' THEN typ.typelem
                WHEN typ.typtype='r' THEN rngsubtype
                WHEN typ.typtype='m' THEN (SELECT rngtypid FROM pg_range WHERE rngmultitypid = typ.oid)
                WHEN typ.typtype='d' THEN typ.typbasetype
            END AS elemtypoid
        FROM pg_type AS typ
        LEFT JOIN pg_class AS cls ON (cls.oid = typ.typrelid)
        LEFT JOIN pg_proc AS proc ON proc.oid = typ.typreceive
        LEFT JOIN pg_range ON (pg_range.rngtypid = typ.oid)
    ) AS typ
    LEFT JOIN pg_type AS elemtyp ON elemtyp.oid = elemtypoid
    LEFT JOIN pg_class AS elemcls ON (elemcls.oid = elemtyp.typrelid)
    LEFT JOIN pg_proc AS elemproc ON elemproc.oid = elemtyp.typreceive
) AS t
JOIN pg_namespace AS ns ON (ns.oid = typnamespace)
WHERE
    typtype IN ('b', 'r', 'm', 'e', 'd') OR -- Base, range, multirange, enum, domain
    (typtype = 'c' AND relkind='c') OR -- User-defined free-standing composites (not table composites) by default
    (typtype = 'p' AND typname IN ('record', 'void', 'unknown')) OR -- Some special supported pseudo-types
    (typtype = 'a' AND (  -- Array of...
        elemtyptype IN ('b', 'r', 'm', 'e', 'd') OR -- Array of base, range, multirange, enum, domain
        (elemtyptype = 'p' AND elemtypname IN ('record', 'void')) OR -- Arrays of special supported pseudo-types
        (elemtyptype = 'c' AND elemrelkind='c') -- Array of user-defined free-standing composites
    ))
ORDER BY CASE
       WHEN typtype IN ('b', 'e', 'p') THEN 0           -- First base types, enums, pseudo-types
       WHEN typtype = 'c' THEN 1                        -- Composites after (fields loaded later in 2nd pass)
       WHEN typtype = 'r' THEN 2                        -- Ranges after
       WHEN typtype = 'm' THEN 3                        -- Multiranges after
       WHEN typtype = 'd' AND elemtyptype <> 'a' THEN 4 -- Domains over non-arrays after
       WHEN typtype = 'a' THEN 5                        -- Arrays after
       WHEN typtype = 'd' AND elemtyptype = 'a' THEN 6  -- Domains over arrays last
END;

-- Load field definitions for (free-standing) composite types
SELECT typ.oid, att.attname, att.atttypid
FROM pg_type AS typ
JOIN pg_namespace AS ns ON (ns.oid = typ.typnamespace)
JOIN pg_class AS cls ON (cls.oid = typ.typrelid)
JOIN pg_attribute AS att ON (att.attrelid = typ.typrelid)
WHERE
  (typ.typtype = 'c' AND cls.relkind='c') AND
  attnum > 0 AND     -- Don't load system attributes
  NOT attisdropped
ORDER BY typ.oid, att.attnum;

-- Load enum fields
SELECT pg_type.oid, enumlabel
FROM pg_enum
JOIN pg_type ON pg_type.oid=enumtypid
ORDER BY oid, enumsortorder;

--# A connection is taken from the pool: it is reset in front of the first statement
--> free
DISCARD ALL
--> answer, 1 row
select count(*) as "a0" from "public"."orders" "_"
--> free
SET SESSION AUTHORIZATION DEFAULT;RESET ALL;CLOSE ALL;UNLISTEN *;SELECT pg_advisory_unlock_all();DISCARD SEQUENCES;DISCARD TEMP
--> again, 1 row
select count(*) as "a0" from "public"."orders" "_"

--# Tables, columns and keys from the information schema
--> free, 4 rows
select TABLE_SCHEMA, TABLE_NAME, TABLE_TYPE from INFORMATION_SCHEMA.tables where TABLE_SCHEMA not in ('information_schema', 'pg_catalog', 'noisegate') order by TABLE_SCHEMA, TABLE_NAME
--= public | customers | BASE TABLE
--= public | order_items | BASE TABLE
--= public | orders | BASE TABLE
--= public | products | BASE TABLE
--> free, same
select COLUMN_NAME, ORDINAL_POSITION, IS_NULLABLE, case when (data_type like '%unsigned%') then DATA_TYPE || ' unsigned' else DATA_TYPE end as DATA_TYPE from INFORMATION_SCHEMA.columns where TABLE_SCHEMA = 'public' and TABLE_NAME = 'orders' order by TABLE_SCHEMA, TABLE_NAME, ORDINAL_POSITION
--> free
select pkcol.COLUMN_NAME as PK_COLUMN_NAME, fkcol.TABLE_SCHEMA as FK_TABLE_SCHEMA, fkcol.TABLE_NAME as FK_TABLE_NAME, fkcol.COLUMN_NAME as FK_COLUMN_NAME, fkcol.ORDINAL_POSITION as ORDINAL, fkcon.CONSTRAINT_SCHEMA || '_' || fkcol.TABLE_NAME || '_' || 'customers' || '_' || fkcon.CONSTRAINT_NAME as FK_NAME
from (select distinct constraint_catalog, constraint_schema, unique_constraint_schema, constraint_name, unique_constraint_name from INFORMATION_SCHEMA.REFERENTIAL_CONSTRAINTS) fkcon
 inner join INFORMATION_SCHEMA.KEY_COLUMN_USAGE fkcol on fkcon.CONSTRAINT_SCHEMA = fkcol.CONSTRAINT_SCHEMA and fkcon.CONSTRAINT_NAME = fkcol.CONSTRAINT_NAME
 inner join INFORMATION_SCHEMA.KEY_COLUMN_USAGE pkcol on fkcon.UNIQUE_CONSTRAINT_SCHEMA = pkcol.CONSTRAINT_SCHEMA and fkcon.UNIQUE_CONSTRAINT_NAME = pkcol.CONSTRAINT_NAME
where pkcol.TABLE_SCHEMA = 'public' and pkcol.TABLE_NAME = 'customers' and pkcol.ORDINAL_POSITION = fkcol.ORDINAL_POSITION
order by FK_NAME, fkcol.ORDINAL_POSITION
--= id | public | orders | customer_id | 1 | public_orders_customers_orders_customer_id_fkey
--> free
select i.CONSTRAINT_SCHEMA || '_' || i.CONSTRAINT_NAME as INDEX_NAME, ii.COLUMN_NAME, ii.ORDINAL_POSITION, case when i.CONSTRAINT_TYPE = 'PRIMARY KEY' then 'Y' else 'N' end as PRIMARY_KEY
from INFORMATION_SCHEMA.table_constraints i inner join INFORMATION_SCHEMA.key_column_usage ii on i.CONSTRAINT_SCHEMA = ii.CONSTRAINT_SCHEMA and i.CONSTRAINT_NAME = ii.CONSTRAINT_NAME and i.TABLE_SCHEMA = ii.TABLE_SCHEMA and i.TABLE_NAME = ii.TABLE_NAME
where i.TABLE_SCHEMA = 'public' and i.TABLE_NAME = 'order_items' and i.CONSTRAINT_TYPE in ('PRIMARY KEY', 'UNIQUE')
order by 1, ii.TABLE_SCHEMA, ii.TABLE_NAME, ii.ORDINAL_POSITION
--= public_order_items_pkey | order_id | 1 | Y
--= public_order_items_pkey | product_id | 2 | Y

--# The preview of Power Query is refused with a hint
--> refused 42501: LIMIT and OFFSET would select
select "$Table"."id" as "id", "$Table"."city" as "city" from "public"."customers" "$Table" limit 1000

--# Import mode reads whole tables: refused
--> refused 42501: rows of a protected table
select "$Table"."id" as "id", "$Table"."city" as "city" from "public"."customers" "$Table"

--# A chart of direct query
--> answer, other rows
select "_"."c6", "_"."a0"
from
(
    select "rows"."channel" as "c6", sum("rows"."amount") as "a0"
    from
    (
        select "$Table"."id" as "id", "$Table"."channel" as "channel", "$Table"."amount" as "amount"
        from "public"."orders" "$Table"
    ) "rows"
    group by "channel"
) "_"
where not "_"."a0" is null
limit 1000001

--# Several measures, one of them a count of distinct customers that knows of NULL
--> answer
select "rows"."channel" as "channel", count(distinct("rows"."customer_id")) + max(case when "rows"."customer_id" is null then 1 else 0 end) as "a0", sum(cast("rows"."amount" as decimal)) as "a1"
from ( select "customer_id", "channel", "amount" from "public"."orders" "$Table" where "ordered_at" >= timestamp '2025-01-01 00:00:00' and "ordered_at" < timestamp '2026-01-01 00:00:00' ) "rows"
group by "channel"

--# A text that holds another, by strpos
--> answer
select count(1) as "a0" from "public"."customers" "_" where strpos((case when "_"."city" is not null then "_"."city" else '' end), 'er') > 0

--# A joined chart
--> answer, 9 rows, other rows
select "basetable0"."c2" as "c2", "basetable0"."a0" as "a0"
from (
  select "t1"."city" as "c2", sum("t0"."amount") as "a0"
  from ("public"."orders" as "t0" left outer join "public"."customers" as "t1" on ("t0"."customer_id" = "t1"."id"))
  group by "t1"."city"
) "basetable0"
where not "basetable0"."a0" is null
limit 1000001

--# A month as text
--> answer
select left(cast(extract(month from "ordered_at") as varchar), 4000) as "month", count(*) as "a0" from "public"."orders" group by left(cast(extract(month from "ordered_at") as varchar), 4000)
