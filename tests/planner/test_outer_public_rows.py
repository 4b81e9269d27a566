# ruff: noqa: E501  (a statement a line)
"""Public rows that an outer join keeps: every public group is answered, and what would see the others is refused."""

import pytest

from rules.bind.inner_answers import InnerAnswer
from rules.mechanisms.release_plan import PublicGroups
from rules.planner.plan import NeedsInner
from rules.planner.planner import plan
from rules.refusal import NotSupported
from tests.planner.planned import Planner, whole
from tests.planner.test_prerequisites import request

DAYS = "generate_series('2025-01-01'::date, '2025-01-03', '1 day') AS d"
CALENDAR = (
    f"SELECT d::date AS day, count(o.id) FROM {DAYS} LEFT JOIN orders AS o ON o.ordered_at::date = d::date GROUP BY 1"
)


def test_a_calendar_answers_every_day(planner: Planner) -> None:
    first = plan(request(CALENDAR), planner.policy, planner.catalog)
    assert isinstance(first, NeedsInner)
    assert first.text == "SELECT * FROM generate_series('2025-01-01'::date, '2025-01-03', '1 day') d"
    days = tuple((f"2025-01-0{day} 00:00:00+00",) for day in (1, 2, 3))

    made = whole(plan(request(CALENDAR, InnerAnswer(first.inner, ("d",), ("timestamp with time zone",), days)), planner.policy, planner.catalog))  # fmt: skip

    (block,) = made.blocks
    assert isinstance(block.groups, PublicGroups)
    assert block.groups.rows == (("2025-01-01",), ("2025-01-02",), ("2025-01-03",))


@pytest.mark.parametrize(
    "select",
    [
        "count(i.order_id)",
        "count(DISTINCT i.order_id)",
        "sum(i.quantity)",
        "sum(coalesce(i.quantity, 0))",
        "sum(CASE WHEN i.quantity > 2 THEN 1 ELSE 0 END)",
        "count(CASE WHEN i.quantity > 2 THEN 1 END)",
        "count(*) FILTER (WHERE i.quantity > 2)",
        "avg(i.quantity + 1)",
        "count(ln(i.quantity))",
        "sum(power(i.quantity, 2))",
        "count(lpad(i.quantity::text, 3))",
    ],
)
def test_what_does_not_see_the_rows_without_partner_is_answered(planner: Planner, select: str) -> None:
    sql = f"SELECT p.category, {select} FROM products AS p LEFT JOIN order_items AS i ON i.product_id = p.id GROUP BY 1"
    other = f"SELECT p.category, {select} FROM order_items AS i RIGHT JOIN products AS p ON i.product_id = p.id AND p.price > 3 WHERE p.price < 100 GROUP BY 1"

    assert planner.plan(sql, rows_per_unit=20).blocks
    assert planner.plan(other, rows_per_unit=20).blocks


def test_a_condition_that_leaves_them_out_makes_an_inner_join(planner: Planner) -> None:
    sql = "SELECT p.category, count(*) FROM products AS p LEFT JOIN order_items AS i ON i.product_id = p.id WHERE i.quantity > 1 GROUP BY 1"

    assert planner.sql(sql) == planner.sql(sql.replace("LEFT JOIN", "JOIN"))


@pytest.mark.parametrize(
    "rest",
    [
        "p.category, count(*) FROM products AS p LEFT JOIN order_items AS i ON i.product_id = p.id GROUP BY 1",
        "p.category, count(p.id) FROM products AS p LEFT JOIN order_items AS i ON i.product_id = p.id GROUP BY 1",
        "p.category, avg(coalesce(i.quantity, 0)) FROM products AS p LEFT JOIN order_items AS i ON i.product_id = p.id GROUP BY 1",
        "p.category, count(coalesce(i.quantity, 0)) FROM products AS p LEFT JOIN order_items AS i ON i.product_id = p.id GROUP BY 1",
        "p.category, count(i.order_id) FROM products AS p LEFT JOIN order_items AS i ON i.product_id = p.id WHERE i.quantity IS NULL GROUP BY 1",
        "p.category, count(i.order_id) FROM products AS p LEFT JOIN order_items AS i ON i.product_id = p.id WHERE i.quantity > 1 OR p.price > 3 GROUP BY 1",
        "i.quantity, count(i.order_id) FROM products AS p LEFT JOIN order_items AS i ON i.product_id = p.id GROUP BY 1",
        "coalesce(x.n, 0), count(x.n) FROM products AS p LEFT JOIN (SELECT product_id, order_id, quantity AS n FROM order_items) AS x ON x.product_id = p.id GROUP BY 1",
        "category, sum(n) FROM (SELECT p.category, coalesce(i.quantity, 1) AS n FROM products AS p LEFT JOIN order_items AS i ON i.product_id = p.id) AS x GROUP BY 1",
    ],
)
def test_what_would_see_them_is_refused(planner: Planner, rest: str) -> None:
    with pytest.raises(NotSupported, match="keeps unmatched public rows"):
        planner.plan(f"SELECT {rest}", rows_per_unit=20)
