"""Steps of a change to a twin, with names and values as SQL: statements, and what to do when one cannot be done.

Steps are applied to the living twin in one transaction, whoever stands in its way: sessions that hold a table are
waited for, but not for ever. After half a minute they are ended.
"""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import AsyncConnection

from rules.catalog import TableName

_NAME = r'("(?:[^"]|"")+"|[^".]+)'
_QUALIFIED = re.compile(rf"{_NAME}\.{_NAME}")

_LOCK_MILLISECONDS = 1000
_PAUSE_SECONDS = 0.2
_BATCH = 500  # statements in one message
OWNER_SETTINGS = (
    "SET LOCAL search_path = ''; SET LOCAL client_min_messages = error; SET LOCAL session_replication_role = replica"
)

# Everyone else who has held a lock on a table, type or schema of the database for as long as we waited for one.
_END_BLOCKERS = f"""
SELECT pg_terminate_backend(a.pid)
FROM pg_stat_activity a
WHERE a.backend_type = 'client backend' AND a.usename <> current_user
  AND a.xact_start < clock_timestamp() - interval '{_LOCK_MILLISECONDS} ms' AND EXISTS (
    SELECT FROM pg_locks l WHERE l.pid = a.pid AND l.granted AND l.locktype IN ('relation', 'object')
    AND (l.locktype = 'object' OR l.relation >= 16384))
"""


class ChangeTurns:
    """Changes of one twin, one after another. `number` is odd while one is made, and a new one when it is done."""

    def __init__(self) -> None:
        self.number, self._turn = 0, asyncio.Lock()

    async def __aenter__(self) -> None:
        await self._turn.acquire()
        self.number += 1

    async def __aexit__(self, *_: object) -> None:
        self.number += 1
        self._turn.release()


@dataclass(frozen=True, slots=True)
class Step:
    """One statement. Where the twin cannot have it, `otherwise` takes its place; None: then the whole change fails."""

    sql: str
    otherwise: str | None = None


def optional(sql: str) -> Step:
    """Return what is left out where the twin lacks something: a function of an extension, an operator, a type."""
    return Step(sql, "")


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def qualified(name: TableName) -> str:
    return f"{quoted(name.schema)}.{quoted(name.name)}"


def literal(text: str | None) -> str:
    r"""A string constant, or NULL, whatever `standard_conforming_strings` says.

    Example:
        >>> literal("it's")
        "'it''s'"
        >>> print(literal("C:\\temp"))
        E'C:\\temp'
    """
    if text is None:
        return "NULL"
    body = text.replace("'", "''")
    return "E'" + body.replace("\\", "\\\\") + "'" if "\\" in body else f"'{body}'"


def find_qualified(text: str) -> TableName | None:
    """The two names of what PostgreSQL printed as schema.name."""
    match = _QUALIFIED.fullmatch(text)
    return TableName(_plain(match[1]), _plain(match[2])) if match else None


def _plain(name: str) -> str:
    return name[1:-1].replace('""', '"') if name.startswith('"') else name


async def apply(connection: AsyncConnection[Any], steps: Sequence[Step], patience_seconds: float = 30) -> None:
    """All steps or none. The connection is the owner's, in autocommit mode, and used by no one else meanwhile."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + patience_seconds
    while True:
        try:
            async with connection.transaction():
                await connection.execute(f"{OWNER_SETTINGS}; SET LOCAL lock_timeout = {_LOCK_MILLISECONDS}")
                await _run(connection, steps)
        except (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected):
            if loop.time() >= deadline:
                await connection.execute(_END_BLOCKERS)
        else:
            return
        await asyncio.sleep(_PAUSE_SECONDS)


async def _run(connection: AsyncConnection[Any], steps: Sequence[Step]) -> None:
    """In large messages while everything goes well; a batch that fails is gone through one by one."""
    for start in range(0, len(steps), _BATCH):
        batch = steps[start : start + _BATCH]
        try:
            async with connection.transaction():
                await connection.execute(";\n".join(step.sql for step in batch))
        except (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected):
            raise
        except psycopg.Error:
            for step in batch:
                await _run_one(connection, step)


async def _run_one(connection: AsyncConnection[Any], step: Step) -> None:
    if step.otherwise is None:
        await connection.execute(step.sql)
        return
    try:
        async with connection.transaction():
            await connection.execute(step.sql)
    except (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected):
        raise
    except psycopg.Error:
        if step.otherwise:
            await connection.execute(step.otherwise)
