"""Rows are compared column by column, as PostgreSQL compares them."""

import itertools

import psycopg
import pytest

from rules.sql.lower import parse_expression
from tests.conftest import RealDatabase

SAME = [
    ("(a, b) = (1, 2)", "a = 1 AND b = 2"),
    ("ROW(a, b) <> ROW(1, 2)", "a <> 1 OR b <> 2"),
    ("(a, b) < (1, 2)", "a < 1 OR (a = 1 AND b < 2)"),
    ("(a, b, c) >= (1, 2, 3)", "a > 1 OR (a = 1 AND (b > 2 OR (b = 2 AND c >= 3)))"),
    ("(a, b) IN ((1, 2), (b, a))", "(a = 1 AND b = 2) OR (a = b AND b = a)"),
    ("(a, b) NOT IN ((1, 2))", "NOT (a = 1 AND b = 2)"),
]


@pytest.mark.parametrize(("rows", "columns"), SAME)
def test_rows_are_spelled_as_their_columns(rows: str, columns: str) -> None:
    assert parse_expression(rows) == parse_expression(columns)


def test_rows_in_rows_are_not_spelled_out() -> None:
    """Their text would double with every level."""
    nested = "a"
    for _ in range(20):
        nested = f"ROW({nested}, b)"

    assert len(str(parse_expression(f"{nested} < {nested}"))) < 20_000


@pytest.mark.parametrize(("rows", "columns"), SAME)
def test_postgresql_finds_the_same_for_all_values_and_null(shop: RealDatabase, rows: str, columns: str) -> None:
    values = [f"({', '.join(texts)})" for texts in itertools.product(("1", "2", "3", "NULL::integer"), repeat=3)]
    sql = f"SELECT bool_and(({rows}) IS NOT DISTINCT FROM ({columns})) FROM (VALUES {', '.join(values)}) AS t(a, b, c)"
    with psycopg.connect(shop.dsn) as connection:
        assert connection.execute(sql).fetchone() == (True,)
