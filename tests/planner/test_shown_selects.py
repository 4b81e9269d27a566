# ruff: noqa: E501  (a statement a line)
"""One question shows one number by whatever spelling, never below zero; what is computed of it sees it as released."""

import psycopg
import pytest

from rules.catalog import Catalog
from rules.mechanisms.noised_outputs import Text
from rules.mechanisms.release_plan import Block, PublicGroups
from rules.planner.plan import Plan
from rules.release.release import Noised, columns
from tests.planner.test_outer_statement import TEXT_ARRAY, array, catalog, connection, planned

__all__ = ["catalog", "connection"]

RELEASED = (326, -390, 541, 10)


def shown(block: Block) -> tuple[tuple[Text, ...], ...]:
    assert isinstance(block.groups, PublicGroups)
    values = (RELEASED * len(block.groups.rows))[: len(block.groups.rows)]
    return columns(block, Noised(block.groups.rows, dict.fromkeys(range(len(block.measures)), values)))


def answer(connection: psycopg.Connection, made: Plan) -> list[list[str]]:
    arrays = [array(column).encode() for block in made.blocks for column in shown(block)]
    result = connection.pgconn.exec_params(made.outer_with_parameters().encode(), arrays, [TEXT_ARRAY] * len(arrays))
    assert result.status == psycopg.pq.ExecStatus.TUPLES_OK, result.error_message.decode()
    rows, width = range(result.ntuples), range(result.nfields)
    return [[(result.get_value(row, column) or b"").decode() for column in width] for row in rows]


SPELLINGS = """
SELECT status, count(*) AS n FROM orders GROUP BY status ORDER BY status
SELECT status, count(*)::integer AS n FROM orders GROUP BY status ORDER BY 1
SELECT status, round(count(*)) AS n FROM orders GROUP BY status ORDER BY 1
SELECT * FROM (SELECT status, count(*) AS n FROM orders GROUP BY status) AS t ORDER BY status
SELECT t.status, t.n FROM (SELECT * FROM (SELECT status, count(*) AS n FROM orders GROUP BY status) AS u) AS t ORDER BY 1 LIMIT 100
WITH a AS (SELECT status, count(*) AS n FROM orders GROUP BY 1) SELECT status, n FROM a ORDER BY status
SELECT status, count(*) AS n FROM orders GROUP BY status HAVING count(*) > -1000 ORDER BY status
"""


@pytest.mark.parametrize("sql", SPELLINGS.strip().splitlines())
def test_every_spelling_shows_the_same_numbers(connection: psycopg.Connection, catalog: Catalog, sql: str) -> None:
    assert [row[1] for row in answer(connection, planned(sql, catalog))] == norm_subbed()


def norm_subbed() -> list[str]:
    """326 and 541 give up 380 together, and 10 all that it has."""
    return ["136", "0", "351", "0"]


COMPUTED = """
SELECT status, count(*) * 1 AS n FROM orders GROUP BY status ORDER BY status
SELECT status, n + 0 FROM (SELECT status, count(*) AS n FROM orders GROUP BY status) AS t ORDER BY 1
WITH a AS (SELECT status, count(*) AS n FROM orders GROUP BY 1) SELECT status, sum(n) OVER (PARTITION BY status) FROM a ORDER BY 1
SELECT t.status, t.n FROM (SELECT status, count(*) AS n FROM orders GROUP BY status) AS t WHERE n < 1000 ORDER BY 1
WITH a AS (SELECT status, count(*) AS n FROM orders GROUP BY 1) SELECT a.status, a.n FROM a JOIN a AS b ON a.n = b.n ORDER BY 1
"""


@pytest.mark.parametrize("sql", COMPUTED.strip().splitlines())
def test_what_computes_sees_what_was_released(connection: psycopg.Connection, catalog: Catalog, sql: str) -> None:
    assert [row[1] for row in answer(connection, planned(sql, catalog))] == [str(number) for number in RELEASED]


def test_totals_are_those_of_the_parts_that_are_shown(connection: psycopg.Connection, catalog: Catalog) -> None:
    sql = "SELECT status, count(*), sum(amount) FROM orders GROUP BY ROLLUP (status) ORDER BY 1"
    *parts, whole = answer(connection, planned(sql, catalog))

    assert sum(int(part[1]) for part in parts) == int(whole[1]) == sum(RELEASED)
    assert all(float(part[2]) >= 0 for part in parts)
    assert abs(sum(float(part[2]) for part in parts) - float(whole[2])) < 0.05


def test_counts_of_people_in_groups_are_no_parts(connection: psycopg.Connection, catalog: Catalog) -> None:
    sql = "SELECT status, count(DISTINCT customer_id) FROM orders GROUP BY status ORDER BY 1"

    assert [row[1] for row in answer(connection, planned(sql, catalog))] == ["326", "0", "541", "10"]


@pytest.mark.parametrize("signed", ["amount - 100", "-amount"])
def test_sums_that_can_be_below_zero_are_shown_so(
    connection: psycopg.Connection, catalog: Catalog, signed: str
) -> None:
    rows = answer(connection, planned(f"SELECT status, sum({signed}) FROM orders GROUP BY status", catalog))

    assert any(float(row[1]) < 0 for row in rows)
