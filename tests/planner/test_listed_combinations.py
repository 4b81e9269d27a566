"""A key that is computed from several lists: the twin goes through their combinations, unless there are too many."""

from rules.mechanisms.release_plan import PublicGroups
from rules.planner.plan import NeedsInner, Request
from rules.planner.planner import plan
from tests.planner.planned import Planner

ORDERS = "FROM customers AS c JOIN orders AS o ON o.customer_id = c.id"


def asked(sql: str, planner: Planner) -> bool:
    """Whether the twin is asked for a list of groups first."""
    return isinstance(plan(Request(sql, ("pg_catalog", "public")), planner.policy, planner.catalog), NeedsInner)


def rows(sql: str, planner: Planner) -> set[tuple[str | None, ...]]:
    """The groups that are listed."""
    groups = planner.block(sql).groups
    assert isinstance(groups, PublicGroups)
    return set(groups.rows)


def test_the_days_of_two_columns_are_not_gone_through(planner: Planner) -> None:
    both = "c.birth_date < '1980-01-01' AND o.ordered_at < '2025-01-01'"
    sql = f"SELECT CASE WHEN {both} THEN 'old' ELSE 'new' END, count(*) {ORDERS} GROUP BY 1"

    assert not asked(sql, planner), "33,968 days of births for each of 1,097 days of orders"
    assert rows(sql, planner) == {("new",), ("old",)}


def test_the_days_of_one_column_are(planner: Planner) -> None:
    sql = f"SELECT o.ordered_at + interval '1 month' > '2025-06-01', count(*) {ORDERS} GROUP BY 1"

    assert rows(sql, planner) == {("false",), ("true",)}
