"""Bins of some minutes or seconds, as Superset writes them: all that the WHERE clause leaves, and no more."""

import pytest

from rules.mechanisms.release_plan import PublicGroups
from rules.refusal import NotSupported
from tests.conftest import RealDatabase
from tests.planner.planned import Planner

FROM, TO = "2025-06-02 11:53:07", "2025-06-02 13:01:00"
MOMENTS = f"generate_series(timestamp '{FROM}', timestamp '{TO}' - interval '1 second', interval '1 second')"
BINS = [
    f"date_trunc('{field}', t) + interval '{size} {part}s' * floor(extract({part} FROM t) / {size})"
    for field, part, sizes in (("hour", "minute", (5, 10, 15, 30)), ("minute", "second", (5, 30)))
    for size in sizes
]
OTHERS = [
    "date_trunc('hour', t) + extract(minute FROM t)::integer / 20 * interval '20 minutes'",
    "date_trunc('day', t) - interval '1 day' * (2 - 1)",
]


@pytest.fixture(scope="module")
def planner(shop: RealDatabase) -> Planner:
    return Planner(shop.dsn)


def _planned(planner: Planner, key: str) -> list[str | None]:
    source = f"(SELECT ordered_at AT TIME ZONE 'UTC' AS t FROM orders) AS o WHERE t >= '{FROM}' AND t < '{TO}'"
    groups = planner.block(f"SELECT {key}, count(*) FROM {source} GROUP BY {key}").groups
    assert isinstance(groups, PublicGroups)
    return [text for (text,) in groups.rows]


def _true(shop: RealDatabase, key: str) -> list[str]:
    with shop.connect() as connection:
        rows = connection.execute(f"SELECT DISTINCT ({key})::text AS k FROM {MOMENTS} AS t ORDER BY k").fetchall()
    return [text for (text,) in rows]


@pytest.mark.parametrize("key", BINS)
def test_the_groups_are_the_bins_that_the_bounds_reach(planner: Planner, shop: RealDatabase, key: str) -> None:
    assert _planned(planner, key) == _true(shop, key)


@pytest.mark.parametrize("key", OTHERS)
def test_other_sums_of_a_moment_and_a_multiple_have_all_that_there_can_be(
    planner: Planner, shop: RealDatabase, key: str
) -> None:
    assert set(_planned(planner, key)) >= set(_true(shop, key))


@pytest.mark.parametrize("key", ["t + interval '1 month' * extract(day FROM t)", "t + interval '1 day' * 1e9"])
def test_what_may_leave_the_calendar_is_refused(planner: Planner, key: str) -> None:
    with pytest.raises(NotSupported, match="interval"):
        _planned(planner, key)
