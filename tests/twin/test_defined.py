"""Functions of the twin for arguments that noise took where an operator or a function is not defined."""

from collections.abc import Iterator
from itertools import product

import psycopg
import pytest

from proxy.twin.own_objects import create_defined
from tests.conftest import RealDatabase

NUMBERS = "-1e6 -1000 -2.5 -2 -1 -0.5 0 0.25 0.5 1 2 2.5 700 1000 1e6".split()
TYPES = ("smallint", "integer", "bigint", "real", "double precision", "numeric")
GUARDED = {  # the function, and how it is called with each argument guarded
    "sqrt({0})": "sqrt(pg_catalog.noisegate_not_negative({0}))",
    "ln({0})": "ln(pg_catalog.noisegate_positive({0}))",
    "log({0})": "log(pg_catalog.noisegate_positive({0}))",
    "exp({0})": "exp(pg_catalog.noisegate_exponent({0}))",
    "acos({0})": "acos(pg_catalog.noisegate_within_one({0}))",
    "atanh({0})": "atanh(pg_catalog.noisegate_within_one({0}))",
    "acosh({0})": "acosh(pg_catalog.noisegate_from_one({0}))",
    "{0} / {1}": "{0} / pg_catalog.noisegate_divisor({1})",
    "{0} % {1}": "{0} % pg_catalog.noisegate_divisor({1})",
    "power({0}, {1})": "power(pg_catalog.noisegate_base_of_power({0}, {1}), {1})",
    "log({0}, {1})": "log(pg_catalog.noisegate_base_of_log({0}), pg_catalog.noisegate_positive_numeric({1}))",
}


@pytest.fixture(scope="module")
def connection(shop: RealDatabase) -> Iterator[psycopg.Connection]:
    with shop.connect() as connected, connected.transaction(force_rollback=True):
        for step in create_defined("pg_catalog.noisegate_"):
            connected.execute(step.sql)
        yield connected


def answer(connection: psycopg.Connection, sql: str) -> tuple[str, object] | str:
    """The type and the value, or the SQLSTATE."""
    try:
        with connection.transaction():
            found = connection.execute(f"SELECT pg_typeof(x)::text, x::text FROM (SELECT {sql} AS x) s").fetchone()
    except psycopg.Error as error:
        return error.sqlstate or ""
    assert found is not None
    return found


@pytest.mark.parametrize("plain", GUARDED)
def test_what_is_undefined_is_null_and_all_else_as_it_is(connection: psycopg.Connection, plain: str) -> None:
    numbers = [f"({number})::{of}" for of, number in product(TYPES, NUMBERS) if of != "smallint" or "e" not in number]
    arguments = product(numbers[::3], repeat=2) if "{1}" in plain else ((number,) for number in numbers)
    seen = set()
    for each in arguments:
        expected = answer(connection, plain.format(*each))
        if expected == "42883":  # there is no such operator
            continue
        found = answer(connection, GUARDED[plain].format(*each))
        is_undefined = isinstance(expected, str)
        seen.add(is_undefined)
        assert found[1] is None if is_undefined else found == expected, each
    assert seen == {True, False}
