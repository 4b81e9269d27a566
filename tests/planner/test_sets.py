"""UNION, INTERSECT and EXCEPT of rows that show their units: sets of each unit's own rows."""

import pytest

from tests.planner.planned import Planner
from tests.support.shop import LOYAL

ORDERS = f"(SELECT * FROM orders WHERE customer_id NOT IN {LOYAL}) AS o"


@pytest.mark.parametrize(
    "sql",
    [
        f"""SELECT count(*) FROM (SELECT customer_id FROM {ORDERS} WHERE status = 'paid'
            INTERSECT SELECT customer_id FROM orders WHERE status = 'sent') AS t""",
        "SELECT count(*) FROM (SELECT id FROM customers EXCEPT SELECT customer_id FROM orders) AS t",
        f"""SELECT count(*), count(note) FROM (SELECT customer_id, status, note FROM {ORDERS}
            EXCEPT SELECT customer_id, status, note FROM orders WHERE amount > 200) AS t""",
        f"""SELECT count(*), count(*) FILTER (WHERE note IS NULL) FROM (SELECT note, customer_id FROM {ORDERS}
            INTERSECT SELECT note, customer_id FROM orders WHERE amount > 200) AS t""",
        f"""SELECT count(*), count(s) FROM (SELECT customer_id AS unit, status::text AS s FROM {ORDERS}
            UNION SELECT id, city FROM customers WHERE is_vip) AS t""",
        f"""SELECT count(*) FROM customers AS c WHERE id NOT IN (
            SELECT customer_id FROM orders WHERE amount > 99
            UNION SELECT customer_id FROM {ORDERS} WHERE note > 'a')""",
    ],
)
def test_a_set_of_the_rows_of_units_is_postgresqls_own(planner: Planner, sql: str) -> None:
    truth = planner.truth(sql)

    assert truth[0][0] > 0
    assert planner.run(sql) == truth


def test_a_set_of_units_has_one_row_of_each(planner: Planner) -> None:
    ids = "SELECT customer_id FROM orders WHERE status = '{}'"
    for word in ("UNION", "INTERSECT", "EXCEPT"):
        sql = f"SELECT count(*) FROM ({ids.format('paid')} {word} {ids.format('sent')}) AS t"
        assert planner.sensitivities(sql) == [1]


@pytest.mark.parametrize(
    "inner",
    [
        "SELECT status FROM orders UNION SELECT status FROM orders",
        "SELECT customer_id, id FROM orders UNION SELECT id, customer_id FROM orders",
        "SELECT customer_id FROM orders INTERSECT SELECT id FROM orders",
        "SELECT id FROM customers EXCEPT ALL SELECT customer_id FROM orders",
        "SELECT id FROM customers EXCEPT SELECT 7",
    ],
)
def test_rows_of_several_units_are_no_set(planner: Planner, inner: str) -> None:
    refusal = planner.refusal(f"SELECT count(*) FROM ({inner}) AS t")

    assert refusal.hint
