"""Statements that are refused by what they are are called what they are."""

import pytest

from rules.sql.forbidden import refusal_by_kind
from rules.sql.grammar import parse
from rules.sql.tree import bodies


def test_a_lock_is_refused_with_what_shows_the_schema() -> None:
    (piece,) = parse("LOCK TABLE orders IN ACCESS SHARE MODE")

    refusal = refusal_by_kind(piece, [])

    assert refusal is not None
    assert (refusal.sqlstate, refusal.message) == ("42501", "permission denied for LOCK TABLE")
    assert "information_schema" in refusal.hint


@pytest.mark.parametrize(
    ("sql", "called"),
    [
        ("DROP TABLE customers", "DROP TABLE"),
        ("DROP MATERIALIZED VIEW v", "DROP MATERIALIZED VIEW"),
        ("DROP FOREIGN TABLE t", "DROP FOREIGN TABLE"),
        ("VACUUM", "VACUUM"),
        ("ANALYZE orders", "ANALYZE"),
        ("GRANT SELECT ON orders TO ada", "GRANT"),
        ("REVOKE SELECT ON orders FROM ada", "REVOKE"),
        ("CREATE ROLE eve", "CREATE ROLE"),
        ("CREATE INDEX ON orders (id)", "CREATE INDEX"),
        ("ALTER TABLE orders ADD note text", "ALTER TABLE"),
        ("ALTER SYSTEM SET work_mem = '1GB'", "ALTER SYSTEM"),
        ("REFRESH MATERIALIZED VIEW v", "REFRESH MATERIALIZED VIEW"),
        ("ALTER TABLE orders RENAME note TO notes", "ALTER TABLE"),
        ("ALTER USER ada RENAME TO eve", "ALTER ROLE"),
        ("ALTER VIEW v RENAME TO w", "ALTER VIEW"),
        ("ALTER VIEW v SET (security_barrier)", "ALTER VIEW"),
        ("ALTER TYPE t RENAME TO u", "ALTER TYPE"),
        ("ALTER TABLE orders SET SCHEMA s", "ALTER TABLE"),
        ("ALTER TABLE orders OWNER TO ada", "ALTER TABLE"),
        ("ALTER FUNCTION f() OWNER TO ada", "ALTER FUNCTION"),
        ("ALTER ROLE ada SET work_mem = '1GB'", "ALTER ROLE"),
        ("ALTER DATABASE shop SET work_mem = '1GB'", "ALTER DATABASE"),
        ("CREATE DATABASE d", "CREATE DATABASE"),
        ("DROP DATABASE d", "DROP DATABASE"),
        ("CREATE TABLESPACE t LOCATION '/t'", "CREATE TABLESPACE"),
        ("CREATE TRIGGER t AFTER INSERT ON orders EXECUTE FUNCTION f()", "CREATE TRIGGER"),
        ("CREATE RULE r AS ON INSERT TO orders DO INSTEAD NOTHING", "CREATE RULE"),
        ("CREATE STATISTICS s ON id, day FROM orders", "CREATE STATISTICS"),
        ("CREATE TYPE t AS (a integer)", "CREATE TYPE"),
        ("CREATE TYPE t AS ENUM ('a')", "CREATE TYPE"),
        ("CREATE AGGREGATE a (integer) (sfunc = int4pl, stype = integer)", "CREATE AGGREGATE"),
        ("CREATE TEXT SEARCH DICTIONARY d (template = simple)", "CREATE TEXT SEARCH DICTIONARY"),
        ("CREATE OPERATOR + (leftarg = integer, function = f)", "CREATE OPERATOR"),
        ("SECURITY LABEL ON TABLE orders IS 'x'", "SECURITY LABEL"),
        ("COMMENT ON TABLE orders IS 'x'", "COMMENT"),
        ("INSERT INTO orders VALUES (1)", "INSERT"),
        ("SELECT 1 INTO t", "SELECT INTO"),
    ],
)
def test_a_write_is_refused_by_its_name(sql: str, called: str) -> None:
    (piece,) = parse(sql)

    refusal = refusal_by_kind(piece, bodies(piece.tree, "FuncCall"))

    assert refusal is not None
    assert (refusal.sqlstate, refusal.message) == ("25006", f"cannot execute {called} in a read-only session")
