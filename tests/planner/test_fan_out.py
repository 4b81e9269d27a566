# ruff: noqa: E501  (a statement a line)
"""Joins with public tables multiply rows, and the cap with them: by the public rows that a row usually meets."""

from collections.abc import Iterator
from fractions import Fraction
from math import ceil, sqrt

import pytest

from rules.mechanisms.release_plan import Block
from rules.refusal import TooComplex
from tests.conftest import RealDatabase, make_shop
from tests.planner.planned import Planner, planned
from tests.support.shop import LOYAL

TEN, FOURTEEN = 10, 14  # products of a category, and below 20


@pytest.fixture
def planner(shop: RealDatabase) -> Planner:
    return Planner(shop.dsn)


@pytest.fixture
def own_shop(shop: RealDatabase) -> Iterator[RealDatabase]:
    made = make_shop(shop.cluster, "own_shop")
    yield made
    with shop.connect() as connection:
        connection.execute("DROP DATABASE own_shop WITH (FORCE)")


@pytest.mark.parametrize(
    ("source", "rows"),
    [
        ("orders JOIN products ON category = 'book'", 40 * TEN),
        ("orders CROSS JOIN products", 40 * 30),
        ("orders JOIN products ON price < 20", 40 * FOURTEEN),
        ("orders, products WHERE price < 20", 40 * FOURTEEN),
        ("order_items i JOIN products p ON p.id = i.product_id", 120),
        ("order_items i JOIN products p ON p.id = i.product_id JOIN products q USING (category)", 120 * TEN),
        ("order_items i, products p, products q WHERE p.id = i.product_id AND q.category = p.category", 120 * TEN),
        ("orders JOIN products p ON true JOIN products q ON q.category = 'tool' AND p.price > 0", 40 * 30 * TEN),
        ("orders JOIN products ON category = 'none'", 40),
    ],
)
def test_a_cap_is_as_many_times_what_is_declared(planner: Planner, source: str, rows: int) -> None:
    (block,) = planner.plan(f"SELECT count(*) FROM {source}").blocks

    assert block.statement.rows_per_unit == rows
    assert [cut.most for cut in block.cuts] == [rows]


@pytest.mark.parametrize(
    ("source", "counts", "others"),
    [
        ("order_items i JOIN products p ON p.id = i.product_id JOIN products q USING (category)", (10, 10, 10, 1), 1),
        ("orders JOIN (VALUES ('a', 1), ('a', 2), ('a', 3), ('b', 4)) AS v (note, x) USING (note)", (3, 1), 1),
        ("orders JOIN (VALUES ('a', 1), ('a', 2), ('b', 4)) AS v (note, x) USING (note), products AS p", (2, 1), 31),
    ],
)
def test_where_few_rows_meet_many_the_cap_is_what_is_usual(
    own_shop: RealDatabase, source: str, counts: tuple[int, ...], others: int
) -> None:
    with own_shop.connect() as connection:
        connection.execute("INSERT INTO products VALUES (1001, 'new', 'toy', 1)")
    declared = 120 if "order_items" in source else 40
    mean, square = (others * sum(n**power for n in counts) / len(counts) for power in (1, 2))
    square *= others

    (block,) = planned(Planner(own_shop.dsn), f"SELECT count(*) FROM {source}").blocks

    usual = ceil(declared * mean + 1.3 * sqrt((square - mean**2) * declared) - 1e-2)
    assert block.statement.rows_per_unit == usual < declared * max(counts) * others
    (cut,) = block.cuts
    assert str(cut).startswith(f"{usual:,} rows of a unit (the rules' cap of {declared}, whose rows meet ")


DAYS = "generate_series(date '2025-12-01', date '2025-12-31', interval '1 day') AS day"


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        (
            f"SELECT day, count(d) FROM {DAYS} LEFT JOIN (SELECT ordered_at::date AS d FROM orders) AS o ON d = day::date",
            1,
        ),
        (f"SELECT day, count(id) FROM {DAYS} LEFT JOIN orders ON ordered_at::date = day::date AND amount > 5", 1),
        (f"SELECT day, count(id) FROM orders RIGHT JOIN {DAYS} ON date_trunc('day', ordered_at) = day", 1),
        (f"SELECT day, count(id) FROM {DAYS} JOIN orders ON ordered_at::date = day::date", 1),
        (f"SELECT day, count(id) FROM {DAYS} LEFT JOIN orders ON ordered_at >= day", 31),
        (f"SELECT day, count(id) FROM {DAYS} LEFT JOIN orders ON amount < 9 AND day::date = '2025-12-03'", 1),
        (
            f"SELECT day, count(id) FROM {DAYS} LEFT JOIN orders ON ordered_at::date = greatest(day::date, '2025-12-30')",
            31,
        ),
        (
            f"SELECT day, count(id) FROM {DAYS} LEFT JOIN orders ON ordered_at::date = CASE WHEN day > '2025-12-09' THEN date '2025-12-01' ELSE day::date END",
            31,
        ),
        (
            f"SELECT day, count(id) FROM {DAYS} LEFT JOIN orders ON date_trunc('week', ordered_at) = date_trunc('week', day)",
            27,
        ),
    ],
)
def test_a_row_meets_one_day_of_a_calendar(planner: Planner, sql: str, rows: int) -> None:
    """Whether the days are compared as they are or as dates: different moments make as many different dates."""
    made = planned(planner, f"{sql} GROUP BY day")

    (block,) = made.blocks
    assert block.statement.rows_per_unit == 40 * rows
    assert not any("a join multiplies rows" in notice for notice in made.notices)


@pytest.mark.parametrize(
    "source",
    [
        "orders, products p, products q, products r, products s",
        "orders JOIN (products p CROSS JOIN products q CROSS JOIN products r CROSS JOIN products s) ON true",
        "customers c JOIN (SELECT DISTINCT customer_id FROM orders, products p, products q, products r, products s) t"
        " ON t.customer_id = c.id WHERE c.email = 'a'",
        "customers c WHERE EXISTS (SELECT FROM orders o, products p, products q, products r, products s"
        " WHERE o.customer_id = c.id AND p.price + q.price + r.price + s.price < 0)",
        "orders o WHERE EXISTS (SELECT FROM products p, products q, products r, products s"
        " WHERE p.price + q.price + r.price + s.price < o.amount)",
        "orders JOIN (products p LEFT JOIN products q ON q.price < p.price LEFT JOIN products r ON r.price < p.price"
        " LEFT JOIN products s ON s.price < p.price) ON true",
    ],
)
def test_what_public_rows_multiply_before_rows_are_cut_is_bounded(planner: Planner, source: str) -> None:
    """The time of such a statement tells of the one row that its condition chooses."""
    planner.rules = planner.rules.replace("      email: hidden\n", "")

    with pytest.raises(TooComplex, match="rows of public tables, and 100,000 are allowed"):
        planner.plan(f"SELECT count(*) FROM {source}")


@pytest.mark.parametrize(
    "source",
    [
        "orders, products p, products q, products r",
        "order_items i JOIN (products p LEFT JOIN products q ON q.id = p.id + 1) ON p.id = i.product_id"
        " JOIN products r ON r.id = i.product_id JOIN products s ON s.id = i.product_id"
        " JOIN products t ON t.category = p.category",
        "order_items i WHERE EXISTS (SELECT FROM products p, products q WHERE p.id = i.product_id AND q.id = p.id + 1)",
    ],
)
def test_what_they_multiply_less_isplanned(planner: Planner, source: str) -> None:
    assert planner.plan(f"SELECT count(*) FROM {source}").blocks


def test_caps_of_tables_that_are_joined_by_their_units_are_told_one_by_one(planner: Planner) -> None:
    (both,) = planner.block("SELECT count(*) FROM orders a JOIN orders b USING (customer_id)").cuts
    (one,) = planner.block("SELECT count(*) FROM orders").cuts

    assert str(both) == "1,600 rows of a unit (the rules' caps of 40 and 40, multiplied)"
    assert str(one) == "40 rows of a unit (the rules' cap)"


def test_where_it_is_not_counted_the_statement_says_that_it_cuts(planner: Planner) -> None:
    made = planner.plan(
        "SELECT count(*) FROM orders JOIN (products p LEFT JOIN products q ON q.id = p.id + 10) ON p.price < 20"
    )

    (block,) = made.blocks
    assert block.statement.rows_per_unit == 40
    assert "a join multiplies rows: at most 40 rows of each unit are counted" in made.notices


def test_where_nobody_says_a_number_it_is_the_most_among_which_one_is_chosen(planner: Planner) -> None:
    block = planner.block("SELECT count(*) FROM customers JOIN products ON category = 'book'")

    (ladder,) = block.ladders
    assert ladder.rungs[-1] == TEN


def test_a_public_row_that_comes_between_plan_and_run_does_not_lift_the_cap(own_shop: RealDatabase) -> None:
    """A unit with 150 orders, each of which meets twelve books in place of ten."""
    planner = Planner(own_shop.dsn)
    block = planner.block("SELECT count(*) FROM orders JOIN products ON category = 'book'")
    with own_shop.connect() as connection:
        connection.execute("INSERT INTO products VALUES (1001, 'new', 'book', 1), (1002, 'newer', 'book', 1)")
        before = _counted(planner, own_shop, block)
        connection.execute(f"DELETE FROM order_items USING orders o WHERE o.id = order_id AND customer_id = {LOYAL[0]}")
        connection.execute(f"DELETE FROM orders WHERE customer_id = {LOYAL[0]}")

    assert before - _counted(planner, own_shop, block) == 40 * TEN


def _counted(planner: Planner, shop: RealDatabase, block: Block) -> Fraction:
    with shop.connect() as connection:
        found = connection.execute(planner.kernel.bounded(block.statement).sql).fetchone()
    assert found is not None
    return Fraction(found[-1], block.measures[0].factor)
