"""Waiting for what happens in its own time: for a condition, never for a while."""

import asyncio
from collections.abc import Callable

import psycopg

SECONDS = 20.0  # a machine that runs much else is slow, not broken


async def until(condition: Callable[[], bool]) -> None:
    """Come back as soon as it holds; fail where it never does."""
    async with asyncio.timeout(SECONDS):
        while not condition():
            await asyncio.sleep(0.01)


def is_active(dsn: str, words: str) -> bool:
    """Whether a PostgreSQL runs a statement with these words in it."""
    asked = "SELECT FROM pg_stat_activity WHERE state = 'active' AND query LIKE %s AND pid <> pg_backend_pid()"
    with psycopg.connect(dsn, autocommit=True) as connection:
        return connection.execute(asked, (f"%{words}%",)).fetchone() is not None
