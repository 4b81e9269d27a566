"""Rows of public tables that the twin does not hold, read on the real database by a login that can read nothing else.

They are public, so nothing is charged, and they are kept for a minute. What goes wrong there is told in our own words.
"""

import asyncio
from collections.abc import Callable, Collection
from typing import Final

from proxy.engines.engine import (
    MOST_PUBLIC_CHARACTERS,
    MOST_PUBLIC_ROWS,
    PUBLIC_CONNECTIONS,
    EngineError,
    PublicLogin,
    SchemaChanged,
    StatementFailed,
    TooCostly,
    TooPowerful,
    refusal_before_charge,
)
from proxy.execute.load_limits import FairSemaphore
from proxy.execute.rulebook import Rulebook
from proxy.log import warn
from proxy.recent_values import RecentValues
from rules.catalog import Table, TableName
from rules.planner.plan import PublicQuery
from rules.refusal import (
    NOTHING_CHARGED,
    CannotRun,
    Interrupted,
    NotAllowed,
    Refusal,
    RulesChanged,
    TooComplex,
    Unavailable,
)

Rows = tuple[tuple[str | None, ...], ...]

MOST_SECONDS: Final = 30.0
_KEPT_SECONDS: Final = 60.0
_KEPT_BYTES: Final = 16 * 1024 * 1024
_GRANT: Final = f"{NOTHING_CHARGED} Ask your DBA for the GRANT to public_reader: noisegate grants prints it."
_HINT: Final = f"{NOTHING_CHARGED} Select fewer rows, or ask your DBA to raise --max-public-rows."


class PublicRows:
    """Answers queries over public tables alone, for all sessions."""

    def __init__(
        self,
        reader: PublicLogin | None = None,
        closed: Callable[[], Collection[TableName]] = tuple,
        on_change: Callable[[], None] | None = None,
    ) -> None:
        self._reader, self._closed = reader, closed
        self._on_change = on_change  # when a table is not what the catalog says
        self._turns = FairSemaphore(PUBLIC_CONNECTIONS, most=1)
        self._kept: RecentValues[tuple[int, PublicQuery, int, str], tuple[Rows, float]] = RecentValues(_KEPT_BYTES)

    @property
    def closed(self) -> tuple[TableName, ...]:
        """Public tables of which the twin has no rows."""
        return tuple(sorted(self._closed()))

    async def read(
        self, query: PublicQuery, width: int, rulebook: Rulebook, *, analyst: str, zone: str, seconds: float
    ) -> Rows:
        """Return the rows as texts; raises a Refusal."""
        key = rulebook.generation, query, width, zone
        now = asyncio.get_running_loop().time()
        kept = self._kept.find(key)
        if kept is not None and now < kept[1]:
            return kept[0]
        rows = await self._read(query, width, rulebook, analyst, zone, max(0.001, min(seconds, MOST_SECONDS)))
        if len(rows) > MOST_PUBLIC_ROWS:
            raise TooComplex(f"a subquery returns more than {MOST_PUBLIC_ROWS} rows", hint="Add LIMIT to the subquery.")
        if any(cell is not None and len(cell) > MOST_PUBLIC_CHARACTERS for row in rows for cell in row):
            raise TooComplex(f"a subquery returns a text of more than {MOST_PUBLIC_CHARACTERS} characters", hint=_HINT)
        size = len(query.sql) + sum(len(cell or "") + 60 for row in rows for cell in row)
        self._kept.keep(key, (rows, now + _KEPT_SECONDS), size)
        return rows

    async def _read(
        self, query: PublicQuery, width: int, rulebook: Rulebook, analyst: str, zone: str, seconds: float
    ) -> Rows:
        tables = _tables(query, rulebook)
        if self._reader is None or tables is None:
            raise RulesChanged("the rules or the schema changed while the statement was planned", hint="Run it again.")
        try:
            async with asyncio.timeout(seconds), self._turns.taken(analyst):
                return await self._reader.read(
                    query, width, rulebook.readable, tables, time_zone=zone, timeout_seconds=seconds
                )
        except (EngineError, TimeoutError) as error:
            if isinstance(error, SchemaChanged) and self._on_change is not None:
                self._on_change()
            raise _refusal(error, query, seconds) from None


def _tables(query: PublicQuery, rulebook: Rulebook) -> dict[TableName, Table] | None:
    """The tables that a query names; None where the rules in force do not say of each that it is public."""
    public = {name for name, _ in rulebook.readable.columns}
    tables = {name: table for name in query.tables if (table := rulebook.catalog.find_table(name)) and name in public}
    return tables if len(tables) == len(query.tables) else None


def _refusal(error: EngineError | TimeoutError, query: PublicQuery, seconds: float) -> Refusal:
    """Say why, without a word of the database's."""
    match error:
        case TooPowerful():
            warn("public_reader_too_powerful", reasons=len(error.reasons))
            words = "large public tables are not read: the login for them may do more than read public tables"
            return Unavailable(words, hint="Ask your DBA: noisegate check says what to revoke from public_reader.")
        case TooCostly():
            return CannotRun("the real database expects too much work for a subquery over public tables", hint=_HINT)
        case StatementFailed(sqlstate="57014") | TimeoutError():
            return Interrupted(f"a subquery over a large public table took longer than {seconds:.0f} s", hint=_HINT)
        case StatementFailed(sqlstate="42501"):
            warn("public_reader_away", **error.cause.fields)
            named = ("table " if len(query.tables) == 1 else "one of the tables ") + ", ".join(map(str, query.tables))
            words = f"permission denied for {named}: the login for large public tables may not read all of it"
            return NotAllowed(words, hint=_GRANT)
        case StatementFailed():
            words = "the real database cannot run this subquery over a large public table"
            hint = "Name all columns that are not aggregated in GROUP BY; guard divisions by nullif(x, 0), and casts."
            return CannotRun(words, hint=hint)
        case SchemaChanged():
            return refusal_before_charge(error)
    warn("public_reader_away", **error.cause.fields)
    return Unavailable("large public tables are not available now", hint=f"{NOTHING_CHARGED} Try again later.")
