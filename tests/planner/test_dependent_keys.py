"""GROUP BY a primary key is GROUP BY all that is selected of its table."""

import pytest

from tests.planner.planned import Planner

ITEMS = "FROM products AS p JOIN order_items AS i ON i.product_id = p.id"


@pytest.mark.parametrize(
    ("short", "long"),
    [
        (
            f"SELECT p.id, p.name, p.category, count(*) {ITEMS} GROUP BY p.id ORDER BY 1",
            f"SELECT p.id, p.name, p.category, count(*) {ITEMS} GROUP BY p.id, p.name, p.category ORDER BY 1",
        ),
        (
            f"SELECT name, sum(quantity) {ITEMS} GROUP BY id HAVING price > 5 ORDER BY category",
            f"SELECT name, sum(quantity) {ITEMS} GROUP BY id, name, price, category HAVING price > 5 ORDER BY category",
        ),
        (
            f"SELECT p.id AS k, upper(name) || '!' AS name, count(*) {ITEMS} GROUP BY 1 ORDER BY name",
            f"SELECT p.id AS k, upper(name) || '!' AS name, count(*) {ITEMS} GROUP BY 1, p.name ORDER BY name",
        ),
        (
            """SELECT avg(n) FROM (SELECT c.id, c.country, least(count(o.id), 9) AS n FROM customers AS c
               LEFT JOIN orders AS o ON o.customer_id = c.id GROUP BY c.id) AS t WHERE country = 'DE'""",
            """SELECT avg(n) FROM (SELECT c.id, c.country, least(count(o.id), 9) AS n FROM customers AS c
               LEFT JOIN orders AS o ON o.customer_id = c.id GROUP BY c.id, c.country) AS t WHERE country = 'DE'""",
        ),
    ],
)
def test_a_primary_key_stands_for_the_columns_of_its_table(planner: Planner, short: str, long: str) -> None:
    one, other = planner.plan(short), planner.plan(long)

    assert [block.canonical for block in one.blocks] == [block.canonical for block in other.blocks]
    assert [block.outputs for block in one.blocks] == [block.outputs for block in other.blocks]
    assert one.outer == other.outer


def test_a_column_that_no_key_determines_is_no_key(planner: Planner) -> None:
    sql = f"SELECT p.category, count(*) {ITEMS} GROUP BY p.id"

    assert len(planner.block(sql).keys) == 2
    assert len(planner.block(sql.replace("BY p.id", "BY p.category")).keys) == 1
