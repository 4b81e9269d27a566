"""A count of different values of a complete list is at most as long as what conditions leave of the list."""

import pytest

from rules.mechanisms.noised_outputs import Count
from tests.planner.planned import Planner
from tests.support import shop


@pytest.mark.parametrize(
    ("sql", "most"),
    [
        ("SELECT count(DISTINCT status) FROM orders", 4),
        ("SELECT count(DISTINCT status) FROM orders WHERE status <> 'paid'", 3),
        ("SELECT count(DISTINCT status) FILTER (WHERE amount > 5) FROM orders WHERE status IN ('paid', 'open')", 2),
        ("SELECT count(DISTINCT city) FROM customers", 4),  # which the rules list
        ("SELECT count(DISTINCT city) FROM customers WHERE city = 'Lyon'", 1),
        ("SELECT count(DISTINCT is_vip) FROM customers", 2),
        ("SELECT count(DISTINCT extract(month FROM ordered_at)) FROM orders", 12),
        ("SELECT count(DISTINCT quantity) FROM order_items", 100),  # by a CHECK
        ("SELECT count(DISTINCT CASE WHEN status = 'paid' THEN 1 ELSE 0 END) FROM orders", 2),
        ("SELECT count(DISTINCT note) FROM orders", None),
        ("SELECT count(DISTINCT amount) FROM orders", None),  # bounds are no list
        ("SELECT count(DISTINCT customer_id) FROM orders", None),
    ],
)
def test_a_count_of_different_values_is_no_more_than_the_list(planner: Planner, sql: str, most: int | None) -> None:
    (output,) = planner.block(sql).outputs

    assert isinstance(output, Count) and output.most == most


def test_a_list_that_has_other_values_beside_it_is_no_bound(planner: Planner) -> None:
    declared = "city: {values: [Berlin, Lyon, Porto, Graz]}"
    rules = shop.RULES.replace(declared, declared.replace("]", "], other: true"))

    (output,) = Planner(planner.dsn, rules).block("SELECT count(DISTINCT city) FROM customers").outputs

    assert isinstance(output, Count) and output.most is None
