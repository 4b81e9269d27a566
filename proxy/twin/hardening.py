"""Harden a database for people who may send it any SQL.

Settings of the server, rights that PUBLIC loses, and PostgreSQL's own functions that have to say something else here:
`has_table_privilege` must not tell tools that they may not read a protected table, and `pg_cancel_backend` must reach
the statement that runs on the real database. Built-in functions are called by their OID, so replacing their bodies
does nothing; they are renamed, and functions of ours take their names.
"""

from collections.abc import Iterator
from typing import Final

from proxy.twin.embedded import OWNER
from proxy.twin.own_objects import (
    create_defined,
    create_error_bars,
    create_estimates,
    create_moment,
    create_request,
    create_typical,
    create_virtual,
)
from proxy.twin.roles import hide_neighbours
from proxy.twin.steps import Step, literal, quoted
from proxy.twin.synthetic import create_registry

OURS = "noisegate"  # the schema of what analysts use
RENAMED = "noisegate_"  # before the names of PostgreSQL's own
INNER = "pg_catalog.noisegate_"  # before the names of functions that only the proxy uses: no tool lists these
CHANNEL = "pg_catalog.noisegate_channel"  # a table that no tool lists
SIGNALS = ("cancel", "terminate")


def server_settings(sessions: int) -> dict[str, str | int]:
    """A server whose data can be made again at any time, and whose log can hold nothing that a client wrote."""
    return {
        "max_connections": sessions + 20,
        "superuser_reserved_connections": 10,
        "shared_buffers": "32MB",
        "huge_pages": "off",
        "temp_file_limit": "256MB",
        "max_prepared_transactions": 0,
        "max_locks_per_transaction": 256,
        "max_worker_processes": 1,
        "max_parallel_workers": 0,
        "max_wal_senders": 0,
        "wal_level": "minimal",
        "max_wal_size": "256MB",
        "log_min_messages": "panic",
        "log_min_error_statement": "panic",
        "log_checkpoints": "off",
        "autovacuum": "on",  # temporary views come and go in the catalogs, some thousand a second
        "autovacuum_naptime": "5s",
        "autovacuum_vacuum_threshold": 1000,
        "autovacuum_vacuum_cost_delay": 0,
        "autovacuum_max_workers": 1,
        "jit": "off",
        "timezone": "UTC",
        "DateStyle": "ISO, MDY",
    }


_MOST_VIEWS: Final = 100  # of one session


def harden(database: str, channel: str) -> Iterator[Step]:
    """Everything that is done once, in a new database. `channel` is the secret name of our notifications."""
    name = quoted(database)
    yield Step(f"REVOKE ALL ON DATABASE {name} FROM PUBLIC")
    yield Step(f"GRANT CONNECT, TEMP ON DATABASE {name} TO PUBLIC")
    yield Step("REVOKE CREATE ON SCHEMA public FROM PUBLIC")
    yield Step("REVOKE USAGE ON LANGUAGE sql, plpgsql FROM PUBLIC")
    yield Step(f"CREATE SCHEMA {OURS}")
    yield Step(f"GRANT USAGE ON SCHEMA {OURS} TO PUBLIC")
    yield Step(REVOKE_FUNCTIONS)
    yield Step(RENAME_PRIVILEGES)
    yield from _statistics()
    yield from _signals(channel)
    yield from _helpers()
    yield from create_moment(INNER)
    yield from create_defined(INNER)
    yield from create_error_bars(OURS)
    yield from create_typical(OURS)
    yield from create_estimates(OURS, INNER)
    yield from create_virtual()
    yield from create_request(OURS)
    yield from create_registry()
    yield from _only_views()
    yield from hide_neighbours(RENAMED)


def close_other_databases(database: str) -> Iterator[str]:
    """Analysts have one database; run outside a transaction, in any of them."""
    for name in ("postgres", "template1"):
        if name != database:
            yield f"REVOKE CONNECT ON DATABASE {name} FROM PUBLIC"


# By name and in all overloads: locks that all sessions share, large objects, write-ahead log, signals, sequences,
# SQL given as text, snapshots, counters of the server that grow with anybody's rows. pg_advisory_unlock stays: drivers
# call it when a connection goes back to its pool.
REVOKE_FUNCTIONS = r"""
DO $$
DECLARE routine regprocedure;
BEGIN
    FOR routine IN
        SELECT p.oid FROM pg_catalog.pg_proc p
        WHERE p.pronamespace = 'pg_catalog'::regnamespace AND (
            p.proname ~ '^pg_(try_)?advisory_(xact_)?lock' OR p.proname ~ '^(lo_|loread$|lowrite$|pg_logical_|ts_stat$)'
            OR p.proname ~ '_to_xml' OR p.proname ~ '^(setval|nextval|currval|lastval|currtid2)$'
            OR (p.proname = 'ts_rewrite' AND p.pronargs = 2)
            OR p.proname ~ '^pg_(replication_|create_|drop_|copy_|export_snapshot$|notify$|log_|stat_reset|switch_wal)'
            OR p.proname ~ '^pg_(walfile_|ls_|read_|stat_file|file_|rotate_|reload_|backup_|promote)'
            OR p.proname ~ '^pg_(current_wal_|stat_get_(wal|io|slru|backend_wal|backend_io)$)'
            OR p.proname ~ '^pg_(tablespace_size$|control_checkpoint$|stat_get_(buf_|bgwriter_|checkpoint))')
    LOOP
        EXECUTE format('REVOKE EXECUTE ON ROUTINE %s FROM PUBLIC', routine);
    END LOOP;
END $$
"""

# Every has_…_privilege overload ends with the privilege's text. SELECT counts as held where REFERENCES is.
RENAME_PRIVILEGES = f"""
DO $$
DECLARE routine record;
BEGIN
    FOR routine IN
        SELECT p.oid::regprocedure AS original, p.proname AS name,
               pg_get_function_identity_arguments(p.oid) AS arguments,
               (SELECT string_agg('$' || i, ', ' ORDER BY i) FROM generate_series(1, p.pronargs - 1) AS i) AS values,
               p.pronargs AS last
        FROM pg_catalog.pg_proc p
        WHERE p.pronamespace = 'pg_catalog'::regnamespace
          AND p.proname IN ('has_table_privilege', 'has_any_column_privilege', 'has_column_privilege')
    LOOP
        EXECUTE format('ALTER FUNCTION %s RENAME TO %I', routine.original, '{RENAMED}' || routine.name);
        EXECUTE format($f$
            CREATE FUNCTION pg_catalog.%1$I(%2$s) RETURNS boolean LANGUAGE sql STABLE PARALLEL SAFE AS $s$
                SELECT pg_catalog.{RENAMED}%1$s(%3$s, $%4$s) OR pg_catalog.{RENAMED}%1$s(%3$s,
                    pg_catalog.regexp_replace($%4$s, 'select', 'references', 'gi'))
            $s$ $f$, routine.name, routine.arguments, routine.values, routine.last);
    END LOOP;
END $$
"""


def _stand_ins(chosen: str, closed: str, body: str) -> Step:
    """Functions in the place of PostgreSQL's own that are chosen. In `body`, %4$I(%5$s) calls the own one with the
    same arguments, and %6$s is what whoever may not know is told: the text that the expression `closed` makes."""
    return Step(f"""
DO $$
DECLARE routine record;
BEGIN
    FOR routine IN
        SELECT p.oid::regprocedure AS original, p.proname AS name, p.prorettype::regtype AS result,
               pg_get_function_identity_arguments(p.oid) AS arguments,
               (SELECT string_agg('$' || i, ', ' ORDER BY i) FROM generate_series(1, p.pronargs) AS i) AS values,
               {closed} AS closed
        FROM pg_catalog.pg_proc p
        WHERE p.pronamespace = 'pg_catalog'::regnamespace AND ({chosen})
    LOOP
        EXECUTE format('ALTER FUNCTION %s RENAME TO %I', routine.original, '{RENAMED}' || routine.name);
        EXECUTE format('REVOKE EXECUTE ON FUNCTION pg_catalog.%I(%s) FROM PUBLIC', '{RENAMED}' || routine.name,
            routine.arguments);
        EXECUTE format($f$
            CREATE FUNCTION pg_catalog.%1$I(%2$s) RETURNS %3$s LANGUAGE sql STABLE STRICT SECURITY DEFINER
            SET search_path = pg_catalog, pg_temp AS $s$ {body} $s$ $f$,
            routine.name, routine.arguments, routine.result, '{RENAMED}' || routine.name, routine.values,
            routine.closed);
    END LOOP;
END $$""")


def _statistics() -> Iterator[Step]:
    """Sizes and counters of a table that the session may not read, its indexes and long values included, are closed.

    An empty table has pages if a column can be long, or if it had rows; synthetic rows are for those who have paid for
    them. Of the whole database nobody learns more than of a single table: its size is that of an empty one.
    """
    yield _stand_ins(
        """p.proname IN ('pg_table_size', 'pg_total_relation_size', 'pg_relation_size', 'pg_indexes_size')
            OR p.pronargs = 1 AND p.proargtypes[0] = 'oid'::regtype AND NOT p.proretset AND p.proname ~
                '^pg_stat_get_(xact_)?(numscans|lastscan|tuples_|live_tuples|dead_tuples|mod_since|ins_since|blocks_|'
                '(last_|total_)?(auto)?(vacuum|analyze)_)'""",
        """CASE WHEN p.proname IN ('pg_total_relation_size', 'pg_indexes_size')
                    THEN '(SELECT pg_catalog.count(*) * 8192 FROM pg_catalog.pg_index AS x WHERE x.indrelid = $1)'
                    WHEN p.proname ~ '_time$|^pg_stat_get_(xact_)?last' THEN 'NULL' ELSE '0' END""",
        f"""
                SELECT CASE WHEN t.oid < 16384 OR t.relkind NOT IN ('r', 'p', 'm', 't')
                            OR pg_catalog.{RENAMED}has_table_privilege(session_user, t.oid, 'SELECT')
                       THEN pg_catalog.%4$I(%5$s) ELSE %6$s END
                FROM pg_catalog.pg_class AS c LEFT JOIN pg_catalog.pg_index AS i ON i.indexrelid = c.oid
                JOIN pg_catalog.pg_class AS t ON t.oid = coalesce(i.indrelid, c.oid) WHERE c.oid = $1""",
    )
    yield _stand_ins(
        "p.pronargs = 1 AND p.proname ~ '^pg_(database_size$|stat_get_db_(tuples_|blocks_|blk_|temp_))'",
        f"""CASE WHEN p.proname ~ '^pg_stat' THEN '0'
                    WHEN p.proargtypes[0] = 'oid'::regtype THEN 'pg_catalog.{RENAMED}pg_database_size(1::oid)'
                    ELSE 'pg_catalog.{RENAMED}pg_database_size(''template1''::name)' END""",
        f"SELECT CASE WHEN session_user = {literal(OWNER)} THEN pg_catalog.%4$I(%5$s) ELSE %6$s END",
    )


def _signals(channel: str) -> Iterator[Step]:
    """Tell the proxy who is to be cancelled. Only what the caller may do to its own sessions is told.

    Anybody may call `tell`, with any text: nothing but a signal gets through, and equal ones of a transaction once. The
    channel's name is secret, since NOTIFY needs no privilege; prosrc can be read, a table of ours cannot.
    """
    yield Step("SET LOCAL allow_system_table_mods = on")
    yield Step(f"CREATE TABLE {CHANNEL} AS SELECT {literal(channel)}::name AS channel")
    yield Step(f"REVOKE ALL ON {CHANNEL} FROM PUBLIC")
    yield Step("SET LOCAL allow_system_table_mods = off")
    yield Step(f"""
CREATE FUNCTION {INNER}tell(signal text, process integer) RETURNS void LANGUAGE sql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT pg_notify(s.channel::text, $1 || ' ' || $2)
    FROM {CHANNEL} s, pg_stat_activity a
    WHERE a.pid = $2 AND a.usename = session_user AND $1 IN ('{"', '".join(SIGNALS)}')
$$""")
    for name, arguments, values in (
        ("pg_cancel_backend", "pid integer", "$1"),
        ("pg_terminate_backend", "pid integer, timeout bigint DEFAULT 0", "$1, $2"),
    ):
        types = arguments.replace(" DEFAULT 0", "")
        yield Step(f"ALTER FUNCTION pg_catalog.{name}({types}) RENAME TO {RENAMED}{name}")
        yield Step(f"""
CREATE FUNCTION pg_catalog.{name}({arguments}) RETURNS boolean LANGUAGE sql STRICT AS $$
    SELECT {INNER}tell('{name.split("_")[1]}', $1);
    SELECT pg_catalog.{RENAMED}{name}({values})
$$""")


def _only_views() -> Iterator[Step]:
    """Of all that an analyst could make, temporary views: some, and nothing else that is temporary."""
    yield Step(f"""
CREATE FUNCTION {INNER}only_views() RETURNS event_trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF (SELECT r.rolsuper FROM pg_catalog.pg_roles AS r WHERE r.rolname = current_user) THEN
        RETURN;
    END IF;
    IF tg_tag NOT IN ('CREATE VIEW', 'DROP VIEW') THEN
        RAISE EXCEPTION 'permission denied for %', tg_tag USING ERRCODE = 'insufficient_privilege';
    END IF;
    IF tg_tag = 'CREATE VIEW' AND {_MOST_VIEWS} <= (
        SELECT count(*) FROM pg_catalog.pg_class AS c WHERE c.relnamespace = pg_catalog.pg_my_temp_schema())
    THEN
        RAISE EXCEPTION 'a session has at most {_MOST_VIEWS} temporary views' USING ERRCODE = 'program_limit_exceeded';
    END IF;
END $$""")
    yield Step(f"CREATE EVENT TRIGGER {OURS}_only_views ON ddl_command_start EXECUTE FUNCTION {INNER}only_views()")


def drop_temporary_views() -> Step:
    """Before tables change, on which they might rest."""
    return Step("""
DO $$
DECLARE view record;
BEGIN
    FOR view IN SELECT n.nspname, c.relname FROM pg_catalog.pg_class AS c
        JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace WHERE c.relkind = 'v' AND c.relpersistence = 't'
    LOOP
        EXECUTE pg_catalog.format('DROP VIEW IF EXISTS %I.%I CASCADE', view.nspname, view.relname);
    END LOOP;
END $$""")


CANON = f"""
CREATE FUNCTION {INNER}canon(value anyelement) RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET DateStyle = 'ISO, YMD' SET IntervalStyle = postgres
SET extra_float_digits = 1 SET bytea_output = hex SET TimeZone = UTC SET lc_monetary = 'C' AS $$
    SELECT CAST($1 AS text)
$$"""
PUBLIC_ROWS = f"""
CREATE FUNCTION {INNER}public_rows(relation regclass, attributes name[]) RETURNS SETOF text[] LANGUAGE plpgsql STABLE
SET DateStyle = 'ISO, YMD' SET IntervalStyle = postgres SET extra_float_digits = 1 SET TimeZone = UTC AS $$
BEGIN
    IF pg_catalog.{RENAMED}has_table_privilege(relation, 'SELECT') THEN
        RETURN QUERY EXECUTE pg_catalog.format('SELECT ARRAY[%s]::pg_catalog.text[] FROM %s', (
            SELECT pg_catalog.string_agg(pg_catalog.format('%I::pg_catalog.text', name), ', ' ORDER BY place)
            FROM pg_catalog.unnest(attributes) WITH ORDINALITY AS a(name, place)), relation);
    END IF;
END $$"""


def _helpers() -> Iterator[Step]:
    """`canon` prints a value as the real database reads it, whatever the session's styles are; `refuse` fails.

    `public_rows` reads columns of a public table as texts, if the table is open; `read_through` prints what views read,
    with literals that mean the same under all styles.
    """
    yield Step(CANON)
    yield Step(PUBLIC_ROWS)
    yield Step(f"""
CREATE FUNCTION {INNER}read_through(relation regclass) RETURNS TABLE (schema text, name text, definition text)
LANGUAGE sql STABLE SET search_path = '' SET DateStyle = 'ISO, YMD' SET IntervalStyle = postgres
SET extra_float_digits = 1 SET bytea_output = hex SET TimeZone = UTC AS $$
    WITH RECURSIVE read(oid) AS (
        SELECT relation::pg_catalog.oid
        UNION
        SELECT d.refobjid FROM read
        JOIN pg_catalog.pg_rewrite AS r ON r.ev_class = read.oid
        JOIN pg_catalog.pg_depend AS d ON d.objid = r.oid AND d.classid = 'pg_catalog.pg_rewrite'::pg_catalog.regclass
            AND d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass
    )
    SELECT n.nspname, c.relname, CASE WHEN c.relpersistence = 't' THEN pg_catalog.pg_get_viewdef(c.oid) END
    FROM read JOIN pg_catalog.pg_class AS c ON c.oid = read.oid
    JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
$$""")
    yield Step(f"""
CREATE FUNCTION {INNER}refuse() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'this statement is refused' USING ERRCODE = 'insufficient_privilege';
END $$""")
