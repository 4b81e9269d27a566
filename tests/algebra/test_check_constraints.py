"""What CHECK constraints prove: on a real PostgreSQL no row that passes them lies outside."""

import re
from collections.abc import Iterator
from fractions import Fraction

import psycopg
import pytest

from proxy.twin.embedded import Cluster
from rules.algebra.check_constraints import bounds_of_checks
from rules.catalog import Catalog
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


COLUMNS = {
    "x": "bigint", "y": "integer", "f": "float8", "t": "text", "v": "varchar(20)", "c": "char(3)",
    "n": "numeric(10,2)", "r": "real", "d": "date", "a": "timestamp", "z": "timestamptz",
}  # fmt: skip
NAME = re.compile(rf"\b(?<!')({'|'.join(COLUMNS)})\b(?!')")
OF_ONE = [number for number, (check, name, _) in enumerate(CHECKS) if set(NAME.findall(check)) == {name}]


@pytest.fixture(scope="module")
def catalog(real_cluster: Cluster) -> Iterator[Catalog]:
    with psycopg.connect(real_cluster.dsn(), autocommit=True) as connection:
        connection.execute("CREATE DATABASE checked")
    with psycopg.connect(real_cluster.dsn("checked"), autocommit=True) as connection:
        columns = ", ".join(map(" ".join, COLUMNS.items()))
        for number, (check, name, _) in enumerate(CHECKS):
            connection.execute(f"CREATE TABLE t{number} ({columns}, CHECK ({check}))")
            if number in OF_ONE:
                held = NAME.sub("VALUE", check)
                connection.execute(f"CREATE DOMAIN d{number} AS {COLUMNS[name]} CHECK ({held})")
                connection.execute(f"CREATE DOMAIN e{number} AS d{number}; CREATE TABLE u{number} ({name} e{number})")
    yield catalog_of(real_cluster.dsn("checked"))


def _proved(catalog: Catalog, table_name: str, name: str) -> Domain:
    table = next(table for table in catalog.tables if table.name.name == table_name)
    column = table.find_column(name)
    assert column is not None
    return bounds_of_checks(table, column, type_of(column))


@pytest.mark.parametrize("number", range(len(CHECKS)), ids=[check for check, _, _ in CHECKS])
def test_a_check_proves_what_postgresql_enforces(catalog: Catalog, number: int, real_cluster: Cluster) -> None:
    _, name, expected = CHECKS[number]
    proved = _proved(catalog, f"t{number}", name)

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


@pytest.mark.parametrize("number", OF_ONE, ids=[CHECKS[number][0] for number in OF_ONE])
def test_a_check_of_a_domain_proves_as_much(catalog: Catalog, number: int) -> None:
    _, name, expected = CHECKS[number]

    assert _proved(catalog, f"u{number}", name) == expected


def test_a_check_of_a_domain_that_is_not_validated_proves_nothing(real_cluster: Cluster) -> None:
    with psycopg.connect(real_cluster.dsn(), autocommit=True) as connection:
        connection.execute("CREATE DATABASE unproved")
    with psycopg.connect(real_cluster.dsn("unproved"), autocommit=True) as connection:
        connection.execute("CREATE DOMAIN few AS integer; CREATE TABLE t (x few); INSERT INTO t VALUES (7)")
        connection.execute("ALTER DOMAIN few ADD CHECK (VALUE < 5) NOT VALID")

    assert _proved(catalog_of(real_cluster.dsn("unproved")), "t", "x") == ANYTHING


def _is_whole(text: str) -> bool:
    return text.removeprefix("-").isdigit()
