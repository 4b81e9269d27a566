"""Nothing that an analyst sends to the twin can answer from its empty tables, harm it, or tell of other analysts."""

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import Connection, pq

from proxy.twin.twin import Twin


@pytest.fixture
def ada(twin: Twin) -> Iterator[Connection]:
    with psycopg.connect(twin.dsn("ada"), autocommit=True) as connection:
        yield connection


@pytest.fixture
def bob(twin: Twin) -> Iterator[Connection]:
    with psycopg.connect(twin.dsn("bob"), autocommit=True) as connection:
        yield connection


ROUTES = [
    "SELECT count(*) FROM orders",
    "SELECT * FROM noisegate.budget",
    "SELECT 1 FROM noisegate.ledger LIMIT 0",
    "SELECT EXISTS (SELECT FROM noisegate.columns)",
    "SELECT 1 FROM orders LIMIT 0",
    "SELECT EXISTS (SELECT FROM orders)",
    "SELECT (SELECT max(amount) FROM orders)",
    "TABLE orders",
    "SELECT orders FROM orders",
    "SELECT ctid, tableoid FROM orders",
    "SELECT count(*) FROM products WHERE EXISTS (SELECT FROM orders)",
    "WITH o AS (SELECT * FROM orders) SELECT count(*) FROM o",
    "WITH o AS MATERIALIZED (SELECT 1 FROM orders) SELECT count(*) FROM o",
    "GRANT SELECT ON orders TO ada; SELECT count(*) FROM orders",
    "PREPARE p AS SELECT count(*) FROM orders; EXECUTE p",
    "DECLARE c CURSOR WITH HOLD FOR SELECT * FROM orders",
    "BEGIN; DECLARE c CURSOR FOR SELECT * FROM orders; FETCH ALL FROM c; COMMIT",
    "COPY orders TO STDOUT",
    "COPY (SELECT * FROM orders) TO STDOUT (FORMAT binary)",
    "EXPLAIN ANALYZE SELECT count(*) FROM orders",
    "SELECT ts_stat('SELECT to_tsvector(note) FROM orders')",
    "SELECT query_to_xml('SELECT * FROM orders', true, true, '')",
    "SELECT table_to_xml('orders', true, true, '')",
    "SELECT cursor_to_xml('c', 1, true, true, '')",
    "SELECT database_to_xml(true, true, '')",
    "SELECT ts_rewrite('a'::tsquery, 'SELECT to_tsquery(note), to_tsquery(note) FROM orders')",
    "SELECT * FROM orders FOR UPDATE",
    "SELECT * FROM orders TABLESAMPLE SYSTEM (100)",
    "BEGIN; LOCK TABLE orders IN ACCESS SHARE MODE",
    "CREATE TEMP TABLE t AS SELECT * FROM orders",
    "SELECT * INTO t FROM orders",
    "CREATE VIEW v AS SELECT * FROM orders",
    "CREATE FUNCTION f() RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM orders'",
    "CREATE FUNCTION f() RETURNS bigint LANGUAGE sql SECURITY DEFINER AS 'SELECT count(*) FROM orders'",
    "DO $$ BEGIN PERFORM count(*) FROM orders; END $$",
    "UPDATE orders SET amount = 0 RETURNING *",
    "DELETE FROM orders",
    "INSERT INTO orders DEFAULT VALUES",
    "MERGE INTO products p USING orders o ON p.id = o.id WHEN MATCHED THEN DO NOTHING",
    "TRUNCATE orders",
    "ANALYZE orders",
    "SELECT last_value FROM orders_id_seq",
    "SELECT nextval('orders_id_seq')",
    "SELECT currval('orders_id_seq')",
    "SELECT channel FROM pg_catalog.noisegate_channel",
]


@pytest.mark.parametrize("sql", ROUTES)
def test_no_route_executes_anything_over_a_protected_table(ada: Connection, sql: str) -> None:
    if sql.startswith("ANALYZE"):
        ada.execute(sql)  # a warning: it is skipped
    else:
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            ada.execute(sql)


def test_a_prepared_statement_over_a_protected_table_is_described_and_not_run(ada: Connection) -> None:
    connection = ada.pgconn
    sql = b"SELECT status, avg(amount) AS mean FROM orders WHERE customer_id = $1 AND status = $2 GROUP BY 1"
    assert connection.prepare(b"p", sql).status == pq.ExecStatus.COMMAND_OK

    described = connection.describe_prepared(b"p")
    types = [ada.execute("SELECT format_type(%s, NULL)", [oid]).fetchone() for oid in _oids(described)]
    assert types == [("integer",), ("status",), ("status",), ("numeric",)]
    assert described.fname(1) == b"mean"

    done = connection.exec_prepared(b"p", [b"1", b"open"])
    assert done.error_field(pq.DiagnosticField.SQLSTATE) == b"42501"
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        ada.execute("EXECUTE p (1, 'open')")


def _oids(described: pq.abc.PGresult) -> list[int]:
    parameters = [described.param_type(number) for number in range(described.nparams)]
    return parameters + [described.ftype(number) for number in range(described.nfields)]


HARM = [
    "SELECT pg_advisory_lock(n) FROM generate_series(1, 10) AS n",
    "SELECT pg_try_advisory_lock(1)",
    "SELECT pg_advisory_xact_lock_shared(1, 2)",
    "SELECT lo_create(0)",
    "SELECT lo_from_bytea(0, 'x')",
    "SELECT pg_logical_emit_message(false, 'x', 'x')",
    "SELECT pg_notify('x', 'x')",
    "SELECT pg_export_snapshot()",
    "SELECT pg_read_file('postgresql.conf')",
    "SELECT pg_ls_dir('.')",
    "COPY products TO '/tmp/x'",
    "COPY products TO PROGRAM 'cat'",
    "COPY products FROM PROGRAM 'echo'",
    "CREATE TABLE t (a int)",
    "CREATE TEMP TABLE t (a int)",
    "CREATE TEMP SEQUENCE t",
    "CREATE FUNCTION pg_temp.f() RETURNS int LANGUAGE sql RETURN 1",
    "CREATE TYPE pg_temp.t AS (a int)",
    "CREATE DOMAIN pg_temp.t AS int",
    "SELECT 1 AS a INTO TEMP t",
    "CREATE SCHEMA s",
    "CREATE ROLE r",
    "CREATE DATABASE d",
    "CREATE EXTENSION vector",
    "ALTER SYSTEM SET work_mem = '1GB'",
    "SET session_replication_role = replica",
    "SET temp_file_limit = -1",
    "SET log_min_messages = debug5",
    "SET SESSION AUTHORIZATION noisegate_owner",
    "SET ROLE noisegate_owner",
    "ALTER ROLE bob SET work_mem = '1MB'",
    "DROP TABLE products",
    "COMMENT ON TABLE products IS 'x'",
    "LOAD 'plpgsql'",
    "SELECT pg_reload_conf()",
    "SELECT pg_stat_reset()",
    "SELECT pg_switch_wal()",
    "CHECKPOINT",
    "SECURITY LABEL ON TABLE products IS 'x'",
]


@pytest.mark.parametrize("sql", HARM)
def test_an_attempt_to_do_harm_fails(ada: Connection, sql: str) -> None:
    with pytest.raises((psycopg.errors.InsufficientPrivilege, psycopg.errors.InvalidParameterValue)):
        ada.execute(sql)


def test_a_query_of_words_is_rewritten_by_another_one_and_never_by_a_text_that_is_run(ada: Connection) -> None:
    rewritten = ada.execute("SELECT ts_rewrite('a & b'::tsquery, 'a'::tsquery, 'c'::tsquery)::text").fetchone()

    assert rewritten == ("'b' & 'c'",)


def test_a_two_phase_transaction_cannot_be_left_behind(ada: Connection) -> None:
    ada.execute("BEGIN")
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState):
        ada.execute("PREPARE TRANSACTION 'x'")


@pytest.mark.extended
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT repeat('x', 1000000000) || repeat('y', 1000000000)",
        "SELECT array_agg(repeat('x', 1000000) || n) FROM generate_series(1, 4000) AS n",
        "SELECT DISTINCT repeat('x', 500) || n FROM generate_series(1, 9000000) AS n",
    ],
)
def test_a_greedy_statement_ends_and_its_neighbours_go_on(ada: Connection, bob: Connection, sql: str) -> None:
    process = bob.info.backend_pid
    ada.execute("SET work_mem = '2000GB'")
    with pytest.raises((psycopg.errors.OutOfMemory, psycopg.errors.ProgramLimitExceeded)):
        ada.execute(sql)
    assert bob.execute("SELECT pg_backend_pid()").fetchone() == (process,)


@pytest.mark.skipif(not Path("/proc/self/oom_score_adj").exists(), reason="Linux alone says who goes first")
def test_when_memory_runs_out_the_twin_goes_before_the_proxy(ada: Connection) -> None:
    assert Path(f"/proc/{ada.info.backend_pid}/oom_score_adj").read_text() == "1000\n"


@pytest.mark.extended
def test_temporary_files_are_limited(ada: Connection, bob: Connection) -> None:
    ada.execute("SET work_mem = '64kB'")
    with pytest.raises(psycopg.errors.ConfigurationLimitExceeded):
        ada.execute("SELECT repeat('x', 1000) || n FROM generate_series(1, 3000000) AS n ORDER BY 1 OFFSET 2999999")
    assert bob.execute("SELECT 1").fetchone() == (1,)


OF_THE_WHOLE_SERVER = [
    "SELECT pg_tablespace_size('pg_default')",
    "SELECT pg_tablespace_size(1663)",
    "SELECT redo_lsn FROM pg_control_checkpoint()",
    "SELECT pg_current_wal_lsn()",
    "SELECT pg_stat_get_buf_alloc()",
    "SELECT * FROM pg_stat_bgwriter",
    "SELECT * FROM pg_stat_slru",
    "SELECT * FROM pg_stat_io",
    "SELECT * FROM pg_stat_wal",
]


@pytest.mark.parametrize("sql", OF_THE_WHOLE_SERVER)
def test_a_counter_that_grows_with_rows_of_others_is_closed(ada: Connection, sql: str) -> None:
    """Synthetic rows are for those who have paid for them, and so is how many there are."""
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        ada.execute(sql)


def test_an_analyst_sees_nobody_elses_statements(ada: Connection, bob: Connection) -> None:
    bob.execute("SELECT 'a secret of bob''s'")
    rows = ada.execute("SELECT to_jsonb(a)::text FROM pg_stat_activity AS a WHERE pid <> pg_backend_pid()").fetchall()
    assert len(rows) > 1
    assert not [row for row in rows if "secret" in row[0]]
    own = ada.execute("SELECT query FROM pg_stat_activity WHERE pid = pg_backend_pid()").fetchone()
    assert own is not None
    assert own[0].startswith("SELECT query")


def test_an_analyst_sees_neither_names_nor_views_of_others(ada: Connection, bob: Connection) -> None:
    bob.execute("CREATE OR REPLACE TEMP VIEW bobs AS SELECT 'a secret of his' AS word")
    ada.execute("CREATE OR REPLACE TEMP VIEW adas AS SELECT 'one of hers' AS word")
    for question in (
        "SELECT r::text FROM pg_roles AS r",
        "SELECT u::text FROM pg_user AS u",
        "SELECT g::text FROM pg_group AS g",
        "SELECT a::text FROM pg_stat_activity AS a",
        "SELECT v::text FROM pg_views AS v",
        "SELECT v::text FROM information_schema.views AS v",
        "SELECT pg_get_viewdef(oid) FROM pg_class WHERE relkind = 'v'",
        "SELECT pg_get_viewdef(oid, true) || pg_get_viewdef(oid, 80) FROM pg_class WHERE relkind = 'v'",
        "SELECT pg_get_ruledef(oid) || pg_get_ruledef(oid, true) FROM pg_rewrite",
        "SELECT pg_get_userbyid(relowner) FROM pg_class",
    ):
        said = str(ada.execute(question).fetchall())
        assert "bob'" not in said.replace("bobs'", "") and "secret" not in said, question
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        ada.execute("SELECT ev_action FROM pg_rewrite")
    assert "hers" in str(
        ada.execute("SELECT pg_get_viewdef('adas'), pg_get_viewdef('adas'::regclass, true)").fetchone()
    )
    assert "hers" in str(ada.execute("SELECT definition FROM pg_views WHERE viewname = 'adas'").fetchone())
    assert "hers" in str(ada.execute("SELECT view_definition FROM information_schema.views").fetchall())
    assert ada.execute("SELECT count(*) FROM pg_roles WHERE rolname = current_user").fetchone() == (1,)
    assert ada.execute("SELECT count(*) > 3 FROM pg_rules, pg_matviews RIGHT JOIN pg_roles ON true").fetchone()
    ada.execute("DROP VIEW adas")
    bob.execute("DROP VIEW bobs")


def test_an_analyst_cannot_stop_another_ones_session(ada: Connection, bob: Connection) -> None:
    for function in ("pg_cancel_backend", "pg_terminate_backend"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            ada.execute(f"SELECT {function}({bob.info.backend_pid})")
    assert bob.execute("SELECT 1").fetchone() == (1,)


def test_an_analyst_has_one_database(twin: Twin) -> None:
    for name in ("postgres", "template1"):
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(f"{twin.dsn('ada')} dbname={name}")


STAYS_WITH_THE_SESSION = [
    "SET work_mem = '1MB'",
    "SET client_encoding = 'SJIS'",
    "SET standard_conforming_strings = off",
    "PREPARE _ng_probe AS SELECT 1",
    "CREATE TEMP VIEW products AS SELECT 1 AS id",
    "CREATE TEMP VIEW v AS SELECT * FROM orders",
    "DROP VIEW pg_temp.v",
    "LISTEN x",
    "NOTIFY x, 'from ada'",
    "DECLARE c CURSOR WITH HOLD FOR SELECT 1",
    "ALTER ROLE ada SET statement_timeout = 1",
    "ALTER ROLE ada PASSWORD 'x'",
]
REFUSED = [
    "ALTER ROLE ada RENAME TO eve",
    "ALTER ROLE ada SUPERUSER",
    "ALTER ROLE ALL SET work_mem = '1MB'",
    "ALTER DATABASE shop SET work_mem = '1MB'",
    "GRANT ada TO bob, ada",
    "CREATE TEMP VIEW w AS SELECT 1; GRANT SELECT ON w TO bob",
    "CREATE TEMP VIEW w AS SELECT 1; COMMENT ON VIEW w IS 'x'",
    "CREATE TEMP VIEW w AS SELECT 1; ALTER VIEW w RENAME TO x",
    "CREATE TEMP VIEW w AS SELECT 1 AS a; CREATE RULE r AS ON INSERT TO w DO INSTEAD NOTHING",
    "ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO PUBLIC",
    "DROP OWNED BY ada",
    "REASSIGN OWNED BY noisegate_owner TO ada",
    "COMMENT ON ROLE ada IS 'x'",
    "ALTER TABLE products ADD COLUMN x int",
    "CREATE TRIGGER t BEFORE INSERT ON orders FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()",
    "CREATE POLICY p ON orders",
    "CREATE STATISTICS s ON id, status FROM orders",
    "CREATE COLLATION pg_temp.c (locale = 'C')",
    "CREATE CAST (text AS int) WITH INOUT",
    "CREATE SERVER s FOREIGN DATA WRAPPER w",
    "CREATE PUBLICATION p",
    "CREATE SUBSCRIPTION s CONNECTION '' PUBLICATION p",
    "CREATE EVENT TRIGGER t ON ddl_command_start EXECUTE FUNCTION pg_catalog.noisegate_only_views()",
    "CREATE OR REPLACE FUNCTION pg_catalog.noisegate_moment(names text[]) RETURNS json LANGUAGE sql RETURN NULL",
    "DROP EVENT TRIGGER noisegate_only_views",
    "UPDATE pg_settings SET setting = '1MB' WHERE name = 'shared_buffers'",
    "DELETE FROM pg_class",
    "REINDEX TABLE products",
    "CLUSTER products",
]


@pytest.mark.parametrize("analyst", ["ada", "bob"])
def test_behind_a_wall_that_is_passed_nothing_changes_but_the_session_s_own_state(twin: Twin, analyst: str) -> None:
    """The proxy sorts statements by kind before the twin has them. Here it has them as they come."""
    with psycopg.connect(twin.dsn("noisegate_owner"), autocommit=True) as owner:
        before = _all_that_outlives_a_session(owner)
        with psycopg.connect(twin.dsn(analyst), autocommit=True) as session:
            for sql in (*STAYS_WITH_THE_SESSION, *REFUSED, *HARM, *ROUTES):
                text = sql if analyst == "ada" else _exchanged(sql)
                try:
                    session.execute(text)
                except psycopg.Error:
                    session.execute("ROLLBACK")
                else:
                    assert sql in (*STAYS_WITH_THE_SESSION, "ANALYZE orders"), text
        assert _all_that_outlives_a_session(owner) == before

    assert asyncio.run(twin.reset_roles())
    with psycopg.connect(twin.dsn(analyst), autocommit=True) as session:
        assert session.execute("SHOW statement_timeout").fetchone() == ("0",)
        assert session.execute("SELECT count(*) > 1 FROM products").fetchone() == (True,)


def _exchanged(sql: str) -> str:
    """The same, from bob's side."""
    names = {"ada": "bob", "bob": "ada"}
    return re.sub(r"\b(ada|bob)\b", lambda found: names[found[1]], sql)


def _all_that_outlives_a_session(owner: Connection) -> dict[str, object]:
    """Every row of every catalog and table.

    Left out is what a role may set for itself, which each session begins with taking back, and its password, which
    nobody asks for.
    """
    names = owner.execute(
        "SELECT oid::regclass::text FROM pg_class WHERE relkind = 'r' AND relpersistence = 'p' "
        "AND relname NOT IN ('pg_db_role_setting', 'pg_authid', 'pg_namespace', 'pg_class') ORDER BY 1"
    ).fetchall()
    queries = {name: f"SELECT * FROM {name}" for (name,) in names} | {
        "roles": "SELECT to_jsonb(r) - 'rolpassword' FROM pg_authid AS r",
        "schemas": "SELECT * FROM pg_namespace WHERE nspname !~ '^pg_(toast_)?temp_'",  # these stay, and are empty
        "classes": "SELECT to_jsonb(c) - '{relpages,reltuples,relallvisible,relallfrozen}'::text[] FROM pg_class AS c",
        "settings": "SELECT name, reset_val FROM pg_settings WHERE source <> 'session'",
        "advisory locks": "SELECT * FROM pg_locks WHERE locktype = 'advisory'",
        "prepared transactions": "SELECT * FROM pg_prepared_xacts",
    }
    digest = "SELECT count(*), md5(string_agg(t::text, '' ORDER BY t::text)) FROM ({}) AS t"
    return {name: owner.execute(digest.format(query)).fetchone() for name, query in queries.items()}
