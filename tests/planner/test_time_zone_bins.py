"""Bins of some minutes by the clocks of time zones: the planner's list is what PostgreSQL makes of the rows."""

import struct
import zoneinfo
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from importlib import resources
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rules.mechanisms.release_plan import PublicGroups
from rules.planner.plan import Request
from tests.conftest import RealDatabase
from tests.planner.planned import Planner

thorough = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
DAY = 86_400

# Zone -> moments at which its clock is changed, or its day left out.
CHANGES = {
    "Europe/Berlin": ("2024-03-31 01:00", "2024-10-27 01:00"),
    "America/New_York": ("2024-03-10 07:00", "2024-11-03 06:00"),
    "Australia/Lord_Howe": ("2024-04-06 15:00", "2024-10-05 15:30"),  # by half an hour
    "Asia/Kathmandu": ("1985-12-31 18:30", "2024-01-01 00:00"),  # by a quarter
    "Pacific/Apia": ("2011-12-30 10:00", "2011-09-24 14:00"),  # a day that never came
    "Asia/Pyongyang": ("2015-08-14 15:00", "2018-05-04 15:00"),
    "America/Caracas": ("2007-12-09 07:00", "2016-05-01 07:00"),
    "Africa/Monrovia": ("1972-01-07 00:44", "1972-01-01 00:00"),  # off by seconds until then
    "UTC": ("2016-12-31 23:59", "1970-01-01 00:00"),
}
KEYS = (
    "date_trunc('hour', {0})",
    "date_trunc('minute', {0})",
    "date_trunc('hour', {0}, 'Australia/Lord_Howe')",
    "date_trunc('hour', {0} AT TIME ZONE 'Asia/Kathmandu')",
    "date_trunc('hour', {0}::timestamp)",
    "date_trunc('hour', {0}) + interval '5 minutes' * floor(extract(minute FROM {0}) / 5)",
    "date_trunc('hour', {0}) + interval '30 minutes' * floor(extract(minute FROM {0}) / 30)",
    "date_trunc('minute', {0}) + interval '15 seconds' * floor(extract(second FROM {0}) / 15)",
    "floor(extract(epoch FROM {0})/300)*300",
    "to_timestamp(floor(extract(epoch FROM {0})/600)*600)",
    "date_bin('15 minutes', {0}, '2024-01-01')",
    "to_char(date_trunc('hour', {0}), 'YYYY-MM-DD HH24')",
)


@st.composite
def spans(draw: st.DrawFn) -> tuple[str, datetime, datetime]:
    """A zone, and some time around a change of its clock."""
    zone = draw(st.sampled_from(sorted(CHANGES)))
    change = datetime.fromisoformat(draw(st.sampled_from(CHANGES[zone]))).replace(tzinfo=UTC)
    start = change - timedelta(seconds=draw(st.integers(0, 30_000)))
    return zone, start, start + timedelta(seconds=draw(st.integers(1, 60_000)))


def listed(planner: Planner, sql: str, zone: str) -> list[str | None] | None:
    request = Request(
        sql,
        ("pg_catalog", "public"),
        epsilon=Decimal(1),
        delta=Decimal("1e-9"),
        time_zone=zone,
        now=f"{datetime.now(UTC)}",
    )
    (block,) = planner.whole(request).blocks
    return [group[0] for group in block.groups.rows] if isinstance(block.groups, PublicGroups) else None


def found(shop: RealDatabase, key: str, zone: str, start: datetime, end: datetime) -> set[str | None]:
    """What PostgreSQL makes of rows every few seconds, and of the first and the last moment."""
    dense = f"SELECT t FROM generate_series('{start}'::timestamptz, '{end}', '7 seconds') AS g(t)"
    rows = f"SELECT t AS x FROM ({dense} UNION ALL SELECT '{end}'::timestamptz) AS d"
    with shop.connect() as connection:
        connection.execute(f"SET TimeZone = '{zone}'")
        return {text for (text,) in connection.execute(f"SELECT DISTINCT ({key.format('x')})::text FROM ({rows}) AS r")}


@pytest.mark.extended
@pytest.mark.parametrize("key", KEYS)
@thorough
@given(span=spans())
def test_the_list_is_what_rows_between_two_moments_have(
    shop: RealDatabase, planner: Planner, key: str, span: tuple[str, datetime, datetime]
) -> None:
    zone, start, end = span
    written = key.format("joined")
    where = f"joined >= '{start}' AND joined <= '{end}'"

    known = listed(planner, f"SELECT {written}, count(*) FROM customers WHERE {where} GROUP BY 1", zone)

    rows = found(shop, key, zone, start, end)
    assert known is not None or (zone == "Africa/Monrovia" and not key.startswith("floor")), (zone, rows)
    assert known is None or rows <= set(known), rows - set(known)
    if known is not None and "AT TIME ZONE" not in key and "timestamp" not in key:
        assert set(known) == rows, set(known) - rows


def test_no_clock_is_put_twice_in_a_day() -> None:
    """What is looked at once a day is seen."""
    gaps = [after - before for zone in zoneinfo.available_timezones() for before, after in pairwise(_changes(zone))]

    assert min(gaps) > 2 * DAY


def _changes(zone: str) -> Iterator[int]:
    """The seconds at which a zone's offset changes, as its file says (RFC 8536)."""
    files = (place.joinpath(zone) for place in (*map(Path, zoneinfo.TZPATH), resources.files("tzdata") / "zoneinfo"))
    data = next(file for file in files if file.is_file()).read_bytes()
    second = 44 + _size(data, 0, 4)  # after the first block, which has 32 bits only
    times, kinds = _counts(data, second)[3:5]
    at = second + 44
    moments = struct.unpack(f">{times}q", data[at : at + 8 * times])
    numbers = data[at + 8 * times : at + 9 * times]
    offsets = [struct.unpack(">l", data[at + 9 * times + 6 * n :][:4])[0] for n in range(kinds)]
    shown = [offsets[0], *(offsets[number] for number in numbers)]
    for moment, (before, after) in zip(moments, pairwise(shown), strict=True):
        if before != after:
            yield moment


def _counts(data: bytes, at: int) -> tuple[int, ...]:
    return struct.unpack(">6l", data[at + 20 : at + 44])


def _size(data: bytes, at: int, width: int) -> int:
    utc, standard, leaps, times, kinds, letters = _counts(data, at)
    return times * (width + 1) + kinds * 6 + letters + leaps * (width + 4) + standard + utc
