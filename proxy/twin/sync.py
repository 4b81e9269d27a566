"""Apply steps to the living twin in one transaction, whoever stands in its way.

Sessions that hold a table are waited for, but not for ever: after half a minute they are ended.
"""

import asyncio
from collections.abc import Sequence
from typing import Any

import psycopg
from psycopg import AsyncConnection

from proxy.twin.sql_text import Step

LOCK_MILLISECONDS = 1000
PAUSE_SECONDS = 0.2
BATCH = 500  # statements in one message
OWNER_SETTINGS = (
    "SET LOCAL search_path = ''; SET LOCAL client_min_messages = error; SET LOCAL session_replication_role = replica"
)

# Everyone else who holds a lock on a table, type or schema of the database.
END_BLOCKERS = """
SELECT pg_terminate_backend(a.pid)
FROM pg_stat_activity a
WHERE a.backend_type = 'client backend' AND a.usename <> current_user AND EXISTS (
    SELECT FROM pg_locks l WHERE l.pid = a.pid AND l.granted AND l.locktype IN ('relation', 'object')
    AND (l.locktype = 'object' OR l.relation >= 16384))
"""


async def apply(connection: AsyncConnection[Any], steps: Sequence[Step], patience_seconds: float = 30) -> None:
    """All steps or none. The connection is the owner's, in autocommit mode, and used by no one else meanwhile."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + patience_seconds
    while True:
        try:
            async with connection.transaction():
                await connection.execute(f"{OWNER_SETTINGS}; SET LOCAL lock_timeout = {LOCK_MILLISECONDS}")
                await _run(connection, steps)
        except (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected):
            if loop.time() >= deadline:
                await connection.execute(END_BLOCKERS)
        else:
            return
        await asyncio.sleep(PAUSE_SECONDS)


async def _run(connection: AsyncConnection[Any], steps: Sequence[Step]) -> None:
    """In large messages while everything goes well; a batch that fails is gone through one by one."""
    for start in range(0, len(steps), BATCH):
        batch = steps[start : start + BATCH]
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
