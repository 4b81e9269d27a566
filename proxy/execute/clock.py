"""Tell the time: a clock that is handed in, so that tests can turn it, and time zones as the real database has them.

What is derived from a zone that differs is not asked. The database's own arithmetic is the reference. A zone is looked
at when a statement first needs it, for the years that it needs: at the beginning of each day, and at both sides of each
change of our clock. The moments are of the zones and the statement, never of a row.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from datetime import UTC, date, datetime, timedelta

from proxy.engines.engine import Engine, EngineError, StatementFailed, UnknownTimeZone
from proxy.log import warn
from rules.catalog import Catalog
from rules.policy.model import Policy, table_name
from rules.refusal import LONGER, NOTHING_CHARGED, Interrupted, NotSupported, Unavailable
from rules.values import value
from rules.values.time_zones import SECOND, ZoneUse

Clock = Callable[[], datetime]
Turn = Callable[[], AbstractAsyncContextManager[None]]  # at the real database
_DAY = 86_400  # seconds
_HELD_SECONDS = 3600  # a server gets new tables while we run
_FAR = (datetime(1850, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC))  # before all clocks; after all tables
_LONG_YEARS = 50  # beyond which a look a week must do
_LOOK_SECONDS = 60.0
_APART, _FAR_AHEAD = timedelta(minutes=1), timedelta(days=1)
_MOST_MARKS, _MOST_NAMED = 200, 20


def system_clock() -> datetime:
    """Now, in UTC."""
    return datetime.now(UTC)


async def find_ahead(engine: Engine, clock: Clock = system_clock) -> timedelta:
    """By how much a clock is ahead of the database's, at least; less than nothing where it is behind."""
    before, there, after = clock(), await engine.now(), clock()
    return max(before - there, timedelta()) + min(after - there, timedelta())


def clock_warning(ahead: timedelta) -> list[str]:
    """A line for the DBA, where one of the clocks is wrong."""
    if abs(ahead) < _APART:
        return []
    by = timedelta(seconds=round(abs(ahead).total_seconds()))
    where = "ahead of" if ahead > timedelta() else "behind"
    return [f"the proxy's clock is {by} {where} the database's: budgets are renewed, and answers age, by the proxy's"]


def is_far_ahead(ahead: timedelta) -> bool:
    """Tell whether what is charged may stand in a period to come, before whose end no budget would be renewed again."""
    return ahead > _FAR_AHEAD


class Zones:
    """Remembers which zones were the same, for which years, and until when that is believed."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._same: dict[tuple[str, bool], tuple[int, int, float]] = {}  # from second, to second, until

    async def check(self, uses: Iterable[ZoneUse], deadline: float, turn: Turn = nullcontext) -> None:
        """Refuse a statement with a zone that runs differently there. A look takes a connection, so it has a turn."""
        for use in uses:
            first, last = _whole_years(use.first, use.last)
            now = asyncio.get_running_loop().time()
            known = self._same.get((use.name, use.by_name))
            if known is not None and known[0] <= first and last <= known[1] and now < known[2]:
                continue
            if known is not None:
                first, last = min(first, known[0]), max(last, known[1])
            if not await self._is_same_in_turn(use, first, last, deadline, turn):
                warn("zone_differs", place=use.name)
                raise NotSupported(
                    f"the proxy and the real database have different rules for the time zone '{use.name[:60]}'",
                    hint=f"Ask your DBA to install the same release of tzdata on both, or {_way_out(use)}.",
                )
            self._same[use.name, use.by_name] = first, last, now + _HELD_SECONDS

    async def _is_same_in_turn(self, use: ZoneUse, first: int, last: int, deadline: float, turn: Turn) -> bool:
        try:
            async with asyncio.timeout_at(deadline), turn():
                return await self._is_same(use, first, last, deadline - asyncio.get_running_loop().time())
        except TimeoutError:
            raise Interrupted("canceling statement due to statement timeout", hint=LONGER) from None

    async def _is_same(self, use: ZoneUse, first: int, last: int, timeout_seconds: float) -> bool:
        seconds = await asyncio.to_thread(_moments, use.name, first, last)
        try:
            there = await self._engine.clock_offsets(
                [use.name], seconds, by_name=use.by_name, timeout_seconds=timeout_seconds
            )
        except UnknownTimeZone:  # of the session: whoever asks is told so in words of its own
            return True
        except StatementFailed:
            return False
        except EngineError:
            raise Unavailable("the real database is unavailable", hint=f"{NOTHING_CHARGED} Try again later.") from None
        return there.get(use.name) == await asyncio.to_thread(_offsets, use.name, seconds)


def _way_out(use: ZoneUse) -> str:
    """Return what a session can do by itself, which differs where the statement names the zone."""
    return "name another zone in the query, such as 'UTC'" if use.by_name else "SET TimeZone = 'UTC'"


async def find_differing(engine: Engine, policy: Policy, catalog: Catalog, now: datetime) -> list[str]:
    """A line for the DBA about zones that run differently in the years of which the rules speak, if any do.

    A look at two days a month is enough to warn; what a statement needs is looked at closely. Names without a slash may
    be abbreviations too.
    """
    years = [bound.year for bound in _declared(policy, catalog)] or [now.year]
    ends = min(years), min(max(years), 9998) + 1
    first, last = (int(datetime(year, 1, 1, tzinfo=UTC).timestamp()) for year in ends)
    seconds = list(range(first, last, max(15, (last - first) // _DAY // _MOST_MARKS) * _DAY))
    names = sorted(name for name in catalog.time_zones or () if "/" in name and value.find_zone(name) is not None)
    there = await engine.clock_offsets(names, seconds, by_name=True, timeout_seconds=_LOOK_SECONDS)

    def compare() -> list[str]:
        return [name for name in names if there.get(name) != _offsets(name, seconds)]

    differing = await asyncio.to_thread(compare)
    more = f" and {len(differing) - _MOST_NAMED} more" if len(differing) > _MOST_NAMED else ""
    words = "the proxy and the database have different rules for time zones, and statements that need them are refused:"
    return (
        [f"{words} {', '.join(differing[:_MOST_NAMED])}{more}; install the same release of tzdata on both"]
        if differing
        else []
    )


def _declared(policy: Policy, catalog: Catalog) -> Iterator[date]:
    """The ends of all ranges of instants in the rules."""
    for text, rules in policy.tables.items():
        table = catalog.find_table(table_name(text))
        for name, declared in rules.columns.items():
            column = None if table is None else table.find_column(name)
            if column is not None and column.type.base == "timestamptz":
                yield from (bound for bound in (declared.lower, declared.upper) if isinstance(bound, date))


def _whole_years(first: int, last: int) -> tuple[int, int]:
    """From the first year's beginning to the end of the last, by any clock, so that few spans are looked at."""
    low, high = (int(end.timestamp()) for end in _FAR)
    start = datetime.fromtimestamp(min(max(first - _DAY, low), high), UTC)
    end = datetime.fromtimestamp(min(max(last + _DAY, low), high), UTC)
    return (
        int(start.replace(month=1, day=1, hour=0, minute=0, second=0).timestamp()),
        int(datetime(end.year + 1, 1, 1, tzinfo=UTC).timestamp()),
    )


def _moments(zone: str, first: int, last: int) -> list[int]:
    """Each day, or each week of a long span, and both sides of every change between two of these that differ."""
    step = _DAY if last - first < _LONG_YEARS * 366 * _DAY else 7 * _DAY
    marks = [*range(first, last, step), last]
    offsets = _offsets(zone, marks)
    changes = [
        _change(zone, before, after, offset)
        for before, after, offset, following in zip(marks, marks[1:], offsets, offsets[1:], strict=False)
        if offset != following
    ]
    return sorted({*marks, *changes, *(change - 1 for change in changes)})


def _change(zone: str, before: int, after: int, offset: int | None) -> int:
    """The second at which our clock changes."""
    while after - before > 1:
        middle = (before + after) // 2
        before, after = (middle, after) if _offsets(zone, [middle]) == [offset] else (before, middle)
    return after


def _offsets(zone: str, seconds: Sequence[int]) -> list[int | None]:
    """Return how far ahead of UTC our clock of a zone is at each moment."""
    local = ((second, value.to_local(second * SECOND, zone)) for second in seconds)
    return [None if shown is None else shown // SECOND - second for second, shown in local]
