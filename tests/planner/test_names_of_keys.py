"""Which key of a block a name in its clauses means: USING makes one name of two columns, and subqueries have tables."""

import pytest

from tests.planner.planned import Planner

PRODUCTS = "(SELECT name AS city, price FROM products) AS p"
SHOWN = "SELECT {} FROM customers AS c LEFT JOIN " + PRODUCTS + " USING (city) GROUP BY {}"


@pytest.mark.parametrize(
    ("items", "keys", "shown"),
    [
        ("p.city", "city, p.city", ["k2"]),
        ("city", "p.city, c.city", ["k2"]),
        ("city, c.city, p.city", "city, p.city", ["k1", "k1", "k2"]),
        ("upper(p.city)", "upper(city), upper(p.city)", ["k2"]),
        ("c.city", "city", ["k1"]),
    ],
)
def test_a_column_that_using_merged_is_that_of_one_side(
    planner: Planner, items: str, keys: str, shown: list[str]
) -> None:
    """The other side's was shown in its place: a NULL where there is no partner."""
    sql = SHOWN.format(items, keys)
    right = sql.replace("FROM customers AS c LEFT JOIN " + PRODUCTS, f"FROM {PRODUCTS} RIGHT JOIN customers AS c")
    for text in (sql, right):
        outer = planner.plan(text).outer_with_parameters()
        assert [item.partition(" AS ")[0] for item in outer.removeprefix("SELECT ").split(" FROM ")[0].split(", ")] == [
            f"_ng1.{key}" for key in shown
        ]


@pytest.mark.parametrize(
    "subquery",
    [
        "SELECT max(p.price) FROM products AS p WHERE p.name = products.city",
        "SELECT max(p.price) FROM products AS p WHERE p.name = products.city AND EXISTS (SELECT FROM products)",
        "SELECT max(p.price) FROM products AS p JOIN products AS q ON q.name = products.city",
    ],
)
def test_a_table_under_another_name_hides_no_key(planner: Planner, subquery: str) -> None:
    outer = planner.plan(f"SELECT ({subquery}) FROM customers AS products GROUP BY city").outer_with_parameters()

    assert "= _ng1.k1" in outer
    assert "products.city" not in outer


def test_a_table_of_a_subquery_hides_a_key(planner: Planner) -> None:
    subquery = "SELECT max(products.price) FROM products WHERE products.name > 'a'"
    outer = planner.plan(f"SELECT ({subquery}), name FROM customers AS products GROUP BY name").outer_with_parameters()

    assert "products.name > 'a'" in outer
