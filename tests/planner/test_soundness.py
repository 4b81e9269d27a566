"""Careless readings that break privacy, each with the rule that closes it; numbers are those of the findings."""

import re
from dataclasses import replace
from fractions import Fraction

import pytest

from rules.aggregates.sums import find_lattice
from rules.catalog import Key
from rules.mechanisms.draw import OpenDPNoise
from rules.mechanisms.exponential_choice import choose
from rules.mechanisms.release_plan import Choice, Measure, PrivateGroups, PublicGroups, Quantile
from rules.refusal import NotAllowed, NotSupported
from rules.release.release import draw, release
from tests.conftest import RealDatabase
from tests.mechanisms.sent import sent
from tests.mechanisms.sources import NoNoise
from tests.planner.planned import Planner
from tests.support import shop as shop_data

MANY = """
INSERT INTO orders (customer_id, ordered_at, status, amount)
SELECT 1, '2024-05-05', 'open', 500 FROM generate_series(1, 400)
"""


def is_cut(sql: str) -> bool:
    """Whether a unit's rows are counted before they are added up: it might have more than count."""
    return " pairs AS " in sql or " beyond AS " in sql


def test_01_a_lowered_cap_is_enforced_not_believed(planner: Planner) -> None:
    """SET noisegate.rows_per_unit = 1 is no proof that a customer has one order."""
    sql = "SELECT count(*) FROM orders"
    (one,) = planner.block(sql, rows_per_unit=1).measures
    assert one.sensitivity == one.factor
    assert is_cut(planner.sql(sql, rows_per_unit=1))


def test_01_only_a_unique_key_leaves_truncation_out(planner: Planner) -> None:
    for numbers in ("count(*)", "segment, count(city)", "city, count(*), sum(CASE WHEN is_vip THEN 2 ELSE 1 END)"):
        grouped = f" GROUP BY {numbers.partition(',')[0]}" if "," in numbers else ""
        assert not is_cut(planner.sql(f"SELECT {numbers} FROM customers{grouped}"))
    for grouped in ("", " GROUP BY status"):
        assert is_cut(planner.sql(f"SELECT count(*) FROM orders{grouped}"))


def test_01_a_table_with_inheritance_children_proves_nothing(shop: RealDatabase) -> None:
    planner = Planner(
        shop.dsn, _rules("  customers:\n    unit: id\n", "  customers:\n    unit: id\n    rows_per_unit: 1\n")
    )
    tables = tuple(replace(table, has_children=table.name.name == "customers") for table in planner.catalog.tables)
    planner.catalog = replace(planner.catalog, tables=tables)
    assert is_cut(planner.sql("SELECT count(*) FROM customers"))


def _rules(old: str, new: str) -> str:
    assert old in shop_data.RULES
    return shop_data.RULES.replace(old, new)


@pytest.mark.parametrize(
    ("join", "rows"),
    [
        ("customers AS c JOIN orders AS o ON o.customer_id = c.id", 40),
        ("customers AS c LEFT JOIN orders AS o ON o.customer_id = c.id", 40),
        ("orders AS o LEFT JOIN customers AS c ON o.customer_id = c.id", 40),
        ("customers AS c FULL JOIN customers AS d ON c.id = d.id AND c.city = d.city", 2),
        ("orders AS c RIGHT JOIN order_items AS o ON o.order_id = c.id", 120),
        ("order_items AS c RIGHT JOIN orders AS o ON c.order_id = o.id", 4800),
        ("orders AS c FULL JOIN customers AS o ON c.customer_id = o.id", 41),
        ("orders AS c JOIN orders AS o ON c.customer_id = o.customer_id", 1600),
    ],
)
def test_02_joins_multiply_rows_as_their_keys_allow(planner: Planner, join: str, rows: int) -> None:
    assert planner.sensitivities(f"SELECT count(*) FROM {join}") == [rows]


def test_02_a_key_on_the_extended_side_of_an_outer_join_is_not_determined(planner: Planner) -> None:
    """A customer's country and NULL are two groups of one unit there; no unit is in more than are listed."""
    join = "orders AS o LEFT JOIN customers AS c ON c.id = o.customer_id"
    sql = f"SELECT c.country, count(DISTINCT o.customer_id) FROM {join}"
    assert planner.sensitivities(f"{sql} AND o.amount > 100 GROUP BY c.country") == [5]
    assert planner.sensitivities(f"{sql.replace('LEFT', '')} GROUP BY c.country") == [1]


def test_02_an_equality_below_or_links_nothing(planner: Planner) -> None:
    refusal = planner.refusal(
        "SELECT count(*) FROM orders AS o JOIN customers AS c ON o.customer_id = c.id OR c.is_vip"
    )
    assert isinstance(refusal, NotAllowed)


def test_03_a_centre_off_the_lattice_counts_in_halves(planner: Planner) -> None:
    """Values 0 and 1 are at most 1 from the middle in halves of a step, never 1/2 rounded down to 0."""
    total, rows = planner.sensitivities("SELECT avg(CASE WHEN is_vip THEN 1 ELSE 0 END) FROM customers")
    assert (total, rows) == (1, 1)


def test_03_bounds_are_rounded_inward() -> None:
    lattice = find_lattice(Fraction("0.004"), Fraction("99.996"), Fraction("0.01"), 1, binary=False)
    assert lattice is not None
    assert (lattice.low, lattice.high) == (1, 9999)


@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize("width", ["1e-12", "0.000001", "1", "1e15"])
def test_03_narrow_bounds_have_as_many_steps_as_wide_ones(width: str, binary: bool) -> None:
    lattice = find_lattice(Fraction(0), Fraction(width), None, 1, binary=binary)
    assert lattice is not None
    assert lattice.high - lattice.low >= 10**5


@pytest.mark.parametrize("step", ["0.01", None])
def test_03_narrow_bounds_far_from_zero_have_a_step_between_or_beside_them(step: str | None) -> None:
    """A thousand million rows of them have room in a sum, so that a step is wider than the bounds are."""
    low, high = Fraction(10**15 + 1), Fraction(10**15 + 1001)
    lattice = find_lattice(low, high, None if step is None else Fraction(step), 1, binary=False, summed=high)
    assert lattice is not None
    for end in (lattice.low, lattice.high):
        assert abs(end * lattice.step / low - 1) < 1e-9


def test_03_bounds_without_any_value_have_no_lattice() -> None:
    assert find_lattice(Fraction("0.2"), Fraction("0.8"), Fraction(1), 1, binary=False) is None


def test_04_large_bounds_take_a_coarser_step_instead_of_overflowing(planner: Planner) -> None:
    (measure,) = planner.block("SELECT sum(least(greatest(amount * 1e12, 0), 5e14)) FROM orders").measures
    assert measure.sensitivity <= 2**60


@pytest.mark.parametrize(
    "asked",
    [
        "sum(extract(epoch FROM ordered_at))",
        "avg(ordered_at - timestamptz '2000-01-01')",
        "stddev(extract(epoch FROM ordered_at))",
        "corr(extract(epoch FROM ordered_at), sqrt(amount))",
        "var_pop(amount::float8)",
    ],
)
def test_04_not_even_the_rows_of_a_large_table_saturate_a_sum(planner: Planner, asked: str) -> None:
    """Sums of microseconds, and their squares, were saturated by some thousand rows, and wrong without a word."""
    for sensitivity in planner.sensitivities(f"SELECT {asked} FROM orders"):
        assert sensitivity // 40 * 2**28 <= 2**62


def test_04_a_narrow_range_far_from_zero_keeps_its_steps_where_the_sum_is_centred(planner: Planner) -> None:
    where = "ordered_at >= '2025-06-01 12:00:00' AND ordered_at < '2025-06-01 12:00:00.5'"
    assert planner.block(f"SELECT avg(extract(epoch FROM ordered_at)) FROM orders WHERE {where}").measures


def test_04_nor_do_many_rows_of_a_unit_take_them_from_it() -> None:
    """An average between 10^15 and 10^15 + 1000 was always 10^15, where a unit may have a million rows."""
    low, width = Fraction(10**15), Fraction(1000)
    lattice = find_lattice(low, low + width, Fraction(1), 10**6, binary=False, summed=width)
    assert lattice is not None
    assert lattice.step * lattice.width == width


@pytest.mark.parametrize("is_binary", [True, False])
@pytest.mark.parametrize("width", [Fraction(1000), Fraction(1, 10**9), Fraction(10**12)])
def test_04_equal_rows_of_a_large_table_are_rounded_by_less_than_noise(width: Fraction, *, is_binary: bool) -> None:
    """A million doubles of 0.1 between 0 and 1000 had the sum 100097.66: of more rows it is beyond the margin."""
    lattice = find_lattice(Fraction(0), width, None, 1, binary=is_binary, summed=width)
    assert lattice is not None
    assert lattice.step / 2 * 2**28 <= width


def test_04_the_last_sum_is_saturated(planner: Planner) -> None:
    assert "least(greatest(coalesce(sum(" in planner.sql("SELECT sum(amount) FROM orders")


TIES = """
INSERT INTO orders (id, customer_id, ordered_at, status, amount)
SELECT 100000 + n, 1 + n % 50, '2024-05-05', CASE WHEN n / 50 % 3 = {} THEN 'paid'::status ELSE 'open' END, 1
FROM generate_series(0, 149) AS n
"""
LATEST = "(PARTITION BY customer_id ORDER BY ordered_at::date)"
REPEATED = "SELECT customer_id, ordered_at, status FROM orders WHERE id >= 100000"


def test_06_rows_that_come_at_the_same_time_are_in_one_order_in_every_plan(planner: Planner) -> None:
    """The same rows, stored in another order: ties are decided by their values, not by where they lie."""
    numbered = f"SELECT *, row_number() OVER {LATEST} AS rn FROM ({REPEATED} UNION ALL {REPEATED}) AS twice"
    sql = f"SELECT count(*) FROM ({numbered}) AS t WHERE rn = 1 AND status = 'paid'"
    assert planner.run(sql, TIES.format(0)) == planner.run(sql, TIES.format(2))


def test_06_a_unique_key_has_the_last_word_on_order(planner: Planner) -> None:
    numbered = f"SELECT status, row_number() OVER {LATEST} AS rn FROM orders"
    sql = planner.sql(f"SELECT count(*) FROM ({numbered}) AS t WHERE rn = 1 AND status = 'paid'")
    assert '::date), t1."id", ' in sql  # what else the statement reads stands behind it, if it were no key after all


def test_06_values_that_are_equal_and_not_the_same_are_told_apart(planner: Planner) -> None:
    """5.0 and 5.000000 are equal, and their quotients are not."""
    doubled = "SELECT customer_id, amount * 1.0 AS x FROM orders UNION ALL SELECT customer_id, amount FROM orders"
    numbered = f"SELECT x, row_number() OVER (PARTITION BY customer_id) AS rn FROM ({doubled}) AS twice"
    sql = planner.sql(f"SELECT avg(least(greatest(x / 3, 0), 100)) FROM ({numbered}) AS t WHERE rn = 1")
    assert "numeric_send(" in sql


def test_09_listed_texts_have_one_capital_in_every_locale(planner: Planner) -> None:
    """To a Turkish one lower('I') is no i, which would be a value that the list does not have."""
    sql = planner.sql("SELECT lower(city), count(*) FROM customers GROUP BY 1")
    assert re.search(r'lower\(\(CASE WHEN .* THEN t1."city" END\) COLLATE "C"\) COLLATE "default"', sql)


@pytest.mark.parametrize(
    "unit_rows", ["max(x)", "sum(DISTINCT x)", "lag(x) OVER (PARTITION BY customer_id ORDER BY x)"]
)
def test_06_which_of_two_equal_values_comes_first_is_not_seen(planner: Planner, unit_rows: str) -> None:
    """7 / 3 has 16 digits and 7.000000000000000000 / 3 has 18: the same rows, stored in another order."""
    rows = (
        "INSERT INTO orders (id, customer_id, ordered_at, status, amount) VALUES (100001, 5, '2024-01-01', 'open', 7)"
    )
    widths = ("x * 1.000000000000000000", "x")
    found = []
    for first, second in (widths, widths[::-1]):
        both = " UNION ALL ".join(
            f"SELECT customer_id, {text.replace('x', 'amount')} AS x FROM orders WHERE id = 100001"
            for text in (first, second)
        )
        source = f"SELECT {unit_rows} AS x FROM ({both}) AS t" + (
            "" if "OVER" in unit_rows else " GROUP BY customer_id"
        )
        found.append(planner.run(f"SELECT x::text, count(*) FROM ({source}) AS u GROUP BY 1", rows))
    assert sorted(map(str, found[0])) == sorted(map(str, found[1]))


def test_07_a_count_below_a_block_is_clamped_before_it_is_believed(planner: Planner) -> None:
    """A customer with 400 orders more adds no more than 40 to a sum of counts."""
    sql = "SELECT sum(n) FROM (SELECT customer_id, count(*) AS n FROM orders GROUP BY customer_id) AS t"
    assert planner.sensitivities(sql) == [40]
    ((before,),), ((after,),) = planner.run(sql), planner.run(sql, MANY)
    assert abs(int(str(after)) - int(str(before))) <= 40


def test_08_a_null_in_a_list_says_nothing_for_everybody(planner: Planner) -> None:
    inner = "SELECT o.customer_id FROM customers AS x LEFT JOIN orders AS o ON o.customer_id = x.id"
    refusal = planner.refusal(f"SELECT count(*) FROM customers AS c WHERE c.id NOT IN ({inner})")
    assert "NULL" in refusal.message


def test_08_public_rows_are_not_chosen_by_protected_ones(planner: Planner) -> None:
    for sql in (
        "SELECT name FROM products AS p WHERE EXISTS (SELECT 1 FROM order_items AS i WHERE i.product_id = p.id)",
        "SELECT count(*) FROM customers AS c WHERE EXISTS (SELECT 1 FROM orders AS o WHERE o.amount > 400)",
        "SELECT name FROM products LIMIT (SELECT id FROM customers WHERE is_vip)",
    ):
        assert planner.refusal(sql).sqlstate in ("42501", "0A000")


def test_09_equal_keys_have_one_text(planner: Planner) -> None:
    """5.0 and 5.000000 are one group, whoever brought which."""
    sql = planner.sql("SELECT amount * 1.00, count(*) FROM orders GROUP BY 1")
    assert "trim_scale" in sql
    assert 'COLLATE "C"' in planner.sql("SELECT name, count(*) FROM customers GROUP BY name")


def test_11_a_list_of_groups_that_was_released_is_answered_as_it_is(planner: Planner) -> None:
    """The last customer of a group may be gone, and a new group be there: neither shows in a later measure's answer."""
    block = planner.block("SELECT note, count(*) FROM orders GROUP BY note")
    assert isinstance(block.groups, PrivateGroups)
    known = (("call 1",), ("call 2",))
    rows = [(note, *(str(7 * measure.factor) for measure in block.measures)) for note in ("call 2", "call 3")]
    draws = draw(block, range(len(block.measures)), len(known), NoNoise(), group_size=1)

    answer = release(block, known, sent(rows), draws)

    assert answer.groups == known
    assert set(answer.values.values()) == {(0, 7)}


def test_14_a_check_bounds_and_is_clamped_all_the_same(planner: Planner) -> None:
    """NaN passes price >= 0: the clamp stands in the statement, whatever a CHECK says."""
    assert "least(greatest(" in planner.sql("SELECT sum(quantity) FROM order_items")
    assert planner.sensitivities("SELECT sum(quantity) FROM order_items") == [120 * 100]


def test_15_a_foreign_key_links_only_as_the_rules_name_it(shop: RealDatabase) -> None:
    """A row that names its customer itself is not linked by the order that it also names."""
    rules = _rules("unit: order_id -> orders.id", "unit: product_id")
    planner = Planner(shop.dsn, rules)
    sql = "SELECT count(*) FROM order_items AS i JOIN orders AS o ON i.order_id = o.id"
    assert "joined only where both belong to the same customers.id" in "".join(planner.block(sql).notices)
    assert '(t1."product_id" = t2."customer_id")' in planner.sql(sql)


def test_15_rows_of_one_order_are_of_one_unit(planner: Planner) -> None:
    """Two items meet by the key that leads both to their unit; by any other column they may be anybody's."""
    pair = "SELECT count(*) FROM order_items AS a JOIN order_items AS b ON a.{0} = b.{0}"
    assert planner.sensitivities(pair.format("order_id")) == [120 * 120]
    assert isinstance(planner.refusal(pair.format("product_id")), NotAllowed)


def test_18_clamping_leaves_null_alone(planner: Planner) -> None:
    """least(greatest(NULL, 0), 500) is 0 in PostgreSQL: NULLs would become bounds."""
    ((total, rows),) = planner.run(
        "SELECT avg(CASE WHEN status = 'open' THEN amount END) FROM orders WHERE false OR amount > 499"
    )
    assert int(str(rows)) >= 0
    assert abs(int(str(total))) <= 50000 * int(str(rows))


def test_18_shares_of_a_long_unit_are_not_bent(planner: Planner) -> None:
    """400 rows of which a quarter is paid stay a quarter when 40 are counted."""
    sql = "SELECT count(*), count(*) FILTER (WHERE status = 'paid') FROM orders WHERE customer_id = 1"
    paid = MANY.replace("'open'", "CASE WHEN generate_series % 4 = 0 THEN 'paid'::status ELSE 'open' END")
    ((rows, share),) = planner.run(sql, "DELETE FROM order_items", "DELETE FROM orders WHERE customer_id = 1", paid)
    assert (int(str(rows)), int(str(share))) in ((40, 10), (40, 11))


def test_25_patterns_that_fail_on_some_rows_are_refused_when_planned(planner: Planner) -> None:
    refusal = planner.refusal("SELECT count(*) FROM customers WHERE name LIKE 'Al\\'")
    assert isinstance(refusal, NotSupported)
    assert "escape character" in refusal.message


def test_26_a_block_for_each_row_is_one_grouped_block(planner: Planner) -> None:
    sql = "SELECT p.name, (SELECT count(*) FROM order_items AS i WHERE i.product_id = p.id) FROM products AS p"
    assert len(planner.block(sql).keys) == 1
    assert planner.refusal(sql.replace("= p.id", "> p.id")).sqlstate == "0A000"


def test_disjoint_units_of_a_row_are_refused_in_a_union(planner: Planner) -> None:
    sql = "SELECT count(*) FROM (SELECT id FROM customers UNION ALL SELECT id FROM products) AS t"
    assert planner.refusal(sql).sqlstate in ("42501", "0A000")


def test_04_units_that_go_together_take_a_coarser_step_too(shop: RealDatabase) -> None:
    """Noise for a sensitivity beyond 2^60 cannot be drawn: every such statement was charged and never answered."""
    rules = _rules("amount: {lower: 0, upper: 500}", "amount: {lower: 0, upper: 1000000000000000}")
    for group_size in (1, 1000):
        planner = Planner(shop.dsn, f"{rules}group_size: {group_size}\n")
        for asked in ("sum(amount)", "avg(amount)", "var_pop(amount)", "corr(amount, id)"):
            block = planner.block(f"SELECT {asked} FROM orders WHERE id BETWEEN 0 AND 100")
            draw(block, range(len(block.measures)), 1, OpenDPNoise(), group_size=group_size)


def test_21_a_fraction_with_many_digits_is_chosen_as_any_other(planner: Planner) -> None:
    """Its denominator multiplies the sensitivity: with twenty digits a statement was charged and never answered."""
    block = planner.block("SELECT percentile_cont(0.12345678901234567891) WITHIN GROUP (ORDER BY amount) FROM orders")
    third = planner.block("SELECT percentile_cont(0.3333333333333333) WITHIN GROUP (ORDER BY amount) FROM orders")
    (choice,), (thirds,) = block.measures, third.measures

    assert isinstance(choice, Choice) and isinstance(thirds, Choice)
    assert thirds.target == Quantile(Fraction(1, 3))
    choose(choice, [1] * choice.candidates, OpenDPNoise(), group_size=1000)


def test_05_different_values_are_bounded_over_all_groups(planner: Planner) -> None:
    """A customer with one note in twelve months moves twelve counts: m triples of unit, month and note are kept."""
    sql = "SELECT date_trunc('month', ordered_at), count(DISTINCT note) FROM orders GROUP BY 1"
    assert planner.sensitivities(sql) == [40]
    notes = MANY.replace("amount)", "amount, note)").replace("'2024-05-05'", "'2024-01-01'::date + generate_series * 2")
    notes = notes.replace("500 FROM", "500, 'the same' FROM")
    before, after = planner.run(sql), planner.run(sql, notes)
    assert 0 < sum(int(str(row[1])) for row in after) - sum(int(str(row[1])) for row in before) <= 40


def test_05_sums_of_different_values_are_bounded_over_all_groups(planner: Planner) -> None:
    """A customer with one amount in twelve months moves twelve sums, by at most 40 times the bound together."""
    sql = "SELECT date_trunc('month', ordered_at), sum(DISTINCT amount) FROM orders GROUP BY 1"
    assert planner.sensitivities(sql) == [40 * 50000]
    spread = MANY.replace("'2024-05-05'", "'2024-01-01'::date + generate_series * 2").replace("500 FROM", "499.99 FROM")
    before, after = planner.run(sql), planner.run(sql, spread)
    assert 0 < sum(int(str(row[1])) for row in after) - sum(int(str(row[1])) for row in before) <= 40 * 50000


def test_14_a_double_stands_for_all_whole_numbers_that_are_rounded_to_it(planner: Planner) -> None:
    """Beyond 2^53 hundreds of keys equal one double, so = by a double leaves a unit no single row."""
    assert planner.sensitivities("SELECT count(*) FROM orders WHERE id = '9200000000000000000'::float8") == [40]
    assert planner.sensitivities("SELECT count(*) FROM orders WHERE id = '17'::real") == [40]
    assert planner.sensitivities("SELECT count(*) FROM orders WHERE id = '17'::float8") == [1]


def test_14_a_list_that_one_value_is_in_says_nothing_of_the_others(planner: Planner) -> None:
    """x IN (y, 1) is true where x is 1 and y NULL; a key of y would prove too much."""
    sql = "SELECT city, count(*) FROM customers WHERE country IN (city, 'DE') GROUP BY city"
    groups = planner.block(sql).groups
    assert isinstance(groups, PublicGroups)
    assert (None,) in groups.rows


def test_14_nan_is_one_more_value_of_a_key(shop: RealDatabase) -> None:
    """numeric(10,2) ends at 99999999.99, and NaN is greater still: two rows of a customer, not one."""
    planner = Planner(shop.dsn)
    once = Key("once", columns=("customer_id", "amount"))
    tables = (replace(t, keys=(*t.keys, once)) if t.name.name == "orders" else t for t in planner.catalog.tables)
    planner.catalog = replace(planner.catalog, tables=tuple(tables))
    assert planner.sensitivities("SELECT count(*) FROM orders WHERE amount >= 99999999.99") == [2]
    assert planner.sensitivities("SELECT count(*) FROM orders WHERE amount = 99999999.99") == [1]


@pytest.mark.parametrize(("value", "groups"), [("amount * 1.0", 3), ("amount::float8", 3), ("amount", 1)])
def test_09_what_equals_a_value_of_the_unit_may_be_spelled_in_many_ways(
    planner: Planner, value: str, groups: int
) -> None:
    """5.0 and 5.000 equal a customer's largest amount, and are two groups by their texts."""
    rows = f"SELECT customer_id, {value} AS x FROM orders"
    largest = f"SELECT max({value}) FROM orders AS i WHERE i.customer_id = o.customer_id"
    sql = f"SELECT x::text, count(DISTINCT customer_id) FROM ({rows}) AS o WHERE x = ({largest}) GROUP BY 1"
    (block,) = planner.plan(sql, groups_per_unit=3).blocks
    assert [measure.sensitivity for measure in block.measures if isinstance(measure, Measure)] == [groups]


def test_totality_the_least_bigint_has_no_abs(planner: Planner) -> None:
    """A guard against tiny doubles must not fail where a whole number stands in its place."""
    least = "UPDATE orders SET id = -9223372036854775808 WHERE id = (SELECT max(id) FROM orders)"

    for sql in ("count(*) FILTER (WHERE id / 2::float8 > 1)", "count(*) FILTER (WHERE id * 2::real > 1)"):
        assert planner.run(f"SELECT {sql} FROM orders", "DELETE FROM order_items", least)
