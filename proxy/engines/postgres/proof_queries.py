"""Queries by which proofs hold in the snapshot of a statement: what they rest on is as it was, and planned by no more.

They run with pg_catalog alone.
"""

from collections.abc import Sequence

from proxy.engines.postgres.catalog_queries import FIRST_ADDED, FOREIGN, HAS_CHILDREN, OURS, OUTDATED
from rules.kernel.expressions import quoted_name, quoted_text

# Any change of what proofs rest on gives its catalog row a new xmin, but for flags of an index, which PostgreSQL 13
# overwrites in place. A label more is a row more by a key with an enum. Constraints of domains belong to no table,
# nor does what was added to PostgreSQL's own casts, operators and functions.
FINGERPRINTS = f"""
SELECT c.oid, n.nspname, c.relname, md5(concat_ws(' ', c.oid, c.relkind, c.relrowsecurity, {HAS_CHILDREN}, {FOREIGN},
    (SELECT string_agg(e.oid || ':' || e.xmin::text, ',' ORDER BY e.oid) FROM pg_enum e),
    (SELECT string_agg(t.oid || ':' || t.xmin::text, ',' ORDER BY t.oid) FROM pg_type t WHERE t.typtype = 'e'),
    (SELECT string_agg(k.oid::text, ',' ORDER BY k.oid) FROM pg_cast k JOIN pg_type t ON t.oid = k.castsource
     WHERE t.typtype = 'e'),
    (SELECT string_agg(o.oid::text, ',' ORDER BY o.oid) FROM pg_opclass o JOIN pg_type t ON t.oid = o.opcintype
     WHERE t.typtype = 'e'),
    (SELECT string_agg(k.oid::text, ',' ORDER BY k.oid) FROM pg_cast k
     WHERE k.oid >= {FIRST_ADDED} AND k.castsource < {FIRST_ADDED} AND k.casttarget < {FIRST_ADDED}),
    (SELECT string_agg(o.oid || ':' || o.xmin::text, ',' ORDER BY o.oid) FROM pg_operator o
     WHERE o.oid >= {FIRST_ADDED} AND o.oprnamespace = 'pg_catalog'::regnamespace),
    (SELECT string_agg(p.oid || ':' || p.xmin::text, ',' ORDER BY p.oid) FROM pg_proc p
     WHERE p.oid >= {FIRST_ADDED} AND p.pronamespace = 'pg_catalog'::regnamespace),
    (SELECT string_agg(o.oid || ':' || o.xmin::text, ',' ORDER BY o.oid)
     FROM pg_constraint o WHERE o.conrelid = 0 AND o.contypid <> 0),
    (SELECT string_agg(a.attnum || ':' || a.xmin::text, ',' ORDER BY a.attnum)
     FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0),
    (SELECT string_agg(concat_ws(':', x.indexrelid, x.xmin, x.indisvalid, x.indisready, x.indislive), ','
                       ORDER BY x.indexrelid)
     FROM pg_index x WHERE x.indrelid = c.oid),
    (SELECT string_agg(concat_ws(':', x.indexrelid, l.oid), ',' ORDER BY x.indexrelid, l.oid)
     FROM pg_index x JOIN pg_collation l ON l.oid = ANY (x.indcollation)
     WHERE x.indrelid = c.oid AND {OUTDATED}),
    (SELECT string_agg(o.oid || ':' || o.xmin::text, ',' ORDER BY o.oid)
     FROM pg_constraint o WHERE o.conrelid = c.oid),
    (SELECT string_agg(g.oid || ':' || g.xmin::text, ',' ORDER BY g.oid)
     FROM pg_trigger g WHERE g.tgrelid = c.oid),
    (SELECT string_agg(r.oid || ':' || r.xmin::text, ',' ORDER BY r.oid)
     FROM pg_rewrite r WHERE r.ev_class = c.oid),
    (SELECT string_agg(h.inhrelid::text, ',' ORDER BY h.inhrelid) FROM pg_inherits h WHERE h.inhparent = c.oid)))
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
"""

ALL_FINGERPRINTS = f"{FINGERPRINTS} WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND {OURS}"


def newer_than_snapshot(tables: str, schemas: Sequence[str]) -> str:
    """Ask whether planning saw a partition or a unique index that these tables have got since the snapshot, or others.

    Neither waits for readers, and both are seen as they are now. A partition that is attached is read, with rows that
    it had when the snapshot was taken, and these need not keep the key that was proved. By a unique index the planner
    leaves joins and GROUP BY keys out, while the snapshot has the doubles that were deleted before it was made. One
    that is not valid yet may become so at any time: CREATE INDEX CONCURRENTLY waits for no reader of a standby.

    A schema that is renamed waits for no reader of its tables either, and a name may be that of another table from then
    on: of which nothing was proved, and which has rows in the snapshot too. To rename a table waits for ours.

    regclass, regnamespace, pg_partition_tree and pg_get_indexdef see the latest catalogs, what is selected from is as
    the snapshot has it. Our lock on each index that planning looked at is held to the end. What is gone breaks nothing;
    a partition cannot come and go meanwhile, for leaving waits for readers.
    """
    named = ", ".join(
        f"{quoted_text(quoted_name(schema))}::regnamespace::oid || {quoted_text(f' {schema}')}" for schema in schemas
    )
    return f"""
WITH RECURSIVE known (oid) AS (
    SELECT unnest({tables})::oid UNION SELECT i.inhrelid FROM known k JOIN pg_inherits i ON i.inhparent = k.oid)
SELECT EXISTS (SELECT FROM unnest({tables}) AS r (oid), pg_partition_tree(r.oid) t
               WHERE t.relid NOT IN (SELECT k.oid FROM known k))
    OR EXISTS (SELECT FROM pg_locks l WHERE l.locktype = 'relation' AND l.pid = pg_backend_pid()
               AND NOT EXISTS (SELECT FROM pg_index x WHERE x.indexrelid = l.relation AND x.indisvalid)
               AND pg_get_indexdef(l.relation) LIKE 'CREATE UNIQUE %')
    OR (SELECT count(*) FROM pg_namespace n WHERE n.oid || ' ' || n.nspname = ANY (ARRAY[{named}])) < {len(schemas)}
"""
