"""Verifiers that a database keeps: asked for by the query of the rules file, as pgbouncer's auth_query does.

All names are asked for at once, whoever logs in, and kept for some seconds. So neither the time of a login nor the load
on the database tells who exists, and a stranger can make us ask no more than once in that time.
"""

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

import psycopg
from psycopg import AsyncConnection, AsyncRawCursor
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from proxy.causes import cause_of
from proxy.log import warn
from proxy.wire.scram import Verifier

_RETRY_SECONDS: Final = 1.0  # after a failure


@dataclass(frozen=True, slots=True)
class Answers:
    """The verifiers of the last time that there were any, by name."""

    verifiers: Mapping[str, Verifier] = field(default_factory=dict)
    are_current: bool = True  # False: the database could not be asked just now, so nobody logs in by these


class AuthQuery:
    """One query, and what it returned last."""

    def __init__(
        self, query: str, dsn: str, names: Collection[str], *, fresh_seconds: float, timeout_seconds: float
    ) -> None:
        self._query = query
        self._dsn = make_conninfo(
            "", **conninfo_to_dict(dsn) | {"application_name": "noisegate", "client_encoding": "UTF8"}
        )
        self._names = sorted(names)
        self._fresh_seconds, self._timeout_seconds = fresh_seconds, timeout_seconds
        self._answers = Answers()
        self._reading: asyncio.Task[None] | None = None
        self._next = 0.0  # by the clock of the event loop

    async def answers(self) -> Answers:
        """All who wait share one look at the database; the log says why it could not be asked."""
        if asyncio.get_running_loop().time() >= self._next:
            if self._reading is None:
                self._reading = asyncio.get_running_loop().create_task(self._read())
            await asyncio.shield(self._reading)
        return self._answers

    async def _read(self) -> None:
        try:
            self._answers = await self._look()
        finally:
            seconds = self._fresh_seconds if self._answers.are_current else _RETRY_SECONDS
            self._next = asyncio.get_running_loop().time() + seconds
            self._reading = None

    async def _look(self) -> Answers:
        try:
            async with asyncio.timeout(self._timeout_seconds):
                rows = await self._ask()
        except (psycopg.Error, OSError, TimeoutError) as error:
            warn("auth_query_failed", kind=type(error).__name__, **cause_of(error).fields)
            return replace(self._answers, are_current=False)
        verifiers = {name: _verifier_of(name, answer) for name, answer in rows.items()}
        return Answers({name: verifier for name, verifier in verifiers.items() if verifier is not None})

    async def _ask(self) -> Mapping[str, list[tuple[Any, ...]]]:
        """One transaction that writes nothing, and ends with the connection."""
        milliseconds = max(1, int(self._timeout_seconds * 1000))
        async with await AsyncConnection.connect(self._dsn, cursor_factory=AsyncRawCursor) as connection:
            await connection.set_read_only(True)
            await connection.execute(f"SET LOCAL statement_timeout = {milliseconds}")
            async with connection.pipeline():
                cursors = {name: await connection.execute(self._query, [name]) for name in self._names}
            return {name: await cursor.fetchmany(2) for name, cursor in cursors.items()}


def _verifier_of(name: str, rows: list[tuple[Any, ...]]) -> Verifier | None:
    """The verifier of the only row, which begins with the name; whatever else was returned is said in the log."""
    match rows:
        case [] | [(_, None, *_)]:
            return None
        case [(str(returned), str(text), *_)] if returned == name:
            try:
                return Verifier.parse(text)
            except ValueError:
                reason = "no_scram_verifier"  # md5, or a password in clear
        case [_, _, *_]:
            reason = "several_rows"
        case _:
            reason = "not_name_and_verifier"
    warn("auth_query_unusable", user=name, reason=reason)
    return None
