"""Values outside of what the rules declare as a group of their own, where the session or the rules ask for it."""

from collections.abc import Iterator
from fractions import Fraction

import psycopg
import pytest

from rules.mechanisms.release_plan import Block, PublicGroups
from tests.conftest import RealDatabase
from tests.planner.planned import Planner
from tests.support import shop as shop_data

NARROW = (
    ("city: {values: [Berlin, Lyon, Porto, Graz]}", "city: {values: [Lyon, Graz]%s}"),
    ("country: {values: [DE, FR, PT, AT]}", "country: {values: [FR, AT]%s}"),
    ("ordered_at: {lower: 2024-01-01, upper: 2026-12-31}", "ordered_at: {lower: 2025-01-01, upper: 2025-12-31%s}"),
)


def with_narrow_rules(shop: RealDatabase, more: str) -> Planner:
    rules = shop_data.RULES
    for old, new in NARROW:
        assert old in rules
        rules = rules.replace(old, new % more)
    return Planner(shop.dsn, rules)


@pytest.fixture
def planner(shop: RealDatabase) -> Planner:
    """By its rules these columns gather what is outside."""
    return with_narrow_rules(shop, ", other: true")


@pytest.fixture
def connection(shop: RealDatabase) -> Iterator[psycopg.Connection]:
    with shop.connect() as connected:
        yield connected


def counts(planner: Planner, connection: psycopg.Connection, block: Block) -> dict[tuple[str | None, ...], Fraction]:
    """Rows by group, without noise."""
    assert isinstance(block.groups, PublicGroups) and block.groups.ordinals is not None
    width, factor = block.key_cells, block.measures[0].factor
    rows = connection.execute(planner.sql_of(block)).fetchall()
    found = {tuple(row[:width]): Fraction(row[width], factor) for row in rows}
    pairs = zip(block.groups.rows, block.groups.ordinals, strict=True)
    return {group: found.get(ordinals, Fraction(0)) for group, ordinals in pairs}


@pytest.mark.parametrize(
    ("key", "outside"),
    [
        ("city", {("other",): "city NOT IN ('Lyon', 'Graz')", (None,): "city IS NULL"}),
        ("upper(city)", {("other",): "city NOT IN ('Lyon', 'Graz')", (None,): "city IS NULL"}),
        ("country", {(None,): "country NOT IN ('FR', 'AT')"}),
    ],
)
def test_all_rows_are_in_some_group(
    planner: Planner, connection: psycopg.Connection, key: str, outside: dict[tuple[str | None, ...], str]
) -> None:
    found = counts(planner, connection, planner.block(f"SELECT {key}, count(*) FROM customers GROUP BY 1"))

    assert sum(found.values()) == shop_data.CUSTOMERS
    for group, condition in outside.items():
        row = connection.execute(f"SELECT count(*) FROM customers WHERE {condition}").fetchone()
        assert row is not None and found[group] == row[0]


@pytest.mark.parametrize("union", ["UNION ALL", "UNION"])
def test_a_column_of_a_union_has_one_too(planner: Planner, connection: psycopg.Connection, union: str) -> None:
    branches = f"SELECT id, city FROM customers WHERE is_vip {union} SELECT id, city FROM customers WHERE NOT is_vip"
    block = planner.block(f"SELECT city, count(*) FROM ({branches}) AS u GROUP BY city")
    found = counts(planner, connection, block)

    assert found["other",] > 0 and sum(found.values()) == shop_data.CUSTOMERS


def test_moments_beyond_their_bounds_are_the_group_of_null(planner: Planner, connection: psycopg.Connection) -> None:
    made = planner.plan("SELECT date_trunc('month', ordered_at), count(*) FROM orders GROUP BY 1")
    (block,) = made.blocks

    assert isinstance(block.groups, PublicGroups) and len(block.groups.rows) == 13
    assert [block.groups.rows[number] for number in block.outside] == [(None,)]
    assert any("ordered_at" in notice and "the group NULL" in notice for notice in made.notices)
    whole = counts(planner, connection, block)
    total = counts(planner, connection, planner.block("SELECT count(*) FROM orders"))
    assert abs(sum(whole.values()) - total[()]) < 1


def test_one_group_more_costs_no_sensitivity_of_rows(shop: RealDatabase, planner: Planner) -> None:
    sql = "SELECT city, count(*) FROM customers JOIN orders ON customer_id = customers.id GROUP BY city"
    with_other, without = planner.block(sql), with_narrow_rules(shop, "").block(sql)

    assert with_other.measures[0].sensitivity == without.measures[0].sensitivity
    assert with_other.canonical != without.canonical
    assert not without.outside


def test_keys_of_two_tables_each_have_one(planner: Planner, connection: psycopg.Connection) -> None:
    sql = """SELECT city, date_trunc('year', ordered_at), count(*) FROM customers c JOIN orders o ON customer_id = c.id
             GROUP BY 1, 2"""
    found = counts(planner, connection, planner.block(sql))
    total = counts(planner, connection, planner.block("SELECT count(*) FROM orders"))

    assert len(found) == 4 * 2
    assert abs(sum(found.values()) - total[()]) < 1


def test_where_nothing_can_be_outside_there_is_no_such_group(planner: Planner) -> None:
    block = planner.block("SELECT city, count(*) FROM customers WHERE city = 'Lyon' GROUP BY city")

    assert isinstance(block.groups, PublicGroups) and block.groups.rows == (("Lyon",),)


def test_a_list_that_has_the_word_has_no_group_of_it(shop: RealDatabase) -> None:
    rules = shop_data.RULES.replace(NARROW[0][0], "city: {values: [Lyon, other], other: true}")
    block = Planner(shop.dsn, rules).block("SELECT city, count(*) FROM customers GROUP BY city")

    assert isinstance(block.groups, PublicGroups)
    assert block.groups.rows == (("Lyon",), ("other",), (None,))
    assert not block.outside, "since NULL may be a value of the column too"
