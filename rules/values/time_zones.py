"""Time zones of a plan, and the moments at which they can be held against the real database.

Lists of hours and days, and bounds of local times, follow from our own tables of time zones. The database has tables of
its own, perhaps of another year, so each plan tells for which zones and times it used ours.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from rules.frozen import frozen

SECOND = 1_000_000  # microseconds


@frozen
class ZoneUse:
    """A zone, how it was named, and the seconds since 1970 between which our table of it was used."""

    name: str
    by_name: bool  # AT TIME ZONE 'CET' may be an abbreviation, where SET TimeZone = 'CET' is a zone
    first: int
    last: int


@dataclass(slots=True)
class Notes:
    """The zones of one plan, as they come up."""

    spans: dict[str, tuple[int, int]] = field(default_factory=dict)
    named: set[str] = field(default_factory=set)

    def uses(self, session_zone: str) -> tuple[ZoneUse, ...]:
        """All of them. UTC is UTC everywhere."""
        uses = []
        for name, (first, last) in sorted(self.spans.items()):
            if name != "UTC" and name in self.named:
                uses.append(ZoneUse(name, True, first, last))
            if name != "UTC" and (name == session_zone or name not in self.named):
                uses.append(ZoneUse(name, False, first, last))
        return tuple(uses)


_notes: ContextVar[Notes | None] = ContextVar("zones of the plan that is being made", default=None)


@contextmanager
def noting_zones() -> Iterator[Notes]:
    """Note every use of a zone inside."""
    notes = Notes()
    token = _notes.set(notes)
    try:
        yield notes
    finally:
        _notes.reset(token)


def note_use(zone: str, microseconds: int) -> None:
    """Our table of a zone is asked about a moment, by its own clock or another."""
    notes = _notes.get()
    if notes is not None:
        second = microseconds // SECOND
        first, last = notes.spans.get(zone, (second, second))
        notes.spans[zone] = min(first, second), max(last, second)


def note_name(zone: str) -> None:
    """A statement names a zone itself."""
    notes = _notes.get()
    if notes is not None:
        notes.named.add(zone)
