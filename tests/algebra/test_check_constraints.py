"""What CHECK constraints prove: on a real PostgreSQL no row that passes them lies outside."""

from collections.abc import Iterator
from fractions import Fraction

import psycopg
import pytest

from proxy.twin.embedded import Cluster
from rules.algebra.check_constraints import bounds_of_checks
from rules.catalog import Catalog, Table
from rules.values.domain import ANYTHING, Domain, Range, Values, contains
from rules.values.types import type_of
from rules.values.value import DAY
from tests.support.catalogs import catalog_of

# CHECK -> what it proves of x, an integer, or of t, a text
CHECKS: list[tuple[str, str, Domain]] = [
    ("x >= 0", "x", Range(Fraction(0), None)),
    ("x > 0 AND x < 10", "x", Range(Fraction(1), Fraction(9))),
    ("x BETWEEN -5 AND 5000000000", "x", Range(Fraction(-5), Fraction(5_000_000_000))),
    ("0 <= x", "x", Range(Fraction(0), None)),
    ("x IN (1, 3, -2)", "x", Values((Fraction(-2), Fraction(1), Fraction(3)))),
    ("x = 4 OR x = 6", "x", Values((Fraction(4), Fraction(6)))),
    ("x IS NULL OR x < 3", "x", Range(None, Fraction(2))),
    ("(x > 0 AND y > 0) OR x = -1", "x", Range(Fraction(-1), None)),
    ("x >= 0 AND x <> 7 AND t = 'a'", "x", Range(Fraction(0), None)),
    ("x >= 0 OR y >= 0", "x", ANYTHING),
    ("x >= y", "x", ANYTHING),
    ("NOT (x < 0)", "x", ANYTHING),
    ("x >= 0.5", "x", ANYTHING),
    ("f >= 0 AND f <= 1", "f", Range(Fraction(0), Fraction(1))),
    ("t IN ('a', 'O''Hara')", "t", Values(("O'Hara", "a"))),
    ("v IN ('a', 'b')", "v", Values(("a", "b"))),
    ("t = 'a' OR t = 'c'", "t", Values(("a", "c"))),
    ("t >= 'a'", "t", ANYTHING),
    ("length(t) < 20", "t", ANYTHING),
    ("c IN ('a', 'b')", "c", ANYTHING),
    ("n BETWEEN -0.5 AND 5000", "n", Range(Fraction(-1, 2), Fraction(5000))),
    ("n > 0", "n", Range(Fraction(0), None)),
    ("r >= 0.5 AND r < 3", "r", Range(Fraction(1, 2), Fraction(3))),
    ("d >= '1996-01-01' AND d < '1997-01-01'", "d", Range(Fraction(9496), Fraction(9861))),
    (
        "a >= '1996-01-01' AND a <= '1996-01-02 12:00'",
        "a",
        Range(Fraction(9496 * DAY), Fraction(9497 * DAY + DAY // 2)),
    ),
    ("z >= '1996-01-01 00:00+00'", "z", Range(Fraction(9496 * DAY), None)),
    ("d > z", "d", ANYTHING),
]


@pytest.fixture(scope="module")
def catalog(real_cluster: Cluster) -> Iterator[Catalog]:
    with psycopg.connect(real_cluster.dsn(), autocommit=True) as connection:
        connection.execute("CREATE DATABASE checked")
    with psycopg.connect(real_cluster.dsn("checked"), autocommit=True) as connection:
        for number, (check, _, _) in enumerate(CHECKS):
            columns = "x bigint, y integer, f float8, t text, v varchar(20), c char(3)"
            columns += ", n numeric(10,2), r real, d date, a timestamp, z timestamptz"
            connection.execute(f"CREATE TABLE t{number} ({columns}, CHECK ({check}))")
    yield catalog_of(real_cluster.dsn("checked"))


def _table(catalog: Catalog, number: int) -> Table:
    return next(table for table in catalog.tables if table.name.name == f"t{number}")


@pytest.mark.parametrize("number", range(len(CHECKS)), ids=[check for check, _, _ in CHECKS])
def test_a_check_proves_what_postgresql_enforces(catalog: Catalog, number: int, real_cluster: Cluster) -> None:
    _, name, expected = CHECKS[number]
    table = _table(catalog, number)
    column = table.find_column(name)
    assert column is not None

    proved = bounds_of_checks(table, column, type_of(column))

    assert proved == expected
    with psycopg.connect(real_cluster.dsn("checked"), autocommit=True) as connection:
        for text in (
            "-6",
            "-5",
            "-2",
            "-1",
            "0",
            "1",
            "3",
            "6",
            "9",
            "10",
            "5000000000",
            "5000000001",
            "a",
            "b",
            "O'Hara",
        ):
            if name in ("x", "t", "v") and not contains(
                proved, Fraction(text) if name == "x" and _is_whole(text) else text
            ):
                with pytest.raises((psycopg.errors.CheckViolation, psycopg.errors.InvalidTextRepresentation)):
                    connection.execute(f"INSERT INTO t{number} ({name}) VALUES (%s)", [text])


def _is_whole(text: str) -> bool:
    return text.removeprefix("-").isdigit()
