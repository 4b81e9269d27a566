"""Clocks of time zones over a span of time: where they are put forward or back, and which bins of a grain they show.

date_trunc('hour', x) of an instant takes away what the clock shows beyond the hour, with the clock as it runs at that
very instant (timestamptz_trunc). So hours that come twice are two instants, hours that never come are none, and where a
clock is moved by half an hour an hour may begin before the change that made it.
"""

from functools import lru_cache

from rules.frozen import frozen
from rules.values.time_zones import note_use
from rules.values.value import DAY, to_local

_MOST_DAYS = 5_000  # that are looked at one by one


@frozen
class Stretch:
    """Instants from first to last, between which a clock runs evenly, so far ahead of UTC."""

    first: int
    last: int
    ahead: int


def stretches(first: int, last: int, zone: str) -> tuple[Stretch, ...] | None:
    """The even stretches of a span; None where it is too long, or beyond what is known of the zone.

    No zone puts its clock twice within a day (`tests/planner/test_time_zone_bins.py` looks at all of them).
    """
    for end in (first, last):
        note_use(zone, end)
    return _stretches(first, last, zone)


@lru_cache(maxsize=256)
def _stretches(first: int, last: int, zone: str) -> tuple[Stretch, ...] | None:
    if last - first > _MOST_DAYS * DAY:
        return None
    marks = [*range(first, last, DAY), last]
    offsets = [_ahead(mark, zone) for mark in marks]
    made: list[Stretch] = []
    start = first
    for place, ahead in enumerate(offsets):
        if ahead is None:
            return None
        following = offsets[place + 1] if place + 1 < len(offsets) else None
        if following is None and place + 1 < len(offsets):
            return None
        if following is not None and following != ahead:
            end = _last_with(ahead, marks[place], marks[place + 1], zone)
            made.append(Stretch(start, end, ahead))
            start = end + 1
    made.append(Stretch(start, last, offsets[-1] or 0))
    return tuple(made)


def find_bins(first: int, last: int, size: int, zone: str, limit: int) -> tuple[int, ...] | None:
    """The starts of all bins of a span, as instants; None where there are more than the limit.

    `size` divides a day, and a bin begins where the clock shows a multiple of it.
    """
    if (last - first) // size > limit:
        return None
    known = stretches(first, last, zone)
    if known is None:
        return None
    starts: set[int] = set()
    for stretch in known:
        start, end = ((bound + stretch.ahead) // size * size - stretch.ahead for bound in (stretch.first, stretch.last))
        starts.update(range(start, end + 1, size))
    return tuple(sorted(starts)) if len(starts) <= limit else None


def find_shown(first: int, last: int, zone: str) -> tuple[int, int] | None:
    """The least and the most that a clock shows in a span of time."""
    known = stretches(first, last, zone)
    if known is None:
        return None
    return min(stretch.first + stretch.ahead for stretch in known), max(
        stretch.last + stretch.ahead for stretch in known
    )


def _ahead(instant: int, zone: str) -> int | None:
    local = to_local(instant, zone)
    return None if local is None else local - instant


def _last_with(ahead: int, known: int, after: int, zone: str) -> int:
    """The last instant before a change."""
    while after - known > 1:
        middle = (known + after) // 2
        known, after = (middle, after) if _ahead(middle, zone) == ahead else (known, middle)
    return known
