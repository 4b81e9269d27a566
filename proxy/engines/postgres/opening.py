"""Begin a transaction over the real database: pinned, locked, its proofs checked and its statements planned.

All of it comes before anything is charged, so whatever the server cannot run by its schema is refused for nothing.
Planning looks at statistics too, which have values of rows: what fails on a value (`Unplannable.can_tell_of_rows`) is
charged, and ends as a run that fails.
"""

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import psycopg
from psycopg import AsyncConnection, AsyncCursor, pq
from psycopg.sql import Literal

from proxy.causes import Cause, cause_of
from proxy.engines.engine import (
    EngineAway,
    EngineError,
    NotPermitted,
    Row,
    SchemaChanged,
    TooCostly,
    UnknownTimeZone,
    Unplannable,
)
from proxy.engines.postgres.privileges import find_missing, may_read
from proxy.engines.postgres.proof_queries import FINGERPRINTS, newer_than_snapshot
from rules.catalog import Table, find_codec
from rules.kernel.expressions import quoted_text
from rules.kernel.render import qualified
from rules.refusal import can_tell_of_rows

PINNED = {
    "search_path": "pg_catalog, pg_temp",  # not named pg_temp comes first: its int8 would be read for ours
    "client_encoding": "UTF8",  # until rows of tables are read: AS_STORED
    "client_min_messages": "error",
    "standard_conforming_strings": "on",
    "escape_string_warning": "off",
    "transform_null_equals": "off",
    "array_nulls": "on",
    "quote_all_identifiers": "off",  # in texts of the catalog, which are compared
    "DateStyle": "ISO, YMD",
    "IntervalStyle": "postgres",
    "extra_float_digits": "1",
    "bytea_output": "hex",
    "timezone_abbreviations": "Default",
    "gin_fuzzy_search_limit": "0",
    "row_security": "off",  # an error instead of rows silently left out
    "lc_numeric": "C",
    "lc_time": "C",
    "lc_monetary": "C",
    "debug_print_parse": "off",
    "debug_print_rewritten": "off",
    "debug_print_plan": "off",
    "plan_cache_mode": "force_generic_plan",  # for PROOFS, where all is asked by OID; force_custom_plan after them
}
PROOFS = f"{FINGERPRINTS} WHERE c.oid = ANY ($1)"
PREPARE = f"PREPARE noisegate_proofs (regclass[]) AS {PROOFS}"  # planning it would cost more than running it
AS_STORED = "SELECT set_config('client_encoding', getdatabaseencoding(), true)"
_LISTS = {name: ", ".join(f"'{each}'" for each in value.split(", ")) for name, value in PINNED.items()}
OPENING = "; ".join(
    ["BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", *(f"SET LOCAL {name} = {_LISTS[name]}" for name in PINNED)]
)
COST = re.compile(rb"\(cost=[0-9.]+\.\.([0-9.]+) ")
GRACE_SECONDS = 2  # for the server to end a statement by its own time-out before we leave it
SHOWN = 900  # characters: pg_stat_activity has 1024 bytes
NOT_SHOWN = re.compile(r"[^A-Za-z0-9_ .,()=<>]")  # so that nothing can end the comment
TRANSACTIONS_END_SINCE = 170_000  # the version with a transaction_timeout
BY_SCHEMA = ("42501", "0A000", "42P01")
"""Not permitted, not supported, not there: what the server says of these tells of the schema, and of no row."""


Begun = tuple[AsyncConnection[Any], str]  # in its transaction, and the codec of what it sends


class NotPrepared(EngineError):
    """The connection forgot what was prepared on it."""


@dataclass(frozen=True, slots=True)
class Opening:
    """The opening of a transaction, as one message: settings, locks, proofs, and the plans of what will be run.

    LOCK takes no snapshot, so the snapshot that the proofs take is one that no change of these tables can pass, and it
    is the snapshot of the rows. Planning waits for the proofs, and so it sees the tables that they are about.
    """

    time_zone: str
    timeout_seconds: float
    tables: tuple[Table, ...] = ()  # as they were when the statements were written
    planned: Mapping[str, str] = field(default_factory=dict)  # by statement: the name of its plan on the connection
    most_cost: float | None = None  # of all plans together
    settings: tuple[tuple[str, str], ...] = ()  # of the rules file, which were looked at
    reads_rows: bool = False  # in the database's own encoding; catalogs are read in UTF8

    def text(self, *, prepared: bool, version: int) -> str:
        """All but the plans; `prepared` is whether the connection has a plan of the proofs, `version` the server's."""
        milliseconds = max(1, int(self.timeout_seconds * 1000))
        parts = [
            OPENING,
            f"SET LOCAL TimeZone = '{self.time_zone}'",  # which has no quotes: it was looked at
            f"SET LOCAL statement_timeout = {milliseconds}",
            f"SET LOCAL lock_timeout = {milliseconds}",
            f"SET LOCAL idle_in_transaction_session_timeout = {milliseconds + GRACE_SECONDS * 1000}",
        ]
        if version >= TRANSACTIONS_END_SINCE:
            parts.append("SET LOCAL transaction_timeout = 0")  # the two before bound it; its clock may run already
        parts += [f"SET LOCAL {name} = {Literal(value).as_string()}" for name, value in self.settings]
        if self.tables:
            array = _by_oid(self.tables)
            parts.append(f"LOCK TABLE {', '.join(qualified(table.name) for table in self.tables)} IN ACCESS SHARE MODE")
            parts.append(f"EXECUTE noisegate_proofs ({array})" if prepared else PROOFS.replace("$1", array))
        parts.append("SET LOCAL plan_cache_mode = 'force_custom_plan'")
        if self.reads_rows:
            parts.append(AS_STORED)  # names in this message, and in the proofs, are in UTF8
        return "; ".join(parts)

    def plans(self) -> str:
        """Make a plan of each statement, with the constants that will run, and keep it: it is not made again."""
        costs = "OFF" if self.most_cost is None else "ON"
        return "".join(
            f"; PREPARE {name} AS {sql}; EXPLAIN (COSTS {costs}) EXECUTE {name}" for sql, name in self.planned.items()
        )

    def running(self, sql: str) -> str:
        """Return the plan of a statement, with so much of its text as the DBA needs to know it in pg_stat_activity."""
        name = self.planned.get(sql)
        return sql if name is None else f"EXECUTE {name} /* {NOT_SHOWN.sub('?', sql[:SHOWN])} */"

    def rechecking(self) -> str:
        """Return what is asked after the plans, and after each statement, which may have been planned once more.

        Before the charge it refuses for nothing what was planned by more, or over others, than the proofs have seen,
        and all where our role may not ask it.
        """
        schemas = sorted({table.name.schema for table in self.tables})
        return f"; {newer_than_snapshot(_by_oid(self.tables), schemas)}" if self.tables else ""

    def ending(self) -> str:
        """Leave nothing behind: a plan outlives its transaction."""
        return "; ".join(["ROLLBACK", *(f"DEALLOCATE {name}" for name in self.planned.values())])


def _by_oid(tables: Sequence[Table]) -> str:
    return f"ARRAY[{', '.join(f'{quoted_text(qualified(table.name))}::regclass' for table in tables)}]"


async def begin(connection: AsyncConnection[Any], opening: Opening, *, prepared: bool) -> Begun:
    """Begin; whatever goes wrong closes the connection, since no one else will."""
    try:
        async with asyncio.timeout(opening.timeout_seconds + GRACE_SECONDS):
            codec = await _begin(connection, opening, prepared=prepared)
    except BaseException as error:
        gone = connection.broken
        await connection.close()
        if isinstance(error, psycopg.errors.InvalidParameterValue):
            raise UnknownTimeZone from None
        if isinstance(error, psycopg.errors.UndefinedTable | psycopg.errors.InvalidSchemaName):
            raise SchemaChanged from None
        if isinstance(error, psycopg.errors.InvalidSqlStatementName):
            raise NotPrepared from None
        if isinstance(error, psycopg.OperationalError) and gone:
            raise EngineAway("the connection to the real database was lost", cause=cause_of(error)) from None
        if isinstance(error, psycopg.Error | OSError | TimeoutError):
            raise EngineError(cause=cause_of(error)) from None
        raise
    return connection, codec


async def _begin(connection: AsyncConnection[Any], opening: Opening, *, prepared: bool) -> str:
    """One message where all goes well. Where the server refuses, a second one says whether it was for a plan."""
    text = opening.text(prepared=prepared, version=connection.info.server_version)
    try:
        cursor = await connection.execute(text + opening.plans() + opening.rechecking())
    except psycopg.Error as error:
        if isinstance(error, psycopg.errors.InsufficientPrivilege):
            # the catalogs say which tables our role cannot read
            await connection.execute("ROLLBACK")
            if missing := await find_missing(connection, [table.name for table in opening.tables]):
                raise NotPermitted(sorted(missing)) from None
        if not opening.planned or connection.broken or not can_tell_of_rows(error.sqlstate or ""):
            raise
        _read(await connection.execute(f"ROLLBACK; {text}"), opening, rechecked=False)
        words = error.diag.message_primary or "" if error.sqlstate in BY_SCHEMA else ""
        raise Unplannable(words, cause=cause_of(error)) from None
    return _read(cursor, opening)


# Who cancels while it is asked why a statement failed, or is out of time, has a statement that failed all the same.
_UNDECIDED: Final = (OSError, TimeoutError, asyncio.CancelledError)
BY_DBA: Final = ("42501", "42P01")  # no right to read it, no such table: neither change waits for who reads


async def is_taken_away(connection: AsyncConnection[Any], opening: Opening) -> bool:
    """Return whether a DBA took away, or renamed, what is read here: the catalogs say so, and no row."""
    try:
        async with asyncio.timeout(GRACE_SECONDS):
            await connection.execute(opening.ending())
            return not await may_read(connection, [table.name for table in opening.tables])
    except (psycopg.Error, *_UNDECIDED):
        return False


async def is_planned_no_more(connection: AsyncConnection[Any], opening: Opening, sql: str, sqlstate: str) -> bool:
    """Return whether a statement that has failed does so before it meets a row: something that it names has changed.

    PostgreSQL reads its text again where a plan has become invalid, as all do when a schema is made or dropped. A label
    of an enum, or a type, may have another name by then, and that waits for no reader.
    """
    if not can_tell_of_rows(sqlstate):
        return False
    try:
        async with asyncio.timeout(GRACE_SECONDS):
            text = opening.text(prepared=False, version=connection.info.server_version)
            await connection.execute(f"ROLLBACK; {text}; EXPLAIN (COSTS OFF) {sql}")
    except psycopg.Error as error:
        return error.sqlstate == sqlstate
    except _UNDECIDED:
        return False
    return False


def _read(cursor: AsyncCursor[Any], opening: Opening, *, rechecked: bool = True) -> str:
    """Check the proofs, which are the first rows of an opening; return the codec of the rows that are read."""
    results = [rows_of(cursor.pgresult)]
    while cursor.nextset():
        results.append(rows_of(cursor.pgresult))
    answers = iter([rows for rows in results if rows])
    if opening.tables:
        _check_unchanged(next(answers, []), opening.tables)
    codec = _codec_of(next(answers, [])) if opening.reads_rows else "utf-8"
    plans = list(answers)
    if opening.tables and rechecked:
        check_not_newer(plans.pop() if plans else [])
    if opening.most_cost is not None and sum(map(cost_of, plans)) > opening.most_cost:
        raise TooCostly
    return codec


def check_not_newer(rows: Sequence[Row]) -> None:
    """Read the answer to `Opening.rechecking`."""
    if rows != [(b"f",)]:
        raise SchemaChanged


def cost_of(plan: Sequence[Row]) -> float:
    """Return what the planner expects, as its first line says: Aggregate  (cost=35.50..35.51 rows=1 width=8)."""
    match = COST.search(plan[0][0] or b"")
    return float(match[1]) if match else 0.0


def _check_unchanged(rows: Sequence[Row], tables: Sequence[Table]) -> None:
    """Every table has the fingerprint that it was planned with."""
    texts = ([(cell or b"").decode() for cell in row] for row in rows)
    fingerprints = {(schema, name): fingerprint for _, schema, name, fingerprint in texts}
    if any(fingerprints.get((table.name.schema, table.name.name)) != table.fingerprint for table in tables):
        raise SchemaChanged


def _codec_of(rows: Sequence[Row]) -> str:
    """The codec of the database's encoding, which the transaction now has; `noisegate check` says which are known."""
    name = (rows[0][0] or b"").decode() if rows else ""
    codec = find_codec(name)
    if codec is None:
        raise EngineError(cause=Cause("unknown_encoding"))
    return codec


def rows_of(result: pq.abc.PGresult | None) -> list[Row]:
    """The rows as the server wrote them, in its text format."""
    if result is None:
        return []
    columns = range(result.nfields)
    return [tuple(result.get_value(row, column) for column in columns) for row in range(result.ntuples)]
