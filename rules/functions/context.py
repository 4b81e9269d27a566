"""The context of an expression besides its columns: time zone, clock, styles, and what the real database can."""

from dataclasses import dataclass
from datetime import datetime

from rules.refusal import NotSupported
from rules.values.types import Type


@dataclass(frozen=True, slots=True)
class Styles:
    """The styles in which the session writes and reads dates and intervals."""

    date: str = "ISO"  # German, SQL or Postgres, or ISO, with the order of day and month
    interval: str = "postgres"


PLAIN = Styles()


@dataclass(frozen=True, slots=True)
class LiteralText:
    """A literal as PostgreSQL itself reads it, in canonical text; None where it cannot."""

    type: str
    literal: str
    text: str | None


@dataclass(frozen=True, slots=True)
class EvalContext:
    """All that an expression depends on besides its columns. In a key, declared values are enforced on texts too."""

    time_zone: str = "UTC"
    now: datetime | None = None
    as_key: bool = False
    styles: Styles = PLAIN
    readings: tuple[LiteralText, ...] = ()
    server_version: int = 180000  # of the real database: what runs there has to be known there
    time_zones: frozenset[str] | None = None  # that are known there
    encoding: str = "UTF8"  # of the texts there


@dataclass(frozen=True, slots=True)
class UnreadLiterals:
    """Literals that PostgreSQL must read before the planner can go on, and the type that they are read as."""

    texts: tuple[str, ...]
    type: Type


class Needed(Exception):
    """Ends binding at the first thing that must be known before; `rules.bind.needs` makes it a value."""

    def __init__(self, what: object) -> None:
        super().__init__(what)
        self.what = what


def check_unicode(name: str, setting: EvalContext) -> None:
    """In other encodings some letters have no code or no capital, and PostgreSQL then fails on the rows with these."""
    if setting.encoding != "UTF8":
        hint = "Only functions that cannot fail are supported over protected rows; apply it to the aggregated result."
        raise NotSupported(
            f"{name} needs a database with encoding UTF8, and the real database has {setting.encoding}", hint=hint
        )
