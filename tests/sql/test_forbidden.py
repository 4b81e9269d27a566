"""Statements that are refused by what they are are called what they are."""

import pytest

from rules.sql.forbidden import refusal_by_kind
from rules.sql.grammar import parse


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
        ("INSERT INTO orders VALUES (1)", "INSERT"),
        ("SELECT 1 INTO t", "SELECT INTO"),
    ],
)
def test_a_write_is_refused_by_its_name(sql: str, called: str) -> None:
    (piece,) = parse(sql)

    refusal = refusal_by_kind(piece.tree)

    assert refusal is not None
    assert (refusal.sqlstate, refusal.message) == ("25006", f"cannot execute {called} in a read-only session")
