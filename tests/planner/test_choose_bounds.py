"""Where bounds are chosen: as the rules say, and where some measure can have less noise by it."""

from fractions import Fraction
from itertools import pairwise

import pytest

from rules.kernel.bounded import PARTS
from rules.release.bound_ladder import tallies
from rules.release.sensitivity import settled
from tests.conftest import RealDatabase
from tests.mechanisms.sent import sent
from tests.planner.planned import Planner
from tests.support import shop as shop_data

ORDERS = ("    unit: customer_id\n    rows_per_unit: 40\n", "    unit: customer_id\n    rows_per_unit: auto up to 40\n")
UNDECLARED = ("    unit: customer_id\n    rows_per_unit: 40\n", "    unit: customer_id\n")
AMOUNT = ("amount: {lower: 0, upper: 500}", "amount: {lower: 0, upper: 500, sum_per_unit: auto}")
ITEMS = ("    rows_per_unit: 120\n    sum_per_unit: off\n", "    rows_per_unit: 120\n    sum_per_unit: auto\n")
BY_DEFAULT = ("    sum_per_unit: off\n", "")  # of orders, and then of their items


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
        ("SELECT status, count(DISTINCT customer_id) FROM orders GROUP BY status", ["groups"]),
        ("SELECT status, count(DISTINCT customer_id), count(*) FROM orders GROUP BY status", ["rows", "groups"]),
        # nothing to gain
        ("SELECT amount > 5, count(DISTINCT customer_id) FROM orders GROUP BY 1", []),
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

    assert block.ladders[0].rungs == (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 40)
    assert lowered.ladders[0].rungs == (1, 2, 3, 4, 6, 7)
    assert [each.measures[0].sensitivity // each.measures[0].factor for each in (block, lowered)] == [40, 7]


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


@pytest.mark.parametrize(
    ("sql", "rows", "ladders"),
    [
        ("SELECT sum(amount) FROM orders", 8, ["sum(amount)"]),
        ("SELECT sum(amount) FROM orders", 7, []),
        # a count halves what a sum's noise needs to be
        ("SELECT sum(amount), count(amount) FROM orders", 20, ["sum(amount)"]),
        ("SELECT sum(amount), count(amount) FROM orders", 19, []),
        # one mean lies around zero, the other around the middle of its bounds
        ("SELECT avg(date '2025-06-30' - ordered_at::date) FROM orders", 20, ["sum over ordered_at"]),
        ("SELECT avg(date '2025-06-30' - ordered_at::date) FROM orders", 19, []),
        ("SELECT avg(date '2027-06-30' - ordered_at::date), avg(amount) FROM orders", 40, []),
        # all rows of a unit share what one may have
        ("SELECT avg(v) FROM (SELECT id, sum(amount) AS v FROM orders GROUP BY id) AS t", None, ["sum(sum)"]),
        ("SELECT sum(birth_date - date '2000-01-01') FROM customers", None, []),
        ("SELECT count(*), count(DISTINCT status), max(amount) FROM orders", 40, []),
    ],
)
def test_a_sum_has_a_ladder_where_its_declared_bound_is_many_times_a_row(
    shop: RealDatabase, sql: str, rows: int | None, ladders: list[str]
) -> None:
    block = with_rules(shop, BY_DEFAULT).block(sql, rows_per_unit=rows)

    assert [ladder.what for ladder in block.ladders] == ladders
    assert all(ladder.favours_height for ladder in block.ladders), "the rules bound them already"


def test_the_rules_or_the_session_keep_the_declared_bound(shop: RealDatabase) -> None:
    column = ("amount: {lower: 0, upper: 500}", "amount: {lower: 0, upper: 500, sum_per_unit: off}")
    sql = "SELECT sum(amount), sum(id % 10) FROM orders"

    assert len(with_rules(shop, BY_DEFAULT).block(sql).ladders) == 2
    assert [ladder.what for ladder in with_rules(shop, BY_DEFAULT, column).block(sql).ladders] == ["sum over id"]
    assert not with_rules(shop).block(sql).ladders
    chosen = with_rules(shop, (ORDERS[0] + BY_DEFAULT[0], ORDERS[1])).block(sql)
    assert [ladder.what for ladder in chosen.ladders] == ["rows"], "which bounds the sums too"


def test_a_mean_around_zero_has_a_sum_that_its_unit_is_bounded_by(shop: RealDatabase) -> None:
    planner = with_rules(shop, BY_DEFAULT)
    block = planner.block("SELECT avg(date '2025-06-30' - ordered_at::date) FROM orders")
    made = settled(block, (50,), planner.kernel, 1)

    assert [measure.sensitivity // measure.factor for measure in made.measures] == [50, 40]
    assert block.ladders[0].bound_text(50) == "25", "in days, of halves"


def test_orders_that_are_grouped_from_their_lines_are_as_many_as_the_rules_allow(shop: RealDatabase) -> None:
    planner = with_rules(shop)

    for key in ("i.order_id", "o.id", "o.id, o.customer_id"):
        rows = f"SELECT {key} FROM orders AS o JOIN order_items AS i ON i.order_id = o.id GROUP BY {key}"
        (measure,) = planner.block(f"SELECT count(*) FROM ({rows} HAVING count(*) > 1) AS t").measures
        assert measure.sensitivity // measure.factor == 40, key
    (measure,) = planner.block(
        "SELECT count(*) FROM (SELECT order_id, product_id FROM order_items GROUP BY 1, 2) AS t"
    ).measures
    assert measure.sensitivity // measure.factor == 120


def test_a_sum_with_a_ladder_is_no_sum_of_halves_beside_a_count(shop: RealDatabase) -> None:
    planner = with_rules(shop, ORDERS, AMOUNT)
    block = planner.block("SELECT count(amount), sum(amount) FROM orders")

    assert [measure.chosen_by for measure in block.measures] == [(0,), (0, 1)]
    low, high = (settled(block, bounds, planner.kernel, 1) for bounds in ((5, 7000), (5, 500_000)))
    assert [measure.sensitivity // measure.factor for measure in low.measures] == [5, 7000]
    assert [measure.sensitivity // measure.factor for measure in high.measures] == [5, 250_000]


def test_all_draws_share_the_epsilon_of_the_statement(shop: RealDatabase) -> None:
    planned = with_rules(shop, ORDERS, AMOUNT).plan("SELECT count(amount), sum(amount) FROM orders")

    (block,) = planned.blocks
    assert [str(measure.epsilon) for measure in (*block.measures, *block.ladders)] == ["0.35", "0.35", "0.15", "0.15"]
    assert planned.epsilon == block.epsilon == 1


@pytest.mark.parametrize(
    ("sql", "ratio"),
    [
        ("SELECT count(*) FROM orders", Fraction(3, 7)),
        ("SELECT status, count(*) FROM orders GROUP BY status", Fraction(1, 4)),
        ("SELECT date_trunc('month', ordered_at), count(*) FROM orders GROUP BY 1", Fraction(1, 9)),
        ("SELECT name, count(*) FROM customers JOIN orders ON customer_id = customers.id GROUP BY 1", Fraction(1, 4)),
    ],
)
def test_a_choice_has_a_share_by_the_number_of_groups(shop: RealDatabase, sql: str, ratio: Fraction) -> None:
    block = with_rules(shop, UNDECLARED).block(sql)

    assert abs(Fraction(block.ladders[0].epsilon) / Fraction(block.measures[0].epsilon) - ratio) < Fraction(1, 10**6)


def test_where_nothing_is_declared_a_cap_is_chosen_among_all(shop: RealDatabase) -> None:
    planner = with_rules(shop, UNDECLARED)
    (ladder,) = planner.block("SELECT count(*) FROM orders").ladders

    assert (ladder.rungs[0], ladder.rungs[-1], ladder.is_declared) == (1, 1_000_000, False)
    assert not planner.block("SELECT count(*) FROM orders", rows_per_unit=12).ladders, "a declared cap wins"
    assert not planner.block("SELECT count(*) FROM customers").ladders, "a proved one too"


def test_rows_are_never_cut_by_the_number_of_groups(shop: RealDatabase) -> None:
    """However many groups of a unit count, the sensitivity of rows and what is counted of them are the same."""
    planner = with_rules(shop)
    sql = "SELECT status, count(*), count(DISTINCT customer_id) FROM orders GROUP BY status"
    found = []
    for groups in (1, 50):
        (block,) = planner.plan(sql, groups_per_unit=groups).blocks
        with shop.connect() as connection:
            rows = connection.execute(planner.kernel.bounded(block.statement).sql).fetchall()
        counts = {row[0]: Fraction(row[1], block.measures[0].factor) for row in rows}
        found.append((block.measures[0].sensitivity, counts))

    assert found[0] == found[1]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) FROM orders",
        "SELECT status, count(*) FROM orders GROUP BY status",
        "SELECT name, count(*) FROM customers JOIN orders ON customer_id = customers.id GROUP BY name",
    ],
)
def test_no_unit_passes_a_step_more_than_once(rows_auto: Planner, shop: RealDatabase, sql: str) -> None:
    block = rows_auto.block(sql)

    assert block.tally is not None
    with shop.connect() as connection:
        found = tallies(block, sent(connection.execute(rows_auto.kernel.tally(block.tally).sql)))
        truth = connection.execute("SELECT count(DISTINCT customer_id) FROM orders").fetchone()

    assert truth is not None
    assert [len(heights) for heights in found] == [len(block.ladders[0].thresholds)]
    assert all(0 <= height <= PARTS * truth[0] for heights in found for height in heights)
    assert all(low >= high for heights in found for low, high in pairwise(heights)), (
        "what passes a step passed the last"
    )


def test_where_groups_are_found_a_bound_is_priced_by_how_many_there_are(rows_auto: Planner) -> None:
    """A step has to be worth its noise in all groups, whose number is known once their list is released."""
    (listed,) = rows_auto.block("SELECT status, count(*) FROM orders GROUP BY status").ladders
    (found,) = rows_auto.block("SELECT note, count(*) FROM orders GROUP BY note").ladders

    assert listed.by_groups == () and listed.over(9) == listed
    classes = [found.over(groups).thresholds for groups in (0, 1, 4, 5, 100, 10_000, 10**6)]
    assert classes == sorted(classes) and classes[0] == classes[1] < classes[4] < classes[5] < classes[6]
    assert {len(numbers) for numbers in classes} == {len(found.thresholds)}
