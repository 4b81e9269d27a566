"""Windows over one unit's rows below a block: answered as PostgreSQL answers them, and by that unit's rows alone."""

import psycopg
import pytest

from rules.mechanisms.release_plan import PublicGroups
from rules.refusal import NotAllowed, NotSupported
from tests.planner.planned import Planner
from tests.support.shop import LOYAL

# Customers with more orders than the rules count are left out, so that exact numbers can be compared.
ORDERS = f"(SELECT * FROM orders WHERE customer_id NOT IN {LOYAL}) AS o"
BY_TIME = "(PARTITION BY customer_id ORDER BY ordered_at, id)"


def counted(window: str, condition: str) -> str:
    return f"SELECT count(*) FROM (SELECT status, amount, {window} AS w FROM {ORDERS}) AS t WHERE {condition}"


@pytest.mark.parametrize(
    ("window", "condition"),
    [
        (f"row_number() OVER {BY_TIME}", "w = 1"),
        (f"row_number() OVER {BY_TIME}", "w BETWEEN 2 AND 4 AND status = 'paid'"),
        ("rank() OVER (PARTITION BY customer_id ORDER BY status)", "w > 2"),
        ("dense_rank() OVER (PARTITION BY customer_id ORDER BY status DESC)", "w = 2"),
        ("percent_rank() OVER (PARTITION BY customer_id ORDER BY amount)", "w > 0.5"),
        ("cume_dist() OVER (PARTITION BY customer_id ORDER BY amount DESC)", "w <= 0.25"),
        (f"ntile(3) OVER {BY_TIME}", "w = 2"),
        (f"lag(status) OVER {BY_TIME}", "w = status"),
        (f"lag(status, 2, 'open') OVER {BY_TIME}", "w = status"),
        (f"lead(amount) OVER {BY_TIME}", "w > 100 AND w > amount"),
        (f"lead(amount, 1, 250.0) OVER {BY_TIME}", "w BETWEEN 200 AND 300"),
        (f"first_value(status) OVER {BY_TIME}", "w = 'sent'"),
        (
            f"last_value(amount) OVER {BY_TIME[:-1]} ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)",
            "w < 50",
        ),
        (f"nth_value(amount, 2) OVER {BY_TIME[:-1]} ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING)", "w < 50"),
        ("count(*) OVER (PARTITION BY customer_id)", "w > 4"),
        ("count(*) FILTER (WHERE status = 'paid') OVER (PARTITION BY customer_id)", "w = 2"),
        ("count(*) OVER (PARTITION BY customer_id, status)", "w > 1"),
        (f"count(note) OVER {BY_TIME}", "w > 0"),
        ("max(ordered_at) OVER (PARTITION BY customer_id)", "w > '2025-06-01'"),
        ("min(status) OVER (PARTITION BY customer_id ORDER BY ordered_at DESC)", "w = 'open'"),
        (f"bool_or(status = 'sent') OVER {BY_TIME}", "w"),
        (f"count(*) OVER {BY_TIME[:-1]} GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW)", "w = 2"),
        (f"count(*) OVER {BY_TIME[:-1]} ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)", "w = 2"),
        ("count(*) OVER (PARTITION BY customer_id ORDER BY ordered_at RANGE '70 days' PRECEDING)", "w > 1"),
        (
            "sum(amount) OVER (PARTITION BY customer_id ORDER BY ordered_at::date DESC "
            "RANGE BETWEEN interval '1 month 3 days' PRECEDING AND '36 hours' FOLLOWING EXCLUDE TIES)",
            "w > 300",
        ),
        (
            "count(*) OVER (PARTITION BY customer_id ORDER BY date_trunc('month', ordered_at) "
            "RANGE BETWEEN '2 months' PRECEDING AND '1 month' PRECEDING)",
            "w = 1",
        ),
        (
            "count(*) OVER (PARTITION BY customer_id ORDER BY amount RANGE BETWEEN 9.5 PRECEDING AND 10 FOLLOWING)",
            "w > 1",
        ),
        ("count(*) OVER (PARTITION BY customer_id ORDER BY (id % 50)::float8 DESC RANGE 5.5 PRECEDING)", "w > 1"),
        (
            "sum(id) OVER (PARTITION BY customer_id ORDER BY id % 7 RANGE BETWEEN 1 FOLLOWING AND 2 FOLLOWING)",
            "w % 2 = 0",
        ),
        (f"sum(amount) OVER {BY_TIME[:-1]} ROWS 3 PRECEDING EXCLUDE CURRENT ROW)", "w < 200"),
        (f"max(amount) OVER {BY_TIME[:-1]} GROUPS 3 PRECEDING EXCLUDE GROUP)", "w < 200"),
        ("min(id) OVER (PARTITION BY customer_id ORDER BY status GROUPS 1 PRECEDING EXCLUDE TIES)", "w % 2 = 0"),
        (
            "count(*) OVER (PARTITION BY customer_id ORDER BY status RANGE UNBOUNDED PRECEDING EXCLUDE CURRENT ROW)",
            "w > 1",
        ),
        ("count(note) OVER (PARTITION BY customer_id ORDER BY status RANGE CURRENT ROW EXCLUDE TIES)", "w = 0"),
    ],
)
def test_a_window_within_a_unit_says_what_postgresql_says(planner: Planner, window: str, condition: str) -> None:
    sql = counted(window, condition)

    truth = planner.truth(sql)

    assert truth[0][0] > 0
    assert planner.run(sql) == truth


@pytest.mark.parametrize(
    "window",
    [
        "row_number() OVER (PARTITION BY customer_id ORDER BY date_trunc('month', ordered_at))",
        "sum(amount) OVER (PARTITION BY customer_id ORDER BY ordered_at)",
        "avg(amount) OVER (PARTITION BY customer_id ORDER BY ordered_at ROWS 3 PRECEDING)",
        "amount - lag(amount) OVER (PARTITION BY customer_id ORDER BY ordered_at)",
        "ordered_at::date - lag(ordered_at::date) OVER (PARTITION BY customer_id ORDER BY ordered_at)",
    ],
)
def test_an_average_of_a_window_has_bounds_of_its_own(planner: Planner, window: str) -> None:
    total, rows = planner.sensitivities(f"SELECT avg(w) FROM (SELECT {window} AS w FROM orders) AS t")

    assert rows == 40
    assert total > 0


@pytest.mark.parametrize(("condition", "rows"), [("rn = 1", 1), ("rn <= 3", 3), ("rn IN (1, 4)", 2), ("rn > 5", 40)])
def test_a_number_within_the_unit_proves_how_many_rows_are_left(planner: Planner, condition: str, rows: int) -> None:
    numbered = "SELECT *, row_number() OVER (PARTITION BY customer_id ORDER BY ordered_at DESC) AS rn FROM orders"

    block = planner.block(f"SELECT count(*) FROM ({numbered}) AS t WHERE {condition}")

    assert [measure.sensitivity // measure.factor for measure in block.measures] == [rows]


@pytest.mark.parametrize(("key", "rows"), [("status", 4), ("date_trunc('month', ordered_at)", 36), ("note", 40)])
def test_the_first_row_of_each_of_a_units_groups_is_as_many_rows_as_groups_can_be(
    planner: Planner, key: str, rows: int
) -> None:
    numbered = f"SELECT *, row_number() OVER (PARTITION BY customer_id, k ORDER BY id) AS rn FROM (SELECT *, {key} AS k"

    assert planner.sensitivities(f"SELECT count(*) FROM ({numbered} FROM orders) AS o) AS t WHERE rn = 1") == [rows]


def test_distinct_on_the_unit_keeps_one_row_of_each(planner: Planner) -> None:
    sql = """SELECT status, count(*) FROM (SELECT DISTINCT ON (customer_id) * FROM orders
             ORDER BY customer_id, ordered_at DESC, id) AS latest GROUP BY status ORDER BY status"""
    with psycopg.connect(planner.dsn) as connection:
        truth = [(label, rows) for label, rows in connection.execute(sql).fetchall()]

    assert planner.sensitivities(sql) == [1]
    assert sorted(planner.run(sql)) == sorted(truth)


def test_distinct_on_reads_numbers_and_names_of_the_select_list_first(planner: Planner) -> None:
    first = "SELECT DISTINCT ON (1) customer_id AS who, ordered_at AS at FROM orders ORDER BY who, at"

    assert planner.sensitivities(f"SELECT count(*) FROM ({first}) AS t") == [1]


def test_distinct_rows_of_windows_are_those_of_each_unit(planner: Planner) -> None:
    first = "first_value(status) OVER (PARTITION BY customer_id ORDER BY ordered_at, id) AS f"
    sql = f"SELECT count(*) FROM (SELECT DISTINCT customer_id, {first} FROM orders) AS t WHERE f = 'paid'"
    truth = planner.truth(sql)

    assert planner.sensitivities(sql) == [1]
    assert planner.run(sql) == truth


@pytest.mark.parametrize("item", ["count(*)", "max(amount), count(*)"])
def test_distinct_never_compares_the_groups_of_units(planner: Planner, item: str) -> None:
    grouped = f"SELECT DISTINCT {item} FROM orders GROUP BY customer_id"

    assert "DISTINCT" in planner.refusal(f"SELECT count(*) FROM ({grouped}) AS t").message
    with_unit = grouped.replace("DISTINCT", "DISTINCT customer_id,")
    assert planner.sensitivities(f"SELECT count(*) FROM ({with_unit}) AS t") == [1]


def test_a_column_that_is_selected_twice_is_one_key(planner: Planner) -> None:
    groups = planner.block("SELECT DISTINCT country, country FROM customers").groups

    assert isinstance(groups, PublicGroups)
    assert groups.rows == (("AT",), ("DE",), ("FR",), ("PT",))


def test_a_number_of_the_unit_is_a_key_with_as_many_groups_as_rows_count(planner: Planner) -> None:
    sql = "SELECT rn, count(*) FROM (SELECT row_number() OVER (PARTITION BY customer_id) AS rn FROM orders) AS t"

    groups = planner.block(f"{sql} GROUP BY rn").groups

    assert isinstance(groups, PublicGroups)
    assert groups.rows == tuple((str(number),) for number in range(1, 41))


def test_what_is_the_same_for_all_rows_of_a_unit_is_one_group(planner: Planner) -> None:
    counted_all = "SELECT count(*) OVER (PARTITION BY customer_id) AS n, customer_id FROM orders"
    running = "SELECT count(*) OVER (PARTITION BY customer_id ORDER BY id) AS n, customer_id FROM orders"
    people = "SELECT n, count(DISTINCT customer_id) FROM ({}) AS t GROUP BY n"

    assert planner.sensitivities(people.format(counted_all)) == [1]
    assert planner.sensitivities(people.format(running)) == [40]


@pytest.mark.parametrize(
    ("pick", "frame", "people"),
    [
        ("first_value", "UNBOUNDED PRECEDING AND CURRENT ROW", 1),
        ("last_value", "CURRENT ROW AND UNBOUNDED FOLLOWING", 1),
        ("first_value", "UNBOUNDED PRECEDING AND 1 PRECEDING", 5),
        ("last_value", "1 FOLLOWING AND UNBOUNDED FOLLOWING", 5),
    ],
)
def test_a_frame_that_leaves_out_its_row_is_empty_at_an_end(
    planner: Planner, pick: str, frame: str, people: int
) -> None:
    """The first of no rows is NULL, so a unit has two values there, and lies in more than one group."""
    window = f"{pick}(status) OVER {BY_TIME[:-1]} ROWS BETWEEN {frame})"
    sql = f"SELECT w, count(DISTINCT customer_id) FROM (SELECT customer_id, {window} AS w FROM orders) AS t GROUP BY w"
    assert planner.sensitivities(sql) == [people]


def test_windows_over_a_units_groups_compare_them(planner: Planner) -> None:
    monthly = """SELECT customer_id, date_trunc('month', ordered_at) AS month, count(*) AS n,
        lag(count(*)) OVER (PARTITION BY customer_id ORDER BY date_trunc('month', ordered_at)) AS before
        FROM orders GROUP BY 1, 2"""

    assert planner.sensitivities(f"SELECT avg(n - before) FROM ({monthly}) AS t") == [40 * 80, 40]


@pytest.mark.parametrize(
    ("window", "refusal", "words"),
    [
        ("sum(amount) OVER ()", NotAllowed, "different units"),
        ("row_number() OVER (ORDER BY ordered_at)", NotAllowed, "different units"),
        ("rank() OVER (PARTITION BY status ORDER BY amount)", NotAllowed, "different units"),
        ("last_value(amount) OVER (PARTITION BY customer_id ORDER BY status)", NotSupported, "equal ORDER BY values"),
        ("nth_value(amount, 2) OVER (PARTITION BY customer_id ORDER BY id)", NotSupported, "equal ORDER BY values"),
        ("lag(amount, id::int) OVER (PARTITION BY customer_id ORDER BY id)", NotSupported, "constant"),
        ("ntile(0) OVER (PARTITION BY customer_id ORDER BY id)", NotSupported, "constant"),
        ("string_agg(note, ',') OVER (PARTITION BY customer_id)", NotSupported, "string_agg"),
        (
            "count(*) OVER (PARTITION BY customer_id ORDER BY ordered_at RANGE '-7 days' PRECEDING)",
            NotSupported,
            "constant",
        ),
        (
            "count(*) OVER (PARTITION BY customer_id ORDER BY ordered_at RANGE '3000 years' PRECEDING)",
            NotSupported,
            "constant",
        ),
        ("count(*) OVER (PARTITION BY customer_id ORDER BY id RANGE -1 PRECEDING)", NotSupported, "constant"),
        ("count(*) OVER (PARTITION BY customer_id ORDER BY id ROWS -1 PRECEDING)", NotSupported, "constant"),
        ("count(*) OVER (PARTITION BY customer_id ORDER BY 1 + 1 GROUPS 1 PRECEDING)", NotSupported, "ORDER BY"),
        (
            "first_value(amount) OVER (PARTITION BY customer_id ORDER BY id RANGE BETWEEN 1 FOLLOWING AND 2 FOLLOWING)",
            NotSupported,
            "equal ORDER BY values",
        ),
        (
            "count(*) OVER (PARTITION BY customer_id ORDER BY id ROWS UNBOUNDED PRECEDING EXCLUDE TIES)",
            NotSupported,
            "EXCLUDE TIES in a ROWS frame",
        ),
    ],
)
def test_a_window_that_is_not_the_units_own_is_refused(
    planner: Planner, window: str, refusal: type[Exception], words: str
) -> None:
    found = planner.refusal(f"SELECT count(w) FROM (SELECT {window} AS w FROM orders) AS t")

    assert isinstance(found, refusal)
    assert words in found.message
    assert found.hint or "constant" in found.message
