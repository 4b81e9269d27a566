# ruff: noqa: E501  (a statement a line)
"""Where other systems were seen to go wrong: on one database with and without one customer, and against PostgreSQL itself."""

import pytest

from rules.mechanisms.release_plan import Block, Measure
from tests.planner.planned import Planner, Rows
from tests.support import shop

REMOVED = (shop.LOYAL[0], 12, 33)
TRAPS = {
    "a clamp is lost when the summed column is a group key too": "SELECT amount, sum(amount) FROM orders WHERE amount BETWEEN 10 AND 12 GROUP BY amount",
    "DISTINCT is dropped": "SELECT count(DISTINCT status::text) FROM orders",
    "FILTER is ignored": "SELECT count(*) FILTER (WHERE amount > 400), sum(amount) FILTER (WHERE status = 'paid') FROM orders",
    "a variance takes the bounds of the values": "SELECT variance(amount), stddev_pop(amount) FROM orders",
    "an average over a subquery for each unit is unbounded": "SELECT avg(n) FROM (SELECT customer_id, count(*) AS n FROM orders GROUP BY customer_id) AS x WHERE n < 100",
    "LEAST turns NULL into a bound": "SELECT sum(least(greatest(length(note), 8), 20)), count(note) FROM orders",
    "sums of doubles depend on the order of rows": "SELECT sum(least(greatest(amount::float8, 0), 500)) FROM orders",
    "a count is clamped by the true size of the table": "SELECT count(*) FROM orders",
    "a join multiplies rows": "SELECT count(*), sum(i.quantity) FROM customers AS c JOIN orders AS o ON o.customer_id = c.id JOIN order_items AS i ON i.order_id = o.id",
    "CASE guards a division": "SELECT sum(CASE WHEN quantity <> 3 THEN least(greatest(unit_price / (quantity - 3), 0), 100) END) FROM order_items",
}


def numbers(rows: Rows, block: Block) -> dict[tuple[object, ...], list[int]]:
    """The integers of each group; rows of one group are added."""
    width, found = len(block.keys), dict[tuple[object, ...], list[int]]()
    for row in rows:
        before = found.get(row[:width], [0] * len(block.measures))
        found[row[:width]] = [one + int(str(two)) for one, two in zip(before, row[width:], strict=True)]
    return found


def without(customer: int) -> tuple[str, ...]:
    items = f"DELETE FROM order_items WHERE order_id IN (SELECT id FROM orders WHERE customer_id = {customer})"
    return items, f"DELETE FROM orders WHERE customer_id = {customer}", f"DELETE FROM customers WHERE id = {customer}"


@pytest.mark.parametrize("customer", REMOVED)
@pytest.mark.parametrize("sql", TRAPS.values(), ids=TRAPS.keys())
def test_one_customer_moves_no_number_further_than_claimed(planner: Planner, sql: str, customer: int) -> None:
    block = planner.block(sql)
    one, other = numbers(planner.run(sql), block), numbers(planner.run(sql, *without(customer)), block)

    for place, measure in enumerate(block.measures):
        nothing = [0] * len(block.measures)
        moved = sum(abs(one.get(group, nothing)[place] - other.get(group, nothing)[place]) for group in {*one, *other})
        assert isinstance(measure, Measure)
        assert moved <= measure.sensitivity


@pytest.mark.parametrize(
    "condition",
    [
        "left(city, 2)::char(5) = (left(city, 2) || '  ')::varchar(9)",
        "(left(city, 2) || ' ')::varchar(9) <> left(city, 2)::char(5)",
        "left(city, 2)::char(5) IS NOT DISTINCT FROM (left(city, 2) || '  ')::varchar(9)",
        "left(city, 2)::char(5) IN ('x', (left(city, 2) || '  ')::varchar(9))",
        "left(city, 2)::char(5) BETWEEN (left(city, 2) || '  ')::varchar(9) AND 'zz'",
        "CASE left(city, 2)::char(5) WHEN (left(city, 2) || '  ')::varchar(9) THEN true ELSE false END",
        "left(city, 2)::char(5) = left(city, 2) || '  '",
    ],
)
def test_blanks_at_the_end_count_beside_a_text_and_not_beside_a_character_n(planner: Planner, condition: str) -> None:
    sql = f"SELECT count(*) FROM customers WHERE {condition}"

    assert planner.run(sql) == planner.truth(sql)
