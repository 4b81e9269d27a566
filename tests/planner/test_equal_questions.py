"""Questions that mean the same have one name, by which what was released for one serves the other."""

from decimal import Decimal

import pytest

from rules.planner.plan import Request
from tests.planner.planned import Planner

ORDERS = "SELECT status, count(*) FROM orders WHERE {} GROUP BY status"


def name(planner: Planner, sql: str, *parameters: tuple[str, str], zone: str = "UTC") -> str:
    """What a statement's only block is known by."""
    request = Request(
        text=sql,
        search_path=("pg_catalog", "public"),
        parameter_types=tuple(of for of, _ in parameters),
        parameters=tuple(value for _, value in parameters),
        epsilon=Decimal(1),
        delta=Decimal("1e-9"),
        time_zone=zone,
        now="2025-06-15 12:00:00+00:00",
    )
    (block,) = planner.whole(request).blocks
    return block.canonical


@pytest.mark.parametrize(
    "other",
    [
        "status = 'paid' AND amount >= 10.00",
        "status = 'paid'::status AND amount >= 10::numeric AND amount >= 10",
        "(amount >= 10::smallint) AND (status = 'paid')",
        "status = 'paid' AND true AND 1 = 1 AND 10 <= amount",
        "status IN ('paid', 'paid') AND NOT amount < 10",
        "'paid' = status AND (amount >= 10) IS TRUE",
        "NOT (status <> 'paid') AND (amount < 10) = false",
        "(status = 'paid' OR status = 'paid') AND NOT NOT amount >= 10",
        "status::text = 'paid' AND (amount < 10) IS FALSE",
    ],
)
def test_order_and_spelling_of_conditions_do_not_matter(planner: Planner, other: str) -> None:
    assert name(planner, ORDERS.format(other)) == name(planner, ORDERS.format("amount >= 10 AND status = 'paid'"))


def test_parameters_of_any_type_ask_what_constants_ask(planner: Planner) -> None:
    asked = name(planner, ORDERS.format("amount > 50 AND status = 'paid'"))
    for of in ("numeric", "integer", "smallint", "bigint"):
        by_parameters = ORDERS.format("amount > $1 AND status = $2")
        assert name(planner, by_parameters, (of, "50"), ("status", "paid")) == asked


@pytest.mark.parametrize("sql", ["SELECT count(*) FROM order_items", "SELECT sum(quantity) FROM order_items"])
def test_the_time_zone_does_not_matter_where_no_instant_is_read(planner: Planner, sql: str) -> None:
    assert name(planner, sql) == name(planner, sql, zone="Asia/Tokyo")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT date_trunc('day', ordered_at), count(*) FROM orders WHERE ordered_at < '2024-02-01' GROUP BY 1",
        "SELECT count(*) FROM orders WHERE ordered_at::date = '2024-02-01'",
        "SELECT count(*) FROM customers WHERE birth_date > now() - interval '40 years'",
        "SELECT count(*) FROM order_items WHERE extract(hour FROM to_timestamp(quantity * 3600)) = 3",
        """SELECT extract(day FROM (date '2024-01-01' + quantity)::timestamp AT TIME ZONE 'UTC'), count(*)
           FROM order_items GROUP BY 1""",
    ],
)
def test_the_time_zone_matters_where_instants_meet_the_clock(planner: Planner, sql: str) -> None:
    assert name(planner, sql) != name(planner, sql, zone="Asia/Tokyo")


def test_lists_are_sets(planner: Planner) -> None:
    asked = name(planner, ORDERS.format("status IN ('paid', 'open')"))
    for other in ("status IN ('open', 'paid', 'open')", "status = 'open' OR status = 'paid'"):
        assert name(planner, ORDERS.format(other)) == asked


@pytest.mark.parametrize("other", ["(amount >= 10) IS NOT FALSE", "coalesce(amount >= 10, true)", "amount > 10"])
def test_what_chooses_other_rows_is_another_question(planner: Planner, other: str) -> None:
    assert name(planner, ORDERS.format(other)) != name(planner, ORDERS.format("amount >= 10"))


@pytest.mark.parametrize(
    ("written", "printed"),
    [
        ("percentile_cont(0.5)", "percentile_cont((0.5)::double precision)"),
        ("percentile_disc(1)", "percentile_disc((1)::double precision)"),
        ("percentile_cont(ARRAY[0.25, 0.5])", "percentile_cont(ARRAY[(0.25)::double precision, 0.5::float8])"),
    ],
)
def test_a_quantile_is_the_same_as_postgresql_prints_it_in_a_view(planner: Planner, written: str, printed: str) -> None:
    plain, cast = (f"SELECT {one} WITHIN GROUP (ORDER BY amount) FROM orders" for one in (written, printed))

    assert planner.plan(cast).blocks == planner.plan(plain).blocks


def test_so_is_a_quantile_of_each_customer(planner: Planner) -> None:
    median = "percentile_cont({}) WITHIN GROUP (ORDER BY amount)"
    of_each = f"SELECT sum(m) FROM (SELECT {median} FROM orders GROUP BY customer_id) AS x (m) WHERE m BETWEEN 0 AND 9"

    assert name(planner, of_each.format("(0.5)::double precision")) == name(planner, of_each.format("0.5"))
