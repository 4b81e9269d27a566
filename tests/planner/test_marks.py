# ruff: noqa: E501  (a statement a line)
"""Marks in the outer statement: the same columns as the original, in its order, NULL where they are marked."""

from dataclasses import replace
from decimal import Decimal
from itertools import cycle

import psycopg
import pytest

from rules.catalog import Catalog
from rules.mechanisms.release_plan import PublicGroups
from rules.planner.plan import Plan, Request
from rules.planner.planner import plan
from rules.release.release import Noised, columns
from rules.sql.session_settings import MarkKind
from tests.planner.planned import whole
from tests.planner.test_outer_statement import TEXT_ARRAY, array, catalog, connection, described
from tests.support import shop as shop_data

__all__ = ["catalog", "connection"]


def planned(text: str, catalog: Catalog, mark: MarkKind) -> Plan:
    request = Request(
        text, ("pg_catalog", "public"), epsilon=Decimal(1), delta=Decimal("1e-9"), now="2026-11-21T12:00:00+00:00"
    )
    return whole(plan(replace(request, mark=mark), shop_data.policy(), catalog))


MARKED = """
SELECT city, count(*) FROM customers GROUP BY city
SELECT count(*), count(*), sum(amount)::numeric(12,2) AS euros FROM orders
SELECT status, round(avg(amount), 2) FROM orders GROUP BY 1 ORDER BY count(*) DESC, 1 LIMIT 2
SELECT status, sum(amount)::float8 / nullif(count(*), 0), 'x'::varchar(7) AS word FROM orders GROUP BY status HAVING count(*) > 3
SELECT mode() WITHIN GROUP (ORDER BY country), count(*) FROM customers
SELECT status, count(*) AS "n, all" FROM orders GROUP BY ROLLUP (status) ORDER BY 2
WITH cheap AS (SELECT * FROM orders WHERE amount < 9) SELECT status, count(*)::integer FROM cheap GROUP BY 1 ORDER BY 2 DESC
"""


@pytest.mark.parametrize("mark", ["on", "cell"])
@pytest.mark.parametrize("sql", MARKED.strip().splitlines())
def test_the_columns_are_those_of_the_original(
    connection: psycopg.Connection, catalog: Catalog, sql: str, mark: MarkKind
) -> None:
    made = planned(sql, catalog, mark)
    arrays = max(part for part in made.outer if isinstance(part, int))

    assert made.marks
    assert described(connection, made.outer_with_parameters(), 0, arrays) == described(connection, sql)


def answered(connection: psycopg.Connection, made: Plan) -> list[tuple[object, ...]]:
    """Groups with 7, 14, 21 … rows, of which every second one is marked."""
    (block,) = made.blocks
    assert isinstance(block.groups, PublicGroups)
    rows = tuple(7 * place for place in range(1, len(block.groups.rows) + 1))
    shown = columns(block, Noised(block.groups.rows, dict.fromkeys(range(len(block.measures)), rows)))
    marks = [tuple(text for _, text in zip(shown[0], cycle("tf"), strict=False))] * len(made.marks)
    values = [array(column).encode() for column in (*shown, *marks)]
    result = connection.pgconn.exec_params(made.outer_with_parameters().encode(), values, [TEXT_ARRAY] * len(values))
    assert result.status == psycopg.pq.ExecStatus.TUPLES_OK, result.error_message.decode()
    return [tuple(result.get_value(row, column) for column in range(result.nfields)) for row in range(result.ntuples)]


def test_order_limit_and_what_is_computed_see_the_numbers_as_they_were_released(
    connection: psycopg.Connection, catalog: Catalog
) -> None:
    sql = "SELECT status, count(*), count(*) * 2 FROM orders GROUP BY status ORDER BY count(*) DESC LIMIT 3"

    null = answered(connection, planned(sql, catalog, "on"))

    assert null == [(b"returned", b"28", b"56"), (b"sent", None, None), (b"paid", b"14", b"28")]


UNMARKED = """
SELECT DISTINCT count(*) FROM orders GROUP BY status
WITH a AS (SELECT status, count(*) AS n FROM orders GROUP BY 1) SELECT sum(n) FROM a
SELECT count(*) || ' orders' FROM orders
"""


@pytest.mark.parametrize("sql", UNMARKED.strip().splitlines())
def test_an_analyst_is_told_where_nothing_is_marked(catalog: Catalog, sql: str) -> None:
    assert not planned(sql, catalog, "on").marks
    assert any("nothing is marked" in notice for notice in planned(sql, catalog, "on").notices)
    assert not any("marked" in notice for notice in planned(sql, catalog, "off").notices)
