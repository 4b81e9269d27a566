"""The table of refusals in docs/errors.md says what the code says, word by word."""

from pathlib import Path

import pytest

from tests.planner.planned import Planner

PAGE = Path(__file__).parents[2] / "docs" / "errors.md"
START = "| statement | code | message | hint |\n|---|---|---|---|\n"


def rows() -> list[list[str]]:
    """The cells of the table, statement first."""
    _, _, rest = PAGE.read_text(encoding="utf-8").partition(START)
    lines = rest.partition("\n\n")[0].splitlines()
    return [[cell.strip().replace("\\|", "|") for cell in line.strip("|").split(" | ")] for line in lines]


@pytest.mark.parametrize(("statement", "code", "message", "hint"), rows(), ids=lambda cell: cell[:40])
def test_the_table_tells_the_refusal_as_it_is(
    planner: Planner, statement: str, code: str, message: str, hint: str
) -> None:
    refusal = planner.refusal(statement.strip("`"))

    assert (refusal.sqlstate, refusal.message, refusal.hint) == (code, message, hint)


@pytest.mark.parametrize("statement", [statement.strip("`") for statement, *_ in rows()], ids=lambda text: text[:40])
def test_a_refusal_points_at_a_place_in_the_statement(planner: Planner, statement: str) -> None:
    position = planner.refusal(statement).position

    assert position is not None
    assert 1 <= position <= len(statement)


@pytest.mark.parametrize(
    "marked",
    [
        "SELECT * FROM ^customers",
        "SELECT 'ä', c.id FROM ^customers AS c JOIN orders AS o ON o.customer_id = c.id",
        "SELECT city FROM customers /* LIMIT */ ^LIMIT 3",
        "SELECT count(*) FROM orders AS o JOIN ^order_items AS i ON o.id = i.quantity",
        "SELECT ^max(name) FROM customers",
        "SELECT id, count(*) FROM orders ^GROUP BY id ORDER BY 2 DESC LIMIT 10",
        "SELECT count(*) FROM customers WHERE ^name::interval > '1 day'",
        "SELECT count(*) FROM customers WHERE id IN (SELECT id FROM ^orders)",
        "SELECT ^sum(amount) OVER () FROM orders",
        "SELECT count(*) FROM customers ^FOR UPDATE",
        "SELECT city FROM customers ^INTERSECT SELECT city FROM customers",
        "SELECT count(*) FROM (SELECT ^DISTINCT ON (status) * FROM orders) AS t",
        "SELECT ^count(*) FROM products LEFT JOIN order_items ON product_id = id",
        "SELECT count(*) FROM customers, ^LATERAL (SELECT amount FROM orders) AS x",
        "SELECT count(*) FROM customers UNION SELECT 1 UNION ALL SELECT id FROM ^orders",
        "^COPY customers TO STDOUT",
        "SELECT sum(amount * ^1e400) FROM orders",
    ],
)
def test_a_refusal_points_at_what_it_is_about(planner: Planner, marked: str) -> None:
    before, _, after = marked.partition("^")

    assert planner.refusal(before + after).position == len(before) + 1


def test_a_word_that_stands_twice_is_not_pointed_at(planner: Planner) -> None:
    assert planner.refusal("SELECT count(*) FROM (SELECT * FROM orders LIMIT 10) AS t LIMIT 1").position is None


def test_the_table_is_there() -> None:
    assert len(rows()) >= 20
