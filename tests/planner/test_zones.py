"""A plan tells for which zones and years it used the proxy's own tables."""

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from rules.planner.plan import Request
from rules.values.time_zones import ZoneUse
from tests.planner.planned import Planner

DAYS = "SELECT date_trunc('day', ordered_at) AS day, count(*) FROM orders WHERE ordered_at >= '2024-03-01' AND "
DAYS += "ordered_at < '2024-05-01' GROUP BY 1"


def zones(planner: Planner, sql: str, time_zone: str) -> tuple[ZoneUse, ...]:
    request = Request(sql, ("pg_catalog", "public"), epsilon=Decimal(1), delta=Decimal("1e-9"), time_zone=time_zone)
    return planner.whole(request).zones


def within(use: ZoneUse, first: datetime, last: datetime) -> bool:
    return first.timestamp() <= use.first <= use.last <= last.timestamp()


@pytest.mark.parametrize("attempt", [1, 2])  # the second time clocks are remembered
def test_days_by_the_sessions_clock_rest_on_its_zone(planner: Planner, attempt: int) -> None:
    (use,) = zones(planner, DAYS, "Europe/Berlin")
    assert (use.name, use.by_name) == ("Europe/Berlin", False)
    assert use.first <= datetime(2024, 3, 1, tzinfo=UTC).timestamp()
    assert use.last >= datetime(2024, 4, 30, tzinfo=UTC).timestamp()
    assert within(use, datetime(2023, 12, 1, tzinfo=UTC), datetime(2027, 2, 1, tzinfo=UTC))

    (hours,) = zones(planner, DAYS.replace("'day'", "'hour'"), "Europe/Berlin")
    assert (hours.name, hours.by_name) == ("Europe/Berlin", False)


def test_a_zone_that_is_named_is_told_apart_from_the_sessions(planner: Planner) -> None:
    sql = DAYS.replace("date_trunc('day', ordered_at)", "date_trunc('day', ordered_at AT TIME ZONE 'America/New_York')")
    found = {(use.name, use.by_name) for use in zones(planner, sql, "Europe/Berlin")}
    assert found == {("America/New_York", True), ("Europe/Berlin", False)}
    found = {(use.name, use.by_name) for use in zones(planner, sql, "America/New_York")}
    assert found == {("America/New_York", True), ("America/New_York", False)}


@pytest.mark.parametrize(
    ("sql", "time_zone"),
    [
        (DAYS, "UTC"),
        ("SELECT count(*) FROM orders", "Europe/Berlin"),
        ("SELECT birth_date, count(*) FROM customers WHERE birth_date > '2000-01-01' GROUP BY 1", "Europe/Berlin"),
    ],
)
def test_what_needs_no_table_of_a_zone_tells_of_none(planner: Planner, sql: str, time_zone: str) -> None:
    assert zones(planner, sql, time_zone) == ()


def test_notes_of_one_plan_do_not_reach_the_next(planner: Planner) -> None:
    zones(planner, DAYS, "Europe/Berlin")
    assert {use.name for use in zones(planner, DAYS, "Asia/Tokyo")} == {"Asia/Tokyo"}
    assert replace(planner).plan("SELECT count(*) FROM customers").zones == ()


def test_a_plan_tells_the_same_when_its_list_is_kept_from_another_one(planner: Planner) -> None:
    first, second = (zones(planner, DAYS, "Europe/Rome") for _ in range(2))
    assert first == second != ()
