"""A statement none of whose groups can have rows: an empty answer of the right columns, which costs nothing."""

import psycopg
import pytest

from tests.support.running import Noisegate

CITIES = "SELECT city, count(*) AS n, avg(extract(year FROM birth_date)) AS a FROM customers WHERE {} GROUP BY city"
ATLANTIS = CITIES.format("city = 'Atlantis'")


def charges(session: psycopg.Connection) -> int:
    return len(session.execute("SELECT * FROM noisegate.ledger").fetchall())


@pytest.mark.parametrize(
    "sql",
    [
        ATLANTIS,
        CITIES.format("city LIKE 'Z%'"),
        f"WITH none AS ({ATLANTIS}) SELECT none.*, b.epsilon FROM none, noisegate.budget AS b",
        f"SELECT * FROM ({ATLANTIS}) AS t WHERE n > %s",
        f"{ATLANTIS} ORDER BY n DESC LIMIT 3",
        f"SELECT p.id FROM products AS p WHERE p.id < (SELECT max(n) FROM ({ATLANTIS}) AS t)",
    ],
)
def test_it_is_empty_and_costs_nothing(proxy: Noisegate, sql: str) -> None:
    told: list[str] = []
    with psycopg.connect(proxy.dsn(), autocommit=True) as session:
        before = charges(session)
        session.execute("SET noisegate.mark = on")
        session.add_notice_handler(lambda notice: told.append(notice.message_primary or ""))
        found = session.execute(sql, [3] if "%s" in sql else None)

        assert found.fetchall() == []
        assert [column.name for column in found.description or ()][:3] in (["city", "n", "a"], ["id"])
        assert any("no listed group can have rows" in line for line in told)
        assert charges(session) == before


def test_explain_says_that_it_is_free(proxy: Noisegate) -> None:
    with psycopg.connect(proxy.dsn(), autocommit=True) as session:
        assert session.execute(f"EXPLAIN {ATLANTIS}").fetchall() == [("Free: no protected row is read",)]


def test_totals_of_no_groups_are_answered(proxy: Noisegate) -> None:
    """PostgreSQL has a row for them."""
    with psycopg.connect(proxy.dsn(), autocommit=True) as session:
        sql = "SELECT city, count(*) FROM customers WHERE city = 'Atlantis' GROUP BY ROLLUP (city)"
        assert [row[0] for row in session.execute(sql)] == [None]
