"""Where bounds are chosen: as the rules say, and where some measure can have less noise by it."""

import pytest

from rules.noise.ladder import settled, tallies
from rules.noise.measures import Bound
from tests import shop as shop_data
from tests.conftest import RealDatabase
from tests.rewrite.planned import Planner

ORDERS = ("    unit: customer_id\n    rows_per_unit: 40\n", "    unit: customer_id\n    rows_per_unit: auto up to 40\n")
AMOUNT = ("amount: {lower: 0, upper: 500}", "amount: {lower: 0, upper: 500, sum_per_unit: auto}")
ITEMS = ("    rows_per_unit: 120\n", "    rows_per_unit: 120\n    sum_per_unit: auto\n")


def with_rules(shop: RealDatabase, *changes: tuple[str, str]) -> Planner:
    """A planner whose rules are changed so."""
    rules = shop_data.RULES
    for old, new in changes:
        assert old in rules
        rules = rules.replace(old, new, 1)
    return Planner(shop.dsn, rules)


@pytest.fixture
def rows_auto(shop: RealDatabase) -> Planner:
    return with_rules(shop, ORDERS)


@pytest.mark.parametrize(
    ("sql", "ladders"),
    [
        ("SELECT count(*) FROM orders", ["rows"]),
        ("SELECT avg(amount), count(DISTINCT ordered_at) FROM orders", ["rows"]),
        ("SELECT city, count(*) FROM customers JOIN orders ON customer_id = customers.id GROUP BY city", ["rows"]),
        ("SELECT status, count(DISTINCT customer_id) FROM orders GROUP BY status", ["rows"]),
        # nothing to gain
        ("SELECT count(DISTINCT customer_id) FROM orders", []),
        ("SELECT count(*) FROM customers", []),
        ("SELECT count(*) FROM (SELECT customer_id, count(*) AS n FROM orders GROUP BY 1) AS o WHERE n > 3", []),
        ("SELECT DISTINCT status FROM orders", []),
        # another table's rules
        ("SELECT count(*) FROM order_items", []),
    ],
)
def test_the_rules_of_a_table_leave_the_bound_of_its_rows_to_a_choice(
    rows_auto: Planner, sql: str, ladders: list[str]
) -> None:
    assert [ladder.what for ladder in rows_auto.block(sql).ladders] == ladders


def test_what_is_declared_is_the_last_rung(rows_auto: Planner) -> None:
    block = rows_auto.block("SELECT count(*) FROM orders")
    lowered = rows_auto.block("SELECT count(*) FROM orders", rows_per_unit=7)

    assert block.ladders[0].rungs == (1, 2, 3, 5, 10, 20, 40)
    assert lowered.ladders[0].rungs == (1, 2, 4, 7)
    assert [each.measures[0].sensitivity for each in (block, lowered)] == [40, 7]


@pytest.mark.parametrize(
    ("sql", "ladders"),
    [
        ("SELECT sum(amount) FROM orders", ["sum(amount)"]),
        ("SELECT sum(amount), sum(2 * amount) FROM orders", ["sum(amount)", "sum over amount"]),
        ("SELECT sum(amount) FILTER (WHERE status = 'sent') FROM orders", ["sum over status, amount"]),
        ("SELECT sum(unit_price * 2) FROM order_items", ["sum over unit_price"]),
        ("SELECT avg(amount), stddev(amount), count(amount) FROM orders", []),
        ("SELECT sum(id % 10) FROM orders", []),
    ],
)
def test_the_rules_of_a_column_or_table_leave_the_bounds_of_sums_to_a_choice(
    shop: RealDatabase, sql: str, ladders: list[str]
) -> None:
    assert [ladder.what for ladder in with_rules(shop, AMOUNT, ITEMS).block(sql).ladders] == ladders


def test_a_sum_with_a_ladder_is_no_sum_of_halves_beside_a_count(shop: RealDatabase) -> None:
    block = with_rules(shop, ORDERS, AMOUNT).block("SELECT count(amount), sum(amount) FROM orders")

    assert [measure.bounds for measure in block.measures] == [(Bound(0),), (Bound(0, 50_000), Bound(1))]
    assert [measure.sensitivity for measure in settled(block, (5, 7000)).measures] == [5, 7000]
    assert [measure.sensitivity for measure in settled(block, (5, 500_000)).measures] == [5, 250_000]


def test_all_draws_share_the_epsilon_of_the_statement(shop: RealDatabase) -> None:
    planned = with_rules(shop, ORDERS, AMOUNT).plan("SELECT count(amount), sum(amount) FROM orders")

    (block,) = planned.blocks
    assert [str(each.epsilon) for each in (*block.measures, *block.ladders)] == ["0.4", "0.4", "0.1", "0.1"]
    assert planned.epsilon == block.epsilon == 1


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) FROM orders",
        "SELECT status, count(*) FROM orders GROUP BY status",
        "SELECT name, count(*) FROM customers JOIN orders ON customer_id = customers.id GROUP BY name",
    ],
)
def test_a_tally_counts_each_unit_once(rows_auto: Planner, shop: RealDatabase, sql: str) -> None:
    block = rows_auto.block(sql)

    with shop.connect() as connection:
        found = tallies(block, [tuple(map(str, row)) for row in connection.execute(block.tally)])
        truth = connection.execute("SELECT count(DISTINCT customer_id) FROM orders").fetchone()

    assert truth is not None
    assert [sum(tally) for tally in found] == [truth[0]]
