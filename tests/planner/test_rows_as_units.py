"""`unit: row`: every row is protected by itself, and its primary key says which row it is."""

import pytest

from tests.conftest import RealDatabase
from tests.planner.planned import Planner
from tests.support import shop as tables

RULES = """\
database: ${NOISEGATE_DATABASE}
unit: row
tables: {customers: {}, orders: {}, order_items: {}, products: public}
""" + tables.RULES[tables.RULES.index("budget:") :]


@pytest.fixture(scope="module")
def planner(shop: RealDatabase) -> Planner:
    return Planner(shop.dsn, RULES)


def test_the_rows_of_a_key_of_two_columns_are_bounded_after_a_join_that_multiplies_them(
    planner: Planner, shop: RealDatabase
) -> None:
    """Each item meets up to 30 products, of which 2 count."""
    sql = "SELECT count(*) FROM order_items AS i JOIN products AS p ON p.price > i.unit_price"
    block = planner.block(sql, rows_per_unit=2)

    assert planner.sensitivities(sql, rows_per_unit=2) == [2]
    counted = "SELECT sum(least(2, n)) FROM (SELECT order_id, product_id, count(*) AS n FROM order_items AS i"
    counted += " JOIN products AS p ON p.price > i.unit_price GROUP BY 1, 2) AS t"
    assert planner.numbers(block) == _numbers(shop, counted)


def test_rows_of_a_key_of_two_columns_are_united_and_told_apart(planner: Planner, shop: RealDatabase) -> None:
    sql = "SELECT count(*) FROM (SELECT quantity FROM order_items UNION ALL SELECT quantity FROM order_items) AS t"

    assert planner.sensitivities(sql, rows_per_unit=1) == [1]
    united = planner.block(sql, rows_per_unit=1)
    assert planner.numbers(united) == _numbers(shop, "SELECT count(*) FROM order_items")


def _numbers(shop: RealDatabase, sql: str) -> list[int]:
    with shop.connect() as connection:
        return [round(number) for row in connection.execute(sql).fetchall() for number in row[:1]]
