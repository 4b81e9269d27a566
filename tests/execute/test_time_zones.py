"""Clocks that differ from the real database's, and time zones: nothing that rests on other tables of these is asked."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from proxy.components import check_clock
from proxy.execute.clock import clock_warning, find_ahead, find_differing
from proxy.execute.service import Answer
from proxy.load_config import ConfigurationError
from rules.refusal import BadSetting, NotSupported
from rules.values import value
from rules.values.time_zones import ZoneUse
from tests.execute.desk import Desk
from tests.execute.plans import UNITS, block_of, plan_of

Fake = Callable[[str, str], None]


def second(year: int, month: int = 1, day: int = 1) -> int:
    return int(datetime(year, month, day, tzinfo=UTC).timestamp())


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Fake:
    """Give a zone the table of another one, in the proxy alone."""

    def put(zone: str, other: str) -> None:
        monkeypatch.setattr(value, "ZoneInfo", lambda name: ZoneInfo(other if name == zone else name))

    return put


async def ask(desk: Desk, *zones: ZoneUse, time_zone: str = "UTC") -> Answer:
    plan = replace(plan_of(block_of(UNITS)), zones=zones, time_zone=time_zone)
    return await desk.service.answer(plan, analyst="ada", session="s", timeout_seconds=20)


BERLIN = ZoneUse("Europe/Berlin", False, second(2024), second(2026))


@pytest.mark.parametrize(
    ("zone", "other"),
    [
        ("Europe/Berlin", "Asia/Tokyo"),  # always another time
        ("America/New_York", "America/Havana"),  # put forward and back on the same days, at another hour
        ("Europe/Berlin", "Africa/Lagos"),  # never put forward
        ("Africa/Lagos", "Europe/Berlin"),  # put forward here alone
    ],
)
@pytest.mark.parametrize("by_name", [False, True])
async def test_what_rests_on_a_zone_that_differs_is_refused_for_nothing(
    desk: Desk, fake: Fake, zone: str, other: str, *, by_name: bool
) -> None:
    fake(zone, other)
    with pytest.raises(NotSupported, match=f"have different rules for the time zone '{zone}'"):
        await ask(desk, ZoneUse(zone, by_name, second(2024), second(2024, 12)))

    assert (desk.engine.seen, await desk.spent()) == ([], (0, 0))
    await ask(desk)


async def test_a_zone_that_differs_in_other_years_alone_is_no_matter(desk: Desk, fake: Fake) -> None:
    """The clocks of Lisbon were an hour ahead of those of London until 1996."""
    fake("Europe/London", "Europe/Lisbon")
    await ask(desk, ZoneUse("Europe/London", False, second(2012, 2), second(2014, 12)))

    with pytest.raises(NotSupported):
        await ask(desk, ZoneUse("Europe/London", False, second(1995), second(2014)))


async def test_a_zone_is_looked_at_once_for_the_years_that_are_needed(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked, look = list[tuple[str, bool]](), desk.engine.clock_offsets

    async def watched(
        zones: Sequence[str], seconds: Sequence[int], *, by_name: bool, timeout_seconds: float
    ) -> Mapping[str, list[int]]:
        looked.append((zones[0], by_name))
        return await look(zones, seconds, by_name=by_name, timeout_seconds=timeout_seconds)

    monkeypatch.setattr(desk.engine, "clock_offsets", watched)
    for use in (BERLIN, BERLIN, replace(BERLIN, first=second(2025)), replace(BERLIN, by_name=True)):
        await ask(desk, use)
    assert looked == [("Europe/Berlin", False), ("Europe/Berlin", True)]

    await ask(desk, replace(BERLIN, last=second(2030)), BERLIN)
    assert looked[2:] == [("Europe/Berlin", False)]


async def test_an_abbreviation_is_no_zone(desk: Desk) -> None:
    """AT TIME ZONE 'CET' is an hour ahead all the year; SET TimeZone = 'CET' is put forward in summer."""
    await ask(desk, ZoneUse("CET", False, second(2024), second(2024, 12)))
    with pytest.raises(NotSupported, match="'CET'"):
        await ask(desk, ZoneUse("CET", True, second(2024), second(2024, 12)))


async def test_a_session_zone_that_the_database_does_not_know_is_told_in_its_own_words(desk: Desk) -> None:
    with pytest.raises(BadSetting):
        await ask(desk, replace(BERLIN, name="Europe/Atlantis"), time_zone="Europe/Atlantis")


@pytest.mark.parametrize("span", [(1, 9999), (1800, 1850), (2100, 2200), (1900, 2037)])
async def test_long_and_far_spans_are_looked_at_within_reason(desk: Desk, fake: Fake, span: tuple[int, int]) -> None:
    use = replace(BERLIN, first=-(2**36) if span[0] < 1900 else second(span[0]), last=second(span[1], 6))
    fake("Europe/Berlin", "Asia/Tokyo")
    with pytest.raises(NotSupported):
        await ask(desk, use)


async def test_a_dba_is_told_which_zones_differ_in_the_years_of_the_rules(desk: Desk, fake: Fake) -> None:
    fake("Europe/Berlin", "Asia/Tokyo")
    catalog = replace(desk.catalog, time_zones=frozenset({"Europe/Berlin", "Europe/Lisbon", "CET", "UTC"}))
    (line,) = await find_differing(desk.engine, desk.policy, catalog, desk.now)

    assert "Europe/Berlin;" in line
    assert "Lisbon" not in line and "CET" not in line


@pytest.mark.parametrize(
    ("by", "said"),
    [
        (timedelta(), None),
        (timedelta(seconds=40), None),
        (timedelta(minutes=5), "the proxy's clock is 0:0[45]:[0-9]{2} ahead of the database's"),
        (-timedelta(days=400), "the proxy's clock is (400|399) days.* behind the database's"),
    ],
)
async def test_a_clock_that_differs_is_told(desk: Desk, by: timedelta, said: str | None) -> None:
    ahead = await find_ahead(desk.engine, lambda: datetime.now(UTC) + by)

    lines = clock_warning(ahead)
    assert abs(ahead - by) < timedelta(seconds=20)
    assert lines == check_clock(ahead)
    assert [bool(re.match(said or "", line)) for line in lines] == [True] * (said is not None)


async def test_the_proxy_does_not_start_with_a_clock_in_a_period_to_come(desk: Desk) -> None:
    """What is charged then is the latest period, and no budget is renewed before that has ended."""
    ahead = await find_ahead(desk.engine, lambda: datetime.now(UTC) + timedelta(days=40))
    with pytest.raises(
        ConfigurationError, match=r"the proxy's clock is (40|39) days.* ahead .* set the clock that is wrong"
    ):
        check_clock(ahead)
