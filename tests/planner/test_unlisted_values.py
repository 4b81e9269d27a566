"""A misspelled value is told, with the listed value that it is most like: by the statement and the rules alone."""

import pytest

from rules.planner.plan import Plan
from tests.planner.planned import Planner

BERLIN = "no city is listed as 'berlin'; the nearest listed value is 'Berlin'"


def told(made: Plan) -> list[str]:
    return [notice for notice in made.notices if "is listed as" in notice]


@pytest.mark.parametrize(
    ("condition", "lines"),
    [
        ("city = 'berlin'", [BERLIN]),
        ("'berlin' <> city", [BERLIN]),
        ("city IN ('berlin', 'Graz')", [BERLIN]),
        ("NOT (is_vip OR city NOT IN ('Graz', 'berlin'))", [BERLIN]),
        ("city = ' Lyon'", ["no city is listed as ' Lyon'; the nearest listed value is 'Lyon'"]),
        ("city = 'Portoo'", ["no city is listed as 'Portoo'; the nearest listed value is 'Porto'"]),
        ("country = 'de'", ["no country is listed as 'de'; the nearest listed value is 'DE'"]),
        ("city = 'Berlin'", []),
        ("city = 'Hamburg'", []),  # like none of them: the rules need not list all
        ("city = ''", []),
        ("name = 'berlin'", []),
        ("lower(city) = 'berlin'", []),
    ],
)
def test_a_constant_near_a_listed_value_is_told(planner: Planner, condition: str, lines: list[str]) -> None:
    assert told(planner.plan(f"SELECT count(*) FROM customers WHERE {condition}")) == lines


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) FILTER (WHERE city = 'berlin') FROM customers",
        "SELECT sum(CASE WHEN city = 'berlin' THEN 1 ELSE 0 END) FROM customers",
        "SELECT city, count(*) FROM customers WHERE city IN ('berlin', 'Lyon') GROUP BY city",
        "SELECT count(*) FROM orders JOIN customers AS c ON c.id = customer_id WHERE c.city = 'berlin'",
        "SELECT count(*) FROM orders WHERE customer_id IN (SELECT id FROM customers WHERE city = 'berlin')",
        "WITH v AS (SELECT * FROM customers WHERE city = 'berlin') SELECT count(*) FROM v",
    ],
)
def test_it_is_told_wherever_rows_are_chosen(planner: Planner, sql: str) -> None:
    assert told(planner.plan(sql)) == [BERLIN]


def test_explain_tells_it_too(planner: Planner) -> None:
    made = planner.plan("EXPLAIN SELECT count(*) FROM customers WHERE city = 'berlin'")

    assert "note: no city is listed as" in "".join(map(str, made.outer))


def test_a_long_list_of_mistakes_is_told_in_part(planner: Planner) -> None:
    made = planner.plan("SELECT count(*) FROM customers WHERE city IN ('berlin', 'lyon', 'porto', 'graz')")

    assert len(told(made)) == 3
