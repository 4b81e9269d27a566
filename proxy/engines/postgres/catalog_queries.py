"""Queries of PostgreSQL's catalogs, for servers 13 to 18. No table and no statistic is read.

Every query starts with the OID of what a row belongs to; the rest are the fields of a dataclass of `rules.catalog`, in
their order. They run with pg_catalog alone, so that PostgreSQL qualifies whatever else it prints.
"""

DATABASE = """
SELECT current_database(), current_setting('server_version_num'), getdatabaseencoding(),
       r.rolsuper OR r.rolbypassrls
FROM pg_roles r WHERE r.rolname = current_user
"""


def locale(version: int) -> str:
    """By what the database sorts texts."""
    provider = "datlocprovider::text" if version >= 150000 else "'c'"
    name = "datlocale" if version >= 170000 else "daticulocale" if version >= 150000 else "NULL"
    return f"""
SELECT {provider}, datcollate, datctype, coalesce({name}, '') FROM pg_database WHERE datname = current_database()
"""


# A new connection is asked these, with whatever search_path it has: so they qualify what they name.
SHOWS_IDENTIFIER = "SELECT pg_catalog.has_function_privilege('pg_catalog.pg_control_system()', 'EXECUTE')"

SYSTEM_IDENTIFIER = "SELECT system_identifier::pg_catalog.text FROM pg_catalog.pg_control_system()"

DATABASE_OID = """
SELECT oid::pg_catalog.text FROM pg_catalog.pg_database
WHERE datname OPERATOR(pg_catalog.=) pg_catalog.current_database()
"""

OURS = "n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname !~ '^pg_(toast|temp)'"

SCHEMAS = f"""
SELECT n.nspname, obj_description(n.oid, 'pg_namespace')
FROM pg_namespace n WHERE {OURS} ORDER BY 1
"""

# Citus gives everybody SELECT on its catalogs.
IS_CITUS = """SELECT coalesce(has_table_privilege(to_regclass('pg_catalog.pg_dist_partition'), 'SELECT'), false)"""
DISTRIBUTIONS = """
SELECT p.logicalrelid::oid, p.partmethod::text, p.repmodel::text, a.attname::text, p.colocationid
FROM pg_catalog.pg_dist_partition p LEFT JOIN pg_attribute a
    ON a.attrelid = p.logicalrelid AND a.attnum = substring(p.partkey FROM ':varattno ([0-9]+)')::int2
"""


def setting_of_database(name: str) -> str:
    """Of ALTER DATABASE … SET, as PostgreSQL keeps it."""
    return f"""
SELECT substr(setting, length('{name}=') + 1)
FROM pg_db_role_setting AS s JOIN pg_database AS d ON d.oid = s.setdatabase, unnest(s.setconfig) AS setting
WHERE d.datname = current_database() AND s.setrole = 0 AND starts_with(setting, '{name}=')
"""


EXTENSIONS = "SELECT extname FROM pg_extension ORDER BY 1"

TIME_ZONES = "SELECT name FROM pg_timezone_names"  # by operating system and release: our own machine may have others

FIRST_ADDED = 16_384  # OIDs below are of what PostgreSQL itself has

TYPES = f"""
SELECT t.oid, n.nspname, t.typname, t.typtype::text, t.typcategory::text, t.typelem, t.typbasetype, t.typtypmod,
       t.typcollation, x.extname, coalesce(e.labels, '{{}}'),
       t.typnotnull, t.typdefault, obj_description(t.oid, 'pg_type'), format_type(t.typbasetype, t.typtypmod),
       ARRAY(SELECT format('%s by %s', format_type(k.casttarget, NULL), k.castfunc::regproc)
             FROM pg_cast k WHERE k.castsource = t.oid AND k.castmethod = 'f' AND t.oid >= {FIRST_ADDED}
             UNION SELECT format('order by %s', o.opcname)
             FROM pg_opclass o WHERE o.opcintype = t.oid AND o.opcdefault AND t.typtype = 'e'
             UNION SELECT 'pg_catalog.' || o.oid::regoperator FROM pg_operator o
             WHERE t.oid IN (o.oprleft, o.oprright) AND t.typtype = 'e' AND o.oprnamespace = 'pg_catalog'::regnamespace
             UNION SELECT 'pg_catalog.' || f.oid::regprocedure FROM pg_proc f
             WHERE t.oid = ANY (f.proargtypes) AND t.typtype = 'e' AND f.pronamespace = 'pg_catalog'::regnamespace
             ORDER BY 1),
       EXISTS (SELECT FROM pg_cast k WHERE k.castsource = t.oid AND k.castcontext = 'i' AND t.typtype = 'e')
FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace
LEFT JOIN (SELECT enumtypid, array_agg(enumlabel::text ORDER BY enumsortorder) AS labels FROM pg_enum GROUP BY 1) e
       ON e.enumtypid = t.oid
LEFT JOIN pg_depend d ON d.classid = 'pg_type'::regclass AND d.objid = t.oid AND d.deptype = 'e'
LEFT JOIN pg_extension x ON d.refclassid = 'pg_extension'::regclass AND x.oid = d.refobjid
ORDER BY n.nspname, t.typname
"""

COLLATIONS = """
SELECT n.nspname, c.collname, c.collisdeterministic
FROM pg_collation c JOIN pg_namespace n ON n.oid = c.collnamespace
WHERE c.collname <> 'default'
  AND c.collencoding IN (-1, (SELECT encoding FROM pg_database WHERE datname = current_database()))
GROUP BY 1, 2, 3 ORDER BY 1, 2
"""


# A body of SQL that is kept as text. From 14 on PostgreSQL's own functions have none, but those of any type.
IS_TEXT = """to_jsonb(f) -> 'prosqlbody' = 'null'
       AND NOT f.proargtypes::oid[] && ARRAY['anyelement'::regtype, 'anynonarray'::regtype]::oid[]"""

# By any of them a text of ours could get another meaning, and fail on a row: PostgreSQL takes a cast of pg_cast before
# its conversion of texts, an implicit one before any that is not, and a function of the very types before any other.
# A cast WITH INOUT that is asked for says what PostgreSQL does without it.
OVERRIDES = f"""
SELECT format('the cast (%s AS %s)', k.castsource::regtype, k.casttarget::regtype)
FROM pg_cast k
WHERE k.oid >= {FIRST_ADDED} AND k.castsource < {FIRST_ADDED} AND k.casttarget < {FIRST_ADDED}
  AND (k.castmethod <> 'i' OR k.castcontext = 'i')
UNION ALL SELECT 'the operator pg_catalog.' || o.oid::regoperator
FROM pg_operator o
WHERE o.oid >= {FIRST_ADDED} AND o.oprnamespace = 'pg_catalog'::regnamespace
  AND o.oprleft < {FIRST_ADDED} AND o.oprright < {FIRST_ADDED}
  AND EXISTS (SELECT FROM pg_operator p WHERE p.oprname = o.oprname AND p.oid < {FIRST_ADDED})
UNION ALL SELECT 'the function pg_catalog.' || f.oid::regprocedure
FROM pg_proc f
WHERE f.oid >= {FIRST_ADDED} AND f.pronamespace = 'pg_catalog'::regnamespace
  AND {FIRST_ADDED} > ALL (f.proargtypes::oid[])
  AND EXISTS (SELECT FROM pg_proc p WHERE p.proname = f.proname AND p.oid < {FIRST_ADDED})
UNION ALL SELECT 'the function pg_catalog.' || f.oid::regprocedure
FROM pg_proc f JOIN pg_language l ON l.oid = f.prolang
WHERE f.oid < {FIRST_ADDED} AND f.pronamespace = 'pg_catalog'::regnamespace
  AND (l.lanname NOT IN ('internal', 'c', 'sql') OR l.lanname = 'sql' AND {IS_TEXT})
ORDER BY 1
"""

# Rows of which our constraints say nothing: those of inheritance children, and of partitions that are foreign tables.
HAS_CHILDREN = """(c.relkind = 'r' AND EXISTS (SELECT FROM pg_inherits i WHERE i.inhparent = c.oid)
        OR c.relkind = 'p' AND EXISTS (SELECT FROM pg_partition_tree(c.oid) t JOIN pg_class f ON f.oid = t.relid
                                       WHERE f.relkind = 'f'))"""

# What another server is asked for while rows are read: it may fail on some of them.
FOREIGN = """(c.relkind = 'f' OR c.relhassubclass AND EXISTS (
        WITH RECURSIVE below (oid) AS (
            SELECT i.inhrelid FROM pg_inherits i WHERE i.inhparent = c.oid
            UNION SELECT i.inhrelid FROM below b JOIN pg_inherits i ON i.inhparent = b.oid)
        SELECT FROM below b JOIN pg_class f ON f.oid = b.oid WHERE f.relkind = 'f'))"""

TABLES = f"""
SELECT c.oid, n.nspname, c.relname,
       CASE WHEN c.relispartition THEN 'partition' WHEN c.relkind = 'p' THEN 'partitioned'
            WHEN c.relkind = 'v' THEN 'view' WHEN c.relkind = 'm' THEN 'materialized view'
            WHEN c.relkind = 'f' THEN 'foreign table' ELSE 'table' END,
       obj_description(c.oid, 'pg_class'), {HAS_CHILDREN}, c.relrowsecurity,
       CASE WHEN c.relkind IN ('v', 'm') THEN pg_get_viewdef(c.oid) END,
       CASE WHEN c.relkind = 'p' THEN pg_get_partkeydef(c.oid) END, {FOREIGN},
       c.relpersistence = 'u' AND pg_is_in_recovery()
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND c.relpersistence <> 't' AND {OURS}
ORDER BY n.nspname, c.relname
"""


PARENTS = f"""
SELECT i.inhrelid, pn.nspname, p.relname
FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_class p ON p.oid = i.inhparent JOIN pg_namespace pn ON pn.oid = p.relnamespace
WHERE p.relkind IN ('r', 'p', 'f') AND {OURS}
ORDER BY 1, i.inhseqno
"""

# What the rewritten query of a view depends on. A function that it calls may read more, of which nothing is known.
SOURCES = f"""
SELECT DISTINCT c.oid, sn.nspname, s.relname
FROM pg_rewrite w JOIN pg_class c ON c.oid = w.ev_class JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = w.oid AND d.refclassid = 'pg_class'::regclass
JOIN pg_class s ON s.oid = d.refobjid AND s.oid <> c.oid JOIN pg_namespace sn ON sn.oid = s.relnamespace
WHERE c.relkind IN ('v', 'm') AND s.relkind IN ('r', 'p', 'v', 'm', 'f') AND {OURS}
ORDER BY 1, 2, 3
"""


def columns(version: int) -> str:
    """not_null only where it is a fact: not of a foreign table, an inheritance parent, or added NOT VALID (18)."""
    unproved = (
        """EXISTS (SELECT FROM pg_constraint o WHERE o.conrelid = c.oid AND o.contype = 'n'
                   AND o.conkey = ARRAY[a.attnum] AND NOT o.convalidated)"""
        if version >= 180000
        else "false"
    )
    return f"""
SELECT c.oid, a.attname, a.atttypid, format_type(a.atttypid, a.atttypmod), a.atttypmod, a.attnum,
       a.attnotnull AND c.relkind IN ('r', 'p') AND NOT {HAS_CHILDREN} AND NOT {unproved},
       pg_get_expr(d.adbin, d.adrelid), a.attidentity::text, a.attgenerated::text,
       CASE WHEN a.attcollation <> t.typcollation THEN quote_ident(m.nspname) || '.' || quote_ident(l.collname) END,
       coalesce(l.collisdeterministic, true), coalesce(l.collprovider = 'd', true), col_description(c.oid, a.attnum),
       {unproved} AND EXISTS (SELECT FROM pg_index x WHERE x.indrelid = c.oid AND x.indisunique
                              AND a.attnum = ANY (x.indkey))
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
JOIN pg_type t ON t.oid = a.atttypid
LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
LEFT JOIN pg_collation l ON l.oid = a.attcollation
LEFT JOIN pg_namespace m ON m.oid = l.collnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND {OURS}
ORDER BY c.oid, a.attnum
"""


# A key proves only what its own operators compare: the type's default equality, under the column's collation. Where a
# type has an operator class of its own, that of another type with its bytes (text_ops for citext) has another equality.
# A DEFERRABLE key is held by a trigger, which session_replication_role = replica, as logical replication has it, and
# DISABLE TRIGGER ALL switch off: doubles stay, and the index is valid all the same.
BASE_TYPE = """(WITH RECURSIVE under (oid, kind, below) AS (
            SELECT t.oid, t.typtype, t.typbasetype FROM pg_type t WHERE t.oid = a.atttypid
            UNION ALL SELECT t.oid, t.typtype, t.typbasetype FROM under u JOIN pg_type t ON t.oid = u.below
            WHERE u.kind = 'd')
        SELECT u.oid FROM under u WHERE u.kind <> 'd')"""
# The server sorts texts in another order than when an index was made: by a newer libc or ICU, or on a standby with
# another one. It finds some entries no more, so it takes a second row with the same key. The database's own version is
# a column since PostgreSQL 15.
OUTDATED = """coalesce(pg_collation_actual_version(l.oid) <> CASE WHEN l.collprovider = 'd'
        THEN (SELECT to_jsonb(d) ->> 'datcollversion' FROM pg_database d WHERE d.datname = current_database())
        ELSE l.collversion END, false)"""
KEYS = f"""
SELECT c.oid, ic.relname, k.names, x.indisprimary, o.oid IS NOT NULL,
       x.indisvalid AND x.indisready AND x.indislive AND x.indimmediate AND x.indpred IS NULL AND k.by_default
FROM pg_index x
JOIN pg_class c ON c.oid = x.indrelid JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_class ic ON ic.oid = x.indexrelid JOIN pg_am m ON m.oid = ic.relam
LEFT JOIN pg_constraint o ON o.conindid = x.indexrelid AND o.contype IN ('p', 'u')
CROSS JOIN LATERAL (
    SELECT array_agg(a.attname::text ORDER BY i) AS names, count(*) = count(a.attname) AS plain,
           bool_and(p.opcdefault AND x.indcollation[i] = a.attcollation AND coalesce(l.collisdeterministic, true)
                    AND NOT {OUTDATED}
                    AND NOT EXISTS (SELECT FROM pg_opclass o WHERE o.opcmethod = p.opcmethod AND o.opcdefault
                                    AND o.opcintype = {BASE_TYPE} AND o.oid <> p.oid)) AS by_default
    FROM generate_series(0, x.indnkeyatts - 1) AS i
    LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = x.indkey[i]
    LEFT JOIN pg_opclass p ON p.oid = x.indclass[i]
    LEFT JOIN pg_collation l ON l.oid = x.indcollation[i]
) AS k
WHERE x.indisunique AND NOT x.indisexclusion AND m.amname = 'btree' AND k.plain AND {OURS}
ORDER BY c.oid, x.indisprimary DESC, ic.relname
"""

UNFINISHED = f"""
SELECT c.oid, ic.relname
FROM pg_index x
JOIN pg_class c ON c.oid = x.indrelid JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_class ic ON ic.oid = x.indexrelid
WHERE x.indisunique AND NOT x.indisvalid AND {OURS}
ORDER BY c.oid, ic.relname
"""

OUTDATED_INDEXES = f"""
SELECT c.oid, ic.relname
FROM pg_index x
JOIN pg_class c ON c.oid = x.indrelid JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_class ic ON ic.oid = x.indexrelid
WHERE {OURS} AND EXISTS (SELECT FROM pg_collation l WHERE l.oid = ANY (x.indcollation) AND {OUTDATED})
ORDER BY c.oid, ic.relname
"""

# Whatever an expression or a WHERE takes a value from is in the printed tree: a constant has the OID of its type there.
INDEXES = f"""
SELECT c.oid, ic.relname, pg_get_indexdef(x.indexrelid),
       (SELECT coalesce(array_agg(DISTINCT a.attname::text), '{{}}') FROM pg_attribute a WHERE a.attrelid = c.oid
        AND a.attnum IN (SELECT d.refobjsubid FROM pg_depend d
                         WHERE d.classid = 'pg_class'::regclass AND d.objid = x.indexrelid
                         AND d.refclassid = 'pg_class'::regclass AND d.refobjid = c.oid)),
       EXISTS (SELECT FROM regexp_matches(concat(x.indexprs, x.indpred), ':consttype ([0-9]+)', 'g') AS f (found)
               JOIN pg_type t ON t.oid = f.found[1]::oid WHERE t.typtype <> 'e' AND t.typname <> 'bool')
FROM pg_index x
JOIN pg_class c ON c.oid = x.indrelid JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_class ic ON ic.oid = x.indexrelid
WHERE x.indisvalid AND x.indislive AND c.relkind IN ('r', 'p', 'm') AND c.relpersistence <> 't' AND {OURS}
  AND NOT EXISTS (SELECT FROM pg_constraint o WHERE o.conindid = x.indexrelid AND o.contype IN ('p', 'u', 'x'))
ORDER BY c.oid, ic.relname
"""


def foreign_keys(version: int) -> str:
    """Those copied to partitions are left out; one whose triggers are switched off proves nothing."""
    enforced = "o.conenforced AND NOT o.conperiod" if version >= 180000 else "true"
    return f"""
SELECT c.oid, o.conname, {_names("o.conkey", "c.oid")}, fn.nspname, f.relname, {_names("o.confkey", "f.oid")},
       o.convalidated AND {enforced} AND c.relkind IN ('r', 'p') AND NOT {HAS_CHILDREN} AND NOT EXISTS (
           SELECT FROM pg_trigger g WHERE g.tgconstraint = o.oid AND g.tgenabled NOT IN ('O', 'A')),
       pg_get_constraintdef(o.oid)
FROM pg_constraint o
JOIN pg_class c ON c.oid = o.conrelid JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_class f ON f.oid = o.confrelid JOIN pg_namespace fn ON fn.oid = f.relnamespace
WHERE o.contype = 'f' AND o.conparentid = 0 AND {OURS}
ORDER BY c.oid, o.conname
"""


def checks(version: int) -> str:
    """Checks of tables, then of domains: the first column is the table's or the domain's OID."""
    enforced = "o.conenforced" if version >= 180000 else "true"
    return f"""
SELECT coalesce(c.oid, o.contypid), o.conname, pg_get_constraintdef(o.oid),
       coalesce({_names("o.conkey", "c.oid")}, '{{}}'),
       o.convalidated AND {enforced} AND coalesce(c.relkind IN ('r', 'p'), true)
       AND NOT (o.connoinherit AND coalesce({HAS_CHILDREN}, false))
FROM pg_constraint o JOIN pg_namespace n ON n.oid = o.connamespace
LEFT JOIN pg_class c ON c.oid = o.conrelid
WHERE o.contype = 'c' AND {OURS}
ORDER BY 1, o.conname
"""


def routines(version: int) -> str:
    """Functions and procedures that no extension brings, as they were made; texts of those that may compute."""
    body = "coalesce(pg_get_function_sqlbody(p.oid), p.prosrc)" if version >= 140000 else "p.prosrc"
    computes = """l.lanname = 'sql' AND p.prokind = 'f' AND p.provolatile = 'i' AND NOT p.prosecdef
        AND p.proconfig IS NULL"""
    return f"""
SELECT n.nspname, p.proname, CASE p.prokind WHEN 'p' THEN 'procedure' ELSE 'function' END,
       coalesce((SELECT array_agg(format_type(a.type, NULL) ORDER BY a.place)
                 FROM unnest(p.proargtypes) WITH ORDINALITY AS a (type, place)), '{{}}'),
       CASE WHEN p.proretset THEN 'SETOF ' ELSE '' END || format_type(p.prorettype, NULL),
       CASE WHEN {computes} THEN pg_get_functiondef(p.oid) ELSE '' END, CASE WHEN {computes} THEN {body} ELSE '' END,
       EXISTS (SELECT FROM pg_proc o WHERE o.proname = p.proname AND o.oid <> p.oid)
FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace JOIN pg_language l ON l.oid = p.prolang
WHERE p.prokind IN ('f', 'p', 'w') AND {OURS} AND NOT EXISTS (
    SELECT FROM pg_depend d WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e')
ORDER BY p.oid
"""


def _names(numbers: str, table: str) -> str:
    return f"""(SELECT array_agg(a.attname::text ORDER BY i.place)
        FROM unnest({numbers}) WITH ORDINALITY AS i (number, place)
        JOIN pg_attribute a ON a.attrelid = {table} AND a.attnum = i.number)"""
